"""What commands print: text as it is, tables, orders, warnings; and types of their options."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from rankshot.core.command import require_there

WIDEST = 10_000
"""More columns than any terminal has."""
ITEMS_SHOWN = 10
Output = Annotated[Path | None, Parameter(alias="-o")]
"""An output file that is optional."""
RequiredOutput = Annotated[Path, Parameter(alias="-o")]
Input = Annotated[Path, Parameter(validator=require_there)]
"""An input file or folder, which must exist."""
FileOrName = Annotated[str, Parameter(validator=require_there)]
ScoreType = Literal[
    "auto",
    "logits",
    "probabilities",
    "one-vs-rest-logits",
    "one-vs-rest-probabilities",
    "one-vs-one",
]


def say(text: str) -> None:
    """Print text unchanged: without highlighting, markup or added line breaks."""
    from rich.console import Console

    Console().print(text, highlight=False, markup=False, soft_wrap=True)


def print_table(title: str | None, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; names of columns that begin with ``>`` are of numbers, with ``*`` bold.

    A table that is wider than the terminal has no vertical lines, so that its texts break less
    often; numbers do not.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title and Text(title, style="table.title"))
    for name in columns:
        table.add_column(
            Text(name.lstrip(">*")),
            justify="right" if name.startswith(">") else "left",
            style="bold" if name.startswith("*") else "",
            overflow="fold",
            no_wrap=name.startswith(">"),
        )
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console()
    wide = console.options.update_width(WIDEST)
    if console.measure(table, options=wide).maximum > console.width:
        table.box, table.padding, table.show_edge = box.SIMPLE_HEAD, 0, False
    console.print(table)


def format_order(
    order: Iterable[str | Sequence[str]],
    after: Callable[[str], str] = lambda _: "",
    most: int = ITEMS_SHOWN,
) -> str:
    """Order as text, with ties; of a long one the first items, and how many follow.

    ``after(name)`` is written after a tie whose first item is ``name``.

    Examples
    --------
    >>> format_order(["tea", ("juice", "beer"), "water"])
    'tea > juice = beer > water'
    >>> format_order(["tea", *map(str, range(20))])
    'tea > 0 > 1 > 2 > 3 > 4 > 5 > 6 > 7 > 8 > 11 more'
    """
    ties = [(tie,) if isinstance(tie, str) else tuple(tie) for tie in order]
    places: list[str] = []
    left, rest = most, sum(map(len, ties))
    for tie in ties:
        if left <= 0:
            break
        cut = (f"{len(tie) - left:,} more",) if len(tie) > left else ()
        places.append(" = ".join((*tie[:left], *cut)) + after(tie[0]))
        left -= len(tie)
        rest -= len(tie)
    return " > ".join([*places, f"{rest:,} more"] if rest else places)


@contextmanager
def print_warnings() -> Iterator[None]:
    """Print each warning in the block, once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        say(f"warning: {message}")


def parse_share(text: str) -> float:
    """Number of a text such as 2% or .02.

    Examples
    --------
    >>> parse_share("2%"), parse_share(".02")
    (0.02, 0.02)
    """
    number = text.strip().removesuffix("%")
    return float(number) / 100 if text.strip().endswith("%") else float(number)


OUTPUTS = "outputs.json"
"""The file in the folder of a run that has the hashes of what was written elsewhere about it."""


def require_output(
    path: Path | None,
    endings: Sequence[str],
    *inputs: object,
    overwrite: bool,
    run: Path | None = None,
) -> None:
    """Refuse an output that cannot be written, before anything is computed or paid for.

    A file that is there is replaced only with ``overwrite``; or if a command about the same run
    wrote it, and nobody has changed it since.
    """
    from rankshot.core.errors import InputError
    from rankshot.core.files import require_ending, require_own

    if path is None:
        return
    files = [Path(one).resolve() for one in inputs if isinstance(one, str | Path)]
    if path.resolve() in files:
        raise InputError("output", str(path), "is also an input file", hint="give another name")
    require_ending(path, endings)
    if not path.resolve().parent.is_dir():
        hint = f"create the folder {path.parent} first"
        raise InputError("output", str(path), "cannot be written there", hint=hint)
    require_own(path, run and run / OUTPUTS, overwrite=overwrite)


def remember_output(path: Path, run: Path) -> None:
    """Keep the hash of a file that a command has written about a run."""
    from rankshot.core.files import remember_own

    if run.is_dir():
        remember_own(path, run / OUTPUTS)
