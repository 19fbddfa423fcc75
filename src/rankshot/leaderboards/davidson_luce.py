r"""The Davidson-Luce model: Plackett-Luce where a tie is an outcome of its own.

The sum of f(S) = δ_k (Π α_i)^(1/k) over all sets of k items is δ_k times an elementary symmetric
polynomial of the numbers α_i^(1/k). One more item gives

.. math:: e_j(A \cup \{i\}) = e_j(A) + \alpha_i^{1/k} e_{j-1}(A).

So one pass from a ranking's last item to its first gives the sums of all its choices, one pass
back gives the derivatives, and no set is enumerated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from rankshot.core.arrays import row_blocks
from rankshot.core.errors import RankshotError
from rankshot.core.estimators import check_is_fitted
from rankshot.core.newton import Point
from rankshot.leaderboards.pair_models import PairLikelihood
from rankshot.ranking.construction import Groups, count_places
from rankshot.ranking.matrices import completed_orders
from rankshot.ranking.models.information import find_covariance, find_flat, maximize_worths
from rankshot.ranking.models.plackett_luce import WorthModel
from rankshot.ranking.models.plackett_luce_stages import Gradients
from rankshot.ranking.rankings import (
    Rankings,
    are_votes,
    keep_counted,
    merge_copies,
    require_one_subject,
    require_rankings,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
CELLS_AT_ONCE = 1 << 18
"""The cells of the arrays of some rankings: they stay in the cache."""
WIDEST_RANGE = 600.0
"""Log-worths of a fit differ by no more: sums of worths must not underflow."""


class DavidsonLuce(WorthModel):
    r"""The Davidson-Luce model of rankings in which a tie is an outcome of its own.

    A ranking is a sequence of choices of sets. From the items A that remain, the set S is chosen
    with a probability proportional to

    .. math:: f(S) = \delta_{|S|} \left(\prod_{i \in S} \alpha_i\right)^{1/|S|}

    with worths α and tie parameters δ, where δ_1 = 1. For pairs this is Davidson's model, where
    two items of equal worth tie with probability δ_2 / (2 + δ_2). Without ties it is the
    Plackett-Luce model, and for pairs that of Bradley and Terry. In `PlackettLuce`, by contrast,
    a tie means that the order is unknown.

    Parameters
    ----------
    regularization : float
        η in the penalty η/2 Σ θ², on log-worths θ. With 0 the fit is maximum likelihood; if no
        maximum exists, `fit` raises an error that names the items. A maximum exists if wins and
        losses connect all items in both directions; ties also connect items, if other rankings
        limit the tie parameter.
    tol, max_iter
        Those of `PlackettLuce`.

    Attributes
    ----------
    tie_parameters_ : dict
        δ for each size of tie that occurs in the rankings. Ties of other sizes have probability 0.
    items_, worths_, log_worths_, mode_, log_likelihood_, n_iter_
        Those of `PlackettLuce`.

    Notes
    -----
    The items that a top-K ranking leaves out are among the alternatives of each choice; the
    ranking contains no information about their order or ties. A tie that K cuts raises an error.

    The log-likelihood is concave in the logarithms of worths and tie parameters. The sums over
    sets take O(D²) time per item of a ranking, for ties of at most D items.

    References
    ----------
    Davidson (1970), On extending the Bradley-Terry model to accommodate ties in paired comparison
    experiments. Journal of the American Statistical Association 65. Firth, Kosmidis and Turner
    (2019), Davidson-Luce model for multi-item choice with ties. arXiv:1909.07123.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_pair_counts(
    ...     [[0, 6, 4], [3, 0, 5], [2, 4, 0]], ties=[[0, 2, 1], [2, 0, 3], [1, 3, 0]],
    ...     items=["a", "b", "c"])
    >>> model = rs.leaderboards.DavidsonLuce(regularization=0).fit(votes)
    >>> model.worths_.round(3)
    array([0.511, 0.265, 0.224])
    >>> round(model.tie_parameters_[2], 3)
    0.52
    """

    def fit(self, rankings: Rankings) -> DavidsonLuce:
        """Estimate worths and tie parameters from weighted ``rankings`` of any kind."""
        self._require_settings()
        rankings = require_one_subject(rankings)
        merged = _merge(rankings)
        sizes = self._list_sizes(merged)
        require_finite_ties(merged, sizes)
        likelihood = build_likelihood(merged, sizes)
        ridge = np.where(np.arange(likelihood.size) < rankings.n_items, self.regularization, 0.0)
        tol = self.tol * min(1.0, float(rankings.weights.sum()))
        optimum = maximize_worths(likelihood, ridge, tol, self.max_iter)
        if self.regularization == 0:
            require_finite_worths(likelihood, optimum.parameters, rankings.items)
        values = self._take_parameters(optimum)
        self.log_likelihood_ = likelihood.evaluate(values).value
        return self._with_values(rankings.items, sizes[1:].tolist(), values)

    def _with_values(
        self, items: tuple[str, ...], sizes: list[int], values: Floats
    ) -> DavidsonLuce:
        deltas = np.exp(values[len(items) :])
        self.tie_parameters_ = dict(zip(sizes, deltas.tolist(), strict=True))
        return self._with_log_worths(items, values[: len(items)])

    @staticmethod
    def _list_sizes(rankings: Rankings) -> Ints:
        """Return the sizes of chosen sets, 1 first."""
        return np.union1d([1], count_choices(rankings)[0])

    @property
    def _sizes(self) -> NDArray[np.intp]:
        return np.array([1, *self.tie_parameters_])

    @property
    def _values(self) -> Floats:
        """Log-worths, then the logarithms of tie parameters."""
        return np.append(self.log_worths_, np.log([*self.tie_parameters_.values()]))

    def log_prob(self, rankings: Rankings) -> Floats:
        """Return the log-probability of each of the ``rankings``, for any ratio of worths."""
        check_is_fitted(self)
        rankings = require_rankings(rankings).with_items(self.items_)
        refuse_cut_ties(rankings)
        return log_prob(rankings, self._sizes, self._values)

    def covariance(self, rankings: Rankings) -> Floats:
        """Return the covariance of ``log_worths_``, from the information in ``rankings``.

        Log-worths are determined up to a common shift; this is the covariance of log-worths that
        add up to zero. A penalty is interpreted as a prior.
        """
        check_is_fitted(self)
        rankings = require_one_subject(rankings)
        merged = _merge(rankings.with_items(self.items_))
        unknown = np.setdiff1d(self._list_sizes(merged), self._sizes)
        if unknown.size:
            raise RankshotError(
                f"the model has no tie parameter for ties of {unknown[0]} items, which these "
                "rankings have: fit it to rankings with such ties"
            )
        C, likelihood = len(self.items_), build_likelihood(merged, self._sizes)
        ridge = np.where(np.arange(likelihood.size) < C, self.regularization, 0.0)
        return find_covariance(likelihood, self._values, ridge, self.items_)[:C, :C]


def _merge(rankings: Rankings) -> Rankings:
    """Merge equal rankings; refuse ties that K cuts."""
    refuse_cut_ties(rankings)
    return merge_copies(keep_counted(rankings))[0]


# ---- Polynomials


class Polynomials:
    """The elementary symmetric polynomials e_1, …, e_k of the numbers α^(1/k), for some sizes k.

    An array of their logarithms has a first row for e_0 = 1, and then the rows of all sizes:
    ``scale`` is 1/k and ``previous`` the row of one degree less, for each row but the first;
    ``whole`` is the row of e_k for each size.
    """

    def __init__(self, sizes: Ints) -> None:
        self.sizes = sizes
        self.n_rows = 1 + int(sizes.sum())
        self.scale = np.repeat(1 / sizes, sizes)[:, None]
        self.whole = np.cumsum(sizes)
        self.previous = np.arange(self.n_rows - 1)
        self.previous[self.whole - sizes] = 0
        self._lower = self.previous[self.previous > 0] - 1

    def add_items(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Add up the polynomials of items p, p + 1, …, in row p; each column is a list of items.

        Return the logarithm of e_k for each size k, (m, sizes, n), and which shares of each
        polynomial are due to sets without item p and with it, (m, rows, n).
        """
        m, n = theta.shape
        largest = theta.max()
        worths = np.exp(theta - largest)
        roots = np.repeat([worths ** (1 / size) for size in self.sizes], self.sizes, axis=0)
        sums = np.zeros((m + 1, self.n_rows, n))
        sums[:, 0] = 1.0
        added = np.empty((m, self.n_rows - 1, n))
        for p in reversed(range(m)):
            np.multiply(roots[:, p], sums[p + 1, self.previous], out=added[p])
            np.add(sums[p + 1, 1:], added[p], out=sums[p, 1:])
        total = np.where(sums[:-1, 1:] > 0, sums[:-1, 1:], 1.0)
        with np.errstate(divide="ignore"):
            log_whole = np.log(sums[:-1, self.whole]) + largest
        return log_whole, sums[1:, 1:] / total, added / total

    def add_logs(self, theta: Floats) -> Floats:
        """Logarithms of e_k, as of `add_items`, for any ratio of worths."""
        m, n = theta.shape
        logs = np.full((m + 1, self.n_rows, n), -np.inf)
        logs[:, 0] = 0.0
        for p in reversed(range(m)):
            after = logs[p + 1]
            np.logaddexp(after[1:], self.scale * theta[p] + after[self.previous], out=logs[p, 1:])
        return np.asarray(logs[:-1, self.whole])

    def pass_down(self, rows: Floats, moved: Floats) -> None:
        """Add what moves from each polynomial to that of one degree less."""
        rows[self._lower] += moved[self._lower + 1]


