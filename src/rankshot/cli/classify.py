"""``rankshot classify``: tables of scores in, labels and probabilities out."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from rankshot.cli.printing import (
    Input,
    RequiredOutput,
    ScoreType,
    print_table,
    require_output,
    say,
)
from rankshot.core.errors import format_count, quote_names

ROWS_SHOWN = 20


def classify(
    scores: Input,
    /,
    *,
    head: Annotated[Input, Parameter(name=("--head", "--rankings"))],
    output: RequiredOutput,
    score_type: ScoreType = "auto",
    reject_below: float | None = None,
    top: int | None = None,
    workers: int | None = None,
    on_error: Literal["stop", "skip"] = "stop",
    overwrite: bool = False,
) -> None:
    """Classify tables of scores by a saved head, or by rankings alone.

    The output has the columns id, label, probability and one column P(name) for each class that may
    be predicted. Of many tables, each is a part of the output, and an interrupted job continues
    when the same command is run again. `rankshot recognise` also takes a reference, examples and
    batches, and keeps a head that `rankshot export` writes.

    Example: rankshot classify scores.parquet --rankings rankings.jsonl -o predictions.parquet

    Example: rankshot classify scores/ --head new-classes.rankshot -o predictions/ --workers 8

    Parameters
    ----------
    scores
        A table of scores, with one column per seen class and optionally a column id (.csv,
        .parquet); or a folder of many.
    head
        A saved head (.rankshot); or rankings of the seen classes for each new class (.jsonl,
        .parquet), from which a head is made.
    output
        The predictions to write (.csv, .parquet); for many tables, a folder.
    score_type
        What the scores are. With auto, this is inferred from the first rows.
    reject_below
        Label an input `rejected` if the probability of every class is below this.
    top
        Write only the N most probable classes of each input.
    workers
        The number of processes for many tables.
    on_error
        What to do with tables that cannot be classified: stop, or skip and list them.
    overwrite
        Replace the output, although a person may have written it; or that of another head.
    """
    from rankshot import jobs

    if scores.is_file():
        require_output(output, (".csv", ".parquet"), scores, head, overwrite=overwrite)
    run = jobs.classify(
        scores,
        head,
        output,
        workers=workers,
        score_type=score_type,
        reject_below=reject_below,
        top=top,
        overwrite=overwrite,
        on_error=on_error,
    )
    counts, total = run.counts, run.counts.total()
    rows = [(label, f"{n:,}", f"{n / total:.1%}") for label, n in counts.most_common(ROWS_SHOWN)]
    print_table("Predicted classes", ["class", ">inputs", ">share"], rows)
    if len(counts) > ROWS_SHOWN:
        say(f"and {len(counts) - ROWS_SHOWN} more: {quote_names([*counts][ROWS_SHOWN:])}")
    say(f"{format_count(total, 'prediction')} written to {output}")
    for name, reason in run.failed:
        say(f"failed: {name}: {reason}")
    if run.failed:
        raise SystemExit(1)
