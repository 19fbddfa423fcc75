"""Pages: one HTML file each that needs nothing else, and names, numbers and bars as its parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot import __version__
from rankshot.core.files import replace_file
from rankshot.core.validation import require_module
from rankshot.zeroshot.metrics import Interval

SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
CLIPPED_AT = 3.0
"""A bar is cut off at this many times the next shorter one, which would else be invisible."""


def render_page(template: str, **values: object) -> str:
    """Return the page of a template."""
    environment = _make_environment(require_module("jinja2", "reports", "cli"))
    page: str = environment.get_template(template).render(
        date=f"{datetime.now(UTC):%Y-%m-%d}", **values
    )
    return page


def write_page(page: str, path: str | Path) -> None:
    """Write a page to a file.

    Parameters
    ----------
    page : str
        As `render_report` returns it.
    path : str or Path
        An HTML file; an old one is replaced, or stays as it was if writing fails.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rankshot.pages import Report, render_report, write_page
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "report.html")
    ...     write_page(render_report(Report("Cats and dogs")), path)
    ...     path.read_text()[:15]
    '<!doctype html>'
    """
    with replace_file(Path(path)) as stream:
        stream.write(page)


@cache
def _make_environment(jinja2: Any) -> Any:
    """Return the environment of the templates, which compiles each of them once."""
    homes = [("rankshot.pages", "templates"), ("rankshot.web", "static")]
    environment = jinja2.Environment(
        # The colours are those of the pages of surveys and reviews.
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(*home) for home in homes]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for function in (shorten, format_percent, format_range):
        environment.filters[function.__name__] = function
    environment.globals["version"] = __version__
    return environment


# ---- Names and numbers


def shorten(text: str, letters: int) -> str:
    """Return text of at most ``letters`` letters; an ellipsis replaces the rest.

    Examples
    --------
    >>> from rankshot.pages.page import shorten
    >>> shorten("leopard", 8), shorten("snow leopard", 8)
    ('leopard', 'snow le…')
    """
    return text if len(text) <= letters else text[: letters - 1].rstrip() + "…"


def format_percent(share: float, digits: int = 1) -> str:
    """Return share as ``44.5%``.

    Examples
    --------
    >>> from rankshot.pages.page import format_percent
    >>> format_percent(0.4451), format_percent(0.4451, digits=0)
    ('44.5%', '45%')
    """
    return "n/a" if math.isnan(share) else f"{round(100 * share, digits) + 0.0:.{digits}f}%"


def format_range(interval: Interval) -> str:
    """Return ends of an interval, in percent.

    Examples
    --------
    >>> from rankshot.pages.page import format_range
    >>> from rankshot.zeroshot.metrics import Interval
    >>> format_range(Interval(0.445, 0.43, 0.461))
    '43.0–46.1%'
    """
    return f"{100 * interval.low:.1f}\N{EN DASH}{100 * interval.high:.1f}%"


def format_factor(log_factor: float) -> str:
    """Contribution, the logarithm of a factor of the odds, as this factor.

    A factor of more than 1,000 is rounded to a power of ten; one near 1 has two digits.

    Examples
    --------
    >>> from rankshot.pages.page import format_factor
    >>> format_factor(0.7), format_factor(-0.7), format_factor(0.02), format_factor(27.5)
    ('×2.0', '÷2.0', '×1.02', '×10¹²')
    """
    sign, size = "÷" if log_factor < 0 else "×", abs(log_factor)
    if size < 0.1:
        return f"{sign}{math.exp(size):.2f}"
    if size < math.log(1000):
        return f"{sign}{math.exp(size):.1f}"
    return f"{sign}10{f'{size / math.log(10):.0f}'.translate(SUPERSCRIPTS)}"


class Bar(NamedTuple):
    """A row of a table with a bar: a name, a number as text, and the length of the bar.

    The length is a fraction of the width, negative for a bar to the left. A bar that is
    ``clipped`` would be longer, and has a mark at its end.
    """

    name: str
    text: str
    length: float
    clipped: bool = False


class Card(NamedTuple):
    """A fact at the top of a page.

    Attributes
    ----------
    label, value : str
        What it is about, and the fact.
    detail : str
        What is behind it, or follows from it.

    Examples
    --------
    >>> from rankshot.pages import Card, Report
    >>> Report("t", cards=(Card("Rejected", "12", "no class was probable enough"),)).cards[0].value
    '12'
    """

    label: str
    value: str
    detail: str = ""


def sort_largest_first(pairs: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return named numbers, the largest first, and those that are equal by name."""
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))


def find_scale(values: Iterable[float]) -> float:
    """Return the value of the longest bar: the largest, unless others would be invisible beside it.

    Examples
    --------
    >>> from rankshot.pages.page import find_scale
    >>> find_scale([1, -2]), find_scale([1, -2, 100])
    (2, 6.0)
    """
    first, second = sorted([0, 0, *map(abs, values)])[-1:-3:-1]
    return min(first, CLIPPED_AT * second) if second else first


def make_bars(
    pairs: Sequence[tuple[str, float]],
    as_text: Callable[[float], str] = "{:,}".format,
    longest: float | None = None,
) -> list[Bar]:
    """Return bars for named numbers; the longest has length 1, unless another is given."""
    scale = (longest or max((abs(value) for _, value in pairs), default=0.0)) or 1.0
    return [
        Bar(name, as_text(value), min(max(value / scale, -1.0), 1.0), abs(value) > scale)
        for name, value in pairs
    ]


def format_matrix(
    names: Sequence[str], shares: NDArray[np.floating], texts: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """Return a square matrix of shares from 0 to 1 with its names, as a template takes it."""
    values = np.nan_to_num(shares).round(2).tolist()
    cells = [list(zip(*row, strict=True)) for row in zip(texts, values, strict=True)]
    return {"names": list(names), "rows": list(zip(names, cells, strict=True))}
