"""``rankshot consensus``: what rankings agree on, and who does not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rankshot.cli.console import SHOWN, check_writable, say
from rankshot.cli.head_options import PRIORS, Prior, PriorOption
from rankshot.core.errors import RankshotError
from rankshot.core.text_files import read_names
from rankshot.ranking.concordance import TargetSummary, summarize
from rankshot.ranking.files import check_ending, read_rankings, write_rankings
from rankshot.ranking.mallows import Mallows
from rankshot.ranking.rankings import Rankings


def consensus(
    rankings: Annotated[
        Path, typer.Argument(help="The rankings (.jsonl, .soc, .soi, .toc, .toi).")
    ],
    prior: PriorOption = Prior.PLACKETT_LUCE,
    k: Annotated[
        int | None,
        typer.Option(help="Places compared; by default 10, or the median length of the lists."),
    ] = None,
    seen: Annotated[
        Path | None,
        typer.Option(help="All items, one name a line; by default those that occur in the file."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the consensus of each target (.jsonl)."),
    ] = None,
) -> None:
    """Merge the rankings of each target, and say how far they agree.

    Example: rankshot consensus rankings.jsonl --prior mallows
    """
    if output is not None:
        check_ending(output)
        check_writable(output, rankings, seen)
    said = read_rankings(rankings, items=None if seen is None else read_names(seen))
    try:
        summaries = summarize(said, PRIORS[prior](), k)
    except RankshotError as error:
        raise RankshotError(f"{rankings}: {error}") from None
    console = Console()
    console.print(_table(summaries, prior))
    say(
        "W is Kendall's concordance (1: all agree). Distances are Kendall's over the first "
        f"{_places(summaries)}, as shares of the largest possible (0: all agree); "
        "under disagree stand the three who are furthest from the consensus.",
        console,
    )
    if output is not None:
        write_rankings(_merged(summaries, said.items), output)
        say(f"{len(summaries):,} consensus rankings written to {output}", console)


def _table(summaries: list[TargetSummary], prior: Prior) -> Table:
    table = Table(title="Consensus of each target")
    table.add_column("target", style="bold", overflow="fold")
    table.add_column("rankings", justify="right")
    worths = ", with worths" if prior is Prior.PLACKETT_LUCE else ""
    table.add_column(f"consensus{worths}", overflow="fold")
    if prior is Prior.MALLOWS:
        table.add_column("spread", justify="right")
    table.add_column("W", justify="right")
    table.add_column("distance", justify="right")
    table.add_column("disagree", overflow="fold")
    for brief in summaries:
        cells = [brief.target or "(all)", f"{brief.n_rankings:,}", _order(brief)]
        if isinstance(brief.model, Mallows):
            cells.append(f"{brief.model.spread_:.3g}")
        cells += [_share(brief.concordance), _share(brief.mean_distance), _disagree(brief)]
        table.add_row(*map(Text, cells))
    return table


def _order(brief: TargetSummary) -> str:
    groups = [tie if isinstance(tie, tuple) else (tie,) for tie in brief.order[:SHOWN]]
    worths = getattr(brief.model, "worths_", None)
    if worths is None:
        return " > ".join(map(_tie, groups))
    worth = dict(zip(brief.model.items_, worths, strict=True))
    return " > ".join(f"{_tie(tie)} {worth[tie[0]]:.2g}" for tie in groups)


def _tie(names: tuple[str, ...]) -> str:
    more = (f"{len(names) - SHOWN} more",) if len(names) > SHOWN else ()
    return " = ".join((*names[:SHOWN], *more))


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _disagree(brief: TargetSummary) -> str:
    # Where all agree, nobody disagrees most.
    shown = [f"{name} {_share(far)}" for name, far in brief.disagreement[:3] if far >= 0.005]
    return "\n".join(shown) or "-"


def _places(summaries: list[TargetSummary]) -> str:
    counts = sorted({brief.k for brief in summaries})
    return f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _merged(summaries: list[TargetSummary], items: tuple[str, ...]) -> Rankings:
    merged = Rankings.from_orders(
        [brief.order for brief in summaries],
        items=items,
        targets=[brief.target for brief in summaries],
        sources="consensus",
    )
    return merged.top(np.array([brief.k for brief in summaries]))
