"""The command ``rankshot``.

The modules of the commands import only Typer, the standard library, each other and packages at
their top, so that ``rankshot --help`` is quick: a package such as ``zeroshot`` loads a module when
one of its names is used. Everything else is imported inside the function that uses it, when its
command runs.
"""

from __future__ import annotations

import inspect
import io
import os
import re
import signal
import sys
from collections.abc import Callable
from difflib import get_close_matches
from errno import ENOSPC
from functools import cache, wraps
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn, get_args, get_type_hints

try:
    import rich  # noqa: F401
    import typer
    from typer.core import TyperCommand, TyperGroup
except ImportError as error:
    message = f"the command needs {error.name}: install it with pip install 'rankshot[cli]'"
    raise SystemExit(message) from None

from rankshot import __version__
from rankshot.cli.classify import classify
from rankshot.cli.consensus import consensus
from rankshot.cli.console import fail
from rankshot.cli.demo import demo
from rankshot.cli.doctor import doctor
from rankshot.cli.fit import export, fit, head
from rankshot.cli.heads import HeadOptions
from rankshot.cli.leaderboard import leaderboard
from rankshot.cli.rank import ask, rank
from rankshot.cli.recognise import recognise
from rankshot.cli.rehearse import rehearse
from rankshot.cli.report import explain, report
from rankshot.cli.review import review
from rankshot.cli.score import score
from rankshot.cli.suggest import suggest
from rankshot.core.errors import ALIKE, RankshotError
from rankshot.sources.registry import KINDS

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
        self.commands = {name: TyperCommand(name, help=text) for name, text in texts.items()}

    def list_commands(self, ctx: object) -> list[str]:  # noqa: ARG002
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name == "survey":
            fail("surveys are a program of their own: pip install rankshot-survey")
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

    rankshot has two parts. It adds new classes to a classifier without training: for each new
    class, it needs rankings of the classes that the classifier knows (seen classes). And it
    analyses rankings and votes of any kind. Surveys are a program of their own: rankshot-survey.
    """


def main(command: Callable[[], object] = app) -> None:
    """Run the command. Bad input ends it with a message and exit status 2, without a traceback."""
    # Characters that the terminal cannot show are written as escapes, as in error messages.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    # SIGTERM, as sent by a time limit, cleans up temporary files as Ctrl-C does.
    signal.signal(signal.SIGTERM, _exit_on_signal)
    try:
        command()
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
    close = get_close_matches(path.stem, name_of, n=1, cutoff=ALIKE)
    return f" (did you mean {name_of[close[0]]!r}?)" if close else ""


def _exit_on_signal(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


# ---- Functions become commands: the signature has the options, and the docstring their texts
#
# Parameters before ``*`` are arguments, those after it are options. The section *Parameters* of the
# docstring has their texts; what follows the name of an option and a colon is shown as its value.

SHORT = {"output": "-o", "number": "-n"}
"""Options that have a short name as well."""


class _Command(TyperCommand):
    """A command that refuses an option that is given twice, instead of using the last value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        *_, given = self.make_parser(ctx).parse_args(args=list(args))
        for option in given:
            if given.count(option) > 1 and option.nargs == 1 and not option.multiple:
                raise RankshotError(f"{option.opts[0]} is given more than once; give one value")
        return super().parse_args(ctx, args)


def build_command(function: Callable[..., None], *others: Callable[..., None]) -> Any:
    """Return a function as a command; texts that it lacks are those of other commands.

    A parameter ``options: HeadOptions`` becomes the options of `HeadOptions.from_command`, or some
    of them: ``Annotated[HeadOptions, "rankings head"]``.
    """
    texts: dict[str, tuple[str, str]] = {}
    described: list[Callable[..., object]] = [*others[::-1], HeadOptions.from_command, function]
    for command in described:
        texts |= split_docstring(command)[1]
    parameters: list[inspect.Parameter] = []
    of_head: set[str] = set()
    for each in _list_parameters(function):
        if each.name != "options":
            parameters.append(_make_option(each, *texts[each.name]))
            continue
        _, *names = get_args(each.annotation) or ("", "")
        available = {one.name: one for one in _list_parameters(HeadOptions.from_command)}
        of_head = set(" ".join(names).split() or available)
        parameters += [
            _make_option(one, *texts[name]) for name, one in available.items() if name in of_head
        ]

    @wraps(function)
    def run(**given: Any) -> None:
        own = {name: given.pop(name) for name in of_head}
        function(**given, **({"options": HeadOptions.from_command(**own)} if own else {}))

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(cls=_Command, help=split_docstring(function)[0])(run)
    return typer.main.get_command(alone)


def split_docstring(
    function: Callable[..., object] | type,
) -> tuple[str, dict[str, tuple[str, str]]]:
    """Return the text of a docstring, and the value and the help of each parameter."""
    body, _, section = inspect.cleandoc(function.__doc__ or "").partition("\n\nParameters\n---")
    section = re.split(r"\n\n\w+\n---", section)[0]
    found = {}
    for part in re.split(r"\n(?=\w)", section)[1:]:
        head, _, about = part.partition("\n")
        name, _, value = head.partition(" : ")
        found[name] = value, " ".join(about.split())
    return body, found


def _list_parameters(function: Callable[..., object]) -> list[inspect.Parameter]:
    hints = get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters
    return [each.replace(annotation=hints[name]) for name, each in parameters.items()]


def _make_option(parameter: inspect.Parameter, value: str, text: str) -> inspect.Parameter:
    text = text.replace("{sources}", ", ".join(kind.about for kind in KINDS.values()))
    value, text = (_name_settings(each) if "{" in each else each for each in (value, text))
    kind, name = inspect.Parameter.KEYWORD_ONLY, parameter.name.rstrip("_").replace("_", "-")
    about = typer.Argument(metavar=name.upper(), help=text)
    if parameter.kind is kind:
        names = [f"--{name}", *filter(None, [SHORT.get(name)])]
        about = typer.Option(*names, metavar=value or None, help=text)
    return parameter.replace(kind=kind, annotation=Annotated[parameter.annotation, about])


def _name_settings(text: str) -> str:
    """Return a text with the settings of a head, as `Settings` declares them."""
    from rankshot.zeroshot.settings import Settings

    about = split_docstring(Settings)[1]
    names = ("k", "decay", "temperature", "evidence_weight")
    settings = [
        f"{name}: {about[name][1].replace('``', '').partition('. ')[0].rstrip('.')}."
        for name in names
    ]
    return text.replace("{settings}", " ".join(settings))
