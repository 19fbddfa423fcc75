"""The command ``rankshot-survey``: reads options, calls one function, prints.

Each command imports what it needs when it runs, so that the help is quick.
"""

from __future__ import annotations

import inspect
import signal
import sys
from collections.abc import Callable
from importlib.metadata import version
from types import FrameType
from typing import Any, NoReturn

from cyclopts import App, CycloptsError, Parameter
from rich.console import Console

from rankshot.core.errors import InputError, RankshotError
from rankshot_survey.cli import people, results, studies

app = App(
    name="rankshot-survey",
    help="Collect rankings from people with your own web page.",
    version=lambda: version("rankshot-survey"),
    default_parameter=Parameter(negative=()),
    help_format="plaintext",
)
for command in (studies.new, studies.catalogue, studies.serve, results.status, results.export):
    app.command(command)
app.command(studies.backup)
app.command(studies.set_, name="set")
app.command(people.app)


def main() -> None:
    """Run the command. Bad input ends it with a message and exit status 2, without a traceback."""
    # SIGTERM, as sent by a time limit, cleans up temporary files as Ctrl-C does.
    signal.signal(signal.SIGTERM, _exit_on_signal)
    try:
        run, given, _ = app.parse_args(sys.argv[1:], exit_on_error=False, print_error=False)
    except CycloptsError as error:
        _fail(str(error))
    try:
        run(*given.args, **given.kwargs)
    except InputError as error:
        _fail(error.format(_name_option(run, error.parameter)))
    except (RankshotError, OSError) as error:
        _fail(str(error))


def _name_option(run: Callable[..., Any], parameter: str) -> str:
    """Return a parameter of a command as people type it, and other names as they are."""
    known = inspect.signature(run).parameters
    if parameter not in known:
        return parameter
    name = parameter.rstrip("_").replace("_", "-")
    is_option = known[parameter].kind is inspect.Parameter.KEYWORD_ONLY
    return f"--{name}" if is_option else name.upper()


def _fail(text: str) -> NoReturn:
    Console(stderr=True, soft_wrap=True).print(
        f"rankshot-survey: {text}", style="red", highlight=False, markup=False
    )
    raise SystemExit(2)


def _exit_on_signal(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
