"""What a review gives: predictions, labels and the head, as files in its folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from rankshot.core.files import replace_file, replace_own, require_own
from rankshot.core.tables import ID, LABEL, open_csv_writer
from rankshot.recognition.run_folder import SCORE_TYPES
from rankshot.review.session import Review
from rankshot.zeroshot.joint_head import NONE_OF_THESE
from rankshot.zeroshot.tables import open_predictions

LABELS, HEAD, PREDICTIONS = "labels.csv", "head.rankshot", "predictions.csv"
MANIFEST = "review.json"
"""The hashes of the files that a review has written."""
BLOCK = 10_000
"""Rows that are written at a time."""


class Results:
    """Writes the files of a review: never over a file that a person has written or changed.

    The manifest in the folder has the hash of each file that was written here. With ``overwrite``,
    files that are not in it are replaced as well.
    """

    def __init__(self, review: Review, folder: Path, *, overwrite: bool = False) -> None:
        self._review = review
        self._folder = folder
        self._overwrite = overwrite
        self._writers: dict[str, Callable[[Path], None]] = {
            PREDICTIONS: self._write_predictions,
            LABELS: self._write_labels,
            HEAD: self._write_head,
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
        """Write all files."""
        for name in self.names:
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
