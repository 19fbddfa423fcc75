"""What a review gives: predictions, labels, the head and a report, as files in its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rankshot.core.errors import RankshotError, format_count
from rankshot.core.files import replace_file
from rankshot.core.tables import ID, LABEL, open_csv_writer
from rankshot.report.contents import LEAD_WITH_EXAMPLES, Report
from rankshot.report.page import render_report, write_page
from rankshot.report.pictures import Outcomes, build_gallery, choose_pictures, describe_choice
from rankshot.report.predictions import count_predictions
from rankshot.review.inputs import ShownInputs
from rankshot.review.session import Review
from rankshot.zeroshot.files.predictions import open_predictions
from rankshot.zeroshot.heads.seen_and_new import NONE_OF_THESE

PREDICTIONS, LABELS, HEAD, REPORT = "predictions.csv", "labels.csv", "head.rankshot", "report.html"
BLOCK = 10_000
"""Rows that are written at a time."""


class Results:
    """Writes the files of a review."""

    def __init__(self, review: Review, inputs: ShownInputs, folder: Path, score_type: str) -> None:
        self._review = review
        self._inputs = inputs
        self._folder = folder
        self._score_type = score_type

    def write(self, name: str) -> Path:
        """Write one of the files as it is now, and return it."""
        path = self._folder / name
        {
            PREDICTIONS: self._write_predictions,
            LABELS: self._write_labels,
            HEAD: self._write_head,
            REPORT: self._write_report,
        }[name](path)
        return path

    def write_all(self) -> None:
        """Write all files but the report."""
        for name in (LABELS, HEAD, PREDICTIONS):
            self.write(name)

    def _write_labels(self, path: Path) -> None:
        """Write the labels that are classes: `--examples` takes them."""
        review = self._review
        labels = dict(sorted(dict(review.labels).items()))
        rows = [(review.ids[row], name) for row, name in labels.items() if name != NONE_OF_THESE]
        with replace_file(path) as stream:
            open_csv_writer(stream).writerows([(ID, LABEL), *rows])

    def _write_head(self, path: Path) -> None:
        review = self._review
        ids = [review.ids[row] for row in dict(review.labels)]
        provenance = {"score_type": self._score_type, "examples": ids}
        review.predicted.head.save(path, provenance=provenance)

    def _write_predictions(self, path: Path) -> None:
        """Write all inputs: those with a label have this class with the probability 1."""
        review = self._review
        labels, head = dict(review.labels), review.predicted.head
        classes = sorted({*head.classes_.tolist(), *labels.values()})
        place = {name: j for j, name in enumerate(classes)}
        columns = [place[name] for name in head.classes_.tolist()]
        with open_predictions(path, classes) as writer:
            for begin in range(0, len(review.ids), BLOCK):
                rows = range(begin, min(begin + BLOCK, len(review.ids)))
                table = np.zeros((len(rows), len(classes)))
                table[:, columns] = head.predict_proba(review.learner.scores[rows])
                names = review.predicted.labels[begin : rows.stop].astype(object)
                for i, row in enumerate(rows):
                    if row in labels:
                        names[i], table[i] = labels[row], 0.0
                        table[i, place[labels[row]]] = 1.0
                writer.write(review.ids[begin : rows.stop], names, table)

    def _write_report(self, path: Path) -> None:
        review, predicted = self._review, self._review.predicted
        labels, classes = dict(review.labels), predicted.head.classes_.tolist()
        proba = predicted.head.predict_proba(review.learner.scores)
        outcomes = Outcomes(predicted.labels, proba, None, classes)
        kinds = [self._inputs.kind(row) for row in range(len(review.ids))]
        images = np.flatnonzero(np.array(kinds) == "image")
        pictures: dict[int, Any] = {}
        for row in choose_pictures(outcomes, images) if len(images) else ():
            try:
                pictures[row] = self._inputs.thumbnail(row)
            except RankshotError:
                continue
        facts = [("labelled by people", f"{len(labels):,}")]
        if (audit := review.last_audit) is not None:
            facts.append(("correct in the last audit", format_audit(audit)))
        page = Report(
            "Reviewed predictions",
            lead=LEAD_WITH_EXAMPLES,
            facts=tuple(facts),
            overview=count_predictions(predicted.labels, proba, tuple(classes)),
            gallery=build_gallery(outcomes, review.ids, pictures, {}),
            gallery_choice=describe_choice(outcomes, list(pictures), len(images))
            if pictures
            else "",
        )
        write_page(render_report(page), path)


def format_audit(audit: dict[str, Any]) -> str:
    """Return the result of an audit as text."""
    share = audit["n_correct"] / audit["n_checked"] if audit["n_checked"] else 0.0
    checked = format_count(audit["n_checked"], "input")
    return f"{share:.0%} [{audit['low']:.0%}, {audit['high']:.0%}] of {checked}"
