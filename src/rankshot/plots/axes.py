"""What all displays share: their axes, colours that all people tell apart, and short names."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from rankshot.core.errors import RankshotError
from rankshot.core.validation import require_module

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's colours, which colour-blind people tell apart; the markers differ, too."""
MARKERS = "osD^vP"
LINES = ("-", "--", ":", "-.")
NUMBER_SIZE = 7
"""Points: the numbers in a picture."""
LONGEST_NAME = 32
ROW_HEIGHT = 0.24
"""Inches per item: names in the default font do not overlap."""
CELL = 0.18
"""Inches per row and column of a matrix."""
LETTER = 0.07
"""Inches per letter of a name beside a matrix."""
PADDING = 0.08
"""Inches around everything."""
HIGHEST = 150
"""Inches: Matplotlib cannot draw much more."""


class Display:
    """A picture on Matplotlib axes: `plot` draws what the object holds.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Where `plot` has drawn.
    figure_ : matplotlib.figure.Figure
        The figure of these axes, for ``figure_.savefig("picture.png")``.
    """

    ax_: Any
    figure_: Any

    def __repr__(self) -> str:
        # Not the arrays: notebooks print what a cell returns beside its picture.
        return f"<{type(self).__name__}>"

    def _open_axes(self, ax: Any, width: float, height: float) -> Any:
        """Return the axes that are given, or those of a new figure of this size in inches."""
        pyplot = require_module("matplotlib.pyplot", "plots", "plot")
        if ax is None:
            if height > HIGHEST:
                raise RankshotError(
                    f"a plot of so many items would be {height:,.0f} inches high; choose some of "
                    "them, or give axes to draw on (ax)"
                )
            figure, ax = pyplot.subplots(figsize=(width, max(2.0, height)), layout="constrained")
            figure.get_layout_engine().set(w_pad=PADDING, h_pad=PADDING)
        elif not hasattr(ax, "get_xlim"):
            raise RankshotError(f"ax must be Matplotlib axes, not {type(ax).__name__}")
        self.ax_, self.figure_ = ax, ax.figure
        return ax


def choose_style(colour: int, shape: int) -> dict[str, Any]:
    """Return a style for lines that differ in colour or in shape."""
    return {
        "color": COLOURS[colour % len(COLOURS)],
        "marker": MARKERS[shape % len(MARKERS)],
        "linestyle": LINES[shape % len(LINES)],
        "markersize": 5,
    }


def hide_spines(ax: Any, *sides: str) -> None:
    """Remove some of the lines around axes."""
    for side in sides:
        ax.spines[side].set_visible(False)


def name_rows(ax: Any, names: list[str]) -> None:
    """Write names at the left, the first at the top, and draw lines only for the numbers below."""
    ax.set_yticks(range(len(names)), [shorten(name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="0.9")
    ax.set_axisbelow(True)
    hide_spines(ax, "top", "right", "left")


def name_cells(ax: Any, names: list[str]) -> None:
    """Write the names of the rows and columns of a square matrix."""
    short = [shorten(name) for name in names]
    side, room = measure_matrix(names)
    turned = room > side / len(names)
    ax.set_xticks(range(len(names)), short, rotation=90 if turned else 0, fontsize=8)
    ax.set_yticks(range(len(names)), short, fontsize=8)
    ax.tick_params(length=0)


def measure_matrix(names: list[str], cell: float = CELL) -> tuple[float, float]:
    """Return the side of a square matrix and the room for its names, in inches."""
    return max(2.4, cell * len(names)), LETTER * max(len(shorten(name)) for name in names) + 0.3


def choose_names(*columns: NDArray[Any]) -> list[str]:
    """Return for each ranking the first label that it has in the columns, or its number."""
    return [
        next((str(label) for label in labels if label), str(row + 1))
        for row, labels in enumerate(zip(*columns, strict=True))
    ]


def shorten(name: str, letters: int = LONGEST_NAME) -> str:
    """Leave out the middle of a long name: names often differ at their ends."""
    half = letters // 2
    short = name if len(name) <= letters else f"{name[: half - 1]}…{name[-half:]}"
    # Matplotlib would read what stands between two dollar signs as a formula.
    return short.replace("$", r"\$")
