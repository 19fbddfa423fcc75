"""``rankshot consensus``: what rankings agree on, and who does not."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from rankshot import core, ranking
from rankshot.cli.classes import list_label_files, read_seen_labels
from rankshot.cli.console import (
    check_output,
    format_order,
    name_options,
    print_table,
    refuse,
    say,
)
from rankshot.core.errors import format_count, join_some, prefix_errors, suggest_name

PLACES_SHOWN = 50
Layout = Literal["votes", "orders", "places", "scores"]
"""What a table of votes or ballots has."""
if TYPE_CHECKING:
    from rankshot.ranking.column_meanings import Reading

COLUMNS: tuple[str, ...] = ("a", "b", "winner", "loser", "id", "rater", "weight", "count")
COLUMNS += ("target", "item", "rank", "score", "ignore", "missing", "outcomes", "on_error", "items")
"""What --column can give, as `read_rankings` calls it."""
TABLE_OPTIONS = {"layout": "--layout", "kind": "--kind"}
"""The options of other arguments of `read_rankings`, for messages."""
Method = Literal["kemeny", "plackett-luce", "mallows"]
"""How rankings are merged."""


def consensus(
    rankings: str,
    *,
    method: Method = "kemeny",
    k: int | None = None,
    layout: Layout | None = None,
    kind: Literal["top", "subset"] | None = None,
    column: list[str] | None = None,
    seen: str | None = None,
    output: Path | None = None,
    explain: bool = False,
) -> None:
    """Merge rankings into one, and show who disagrees.

    The rankings of each target (a question, or a new class) are merged; rankings without a target
    are merged into one. A table shows the consensus and how much the rankings agree. The default
    is the Kemeny order of all items that somebody ranked, as in `rankshot-survey status`. To see
    how certain the order is, use `rankshot leaderboard`.

    Example: rankshot consensus ballots.csv

    Parameters
    ----------
    rankings
        The rankings to merge: JSON lines (.jsonl), a table of ballots or votes (.csv, .tsv, .json,
        .gz), Parquet or PrefLib (.soc, .soi, .toc, .toi).
    method
        kemeny: the order with the fewest disagreements, with ties. plackett-luce: all items in the
        order of the model's worths. mallows: the centre of the model. With -o, the consensus of the
        last two is as long as the longest list, as `classify --set posterior=consensus` uses it.
    k
        Use only the first k places of each ranking. The default is all.
    layout
        The columns of a table, if they are not recognised: votes between two items; or ballots,
        one row per rater, with the items in order (orders), or with one column per item (places,
        1 is best, or scores, the highest is best).
    kind
        What a missing item means, if the file does not specify it: it comes after the others (top,
        the default) or was not compared (subset).
    column : <name=column>
        A column of the table whose name is not the usual one, such as rater=who; or how columns are
        read, such as ignore=age,region; may be repeated. See `rankshot leaderboard`.
    seen : <file or imagenet-1k>
        All items (for a classifier, the seen classes), as for `rankshot rank`. The default is the
        items that occur in the rankings.
    output
        The consensus rankings to write, one per target (.jsonl).
    explain
        Explain the columns of the table.
    """
    import numpy as np

    from rankshot.ranking.ranking_files import ENDINGS, read_with_layout

    if k is not None:
        core.require_whole_number("--k", k)
    models = {"plackett-luce": ranking.PlackettLuce(), "mallows": ranking.Mallows()}
    check_output(output, ENDINGS, Path(rankings), *list_label_files(seen))
    items = None if seen is None else read_seen_labels(seen).names
    columns = parse_columns(column or [])
    items = columns.pop("items", items)
    with show_warnings(), name_options(TABLE_OPTIONS, COLUMNS):
        found, read_as = read_with_layout(rankings, items, kind, layout, **columns)
    say_layout(read_as, found.items)
    with prefix_errors(rankings):
        summaries = ranking.summarize(found, models.get(method, "kemeny"), k)
    if output is not None:
        merged = ranking.Rankings.concatenate(
            [cast("ranking.Rankings", each.consensus) for each in summaries]
        )
        ranking.write_rankings(
            replace(merged, sources=np.full(len(merged), "consensus", object)), output
        )
    _print_summaries(summaries, method, found.items, k)
    if method == "kemeny" and (n_open := max(each.n_open_pairs for each in summaries)):
        say(
            f"warning: {n_open:,} pairs of items were never compared, so their order is "
            "uncertain: use --method plackett-luce, or rankshot leaderboard"
        )
    if explain:
        _print_explanation(summaries)
    else:
        say("W: 1 if all agree. distance: 0 if all agree. --explain describes all columns.")
    for note in sorted({summary.note for summary in summaries if summary.note}):
        say(f"Where W is -: {note}.")
    if k is not None and k < found.n_items and any(summary.k == k for summary in summaries):
        say(
            f"Only the first {k:,} places of each ranking are used: there are {found.n_items:,} "
            "items."
        )
    if any(len(summary.order) > PLACES_SHOWN for summary in summaries):
        say(f"The table shows the first {PLACES_SHOWN} places; -o FILE writes all.")
    if output is not None:
        say(f"{format_count(len(summaries), 'consensus ranking')} written to {output}")


def parse_columns(given: list[str]) -> dict[str, Any]:
    """Return the columns that --column names, and how they are read."""
    parts = [each.partition("=") for each in given]
    for name, _, column in parts:
        refuse(
            name not in COLUMNS or not (column or name in {"ignore", "missing"}),
            f"--column has the form name=COLUMN, with one of the names {', '.join(COLUMNS)}, not "
            f"{name!r}{suggest_name(name, COLUMNS)}",
        )
    columns: dict[str, Any] = {name: column for name, _, column in parts}
    if "items" in columns:
        columns["items"] = [name.strip() for name in columns["items"].split(",")]
    return columns


@contextmanager
def show_warnings() -> Iterator[None]:
    """Print each warning in the block, once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        say(f"warning: {message}")


def say_layout(reading: Reading | None, items: Iterable[str]) -> None:
    """Print what was read from a table; nothing for other files."""
    from rankshot.ranking.ballots import LAYOUTS

    if reading is not None:
        say(f"read as {LAYOUTS[reading.layout]}; items: {join_some(items)}")
        say(str(reading))


def _print_summaries(
    summaries: list[ranking.TargetSummary],
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
        order = format_order(places, after.__getitem__, PLACES_SHOWN)
        # If all agree, nobody is furthest.
        furthest = [f"{name} {far:.2f}" for name, far in summary.disagreement[:3] if far >= 0.005]
        rows.append(
            [
                *([] if summary.target is None else [summary.target]),
                f"{summary.n_rankings:,}",
                order,
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


def _print_explanation(summaries: list[ranking.TargetSummary]) -> None:
    """Print what the columns of the table mean."""
    counts = sorted({summary.k for summary in summaries})
    places = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    say(
        "W is Kendall's coefficient of concordance of all places (1: all raters agree on the "
        "items they share, 1/m: m raters agree no more than by chance). The distances to the "
        f"consensus are Kendall distances over the first {places} places, divided by the largest "
        "possible distance (0: all rankings agree), on the items that a ranking compares. Items "
        "that are in none of these places are ignored. The column furthest names the three "
        "raters or sources that are furthest from the consensus."
    )
