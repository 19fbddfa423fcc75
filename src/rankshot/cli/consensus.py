"""``rankshot consensus``: what rankings agree on, and who does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankshot.cli.classes import list_label_files, read_seen_labels
from rankshot.cli.console import (
    check_writable,
    format_order,
    is_dataset,
    print_table,
    say,
    silence_dask,
)
from rankshot.core.errors import format_count, prefix_errors

if TYPE_CHECKING:
    from rankshot.ranking.parts import AnyRankings
    from rankshot.ranking.rater_agreement import TargetSummary


class Layout(StrEnum):
    """What a table of votes or ballots has."""

    VOTES = "votes"
    ORDERS = "orders"
    PLACES = "places"
    SCORES = "scores"


class Prior(StrEnum):
    """The model that merges rankings."""

    PLACKETT_LUCE = "plackett-luce"
    MALLOWS = "mallows"


def consensus(
    rankings: str,
    *,
    prior: Prior = Prior.PLACKETT_LUCE,
    k: int = 10,
    layout: Layout | None = None,
    seen: str | None = None,
    output: Path | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
) -> None:
    """Merge the rankings of each target (a question, or a new class), or all of them.

    Only the first --k places of each ranking count, as in `classify --set posterior=consensus`;
    Kendall's W counts all places. A table shows the consensus and how much the rankings agree.
    Rankings without a target are merged into one.

    The consensus has as many places as the longest ranking. For the order of all items, see
    `rankshot leaderboard`; in Python, borda, kemeny or model.mode_.

    Many files are read in parts, more of them than fit in memory, by local processes or a cluster.

    Example: rankshot consensus rankings.jsonl --prior mallows

    Example: rankshot consensus 'votes/*.parquet' --workers 8

    Parameters
    ----------
    rankings
        The rankings to merge (.jsonl, .csv, .parquet, .soc, .soi, .toc, .toi); or many files of
        them (.jsonl, .jsonl.gz, .parquet): a folder, a pattern in quotes, or an address such as
        s3://bucket/votes.
    prior
        The model that merges the rankings of each target.
    k
        How many places of each ranking are used.
    layout
        What a table (.csv) has, if that cannot be told: votes between two items; or ballots, one
        row per rater, with the items in order, or with a column of places or scores per item.
    seen : <file or imagenet-1k>
        All items (for a classifier, the seen classes), as for `rankshot rank`. The default is
        those that occur in the rankings.
    output
        The consensus rankings to write, one per target (.jsonl).
    """
    import numpy as np

    from rankshot.core.files import require_ending
    from rankshot.core.validation import require_whole_number
    from rankshot.ranking import Mallows, PlackettLuce, summarize, write_rankings
    from rankshot.ranking.ranking_files import ENDINGS
    from rankshot.zeroshot.heads.probabilistic_ranking import consensus_rankings

    require_whole_number("--k", k)
    model = {Prior.PLACKETT_LUCE: PlackettLuce, Prior.MALLOWS: Mallows}[prior]
    in_parts = is_dataset(rankings, workers, scheduler)
    if output is not None:
        require_ending(output, ENDINGS)
        check_writable(output, *([] if in_parts else [Path(rankings)]), *list_label_files(seen))
    items = None if seen is None else read_seen_labels(seen).names
    told: Any = layout and layout.value
    opened = _open_rankings(rankings, items, workers, scheduler, in_parts=in_parts, layout=told)
    with opened as given:
        with prefix_errors(rankings):
            summaries = summarize(given, model(), k)
        if output is not None:
            priors = {summary.target: summary.model for summary in summaries}
            merged = consensus_rankings(given, priors, min(k, given.n_items))
            named = replace(merged, sources=np.full(len(merged), "consensus", object))
            write_rankings(named, output)
    _print_summaries(summaries, prior)
    if k < given.n_items and any(summary.k == k for summary in summaries):
        say(
            f"Only the first {k:,} places of each ranking count, and the consensus has no more "
            f"places: there are {given.n_items:,} items. --k sets the number."
        )
    if output is not None:
        say(f"{format_count(len(summaries), 'consensus ranking')} written to {output}")


@contextmanager
def _open_rankings(
    rankings: str,
    items: tuple[str, ...] | None,
    workers: int | None,
    scheduler: str | None,
    *,
    in_parts: bool,
    layout: Any,
) -> Iterator[AnyRankings]:
    """Yield rankings in memory, or in parts while there are workers."""
    if not in_parts:
        from rankshot.ranking import read_rankings

        yield read_rankings(rankings, items=items, layout=layout)
        return
    from rankshot.inference.scoring import count_cores
    from rankshot.jobs import read_rankings as read_parts
    from rankshot.jobs.executors import open_client, require_workers
    from rankshot.jobs.partitioned_rankings import list_ranking_files

    silence_dask()
    # What is wrong with the files is said before workers are started.
    list_ranking_files(rankings)
    n = workers or count_cores()
    with open_client(scheduler, workers, n, say) as client, client.as_current():
        require_workers(client, say)
        parts = read_parts(rankings, items=items)
        say(f"{rankings}: {format_count(parts.n_parts, 'part')}")
        yield parts


def _print_summaries(summaries: list[TargetSummary], prior: Prior) -> None:
    """Print a table with a row for each target, and what its columns mean."""

    def format_distance(value: float | None) -> str:
        return "-" if value is None else f"{value:.2f}"

    has_targets = summaries[0].target is not None
    is_mallows = prior is Prior.MALLOWS
    rows = []
    for summary in summaries:
        model = summary.model
        if is_mallows:
            order = [format_order(summary.order), f"{model.spread_:.3g}"]
        else:
            worths = dict(
                zip(model.items_, (f" {worth:.2g}" for worth in model.worths_), strict=True)
            )
            order = [format_order(summary.order, worths.__getitem__)]
        # If all agree, nobody is furthest.
        furthest = [f"{name} {far:.2f}" for name, far in summary.disagreement[:3] if far >= 0.005]
        rows.append(
            [
                *([] if summary.target is None else [summary.target]),
                f"{summary.n_rankings:,}",
                *order,
                format_distance(summary.concordance),
                format_distance(summary.mean_distance),
                "\n".join(furthest) or "-",
            ]
        )
    columns = ["*target"] if has_targets else []
    columns += [
        ">rankings",
        *(["consensus", ">spread"] if is_mallows else ["consensus, with worths"]),
    ]
    title = "Consensus of each target" if has_targets else "Consensus"
    print_table(title, [*columns, ">W", ">distance", "furthest"], rows)
    counts = sorted({summary.k for summary in summaries})
    places = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    say(
        "W is Kendall's coefficient of concordance of all places (1: all raters agree as far as "
        "they go, 1/m: m raters agree no more than by chance). "
        f"{_explain_missing(summaries)}The distances to the consensus are Kendall distances over "
        f"the first {places} places, divided by the largest possible distance (0: all rankings "
        "agree), on the items that a ranking compares. Items that are in none of these places do "
        "not count. The column furthest names the three raters or sources that are furthest from "
        "the consensus."
    )


def _explain_missing(summaries: list[TargetSummary]) -> str:
    """Return why some targets have no W, as sentences."""
    notes = sorted({summary.note for summary in summaries if summary.note})
    return "".join(f"Where it is -: {note}. " for note in notes)
