"""``rankshot leaderboard``: items sorted by worth, and how certain their order is."""

from __future__ import annotations

import re
import warnings
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankshot.cli.console import check_writable, print_table, refuse, say
from rankshot.core.errors import RankshotError, prefix_errors, quote_names

if TYPE_CHECKING:
    from rankshot.ranking import Leaderboard, Rankings

PLOT_ENDINGS = (".png", ".svg", ".pdf")
OUTPUT_ENDINGS = (".csv", ".json")
ROWS_SHOWN = 100
COLUMNS = ("first", "second", "winner", "loser", "rater", "weight")
"""The options that name columns, as `read_pairs` calls them."""


class Method(StrEnum):
    """The choices of --method."""

    SIMULATION = "simulation"
    BOOTSTRAP = "bootstrap"


class Ties(StrEnum):
    """The choices of --ties."""

    UNKNOWN = "unknown"
    OUTCOME = "outcome"


def leaderboard(
    votes: Path,
    *,
    method: Method = Method.SIMULATION,
    ties: Ties = Ties.UNKNOWN,
    regularization: float | None = None,
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
    target: str | None = None,
    first: str | None = None,
    second: str | None = None,
    winner: str | None = None,
    loser: str | None = None,
    rater: str | None = None,
    weight: str | None = None,
    plot: Path | None = None,
    output: Path | None = None,
) -> None:
    """Sort items by worth, with intervals.

    The worths are those of the Plackett-Luce model; for pairs it is the Bradley-Terry model, and
    with --ties outcome that of Davidson. The table shows log-worths and ranks with intervals: is
    the first item really better than the second?

    Example: rankshot leaderboard votes.csv --plot worths.png

    Example: rankshot leaderboard ballots.soc --method bootstrap -o board.csv

    Parameters
    ----------
    votes : FILE
        A table of votes between two items (.csv, .parquet), with the columns model_a, model_b and
        winner, or winner and loser; or rankings (.jsonl, .parquet, .soc, .soi, .toc, .toi).
    method
        simulation: the votes are independent. bootstrap: the votes of one rater (column --rater)
        may be alike; raters are drawn again and again.
    ties
        unknown: the order of tied items is unknown (Plackett-Luce). outcome: a tie is a result of
        its own, more likely between items of equal worth (Davidson-Luce).
    regularization
        The penalty η/2 Σθ² on log-worths θ; the model's own, 0.01, by default. A larger one draws
        items that always won or always lost towards the others.
    level
        The level of the intervals.
    draws
        How many draws, or fits for the bootstrap.
    seed
        The seed of the random numbers.
    target
        Take only the rankings that describe this target.
    first
        The column of the first item of a pair; model_a by default.
    second
        The column of the second item; model_b by default.
    winner
        The column of the winner; winner by default.
    loser
        The column of the loser; loser by default.
    rater
        The column of who voted; rater by default.
    weight
        The column of how often a vote counts; weight by default.
    plot
        A picture to write (.png, .svg, .pdf).
    output
        The leaderboard to write (.csv, .json).
    """
    from rankshot.core.files import replace_file, require_ending
    from rankshot.core.validation import require_module, require_number, require_whole_number
    from rankshot.ranking import DavidsonLuce, PlackettLuce, leaderboard as make_leaderboard

    require_number("--level", level, above=0, below=1)
    require_whole_number("--draws", draws, least=2)
    require_whole_number("--seed", seed, least=0)
    given: dict[str, Any] = {}
    if regularization is not None:
        given["regularization"] = require_number("--regularization", regularization, least=0)
    model = (DavidsonLuce if ties is Ties.OUTCOME else PlackettLuce)(**given)
    for path, endings in ((plot, PLOT_ENDINGS), (output, OUTPUT_ENDINGS)):
        if path is not None:
            require_ending(path, endings)
            check_writable(path, votes)
    if plot is not None:
        # Before anything is computed, and without a window.
        require_module("matplotlib", "plots", "plot").use("Agg")
    columns = dict(zip(COLUMNS, (first, second, winner, loser, rater, weight), strict=True))
    rankings = _read_votes(votes, {name: each for name, each in columns.items() if each}, target)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with prefix_errors(votes):
            board = make_leaderboard(
                rankings, model, level=level, method=method.value, n_draws=draws, random_state=seed
            )
    if plot is not None:
        # Too many items for a picture are refused before anything is printed or written.
        from rankshot.plots import WorthsDisplay

        figure = WorthsDisplay.from_leaderboard(board).figure_
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        say(f"warning: {message}")
    _print_board(board, _find_notes(rankings, method, ties), ties)
    if output is not None:
        _write_board(board, output)
        say(f"leaderboard written to {output}")
    if plot is not None:
        with replace_file(plot) as stream:
            figure.savefig(stream.buffer, format=plot.suffix[1:], dpi=150)
        say(f"picture written to {plot}")


