"""The parts of charts, as SVG: elements, marks and axes.

Coordinates are percentages of the chart; sizes of marks and text are in pixels. So a chart fills
the width that it gets, on a phone too, and its text is as large as the text around it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

# ---- Marks

SHAPES = (
    "M0-5A5 5 0 1 1 0 5A5 5 0 1 1 0-5Z",  # disc
    "M-4.4-4.4H4.4V4.4H-4.4Z",  # square
    "M0-5.6L5.3 4H-5.3Z",  # triangle
    "M0-6.2L6.2 0L0 6.2L-6.2 0Z",  # diamond
    "M-5.8-1.7H-1.7V-5.8H1.7V-1.7H5.8V1.7H1.7V5.8H-1.7V1.7H-5.8Z",  # plus
    "M0 5.6L5.3-4H-5.3Z",  # triangle on its tip
    "M-5-2.6L-2.6-5L0-2.4L2.6-5L5-2.6L2.4 0L5 2.6L2.6 5L0 2.4L-2.6 5L-5 2.6L-2.4 0Z",  # cross
)
"""Outlines of marks around the origin."""
N_COLORS = 8
"""Colours in the style sheet. Seven shapes and eight colours give 56 different marks."""


class Html(str):
    """Text that is already markup: templates do not escape it."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


def element(name: str, *children: str, **attributes: object) -> Html:
    """Return an element. Text is escaped, and ``_`` in the name of an attribute means ``-``.

    Examples
    --------
    >>> from rankshot.report.svg import element
    >>> print(element("g", element("title", "<b>"), class_="mark", stroke_width=2))
    <g class="mark" stroke-width="2"><title>&lt;b&gt;</title></g>
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
    )
    inner = "".join(child if isinstance(child, Html) else escape(child) for child in children)
    return Html(f"<{name}{given}>{inner}</{name}>")


def draw_chart(title: str, *children: str, class_: str, style: str = "") -> Html:
    """Return a chart. A screen reader announces its title."""
    return element(
        "svg",
        element("title", title),
        *children,
        role="img",
        class_=f"chart {class_}",
        **({"style": style} if style else {}),
    )


def format_coordinate(fraction: float) -> str:
    """Return a coordinate, given as a fraction of the chart.

    Examples
    --------
    >>> from rankshot.report.svg import format_coordinate
    >>> format_coordinate(0.5), format_coordinate(1 / 3)
    ('50%', '33.33%')
    """
    return f"{round(100 * fraction, 2):g}%"


def define_marks() -> Html:
    """Return the shapes that `draw_mark` refers to; a page needs them once."""
    shapes = [element("path", id=f"mark{i}", d=outline) for i, outline in enumerate(SHAPES)]
    defs = element("defs", *shapes)
    return element("svg", defs, width=0, height=0, class_="definitions", aria_hidden="true")


def draw_mark(kind: int, x: float, y: float, tooltip: str = "") -> Html:
    """Return the mark number ``kind``, with a tooltip; x and y are fractions of the chart."""
    shape = draw_mark_outline(kind, format_coordinate(x), format_coordinate(y))
    title = [element("title", tooltip)] if tooltip else []
    return element("g", *title, shape, class_=f"c{kind % N_COLORS}")


def draw_mark_outline(kind: int, x: str, y: str) -> Html:
    """Return the outline of a mark; numbers beyond the last shape give hollow shapes."""
    hollow = {"class_": "hollow"} if kind // len(SHAPES) % 2 else {}
    return element("use", href=f"#mark{kind % len(SHAPES)}", x=x, y=y, **hollow)


def draw_legend_mark(kind: int) -> Html:
    """Return the mark number ``kind``, to be shown beside its name in a text."""
    return element("svg", draw_mark(kind, 0.5, 0.5), class_="legend-mark", aria_hidden="true")


def draw_line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Html:
    """Return a straight line between two points, given as fractions of the chart."""
    ends = {
        "x1": format_coordinate(x1),
        "y1": format_coordinate(y1),
        "x2": format_coordinate(x2),
        "y2": format_coordinate(y2),
    }
    return element("line", class_=class_, **ends)


# ---- Axes


class Axis(NamedTuple):
    """The range of values that an axis shows, and where it has ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def locate(self, value: float) -> float:
        """Return the position of a value: 0 at the low end of the axis, 1 at the high end."""
        return (value - self.low) / (self.high - self.low)


def fit_axis(values: Sequence[float]) -> Axis:
    """Return the shortest axis with round ticks that contains some shares.

    Examples
    --------
    >>> from rankshot.report.svg import fit_axis
    >>> fit_axis([0.23, 0.41]).ticks
    (0.2, 0.25, 0.3, 0.35, 0.4, 0.45)
    """
    low, high = max(min(values), 0.0), min(max(values), 1.0)
    step = next(s for s in (0.01, 0.02, 0.05, 0.1, 0.2) if high - low <= 5 * s)
    first = math.floor(low / step + 1e-9)
    last = max(math.ceil(high / step - 1e-9), first + 1)
    if last * step > 1 + 1e-9:
        first, last = first - 1, last - 1
    return Axis(
        first * step, last * step, tuple(round(i * step, 2) for i in range(first, last + 1))
    )
