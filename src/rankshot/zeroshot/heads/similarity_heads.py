"""Heads that use similarities of classes: `DirectSimilarity` and `ConSE`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from rankshot.core.arrays import Array, Constants, Dtype, Library, Lost, as_double, largest
from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.core.validation import require_number, require_whole_number
from rankshot.ranking.rankings import Rankings
from rankshot.sources.similarity import Similarity
from rankshot.zeroshot.heads.semantic_head import SemanticHead
from rankshot.zeroshot.scores import Kind, log_class_probabilities

Floats = NDArray[np.floating]


class DirectSimilarity(SemanticHead, BaseEstimator):
    r"""Predict the new class whose most similar seen classes are the most probable.

    This is Direct Similarity (DS) of Rohrbach et al. (2010), equation 18 of Hamm and Belkin (2015),
    who compare their methods with it:

    .. math:: P(z|x) \propto \prod_k \left(\frac{P(y_k|x)}{P(y_k)}\right)^{y_k^z},
              \quad y_k^z = \frac{w_k^z}{\sum_i w_i^z}

    over the seen classes y_k most similar to the new class z, where w are the similarities.
    P(y_k|x) is the sigmoid of one-vs-rest scores and the softmax of multiclass scores. The method
    uses the values of the similarities, not only their ranking.

    Seen classes that tie for the last places share them. A negative similarity, such as a negative
    cosine, is replaced by 0, because the weights of equation 18 are shares: a dissimilar seen
    class must neither support the new class nor oppose it. If the largest similarity is 0, as in a
    text that never mentions the two together, all seen classes with similarity 0 have equal
    weights.

    Parameters
    ----------
    n_similar : int
        The number of most similar seen classes that are used; Hamm and Belkin use 5.
    class_prior : dict of str to float, optional
        P(y_k) by name of the seen class. By default all are equally probable.
    temperature : float or None
        Log-probabilities are divided by it before they are normalised; by default 1.

    Attributes
    ----------
    exponents_ : ndarray of shape (new classes, seen classes)
        y_k^z; each row adds up to one.

    Examples
    --------
    >>> import rankshot as rs
    >>> table = rs.Similarity(
    ...     [[.9, .8, .1], [.1, .2, .9]], ["cat", "truck"], ["leopard", "tiger", "bus"])
    >>> head = rs.DirectSimilarity(n_similar=2).fit(table)
    >>> head.predict_proba([[2.0, 1.0, 0.0]]).round(3)
    array([[0.794, 0.206]])
    """

    name = "direct"
    semantics = Similarity
    _learned = ("exponents_", "_log_prior")

    def __init__(
        self,
        *,
        n_similar: int = 5,
        class_prior: Mapping[str, float] | None = None,
        temperature: float | None = None,
    ) -> None:
        self.temperature = temperature
        self.n_similar = n_similar
        self.class_prior = class_prior

    def require_parameters(self) -> None:
        """Raise for a parameter with a wrong value."""
        super().require_parameters()
        require_whole_number("n_similar", self.n_similar)

    def _fit(self, semantics: Similarity, reference: object, labels: object) -> None:
        """Compute the exponents; a seen class of unknown similarity is not among the similar."""
        similarity = require_similarity(semantics)
        largest = np.nanmax(similarity.values, axis=1)
        if unlike := [similarity.targets[row] for row in np.flatnonzero(largest < 0)]:
            raise RankshotError(
                f"all similarities of {quote_names(unlike)} by {similarity.source} are negative: "
                "leave them out, or use similarity.rescale(), which makes the smallest value of "
                "the table 0"
            )
        self.items_ = similarity.items
        self.classes_ = np.array(similarity.targets)
        self.exponents_: NDArray[np.float64] = _exponents(similarity.values, self.n_similar)
        given = dict.fromkeys(self.items_, 1.0) if self.class_prior is None else self.class_prior
        prior = [
            require_number(f"class_prior[{item!r}]", given.get(item, 0), above=0)
            for item in self.items_
        ]
        self._log_prior = np.log(prior)

    def _formula_constants(self, kind: Kind, dtype: Dtype, xp: Library) -> Constants:
        return {"exponents": self.exponents_.T, "log_prior": self._log_prior}

    def _formula(self, f: Array, kind: Kind, c: Constants, xp: Library, lost: Lost) -> Array:
        log_proba = log_class_probabilities(as_double(f, xp), kind, "DirectSimilarity", xp)
        return (log_proba - c["log_prior"]) @ c["exponents"]

    def item_contributions(self, values: Floats, kind: Kind) -> NDArray[np.float64]:
        """Return the terms of the log-posteriors of ``values``, scores of a ``kind``.

        They have the shape (n, new classes, seen classes).
        """
        log_proba = log_class_probabilities(values.astype(np.float64), kind, "DirectSimilarity")
        return np.asarray(self.exponents_ * (log_proba - self._log_prior)[:, None])


def require_similarity(similarity: Similarity) -> Similarity:
    """Return a table with sorted new classes; none of them may be unknown to the source."""
    if not isinstance(similarity, Similarity):
        given = "Rankings" if isinstance(similarity, Rankings) else short_repr(similarity)
        raise RankshotError(
            f"expected a Similarity, not {given}: make one with Similarity(values, targets, "
            "items), read_similarity or a source"
        )
    if similarity.unknown_targets:
        raise RankshotError(
            f"{similarity.source} has no similarities of "
            f"{quote_names(similarity.unknown_targets)}: leave them out with "
            "similarity.select(targets, items), or merge it with other sources"
        )
    return similarity.select(sorted(similarity.targets), similarity.items)


def share_of_largest(values: Array, n: int, xp: Library = np) -> Array:
    """Return 1 for the n largest numbers of each row, and 0 for the others.

    Numbers that tie for the last places share them evenly. NaN gets 0.
    """
    known = xp.where(xp.isnan(values), -np.inf, values)
    n = min(n, values.shape[1])
    cut = xp.sort(known, axis=1)[:, -n:][:, :1]
    # Numbers of a row are counted in its own precision, as the standard demands.
    above, level = (xp.astype(is_so, known.dtype) for is_so in (known > cut, known == cut))
    left = n - xp.sum(above, axis=1, keepdims=True)
    share = above + level * (left / xp.sum(level, axis=1, keepdims=True))
    return xp.where(xp.isnan(values), 0.0, share)


def _exponents(values: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return y_k^z; negative similarities count as 0, and if 0 is the largest, all 0 are equal."""
    share = share_of_largest(values, n)
    weights = share * np.maximum(np.nan_to_num(values), 0)
    nothing = weights.sum(axis=1) == 0
    weights[nothing] = (share * (values == 0))[nothing]
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


