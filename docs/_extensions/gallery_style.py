"""The style of all plots in the gallery: that of the displays in rankshot.pages."""

from typing import Any

from cycler import cycler
from matplotlib import rcParams

from rankshot.pages.plots import COLOURS, GRID


def use_plot_style(_gallery: dict[str, Any], _file: str) -> None:
    """Set the colours of the displays, and leave out frames; sphinx-gallery calls it."""
    rcParams.update(
        {
            "axes.prop_cycle": cycler(color=COLOURS),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "grid.color": GRID,
            "legend.frameon": False,
        }
    )
