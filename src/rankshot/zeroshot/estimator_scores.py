"""Read the scores of a fitted scikit-learn classifier: which method, signs and columns."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import validate_data

from rankshot.core.errors import InputError
from rankshot.core.validation import as_names
from rankshot.zeroshot.scores import Floats, Kind, Scores

Items = tuple[str, ...]
Estimator = Any
"""A fitted scikit-learn classifier: the library has no types, and each class other attributes."""
Reader = Callable[[Estimator, object, Items], Scores]


def scores_of(estimator: Estimator, X: object, *, features: bool = False) -> Scores:
    """The scores of a fitted classifier for some inputs, on a logarithmic scale.

    Parameters
    ----------
    estimator : estimator
        A fitted classifier, possibly inside a ``Pipeline``, a ``FrozenEstimator`` or a search
        (``GridSearchCV``). It is not changed.
    X : array-like
        Inputs, as for its ``predict``.
    features : bool
        Whether to include features: the input of the last step of a pipeline, or the input of any
        other classifier. Inputs that are not a table of numbers have none.

    Returns
    -------
    Scores
        The items are the ``classes_`` as text. The kind depends on how the estimator was
        trained:

        - `SVC`, `NuSVC` and `OneVsOneClassifier`: "one-vs-one", one value per pair, for every
          ``decision_function_shape``;
        - `OneVsRestClassifier`, and the linear models that train one binary classifier per class
          (`LinearSVC`, `SGDClassifier`, `Perceptron`, `RidgeClassifier`, …): "one-vs-rest";
        - all others: "multiclass", from ``decision_function`` if the estimator has one, and
          otherwise from the logarithm of ``predict_proba``.

        The binary estimators of `OneVsOneClassifier` and `OneVsRestClassifier` give their
        decision value, or the log-odds of their probability. A classifier of two classes has one
        value f, for the second class. It becomes the two scores -f/2 and f/2, whose softmax is
        the sigmoid of f; as a one-vs-one score it becomes -f.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from rankshot import scores_of
    >>> model = SVC(kernel="linear").fit([[0], [4], [9]], ["tiger", "leopard", "bus"])
    >>> scores = scores_of(model, [[9.0]])
    >>> scores.items, scores.kind
    (('bus', 'leopard', 'tiger'), 'one-vs-one')
    >>> scores.pairs.round(2)               # bus-leopard, bus-tiger, leopard-tiger
    array([[1. , 1. , 3.5]])
    """
    classifier, X = _unwrap(estimator, X)
    scores = _reader(classifier)(classifier, X, _items(classifier))
    return scores.with_blocks(features=_as_features(X)) if features else scores


def _as_features(X: object) -> object:
    """Return inputs of a classifier that are a table of numbers; None if they are not."""
    if issparse(X):
        return X
    table = np.asarray(X)
    return table if table.ndim == 2 and table.dtype.kind in "biuf" else None


def _unwrap(estimator: Estimator, X: object) -> tuple[Estimator, object]:
    """The classifier in pipelines, searches and frozen estimators, and its inputs."""
    if hasattr(estimator, "best_estimator_"):
        return _unwrap(estimator.best_estimator_, X)
    if isinstance(estimator, FrozenEstimator):
        return _unwrap(estimator.estimator, X)
    if not isinstance(estimator, Pipeline):
        return estimator, X
    *steps, (_, last) = estimator.steps
    for _, step in steps:
        # "passthrough" has no transform, and neither have steps that act only in fit.
        if hasattr(step, "transform"):
            X = step.transform(X)
    return _unwrap(last, X)


def _items(estimator: Estimator) -> tuple[str, ...]:
    classes = getattr(estimator, "classes_", None)
    if classes is None or any(np.ndim(label) for label in classes):
        raise InputError("estimator", estimator, "must be a fitted classifier with one output")
    return as_names([str(label) for label in classes], "classes_")


# -------------------------------------------------------------------- multiclass


def _from_decisions(estimator: Estimator, X: object, items: Items, kind: Kind) -> Scores:
    values = np.asarray(estimator.decision_function(X))
    if len(items) == 2 and values.size == len(values):
        values = np.column_stack([-values / 2, values / 2])
    return Scores(values, items, kind)


def _from_probabilities(estimator: Estimator, X: object, items: Items) -> Scores:
    if not hasattr(estimator, "predict_proba"):
        raise InputError("estimator", estimator, "has neither decision_function nor predict_proba")
    return Scores.from_probabilities(estimator.predict_proba(X), items)


def _naive_bayes(estimator: Estimator, X: object, items: Items) -> Scores:
    # Naive Bayes probabilities are usually exactly 0 for all classes but one. Their logarithms
    # still differ.
    return Scores(estimator.predict_log_proba(X), items)


# -------------------------------------------------------------------- one-vs-rest


def _one_vs_rest_classifier(estimator: Estimator, X: object, items: Items) -> Scores:
    if estimator.multilabel_:
        raise InputError(
            "estimator", estimator, "is multilabel: the classes must be mutually exclusive"
        )
    values = np.column_stack([_log_odds(each, X) for each in estimator.estimators_])
    if len(items) == 2:
        values = np.hstack([-values / 2, values / 2])
    return Scores(values, items, "one-vs-rest")


# -------------------------------------------------------------------- one-vs-one


def _svc(estimator: Estimator, X: object, items: Items) -> Scores:
    if len(items) == 2:
        return Scores(-estimator.decision_function(X).reshape(-1, 1), items, "one-vs-one")
    # The default shape, "ovr", counts votes. libsvm's own values are positive for the first
    # class of a pair, as ours are.
    pairs = copy(estimator)
    pairs.decision_function_shape = "ovo"
    return Scores(pairs.decision_function(X), items, "one-vs-one")


def _one_vs_one_classifier(estimator: Estimator, X: object, items: Items) -> Scores:
    # Its binary estimators were trained on arrays, not on data frames.
    table = validate_data(estimator, X, accept_sparse=True, ensure_all_finite=False, reset=False)
    # Here the second class of a pair is positive, unlike in libsvm.
    values = np.column_stack([-_log_odds(binary, table) for binary in estimator.estimators_])
    return Scores(values, items, "one-vs-one")


def _log_odds(binary: Estimator, X: object) -> Floats:
    """The log-odds (or decision value) of a binary classifier for its second class."""
    scores = scores_of(binary, X)
    if scores.pairs is not None:
        return np.asarray(-scores.pairs[:, 0])
    return np.asarray(scores.values[:, 1] - scores.values[:, 0])


_one_vs_rest = partial(_from_decisions, kind="one-vs-rest")
_READERS: dict[str, Reader] = {
    "BaseSVC": _svc,
    "OneVsOneClassifier": _one_vs_one_classifier,
    "OneVsRestClassifier": _one_vs_rest_classifier,
    "LinearSVC": _one_vs_rest,
    "BaseSGDClassifier": _one_vs_rest,
    "_RidgeClassifierMixin": _one_vs_rest,
    # Its decision values are C - 1 times the logarithms of its probabilities.
    "AdaBoostClassifier": _from_probabilities,
    "_BaseNB": _naive_bayes,
}
"""Readers by the name of a scikit-learn class or of a base class; all others are multiclass. Names,
because importing all these classes is slow, and later versions of scikit-learn lack some."""


def _reader(estimator: Estimator) -> Reader:
    for base in type(estimator).__mro__:
        if base.__module__.startswith("sklearn.") and base.__name__ in _READERS:
            return _READERS[base.__name__]
    has_values = hasattr(estimator, "decision_function")
    return partial(_from_decisions, kind="multiclass") if has_values else _from_probabilities
