"""Which inputs the page shows, and in what order: groups, filters, pages."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from rankshot.review.inputs import ShownInputs
from rankshot.review.learning import Predicted
from rankshot.review.session import Review

PAGE = 60
"""Inputs on a page."""
N_USEFUL = 30
"""Inputs whose labels help most, found at once."""
Rows = NDArray[np.intp]
Text = Annotated[str, Field(max_length=500)]
Share = Annotated[float, Field(ge=0, le=1)]


class Query(BaseModel):
    """What somebody wants to see.

    ``name`` is a predicted or given class, ``least`` and ``most`` bound the probability, and
    ``text`` is a part of ids and texts. ``labelled`` keeps only inputs with a label, or without.
    ``only`` names rows, and everything else is ignored.
    """

    model_config = ConfigDict(extra="forbid")
    order: Literal["groups", "useful"] = "groups"
    name: Text = ""
    least: Share = 0.0
    most: Share = 1.0
    text: Text = ""
    labelled: bool | None = None
    page: Annotated[int, Field(ge=0, le=10**9)] = 0
    only: Annotated[str, Field(pattern=r"^(\d{1,9}(,\d{1,9})*)?$", max_length=10_000)] = ""


class Listing:
    """Orders and filters the inputs of a review."""

    def __init__(self, review: Review, inputs: ShownInputs) -> None:
        self._review = review
        self._inputs = inputs
        shown = zip(review.ids, inputs.values, strict=True)
        texts = (f"{name}\n{text if isinstance(text, str) else ''}" for name, text in shown)
        self._searched = [text.casefold() for text in texts]
        self._useful: tuple[Any, Rows] = None, np.empty(0, np.intp)

    def find(self, query: Query) -> dict[str, object]:
        """Return one page of inputs, and how many there are."""
        predicted = self._review.predicted
        if query.only:
            rows = np.array(query.only.split(","), int)
            return {"rows": [self.describe(row) for row in rows[rows < len(self._searched)]]}
        rows = predicted.order if query.order == "groups" else self._find_useful(predicted)
        rows = self._filter(rows, query, predicted)
        n_pages = max(1, -(-len(rows) // PAGE))
        page = min(query.page, n_pages - 1)
        return {
            "n": len(rows),
            "page": page,
            "n_pages": n_pages,
            "version": self._review.version,
            "rows": [self.describe(row) for row in rows[page * PAGE : (page + 1) * PAGE]],
        }

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
        # As it is shown, in whole percents.
        proba = predicted.proba[rows].round(2)
        keep = (proba >= query.least) & (proba <= query.most)
        if query.labelled is not None or query.name:
            given = np.array([labels.get(row, "") for row in rows.tolist()], object)
            if query.labelled is not None:
                keep &= (given != "") == query.labelled
            if query.name:
                keep &= np.where(given == "", predicted.labels[rows], given) == query.name
        rows = rows[keep]
        if wanted := query.text.casefold():
            rows = rows[[wanted in self._searched[row] for row in rows.tolist()]]
        return rows

    def describe(self, row: int) -> dict[str, object]:
        """Return what the page shows of an input."""
        review, predicted = self._review, self._review.predicted
        return {
            "row": int(row),
            "id": review.ids[row],
            "label": str(predicted.labels[row]),
            "proba": float(predicted.proba[row]),
            "second": str(predicted.second[row]),
            "second_proba": float(predicted.second_proba[row]),
            "given": review.labels.get(row),
            **self._inputs.describe(row),
        }
