"""The Babington-Smith model: all pairs of items are compared, given that the results agree.

The results of the comparisons must form an order. The normaliser is a sum over all orders,
computed exactly by a recursion over subsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import comb as binomial, gammaln, logsumexp

from rankshot.core.errors import NO_VALUE, InputError
from rankshot.core.estimators import Estimator, check_is_fitted, warn_of_convergence
from rankshot.core.validation import (
    Seed,
    as_names,
    require_generator,
    require_number,
    require_whole_number,
)
from rankshot.ranking.consensus.kemeny_solvers import solve_exactly
from rankshot.ranking.consensus.precedence import precedence
from rankshot.ranking.construction import read_item_table
from rankshot.ranking.matrices import completed_orders, iterate_choices
from rankshot.ranking.rankings import (
    Rankings,
    refuse_partial,
    require_one_subject,
    require_rankings,
    require_sample_length,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MAX_SUBSETS = 5_000_000
"""The most subsets of one size that are summed over: 4 of 100 items have 3.9 million."""
NO_SUBSETS = "the Babington-Smith model does not define its probability. Use PlackettLuce"


class BabingtonSmith(Estimator):
    r"""The Babington-Smith model of full and top-K rankings, from pairwise log-odds.

    With half the log-odds f_ij = -f_ji that i is placed before j, and v_ij = e^{f_ij}, the
    probability of a top-K ranking is equation 13 of Hamm and Belkin (2015),

    .. math:: P(\pi; v) = \frac{1}{\psi(v)} \prod_{i=1}^K \prod_{j>i} v_{\pi^{-1}(i) \pi^{-1}(j)}

    The normaliser ψ is computed exactly, by summing over subsets, if at most five million subsets
    of one size are needed (K = 4 of 100 items, or all of 24 items). Otherwise `log_prob`, `sample`
    and `fit` raise an error. `log_weight`, which omits ψ, always works, and its differences
    between lists of equal length are exact.

    Parameters
    ----------
    regularization : float
        η in the penalty η/2 Σ_{i<j} f_ij². It must be positive: without it, a pair that is always
        in the same order would have infinite log-odds.
    tol : float
        Stop when no derivative of the penalised log-likelihood, as a mean over the rankings,
        exceeds this.
    max_iter : int
        The maximum number of iterations; a warning is issued if the fit has not converged by then.

    Attributes
    ----------
    items_ : tuple of str
    log_odds_ : ndarray of shape (C, C)
        2 f, antisymmetric.
    mode_ : tuple of str
        The most probable full order, proved optimal.
    log_likelihood_ : float
        The log-likelihood of the rankings that were fitted, without the penalty.

    Notes
    -----
    In this form, a pair placed in the order i, j contributes the factor v_ij, and a pair in the
    opposite order v_ji = 1 / v_ij, so two full rankings that differ by one swap have odds v_ij².
    Because f is half the log-odds, this is the original model, whose factors are the probabilities
    α_ij with log-odds log(α_ij / α_ji).

    Subset rankings raise an error: the model has no probability for them.

    Examples
    --------
    >>> import rankshot as rs
    >>> import numpy as np
    >>> log_odds = np.log([[1, 3, 9], [1 / 3, 1, 3], [1 / 9, 1 / 3, 1]])
    >>> model = rs.BabingtonSmith.from_log_odds(log_odds, items=["a", "b", "c"])
    >>> model.mode_
    ('a', 'b', 'c')
    >>> one = rs.Rankings.from_orders([["a"], ["b"], ["c"]], items=["a", "b", "c"])
    >>> np.exp(model.log_prob(one)).round(3)
    array([0.813, 0.157, 0.03 ])
    >>> two = rs.BabingtonSmith.from_log_odds(np.log([[1, 3], [1 / 3, 1]]), items=["a", "b"])
    >>> np.exp(two.log_prob(rs.Rankings.from_orders([["a", "b"]]))).round(3)
    array([0.75])
    """

    def __init__(
        self,
        *,
        regularization: float = 0.01,
        tol: float = 1e-7,
        max_iter: int = 1000,
    ) -> None:
        self.regularization = regularization
        self.tol = tol
        self.max_iter = max_iter

    @classmethod
    def from_log_odds(cls, log_odds: ArrayLike, *, items: Iterable[object]) -> BabingtonSmith:
        """Model of ``items``; ``log_odds[i, j]`` are the log-odds that i precedes j."""
        names = as_names(items)
        _, table = read_item_table(log_odds, names, "log_odds", square=True)
        wrong = ~(np.isfinite(table) & np.isclose(table, -table.T, rtol=1e-9, atol=1e-9))
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            raise InputError(
                "log_odds",
                float(table[i, j]),
                f"and {table[j, i]} must be finite (no probability is 0 or 1), and one minus "
                "the other",
                where=f"{names[i]!r} over {names[j]!r}",
            )
        return cls()._with_log_odds(names, (table - table.T) / 2)

    def fit(self, rankings: Rankings) -> BabingtonSmith:
        """Estimate the log-odds by penalised maximum likelihood, with the exact normaliser.

        Parameters
        ----------
        rankings : Rankings
            Full or top-K rankings without ties; their weights are used.
        """
        require_number("regularization", self.regularization, above=0, below=np.inf)
        require_number("tol", self.tol, least=0, below=np.inf)
        require_whole_number("max_iter", self.max_iter)
        rankings = require_one_subject(rankings)
        refuse_partial(rankings, NO_SUBSETS)
        if rankings.has_ties:
            raise InputError(
                "rankings", NO_VALUE, "must have no ties for BabingtonSmith: break or drop them"
            )
        C = rankings.n_items
        longest = int(rankings.lengths.max())
        require_affordable(C, longest)
        before = precedence(rankings)
        # How often i was placed before j, minus how often j before i.
        wins = before - before.T
        weight_of_length = np.bincount(rankings.lengths, rankings.weights).astype(float)
        total = float(rankings.weights.sum())
        upper = np.triu_indices(C, 1)

        def matrix(parameters: Floats) -> Floats:
            f = np.zeros((C, C))
            f[upper] = parameters
            return f - f.T

        def negative(parameters: Floats) -> tuple[float, Floats]:
            f = matrix(parameters)
            log_z, expected = _normalizers(f, weight_of_length)
            penalty = self.regularization / 2 * float(parameters @ parameters)
            value = float(wins[upper] @ parameters) - log_z - penalty
            gradient = wins[upper] - expected[upper] - self.regularization * parameters
            return -value / total, -gradient / total

        result = minimize(
            negative,
            np.zeros(upper[0].size),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": self.max_iter, "gtol": self.tol, "ftol": 0.0},
        )
        if np.abs(negative(result.x)[1]).max(initial=0.0) > self.tol:
            warn_of_convergence(
                f"no convergence in {result.nit} iterations: raise max_iter", stacklevel=2
            )
        self._with_log_odds(rankings.items, 2 * matrix(result.x))
        self.log_likelihood_ = float(rankings.weights @ self.log_prob(rankings))
        return self

    def _with_log_odds(self, items: tuple[str, ...], log_odds: Floats) -> BabingtonSmith:
        self.items_ = items
        self.log_odds_ = log_odds
        return self

    @property
    def _factors(self) -> Floats:
        """The paper's f: half the log-odds."""
        return self.log_odds_ / 2

    @property
    def mode_(self) -> tuple[str, ...]:
        """The most probable full order: Kemeny's problem, with log-odds as votes."""
        check_is_fitted(self, "log_odds_")
        # Sort by strength and name first, so that the order of the columns has no influence.
        strength = np.round(self._factors.sum(axis=1), 9)
        start = np.lexsort((np.array(self.items_), -strength))
        votes = np.maximum(self._factors[np.ix_(start, start)], 0)
        order, _ = solve_exactly(votes)
        return tuple(self.items_[i] for i in start[order])

    def _log_normalizers(self, lengths: Sequence[int]) -> Floats:
        longest = max(lengths, default=1)
        require_affordable(len(self.items_), longest)
        sums = OrderSums(self._factors, longest)
        row_sums = self._factors.sum(axis=1)
        return np.array([logsumexp(sums.log_weights(row_sums, k)) for k in lengths])

    def log_prob(self, rankings: Rankings) -> Floats:
        """Log-probability of each ranking."""
        log_weight = self.log_weight(rankings)
        lengths, which = np.unique(rankings.lengths, return_inverse=True)
        return np.asarray(log_weight - self._log_normalizers(lengths.tolist())[which])

    def log_weight(self, rankings: Rankings) -> Floats:
        """Unnormalised log-probability of each ranking, without log ψ.

        A tie means that the order of its items is unknown and every order is equally likely.
        """
        check_is_fitted(self)
        rankings = require_rankings(rankings).with_items(self.items_)
        refuse_partial(rankings, NO_SUBSETS)
        strict = ~rankings.rows_with_ties
        result = np.empty(len(rankings))
        result[strict] = self._strict_log_weight(rankings[strict])
        for row in np.flatnonzero(~strict).tolist():
            result[row] = self._tied_log_weight(rankings[row])
        return result

    def _strict_log_weight(self, rankings: Rankings) -> Floats:
        """Sum the log-odds of each listed item over all items after it.

        For item i this is Σ_j f_ij over all j, minus the terms of the items before it.
        """
        total = np.append(self._factors.sum(axis=1), 0.0)
        result = np.zeros(len(rankings))
        order = completed_orders(rankings)
        for place in range(int(rankings.lengths.max(initial=0))):
            rows = np.flatnonzero(rankings.lengths > place)
            item = order[rows, place]
            gone = self._factors[item[:, None], order[rows, :place]].sum(axis=1)
            result[rows] += total[item] - gone
        return result

    def _tied_log_weight(self, ranking: Rankings) -> float:
        f = self._factors
        left = np.ones(len(f), bool)
        result = 0.0
        for tied, taken in iterate_choices(ranking):
            size = len(tied)
            require_affordable(size, taken)
            row_sums = f[np.ix_(tied, left)].sum(axis=1)
            result += float(log_sum_of_choices(f[np.ix_(tied, tied)], row_sums, taken))
            result -= float(gammaln(size + 1) - gammaln(size - taken + 1))
            left[tied] = False
        return result

    def sample(self, n: int = 1, k: int | None = None, random_state: Seed = None) -> Rankings:
        """Draw ``n`` exact top-``k`` samples (full by default), with the seed ``random_state``."""
        check_is_fitted(self)
        k = require_sample_length(n, k, len(self.items_))
        require_affordable(len(self.items_), k)
        rng = require_generator(random_state)
        sums = OrderSums(self._factors, k)
        lists = sums.sample_orders(self._factors.sum(axis=1), k, n, rng)
        return Rankings.from_item_numbers(lists, items=self.items_)


