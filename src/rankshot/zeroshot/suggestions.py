"""Which inputs to label next: a few diverse inputs that each represent many others."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from rankshot.core.errors import NO_VALUE, InputError
from rankshot.core.validation import require_whole_number
from rankshot.zeroshot.files.score_tables import as_scores
from rankshot.zeroshot.formula import scale_features
from rankshot.zeroshot.linear_head import Predictor
from rankshot.zeroshot.scores import Scores, standardize_rows

Floats = NDArray[np.floating]


class Suggestions(NamedTuple):
    """Inputs to label next, starting with the one that represents most others.

    Attributes
    ----------
    rows : ndarray of int, shape (n,)
        The rows of the inputs.
    labels : ndarray of str, shape (n,)
        Their most probable classes.
    proba : ndarray of shape (n,)
        The probabilities of these classes.

    Examples
    --------
    >>> from rankshot.zeroshot import Suggestions
    >>> Suggestions._fields
    ('rows', 'labels', 'proba')
    """

    rows: NDArray[np.intp]
    labels: NDArray[np.str_]
    proba: Floats


def suggest(
    head: Predictor, scores: Scores | ArrayLike, n: int, *, labelled: ArrayLike = ()
) -> Suggestions:
    """Suggest the inputs whose labels help most, as examples for `WeightedMean.fit`.

    K-means divides the inputs into n clusters: by their features (centred, with unit length) if the
    scores have any, and otherwise by scores with mean 0 and variance 1 per input. The input nearest
    to the mean of each cluster is suggested. On held-out seen classes of three data sets, this was
    better than choosing inputs at random, and better than choosing those about which the head is
    least certain.

    Parameters
    ----------
    head : head
        A fitted head, which predicts the classes.
    scores : Scores or array-like
        Scores of inputs without labels.
    n : int
        The number of inputs to suggest. Fewer are suggested if there are fewer distinct inputs.
    labelled : array-like of int
        The rows of inputs that already have a label; they are not suggested.

    Examples
    --------
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["bus", "tram"]],
    ...     items=["bus", "leopard", "tiger", "tram"], targets=["cat", "truck"])
    >>> head = rs.WeightedMean().fit(rankings)
    >>> scores = [[0, 3, 2, 0], [0, 3, 1, 0], [0, 2, 2, 0], [3, 0, 1, 2], [3, 0, 0, 2],
    ...           [3, 1, 0, 2]]
    >>> next_ones = rs.zeroshot.suggest(head, scores, 2)
    >>> next_ones.rows, next_ones.labels
    (array([0, 4]), array(['cat', 'truck'], dtype='<U5'))
    """
    table = as_scores(scores, head.inner.seen)
    left = np.delete(np.arange(len(table)), np.asarray(labelled, np.intp))
    if not left.size:
        raise InputError("labelled", NO_VALUE, "are all inputs")
    rows = choose_diverse(table, left, require_whole_number("n", n))
    best = head.top(table[rows], 1)
    return Suggestions(rows, best.labels[:, 0], best.proba[:, 0])


def choose_diverse(scores: Scores, left: NDArray[np.intp], n: int) -> NDArray[np.intp]:
    """The row nearest to the mean of each of n clusters, that of the largest cluster first.

    Only the rows ``left`` are there. The order of rows and of columns has no influence.
    """
    table = _describe(scores[left])
    # K-means begins with random rows of this order. Digits that differ between processors have no
    # influence on it; zeros have no sign, and the first bytes are the most significant ones.
    digits = (table.round(6) + 0.0).astype(">f8")
    order = np.argsort(digits.view(np.dtype((np.void, digits.strides[0]))).ravel(), kind="stable")
    table = table[order]
    with warnings.catch_warnings():
        # Fewer rows than clusters differ.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KMeans(min(n, len(table)), n_init=1, max_iter=20, random_state=0)
        cluster = model.fit_predict(table)
    distance = ((table - model.cluster_centers_[cluster]) ** 2).sum(axis=1)
    nearest = np.lexsort([distance, cluster])
    _, first, size = np.unique(cluster[nearest], return_index=True, return_counts=True)
    return left[order[nearest[first[np.argsort(-size, kind="stable")]]]]


def _describe(scores: Scores) -> Floats:
    """One row of numbers per input, by which inputs differ."""
    if scores.features is not None and not issparse(scores.features):
        features = np.asarray(scores.features, np.float64)
        return np.ascontiguousarray(scale_features(features, features.mean(axis=0), np))
    return np.ascontiguousarray(standardize_rows(scores.values[:, np.argsort(scores.items)]))
