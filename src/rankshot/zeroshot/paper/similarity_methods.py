"""Methods that use similarities of classes: `DirectSimilarity` (equation 18) and `ConSE`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rankshot.core.errors import InputError
from rankshot.core.validation import require_number, require_whole_number
from rankshot.sources.similarity import Similarity
from rankshot.zeroshot.paper.ranking_methods import Method
from rankshot.zeroshot.scores import Doubles, Scores, log_class_probabilities


class _SimilarityMethod(Method):
    """A method that is fitted to similarities, and needs one score per class."""

    def _read(self, similarity: Similarity) -> Doubles:
        """The similarities of the new classes, sorted by name; none may be unknown."""
        if similarity.unknown_targets:
            name, hint = similarity.unknown_targets[0], "leave it out with similarity.select"
            raise InputError("similarity", name, "has no similarities", similarity.source, hint)
        self.items_ = similarity.items
        self.classes_ = np.array(sorted(similarity.targets))
        return similarity.select(self.classes_.tolist(), self.items_).values

    def _log_class_proba(self, table: Scores) -> Doubles:
        if table.kind == "one-vs-one":
            raise InputError("scores", table.kind, "must be one score per class, not per pair")
        return log_class_probabilities(table)


class DirectSimilarity(_SimilarityMethod):
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

    Attributes
    ----------
    exponents_ : ndarray of shape (new classes, seen classes)
        y_k^z; each row adds up to one.

    Examples
    --------
    >>> import rankshot as rs
    >>> table = rs.Similarity(
    ...     [[.9, .8, .1], [.1, .2, .9]], ["cat", "truck"], ["leopard", "tiger", "bus"])
    >>> head = rs.zeroshot.paper.DirectSimilarity(n_similar=2).fit(table)
    >>> head.predict_proba([[2.0, 1.0, 0.0]]).round(3)
    array([[0.794, 0.206]])
    """

    def __init__(
        self,
        *,
        n_similar: int = 5,
        class_prior: Mapping[str, float] | None = None,
    ) -> None:
        self.n_similar = n_similar
        self.class_prior = class_prior

    def fit(self, similarity: Similarity) -> DirectSimilarity:
        """Compute the exponents; a seen class of unknown similarity is not among the similar.

        Parameters
        ----------
        similarity : Similarity
            The similarities of the new classes (targets) to the seen classes (items).
        """
        values = self._read(similarity)
        require_whole_number("n_similar", self.n_similar)
        if (unlike := self.classes_[np.nanmax(values, axis=1) < 0]).size:
            rule = "has negative similarities only"
            hint = "leave it out, or use similarity.rescale(), which makes the smallest value 0"
            raise InputError("similarity", str(unlike[0]), rule, similarity.source, hint)
        share = share_of_largest(values, self.n_similar)
        weights = share * np.maximum(np.nan_to_num(values), 0)
        nothing = weights.sum(axis=1) == 0
        weights[nothing] = (share * (values == 0))[nothing]
        self.exponents_: Doubles = weights / weights.sum(axis=1, keepdims=True)
        given = dict.fromkeys(self.items_, 1.0) if self.class_prior is None else self.class_prior
        prior = [
            require_number(f"class_prior[{item!r}]", given.get(item, 0), above=0)
            for item in self.items_
        ]
        self._log_prior = np.log(prior)
        return self

    def _log_posterior(self, table: Scores) -> Doubles:
        return np.asarray((self._log_class_proba(table) - self._log_prior) @ self.exponents_.T)


def share_of_largest(values: Doubles, n: int) -> Doubles:
    """1 for the n largest numbers of each row, and 0 for the others.

    Numbers that tie for the last places share them evenly. NaN gets 0.
    """
    known = np.where(np.isnan(values), -np.inf, values)
    n = min(n, values.shape[1])
    cut = np.sort(known, axis=1)[:, -n:][:, :1]
    above, level = known > cut, known == cut
    left = n - above.sum(axis=1, keepdims=True)
    share = above + level * (left / level.sum(axis=1, keepdims=True))
    return np.where(np.isnan(values), 0.0, share)


class ConSE(_SimilarityMethod):
    r"""Predict by the mean word vector of the most probable seen classes: ConSE.

    This is the method of Norouzi et al. (2014). An input is mapped to the mean of the word vectors
    s of its T most probable seen classes, weighted by their probabilities, and is assigned the new
    class with the largest cosine to it. With vectors of length one, that is the class with the
    largest

    .. math:: \frac{1}{\sum_t P(y_t|x)} \sum_{t=1}^T P(y_t|x)\, \cos(s(y_t), s(z)),

    since the length of the mean is the same for all new classes. So the method needs only a table
    of cosines. ConSE itself does not define probabilities; here they are the softmax of ten times
    these values.

    Parameters
    ----------
    n_classes : int
        T, the number of most probable seen classes that are used; Norouzi and others use up to 10.
        Classes that tie for the last places share them.

    Examples
    --------
    >>> import rankshot as rs
    >>> cosines = rs.Similarity(
    ...     [[.9, .8, .1], [.1, .2, .9]], ["cat", "truck"], ["leopard", "tiger", "bus"])
    >>> conse = rs.zeroshot.paper.ConSE(n_classes=2).fit(cosines)
    >>> conse.predict([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0]])
    array(['cat', 'truck'], dtype='<U5')
    """

    temperature_ = 0.1

    def __init__(self, *, n_classes: int = 10) -> None:
        self.n_classes = n_classes

    def fit(self, similarity: Similarity) -> ConSE:
        """Store the cosines; seen classes without a vector are left out.

        Parameters
        ----------
        similarity : Similarity
            The cosines of the new classes (targets) with the seen classes (items).
        """
        values = self._read(similarity)
        require_whole_number("n_classes", self.n_classes)
        self._has_vector = ~np.isnan(values).any(axis=0)
        if not self._has_vector.any():
            rule = "compares no seen class with all new classes"
            raise InputError("similarity", similarity.source, rule)
        self._cosines = values[:, self._has_vector]
        return self

    def _log_posterior(self, table: Scores) -> Doubles:
        log_proba = self._log_class_proba(table)[:, self._has_vector]
        # By score, because probabilities close to one are rounded to one.
        f = np.asarray(table.values, np.float64)[:, self._has_vector]
        weights = share_of_largest(f, self.n_classes)
        weights *= np.exp(log_proba - log_proba.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        return np.asarray(weights @ self._cosines.T)
