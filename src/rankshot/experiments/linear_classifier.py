"""A trained linear classifier as numbers: what it says of inputs, and how it is kept in a file."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.blocks import row_blocks
from rankshot.ranking.files import replacing
from rankshot.zeroshot.pair_wins import wins
from rankshot.zeroshot.platt import PlattScaling
from rankshot.zeroshot.scores import Kind, Scores

Labels = NDArray[np.str_]
Features = NDArray[np.float32]

ARRAYS = ("kind", "classes", "coef", "intercept", "fingerprint")

_NONE = (OSError, EOFError, KeyError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""What reading raises where there is no file, half of one, or one that somebody else wrote."""


@dataclass(frozen=True, eq=False)
class LinearClassifier:
    """Scores w'x + b, a column a class or a pair of classes.

    Attributes
    ----------
    kind : str
        That of its scores.
    classes : tuple of str
    coef : ndarray of shape (columns, d)
    intercept : ndarray of shape (columns,)
    """

    kind: Kind
    classes: tuple[str, ...]
    coef: NDArray[np.float32]
    intercept: NDArray[np.float32]

    def scores(self, X: Features) -> Scores:
        """Return what it says of inputs."""
        return Scores(X @ self.coef.T + self.intercept, self.classes, self.kind)

    def predicted(self, X: Features) -> Labels:
        """Return the class of the highest score, or of most pairs won."""
        found = np.empty(len(X), np.intp)
        for rows in row_blocks(len(X), len(self.coef)):
            values = self.scores(X[rows]).values
            if self.kind == "one-vs-one":
                values = wins(values, len(self.classes))
            found[rows] = values.argmax(axis=1)
        return np.array(self.classes)[found]

    def scaled(self, X: Features, y: Labels) -> LinearClassifier:
        """Return it with Platt's scaling, fitted to inputs that it was not trained on.

        Platt's log-odds a f + b are linear in the scores, and so in the inputs.
        """
        platt = PlattScaling().fit(self.scores(X), y)
        slopes = platt.slopes_.astype(np.float32)
        intercept = slopes * self.intercept + platt.intercepts_.astype(np.float32)
        return LinearClassifier(self.kind, self.classes, slopes[:, None] * self.coef, intercept)

    def save(self, path: Path, fingerprint: str) -> None:
        """Write it to a .npz, with a mark of what it was trained on."""
        with replacing(path) as stream:
            np.savez(
                stream.buffer,
                allow_pickle=False,
                kind=self.kind,
                classes=np.array(self.classes),
                coef=self.coef,
                intercept=self.intercept,
                fingerprint=fingerprint,
            )

    @classmethod
    def load(cls, path: Path, fingerprint: str) -> LinearClassifier | None:
        """Read it back; None where there is none, or one that was trained on something else.

        A file that is damaged, or not ours, is none: training again mends it.
        """
        try:
            arrays = _whole_arrays(path)
        except _NONE:
            return None
        if str(arrays["fingerprint"]) != fingerprint:
            return None
        kind: Kind = str(arrays["kind"])  # type: ignore[assignment]
        classes = tuple(arrays["classes"].tolist())
        return cls(kind, classes, arrays["coef"], arrays["intercept"])


def _whole_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of a file in which no byte has changed since it was written."""
    # NumPy reads as many bytes as an array's head says: a damaged head may hide damage.
    with zipfile.ZipFile(path) as archive:
        if (damaged := archive.testzip()) is not None:
            raise zipfile.BadZipFile(f"{path}: {damaged} is damaged")
    with np.load(path, allow_pickle=False) as found:
        return {name: found[name] for name in ARRAYS}
