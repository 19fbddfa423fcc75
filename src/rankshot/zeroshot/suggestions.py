"""Which inputs to label next: a few diverse inputs that each represent many others."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from rankshot.core.errors import NO_VALUE, InputError
from rankshot.core.validation import require_whole_number
from rankshot.zeroshot.formula import scale_features
from rankshot.zeroshot.scores import Scores, standardize_rows


def suggest(scores: Scores, n: int, *, among: ArrayLike | None = None) -> NDArray[np.intp]:
    """The rows of the inputs whose labels help most, as examples for `WeightedMean.fit`.

    K-means divides the inputs into n clusters: by their features (centred, with unit length) if the
    scores have any, and otherwise by scores with mean 0 and variance 1 per input. The input nearest
    to the mean of each cluster is suggested, that of the largest cluster first. On held-out seen
    classes of three data sets, this was better than choosing inputs at random, and better than
    choosing those about which the head is least certain. The order of rows and of columns has no
    influence.

    Parameters
    ----------
    scores : Scores
        Scores of the inputs.
    n : int
        The number of inputs to suggest. Fewer are suggested if there are fewer distinct inputs.
    among : array-like of int, optional
        The rows to choose from, such as those without a label; by default all.

    Examples
    --------
    >>> import rankshot as rs
    >>> scores = rs.Scores(
    ...     [[0, 3, 2, 0], [0, 3, 1, 0], [0, 2, 2, 0], [3, 0, 1, 2], [3, 0, 0, 2], [3, 1, 0, 2]],
    ...     ["bus", "leopard", "tiger", "tram"])
    >>> rs.zeroshot.suggest(scores, 2)
    array([0, 4])
    """
    left = np.arange(len(scores)) if among is None else np.asarray(among, np.intp)
    n = require_whole_number("n", n)
    if not left.size:
        raise InputError("among", NO_VALUE, "names no input")
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


def _describe(scores: Scores) -> NDArray[np.float64]:
    """One row of numbers per input, by which inputs differ."""
    if scores.features is not None and not issparse(scores.features):
        features = np.asarray(scores.features, np.float64)
        return np.ascontiguousarray(scale_features(features, features.mean(axis=0), np))
    return np.ascontiguousarray(standardize_rows(scores.values[:, np.argsort(scores.items)]))
