"""The command ``rankshot``.

The modules of the commands import only Typer, the standard library and each other at their top,
so that ``rankshot --help`` is quick. Everything else is imported inside the function that uses
it, when its command runs.
"""

from __future__ import annotations

import io
import signal
import sys
from types import FrameType
from typing import Annotated, Any, NoReturn

try:
    import rich  # noqa: F401
    import typer
    from typer.core import TyperCommand
except ImportError as error:
    message = f"the command needs {error.name}: install it with pip install 'rankshot[cli]'"
    raise SystemExit(message) from None

from rankshot import __version__
from rankshot.cli.ask import ask
from rankshot.cli.classify import classify
from rankshot.cli.consensus import consensus
from rankshot.cli.console import fail
from rankshot.cli.demo import demo
from rankshot.cli.explain import explain
from rankshot.cli.export import export
from rankshot.cli.fit import fit, head
from rankshot.cli.leaderboard import leaderboard
from rankshot.cli.rank import rank
from rankshot.cli.recognise import recognise
from rankshot.cli.rehearse import rehearse
from rankshot.cli.report import report
from rankshot.cli.score import score
from rankshot.cli.survey import survey
from rankshot.core.errors import RankshotError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    # Examples fit into one line if the terminal is wide enough.
    context_settings={"max_content_width": 100},
)


def _show_version(wanted: bool) -> None:  # noqa: FBT001
    if wanted:
        typer.echo(f"rankshot {__version__}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=_show_version,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """Zero-shot classification with semantic rankings.

    A classifier recognises classes that it was not trained on (new classes) from rankings of the
    classes that it was trained on (seen classes).
    """


class _OnceCommand(TyperCommand):
    """A command that refuses an option that is given twice, instead of using the last value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        *_, given = self.make_parser(ctx).parse_args(args=list(args))
        for option in given:
            if given.count(option) > 1 and option.nargs == 1 and not option.multiple:
                raise RankshotError(f"{option.opts[0]} is given more than once; give one value")
        return super().parse_args(ctx, args)


COMMANDS = (
    demo,
    recognise,
    score,
    rank,
    ask,
    rehearse,
    consensus,
    leaderboard,
    fit,
    head,
    classify,
    explain,
    report,
    export,
)
for command in COMMANDS:
    app.command(cls=_OnceCommand)(command)
app.add_typer(survey, name="survey")


def main() -> None:
    """Run the command. Bad input ends it with a message and exit status 2, without a traceback."""
    # Characters that the terminal cannot show are written as escapes, as in error messages.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    # SIGTERM, as sent by a time limit, cleans up temporary files as Ctrl-C does.
    signal.signal(signal.SIGTERM, _exit_on_signal)
    try:
        app()
    except RankshotError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))


def _exit_on_signal(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
