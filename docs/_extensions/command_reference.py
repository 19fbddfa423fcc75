"""The pages of the commands: Markdown from the help texts of the Typer application."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from sphinx.application import Sphinx

import rankshot.cli

PLACE = "<!-- all commands -->"
PAGE = "api/command"
FOLDER = "api/generated/commands"
"""Each command has a page here."""
MARKS = re.compile(r"([\\*_<>\[\]#|$])")
# Not inside of code, where an option follows a space or the backtick.
OPTION = re.compile(r"(?<![\w`-])(--[a-z][a-z-]*)(?=[^`]*(?:`[^`]*`[^`]*)*$)")
# At the end of the help of an option: "[default: 10]", "[required]".
SUFFIX = re.compile(r"\s*\[([^\[\]]*)\]$")


def describe_commands() -> dict[str, str]:
    """Return the page of each command by its words, such as ``survey export``; all of them: ""."""
    root = typer.main.get_command(rankshot.cli.app)
    return dict(_describe_group(root, root.context_class(root, info_name="rankshot"), ""))


def list_command_pages() -> dict[str, str]:
    """Return the name of the page of each command by its words."""
    return {path: f"{FOLDER}/{_file_name(path)}" for path in describe_commands() if path}


def _describe_group(group: Any, context: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the page of a group, and then those of its commands."""
    own = [] if not path else [f"# `rankshot {path}`\n", *_describe(group, context)]
    folder = "" if path else "generated/commands/"
    rows, names, inner = [], [], []
    for command, below in _commands(group, context):
        words = below.command_path.removeprefix("rankshot ")
        names.append(f"{folder}{_file_name(words)}")
        brief = format_text(_paragraphs(command)[0])
        rows.append(f"| [`rankshot {words}`]({names[-1]}.md) | {brief} |")
        if hasattr(command, "commands"):
            inner += _describe_group(command, below, words)
        else:
            inner.append(
                (words, "\n".join([f"# `rankshot {words}`\n", *_describe(command, below)]))
            )
    table = ["| command | what it does |", "|---|---|", *rows, ""]
    yield path, "\n".join([*own, *table, "```{toctree}\n:hidden:\n", *names, "```\n"])
    yield from inner


def _file_name(words: str) -> str:
    return words.replace(" ", "-")


def _commands(group: Any, context: Any) -> Iterator[tuple[Any, Any]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield command, command.context_class(command, info_name=name, parent=context)


def _describe(command: Any, context: Any) -> Iterator[str]:
    """Yield what the command says for ``--help``."""
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"```text\n{usage}\n```\n"
    for paragraph in _paragraphs(command):
        example = paragraph.removeprefix("Example: ")
        is_text = example == paragraph
        yield f"{format_text(paragraph)}\n" if is_text else f"```bash\n{example}\n```\n"
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    options = [f"`{name}`\n: {_format_help(text)}\n" for name, text in records if name != "--help"]
    if options:
        yield from ("## Arguments and options\n", *options)


def _paragraphs(command: Any) -> list[str]:
    return [" ".join(part.split()) for part in command.help.split("\n\n")]


def _format_help(text: str) -> str:
    suffix = SUFFIX.search(text)
    if suffix is None:
        return format_text(text)
    word, _, value = suffix[1].partition(": ")
    remark = f"{word.capitalize()}: `{value}`." if value else f"{word.capitalize()}."
    return f"{format_text(text[: suffix.start()])} *{remark}*"


def format_text(text: str) -> str:
    """Make options code, and escape what Markdown would take for a mark outside of code."""
    parts = OPTION.sub(r"`\1`", text).split("`")
    parts[::2] = [MARKS.sub(r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def write_pages(app: Sphinx) -> None:
    """Write the pages of the commands that have changed, so that others are not read again."""
    folder = Path(app.srcdir, FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    pages = describe_commands()
    app.config.command_overview = pages.pop("")
    for old in {path.stem for path in folder.glob("*.md")} - {_file_name(path) for path in pages}:
        (folder / f"{old}.md").unlink()
    for words, text in pages.items():
        path = folder / f"{_file_name(words)}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def insert_overview(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the list of commands into its page when Sphinx reads it."""
    if page == PAGE:
        app.env.note_reread()
        source[0] = source[0].replace(PLACE, app.config.command_overview)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register what the pages of the commands need."""
    app.add_config_value("command_overview", "", "")
    app.connect("builder-inited", write_pages)
    app.connect("source-read", insert_overview)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
