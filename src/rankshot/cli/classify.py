"""``rankshot classify``: tables of scores in, labels and probabilities out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from rankshot.cli.printing import RequiredOutput, print_table, require_output, say
from rankshot.cli.recognise import BATCH, Batch, Share
from rankshot.core.errors import NO_VALUE, InputError, format_count, quote_names

ROWS_SHOWN = 20
ScoreType = Literal[
    "auto",
    "logits",
    "probabilities",
    "one-vs-rest-logits",
    "one-vs-rest-probabilities",
    "one-vs-one",
]


def classify(
    scores: str,
    /,
    *,
    output: RequiredOutput,
    head: Path | None = None,
    rankings: Path | None = None,
    reference: Path | None = None,
    rehearse: Annotated[bool, Parameter(negative="--no-rehearse")] = True,
    examples: Path | None = None,
    settings: Path | None = None,
    classes: Literal["new", "all"] = "new",
    seen_loss: Share = None,
    none: bool = False,
    batch: Batch = "no",
    score_type: ScoreType = "auto",
    reject_below: float | None = None,
    top: int | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    on_error: Literal["stop", "skip"] = "stop",
    overwrite: bool = False,
) -> None:
    """Classify tables of scores as new classes, or as new and seen classes.

    The output has the columns id, label, probability and one column P(name) for each class that may
    be predicted. Many tables need a saved head (--head, from `rankshot export`): each part becomes
    a part of the output, and an interrupted job continues when the same command is run again.

    Example: rankshot classify scores.parquet --rankings rankings.jsonl -o predictions.parquet

    Example: rankshot classify scores/ --head new-classes.rankshot -o predictions/ --workers 8

    Parameters
    ----------
    scores
        A table of scores, with one column per seen class and optionally a column id (.csv,
        .parquet); or many: a folder, or a pattern in quotes.
    output
        The predictions to write (.csv, .parquet); for many tables, a folder.
    head
        A saved head (.rankshot), instead of --rankings and what belongs to them.
    rankings
        Rankings of the seen classes for each new class (.jsonl, .parquet).
    reference
        Scores of inputs of seen classes that were not used for training, perhaps with a column
        label (.csv, .parquet).
    rehearse
        Hold out classes of a reference with labels, to choose settings.
    examples
        A table with columns id and label, or scores of other inputs with a column label.
    settings
        Settings that `rankshot doctor --rehearse -o` wrote (.json).
    classes
        What may be predicted: new classes only, or new and seen classes.
    seen_loss
        With --classes all, how much accuracy on seen classes may be lost, such as 2%.
    none
        Also predict "none of these".
    batch
        Whether all inputs are classified jointly; with auto, if there are five or more per class.
    score_type
        What the scores are. With auto, this is inferred from the first rows.
    reject_below
        Label an input `rejected` if the probability of every class is below this.
    top
        Write only the N most probable classes of each input.
    workers
        The number of processes for many tables.
    scheduler
        The address of a Dask scheduler for many tables, such as tcp://10.0.0.5:8786.
    on_error
        What to do with tables that cannot be classified: stop, or skip and list them.
    overwrite
        Replace the output, although a person may have written it; or that of another head.
    """
    if (head is None) == (rankings is None):
        raise InputError("rankings", NO_VALUE, "must be given", hint="or --head, but not both")
    if rankings is not None:
        _fit_and_classify(
            scores,
            output,
            rankings,
            reject_below,
            top,
            score_type,
            overwrite,
            reference=reference,
            rehearse=rehearse,
            examples=examples,
            settings=settings,
            classes=classes,
            seen_loss=seen_loss,
            none=none,
            batch=BATCH[batch],
        )
        return
    assert head is not None  # noqa: S101 (one of both is given)
    for name, value in {"reference": reference, "examples": examples, "settings": settings}.items():
        if value is not None:
            raise InputError(name, str(value), "cannot be combined with head")
    from rankshot import jobs

    if Path(scores).is_file():
        require_output(output, (".csv", ".parquet"), scores, head, overwrite=overwrite)
    with _open_executor(scheduler) as executor:
        run = jobs.classify(
            scores,
            head,
            output,
            executor=executor,
            workers=workers,
            score_type=score_type,
            reject_below=reject_below,
            top=top,
            overwrite=overwrite,
            on_error=on_error,
        )
    print_counts(run.counts, str(output))
    for name, reason in run.failed:
        say(f"failed: {name}: {reason}")
    if run.failed:
        raise SystemExit(1)


def _fit_and_classify(
    scores: str,
    output: Path,
    rankings: Path,
    reject_below: float | None,
    top: int | None,
    score_type: str,
    overwrite: bool,  # noqa: FBT001
    **known: Any,
) -> None:
    """Fit a head to one table and what is known, and write its predictions."""
    from rankshot.recognition import recognise
    from rankshot.zeroshot import Settings

    require_output(output, (".csv", ".parquet"), scores, rankings, overwrite=overwrite)
    if not Path(scores).is_file():
        raise InputError("scores", scores, "must be one file", hint="many tables need --head")
    path = known.pop("settings")
    if path is not None:
        known["settings"] = Settings.read(path)
    found = recognise(Path(scores), rankings, score_type=score_type, **known)
    for note in found.notes:
        say(note)
    labels = found.write(output, reject_below=reject_below, top=top)
    print_counts(Counter(labels.tolist()), str(output))


def print_counts(counts: Counter[str], output: str) -> None:
    """Print how often each class was predicted."""
    total = counts.total()
    rows = [(label, f"{n:,}", f"{n / total:.1%}") for label, n in counts.most_common(ROWS_SHOWN)]
    print_table("Predicted classes", ["class", ">inputs", ">share"], rows)
    if len(counts) > ROWS_SHOWN:
        say(f"and {len(counts) - ROWS_SHOWN} more: {quote_names([*counts][ROWS_SHOWN:])}")
    say(f"{format_count(total, 'prediction')} written to {output}")


@contextmanager
def _open_executor(scheduler: str | None) -> Iterator[Executor | None]:
    """Executor of a Dask cluster; None for local processes."""
    if scheduler is None:
        yield None
        return
    from rankshot.core.validation import require_module

    distributed = require_module("distributed", "clusters", "cluster")
    with distributed.Client(scheduler) as client:
        yield client.get_executor()