# ---- Rankings as sequences of choices


class SetChoices(NamedTuple):
    """Rankings with the same number of alternatives m, one per column."""

    codes: Ints
    """The alternatives in order, (m, n); those that are not placed come last."""
    chosen: Floats
    """1/k for an item that is chosen in a set of k, and 0 for one that is not placed: (m, n)."""
    place: Ints
    """For each choice, how many items of its ranking come before it."""
    column: Ints
    size: Ints
    rows: Ints
    """The number of the ranking of each column."""


def lay_out_choices(rankings: Rankings, n_rows: int) -> Iterator[SetChoices]:
    """Yield rankings as sequences of choices, for arrays of ``n_rows`` numbers per item."""
    width = rankings.n_compared
    for m in np.unique(width):
        of_width = np.flatnonzero(width == m)
        for some in row_blocks(of_width.size, int(m) * n_rows, CELLS_AT_ONCE):
            yield _lay_out(rankings[of_width[some]], int(m), of_width[some])


def _lay_out(part: Rankings, m: int, rows: Ints) -> SetChoices:
    n = len(part)
    codes = part.codes.reshape(n, m) if m < part.n_items else completed_orders(part)
    groups = part.groups
    begin, size, column, _ = groups
    kept = _is_choice(part, groups)
    chosen = np.zeros((m, n))
    shares = np.repeat(np.where(kept, 1 / size, 0.0), size)
    chosen[count_places(part.starts), part.entry_rows] = shares
    return SetChoices(codes.T.astype(np.intp), chosen, begin[kept], column[kept], size[kept], rows)


