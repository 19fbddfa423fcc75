"""What all displays share: axes, colours, short names, and the plot as SVG for a page."""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self
from xml.etree import ElementTree as ET

from numpy.typing import NDArray

from rankshot.core.errors import RankshotError
from rankshot.core.validation import require_module

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito's colours, which colour-blind people can distinguish; the markers differ as
well."""
MARKERS = "osD^vP"
LINES = ("-", "--", ":", "-.")
MUTED, LIGHT, GRID, PAPER = "#737373", "#bfbfbf", "#e5e5e5", "#ffffff"
PAGE_COLOURS = {
    **{colour: f"var(--c{number},{colour})" for number, colour in enumerate(COLOURS)},
    "#000000": "var(--ink,#000)",
    MUTED: f"var(--muted,{MUTED})",
    LIGHT: f"var(--muted,{LIGHT})",
    GRID: f"var(--line,{GRID})",
    PAPER: f"var(--surface,{PAPER})",
}
"""On a page, its style sheet decides, so that a plot is readable on dark pages as well."""
NUMBER_SIZE = 7
"""Points: the numbers in a plot."""
DARKNESS = 0.4
"""On darker cells, numbers are white."""
WIDTH = 6.4
"""Inches: displays whose names are at the left."""
ROW_HEIGHT = 0.24
"""Inches per item: names in the default font do not overlap."""
CELL = 0.18
"""Inches per row and column of a matrix."""
LETTER = 0.07
"""Inches per letter of a name beside a matrix."""
PADDING = 0.08
"""Inches around everything."""
MAX_HEIGHT = 150
"""Inches: Matplotlib cannot draw much more."""
MAX_LETTERS = 32


class Display:
    """A plot on Matplotlib axes: `plot` draws what the object holds.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Where `plot` has drawn.
    figure_ : matplotlib.figure.Figure
        The figure of these axes, for ``figure_.savefig("plot.png")``.
    """

    ax_: Axes
    figure_: Figure

    def __repr__(self) -> str:
        # Not the arrays: notebooks print what a cell returns beside its plot.
        return f"<{type(self).__name__}>"

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on ``ax``, or on a new figure; return the display."""
        if ax is None:
            pyplot = require_module("matplotlib.pyplot", "plots", "cli")
            figure, ax = pyplot.subplots()
            self._fit(figure, None)
        self.ax_, self.figure_ = ax, ax.figure.figure
        self._draw(ax)
        return self

    def _draw(self, ax: Axes) -> None:
        """Draw on axes."""

    def _measure(self, width: float | None) -> tuple[float, float]:
        """Return the size of a new figure in inches; a width that is given is kept."""
        return width or WIDTH, 5.2

    def to_svg(self, title: str, width: float | None = None) -> str:
        """Return the plot as an ``<svg>`` element for an HTML page.

        Text stays text, ids are unique on the page, and colours are those of the page's variables
        ``--ink``, ``--muted``, ``--line``, ``--surface`` and ``--c0`` to ``--c5``, if it has them.

        Parameters
        ----------
        title : str
            What a screen reader announces.
        width : float, optional
            Inches; by default, that of a new figure.

        Examples
        --------
        >>> import rankshot as rs
        >>> display = rs.pages.ComparisonDisplay.from_results({"ConSE": (0.4, 0.3, 0.5)})
        >>> display.to_svg("Accuracy")[:24]
        '<svg class="chart" role='
        """
        matplotlib = require_module("matplotlib", "plots", "cli")
        figure = import_module("matplotlib.figure").Figure()
        self._fit(figure, width)
        stream = io.StringIO()
        settings = {"svg.fonttype": "none", "svg.hashsalt": "rankshot"}
        with matplotlib.rc_context(settings), warnings.catch_warnings():
            # The browser has fonts for the letters that Matplotlib's font does not have.
            warnings.filterwarnings("ignore", "Glyph .* missing from font")
            self.plot(figure.add_subplot())
            figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
        return _embed_svg(stream.getvalue(), title)

    def _fit(self, figure: Figure, width: float | None) -> None:
        width, height = self._measure(width)
        if height > MAX_HEIGHT:
            raise RankshotError(
                f"a plot of this many items would be {height:,.0f} inches high; choose some of "
                "them, or give axes to draw on (ax)"
            )
        figure.set_size_inches(width, max(2.0, height))
        figure.set_layout_engine("constrained", w_pad=PADDING, h_pad=PADDING)


