"""The Plackett-Luce model: items are chosen one by one, in proportion to their worths.

`Likelihood` adds up the log-probabilities of rankings for the solver.

A common factor of all worths has no effect, so the rows of the matrix of second derivatives add
up to zero, and its entries off the diagonal tell all of it. Entry (a, b) is B_ab = Σ p_a p_b over
the choices from which both remain, with the worths v and the total S at each choice:

    B_ab = v_a v_b Σ 1/S² .

Let r be the running sum of 1/S² along a ranking. In a subset ranking, two listed classes share the
r of the earlier one. In a top-K ranking, the classes that are not listed share the whole sum R with
each other, and r with a listed one. So with E = ΣR over all rankings, and d_a = Σ(R - r_a) over
those that list a,

    B_ab = v_a v_b (E - d_a - d_b + Σ (R - r of the later one)),

where the last sum is over the rankings that list both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rankshot.core.arrays import row_blocks
from rankshot.core.errors import prefix_errors
from rankshot.core.estimators import Estimator, check_is_fitted, warn_of_convergence
from rankshot.core.newton import Point
from rankshot.core.validation import (
    Seed,
    as_names,
    require_generator,
    require_number,
    require_whole_number,
)
from rankshot.ranking.construction import Entries, row_starts
from rankshot.ranking.matrices import alike_items, group_ties, name_groups
from rankshot.ranking.models.information import (
    find_covariance,
    maximize_worths,
    require_estimable,
)
from rankshot.ranking.models.plackett_luce_stages import (
    Block,
    BlockSums,
    add_up,
    find_gradients,
    log_prob,
    split_by_width,
)
from rankshot.ranking.rankings import (
    Rankings,
    keep_counted,
    merge_copies,
    require_one_subject,
    require_rankings,
    require_sample_length,
)

Floats = NDArray[np.float64]
TIED = 1e-6
"""Items whose log-worths differ by less are tied in the mode: solvers are not exact."""
FEW_RANKINGS = 64
"""Up to this number, merging equal rankings takes as long as it saves."""


class PlackettLuce(Estimator):
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

    @classmethod
    def from_worths(cls, worths: Mapping[str, float]) -> PlackettLuce:
        """Fitted model with given ``worths``.

        Examples
        --------
        >>> from rankshot import PlackettLuce
        >>> PlackettLuce.from_worths({"leopard": 3, "tiger": 1}).worths_
        array([0.75, 0.25])
        """
        values = []
        for item, worth in worths.items():
            with prefix_errors(f"item {item!r}"):
                values.append(require_number("worths", worth, above=0, below=np.inf))
        return cls(regularization=0.0)._with_log_worths(as_names(worths), np.log(values))

    def fit(self, rankings: Rankings) -> PlackettLuce:
        """Estimate the worths.

        Parameters
        ----------
        rankings : Rankings or dict of lists
            Full, top-K or subset rankings, with or without ties; their weights are used.
        """
        require_number("regularization", self.regularization, least=0, below=np.inf)
        require_number("tol", self.tol, least=0, below=np.inf)
        require_whole_number("max_iter", self.max_iter)
        rankings = require_one_subject(rankings)
        weight = float(rankings.weights.sum())
        # Sums are in units of the total weight: otherwise those of tiny weights would underflow.
        counted = keep_counted(replace(rankings, weights=rankings.weights / weight))
        if len(counted) > FEW_RANKINGS:
            counted = merge_copies(counted)[0]
        if self.regularization == 0:
            require_estimable(counted)
        class_of = alike_items(counted)
        likelihood = Likelihood(counted, class_of)
        # Rankings of small weight have a small log-likelihood.
        tol = self.tol * min(1.0, weight) / weight
        penalty = self.regularization / weight * likelihood.counts.astype(np.float64)
        optimum = maximize_worths(likelihood, penalty, tol, self.max_iter)
        theta, self.n_iter_ = optimum.parameters, optimum.n_iter
        if not optimum.converged:
            advice = "raise max_iter"
            if optimum.n_iter < self.max_iter:
                advice = "rounding errors hide further improvement; pass weights that differ less"
            warn_of_convergence(
                f"the fit did not converge in {optimum.n_iter} iterations: {advice}", stacklevel=2
            )
        self.log_likelihood_ = weight * (optimum.value + float(penalty @ theta**2) / 2)
        return self._with_log_worths(rankings.items, theta[class_of])

    def _with_log_worths(self, items: tuple[str, ...], theta: Floats) -> PlackettLuce:
        self.items_ = items
        self.log_worths_ = theta - theta.mean()
        worths = np.exp(theta - theta.max())
        self.worths_ = worths / worths.sum()
        self.mode_ = name_groups(group_ties(-self.log_worths_, tolerance=TIED), items)
        return self

    def log_prob(self, rankings: Rankings) -> Floats:
        """Log-probability of each ranking, accurate for any ratio of worths."""
        check_is_fitted(self)
        return log_prob(require_rankings(rankings), self.items_, self.log_worths_)

    def covariance(self, rankings: Rankings) -> Floats:
        """Covariance of ``log_worths_``, from the information in ``rankings``.

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
        rankings = require_one_subject(rankings).with_items(self.items_)
        ridge = np.full(len(self.items_), self.regularization)
        return find_covariance(Likelihood(rankings), self.log_worths_, ridge, self.items_)

    def standard_errors(self, rankings: Rankings) -> Floats:
        """Standard errors of ``log_worths_`` fitted to ``rankings``."""
        return np.sqrt(np.diag(self.covariance(rankings)))

    def sample(self, n: int = 1, k: int | None = None, random_state: Seed = None) -> Rankings:
        """Draw ``n`` top-``k`` rankings (full by default), with the seed ``random_state``.

        The draws are exact: each item gets an exponential time of rate v_i, and the k items
        with the smallest times form the list.

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
        return Rankings.from_item_numbers(lists, items=self.items_)


def first_items(times: Floats, k: int) -> NDArray[np.intp]:
    """Columns of the k smallest numbers of each row, in order."""
    if k == times.shape[1]:
        return np.argsort(times, axis=1)
    columns = np.argpartition(times, k, axis=1)[:, :k]
    order = np.argsort(np.take_along_axis(times, columns, axis=1), axis=1)
    return np.take_along_axis(columns, order, axis=1)


# ---- The log-likelihood

FIT_CELLS = 1 << 15
"""Blocks of this size (256 kB) stay in the cache, and allocating them costs no page faults."""


def sum_information(blocks: list[Block], counts: NDArray[np.int64], theta: Floats) -> Floats:
    """Minus the second derivatives of the log-likelihood of some blocks.

    Off the diagonal it is minus B = E v vᵀ + v yᵀ + y vᵀ + P; its rows add up to zero.
    """
    C = len(theta)
    worths: Floats = np.asarray(counts * np.exp(theta), np.float64)
    # The last row and column are of C, which is not a class.
    everywhere, left_out, half = 0.0, np.zeros(C + 1), np.zeros((C + 1, C + 1))
    for block in blocks:
        sums = block.sum_up(theta)
        rate = _sum_choices(block, sums, half, left_out)
        if block.complete:
            half[:-1, :-1] += _sum_complete(block, rate) * worths[:, None] * worths
        else:
            everywhere += _sum_listed(block, sums.worths, rate, half, left_out)
    half[:C, :C] += np.outer(worths, left_out[:C] + everywhere / 2 * worths)
    both = half[:C, :C] + half[:C, :C].T
    np.fill_diagonal(both, 0.0)
    return np.asarray(np.diag(both.sum(axis=1)) - both)


def _add_pairs(
    half: Floats, first: NDArray[np.intp], second: NDArray[np.intp], values: Floats
) -> None:
    """Add values to the numbers of pairs of classes, in place."""
    cells = np.broadcast_to(first * len(half) + second, values.shape)
    # One dimension is much faster than two.
    np.add.at(half.reshape(-1), cells.ravel(), values.ravel())


def _sum_choices(block: Block, sums: BlockSums, half: Floats, left_out: Floats) -> Floats:
    """R of each cell; add the tied pairs to P, and what ties add to y."""
    order = block.order
    rate = block.choices / sums.totals**2
    for tie, choice in zip(block.stages.ties, sums.choices, strict=True):
        weight, rest = block.weights[tie.column], sums.remaining[tie.end, tie.column]
        g = tie.members.shape[1]
        # Two later classes, two tied ones (each pair is met twice), and one of each.
        by_rest = choice.hessian[:, g, g] + choice.gradient.sum(axis=1)
        np.add.at(rate, (tie.end, tie.column), weight * by_rest / rest**2)
        tied, other = tie.members[:, :, None], tie.members[:, None]
        _add_pairs(half, tied, other, weight[:, None, None] / 2 * choice.hessian[:, :g, :g])
        mixed = (weight / rest)[:, None] * choice.hessian[:, :g, g]
        top = block.stages.has_rest[tie.column]
        np.add.at(left_out, tie.members, mixed * top[:, None])
        later = np.arange(len(order)) >= tie.end[:, None]
        # y gives a share to all classes; it is taken back from those that are not later.
        shares = sums.worths[:, tie.column].T * (later - 1.0 * top[:, None])
        _add_pairs(half, tied, order[:, tie.column].T[:, None], mixed[:, :, None] * shares[:, None])
    add_up(rate)
    return rate


def _sum_listed(
    block: Block, worths: Floats, rate: Floats, half: Floats, left_out: Floats
) -> float:
    """E; add the pairs that a ranking lists to P, and the rest to y."""
    order, has_rest = block.order, block.stages.has_rest
    whole = rate[-1] * has_rest
    for i in range(len(order) - 1):
        shared = np.where(has_rest, whole - rate[i + 1 :], rate[i])
        shared *= worths[i]
        shared *= worths[i + 1 :]
        _add_pairs(half, order[i], order[i + 1 :], shared)
    missed = worths * (whole - rate) * has_rest
    left_out -= np.bincount(order.ravel(), missed.ravel(), minlength=left_out.size)
    return float(whole.sum())


def _sum_complete(block: Block, rate: Floats) -> Floats:
    """Σ r of the earlier one of two classes, where all of them are laid out."""
    C = block.n_classes
    running = np.zeros((C + 1, len(block.weights)))
    running[block.order, np.arange(len(block.weights))] = rate
    half = np.zeros((C, C))
    for a in range(C):
        half[a, a:] = np.minimum(running[a], running[a:C]).sum(axis=1)
    return half


# ---- The log-likelihood


class Likelihood:
    """The log-likelihood of weighted rankings, as the solvers need it.

    The derivative in the log-worth of class c is ``wins[c] - expected[c]``: how often it was
    chosen, minus how often the model expects it to be. A class has ``counts[c]`` items.

    All sums are running sums along the rankings, so the cost of one evaluation is proportional to
    the number of classes that they list.
    """

    def __init__(self, rankings: Rankings, class_of: NDArray[np.intp] | None = None) -> None:
        self._rankings = rankings = keep_counted(rankings)
        self.counts: NDArray[np.int64] = np.ones(rankings.n_items, np.int64)
        if class_of is not None and class_of.max() + 1 < rankings.n_items:
            self.counts = np.bincount(class_of)
            rankings = _list_classes(rankings, class_of)
        self.n_items = self.size = len(self.counts)
        self._blocks = [
            Block(rankings[rows], self.counts, complete)
            for rows, complete in split_by_width(rankings.n_listed, self.size, FIT_CELLS)
        ]
        self.wins: Floats = np.sum([block.wins for block in self._blocks], axis=0)

    def information(self, theta: Floats) -> Floats:
        """Minus the matrix of second derivatives."""
        theta = theta - theta.max()
        return sum_information(self._split(theta), self.counts, theta)

    def evaluate(self, theta: Floats) -> Point:
        """Log-likelihood and its gradient."""
        theta = theta - theta.max()
        value, expected = 0.0, np.zeros(self.size)
        for block in self._split(theta):
            part, chosen = block.value_and_expected(theta)
            value += part
            expected += chosen
        size = abs(value) + float(self.wins.sum()) * (1 - float(theta.min()))
        return Point(value, self.wins - expected, size, self.wins + expected)

    def row_gradients(self, theta: Floats) -> csr_array:
        """Derivatives of each ranking, whatever its weight, in the log-worths of all items."""
        return find_gradients(self._rankings, theta)

    def _split(self, theta: Floats) -> list[Block]:
        return [part for block in self._blocks for part in block.split(theta)]


def _list_classes(rankings: Rankings, class_of: NDArray[np.intp]) -> Rankings:
    """List the classes of items instead of the items; ``lengths`` still count items."""
    _, representatives = np.unique(class_of, return_index=True)
    kept = np.isin(rankings.codes, representatives)
    sizes = np.bincount(rankings.entry_rows[kept], minlength=len(rankings))
    lists = Entries(
        class_of[rankings.codes[kept]].astype(np.int32), rankings.places[kept], row_starts(sizes)
    )
    names = tuple(rankings.items[i] for i in representatives)
    return replace(rankings, items=names, **lists._asdict())
