"""``rankshot score``: a model and a folder of pictures, or texts, in; a table of scores out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from rankshot.cli.console import check_writable, progress_bar, say
from rankshot.cli.part_runs import (
    SchedulerOption,
    UpdateOption,
    WorkersOption,
    check_cluster_options,
    print_parts,
    show_parts,
)
from rankshot.core.errors import RankshotError, format_count, short_repr

if TYPE_CHECKING:
    from rankshot.inference.score_runs import ScoreRun
    from rankshot.inference.scoring import ScoringPlan

REASONS_SHOWN = 5


class OnError(StrEnum):
    """What to do with an input that cannot be scored."""

    SKIP = "skip"
    STOP = "stop"


class Layout(StrEnum):
    """The order of the axes of a batch of pictures."""

    NCHW = "NCHW"
    NHWC = "NHWC"


INPUTS_HELP = (
    "A folder of pictures (with all its folders), a picture, a list of paths or texts (.txt, one "
    "per line), or a table with a column text, or path, and optionally id (.csv, .jsonl)."
)
InputsArgument = Annotated[
    Path,
    typer.Argument(help=INPUTS_HELP),
]
ModelOption = Annotated[
    str,
    typer.Option(
        help="A network (.onnx), a folder or hub name of transformers, a scikit-learn "
        "pipeline (.skops), or efficientnet-lite0, which knows the classes of ImageNet."
    ),
]
ModelClassesOption = Annotated[
    str | None,
    typer.Option(
        help="The names of the classes in the order of the model's outputs: a file, or "
        "imagenet-1k. Not needed if they are in the model."
    ),
]
PreprocessingOption = Annotated[
    str | None,
    typer.Option(
        help="How a picture becomes numbers: imagenet, efficientnet-lite, clip, or a file "
        "preprocessor_config.json. Such a file beside the model is read by itself."
    ),
]
SizeOption = Annotated[
    str | None, typer.Option(help="The size of the network's input: 224, or height x width.")
]
MeanOption = Annotated[
    str | None,
    typer.Option(help="What is subtracted from red, green, blue (white is 1): 0.5, or three."),
]
StdOption = Annotated[
    str | None, typer.Option(help="What they are then divided by: 0.5, or three numbers.")
]
LayoutOption = Annotated[
    Layout | None,
    typer.Option(help="The order of the axes, if the network does not fix it."),
]
TextColumnOption = Annotated[
    str | None, typer.Option(help="The column with the inputs. The default is text, or path.")
]
IdColumnOption = Annotated[
    str | None, typer.Option(help="The column with the ids. The default is id.")
]
OnErrorOption = Annotated[
    OnError, typer.Option(help="Skip inputs that cannot be read, and list them; or stop.")
]


def score(
    inputs: Annotated[
        str,
        typer.Argument(
            help=f"{INPUTS_HELP} If the output is a folder, also a dataset of such tables of "
            "texts: a folder, a pattern in quotes, or an address such as s3://bucket/texts."
        ),
    ],
    model: ModelOption,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="The scores to write (.parquet, .csv, .npz); or a folder for many parts, or its "
            "address.",
        ),
    ],
    classes: ModelClassesOption = None,
    preprocessing: PreprocessingOption = None,
    size: SizeOption = None,
    mean: MeanOption = None,
    std: StdOption = None,
    layout: LayoutOption = None,
    text_column: TextColumnOption = None,
    id_column: IdColumnOption = None,
    batch: Annotated[int, typer.Option(help="Inputs per call of the model.")] = 16,
    on_error: OnErrorOption = OnError.SKIP,
    again: Annotated[
        bool, typer.Option("--again", help="Start from the beginning, whatever is there.")
    ] = False,
    workers: WorkersOption = None,
    scheduler: SchedulerOption = None,
    update: UpdateOption = False,
) -> None:
    """Run a model over pictures or texts and write its scores, for rankshot classify.

    A run that was stopped goes on where it was when the same command is given again. Inputs that
    have no scores are listed in a file beside the output, such as scores.skipped.csv.

    If the output is a folder, it gets many parts, for rankshot classify, and each worker runs the
    model. If workers declare the resource GPU (dask worker --resources
    GPU=1), only these do. Skipped inputs are listed in the folder _skipped in it.

    Example: rankshot score photos/ --model network.onnx --classes imagenet-1k --preprocessing
    imagenet -o scores.parquet

    Example: rankshot score photos/ --model efficientnet-lite0 -o scores/ --workers 8
    """
    from rankshot.core.files import require_ending
    from rankshot.core.validation import require_whole_number
    from rankshot.inference.score_runs import score_to_file
    from rankshot.zeroshot.files.score_tables import ENDINGS

    require_whole_number("--batch", batch)
    options: dict[str, Any] = {
        "batch_size": batch,
        "on_error": "skip" if on_error is OnError.SKIP else "raise",
        "column": text_column,
        "id_column": id_column,
        "again": again,
    }
    check_cluster_options(workers, scheduler)
    if workers is not None or scheduler is not None or not Path(output).suffix:
        options["update"] = update
        plan = open_plan(model, classes, preprocessing, size, mean, std, layout)
        _score_parts(plan, inputs, output, workers=workers, scheduler=scheduler, **options)
        return
    if update:
        raise RankshotError("--update is for an output of many parts, and this is one file")
    source, target = Path(inputs), Path(output)
    require_ending(target, ENDINGS)
    check_writable(target, source)
    if not source.exists():
        raise RankshotError(f"{source}: there is no such file or folder")
    plan = open_plan(model, classes, preprocessing, size, mean, std, layout)
    with say_if_stopped(target, again=again), ScoringRate() as show:
        run = score_to_file(plan, source, target, progress=show, **options)
    _print_run(run, plan)


def _score_parts(plan: ScoringPlan, inputs: str, output: str, **options: Any) -> None:
    """Score on processes or a cluster, and print what was done."""
    from rankshot.jobs import score as score_parts
    from rankshot.jobs.scored_datasets import BESIDE, SKIPPED, SKIPPED_FOLDER

    with show_parts("scoring") as show:
        run = score_parts(plan, inputs, output, progress=show, notify=say, **options)
    _remark_on_kind(plan)
    say(f"{format_count(run.n_rows, 'input')} written to {output}")
    reasons, others = (
        {name.removeprefix(begin): n for name, n in run.counts.items() if name.startswith(begin)}
        for begin in (SKIPPED, BESIDE)
    )
    _say_skipped(reasons, others, f"{output.rstrip('/')}/{SKIPPED_FOLDER}")
    print_parts(run, "scored", output)


def open_plan(
    model: str,
    classes: str | None,
    preprocessing: str | None,
    size: str | None,
    mean: str | None,
    std: str | None,
    layout: Layout | None,
) -> ScoringPlan:
    """Open the model that the options describe, and print what will be done."""
    from rankshot.inference.scoring import plan_scoring

    changes = {
        "size": None if size is None else _parse_size(size),
        "mean": None if mean is None else _parse_numbers("--mean", mean),
        "std": None if std is None else _parse_numbers("--std", std),
        "layout": None if layout is None else layout.value,
    }
    opened, how = _choose_preprocessing(model, preprocessing, changes)
    plan = plan_scoring(opened, classes, how)
    for line in plan.describe():
        say(line)
    return plan


def _choose_preprocessing(
    model: str, preprocessing: str | None, changes: dict[str, Any]
) -> tuple[Any, Any]:
    """Return the open model, and the preprocessing if it is not the model's own."""
    from rankshot.inference.models import open_model
    from rankshot.inference.preprocessing import as_preprocessing, change_preprocessing

    given = None if preprocessing is None else as_preprocessing(preprocessing)
    opened = open_model(model)
    if opened.takes == "texts" and any(value is not None for value in changes.values()):
        options = " and ".join(f"--{name}" for name, value in changes.items() if value is not None)
        raise RankshotError(f"{opened.name}: takes texts; leave out {options}, for pictures")
    base = opened.preprocessing if given is None else given
    changed = change_preprocessing(base, opened.input_shape, **changes)
    return opened, None if changed is opened.preprocessing else changed