def _is_choice(rankings: Rankings, groups: Groups) -> NDArray[np.bool_]:
    """Whether groups of tied items are choices: not those after the first K, nor a last item."""
    return np.asarray((groups.taken > 0) & (groups.begin + 1 < rankings.n_compared[groups.row]))


def count_choices(rankings: Rankings) -> tuple[Ints, Ints]:
    """Return the size of each chosen set, and the number of items that it was chosen from."""
    groups = rankings.groups
    kept = _is_choice(rankings, groups)
    return groups.size[kept], (rankings.n_compared[groups.row] - groups.begin)[kept]


def refuse_cut_ties(rankings: Rankings) -> None:
    """Raise for the first ranking with a tie that K cuts."""
    groups = rankings.groups
    if (cut := groups.is_cut).any():
        first = int(np.argmax(cut))
        row = groups.row[first]
        raise RankshotError(
            f"ranking {row}: K = {rankings.lengths[row]} cuts a tie of {groups.size[first]} items. "
            "Where a tie is an outcome, its items are chosen together: rank to the end of the tie, "
            "or use PlackettLuce, where a tie means that the order is unknown"
        )


# ---- The log-likelihood


def _unpack(values: Floats, n_items: int) -> tuple[Floats, Floats]:
    """Return log-worths, and the logarithms of the tie parameters of each size (0 for size 1)."""
    return values[:n_items], np.append(0.0, values[n_items:])


def log_prob(rankings: Rankings, sizes: Ints, values: Floats) -> Floats:
    """Return the log-probability of each ranking; sets of other sizes are never chosen."""
    polynomials, (log_worths, gamma) = Polynomials(sizes), _unpack(values, rankings.n_items)
    result = np.zeros(len(rankings))
    for block in lay_out_choices(rankings, polynomials.n_rows):
        theta = log_worths[block.codes]
        log_sums = polynomials.add_logs(theta)[block.place, :, block.column]
        total = np.logaddexp.reduce(log_sums + gamma, axis=1)
        log_delta = np.where(block.size[:, None] == sizes, gamma, -np.inf).max(axis=1)
        result[block.rows] = (block.chosen * theta).sum(axis=0)
        np.add.at(result, block.rows[block.column], log_delta - total)
    return result