def require_affordable(n_items: int, k: int) -> None:
    """Raise if there are too many subsets of up to ``k`` items to sum over."""
    largest = max(comb(n_items, s) for s in range(1, k + 1))
    if largest > MAX_SUBSETS:
        raise InputError(
            "k",
            k,
            f"of {n_items} items needs {largest:.1e} subsets for the normaliser, which is too many",
            hint="use a smaller k, or log_weight, which omits the normaliser",
        )


def _normalizers(f: Floats, weight_of_length: Floats) -> tuple[float, Floats]:
    """Σ_k N_k log ψ_k, and its derivatives: the expected signed wins."""
    lengths = np.flatnonzero(weight_of_length)
    sums = OrderSums(f, int(lengths.max()))
    row_sums = f.sum(axis=1)
    total = 0.0
    mass: dict[int, Floats] = {}
    for k in lengths.tolist():
        log_weights = sums.log_weights(row_sums, k)
        log_z = float(logsumexp(log_weights))
        total += float(weight_of_length[k]) * log_z
        mass[k] = weight_of_length[k] * np.exp(log_weights - log_z)
    listed, before = sums.before_counts(mass)
    # A listed item precedes every item that is not listed.
    return total, listed[:, None] - listed + before - before.T


# ---- Sums over all orders of all subsets
#
# With pairwise log-odds f, the orders of a set S of items sum to
#
#     G(S) = Σ_orders Π_{a before b} e^{f_ab} = Σ_{i ∈ S} G(S - i) Π_{j ∈ S - i} e^{f_ji},
#
# where i is the item that comes last. The number of terms is that of the subsets, not of the
# orders. Subsets of one size are numbered by the combinatorial number system: the set
# c_1 < c_2 < … < c_s has number Σ_t binom(c_t, t).


