"""The page of the commands: Markdown from the signatures and docstrings of their functions."""

import inspect
import re
from collections.abc import Callable, Iterator

from docstring_parser import parse
from sphinx.application import Sphinx

from rankshot.cli import COMMANDS

PLACE = "<!-- all commands -->"
PAGE = "api/command"
MARKS = re.compile(r"([\\*_<>\[\]#|$])")
# Not inside of code, where an option follows a space or the backtick.
OPTION = re.compile(r"(?<![\w`-])(--[a-z][a-z-]*)(?=[^`]*(?:`[^`]*`[^`]*)*$)")
Command = Callable[..., object]


def list_commands() -> dict[str, Command]:
    """The functions of all commands by their names."""
    return {one.__name__: one for group in COMMANDS.values() for one in group}


def list_options(command: Command) -> dict[str, str]:
    """The argument or option of each parameter of a command."""
    names = {}
    for name, parameter in inspect.signature(command).parameters.items():
        is_option = parameter.kind is inspect.Parameter.KEYWORD_ONLY
        names[name] = f"--{name.replace('_', '-')}" if is_option else name.upper()
    return names


def list_command_places() -> dict[str, str]:
    """Return the page and the heading of each command by its words."""
    return {name: f"{PAGE}#rankshot-{name}" for name in list_commands()}


def write_commands() -> str:
    """Return a table of all commands, and a section for each."""
    rows = [
        f"| [`rankshot {name}`](#rankshot-{name}) | {format_text(_summarize(one))} |"
        for name, one in list_commands().items()
    ]
    sections = (line for name, one in list_commands().items() for line in describe(name, one))
    return "\n".join(["| command | what it does |", "|---|---|", *rows, "", *sections])


def _summarize(command: Command) -> str:
    return parse(command.__doc__ or "").short_description or ""


def describe(name: str, command: Command) -> Iterator[str]:
    """Yield the lines of the section of a command."""
    yield f"## `rankshot {name}`\n"
    about = parse(command.__doc__ or "")
    for paragraph in (f"{about.short_description}\n\n{about.long_description or ''}").split("\n\n"):
        text = " ".join(paragraph.split())
        example = text.removeprefix("Example: ")
        if text:
            yield f"{format_text(text)}\n" if example == text else f"```bash\n{example}\n```\n"
    texts = {one.arg_name: " ".join((one.description or "").split()) for one in about.params}
    for parameter, option in list_options(command).items():
        yield f"`{option}`\n: {format_text(texts[parameter])}\n"


def format_text(text: str) -> str:
    """Make options code, and escape what Markdown would take for a mark outside of code."""
    parts = OPTION.sub(r"`\1`", text).split("`")
    parts[::2] = [MARKS.sub(r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def insert_commands(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the commands into their page when Sphinx reads it."""
    if page == PAGE:
        app.env.note_reread()
        source[0] = source[0].replace(PLACE, write_commands())


def setup(app: Sphinx) -> dict[str, bool]:
    """Register what the page of the commands needs."""
    app.connect("source-read", insert_commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
