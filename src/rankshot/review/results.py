"""What a review gives: predictions, labels, the head and a report, as files in its folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from rankshot.core.files import hash_file, read_hashes, replace_file, replace_own, require_own
from rankshot.core.tables import ID, LABEL, open_csv_writer
from rankshot.pages.build import build_report
from rankshot.pages.contents import EXAMPLES, LEAD_WITH_MORE, Card
from rankshot.pages.images import Outcomes, Thumbnail, read_images
from rankshot.pages.page import render_report, write_page
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
        self,
        review: Review,
        inputs: ShownInputs,
        folder: Path,
        score_type: str,
        *,
        overwrite: bool = False,
    ) -> None:
        self._review = review
        self._inputs = inputs
        self._folder = folder
        self._score_type = score_type
        self._manifest = folder / MANIFEST
        self._writers: dict[str, Callable[[Path], None]] = {
            PREDICTIONS: self._write_predictions,
            LABELS: self._write_labels,
            HEAD: self._write_head,
            REPORT: self._write_report,
        }
        self.names = list(self._writers)
        self._hashes = read_hashes(self._manifest)
        self._settle()
        for name in self.names:
            require_own(folder / name, self._manifest, overwrite=overwrite)
            if overwrite and (folder / name).exists():
                self._remember(name, hash_file(folder / name))

    def write(self, name: str) -> Path:
        """Write one of the files as it is now, and return it."""
        path = self._folder / name
        with replace_own(path, self._manifest) as temporary:
            self._writers[name](temporary)
            self._remember(name, hash_file(temporary))
        return path

    def write_all(self) -> None:
        """Write all files but the report."""
        for name in (LABELS, HEAD, PREDICTIONS):
            self.write(name)

    def _remember(self, name: str, digest: str) -> None:
        """Write the hash of a file that is about to be replaced; that of the old one is kept."""
        before = {name: self._hashes[name]} if name in self._hashes else {}
        self._hashes[name] = digest
        with replace_file(self._manifest) as stream:
            json.dump({"files": self._hashes, "before": before}, stream, indent=1)

    def _settle(self) -> None:
        """Go back to the hash of an old file that a process was killed before replacing."""
        before = read_hashes(self._manifest, "before")
        for name, digest in before.items():
            path = self._folder / name
            if path.is_file() and hash_file(path) == digest != self._hashes.get(name):
                self._remember(name, digest)

    def _write_labels(self, path: Path) -> None:
        """Write the labels that are classes: `--examples` takes them."""
        ids, labels = self._review.ids, sorted(dict(self._review.labels).items())
        rows = [(ids[row], name) for row, name in labels if name != NONE_OF_THESE]
        with replace_file(path) as stream:
            open_csv_writer(stream).writerows([(ID, LABEL), *rows])

    def _write_head(self, path: Path) -> None:
        ids = [self._review.ids[row] for row in dict(self._review.labels)]
        provenance = {"score_type": self._score_type, "examples": ids}
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
        outcomes = Outcomes(review.ids, predicted.labels, proba, None, classes)
        cards = [Card("Labelled by people", f"{len(review.labels):,}")]
        images: dict[int, Thumbnail] = {}
        notes: list[str] = []
        files = {
            row: file for row, file in enumerate(self._inputs.values) if isinstance(file, Path)
        }
        files = {row: file for row, file in files.items() if self._inputs.find_kind(row) == "image"}
        if self._inputs.folder is not None and files:
            images, notes = read_images(self._inputs.folder, files, outcomes)
        page = build_report(
            "Reviewed predictions",
            outcomes,
            images=images,
            lead=LEAD_WITH_MORE.format(EXAMPLES),
            cards=tuple(cards),
            notes=tuple(notes),
        )
        if page.overview is not None and (audit := review.last_audit) and audit["n_checked"]:
            share = audit["n_correct"] / audit["n_checked"]
            audited = Interval(share, audit["low"], audit["high"])
            cards.append(Card("Checked in the last audit", f"{audit['n_checked']:,}"))
            overview = page.overview._replace(audited=audited)
            page = replace(page, overview=overview, cards=tuple(cards))
        write_page(render_report(page), path)
