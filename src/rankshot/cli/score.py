"""``rankshot score``: a model and a folder of pictures, or texts, in; a table of scores out."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankshot.cli.console import check_writable, say
from rankshot.cli.part_runs import (
    SchedulerOption,
    UpdateOption,
    WorkersOption,
    check_cluster_options,
    count_default_workers,
    print_parts,
    show_parts,
)
from rankshot.core.errors import RankshotError, format_count, short_repr

if TYPE_CHECKING:
    from rankshot.inference.scoring import ScoringPlan
    from rankshot.jobs import PartsRun

REASONS_SHOWN = 5


class OnError(StrEnum):
    """What to do with an input that cannot be scored."""

    SKIP = "skip"
    STOP = "stop"

    def as_argument(self) -> str:
        """Return the name that the library has for it."""
        return "skip" if self is OnError.SKIP else "raise"


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
    model. If workers declare the resource GPU (dask worker --resources GPU=1), only these do.
    Skipped inputs are listed in _skipped.csv in it.

    Example: rankshot score photos/ --model network.onnx --classes imagenet-1k --preprocessing
    imagenet -o scores.parquet

    Example: rankshot score photos/ --model efficientnet-lite0 -o scores/ --workers 8
    """
    from rankshot.core.files import require_ending
    from rankshot.core.validation import require_whole_number
    from rankshot.jobs.score_parts import list_inputs, score_inputs
    from rankshot.jobs.storage import has_pattern, is_address
    from rankshot.zeroshot.files.score_tables import ENDINGS

    require_whole_number("--batch", batch)
    check_cluster_options(workers, scheduler)
    is_table = bool(Path(output).suffix)
    if is_table:
        if update:
            raise RankshotError("--update is for an output of many parts, and this is one file")
        require_ending(Path(output), ENDINGS)
        if not has_pattern(inputs) and not is_address(inputs) and not Path(inputs).exists():
            raise RankshotError(f"{inputs}: there is no such file or folder")
        check_writable(Path(output), Path(inputs))
    elif workers is None and scheduler is None:
        workers = count_default_workers()
    workers = None if workers == 1 else workers
    plan = open_plan(model, classes, preprocessing, size, mean, std, layout)
    listed = list_inputs(plan, inputs, text_column, id_column, batch)
    with show_parts("scoring", on_dask=workers is not None or scheduler is not None) as show:
        run = score_inputs(
            plan,
            listed,
            output,
            workers=workers,
            scheduler=scheduler,
            on_error=on_error.as_argument(),
            again=again,
            update=update,
            progress=show,
            notify=say,
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
    from rankshot.inference.model import open_model
    from rankshot.inference.pictures import as_preprocessing, change_preprocessing

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


def print_skipped(run: PartsRun, listed_in: str | Path) -> None:
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
