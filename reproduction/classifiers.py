"""Linear classifiers of the seen classes: trained, scored, and cached in files."""

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
from scipy.sparse import issparse
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsOneClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from rankshot.core.arrays import row_blocks
from rankshot.core.files import replace_file
from rankshot.zeroshot.paper.ranking_methods import score_by_pair_wins
from rankshot.zeroshot.scores import Kind, Scores
from reproduction.benchmark import Features, Labels
from reproduction.platt import fit_platt

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
"""Errors of reading a file that is missing, incomplete or not a saved classifier."""
AnnounceStep = Callable[[str], None]
"""Called with the name of the next step."""
SETTINGS = ("one-vs-rest", "one-vs-one", "multiclass")
"""The paper's classifiers: two kinds of support vector machines with Platt scaling, and logistic
regression."""
LEAST_SQUARES = "least squares"
"""One-vs-rest by ridge regression to ±1; training takes less than a second."""
KINDS: dict[str, Kind] = {
    "one-vs-rest": "one-vs-rest",
    "one-vs-one": "one-vs-one",
    "multiclass": "multiclass",
    LEAST_SQUARES: "one-vs-rest",
}


@dataclass(frozen=True, eq=False)
class LinearClassifier:
    """A trained linear classifier: scores w'x + b, one column per class or per pair of classes."""

    kind: Kind
    classes: tuple[str, ...]
    coef: NDArray[np.float32]
    intercept: NDArray[np.float32]

    def scores(self, X: Features) -> Scores:
        """Return the scores of inputs."""
        return Scores(X @ self.coef.T + self.intercept, self.classes, self.kind)

    def predict(self, X: Features) -> Labels:
        """Return the class with the highest score, or with the most pairs won."""
        found = np.empty(X.shape[0], np.intp)
        for rows in row_blocks(X.shape[0], len(self.coef)):
            values = self.scores(X[rows]).columns
            if self.kind == "one-vs-one":
                values = score_by_pair_wins(values, len(self.classes))
            found[rows] = values.argmax(axis=1)
        return np.array(self.classes)[found]

    def with_platt_scaling(self, X: Features, y: Labels) -> LinearClassifier:
        """Return the classifier with Platt scaling, fitted to inputs not used for training.

        Platt's log-odds a f + b are linear in the scores, and therefore in the inputs.
        """
        slopes, levels = (part.astype(np.float32) for part in fit_platt(self.scores(X), y))
        intercept = slopes * self.intercept + levels
        return LinearClassifier(self.kind, self.classes, slopes[:, None] * self.coef, intercept)

    def standardize(self, X: Features) -> LinearClassifier:
        """Return the classifier whose scores of these inputs have mean 0 and variance 1."""
        scaler = StandardScaler().fit(self.scores(X).columns)
        mean, std = (part.astype(np.float32) for part in (scaler.mean_, scaler.scale_))
        return LinearClassifier(
            self.kind, self.classes, self.coef / std[:, None], (self.intercept - mean) / std
        )

    def save(self, path: Path, fingerprint: str) -> None:
        """Write the classifier to an .npz file, with a fingerprint of its training data."""
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
        """Read a classifier; None if there is none with this fingerprint.

        A damaged or foreign file also gives None, so that the classifier is trained again.
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
    """Read the arrays of a file after checking that it is not damaged."""
    # NumPy reads as many bytes as an array's header says; a damaged header could hide damage.
    with zipfile.ZipFile(path) as archive:
        if (damaged := archive.testzip()) is not None:
            raise zipfile.BadZipFile(f"{path}: {damaged} is damaged")
    with np.load(path, allow_pickle=False) as found:
        return {name: found[name] for name in ARRAYS}


# ---- Training


def make_estimator(setting: str, C: float) -> Any:
    """Return an untrained classifier. A larger ``C`` means less regularisation for all of them."""
    match setting:
        case "one-vs-rest":
            return LinearSVC(C=C, dual=True, random_state=0)
        case "one-vs-one":
            return OneVsOneClassifier(LinearSVC(C=C, dual=True, random_state=0), n_jobs=-1)
        case "multiclass":
            return LogisticRegression(C=C, max_iter=500)
    return RidgeClassifier(alpha=1 / C)


def train_classifier(setting: str, C: float, X: Features, y: Labels) -> LinearClassifier:
    """Train a classifier and return it in its own linear form."""
    # These matrix products are small; a second thread would make them slower.
    with import_module("threadpoolctl").threadpool_limits(1):
        model = make_estimator(setting, C).fit(X, y)
    classes = tuple(map(str, model.classes_))
    if setting == "one-vs-one":
        # In scikit-learn the score of a pair is positive for its second class, here for the first.
        coef = -np.concatenate([pair.coef_ for pair in model.estimators_])
        intercept = -np.concatenate([pair.intercept_ for pair in model.estimators_])
    else:
        coef, intercept = model.coef_, model.intercept_
    return LinearClassifier(
        KINDS[setting], classes, coef.astype(np.float32), intercept.astype(np.float32)
    )


def average_classifiers(
    one: LinearClassifier, other: LinearClassifier, X: Features
) -> LinearClassifier:
    """Return the classifier whose scores are the means of the standardised scores of two others.

    A mean of linear scores is linear again. The scores are standardised by the inputs ``X``, which
    were not used for training, because two classifiers have scores of different scales.
    """
    one, other = one.standardize(X), other.standardize(X)
    return LinearClassifier(
        "one-vs-rest",
        one.classes,
        np.float32(0.5) * (one.coef + other.coef),
        np.float32(0.5) * (one.intercept + other.intercept),
    )


@dataclass(frozen=True, eq=False)
class ClassifierCache:
    """Trains classifiers on one set of inputs, and caches them in files."""

    name: str
    X: Features
    y: Labels
    directory: Path
    announce: AnnounceStep

    def load_or_train(self, setting: str, C: float) -> LinearClassifier:
        """Return a classifier from its file, or train it and write the file."""
        path = self.directory / f"{self.name}-{setting.replace(' ', '-')}-{C:g}.npz"
        fingerprint = self._fingerprint(setting, C)
        if (saved := LinearClassifier.load(path, fingerprint)) is not None:
            return saved
        self.announce(f"training {setting}, C = {C:g}, on {len(set(self.y))} classes")
        model = train_classifier(setting, C, self.X, self.y)
        path.parent.mkdir(parents=True, exist_ok=True)
        model.save(path, fingerprint)
        return model

    def _fingerprint(self, setting: str, C: float) -> str:
        """Return a hash of all that the classifier depends on."""
        X: Any = self.X
        arrays = (X.data, X.indices, X.indptr) if issparse(X) else (X,)
        digest = hashlib.sha256()
        for array in arrays:
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update("\n".join([*self.y.tolist(), repr(make_estimator(setting, C))]).encode())
        return digest.hexdigest()
