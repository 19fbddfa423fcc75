"""Methods and sources against classifiers: a table of accuracies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.errors import RankshotError, shown
from rankshot.zeroshot.conse import ConSE
from rankshot.zeroshot.decisions import Decisions
from rankshot.zeroshot.direct_similarity import DirectSimilarity
from rankshot.zeroshot.knowledge import Knowledge
from rankshot.zeroshot.metrics import ROUNDING, Interval, wilson_interval
from rankshot.zeroshot.scores import Scores


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


@dataclass(frozen=True, eq=False)
class Contender:
    """A head, what it is to be fitted to, and how to name the two."""

    method: str
    source: str
    head: Decisions
    knowledge: Knowledge

    def measured(self, scores: Mapping[str, Scores], truth: NDArray[np.str_]) -> ComparisonRow:
        """Fit the head, and measure it with every classifier's scores of the same inputs."""
        self.head.fit(self.knowledge)
        needs_classes = isinstance(self.head, DirectSimilarity | ConSE)
        cells = [
            None
            if needs_classes and table.kind == "one-vs-one"
            else wilson_interval(int((self.head.predict(table) == truth).sum()), len(truth))
            for table in scores.values()
        ]
        return ComparisonRow(self.method, self.source, tuple(cells))
