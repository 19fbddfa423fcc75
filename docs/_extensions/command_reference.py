"""The pages of the commands: Markdown from the signatures and docstrings of their functions."""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from docstring_parser import parse
from sphinx.application import Sphinx

from rankshot.cli import COMMANDS

PLACE = "<!-- all commands -->"
PAGE = "api/command"
FOLDER = "api/generated/commands"
"""Each command has a page here."""
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


def list_command_pages() -> dict[str, str]:
    """The name of the page of each command by its words."""
    return {name: f"{FOLDER}/{name}" for name in list_commands()}


def write_overview() -> str:
    """A table of all commands."""
    rows = [
        f"| [`rankshot {name}`](generated/commands/{name}.md) | {format_text(_summarize(one))} |"
        for name, one in list_commands().items()
    ]
    names = [f"generated/commands/{name}" for name in list_commands()]
    table = ["| command | what it does |", "|---|---|", *rows, ""]
    return "\n".join([*table, "```{toctree}\n:hidden:\n", *names, "```\n"])


def _summarize(command: Command) -> str:
    return parse(command.__doc__ or "").short_description or ""


def describe(name: str, command: Command) -> Iterator[str]:
    """Yield the lines of the page of a command."""
    yield f"# `rankshot {name}`\n"
    about = parse(command.__doc__ or "")
    for paragraph in (f"{about.short_description}\n\n{about.long_description or ''}").split("\n\n"):
        text = " ".join(paragraph.split())
        example = text.removeprefix("Example: ")
        if text:
            yield f"{format_text(text)}\n" if example == text else f"```bash\n{example}\n```\n"
    yield "## Arguments and options\n"
    texts = {one.arg_name: " ".join((one.description or "").split()) for one in about.params}
    for parameter, option in list_options(command).items():
        yield f"`{option}`\n: {format_text(texts[parameter])}\n"


def format_text(text: str) -> str:
    """Make options code, and escape what Markdown would take for a mark outside of code."""
    parts = OPTION.sub(r"`\1`", text).split("`")
    parts[::2] = [MARKS.sub(r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def write_pages(app: Sphinx) -> None:
    """Write the pages of the commands that have changed, so that others are not read again."""
    folder = Path(app.srcdir, FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    pages = {name: "\n".join(describe(name, one)) for name, one in list_commands().items()}
    for old in {path.stem for path in folder.glob("*.md")} - {*pages}:
        (folder / f"{old}.md").unlink()
    for name, text in pages.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def insert_overview(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the list of commands into its page when Sphinx reads it."""
    if page == PAGE:
        app.env.note_reread()
        source[0] = source[0].replace(PLACE, write_overview())


def setup(app: Sphinx) -> dict[str, bool]:
    """Register what the pages of the commands need."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", insert_overview)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