class Likelihood:
    """The log-likelihood of weighted rankings, in log-worths and log tie parameters.

    The model is a log-linear one: a derivative is ``observed - expected``, where ``observed``
    holds Σ 1/k over the chosen sets of k items that an item is in, and how often each size was
    chosen. The first of ``sizes`` is 1.
    """

    def __init__(self, rankings: Rankings, sizes: Ints) -> None:
        self.n_items = rankings.n_items
        self._polynomials = Polynomials(sizes)
        self._blocks = [
            (block, rankings.weights[block.rows])
            for block in lay_out_choices(rankings, self._polynomials.n_rows)
        ]
        self.size = self.n_items + sizes.size - 1
        self.observed = np.zeros(self.size)
        for block, weights in self._blocks:
            np.add.at(self.observed[: self.n_items], block.codes, block.chosen * weights)
            of_size = block.size[:, None] == sizes[1:]
            self.observed[self.n_items :] += weights[block.column] @ of_size

    def evaluate(self, values: Floats) -> Point:
        """Return the log-likelihood and its gradient: observed minus expected."""
        if np.ptp(values[: self.n_items]) > WIDEST_RANGE:
            return Point(-np.inf, np.zeros_like(values))
        value, expected = float(self.observed @ values), np.zeros_like(values)
        for block, weights in self._blocks:
            passes = _Passes(self._polynomials, block, weights, values)
            value -= float(weights[block.column] @ passes.log_totals)
            np.add.at(expected, block.codes, passes.expected)
            expected[self.n_items :] += passes.by_size[:, 1:].sum(axis=0)
        size = abs(value) + float(self.observed.sum()) * (1 + float(np.ptp(values)))
        return Point(value, self.observed - expected, size, self.observed + expected)

    def row_gradients(self, values: Floats) -> Gradients:
        """Return the derivatives of each ranking, whatever its weight."""
        sizes = self._polynomials.sizes[1:]
        cells: list[tuple[Ints, Ints, Floats]] = []
        for block, weights in self._blocks:
            passes = _Passes(self._polynomials, block, np.ones_like(weights), values)
            cells.append((block.rows, block.codes, block.chosen - passes.expected))
            of_size = (block.size[:, None] == sizes) - passes.by_size[:, 1:]
            columns = self.n_items + np.arange(sizes.size)
            cells.append((block.rows[block.column][:, None], columns, of_size))
        wide = [np.broadcast_arrays(*each) for each in cells]
        row, column, slope = (
            np.concatenate([x.ravel() for x in each]) for each in zip(*wide, strict=True)
        )
        n = sum(block.rows.size for block, _ in self._blocks)
        found = csr_array((slope, (row, column)), shape=(n, values.size))
        return Gradients(found, np.zeros(n), np.zeros(self.size))

    def information(self, values: Floats) -> Floats:
        """Return minus the matrix of second derivatives."""
        C, n_sizes = self.n_items, self._polynomials.sizes.size
        information = np.zeros((values.size, values.size))
        for block, weights in self._blocks:
            passes = _Passes(self._polynomials, block, weights, values)
            # The matrix is symmetric: the passes of item p can end there.
            for p, codes in enumerate(block.codes):
                slope = np.zeros((p + 1, 1))
                slope[p] = 1.0
                change, _ = passes.differentiate(slope, np.zeros(n_sizes))
                change[p] /= 2
                np.add.at(information, (block.codes[: p + 1], codes), change)
            slope = np.zeros((len(block.codes), 1))
            for k, direction in enumerate(np.eye(n_sizes)[1:], C):
                change, by_size = passes.differentiate(slope, direction)
                np.add.at(information[:, k], block.codes, change)
                information[C:, k] += by_size[:, 1:].sum(axis=0) / 2
        return information + information.T


def build_likelihood(rankings: Rankings, sizes: Ints) -> Likelihood | PairLikelihood:
    """Return the likelihood of rankings; that of pairs has no sums over sets."""
    if sizes[-1] <= 2 and are_votes(rankings):
        return PairLikelihood(rankings, has_ties=sizes.size > 1)
    return Likelihood(rankings, sizes)