def _embed_svg(drawn: str, title: str) -> str:
    """Return Matplotlib's SVG as an element that can stand beside others on a page."""
    tree = ET.fromstring(drawn)  # noqa: S314 - Matplotlib has written it
    salt = hashlib.sha256(drawn.encode()).hexdigest()[:8]
    names = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', drawn)
    referred = {first or second for first, second in names}
    for parent in list(tree.iter()):
        for child in list(parent):
            if child.tag.endswith(("}metadata", "}clipPath", "}style")):
                parent.remove(child)
    for element in tree.iter():
        element.tag = element.tag.rpartition("}")[2]
        given = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
        given.pop("clip-path", None)
        name = given.pop("id", "")
        if name in referred:
            given["id"] = f"{salt}-{name}"
        if given.get("href", "").startswith("#"):
            given["href"] = f"#{salt}-{given['href'][1:]}"
        if "style" in given:
            given["style"] = _adapt_style(given["style"], salt)
        for key in given.keys() & {"d", "x", "y"}:
            given[key] = re.sub(r"(\.\d\d)\d+", r"\1", given[key]).replace(" \n", " ")
        element.attrib = given
    heading = ET.Element("title")
    heading.text = title
    tree.insert(0, heading)
    size = {key: tree.attrib[key] for key in ("width", "height", "viewBox")}
    tree.attrib = {"class": "chart", "role": "img", "stroke-linejoin": "round", **size}
    return re.sub(r">\s+<", "><", ET.tostring(tree, encoding="unicode"))


def _adapt_style(style: str, salt: str) -> str:
    """Return a style with the page's colours, its font, and ids that are unique on the page."""
    # Matplotlib writes the font in one property or in several.
    style = re.sub(r"(font: [^';]*?px |font-family: )'[^;]*", r"\1var(--font,sans-serif)", style)
    style = re.sub("#[0-9a-f]{6}", lambda found: PAGE_COLOURS.get(found[0], found[0]), style)
    return style.replace("url(#", f"url(#{salt}-").replace("; ", ";").replace(": ", ":")


def choose_style(number: int) -> dict[str, Any]:
    """Return the style of a line that differs from others in colour and in shape."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": LINES[number % len(LINES)],
        "markersize": 5,
    }


def hide_spines(ax: Axes, *sides: str) -> None:
    """Remove some of the lines around axes."""
    for side in sides:
        ax.spines[side].set_visible(False)


def draw_intervals(ax: Axes, intervals: NDArray[Any]) -> None:
    """Draw (estimate, low, high) of each row; rows with NaN are left out."""
    y = range(len(intervals))
    ax.hlines(y, *intervals[:, 1:].T, color=COLOURS[0], linewidth=1.5)
    ax.plot(intervals[:, 0], y, MARKERS[0], color=COLOURS[0], markersize=5)


def name_rows(ax: Axes, names: list[str]) -> None:
    """Write names at the left, the first at the top, and draw lines only for the numbers below."""
    ax.set_yticks(range(len(names)), [shorten(name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color=GRID)
    ax.set_axisbelow(True)
    hide_spines(ax, "top", "right", "left")


def draw_matrix(
    ax: Axes,
    percent: NDArray[Any],
    names: list[str],
    colours: str | Colormap,
    label: str,
    texts: Sequence[tuple[int, int, str]] = (),
) -> None:
    """Draw a square matrix of numbers from 0 to 100 with its names; ``texts`` are (i, j, text)."""
    image = ax.imshow(percent, cmap=colours, vmin=0, vmax=100)
    ax.figure.colorbar(image, ax=ax, fraction=0.04, pad=0.02).set_label(label)
    for i, j, text in texts:
        red, green, blue, alpha = image.to_rgba(percent[i, j])
        is_dark = alpha * (1 - (red + green + blue) / 3) > DARKNESS
        # A dark page replaces white by its paper and black by its ink, but not the opaque cells.
        ink = "#fefefe" if is_dark else "#010101" if alpha == 1 else "black"
        ax.text(j, i, text, fontsize=NUMBER_SIZE, ha="center", va="center", color=ink)
    short = [shorten(name) for name in names]
    side, room = measure_matrix(names)
    turned = room > side / len(names)
    ax.set_xticks(range(len(names)), short, rotation=90 if turned else 0, fontsize=8)
    ax.set_yticks(range(len(names)), short, fontsize=8)
    ax.tick_params(length=0)


def measure_matrix(names: list[str], cell: float = CELL) -> tuple[float, float]:
    """Return the side of a square matrix and the room for its names, in inches."""
    return max(2.4, cell * len(names)), LETTER * max(len(shorten(name)) for name in names) + 0.3


def shorten(name: str, letters: int = MAX_LETTERS) -> str:
    """Leave out the middle of a long name: names often differ at their ends."""
    half = letters // 2
    short = name if len(name) <= letters else f"{name[: half - 1]}…{name[-half:]}"
    # SVG has no control characters, and text between two dollar signs would be a formula.
    return re.sub(r"[\x00-\x1f\x7f]", " ", short).replace("$", r"\$")
