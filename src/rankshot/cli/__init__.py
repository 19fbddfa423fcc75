"""The command ``rankshot``.

The modules of the commands import only Typer, the standard library and each other at their top,
so that ``rankshot --help`` is quick. Everything else is imported inside the function that uses
it, when its command runs.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable
from difflib import get_close_matches
from errno import ENOSPC
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

try:
    import rich  # noqa: F401
    import typer
    from typer.core import TyperCommand, TyperGroup
except ImportError as error:
    message = f"the command needs {error.name}: install it with pip install 'rankshot[cli]'"
    raise SystemExit(message) from None

from rankshot import __version__
from rankshot.cli import survey
from rankshot.cli.ask import ask
from rankshot.cli.classify import classify
from rankshot.cli.consensus import consensus
from rankshot.cli.console import fail
from rankshot.cli.demo import demo
from rankshot.cli.doctor import doctor
from rankshot.cli.fit import export, fit, head
from rankshot.cli.leaderboard import leaderboard
from rankshot.cli.options import build_command, split_docstring
from rankshot.cli.rank import rank
from rankshot.cli.recognise import recognise
from rankshot.cli.rehearse import rehearse
from rankshot.cli.report import explain, report
from rankshot.cli.review import review
from rankshot.cli.score import score
from rankshot.cli.suggest import suggest
from rankshot.core.errors import RankshotError

COMMANDS: dict[Callable[..., None], tuple[Callable[..., None], ...]] = {
    demo: (),
    recognise: (classify, score, rank),
    score: (),
    rank: (),
    ask: (rank,),
    rehearse: (classify,),
    review: (classify,),
    doctor: (classify,),
    consensus: (score,),
    leaderboard: (consensus,),
    fit: (classify,),
    head: (),
    classify: (score,),
    suggest: (classify,),
    explain: (classify,),
    report: (classify,),
    export: (),
}
"""All commands, with those whose texts they share."""
PARTS = {
    "Add classes to a classifier": (),
    "Analyse rankings": ("consensus", "leaderboard"),
    "Collect rankings from people": ("survey",),
}
"""The parts of rankshot, with their commands; the first part has all others."""

CONTEXT = {"max_content_width": 100}
"""Examples fit into one line if the terminal is wide enough."""


def _show_version(wanted: bool) -> None:  # noqa: FBT001
    if wanted:
        typer.echo(f"rankshot {__version__}")
        raise typer.Exit


class _Group(TyperGroup):
    """All commands, of which each gets its options when it is used.

    To list the commands takes half the time so: Typer makes options slowly.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        texts = {each.__name__: split_docstring(each)[0] for each in COMMANDS}
        texts["survey"] = survey.ABOUT
        self.commands = {name: TyperCommand(name, help=text) for name, text in texts.items()}

    def list_commands(self, ctx: object) -> list[str]:  # noqa: ARG002
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name == "survey":
            return _build_survey()
        return _build_command(cmd_name) if cmd_name in self.commands else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        width = formatter.width - 6 - max(map(len, self.commands))
        rows = [(name, each.get_short_help_str(width)) for name, each in self.commands.items()]
        other = {name: title for title, names in PARTS.items() for name in names}
        first = next(iter(PARTS))
        for title in PARTS:
            with formatter.section(title):
                formatter.write_dl([row for row in rows if other.get(row[0], first) == title])


@cache
def _build_command(name: str) -> object:
    function = next(each for each in COMMANDS if each.__name__ == name)
    return build_command(function, *COMMANDS[function])


@cache
def _build_survey() -> object:
    commands = [build_command(function, *survey.SHARED) for function in survey.COMMANDS]
    return TyperGroup(
        name="survey",
        commands={command.name: command for command in commands},
        help=survey.ABOUT,
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings=CONTEXT,
    )


app = typer.Typer(
    cls=_Group,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings=CONTEXT,
)


@app.callback()
def root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_show_version, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Zero-shot classification by rankings, and statistics of rankings.

    rankshot has three parts. It adds new classes to a classifier without training: for each new
    class, it needs rankings of the classes that the classifier knows (seen classes). It analyses
    rankings and votes of any kind. And it runs surveys in which people rank items.
    """


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
    except IsADirectoryError as error:
        fail(f"{error.filename}: is a folder; a file is expected")
    except OSError as error:
        # Files that are written have names: this is the output, as of `rankshot … > FILE`.
        where = "standard output" if error.errno == ENOSPC else ""
        name = error.filename or where
        hint = _suggest_file(name) if isinstance(error, FileNotFoundError) else ""
        fail(f"{name}: {error.strerror}{hint}" if name else str(error))


def _suggest_file(name: Any) -> str:
    """Return a hint at a file whose name is similar, in the same folder."""
    path = Path(os.fsdecode(name))
    there = path.parent.iterdir() if path.parent.is_dir() else []
    name_of = {file.stem: file.name for file in there}
    close = get_close_matches(path.stem, name_of, n=1, cutoff=0.75)
    return f" (did you mean {name_of[close[0]]!r}?)" if close else ""


def _exit_on_signal(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
