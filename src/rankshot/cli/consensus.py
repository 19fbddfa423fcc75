"""``rankshot consensus``: what rankings agree on, and who does not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

from rankshot import ranking
from rankshot.cli.printing import (
    Input,
    Output,
    format_order,
    print_table,
    print_warnings,
    require_output,
    say,
)
from rankshot.core.errors import InputError, format_count, join_some, prefix_errors, suggest_name

if TYPE_CHECKING:
    from rankshot.ranking.column_meanings import Reading

PLACES_SHOWN = 50
Layout = Literal["votes", "orders", "places", "scores"]
"""What a table of votes or ballots has."""
Method = Literal["kemeny", "plackett-luce", "mallows"]
COLUMNS: tuple[str, ...] = ("a", "b", "winner", "loser", "id", "rater", "weight", "count")
COLUMNS += ("target", "item", "rank", "score", "ignore", "missing", "outcomes", "on_error", "items")
"""What --column can give, as `read_rankings` calls it."""


def consensus(
    rankings: Input,
    /,
    *,
    method: Method = "kemeny",
    k: int | None = None,
    layout: Layout | None = None,
    kind: Literal["top", "subset"] | None = None,
    column: list[str] | None = None,
    overwrite: bool = False,
    output: Output = None,
) -> None:
    """Merge rankings into one, and show who disagrees.

    The rankings of each target (a question, or a new class) are merged; rankings without a target
    are merged into one. A table shows the consensus and how much the rankings agree. To see how
    certain the order is, use `rankshot leaderboard`.

    Example: rankshot consensus ballots.csv

    Parameters
    ----------
    rankings
        The rankings to merge: JSON lines (.jsonl), a table of ballots or votes (.csv, .tsv, .json,
        .gz), Parquet or PrefLib (.soc, .soi, .toc, .toi).
    method
        kemeny: the order with the fewest disagreements, with ties. plackett-luce: all items in the
        order of the model's worths. mallows: the centre of the model.
    k
        Use only the first k places of each ranking. The default is all.
    layout
        The columns of a table, if they are not recognised: votes between two items; or ballots,
        one row per rater, with the items in order (orders), or with one column per item (places,
        1 is best, or scores, the highest is best).
    kind
        What a missing item means, if the file does not specify it: it comes after the others (top,
        the default) or was not compared (subset).
    column
        NAME=COLUMN: a column of the table with another name, such as rater=who; or how columns are
        read, such as ignore=age,region or items=tea,beer; may be repeated. See `leaderboard`.
    overwrite
        Replace a file that is there.
    output
        The consensus rankings to write, one per target (.jsonl).
    """
    import numpy as np

    from rankshot.ranking.ranking_files import ENDINGS, read_source

    models = {"plackett-luce": ranking.PlackettLuce(), "mallows": ranking.Mallows()}
    require_output(output, ENDINGS, rankings, overwrite=overwrite)
    columns = parse_columns(column or [])
    items = columns.pop("items", None)
    with print_warnings():
        read = read_source(rankings, items, kind, layout, **columns)
    merged = read.rankings
    say_layout(read.reading, merged.items)
    with prefix_errors(rankings):
        summaries = ranking.summarize(merged, models.get(method, "kemeny"), k)
    if output is not None:
        orders = [cast("ranking.Rankings", each.consensus) for each in summaries]
        whole = ranking.Rankings.concatenate(orders)
        sources = np.full(len(whole), "consensus", object)
        ranking.write_rankings(replace(whole, sources=sources), output)
    _print_summaries(summaries, method, merged.items, k)
    if method == "kemeny" and (n_open := max(each.n_open_pairs for each in summaries)):
        say(
            f"warning: {n_open:,} pairs of items were never compared, so their order is "
            "uncertain: use --method plackett-luce, or rankshot leaderboard"
        )
    say("W: 1 if all agree. distance: 0 if all agree. furthest: raters far from the consensus.")
    for note in sorted({summary.note for summary in summaries if summary.note}):
        say(f"Where W is -: {note}.")
    if any(len(summary.order) > PLACES_SHOWN for summary in summaries):
        say(f"The table shows the first {PLACES_SHOWN} places; -o FILE writes all.")
    if output is not None:
        say(f"{format_count(len(summaries), 'consensus ranking')} written to {output}")


def parse_columns(texts: list[str]) -> dict[str, Any]:
    """The columns that --column names, and how they are read."""
    columns: dict[str, Any] = {}
    for text in texts:
        name, _, column = text.partition("=")
        if name not in COLUMNS or not (column or name in {"ignore", "missing"}):
            rule = f"must have the form NAME=COLUMN{suggest_name(name, COLUMNS)}"
            hint = f"the names are {', '.join(COLUMNS)}"
            raise InputError("column", text, rule, hint=hint)
        columns[name] = column
    if "items" in columns:
        columns["items"] = [name.strip() for name in columns["items"].split(",")]
    return columns


def say_layout(reading: Reading | None, items: Iterable[str]) -> None:
    """Print what was read from a table; nothing for other files."""
    from rankshot.ranking.ballots import LAYOUTS

    if reading is not None:
        say(f"read as {LAYOUTS.get(reading.layout, reading.layout)}; items: {join_some(items)}")
        say(str(reading))


def _print_summaries(
    summaries: Sequence[ranking.TargetSummary],
    method: Method,
    items: tuple[str, ...],
    k: int | None,
) -> None:
    """Print a table with a row for each target."""

    def format_distance(value: float | None) -> str:
        return "-" if value is None else f"{value:.2f}"

    has_targets = summaries[0].target is not None
    rows = []
    for summary in summaries:
        model, after = summary.model, dict.fromkeys(items, "")
        if method == "plackett-luce":
            after = dict(zip(model.items_, (f" {x:.2g}" for x in model.worths_), strict=True))
        places = model.mode_ if method == "plackett-luce" and k is None else summary.order
        # If all agree, nobody is furthest.
        furthest = [f"{name} {far:.2f}" for name, far in summary.disagreement[:3] if far >= 0.005]
        rows.append(
            [
                *([] if summary.target is None else [summary.target]),
                f"{summary.n_rankings:,}",
                format_order(places, after.__getitem__, PLACES_SHOWN),
                *([f"{model.spread_:.3g}"] if method == "mallows" else []),
                format_distance(summary.concordance),
                format_distance(summary.mean_distance),
                "\n".join(furthest) or "-",
            ]
        )
    columns = ["*target"] if has_targets else []
    columns += [">rankings", "consensus"]
    columns[-1] += ", with worths" if method == "plackett-luce" else ""
    columns += [">spread"] if method == "mallows" else []
    title = "Consensus of each target" if has_targets else "Consensus"
    print_table(title, [*columns, ">W", ">distance", "furthest"], rows)
