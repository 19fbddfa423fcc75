"""``rankshot leaderboard``: items sorted by worth, and how certain their order is."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from rankshot import leaderboards, pages
from rankshot.cli.consensus import Layout, parse_columns, say_layout
from rankshot.cli.printing import Input, Output, print_table, print_warnings, require_output, say
from rankshot.core.errors import InputError, prefix_errors, quote_names

ROWS_SHOWN = 100


def leaderboard(
    votes: Input,
    /,
    *,
    layout: Layout | None = None,
    kind: Literal["top", "subset"] | None = None,
    column: list[str] | None = None,
    ties: Literal["outcome", "half", "ignore"] | None = None,
    covariates: str | None = None,
    category: str | None = None,
    cluster: str | None = None,
    target: str | None = None,
    min_votes: float | None = None,
    scale: Literal["log-worth", "elo"] = "log-worth",
    looks: Literal["one", "many", "guided"] = "one",
    level: float = 0.95,
    plot: Path | None = None,
    html: Path | None = None,
    overwrite: bool = False,
    output: Output = None,
) -> None:
    """Rank items from votes or rankings, with intervals.

    The items are sorted by their worths in the Plackett-Luce model; for pairs this is the
    Bradley-Terry model, and with ties Davidson's model. The table shows ratings and ranks with
    intervals: is the first item really better than the second? The intervals take into account
    that a rater may have given several votes.

    Example: rankshot leaderboard votes.csv --html board.html

    Parameters
    ----------
    votes
        A table (.csv, .tsv, .json, .jsonl, .gz, .parquet) of votes between two items, with the
        columns model_a, model_b and winner, or winner and loser; a table of ballots; or rankings
        (.jsonl, .parquet, .soc, .soi, .toc, .toi).
    layout
        The columns of a table, if they are not recognised: see `consensus`.
    kind
        What a missing item means: it comes after the others (top) or was not compared (subset).
    column
        NAME=COLUMN: a column with another name, such as rater=who; may be repeated. The names are
        a, b, winner, loser, id, rater, weight and count; for ballots also target, item, rank and
        score. Or how columns are read: outcomes=index (0 means that the first item won), score,
        name or side; ignore=age,region; missing=-99; items=x,y,z; on_error=skip.
    ties
        outcome: a tie is a third result, more likely between items of equal worth. half: half a
        win for each item. ignore: the order is unknown. The default is outcome if there are ties.
    covariates
        Columns that may also explain who wins, such as length,position.
    category
        A column: each of its values gets its own leaderboard, after that of all votes.
    cluster
        A column that groups correlated votes, in addition to the rater, such as the prompt.
    target
        Use only the rankings of this target.
    min_votes
        Items with fewer votes are listed separately. The default is 10, or a tenth of the median.
    scale
        log-worth, or elo: points with a mean of 1000.
    looks
        For how many looks the claims hold: one, at a number of votes that was fixed beforehand;
        many, while votes come in; guided, if earlier votes decided which pairs were next.
    level
        The confidence level of the intervals.
    plot
        A plot to write (.png, .svg, .pdf).
    html
        A page to write (.html): one self-contained file.
    overwrite
        Replace files that are there.
    output
        The leaderboard to write (.csv, .json). JSON also has the pairs, for a web site.
    """
    require_output(plot, (".png", ".svg", ".pdf"), votes, overwrite=overwrite)
    require_output(output, (".csv", ".json"), votes, overwrite=overwrite)
    require_output(html, (".html", ".htm"), votes, overwrite=overwrite)
    if category and plot:
        raise InputError("plot", str(plot), "shows one leaderboard", hint="leave out --category")
    named = parse_columns(column or [])
    named |= {"layout": layout, "kind": kind, "category": category}
    named = {name: value for name, value in named.items() if value is not None}
    names = [name.strip() for name in (covariates or "").split(",") if name.strip()]
    with print_warnings():
        read = leaderboards.read_votes(votes, covariates=names, cluster=cluster, **named)
        say_layout(read.reading, read.rankings.items)
        with prefix_errors(votes):
            if target is not None:
                if read.are_pairs:
                    raise InputError("target", target, "needs rankings", hint="use --category")
                read = leaderboards.Votes(read.rankings.select(target=target))
            if not category and len(read.categories) > 1:
                rule = f"must be one of {quote_names(read.categories)}"
                raise InputError("target", target, rule)
            board = leaderboards.leaderboard(
                read,
                ties=ties,
                level=level,
                min_votes=min_votes,
                scale=scale,
                looks=looks,
                category=bool(category) or None,
            )
    # Too many items for a plot are refused before anything is printed or written.
    axes = plot and pages.plot_leaderboard(board)
    _print_board(board, "all" if category else "")
    for name, each in board.categories.items():
        _print_board(each, name)
    for path, what in ((output, "leaderboard"), (html, "page")):
        if path is not None:
            leaderboards.save_board(board, path)
            say(f"{what} written to {path}")
    if axes and plot:
        pages.save_plot(axes, plot)
        say(f"plot written to {plot}")


def _print_board(board: leaderboards.Leaderboard, title: str) -> None:
    say(f"{title}: {board.summary}" if title else board.summary)
    names = [f"{'*' if name == 'item' else '>'}{name}" for name in board.header]
    print_table(None, names, board.iterate_rows(ROWS_SHOWN))
    if len(board) > ROWS_SHOWN:
        say(f"… and {len(board) - ROWS_SHOWN:,} more; --output writes all")
    for note in board.iterate_notes():
        say(note)
    ties = ", ties aside" if board.tie_parameter else ""
    unit = (
        f"400 points mean 10:1 odds in favour of the higher-rated item{ties}"
        if board.scale == "elo"
        else "The difference between two log-worths is the log-odds that the first item is "
        f"preferred{ties}"
    )
    say(
        f"{unit}. The column ranks is a {board.level:.0%} confidence set. The column better counts "
        "the items that an item is clearly better than, adjusted for all comparisons."
    )
