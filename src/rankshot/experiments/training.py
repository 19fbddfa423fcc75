"""The paper's three settings, and least squares, trained by scikit-learn on the same inputs."""

from __future__ import annotations

import hashlib
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

from rankshot.experiments.linear_classifier import LinearClassifier
from rankshot.zeroshot.scores import Kind

Labels = NDArray[np.str_]
Features = NDArray[np.float32]
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


def estimator(setting: str, C: float) -> Any:
    """Return a classifier, not trained. A larger ``C`` is less regularisation in all of them."""
    match setting:
        case "one-vs-rest":
            return LinearSVC(C=C, dual=True, random_state=0)
        case "one-vs-one":
            return OneVsOneClassifier(LinearSVC(C=C, dual=True, random_state=0), n_jobs=-1)
        case "multiclass":
            return LogisticRegression(C=C, max_iter=500)
    return RidgeClassifier(alpha=1 / C)


def trained(setting: str, C: float, X: Features, y: Labels) -> LinearClassifier:
    """Train a classifier, and return its numbers."""
    # A second thread makes these small matrix products slower, not faster.
    with import_module("threadpoolctl").threadpool_limits(1):
        model = estimator(setting, C).fit(X, y)
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
class Workshop:
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

    def classifier(self, setting: str, C: float) -> LinearClassifier:
        """Return a classifier trained on the inputs, or kept from an earlier run."""
        path = self.directory / f"{self.name}-{setting.replace(' ', '-')}-{C:g}.npz"
        mark = self._fingerprint(setting, C)
        if (kept := LinearClassifier.load(path, mark)) is not None:
            return kept
        self.announce(f"training {setting}, C = {C:g}, on {len(set(self.y))} classes")
        model = trained(setting, C, self.X, self.y)
        path.parent.mkdir(parents=True, exist_ok=True)
        model.save(path, mark)
        return model

    def _fingerprint(self, setting: str, C: float) -> str:
        """Return a mark of all that the classifier depends on."""
        digest = hashlib.sha256(np.ascontiguousarray(self.X).tobytes())
        digest.update("\n".join([*self.y.tolist(), repr(estimator(setting, C))]).encode())
        return digest.hexdigest()
