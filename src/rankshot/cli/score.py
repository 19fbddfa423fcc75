"""``rankshot score``: a model and a folder of images, or texts, in; a table of scores out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rankshot import core, recognition, zeroshot
from rankshot.cli.console import (
    ProgressKind,
    check_output,
    is_dataset,
    name_options,
    open_executor,
    print_parts,
    refuse,
    say,
    show_parts,
)
from rankshot.core.errors import format_count

if TYPE_CHECKING:
    from rankshot.recognition.scoring import ScoringPlan
    from rankshot.zeroshot.files.score_tables import ScoreTable

REASONS_SHOWN = 5


def score(
    inputs: str,
    *,
    model: str,
    output: str,
    seen: str | None = None,
    preprocessing: str | None = None,
    no_features: bool = False,
    batch: int = 16,
    on_error: Literal["skip", "stop"] = "skip",
    again: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: ProgressKind = "text",
) -> None:
    """Run a model on images or texts, and write its scores.

    The scores are the input of `rankshot classify`. An interrupted run continues when the same
    command is run again. Inputs that cannot be read are skipped, and listed in a file next to the
    output, such as scores.skipped.csv.

    If the output is a folder, the scores are written in parts, and each worker runs the model.
    Skipped inputs are listed in the file _skipped.csv of the folder.

    Example: rankshot score photos/ --model network.onnx --seen imagenet-1k --preprocessing
    imagenet -o scores.parquet

    Example: rankshot score photos/ --model efficientnet-lite0 -o scores/ --workers 8

    Parameters
    ----------
    inputs
        A folder of images (subfolders included), an image, a list of paths or texts (.txt, one per
        line), or a table with a column text or path, and optionally id (.csv, .jsonl). If the
        output is a folder, also a dataset of such tables of texts: a folder, or a pattern in
        quotes.
    model
        A network (.onnx), a transformers model (a folder or its name on the hub), a scikit-learn
        pipeline (.skops), or efficientnet-lite0, which was trained on ImageNet.
    output
        The scores to write (.parquet, .csv); or a folder for many parts.
    seen : <file or imagenet-1k>
        The names of the classes in the order of the model's outputs: a file, or imagenet-1k. Not
        needed if they are in the model.
    preprocessing : <name or file>
        How images are preprocessed: imagenet, efficientnet-lite, clip, or a file
        preprocessor_config.json (one next to the model is found automatically).
    no_features
        Do not keep the input of the model's last layer beside the scores. Labelled examples are
        compared by these features, which can only be stored in .parquet or in a folder.
    batch
        The number of inputs per call to the model.
    on_error
        What to do with inputs and parts that cannot be read: skip and list them, or stop.
    again
        Start over, even if there are scores already.
    workers
        The number of local processes. `score` runs the model in one process unless you say
        otherwise; `classify` uses one per core for 256 MB of scores or more.
    scheduler
        Use a Dask cluster: the address of its scheduler, such as tcp://10.0.0.5:8786.
    progress
        How progress is printed on standard error: text, or json with one JSON object per line.
    """
    core.require_whole_number("--batch", batch)
    is_there = is_dataset(inputs, workers, scheduler) or Path(inputs).exists()
    is_table = bool(Path(output).suffix)
    if is_table:
        check_output(Path(output), core.TABLE_ENDINGS, Path(inputs))
        refuse(not is_there, f"{inputs}: no such file or folder")
    plan = open_plan(model, seen, preprocessing, features=not no_features)
    with show_parts("scoring", progress) as show, open_executor(scheduler) as executor:
        run = recognition.write_scores(
            plan,
            inputs,
            output,
            batch_size=batch,
            executor=executor,
            workers=workers or 1,
            on_error=on_error,
            overwrite=again,
            progress=show,
        )
    if is_table and not run.n_done:
        say(
            f"{output}: has the scores of this model for these inputs already; nothing was done "
            "(--again computes them once more)"
        )
        return
    if run.counts["probabilities"]:
        say("the model's outputs are probabilities: the scores are their logarithms")
    if plan.model.kind == "one-vs-rest" and output.endswith(".csv"):
        say("the scores are one-vs-rest: give --score-type one-vs-rest-logits to the next command")
    say(f"{format_count(run.n_rows, 'input')} written to {output}")
    lists = Path(output).with_suffix(".skipped.csv") if is_table else f"{output}/_skipped.csv"
    print_skipped(run, lists)
    if run.n_done and run.n_rows and Path(output).exists():
        table = zeroshot.open_scores(output)
        print_check(table)
        if plan.features:
            print_features(table)
    print_parts(run, "scored")


def open_plan(
    model: str, classes: str | None, preprocessing: str | None, *, features: bool = True
) -> ScoringPlan:
    """Open the model that the options describe, and print what will be done."""
    from rankshot.recognition.scoring import plan_scoring

    with name_options({"classes": "--seen", "preprocessing": "--preprocessing"}):
        plan = plan_scoring(model, classes, preprocessing, features=features)
    for line in plan.describe():
        say(line)
    return plan


def print_check(
    scores: ScoreTable, labels: Mapping[str, str] | None = None, *, doubts: bool = True
) -> None:
    """Print what a network itself says, by its scores, and how many labels of inputs it meets."""
    check = recognition.check_scores(scores.batches(), labels)
    lines = check.describe()
    for line in lines if doubts else lines[: len(lines) - len(check.doubts)]:
        say(line)


def print_features(scores: ScoreTable) -> None:
    """Print how many features scores have, or why they have none."""
    n = scores.n_features
    why = "the model's last layer was not found, or its input is sparse"
    if scores.path.suffix == ".csv":
        why = "CSV has one column per class; write .parquet to keep them"
    text = f"{n:,} per input, the input of the model's last layer"
    text = f"{text} (`rankshot score --no-features` leaves them out)"
    say(f"features: {text if n else f'none: {why}'}")


def print_skipped(run: recognition.ScoringRun, listed_in: str | Path) -> None:
    """Print how many inputs have no scores, what is not an input, and why."""
    told = []
    if reasons := run.count_reasons():
        told.append(f"skipped {format_count(reasons.total(), 'input')}: {_count_reasons(reasons)}")
    if others := run.count_reasons(is_input=False):
        told.append(f"not inputs: {_count_reasons(others)}")
    if told:
        say(f"{'; '.join(told)}; all are listed in {listed_in}")


def _count_reasons(reasons: Mapping[str, int]) -> str:
    counts = sorted(reasons.items(), key=lambda pair: -pair[1])
    shown = [f"{count:,} {reason}" for reason, count in counts[:REASONS_SHOWN]]
    if rest := sum(count for _, count in counts[REASONS_SHOWN:]):
        shown.append(f"{rest:,} for other reasons")
    return ", ".join(shown)