class ConSE(SemanticHead, BaseEstimator):
    r"""Predict by the mean word vector of the most probable seen classes: ConSE.

    This is the method of Norouzi et al. (2014). An input is mapped to the mean of the word vectors
    s of its T most probable seen classes, weighted by their probabilities, and is assigned the new
    class with the largest cosine to it. With vectors of length one, that is the class with the
    largest

    .. math:: \frac{1}{\sum_t P(y_t|x)} \sum_{t=1}^T P(y_t|x)\, \cos(s(y_t), s(z)),

    since the length of the mean is the same for all new classes. So the method needs only a table
    of cosines. ConSE itself does not define probabilities; here they are the softmax of these
    values divided by ``temperature``.

    Parameters
    ----------
    n_classes : int
        T, the number of most probable seen classes that are used; Norouzi and others use up to 10.
        Classes that tie for the last places share them.
    temperature : float or None
        Temperature of the softmax; it does not change the decision. By default .1.

    Examples
    --------
    >>> import rankshot as rs
    >>> cosines = rs.Similarity(
    ...     [[.9, .8, .1], [.1, .2, .9]], ["cat", "truck"], ["leopard", "tiger", "bus"])
    >>> rs.ConSE(n_classes=2).fit(cosines).predict([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0]])
    array(['cat', 'truck'], dtype='<U5')
    """

    name = "conse"
    semantics = Similarity
    _learned = ("_cosines", "_has_vector")

    def __init__(self, *, n_classes: int = 10, temperature: float | None = None) -> None:
        self.n_classes = n_classes
        self.temperature = temperature

    def require_parameters(self) -> None:
        """Raise for a parameter with a wrong value."""
        super().require_parameters()
        require_whole_number("n_classes", self.n_classes)

    def _fit(self, semantics: Similarity, reference: object, labels: object) -> None:
        """Store the cosines; seen classes without a vector are left out."""
        similarity = require_similarity(semantics)
        self.items_ = similarity.items
        self.classes_ = np.array(similarity.targets)
        self._has_vector = ~np.isnan(similarity.values).any(axis=0)
        if not self._has_vector.any():
            raise RankshotError(
                f"there is no seen class that {similarity.source} compares with all new classes: "
                f"each of {quote_names(self.items_)} has no similarity to some new class"
            )
        self._cosines = similarity.values[:, self._has_vector]

    def _default_temperature(self) -> float:
        return 0.1

    def _formula_constants(self, kind: Kind, dtype: Dtype, xp: Library) -> Constants:
        return {"cosines": self._cosines.T, "columns": np.flatnonzero(self._has_vector)}

    def _formula(self, f: Array, kind: Kind, c: Constants, xp: Library, lost: Lost) -> Array:
        return self._weights(as_double(f, xp), kind, c, xp) @ c["cosines"]

    def _weights(self, f: Array, kind: Kind, c: Constants, xp: Library) -> Array:
        """Return the weight in the mean of each seen class that has a vector."""
        log_proba = log_class_probabilities(f, kind, "ConSE", xp)
        log_proba, f = (xp.take(table, c["columns"], axis=1) for table in (log_proba, f))
        # By score, because probabilities close to one are rounded to one.
        share = share_of_largest(f, int(self.n_classes), xp)
        weights = share * xp.exp(log_proba - largest(log_proba, xp, 1))
        return weights / xp.sum(weights, axis=1, keepdims=True)

    def item_contributions(self, values: Floats, kind: Kind) -> NDArray[np.float64]:
        """Return the terms of the log-posteriors of ``values``, scores of a ``kind``.

        They have the shape (n, new classes, seen classes).
        """
        f = np.asarray(values, np.float64)
        weights = self._weights(f, kind, self._formula_constants(kind, f.dtype, np), np)
        terms = np.zeros((len(values), len(self.classes_), len(self.items_)))
        terms[:, :, self._has_vector] = self._cosines * weights[:, None]
        return terms
