"""What a review gives: predictions, labels, the head and a report, as files in its folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from rankshot.core.files import replace_file, replace_own, require_own
from rankshot.core.tables import ID, LABEL, open_csv_writer
from rankshot.pages.images import Outcomes
from rankshot.pages.page import Card, write_page
from rankshot.pages.report import LEAD, build_report, render_report
from rankshot.recognition.run_folder import SCORE_TYPES
from rankshot.review.inputs import ShownInputs
from rankshot.review.session import Review
from rankshot.zeroshot.files.predictions import open_predictions
from rankshot.zeroshot.metrics import Interval
from rankshot.zeroshot.seen_and_new import NONE_OF_THESE

LABELS, HEAD, PREDICTIONS, REPORT = "labels.csv", "head.rankshot", "predictions.csv", "report.html"
MANIFEST = "review.json"
"""The hashes of the files that a review has written."""
BLOCK = 10_000
"""Rows that are written at a time."""


class Results:
    """Writes the files of a review: never over a file that a person has written or changed.

    The manifest in the folder has the hash of each file that was written here. With ``overwrite``,
    files that are not in it are replaced as well.
    """

    def __init__(
        self, review: Review, inputs: ShownInputs, folder: Path, *, overwrite: bool = False
    ) -> None:
        self._review = review
        self._inputs = inputs
        self._folder = folder
        self._overwrite = overwrite
        self._writers: dict[str, Callable[[Path], None]] = {
            PREDICTIONS: self._write_predictions,
            LABELS: self._write_labels,
            HEAD: self._write_head,
            REPORT: self._write_report,
        }
        self.names = list(self._writers)
        for name in self.names:
            require_own(folder / name, folder / MANIFEST, overwrite=overwrite)

    def write(self, name: str) -> Path:
        """Write one of the files as it is now, and return it."""
        path, manifest = self._folder / name, self._folder / MANIFEST
        with replace_own(path, manifest, overwrite=self._overwrite) as temporary:
            self._writers[name](temporary)
        return path

    def write_all(self) -> None:
        """Write all files but the report."""
        for name in (LABELS, HEAD, PREDICTIONS):
            self.write(name)

    def _write_labels(self, path: Path) -> None:
        """Write the labels that are classes: `--examples` takes them."""
        ids, labels = self._review.ids, sorted(dict(self._review.labels).items())
        rows = [(ids[row], name) for row, name in labels if name != NONE_OF_THESE]
        with replace_file(path) as stream:
            open_csv_writer(stream).writerows([(ID, LABEL), *rows])

    def _write_head(self, path: Path) -> None:
        ids = [self._review.ids[row] for row in dict(self._review.labels)]
        kind = self._review.learner.scores.kind
        provenance = {"score_type": SCORE_TYPES[kind], "examples": ids}
        self._review.predicted.head.save(path, provenance=provenance)

    def _write_predictions(self, path: Path) -> None:
        """Write all inputs: those with a label have this class with the probability 1."""
        review = self._review
        ids, labels, predicted = review.ids, dict(review.labels), review.predicted
        own = predicted.head.classes_.tolist()
        classes = [*own, *sorted({*labels.values()} - {*own})]
        with open_predictions(path, classes) as writer:
            for begin in range(0, len(ids), BLOCK):
                rows = range(begin, min(begin + BLOCK, len(ids)))
                table = np.zeros((len(rows), len(classes)))
                table[:, : len(own)] = predicted.head.predict_proba(review.learner.scores[rows])
                names = predicted.labels[begin : rows.stop].astype(object)
                for row in labels.keys() & {*rows}:
                    names[row - begin], table[row - begin] = labels[row], 0.0
                    table[row - begin, classes.index(labels[row])] = 1.0
                writer.write(ids[begin : rows.stop], names, table)

    def _write_report(self, path: Path) -> None:
        review, predicted = self._review, self._review.predicted
        classes = tuple(predicted.head.classes_.tolist())
        proba = predicted.head.predict_proba(review.learner.scores)
        cards, audited = [Card("Labelled by people", f"{len(review.labels):,}")], None
        if (audit := review.last_audit) and audit["n_checked"]:
            share = audit["n_correct"] / audit["n_checked"]
            audited = Interval(share, audit["low"], audit["high"])
            cards.append(Card("Checked in the last audit", f"{audit['n_checked']:,}"))
        page = build_report(
            "Reviewed predictions",
            Outcomes(review.ids, predicted.labels, proba, None, classes),
            images=self._inputs.find_images(),
            lead=LEAD,
            cards=cards,
            audited=audited,
        )
        write_page(render_report(page), path)
