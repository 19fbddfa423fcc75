"""Methods and sources against classifiers: a table of accuracies."""

from __future__ import annotations

from dataclasses import dataclass

from rankshot.ranking.errors import RankshotError, shown
from rankshot.zeroshot.metrics import ROUNDING, Interval


@dataclass(frozen=True)
class ComparisonRow:
    """The accuracy of one method with one source, with every classifier.

    Attributes
    ----------
    method, source : str
        Rows of one method are shown together.
    cells : tuple of Interval or None
        One for each classifier; None where the method cannot be used or was not.
    """

    method: str
    source: str
    cells: tuple[Interval | None, ...]

    def __post_init__(self) -> None:
        for place, cell in enumerate(self.cells):
            if cell is not None and not -ROUNDING <= cell.low <= cell.high <= 1 + ROUNDING:
                raise RankshotError(
                    f"{shown(self.method)}, {shown(self.source)}: cell {place}: {cell.estimate} "
                    f"from {cell.low} to {cell.high} is a void interval of shares from 0 to 1"
                )


@dataclass(frozen=True)
class Comparison:
    """Accuracies of methods and sources (rows) with classifiers (columns)."""

    classifiers: tuple[str, ...]
    rows: tuple[ComparisonRow, ...]
    caption: str = ""

    def __post_init__(self) -> None:
        for place, row in enumerate(self.rows):
            if len(row.cells) != len(self.classifiers):
                raise RankshotError(
                    f"row {place} ({shown(row.method)}, {shown(row.source)}) has "
                    f"{len(row.cells)} cells, but there are {len(self.classifiers)} classifiers"
                )

    def cell(self, method: str, source: str, classifier: str) -> Interval | None:
        """Return one accuracy."""
        column = self.classifiers.index(classifier)
        for row in self.rows:
            if (row.method, row.source) == (method, source):
                return row.cells[column]
        raise RankshotError(f"no row {method!r}, {source!r}")
