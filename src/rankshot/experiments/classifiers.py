"""A trained linear classifier as numbers: what it says of inputs, and how it is kept in a file."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import LinearSVC

from rankshot.core.blocks import row_blocks
from rankshot.core.text_files import replace_file
from rankshot.zeroshot.platt import PlattScaling
from rankshot.zeroshot.scores import Kind, Scores, count_pair_wins

Labels = NDArray[np.str_]
Features = NDArray[np.float32]
ARRAYS = ("kind", "classes", "coef", "intercept", "fingerprint")
_UNREADABLE = (
    OSError,
    EOFError,
    KeyError,
    ValueError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What reading raises where there is no file, half of one, or one that somebody else wrote."""
Announce = Callable[[str], None]
SETTINGS = ("one-vs-rest", "one-vs-one", "multiclass")
"""The paper's: support vector machines with Platt's scaling, twice, and logistic regression."""
LEAST_SQUARES = "least squares"
"""One-vs-rest by ridge regression to ±1: a classifier that trains in less than a second."""
KINDS: dict[str, Kind] = {
    "one-vs-rest": "one-vs-rest",
    "one-vs-one": "one-vs-one",
    "multiclass": "multiclass",
    LEAST_SQUARES: "one-vs-rest",
}


# -------------------- experiments.linear_classifier
# A trained linear classifier as numbers: what it says of inputs, and how it is kept in a file.


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

    def predict(self, X: Features) -> Labels:
        """Return the class of the highest score, or of most pairs won."""
        found = np.empty(len(X), np.intp)
        for rows in row_blocks(len(X), len(self.coef)):
            values = self.scores(X[rows]).values
            if self.kind == "one-vs-one":
                values = count_pair_wins(values, len(self.classes))
            found[rows] = values.argmax(axis=1)
        return np.array(self.classes)[found]

    def with_platt_scaling(self, X: Features, y: Labels) -> LinearClassifier:
        """Return it with Platt's scaling, fitted to inputs that it was not trained on.

        Platt's log-odds a f + b are linear in the scores, and so in the inputs.
        """
        platt = PlattScaling().fit(self.scores(X), y)
        slopes = platt.slopes_.astype(np.float32)
        intercept = slopes * self.intercept + platt.intercepts_.astype(np.float32)
        return LinearClassifier(self.kind, self.classes, slopes[:, None] * self.coef, intercept)

    def save(self, path: Path, fingerprint: str) -> None:
        """Write it to a .npz, with a mark of what it was trained on."""
        with replace_file(path) as stream:
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
            arrays = _read_arrays(path)
        except _UNREADABLE:
            return None
        if str(arrays["fingerprint"]) != fingerprint:
            return None
        kind: Kind = str(arrays["kind"])  # type: ignore[assignment]
        classes = tuple(arrays["classes"].tolist())
        return cls(kind, classes, arrays["coef"], arrays["intercept"])


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of a file in which no byte has changed since it was written."""
    # NumPy reads as many bytes as an array's head says: a damaged head may hide damage.
    with zipfile.ZipFile(path) as archive:
        if (damaged := archive.testzip()) is not None:
            raise zipfile.BadZipFile(f"{path}: {damaged} is damaged")
    with np.load(path, allow_pickle=False) as found:
        return {name: found[name] for name in ARRAYS}


# -------------------- experiments.training
# The paper's three settings, and least squares, trained by scikit-learn on the same inputs.


def make_estimator(setting: str, C: float) -> Any:
    """Return a classifier, not trained. A larger ``C`` is less regularisation in all of them."""
    match setting:
        case "one-vs-rest":
            return LinearSVC(C=C, dual=True, random_state=0)
        case "one-vs-one":
            return OneVsOneClassifier(LinearSVC(C=C, dual=True, random_state=0), n_jobs=-1)
        case "multiclass":
            return LogisticRegression(C=C, max_iter=500)
    return RidgeClassifier(alpha=1 / C)


def train_classifier(setting: str, C: float, X: Features, y: Labels) -> LinearClassifier:
    """Train a classifier, and return its numbers."""
    # A second thread makes these small matrix products slower, not faster.
    with import_module("threadpoolctl").threadpool_limits(1):
        model = make_estimator(setting, C).fit(X, y)
    classes = tuple(map(str, model.classes_))
    if setting == "one-vs-one":
        # scikit-learn's scores of a pair are positive for its second class; ours for the first.
        coef = -np.concatenate([pair.coef_ for pair in model.estimators_])
        intercept = -np.concatenate([pair.intercept_ for pair in model.estimators_])
    else:
        coef, intercept = model.coef_, model.intercept_
    return LinearClassifier(
        KINDS[setting], classes, coef.astype(np.float32), intercept.astype(np.float32)
    )


@dataclass(frozen=True, eq=False)
class ClassifierCache:
    """Trains classifiers on some inputs, and keeps those that are finished.

    Attributes
    ----------
    name : str
        Of the inputs, for the names of files.
    X, y : ndarrays
        The inputs and their classes.
    directory : Path
        Where finished classifiers are kept.
    announce : callable
        Is told what is trained next.
    """

    name: str
    X: Features
    y: Labels
    directory: Path
    announce: Announce

    def load_or_train(self, setting: str, C: float) -> LinearClassifier:
        """Return a classifier trained on the inputs, or kept from an earlier run."""
        path = self.directory / f"{self.name}-{setting.replace(' ', '-')}-{C:g}.npz"
        mark = self._fingerprint(setting, C)
        if (kept := LinearClassifier.load(path, mark)) is not None:
            return kept
        self.announce(f"training {setting}, C = {C:g}, on {len(set(self.y))} classes")
        model = train_classifier(setting, C, self.X, self.y)
        path.parent.mkdir(parents=True, exist_ok=True)
        model.save(path, mark)
        return model

    def _fingerprint(self, setting: str, C: float) -> str:
        """Return a mark of all that the classifier depends on."""
        digest = hashlib.sha256(np.ascontiguousarray(self.X).tobytes())
        digest.update("\n".join([*self.y.tolist(), repr(make_estimator(setting, C))]).encode())
        return digest.hexdigest()
