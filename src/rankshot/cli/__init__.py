"""The command ``rankshot``."""

from __future__ import annotations

import io
import signal
import sys
from types import FrameType
from typing import Annotated, NoReturn

try:
    import rich  # noqa: F401
    import typer
except ImportError as error:
    message = f"the command needs {error.name}: install it with pip install 'rankshot[cli]'"
    raise SystemExit(message) from None

from rankshot import __version__
from rankshot.cli.classify import classify
from rankshot.cli.consensus import consensus
from rankshot.cli.console import fail
from rankshot.cli.demo import demo
from rankshot.cli.explain import explain
from rankshot.cli.rank import rank
from rankshot.cli.report import report
from rankshot.cli.reproduce import reproduce
from rankshot.cli.survey import survey
from rankshot.core.errors import RankshotError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    # Examples fit into one line, where the terminal has so much room.
    context_settings={"max_content_width": 100},
    help="Zero-shot classification with semantic rankings.",
)


def _show_version(wanted: bool) -> None:  # noqa: FBT001
    if wanted:
        typer.echo(f"rankshot {__version__}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show it.")
    ] = False,
) -> None:
    """Zero-shot classification with semantic rankings."""


for command in (demo, rank, consensus, classify, explain, report, reproduce):
    app.command()(command)
app.add_typer(survey, name="survey")


def main() -> None:
    """Run the command; bad input ends it with a message and status 2, never a traceback."""
    # A name that the terminal has no letters for is shown all the same, as the errors are.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    # A job that is told to end, as by a time limit, cleans up as after Ctrl-C.
    signal.signal(signal.SIGTERM, _end)
    try:
        app()
    except RankshotError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
