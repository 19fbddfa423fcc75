"""The Mallows model: rankings scatter around a centre, rarer the farther away they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankshot.ranking.arguments import require_one_subject, require_rankings
from rankshot.ranking.blocks import row_blocks
from rankshot.ranking.consensus import METHODS, average_order, kemeny
from rankshot.ranking.encode import as_names
from rankshot.ranking.errors import RankshotError
from rankshot.ranking.mallows_likelihood import MallowsStatistics
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.sampling import Seed, sample_length

Floats = NDArray[np.float64]


class Mallows(BaseEstimator):
    r"""The Mallows model with Kendall's distance, for full and top-K rankings, ties included.

    The probability of a top-K ranking (the paper's equation 11, after Fligner and Verducci) is

    .. math:: P(\pi; \pi_0, \lambda) = \frac{1}{\varphi(\lambda)} e^{-\lambda \sum_{j=1}^K V_j}

    where V_j counts the items still unplaced at stage j that the centre π₀ prefers to the one
    placed. Lists of different lengths may be mixed: each has its own normaliser. A tie means
    that the order inside it is unknown, each equally likely; the sum over orders is exact.
    Subset rankings are refused: their likelihood is not tractable.

    Parameters
    ----------
    consensus : {"insertion", "exact", "adjacent", "borda"}
        How the centre is found. The maximum-likelihood centre is Kemeny's consensus, so
        ``"exact"`` gives the maximum-likelihood estimate with proof; see `kemeny`.
    verbose : bool
        Show progress.

    Attributes
    ----------
    items_ : tuple of str
    center_ : tuple of str
        π₀, all items, best first.
    spread_ : float
        λ. It is infinite where all rankings agree with the centre.
    mode_ : tuple of str
        The same as ``center_``.
    log_likelihood_ : float
        Of the rankings fitted.

    Notes
    -----
    With ties that K cuts, the centre is the consensus that counts each tied item as listed
    with its probability: close to, but not always, the maximum-likelihood centre.

    References
    ----------
    Fligner and Verducci (1986), Distance based ranking models. JRSS B 48.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["a", "b", "c"], ["a", "c", "b"], ["b", "a"]], items=["a", "b", "c"])
    >>> model = rs.Mallows().fit(votes)
    >>> model.center_, round(model.spread_, 4)
    (('a', 'b', 'c'), 1.0443)
    """

    def __init__(
        self,
        *,
        consensus: Literal["insertion", "exact", "adjacent", "borda"] = "insertion",
        verbose: bool = False,
    ) -> None:
        self.consensus = consensus
        self.verbose = verbose

    @classmethod
    def from_center(cls, center: Sequence[str], spread: float) -> Mallows:
        """Return a fitted model with a known centre, all items best first, and spread.

        Examples
        --------
        >>> Mallows.from_center(["b", "a"], spread=0.5).mode_
        ('b', 'a')
        """
        if not spread >= 0:
            raise RankshotError(f"spread must be 0 or more, not {spread!r}")
        names = as_names(center, "center")
        return cls()._with_center(names, names, float(spread))

    def fit(self, rankings: Rankings) -> Mallows:
        """Find the centre, then the spread that makes the rankings most probable.

        Parameters
        ----------
        rankings : Rankings
            Full or top-K; their weights count.
        """
        require_one_subject(rankings)
        center = self._find_center(rankings)
        self._with_center(rankings.items, center, 0.0)
        statistics = self._statistics(rankings)
        self.spread_ = _best_spread(statistics, rankings.weights)
        log_prob = statistics.log_prob(self.spread_)[rankings.weights > 0]
        self.log_likelihood_ = float(rankings.weights[rankings.weights > 0] @ log_prob)
        return self

    def _find_center(self, rankings: Rankings) -> tuple[str, ...]:
        if self.consensus == "borda":
            return average_order(rankings)
        if self.consensus not in METHODS:
            allowed = ", ".join((*METHODS, "borda"))
            raise RankshotError(f"consensus must be one of {allowed}, not {self.consensus!r}")
        found = kemeny(rankings, self.consensus, verbose=self.verbose)
        return tuple(str(item) for item in found.order)

    def _with_center(
        self, items: tuple[str, ...], center: tuple[str, ...], spread: float
    ) -> Mallows:
        self.items_ = items
        self.center_ = self.mode_ = center
        self.spread_ = spread
        return self

    def _statistics(self, rankings: Rankings) -> MallowsStatistics:
        place = {name: i for i, name in enumerate(self.center_)}
        return MallowsStatistics(rankings, np.array([place[name] for name in rankings.items]))

    def log_prob(self, rankings: Rankings) -> Floats:
        """Return the log-probability of each ranking."""
        check_is_fitted(self)
        return self._statistics(require_rankings(rankings).with_items(self.items_)).log_prob(
            self.spread_
        )

    def sample(self, n: int = 1, k: int | None = None, random_state: Seed = None) -> Rankings:
        """Draw ``n`` independent top-``k`` rankings (full ones by default).

        Exact, by repeated insertion read from the top: the numbers V_j are independent, and
        each follows a geometric distribution cut off at the items left.

        Examples
        --------
        >>> model = Mallows.from_center(["a", "b", "c"], spread=3.0)
        >>> model.sample(2, random_state=0)
        Rankings: 2 rankings of 3 items
          a > b > c
          a > b > c
        """
        check_is_fitted(self)
        C = len(self.items_)
        k = sample_length(n, k, C)
        rng = np.random.default_rng(random_state)
        code = {name: i for i, name in enumerate(self.items_)}
        center = np.array([code[name] for name in self.center_], np.int32)
        lists = np.empty((n, k), np.int32)
        for rows in row_blocks(n, C):
            passed = _draw_passed(self.spread_, C, k, rows.stop - rows.start, rng)
            lists[rows] = center[_place(passed, C)].T
        return Rankings.from_item_numbers(lists, items=self.items_, trusted=True)


def _best_spread(statistics: MallowsStatistics, weights: Floats) -> float:
    """Find the root of the slope, which falls throughout: the log-likelihood is concave."""
    if statistics.slope(0.0, weights) <= 0:
        return 0.0
    if statistics.least_cost(weights) == 0:
        return np.inf
    high = 1.0
    while statistics.slope(high, weights) > 0:
        high *= 2
    return float(brentq(statistics.slope, 0.0, high, args=(weights,), xtol=1e-14, rtol=1e-14))


def _draw_passed(
    spread: float, n_items: int, k: int, n: int, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Draw V_j for stages j down the rows, by inverting the truncated geometric law."""
    left = np.arange(n_items, n_items - k, -1)[:, None]
    u = rng.random((k, n))
    if spread == 0:
        passed = u * left
    elif np.isinf(spread):
        passed = np.zeros((k, n))
    else:
        passed = np.log1p(u * np.expm1(-spread * left)) / -spread
    # Rounding can reach the item after the last.
    return np.minimum(passed.astype(np.int32), left - 1).astype(np.int32)


def _place(passed: NDArray[np.int32], n_items: int) -> NDArray[np.intp]:
    """Return the centre's ranks of the items placed, stages down the rows.

    V_j numbers an item among those left at stage j. Going back one stage puts the item placed
    there back among them: all later numbers from its own on move up by one.
    """
    # Small numbers make this quick; they must hold the rank of any item.
    small = np.uint8 if n_items <= 256 else np.uint32
    ranks = passed.astype(small)
    for j in range(len(ranks) - 2, -1, -1):
        later = ranks[j + 1 :]
        np.add(later, later >= ranks[j], out=later)
    return ranks.astype(np.intp)
