"""``rankshot leaderboard``: items sorted by worth, and how certain their order is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from rankshot import core, leaderboards, pages, ranking
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
    regularization: float | None = None,
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
        A column: each of its values gets its own leaderboard.
    cluster
        A column that groups correlated votes, in addition to the rater, such as the prompt: the
        intervals take both into account.
    min_votes
        Items with fewer votes are listed separately. The default is 10, or a tenth of the median if
        that is less.
    scale
        log-worth, or elo: points with a mean of 1000.
    regularization
        η in the penalty η/2 Σθ² on log-worths θ. The default is 0.01. A larger η pulls items that
        always won or always lost towards the others.
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
    columns = parse_columns(column or []) | ({"category": category} if category else {})
    reading = {"layout": layout, "kind": kind}
    options = {
        "ties": ties, "level": level, "random_state": seed,
        "min_votes": min_votes, "scale": scale,
    }  # fmt: skip
    with show_warnings():
        boards, rankings = _make_boards(
            votes,
            columns,
            options,
            reading=reading,
            regularization=regularization,
            covariates=covariates,
            cluster=cluster,
            target=target,
        )
    if plot is not None:
        # Too many items for a plot are refused before anything is printed or written.
        figure = pages.WorthsDisplay.from_leaderboard(boards[""]).figure_
    for name, board in boards.items():
        _print_board(board, name)
    if category:
        _print_differences(boards)
    if output is not None:
        _write_boards(boards, output)
        say(f"leaderboard written to {output}")
    if html is not None:
        raters = _find_raters(rankings, next(iter(boards.values())))
        pages.write_page(leaderboards.render_board(boards, title=votes.stem, raters=raters), html)
        say(f"page written to {html}")
    if plot is not None:
        with replace_file(plot) as stream:
            figure.savefig(stream.buffer, format=plot.suffix[1:], dpi=150)
        say(f"plot written to {plot}")


def _make_boards(
    path: Path,
    columns: dict[str, Any],
    options: dict[str, Any],
    *,
    reading: dict[str, Any],
    regularization: float | None,
    covariates: str | None,
    cluster: str | None,
    target: str | None,
) -> tuple[dict[str, leaderboards.Leaderboard], ranking.Rankings]:
    """Return the leaderboard of each category, or a single one without a name, and the rankings."""
    from rankshot.leaderboards.fit import choose_model
    from rankshot.ranking.ranking_files import read_with_layout

    if regularization is not None:
        core.require_number("--regularization", regularization, least=0)
    with name_options({**TABLE_OPTIONS, "category": "--category"}, COLUMNS):
        if covariates or cluster:
            refuse(target, "--covariates and --cluster need a table of votes: leave out --target")
            refuse(
                regularization is not None,
                "--covariates and --cluster do not use --regularization: leave it out",
            )
            names = [name.strip() for name in (covariates or "").split(",") if name.strip()]
            make = leaderboards.leaderboards if "category" in columns else leaderboards.leaderboard
            more = {"covariates": names, "cluster": cluster}
            found = make(path, **{**more, **options, **columns})
            boards = dict(found) if isinstance(found, leaderboards.Leaderboards) else {"": found}
            say_layout("votes", sorted({item for board in boards.values() for item in board.items}))
            return boards, ranking.Rankings.from_votes(path, **columns)
        rankings, layout = read_with_layout(path, **reading, **columns)
    say_layout(layout, rankings.items)
    with prefix_errors(path):
        if target is not None:
            refuse(layout == "votes", "votes have no targets: use --category COLUMN")
            rankings = rankings.select(target=target)
        settings = {} if regularization is None else {"regularization": regularization}
        model, _ = choose_model(rankings, None, options["ties"], **settings)
        if "category" in columns:
            return dict(leaderboards.leaderboards(rankings, model, **options)), rankings
        several = f"has rankings of several targets ({quote_names(rankings.target_names)})"
        refuse(len(rankings.target_names) > 1, f"{several}; choose one with --target")
        return {"": leaderboards.leaderboard(rankings, model, **options)}, rankings


def _find_raters(rankings: ranking.Rankings, board: leaderboards.Leaderboard) -> list[Any]:
    """Return the reliability of raters, if several voted between two items."""
    return (
        leaderboards.rater_reliability(rankings)
        if board.n_raters and board.counted == "vote"
        else []
    )


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


def _print_differences(boards: dict[str, leaderboards.Leaderboard]) -> None:
    clear = [
        found for found in leaderboards.Leaderboards(boards).differences() if found.p_value < 0.05
    ]
    digits = 0 if next(iter(boards.values())).scale == "elo" else 2
    if not clear:
        say("No item differs clearly between the categories.")
        return
    rows = [
        (each.category, each.item, f"{each.difference:+.{digits}f}", f"{each.p_value:.2g}")
        for each in clear[:DIFFERENCES_SHOWN]
    ]
    print_table("What differs", ["category", "*item", ">from the mean", ">p"], rows)


def _write_boards(boards: dict[str, leaderboards.Leaderboard], path: Path) -> None:
    several = list(boards) != [""]
    rows = [
        {**({"category": name} if several else {}), **row._asdict()}
        for name, board in boards.items()
        for row in board
    ]
    with replace_file(path) as stream:
        if path.suffix == ".csv":
            writer = core.open_csv_writer(stream)
            writer.writerow(rows[0])
            writer.writerows(row.values() for row in rows)
            return
        value: dict[str, Any] = {name: board.to_dict() for name, board in boards.items()}
        value = {"categories": value} if several else value[""]
        json.dump(value, stream, indent=1, ensure_ascii=False)
        stream.write("\n")
