"""Functions become commands: the signature has the options, and the docstring their texts.

Parameters before ``*`` are arguments, those after it are options. The section *Parameters* of the
docstring has their texts; what follows the name of an option and a colon is shown as its value.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand

from rankshot.cli.heads import HeadOptions
from rankshot.core.errors import RankshotError
from rankshot.sources.registry import KINDS

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
    value, text = (_name_heads(each) if "{" in each else each for each in (value, text))
    kind, name = inspect.Parameter.KEYWORD_ONLY, parameter.name.rstrip("_").replace("_", "-")
    about = typer.Argument(metavar=name.upper(), help=text)
    if parameter.kind is kind:
        names = [f"--{name}", *filter(None, [SHORT.get(name)])]
        about = typer.Option(*names, metavar=value or None, help=text)
    return parameter.replace(kind=kind, annotation=Annotated[parameter.annotation, about])


def _name_heads(text: str) -> str:
    """Return a text with the heads and their settings, as their classes declare them."""
    from rankshot.zeroshot.files.head_files import list_settable
    from rankshot.zeroshot.plan import HEADS, METHODS, RANKING_HEADS

    owners: dict[str, list[str]] = {}
    for head in METHODS:
        for name, choices in list_settable(HEADS[head]).items():
            owners.setdefault(f"{name}={'|'.join(choices)}".rstrip("="), []).append(head)
    settings = []
    for setting, heads in owners.items():
        about = split_docstring(HEADS[heads[0]])[1][setting.partition("=")[0]][1].replace("``", "")
        settings.append(f"{setting} ({', '.join(heads)}): {about.partition('. ')[0].rstrip('.')}.")
    text = text.replace("{methods}", "|".join(METHODS)).replace("{settings}", " ".join(settings))
    return text.replace("{ranking_heads}", "|".join(RANKING_HEADS))
