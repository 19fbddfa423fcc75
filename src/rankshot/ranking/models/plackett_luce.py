"""The Plackett-Luce model: items are chosen one by one, in proportion to their worths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import wrightomega

from rankshot.core.arrays import row_blocks
from rankshot.core.estimators import Estimator, check_is_fitted, warn_of_convergence
from rankshot.core.newton import Optimum, maximize
from rankshot.core.validation import (
    Seed,
    as_names,
    require_generator,
    require_number,
    require_whole_number,
)
from rankshot.ranking.matrices import NamedOrder, alike_items, group_ties, name_groups
from rankshot.ranking.models.information import invert_information, require_estimable
from rankshot.ranking.models.plackett_luce_likelihood import (
    SMALL,
    Curvature,
    Likelihood,
    build_likelihood,
)
from rankshot.ranking.models.plackett_luce_stages import Gradients, find_gradients, log_prob
from rankshot.ranking.parts import (
    AnyRankings,
    keep_counted,
    map_parts,
    map_rows,
    merge_copies,
    require_any_rankings,
    require_one_subject,
    require_sample_length,
    with_items,
)
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
TIED = 1e-6
"""Items whose log-worths differ by less are tied in the mode: solvers are not exact."""
FEW_RANKINGS = 64
"""So many rankings are fitted as fast as equal ones are merged."""


class WorthModel(Estimator, ABC):
    """What all models with worths share: settings, fitted attributes and standard errors."""

    items_: tuple[str, ...]
    log_worths_: Floats
    worths_: Floats
    mode_: NamedOrder
    n_iter_: int

    def __init__(
        self,
        *,
        regularization: float = 0.01,
        tol: float = 1e-10,
        max_iter: int = 10_000,
    ) -> None:
        self.regularization = regularization
        self.tol = tol
        self.max_iter = max_iter

    def _require_settings(self) -> None:
        require_number("regularization", self.regularization, least=0, below=np.inf)
        require_number("tol", self.tol, least=0, below=np.inf)
        require_whole_number("max_iter", self.max_iter)

    def _take_parameters(self, found: Optimum) -> Floats:
        """Return what a solver found; warn if it did not converge."""
        self.n_iter_ = found.n_iter
        if not found.converged:
            advice = "raise max_iter"
            if found.n_iter < self.max_iter:
                advice = "rounding errors hide further improvement; pass weights that differ less"
            warn_of_convergence(
                f"the fit did not converge in {found.n_iter} iterations: {advice}", stacklevel=3
            )
        return found.parameters

    def _with_log_worths(self, items: tuple[str, ...], theta: Floats) -> Self:
        self.items_ = items
        self.log_worths_ = theta - theta.mean()
        worths = np.exp(theta - theta.max())
        self.worths_ = worths / worths.sum()
        self.mode_ = name_groups(group_ties(-self.log_worths_, tolerance=TIED), items)
        return self

    @abstractmethod
    def fit(self, rankings: Rankings, /) -> Self:
        """Estimate the worths."""

    @abstractmethod
    def covariance(self, rankings: Rankings) -> Floats:
        """Return the covariance of ``log_worths_``, which add up to zero."""

    def inverse_and_gradients(self, rankings: Rankings) -> tuple[Floats, Gradients]:
        """Return the covariance of the parameters, and the derivatives of each ranking in them.

        Parameters
        ----------
        rankings : Rankings
        """
        rankings = rankings.with_items(self.items_)
        return self.covariance(rankings), find_gradients(rankings, self.log_worths_)

    def standard_errors(self, rankings: Rankings) -> Floats:
        """Return the standard errors of ``log_worths_`` fitted to ``rankings``."""
        return np.sqrt(np.diag(self.covariance(rankings)))


class PlackettLuce(WorthModel):
    r"""The Plackett-Luce model of top-K, full and subset rankings, ties included.

    A ranking is a sequence of choices. At each stage the remaining items are chosen with
    probabilities proportional to their worths v (equation 8 of Hamm and Belkin (2015)):

    .. math:: P(\pi; v) = \prod_{i=1}^K \frac{v_{\pi^{-1}(i)}}{\sum_{j \ge i} v_{\pi^{-1}(j)}}

    In a subset ranking the sum runs over the listed items alone. A tie means that the order of
    its items is unknown and every order is equally likely: the probability is the mean over the
    strict rankings that it allows, computed exactly.

    Parameters
    ----------
    regularization : float
        η in the penalty η/2 Σ θ², on log-worths θ. With 0 the fit is maximum likelihood, which
        exists only if the comparisons strongly connect the items; if they do not, `fit` raises an
        error that names the items. The small default makes every fit well defined.
    tol : float
        Stop when the log-likelihood can increase by less than this, or only by rounding errors. If
        the weights of the rankings add up to less than 1, it is multiplied by their sum.
    max_iter : int
        The maximum number of iterations; a warning is issued if the fit has not converged by then.

    Attributes
    ----------
    items_ : tuple of str
    worths_ : ndarray
        The worth of each item; they add up to one.
    log_worths_ : ndarray
        Their logarithms, centred on zero.
    mode_ : tuple
        The most probable order; items of equal worth are tied, as a tuple inside it.
    log_likelihood_ : float
        The log-likelihood of the rankings that were fitted, without the penalty.
    n_iter_ : int
        The number of iterations.

    Notes
    -----
    Items at the same level in every ranking, such as all items that no ranking lists, share one
    worth, and one parameter in the fit; equal rankings are merged. So the time and memory of a fit
    depend on the number of listed items, not on the number of all items.

    The likelihood is concave in log-worths, with one exception: a tie that K cuts. With such
    rankings, the optimum may be a local one.

    References
    ----------
    Hunter (2004), MM algorithms for generalized Bradley-Terry models. Annals of Statistics 32.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["a", "b", "c"], ["b", "a"], ["c", "a", "b"]], items=["a", "b", "c"])
    >>> model = rs.PlackettLuce(regularization=0).fit(votes)
    >>> model.worths_.round(3)
    array([0.532, 0.317, 0.152])
    >>> model.mode_
    ('a', 'b', 'c')
    """

    @classmethod
    def from_worths(cls, worths: Mapping[str, float]) -> PlackettLuce:
        """Return a fitted model with given ``worths``.

        Examples
        --------
        >>> from rankshot import PlackettLuce
        >>> PlackettLuce.from_worths({"leopard": 3, "tiger": 1}).worths_
        array([0.75, 0.25])
        """
        values = [
            require_number(f"the worth of {item!r}", worth, above=0, below=np.inf)
            for item, worth in worths.items()
        ]
        return cls(regularization=0.0)._with_log_worths(as_names(worths), np.log(values))

    def fit(self, rankings: AnyRankings) -> PlackettLuce:
        """Estimate the worths.

        Parameters
        ----------
        rankings : Rankings or PartitionedRankings
            Full, top-K or subset rankings, with or without ties; their weights are used.
        """
        self._require_settings()
        weight = require_one_subject(rankings).weight
        # Sums are in units of the total weight: otherwise those of tiny weights would underflow.
        counted = keep_counted(map_parts(rankings, _divide_weights, weight))
        if isinstance(counted, Rankings) and len(counted) > FEW_RANKINGS:
            counted = merge_copies(counted)[0]
        if self.regularization == 0:
            require_estimable(counted)
        class_of = alike_items(counted)
        likelihood = build_likelihood(counted, class_of)
        # Rankings of small weight have a small log-likelihood.
        tol = self.tol * min(1.0, weight) / weight
        penalty = self.regularization / weight * likelihood.counts.astype(np.float64)
        found = maximize_likelihood(likelihood, penalty, tol, self.max_iter)
        theta = self._take_parameters(found)
        self.log_likelihood_ = weight * (found.value + float(penalty @ theta**2) / 2)
        return self._with_log_worths(rankings.items, theta[class_of])

    def log_prob(self, rankings: AnyRankings) -> Any:
        """Return the log-probability of each ranking, accurate for any ratio of worths.

        It is a lazy array for rankings in parts.
        """
        check_is_fitted(self)
        return map_rows(require_any_rankings(rankings), log_prob, self.items_, self.log_worths_)

    def covariance(self, rankings: AnyRankings) -> Floats:
        """Return the covariance of ``log_worths_``, from the information in ``rankings``.

        Log-worths are determined up to a common shift; this is the covariance of log-worths that
        add up to zero. The variance of the difference between items i and j, which does not depend
        on the shift, is ``V[i, i] + V[j, j] - 2 * V[i, j]``. A penalty is interpreted as a prior.

        Examples
        --------
        >>> import rankshot as rs
        >>> votes = rs.Rankings.from_orders([["a", "b"], ["b", "a"]], weights=[30, 10])
        >>> rs.PlackettLuce(regularization=0).fit(votes).covariance(votes).round(4)
        array([[ 0.0333, -0.0333],
               [-0.0333,  0.0333]])
        """
        check_is_fitted(self)
        require_one_subject(rankings)
        rankings = with_items(rankings, self.items_)
        information = build_likelihood(rankings).information(self.log_worths_)
        return invert_information(information, self.items_, self.regularization)

    def sample(self, n: int = 1, k: int | None = None, random_state: Seed = None) -> Rankings:
        """Draw ``n`` top-``k`` rankings (full by default), with the seed ``random_state``.

        The draws are exact: each item gets an exponential time of rate v_i, and the k items of
        the smallest times are the list.

        Examples
        --------
        >>> from rankshot import PlackettLuce
        >>> model = PlackettLuce.from_worths({"a": 100.0, "b": 10.0, "c": 1.0})
        >>> model.sample(2, k=2, random_state=0)
        Rankings: 2 rankings of 3 items
          a > c
          a > b
        """
        check_is_fitted(self)
        C = len(self.items_)
        k = require_sample_length(n, k, C)
        rng = require_generator(random_state)
        lists = np.empty((n, k), np.int32)
        for rows in row_blocks(n, C):
            log_times = np.log(rng.standard_exponential((rows.stop - rows.start, C)))
            log_times -= self.log_worths_
            lists[rows] = first_items(log_times, k)
        return Rankings.from_item_numbers(lists, items=self.items_, trusted=True)


def _divide_weights(rankings: Rankings, unit: float) -> Rankings:
    return replace(rankings, weights=rankings.weights / unit)


def maximize_likelihood(
    likelihood: Likelihood, penalty: Floats, tol: float, max_iter: int
) -> Optimum:
    """Maximise ``value(θ) - 1/2 Σ penalty_c θ_c²`` over log-worths θ, from one step of MM.

    A class c of alike items has the penalty of all of them.
    """

    def curvature(theta: Floats) -> Floats | Curvature:
        found = likelihood.curvature(theta)
        return found.toarray() if theta.size <= SMALL else found

    equal = np.zeros(likelihood.counts.size)
    _, expected = likelihood.value_and_expected(equal)
    return maximize(
        likelihood.evaluate,
        curvature,
        _mm_step(likelihood.wins, expected, penalty),
        ridge=penalty,
        invariant=np.ones_like(equal),
        tol=tol,
        max_iter=max_iter,
    )


def _mm_step(wins: Floats, expected: Floats, penalty: Floats) -> Floats:
    """Return log-worths after one step of Hunter's MM algorithm from equal worths.

    It maximises a minorising function, one log-worth at a time. The maximum is where
    wins_i - expected_i e^θ - η θ = 0: without the penalty η, e^θ is wins_i / expected_i; with it,
    θ is found by Wright's omega function.
    """
    theta = np.zeros_like(wins)
    # An item that never could be chosen is determined by the penalty alone.
    exposed = expected > 0
    wins, expected, own = wins[exposed], expected[exposed], penalty[exposed]
    if not penalty.any():
        theta[exposed] = np.log(wins / expected)
        return np.asarray(theta - theta.mean())
    log_scaled = np.log(expected) - np.log(own)
    theta[exposed] = np.log(wrightomega(wins / own + log_scaled)) - log_scaled
    return np.asarray(theta - penalty @ theta / penalty.sum())


def first_items(times: Floats, k: int) -> NDArray[np.intp]:
    """Return the columns of the k smallest numbers of each row, in order."""
    if k == times.shape[1]:
        return np.argsort(times, axis=1)
    columns = np.argpartition(times, k, axis=1)[:, :k]
    order = np.argsort(np.take_along_axis(times, columns, axis=1), axis=1)
    return np.take_along_axis(columns, order, axis=1)