def _parse_size(text: str) -> tuple[int, int]:
    sides = text.lower().replace(",", "x").split("x")
    if len(sides) > 2 or not all(side.strip().isdecimal() for side in sides):
        raise RankshotError(f"--size must be such as 224 or 224x320, not {short_repr(text)}")
    return int(sides[0]), int(sides[-1])


def _parse_numbers(option: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise RankshotError(
            f"{option} must be a number, or three with commas, not {short_repr(text)}"
        ) from None


@contextmanager
def say_if_stopped(scores: Path, *, again: bool) -> Iterator[None]:
    """Print what is kept if Ctrl-C stops the block, and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        from rankshot.inference.score_runs import count_kept

        n = count_kept(scores)
        kept = (
            "no scores are kept" if n == 0 else f"the scores of {format_count(n, 'input')} are kept"
        )
        if n == 0 and scores.is_file():
            kept = f"the scores in {scores} are kept"
        say(f"stopped: {kept}; the same command{' without --again' if again else ''} goes on")
        raise


class ScoringRate:
    """A progress bar that shows how many inputs are done per second."""

    def __enter__(self) -> Self:
        self._bar = progress_bar().__enter__()
        self._task = self._bar.add_task("scoring", total=None)
        self._first: tuple[float, int] | None = None
        return self

    def __call__(self, done: int, total: int, _what: str) -> None:
        """Show how many inputs are done."""
        now = monotonic()
        self._first = self._first or (now, done)
        begin, before = self._first
        rate = f", {(done - before) / (now - begin):.1f} per second" if now > begin else ""
        self._bar.update(self._task, completed=done, total=total, description=f"scoring{rate}")

    def __exit__(self, *exc: object) -> None:
        self._bar.stop()


def _print_run(run: ScoreRun, plan: ScoringPlan) -> None:
    if run.was_finished:
        say(
            f"{run.path}: has the scores of this model for these inputs already; nothing was done "
            "(--again computes them once more)"
        )
        return
    if run.had_probabilities:
        say("the model's outputs are probabilities: the scores are their logarithms")
    if run.path.suffix != ".npz":
        _remark_on_kind(plan)
    if run.n_resumed:
        say(f"{run.n_resumed:,} inputs were done by an earlier run, which was stopped")
    n_now = run.n_rows + run.n_skipped - run.n_resumed
    rate = f" ({n_now / run.seconds:,.1f} per second)" if run.seconds > 0 and n_now > 0 else ""
    say(f"{format_count(run.n_rows, 'input')} written to {run.path}{rate}")
    print_skipped(run)


def _remark_on_kind(plan: ScoringPlan) -> None:
    if plan.model.kind == "one-vs-rest":
        say("the scores are one-vs-rest: give --score-type one-vs-rest-logits to the next command")


def print_skipped(run: ScoreRun) -> None:
    """Print how many inputs have no scores, what is no input, and why."""
    _say_skipped(run.reasons, run.others, run.skipped_path)


def _say_skipped(
    reasons: Mapping[str, int], others: Mapping[str, int], listed_in: str | Path
) -> None:
    parts = []
    if reasons:
        n_skipped = format_count(sum(reasons.values()), "input")
        parts.append(f"skipped {n_skipped}: {_count_reasons(reasons)}")
    if others:
        parts.append(f"not inputs: {_count_reasons(others)}")
    if parts:
        say(f"{'; '.join(parts)}; all are listed in {listed_in}")


def _count_reasons(reasons: Mapping[str, int]) -> str:
    counts = sorted(reasons.items(), key=lambda pair: -pair[1])
    shown = [f"{count:,} {reason}" for reason, count in counts[:REASONS_SHOWN]]
    if rest := sum(count for _, count in counts[REASONS_SHOWN:]):
        shown.append(f"{rest:,} for other reasons")
    return ", ".join(shown)
