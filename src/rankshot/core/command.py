"""Run a command of cyclopts: bad input ends it with one message and exit status 2."""

from __future__ import annotations

import inspect
import io
import os
import shlex
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from errno import ENOSPC
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Any, NoReturn, get_type_hints

from cyclopts import App, CycloptsError, Group, Parameter
from cyclopts.help import PlainFormatter

from rankshot.core.errors import (
    NO_VALUE,
    InputError,
    RankshotError,
    spell_argument,
    suggest_name,
)


class _Paragraphs(PlainFormatter):
    """Plain help, in which each paragraph is wrapped once: lines of docstrings are joined."""

    def _print_plain(self, console: Any, text: str) -> None:
        for number, paragraph in enumerate(text.split("\n\n")):
            indent = " " * (len(paragraph) - len(paragraph.lstrip()))
            words = " ".join(paragraph.split())
            hanging = f"{indent}    " if indent else ""
            console.print("\n" * bool(number), end="")
            lines = fill(words, console.width, initial_indent=indent, subsequent_indent=hanging)
            console.print(lines, highlight=False, markup=False, soft_wrap=True)


def make_app(
    name: str, about: str, version: str, commands: Mapping[str, Sequence[Callable[..., object]]]
) -> App:
    """App whose commands are functions, in groups that have a title in the help.

    Options and their help come from the signature and the numpydoc docstring of each function.
    """
    app = App(
        name=name,
        help=about,
        version=f"{name} {version}",
        help_format="plaintext",
        help_formatter=_Paragraphs(),
        default_parameter=Parameter(negative=()),
    )
    for order, (title, functions) in enumerate(commands.items()):
        group = Group(title, sort_key=order)
        for function in functions:
            app.command(function, group=group)
    return app


def run(app: App, words: Sequence[str] | None = None) -> None:
    """Run the command that the words name; by default those that the process was started with.

    An `InputError` about a parameter is shown with the option of that name.
    """
    # Characters that the terminal cannot show are written as escapes, as in error messages.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    # SIGTERM, as sent by a time limit, cleans up temporary files as Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    command: Callable[..., object] | None = None
    try:
        # Without words, the parser would warn in tests, which set the arguments of the process.
        words = sys.argv[1:] if words is None else words
        command, bound, _ = app.parse_args(words, print_error=False, exit_on_error=False)
        command(*bound.args, **bound.kwargs)
    except InputError as error:
        fail(app, error.format(partial(_spell_option, command)))
    except (CycloptsError, RankshotError) as error:
        fail(app, str(error))
    except OSError as error:
        # Files that are written have names: this is the output, as of `rankshot ... > FILE`.
        where = error.filename or ("standard output" if error.errno == ENOSPC else "")
        hint = _suggest_file(where) if isinstance(error, FileNotFoundError) else ""
        fail(app, f"{where}: {error.strerror}{hint}" if where else str(error))
    except KeyboardInterrupt:
        raise SystemExit(128 + signal.SIGINT) from None


def fail(app: App, text: str) -> NoReturn:
    """Print an error message and exit with status 2."""
    app.error_console.print(
        f"{app.name[0]}: {text}", style="red", highlight=False, markup=False, soft_wrap=True
    )
    raise SystemExit(2)


def _spell_option(command: Callable[..., object] | None, name: str, value: object) -> str:
    """Option of a parameter, or the parameter itself if the command has no such option."""
    options = [] if command is None else inspect.getfullargspec(command).kwonlyargs
    if name not in options and "column" in options and isinstance(value, str):
        return f"--column {shlex.quote(f'{name}={value}')}"
    if command is None or name not in options:
        return spell_argument(name, value)
    option = f"--{name.replace('_', '-')}"
    if value is NO_VALUE or (value is True and get_type_hints(command)[name] is bool):
        return option
    return f"{option} {'yes' if value is True else value}"


FILE_ENDINGS = (".csv", ".json", ".jsonl", ".onnx", ".parquet", ".rankshot", ".skops", ".txt")


def require_there(_hint: object, value: Any) -> None:
    """Refuse a path to nothing, or a text that is the name of no file, before slow imports."""
    path = Path(value or ".")
    if not path.exists() and (isinstance(value, Path) or path.suffix in FILE_ENDINGS):
        raise ValueError(f"There is no such file or folder{_suggest_file(path)}.")


def _suggest_file(name: Any) -> str:
    """Hint at a file whose name is similar, in the same folder."""
    path = Path(os.fsdecode(name))
    with suppress(OSError):
        return suggest_name(path.name, [file.name for file in path.parent.iterdir()])
    return ""
