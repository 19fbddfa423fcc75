"""Which inputs the page shows, and in what order: groups, filters, pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankshot.review.inputs import ShownInputs
from rankshot.review.learning import Predicted
from rankshot.review.session import Review

PAGE = 60
"""Inputs on a page."""
N_USEFUL = 30
"""Inputs whose labels help most, found at once."""
Order = Literal["groups", "useful"]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Query:
    """What somebody wants to see.

    ``name`` is a predicted or given class, ``least`` and ``most`` bound the probability, and
    ``text`` is a part of ids and texts. ``labelled`` keeps only inputs with a label, or without.
    """

    order: Order = "groups"
    name: str = ""
    least: float = 0.0
    most: float = 1.0
    text: str = ""
    labelled: bool | None = None
    page: int = 0


class Listing:
    """Orders and filters the inputs of a review."""

    def __init__(self, review: Review, inputs: ShownInputs) -> None:
        self._review = review
        self._inputs = inputs
        texts = inputs.texts
        self._searched = [f"{name}\n{texts.get(name, '')}".casefold() for name in review.ids]
        self._sorted: tuple[Any, Rows] = None, np.empty(0, np.intp)
        self._useful: tuple[Any, Rows] = None, np.empty(0, np.intp)

    def find(self, query: Query) -> dict[str, Any]:
        """Return one page of inputs, and how many there are."""
        predicted = self._review.predicted
        rows = self._filter(self._order(query, predicted), query, predicted)
        n_pages = max(1, -(-len(rows) // PAGE))
        page = min(query.page, n_pages - 1)
        shown = rows[page * PAGE : (page + 1) * PAGE].tolist()
        return {
            "n": len(rows),
            "page": page,
            "n_pages": n_pages,
            "version": self._review.version,
            "rows": [self.describe(row) for row in shown],
        }

    def _order(self, query: Query, predicted: Predicted) -> Rows:
        """Return the rows in their order."""
        if query.order == "useful":
            return self._find_useful(predicted)
        version, rows = self._sorted
        if version is not predicted:
            rows = np.lexsort((-predicted.proba, predicted.labels))
            self._sorted = predicted, rows
        return rows

    def _find_useful(self, predicted: Predicted) -> Rows:
        version, rows = self._useful
        left = self._review.unlabelled()
        # Found again when the head has learned, or when all of them have labels.
        if version is not predicted or not np.isin(rows, left).any():
            rows = self._review.learner.find_useful(predicted.head, left, N_USEFUL)
            self._useful = predicted, rows
        return rows

    def _filter(self, rows: Rows, query: Query, predicted: Predicted) -> Rows:
        labels = dict(self._review.labels)
        keep = np.ones(len(rows), bool)
        if query.least > 0 or query.most < 1:
            # As it is shown, in whole percents.
            proba = predicted.proba[rows].round(2)
            keep &= (proba >= query.least) & (proba <= query.most)
        if query.labelled is not None or query.name:
            given = np.array([labels.get(row, "") for row in rows.tolist()], object)
            if query.labelled is not None:
                keep &= (given != "") == query.labelled
            if query.name:
                guessed = (given == "") & (predicted.labels[rows] == query.name)
                keep &= guessed | (given == query.name)
        rows = rows[keep]
        if query.text:
            wanted = query.text.casefold()
            rows = np.array([row for row in rows.tolist() if wanted in self._searched[row]], int)
        return rows

    def describe(self, row: int) -> dict[str, Any]:
        """Return what the page shows of an input."""
        review, predicted = self._review, self._review.predicted
        return {
            "row": row,
            "id": review.ids[row],
            "kind": self._inputs.kind(row),
            "text": self._inputs.text(row),
            "label": str(predicted.labels[row]),
            "proba": float(predicted.proba[row]),
            "second": str(predicted.second[row]),
            "second_proba": float(predicted.second_proba[row]),
            "given": review.labels.get(row),
        }
