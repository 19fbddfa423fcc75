"""The page of the command: Markdown from the help texts of the Typer application."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from sphinx.application import Sphinx

import rankshot.cli

PLACE = "<!-- all commands -->"
PAGE = "api/command"
MARKS = re.compile(r"([\\*_<>\[\]#|$])")
# Not inside of code, where an option follows a space or the backtick.
OPTION = re.compile(r"(?<![\w`-])(--[a-z][a-z-]*)(?=[^`]*(?:`[^`]*`[^`]*)*$)")
# At the end of the help of an option: "[default: 10]", "[required]".
SUFFIX = re.compile(r"\s*\[([^\[\]]*)\]$")


def describe_commands() -> str:
    """Return a list of all commands, and a section for each of them."""
    root = typer.main.get_command(rankshot.cli.app)
    context = root.context_class(root, info_name="rankshot")
    return "\n".join([*_list_commands(root, context), "", *_describe_group(root, context, "##")])


def _list_commands(group: Any, context: Any) -> Iterator[str]:
    yield from ("| command | what it does |", "|---|---|")
    for command, inner in _commands(group, context):
        title = inner.command_path
        brief = format_text(_paragraphs(command)[0])
        yield f"| [`{title}`](#{title.replace(' ', '-')}) | {brief} |"


def _describe_group(group: Any, context: Any, level: str) -> Iterator[str]:
    for command, inner in _commands(group, context):
        yield f"{level} `{inner.command_path}`\n"
        yield from _describe(command, inner)
        if hasattr(command, "commands"):
            yield from (*_list_commands(command, inner), "")
            yield from _describe_group(command, inner, f"{level}#")


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
    for parameter in command.get_params(context):
        name, text = parameter.get_help_record(context)
        if name != "--help":
            yield f"`{name}`\n: {_format_help(text)}\n"


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


def insert_commands(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the commands into their page when Sphinx reads it."""
    if page == PAGE:
        for path in Path(rankshot.cli.__file__).parent.glob("*.py"):
            app.env.note_dependency(str(path))
        source[0] = source[0].replace(PLACE, describe_commands())


def setup(app: Sphinx) -> dict[str, bool]:
    """Register what the page of the command needs."""
    app.connect("source-read", insert_commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
