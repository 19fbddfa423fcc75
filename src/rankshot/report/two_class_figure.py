"""Accuracies on pairs of classes, drawn as dots with intervals, a mark a method."""

from __future__ import annotations

from rankshot.experiments.tables import ResultTable
from rankshot.experiments.two_classes import TwoClasses
from rankshot.report.charts import PlotLine, interval_plot
from rankshot.report.svg import Html, share_axis
from rankshot.report.texts import share_text


def two_class_lines(found: TwoClasses) -> list[PlotLine]:
    """Return a line a pair, and one for the mean over all pairs."""
    lines = [
        PlotLine(f"{one} – {other}", cells, "two classes")
        for (one, other), cells in zip(found.pairs, found.accuracy, strict=True)
    ]
    return [*lines, PlotLine(f"all {found.n_pairs} pairs", found.mean, "mean")]


def two_class_drawing(found: TwoClasses) -> Html:
    """Return the plot; the names of its lines stand outside."""
    lines = two_class_lines(found)
    axis = share_axis([value for row in lines for cell in row.cells if cell for value in cell])
    title = (
        f"Accuracy on {len(found.pairs)} pairs of classes by {len(found.methods)} methods, from "
        f"{share_text(axis.low)} on the left to {share_text(axis.high)} on the right"
    )
    return interval_plot(lines, found.methods, axis, title)


def two_class_table(found: TwoClasses) -> ResultTable:
    """Return the same figures as a table."""
    rows = tuple((row.label, *row.cells) for row in two_class_lines(found))
    return ResultTable("figure 4", "The same as a table", ("pair", *found.methods), rows)
