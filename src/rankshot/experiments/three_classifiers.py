"""The paper's three settings: one-vs-rest, one-vs-one and multiclass, on the same inputs."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from rankshot.zeroshot.estimator_scores import scores_of
from rankshot.zeroshot.metrics import accuracy
from rankshot.zeroshot.pair_wins import wins
from rankshot.zeroshot.platt import PlattScaling
from rankshot.zeroshot.scores import Scores

Labels = NDArray[np.str_]
Features = NDArray[np.float32]


class Trained(NamedTuple):
    """A trained classifier, and its scaling where it is a support vector machine."""

    estimator: Any
    scaling: PlattScaling | None

    def scores(self, X: Features) -> Scores:
        """Return what it says, on the scale of log-odds or logits."""
        scores = scores_of(self.estimator, X)
        return scores if self.scaling is None else self.scaling.transform(scores)

    def accuracy(self, X: Features, y: Labels) -> float:
        """Return how often the class of the highest score, or of most pairs won, is right."""
        scores = scores_of(self.estimator, X)
        values = scores.values
        if scores.kind == "one-vs-one":
            values = wins(values, len(scores.items))
        return accuracy(y, np.array(scores.items)[values.argmax(axis=1)])


def estimators() -> dict[str, Any]:
    """Return the three classifiers of the paper's comparison, not trained.

    Of a few regularisations C these are the best on seen classes that played unseen ones, with
    K = 4 and the panel's rankings of them: `SeenClassSearch`, no look at unseen classes.
    """
    return {
        "one-vs-rest": LinearSVC(C=0.001, dual=True, random_state=0),
        "one-vs-one": SVC(kernel="linear", C=0.001),
        "multiclass": LogisticRegression(C=0.03, max_iter=500),
    }


def train(
    estimator: Any, X: Features, y: Labels, X_held_out: Features, y_held_out: Labels
) -> Trained:
    """Train a classifier, and scale the values of a support vector machine as Platt did.

    The scaling is fitted to inputs that it was not trained on.
    """
    # A second thread makes these small matrix products slower, and much so on a busy machine.
    with import_module("threadpoolctl").threadpool_limits(1):
        estimator.fit(X, y)
    if isinstance(estimator, LogisticRegression):
        return Trained(estimator, None)
    scaling = PlattScaling().fit(scores_of(estimator, X_held_out), y_held_out)
    return Trained(estimator, scaling)
