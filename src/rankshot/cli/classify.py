"""``rankshot classify``: a table of scores in, labels and probabilities out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rankshot import core, zeroshot
from rankshot.cli.console import (
    ProgressKind,
    check_output,
    is_dataset,
    open_executor,
    print_parts,
    print_table,
    progress_bar,
    refuse,
    say,
    show_parts,
    tell_progress,
)
from rankshot.cli.heads import HeadOptions, fit_head, open_table
from rankshot.core.errors import RankshotError, format_count, quote_names

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankshot.zeroshot.files.score_tables import ScoreTable

ROWS_SHOWN = 20
"""How many classes the printed table has at most."""
Batch = Literal["auto", "no", "yes"]
"""Whether all inputs are classified jointly."""


def classify(
    scores: str,
    *,
    output: str,
    options: HeadOptions,
    reject_below: float | None = None,
    batch: Batch = "no",
    workers: int | None = None,
    scheduler: str | None = None,
    top: int | None = None,
    overwrite: bool = False,
    on_error: Literal["skip", "stop"] = "stop",
    progress: ProgressKind = "text",
) -> None:
    """Classify inputs as new classes, or as new and seen classes.

    The inputs are given by a classifier's scores for the seen classes. The output has the columns
    id, label, probability and one column P(name) for each class that may be predicted: with
    --classes all, this is at least as many columns as the scores have, unless you give --top.

    A dataset of many tables needs a fitted head (--head FILE.rankshot, from `rankshot fit`). Each
    of its parts becomes a part of the output. An interrupted job continues when the same command
    is run again.

    Example: rankshot classify scores.parquet --rankings rankings.jsonl -o predictions.parquet

    Example: rankshot classify scores/ --head new-classes.rankshot -o predictions/ --workers 8

    Parameters
    ----------
    scores
        The table of scores, with one column per seen class and optionally a column id (.csv,
        .parquet); or a dataset of many such tables (.csv, .parquet): a folder, or a pattern
        in quotes.
    output
        The predictions to write (.csv, .parquet); for a dataset, or with --workers or --scheduler,
        a folder for many parts.
    reject_below
        Label an input `rejected` if the probability of every class is below this. By default, no
        input is rejected.
    batch
        Classify all inputs jointly: the distribution of their scores, without labels, corrects the
        rankings. Most new classes should occur among the inputs, several times each. With auto,
        this is done if there are at least five inputs per class. The number of labels that change
        is printed.
    top
        Write only the N most probable classes of each input: label, label_2, … with probability,
        probability_2, …, instead of one column per class. `rankshot report` needs all columns.
    overwrite
        Replace the predictions of another head, or of other settings, in the folder.
    on_error
        What to do with parts of a dataset that cannot be classified: stop, or skip and list them.
    """
    if top is not None:
        core.require_whole_number("--top", top)
    check_rejection(reject_below)
    if is_dataset(scores, workers, scheduler):
        refuse(batch == "yes", "--batch needs one file of scores, not a dataset of many")
        _classify_dataset(
            scores,
            output,
            options,
            progress,
            workers=workers,
            scheduler=scheduler,
            reject_below=reject_below,
            top=top,
            overwrite=overwrite,
            on_error=on_error,
        )
        return
    path, target = Path(scores), Path(output)
    check_output(target, core.TABLE_ENDINGS, path, *options.files.values())
    table = open_table(path, options)
    model, table = fit_head(table, options)
    check_rejection(reject_below, model.classes_)
    if batch != "no":
        from rankshot.zeroshot.batch_refinement import refine_batch
        from rankshot.zeroshot.remarks import describe_batch

        refuse(
            isinstance(model, zeroshot.SeenAndNew) and batch == "yes",
            "--batch yes needs a head that predicts only new classes",
        )
        if not isinstance(model, zeroshot.SeenAndNew):
            sample = table.sample(features=model.n_features > 0)
            model = refine_batch(model, sample, batch=batch == "yes" or "auto")
            for line in describe_batch(model.about.get("batch")):
                say(line)
    classify_table(table, model, target, reject_below, top, progress)


def check_rejection(reject_below: float | None, classes: Collection[str] = ()) -> None:
    """Refuse a bound that is not a probability, and classes with the name of rejected inputs."""
    from rankshot.zeroshot.decide import REJECTED

    is_wrong = reject_below is not None and not 0 <= reject_below <= 1
    refuse(is_wrong, f"--reject-below must be from 0 to 1, not {reject_below}")
    is_wrong = reject_below is not None and REJECTED in classes
    refuse(is_wrong, f"--reject-below: a class is called {REJECTED!r}; rename it")


def classify_table(
    table: ScoreTable,
    model: zeroshot.Predictor,
    output: Path,
    reject_below: float | None = None,
    top: int | None = None,
    progress: ProgressKind = "text",
) -> None:
    """Write the predictions of a fitted head for a table of scores, and print their counts."""
    from rankshot.zeroshot.files.predictions import classify_to_file

    n_rows, doing = 0, "classifying"
    with tell_progress(doing, progress) as tell, progress_bar() as bar:
        bar.disable = bar.disable or progress == "json"
        task = bar.add_task(doing, total=table.n_rows)

        def advance(n: int) -> None:
            nonlocal n_rows
            n_rows += n
            tell(rows=n_rows, **({} if table.n_rows is None else {"of_rows": table.n_rows}))
            bar.advance(task, n)

        counts = classify_to_file(table, model, output, reject_below, top, advance=advance)
    _print_counts(counts, model, str(output))


def write_decisions(
    ids: Sequence[str],
    model: zeroshot.Predictor,
    proba: NDArray[np.floating],
    output: Path,
    reject_below: float | None = None,
) -> None:
    """Write predictions from the probabilities of inputs in memory, and print their counts."""
    import numpy as np

    from rankshot.zeroshot.decide import label_or_reject

    with np.errstate(divide="ignore"):
        log_proba = np.log(proba)
    labels = label_or_reject(log_proba, model.classes_, reject_below)
    with zeroshot.open_predictions(output, model.classes_) as writer:
        writer.write(ids, labels, proba)
    _print_counts(Counter(labels.tolist()), model, str(output))


# ---- A dataset of many parts


def _classify_dataset(
    dataset: str,
    output: str,
    options: HeadOptions,
    progress: ProgressKind,
    *,
    workers: int | None,
    scheduler: str | None,
    reject_below: float | None,
    **settings: Any,
) -> None:
    """Classify all parts of a dataset on processes or a cluster, and print what was done."""
    from rankshot import jobs
    from rankshot.zeroshot.decide import REJECTED

    head = options.fitted
    if head is None or options.saved is None:
        raise RankshotError(
            f"{dataset}: a dataset needs a fitted head, --head FILE.rankshot; fit one with "
            "`rankshot fit`"
        )
    with show_parts("classifying", progress) as show, open_executor(scheduler) as executor:
        run = jobs.classify(
            dataset,
            options.saved,
            output,
            executor=executor,
            workers=workers,
            score_type=options.score_type,
            reject_below=reject_below,
            progress=show,
            **settings,
        )
    if run.n_rows:
        _print_counts(run.counts, head, output)
    if reject_below is not None and run.n_rows:
        n = run.counts[REJECTED]
        say(f"rejected: {n:,} ({n / run.n_rows:.1%})")
    print_parts(run, "classified")


# ---- What is printed


def _print_counts(counts: Counter[str], model: zeroshot.Predictor, output: str) -> None:
    """Print how often each class was predicted, and the total of each group of classes."""
    new, groups = model.inner.classes_.tolist(), {}
    if isinstance(model, zeroshot.SeenAndNew):
        seen = {"seen classes": model.classes_[model.seen_].tolist()} if model.seen else {}
        groups = {**seen, "new classes": new}
    total = sum(counts.values())
    rows = [(label, f"{n:,}", f"{n / total:.1%}") for label, n in counts.most_common(ROWS_SHOWN)]
    print_table("Predicted classes", ["class", ">inputs", ">share"], rows)
    if len(counts) > ROWS_SHOWN:
        say(f"and {len(counts) - ROWS_SHOWN} more")
    for group, names in groups.items():
        within = sum(counts[name] for name in names)
        say(f"{group}: {within:,} ({within / total:.1%})")
    if never := [name for name in new if not counts[name]]:
        say(f"never predicted: {quote_names(never)}")
    say(f"{format_count(total, 'prediction')} written to {output}")
