"""The command ``rankshot-survey``."""

from __future__ import annotations

from functools import cache
from typing import Any

from typer.core import TyperGroup

from rankshot.cli import CONTEXT, build_command, main as run_command
from rankshot_survey.cli import commands


@cache
def build_group() -> Any:
    """Return the command with all its commands."""
    built = [build_command(function, *commands.SHARED) for function in commands.COMMANDS]
    return TyperGroup(
        name="rankshot-survey",
        commands={command.name: command for command in built},
        help=commands.ABOUT,
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings=CONTEXT,
    )


def main() -> None:
    """Run the command. Bad input ends it with a message and exit status 2, without a traceback."""
    run_command(build_group())