def _print_board(board: Leaderboard, notes: list[str], ties: Ties) -> None:
    say(board.summary)
    names = [">rank", "*item", ">log-worth", f">{100 * board.level:g} % interval", ">ranks"]
    print_table(None, names, board.iterate_rows(ROWS_SHOWN))
    if len(board) > ROWS_SHOWN:
        say(f"… and {len(board) - ROWS_SHOWN:,} more; --output writes all")
    unless_tied = ", if they do not tie" if ties is Ties.OUTCOME else ""
    say(
        "A log-worth is relative to the mean of all items. The difference of two is the log-odds "
        f"that the one is preferred to the other{unless_tied}. The intervals hold the true "
        f"log-worth with probability {board.level:g}, and the true rank (column ranks) with at "
        "least this."
    )
    for note in notes:
        say(note)


def _read_votes(path: Path, columns: dict[str, str], target: str | None) -> Rankings:
    """Read a table of pairs, or the rankings of one target."""
    from rankshot.core.tables import read_columns
    from rankshot.ranking import read_pairs, read_rankings

    is_parquet = path.suffix == ".parquet"
    if path.suffix == ".csv" or (is_parquet and "ranking" not in read_columns(path)[0]):
        try:
            rankings = read_pairs(path, **columns)
        except RankshotError as error:
            # Parameters of Python are options here.
            text = re.sub(rf"\b({'|'.join(COLUMNS)})=", r"--\1", str(error))
            raise RankshotError(text) from None
    elif columns:
        raise RankshotError(f"{path}: --{next(iter(columns))} is for tables of pairs, not rankings")
    else:
        rankings = read_rankings(path)
    if target is not None:
        with prefix_errors(path):
            return rankings.select(target=target)
    names = rankings.target_names
    several = f"{path}: has rankings of several targets ({quote_names(names)}); choose one with"
    refuse(len(names) > 1, f"{several} --target")
    return rankings


def _find_notes(rankings: Rankings, method: Method, ties: Ties) -> list[str]:
    """Return what the reader should know of these votes before believing the table."""
    from rankshot.ranking.models.information import describe_one_sided

    notes = []
    counted = rankings[rankings.weights > 0]
    if one_sided := describe_one_sided(counted, ties_compare=ties is Ties.OUTCOME):
        notes.append(
            f"Some items always won, always lost or were not compared ({one_sided}). They have no "
            "finite estimate, only the penalty holds them, and their intervals say little. Leave "
            "them out, or raise --regularization."
        )
    # A subset ranking that ties all of its items says nothing if their order is unknown.
    n_tied = int((rankings.is_subset & (rankings.places[rankings.starts[1:] - 1] == 0)).sum())
    if n_tied and ties is Ties.UNKNOWN:
        notes.append(
            f"Votes that tie all of their items: {n_tied:,} of {len(rankings):,}. They count for "
            "nothing here. With --ties outcome, a tie is a result of its own."
        )
    if method is Method.BOOTSTRAP and not rankings.rater_names:
        notes.append(
            "No rater is named, so single votes are drawn, not raters. --rater names the column "
            "of raters in a table of votes."
        )
    return notes


def _write_board(board: Leaderboard, path: Path) -> None:
    import json

    from rankshot.core.files import replace_file
    from rankshot.core.tables import open_csv_writer

    columns = board.to_columns()
    rows = list(zip(*columns.values(), strict=True))
    with replace_file(path) as stream:
        if path.suffix == ".csv":
            writer = open_csv_writer(stream)
            writer.writerow(columns)
            writer.writerows(rows)
            return
        value: dict[str, Any] = {
            name: getattr(board, name) for name in ("level", "method", "weight")
        }
        value["items"] = [dict(zip(columns, row, strict=True)) for row in rows]
        json.dump(value, stream, indent=1, ensure_ascii=False)
        stream.write("\n")
