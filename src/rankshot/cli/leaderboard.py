"""``rankshot leaderboard``: items sorted by worth, and how sure their order is."""

from __future__ import annotations

import re
import warnings
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankshot.cli.console import check_writable, say
from rankshot.core.errors import RankshotError, quote_names

if TYPE_CHECKING:
    from rich.table import Table

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
    votes: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A table of votes between two items (.csv, .parquet), with the columns model_a, "
            "model_b and winner, or winner and loser; or rankings (.jsonl, .parquet, .soc, .soi, "
            ".toc, .toi).",
        ),
    ],
    method: Annotated[
        Method,
        typer.Option(
            help="simulation: the votes are independent. bootstrap: the votes of one rater (column "
            "--rater) may be alike; raters are drawn again and again."
        ),
    ] = Method.SIMULATION,
    ties: Annotated[
        Ties,
        typer.Option(
            help="unknown: the order of tied items is unknown (Plackett-Luce). outcome: a tie is a "
            "result of its own, more likely between items of equal worth (Davidson-Luce)."
        ),
    ] = Ties.UNKNOWN,
    regularization: Annotated[
        float | None,
        typer.Option(
            help="The penalty η/2 Σθ² on log-worths θ; the model's own, 0.01, by default. A larger "
            "one draws items that always won or always lost towards the others."
        ),
    ] = None,
    level: Annotated[float, typer.Option(help="The level of the intervals.")] = 0.95,
    draws: Annotated[int, typer.Option(help="How many draws, or fits for the bootstrap.")] = 1000,
    seed: Annotated[int, typer.Option(help="The seed of the random numbers.")] = 0,
    target: Annotated[
        str | None, typer.Option(help="Take only the rankings that describe this target.")
    ] = None,
    first: Annotated[
        str | None, typer.Option(help="The column of the first item of a pair; model_a by default.")
    ] = None,
    second: Annotated[
        str | None, typer.Option(help="The column of the second item; model_b by default.")
    ] = None,
    winner: Annotated[
        str | None, typer.Option(help="The column of the winner; winner by default.")
    ] = None,
    loser: Annotated[
        str | None, typer.Option(help="The column of the loser; loser by default.")
    ] = None,
    rater: Annotated[
        str | None, typer.Option(help="The column of who voted; rater by default.")
    ] = None,
    weight: Annotated[
        str | None, typer.Option(help="The column of how often a vote counts; weight by default.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="A picture to write (.png, .svg, .pdf).")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The leaderboard to write (.csv, .json)."),
    ] = None,
) -> None:
    """Sort items by worth, with intervals.

    The worths are those of the Plackett-Luce model; for pairs it is the Bradley-Terry model, and
    with --ties outcome that of Davidson. The table shows log-worths and ranks with intervals: is
    the first item really better than the second?

    Example: rankshot leaderboard votes.csv --plot worths.png

    Example: rankshot leaderboard ballots.soc --method bootstrap -o board.csv
    """
    from rich.console import Console

    from rankshot.core.files import require_ending
    from rankshot.core.validation import require_number, require_whole_number
    from rankshot.ranking import leaderboard as make_leaderboard

    require_number("--level", level, above=0, below=1)
    require_whole_number("--draws", draws, least=2)
    require_whole_number("--seed", seed, least=0)
    model = _build_model(ties, regularization)
    for path, endings in ((plot, PLOT_ENDINGS), (output, OUTPUT_ENDINGS)):
        if path is not None:
            require_ending(path, endings)
            check_writable(path, votes)
    if plot is not None:
        _prepare_matplotlib()
    columns = dict(zip(COLUMNS, (first, second, winner, loser, rater, weight), strict=True))
    given = {name: column for name, column in columns.items() if column is not None}
    rankings = _choose_target(_read_votes(votes, given), target, votes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            board = make_leaderboard(
                rankings, model, level=level, method=method.value, n_draws=draws, random_state=seed
            )
        except RankshotError as error:
            raise RankshotError(f"{votes}: {error}") from None
    # Too many items for a picture are refused before anything is printed or written.
    figure = None if plot is None else _draw(board)
    console = Console()
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        say(f"warning: {message}", console)
    say(board.summary, console)
    console.print(_board_table(board))
    if len(board) > ROWS_SHOWN:
        say(f"… and {len(board) - ROWS_SHOWN:,} more; --output writes all", console)
    unless_tied = ", if they do not tie" if ties is Ties.OUTCOME else ""
    say(
        "A log-worth is relative to the mean of all items. The difference of two is the log-odds "
        f"that the one is preferred to the other{unless_tied}. The intervals hold the true "
        f"log-worth with probability {level:g}, and the true rank (column ranks) with at least "
        "this.",
        console,
    )
    for note in _find_notes(rankings, method, ties):
        say(note, console)
    if output is not None:
        _write_board(board, output)
        say(f"leaderboard written to {output}", console)
    if plot is not None:
        _write_plot(figure, plot)
        say(f"picture written to {plot}", console)


def _build_model(ties: Ties, regularization: float | None) -> Any:
    from rankshot.core.validation import require_number
    from rankshot.ranking import DavidsonLuce, PlackettLuce

    model = DavidsonLuce if ties is Ties.OUTCOME else PlackettLuce
    if regularization is None:
        return model()
    return model(regularization=require_number("--regularization", regularization, least=0))


def _prepare_matplotlib() -> None:
    """Import Matplotlib before anything is computed, without a window."""
    from rankshot.core.validation import require_module

    require_module("matplotlib", "plots", "plot").use("Agg")


def _read_votes(path: Path, columns: dict[str, str]) -> Rankings:
    from rankshot.ranking import read_pairs, read_rankings

    if path.suffix == ".csv" or (path.suffix == ".parquet" and not _holds_rankings(path)):
        try:
            return read_pairs(path, **columns)
        except RankshotError as error:
            # Parameters of Python are options here.
            text = re.sub(rf"\b({'|'.join(COLUMNS)})=", r"--\1", str(error))
            raise RankshotError(text) from None
    if columns:
        raise RankshotError(f"{path}: --{next(iter(columns))} is for tables of pairs, not rankings")
    return read_rankings(path)


def _holds_rankings(path: Path) -> bool:
    from rankshot.core.tables import read_columns

    return "ranking" in read_columns(path)[0]


def _choose_target(rankings: Rankings, target: str | None, path: Path) -> Rankings:
    try:
        rankings = rankings if target is None else rankings.select(target=target)
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None
    names = rankings.target_names
    if len(names) > 1:
        raise RankshotError(
            f"{path}: has rankings of several targets ({quote_names(names)}); choose one with "
            "--target"
        )
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


def _board_table(board: Leaderboard) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for name, style in (
        ("rank", {"justify": "right"}),
        ("item", {"style": "bold", "overflow": "fold"}),
        ("log-worth", {"justify": "right"}),
        (f"{100 * board.level:g} % interval", {"justify": "right"}),
        ("ranks", {"justify": "right"}),
    ):
        table.add_column(name, **style)  # type: ignore[arg-type]
    for row in board.iterate_rows(ROWS_SHOWN):
        table.add_row(*map(Text, row))
    return table


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
            "level": board.level,
            "method": board.method,
            "weight": board.weight,
            "items": [dict(zip(columns, row, strict=True)) for row in rows],
        }
        json.dump(value, stream, indent=1, ensure_ascii=False)
        stream.write("\n")


def _draw(board: Leaderboard) -> Any:
    from rankshot.plots import WorthsDisplay

    return WorthsDisplay.from_leaderboard(board).figure_


def _write_plot(figure: Any, path: Path) -> None:
    from rankshot.core.files import replace_file

    with replace_file(path) as stream:
        figure.savefig(stream.buffer, format=path.suffix[1:], dpi=150)