class _Passes:
    """The pass from the last items of rankings to the first, and back, of one block.

    ``log_totals`` are the logarithms of the sums that choices are divided by, ``by_size`` the
    weight of each choice times the probability of each size, and ``expected`` what the model
    expects of ``SetChoices.chosen``, times the weights.
    """

    def __init__(
        self, polynomials: Polynomials, block: SetChoices, weights: Floats, values: Floats
    ) -> None:
        self._polynomials = polynomials
        log_worths, gamma = _unpack(values, values.size + 1 - polynomials.sizes.size)
        theta = log_worths[block.codes]
        log_whole, self._without, self._with = polynomials.add_items(theta)
        self._at = block.place[:, None], polynomials.whole - 1, block.column[:, None]
        log_sums = log_whole[block.place, :, block.column] + gamma
        self.log_totals = np.logaddexp.reduce(log_sums, axis=1)
        self._probability = np.exp(log_sums - self.log_totals[:, None])
        self._weights = weights[block.column][:, None]
        self.by_size = self._weights * self._probability
        self._rates = np.zeros_like(self._without)
        self._rates[self._at] = self.by_size
        self.expected = np.empty_like(theta)
        for p, rates in enumerate(self._rates):
            moved = rates * self._with[p]
            self.expected[p] = (polynomials.scale * moved).sum(axis=0)
            if p + 1 < len(theta):
                self._rates[p + 1] += rates * self._without[p]
                polynomials.pass_down(self._rates[p + 1], moved)

    def differentiate(self, theta: Floats, gamma: Floats) -> tuple[Floats, Floats]:
        """Return the derivatives of ``expected``, of the items of ``theta``, and ``by_size``."""
        polynomials, m = self._polynomials, len(theta)
        logs = np.zeros((len(self._rates) + 1, polynomials.n_rows, self._rates.shape[2]))
        for p in reversed(range(m)):
            step = polynomials.scale * theta[p] + logs[p + 1, polynomials.previous]
            logs[p, 1:] = self._without[p] * logs[p + 1, 1:] + self._with[p] * step
        slope = logs[:, 1:][self._at] + gamma
        mean = (self._probability * slope).sum(axis=1, keepdims=True)
        by_size = self.by_size * (slope - mean)
        rates = np.zeros_like(self._rates)
        rates[self._at] = by_size
        expected = np.empty_like(self.expected[:m])
        for p in range(m):
            step = polynomials.scale * theta[p] + logs[p + 1, polynomials.previous]
            moved = self._with[p] * (rates[p] + self._rates[p] * (step - logs[p, 1:]))
            expected[p] = (polynomials.scale * moved).sum(axis=0)
            if p + 1 < m:
                change = logs[p + 1, 1:] - logs[p, 1:]
                rates[p + 1] += self._without[p] * (rates[p] + self._rates[p] * change)
                polynomials.pass_down(rates[p + 1], moved)
        return expected, by_size


# ---- Do the rankings determine the estimate?


def require_finite_ties(rankings: Rankings, sizes: Ints) -> None:
    """Raise if a tie parameter would be infinite."""
    chosen, available = count_choices(rankings)
    most = np.array([available[chosen == size].max(initial=1) for size in sizes])
    chosen_over = most[:, None] >= sizes
    count, label = connected_components(csr_array(chosen_over), connection="strong")
    if count > 1:
        size = sizes[np.flatnonzero(label != label[0])[0]]
        raise RankshotError(
            f"the tie parameter of ties of {size} items is infinite: wherever such a tie was "
            "possible, items tied. Add rankings with fewer ties, or use PlackettLuce (for a "
            "leaderboard, ties='half')"
        )


def require_finite_worths(
    likelihood: Likelihood | PairLikelihood, values: Floats, items: tuple[str, ...]
) -> None:
    """Raise if the solver stopped where nothing holds the estimate: then none exists.

    The log-likelihood is concave. Without a maximum it rises forever in some direction, ever less,
    and has no curvature left there, while one ranking that contradicts the direction has some.
    """
    directions = find_flat(likelihood, values)[: len(items)]
    # The direction of equal log-worths says nothing.
    apart = directions - directions.mean(axis=0)
    flat = (apart**2).sum(axis=0) > 1e-6
    if flat.any():
        worths = apart[:, np.argmax(flat)]
        low, high = items[worths.argmin()], items[worths.argmax()]
        raise RankshotError(
            "the maximum-likelihood estimate does not exist: no ranking keeps the worths of "
            f"{low!r} and {high!r} from growing apart without end (ties do not prevent it, because "
            "the tie parameter may grow as well). Use regularization > 0, or add rankings that "
            "connect them"
        )
