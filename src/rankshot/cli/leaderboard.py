"""``rankshot leaderboard``: items sorted by worth, and how certain their order is."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from rankshot import core, leaderboards, pages
from rankshot.cli.consensus import (
    COLUMNS,
    TABLE_OPTIONS,
    Layout,
    parse_columns,
    say_layout,
    show_warnings,
)
from rankshot.cli.console import check_output, check_page, name_options, print_table, refuse, say
from rankshot.core.errors import prefix_errors, quote_names
from rankshot.core.files import replace_file

ROWS_SHOWN = 100
DIFFERENCES_SHOWN = 10


def leaderboard(
    votes: Path,
    *,
    layout: Layout | None = None,
    kind: Literal["top", "subset"] | None = None,
    column: list[str] | None = None,
    ties: Literal["outcome", "half", "ignore"] | None = None,
    covariates: str | None = None,
    category: str | None = None,
    cluster: str | None = None,
    min_votes: float | None = None,
    scale: Literal["log-worth", "elo"] = "log-worth",
    looks: Literal["one", "many", "guided"] = "one",
    level: float = 0.95,
    seed: int = 0,
    target: str | None = None,
    plot: Path | None = None,
    html: Path | None = None,
    output: Path | None = None,
) -> None:
    """Sort items by votes or rankings, with intervals.

    The items are sorted by their worths in the Plackett-Luce model; for pairs this is the
    Bradley-Terry model, and with ties Davidson's model. The table shows ratings and ranks with
    intervals: is the first item really better than the second? The intervals take into account
    that a rater may have given several votes.

    Example: rankshot leaderboard votes.csv --plot worths.png

    Example: rankshot leaderboard votes.csv --column rater=annotator --scale elo -o board.csv

    Parameters
    ----------
    votes
        A table (.csv, .tsv, .json, .jsonl, .gz, .parquet) of votes between two items, with the
        columns model_a, model_b and winner, or winner and loser; a table of ballots; or rankings
        (.jsonl, .parquet, .soc, .soi, .toc, .toi).
    column : <name=column>
        A column of the table whose name is not the usual one, such as rater=who; may be repeated.
        The names are a and b (the two items; model_a and model_b by default), winner, loser, id,
        rater (rater, judge, annotator, user_id and the like), weight (how important a vote is) and
        count (how often it was given); for ballots also target, item, rank and score. Or how
        columns are read: outcomes=index if 0 means that the first item won, outcomes=score if 1
        means this, outcomes=name or outcomes=side; ignore=age,region (ballots; ignore= if all
        columns are items); missing=-99; items=x,y,z (all items); on_error=skip, which counts and
        leaves out rows that cannot be read.
    kind
        What a missing item means, if the file does not specify it: it comes after the others (top,
        the default) or was not compared (subset).
    ties
        outcome: a tie is a third result, more likely between items of equal worth. half: half a
        win for each item. ignore: the order is unknown. The default is outcome if there are ties.
    covariates
        Covariates: columns that may also explain who wins, such as length,position; separated by
        commas.
    category
        A column: each of its values gets its own leaderboard, after that of all votes.
    cluster
        A column that groups correlated votes, in addition to the rater. The default is the one of
        prompts, if there is one, such as question_id.
    min_votes
        Items with fewer votes are listed separately. The default is 10, or a tenth of the median if
        that is less.
    scale
        log-worth, or elo: points with a mean of 1000.
    looks
        For how many looks the claims hold: one, at a number of votes that was fixed beforehand;
        many, while votes come in; guided, if earlier votes decided which pairs were next.
    level
        The confidence level of the intervals.
    seed
        The seed of the random numbers.
    target
        Use only the rankings of this target.
    plot
        A plot to write (.png, .svg, .pdf).
    html
        A page to write (.html): ratings, pairs, categories, effects of covariates, raters, and how
        to read them. It is one self-contained file.
    output
        The leaderboard to write (.csv, .json). JSON also has the pairs, for a web site.
    """
    core.require_number("--level", level, above=0, below=1)
    core.require_whole_number("--seed", seed, least=0)
    refuse(category and plot, "--plot shows one leaderboard: leave out --plot or --category")
    check_output(plot, (".png", ".svg", ".pdf"), votes)
    check_output(output, (".csv", ".json"), votes)
    if html is not None:
        check_page(html)
    if plot is not None:
        # Before anything is computed, and without a window.
        core.require_module("matplotlib", "plots", "cli").use("Agg")
    named = parse_columns(column or [])
    named |= {"layout": layout, "kind": kind, "category": category}
    named = {name: value for name, value in named.items() if value is not None}
    names = [name.strip() for name in (covariates or "").split(",") if name.strip()]
    with show_warnings():
        with name_options({**TABLE_OPTIONS, "category": "--category"}, COLUMNS):
            read = leaderboards.read_votes(votes, covariates=names, cluster=cluster, **named)
        say_layout(read.reading, read.rankings.items)
        with prefix_errors(votes):
            if target is not None:
                refuse(read.are_pairs, "votes have no targets: use --category COLUMN")
                read = leaderboards.Votes(read.rankings.select(target=target))
            several = f"has rankings of several targets ({quote_names(read.categories)})"
            refuse(not category and len(read.categories) > 1, f"{several}; choose with --target")
            board = leaderboards.leaderboard(
                read, ties=ties, level=level, random_state=seed, min_votes=min_votes,
                scale=scale, looks=looks, category=bool(category) or None,
            )  # fmt: skip
    if plot is not None:
        # Too many items for a plot are refused before anything is printed or written.
        figure = pages.WorthsDisplay.from_leaderboard(board).figure_
    _print_board(board, "all" if category else "")
    for name, each in board.categories.items():
        _print_board(each, name)
    if category:
        _print_differences(board)
    for path, what in ((output, "leaderboard"), (html, "page")):
        if path is not None:
            leaderboards.save_board(board, path)
            say(f"{what} written to {path}")
    if plot is not None:
        with replace_file(plot) as stream:
            figure.savefig(stream.buffer, format=plot.suffix[1:], dpi=150)
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
        f"{unit}. The column ranks contains the true rank with a probability of at least "
        f"{board.level:g}. The column better counts the items that an item is clearly better "
        "than, adjusted for all comparisons."
    )


def _print_differences(board: leaderboards.Leaderboard) -> None:
    clear = [each for each in board.differences() if each.p_value < 0.05]
    digits = 0 if board.scale == "elo" else 2
    if not clear:
        say("No item differs clearly between the categories.")
        return
    rows: list[tuple[Any, ...]] = [
        (each.category, each.item, f"{each.difference:+.{digits}f}", f"{each.p_value:.2g}")
        for each in clear[:DIFFERENCES_SHOWN]
    ]
    print_table("What differs", ["category", "*item", ">from the mean", ">p"], rows)