class OrderSums:
    """log G(S) for all subsets S of up to ``k`` items."""

    def __init__(self, log_odds: Floats, k: int) -> None:
        self.log_odds = log_odds
        self.n_items = len(log_odds)
        ways = binomial(np.arange(self.n_items)[:, None], np.arange(k + 1), exact=False)
        self._ways = np.rint(ways).astype(np.int64)
        self.subsets: list[NDArray[np.int16]] = [np.zeros((1, 0), np.int16)]
        problems = log_odds.shape[2:]
        self.log_sums: list[Floats] = [np.zeros((1, *problems))]
        for size in range(1, k + 1):
            subsets = self._next_subsets(size)
            self.subsets.append(subsets)
            log_sum = np.full((len(subsets), *problems), -np.inf)
            for last in range(size):
                np.logaddexp(log_sum, self._log_term(subsets, last), out=log_sum)
            self.log_sums.append(log_sum)

    def _next_subsets(self, size: int) -> NDArray[np.int16]:
        """List the subsets of one size by number, grouped by their largest item."""
        smaller = self.subsets[size - 1]
        parts = [
            np.column_stack([smaller[: comb(top, size - 1)], np.full(comb(top, size - 1), top)])
            for top in range(size - 1, self.n_items)
        ]
        return np.concatenate(parts).astype(np.int16)

    def _log_term(self, subsets: NDArray[np.int16], last: int) -> Floats:
        """Log G(S - i) + Σ_{j ∈ S - i} f_ji, i being the ``last``-th item of each S."""
        rest = np.delete(subsets, last, axis=1)
        log_term: Floats = self.log_sums[rest.shape[1]][self.number(rest)]
        for other in rest.T:
            log_term = log_term + self.log_odds[other, subsets[:, last]]
        return log_term

    def number(self, subsets: NDArray[np.int16]) -> Ints:
        """Numbers of subsets of one size."""
        number = np.zeros(len(subsets), np.int64)
        for place, items in enumerate(subsets.T, 1):
            number += self._ways[items, place]
        return number

    def log_weights(self, row_sums: Floats, size: int) -> Floats:
        """Log Σ_{orders of S} of the weight of S coming first: Σ_{i ∈ S} R_i + log G(S)."""
        return np.asarray(row_sums[self.subsets[size]].sum(axis=1) + self.log_sums[size])

    def before_counts(self, mass: dict[int, Floats]) -> tuple[Floats, Floats]:
        """Mass of the orders that list each item, and each pair in each order."""
        C = self.n_items
        listed, before = np.zeros(C), np.zeros((C, C))
        flow = np.zeros(0)
        for size in range(max(mass), 0, -1):
            subsets = self.subsets[size]
            here = mass.get(size, np.zeros(len(subsets)))
            for column in range(size):
                listed += np.bincount(subsets[:, column], here, minlength=C)
            if flow.size:
                here = here + flow
            flow = np.zeros(len(self.subsets[size - 1]))
            for last in range(size):
                share = here * np.exp(self._log_term(subsets, last) - self.log_sums[size])
                rest = np.delete(subsets, last, axis=1)
                flow += np.bincount(self.number(rest), share, minlength=flow.size)
                for other in rest.T:
                    pair = other.astype(np.int64) * C + subsets[:, last]
                    before += np.bincount(pair, share, minlength=C * C).reshape(C, C)
        return listed, before

    def sample_orders(
        self, row_sums: Floats, size: int, n: int, rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """Draw lists of ``size`` items: first the subset, then its last item, and so on."""
        log_weights = self.log_weights(row_sums, size)
        cumulative = np.cumsum(np.exp(log_weights - log_weights.max()))
        number = np.searchsorted(cumulative, rng.random(n) * cumulative[-1], side="right")
        chosen = self.subsets[size][np.minimum(number, cumulative.size - 1)]
        lists = np.empty((n, size), np.int32)
        for left in range(size, 0, -1):
            log_terms = np.column_stack([self._log_term(chosen, last) for last in range(left)])
            # The largest of Gumbel-shifted log-probabilities is a draw from them.
            last = np.argmax(log_terms + rng.gumbel(size=log_terms.shape), axis=1)
            lists[:, left - 1] = np.take_along_axis(chosen, last[:, None], axis=1)[:, 0]
            kept = np.arange(left) != last[:, None]
            chosen = chosen[kept].reshape(n, left - 1)
        return lists


def log_sum_of_choices(log_odds: Floats, row_sums: Floats, taken: int) -> Floats:
    """Log Σ over ordered choices of ``taken`` of a few items of their weights."""
    sums = OrderSums(log_odds, taken)
    return np.asarray(logsumexp(sums.log_weights(row_sums, taken), axis=0))
