"""The Mallows model: the farther a ranking is from the centre, the less probable it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankshot.core.blocks import row_blocks
from rankshot.core.names import as_names
from rankshot.core.validation import Seed, require_choice, require_generator, require_number
from rankshot.ranking.checks import (
    require_any_rankings,
    require_one_subject,
    require_sample_length,
)
from rankshot.ranking.consensus import METHODS, average_order, kemeny
from rankshot.ranking.models.mallows_likelihood import add_up_statistics, best_spread, log_prob
from rankshot.ranking.parts import AnyRankings, map_rows, reduce_parts, with_items
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]


class Mallows(BaseEstimator):
    r"""The Mallows model with Kendall's distance, for full and top-K rankings, ties included.

    The probability of a top-K ranking (the paper's equation 11, after Fligner and Verducci) is

    .. math:: P(\pi; \pi_0, \lambda) = \frac{1}{\varphi(\lambda)} e^{-\lambda \sum_{j=1}^K V_j}

    where V_j counts the items still unplaced at stage j that the centre π₀ prefers to the one
    placed. Lists of different lengths may be mixed: each has its own normaliser. A tie means
    that the order of its items is unknown and every order is equally likely; the sum over the
    orders is exact. Subset rankings are refused: their likelihood is not tractable.

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
        λ. It is infinite if all rankings agree with the centre.
    mode_ : tuple of str
        The same as ``center_``.
    log_likelihood_ : float
        The log-likelihood of the rankings that were fitted.

    Notes
    -----
    In a tie that K cuts, each item is listed with some probability, and the consensus counts it
    with that weight. The centre is then close to the maximum-likelihood centre, but not always
    equal to it.

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
        """Return a fitted model with a given centre (all items, best first) and spread.

        Examples
        --------
        >>> Mallows.from_center(["b", "a"], spread=0.5).mode_
        ('b', 'a')
        """
        spread = require_number("spread", spread, least=0)
        names = as_names(center, "center")
        return cls()._with_center(names, names, spread)

    def fit(self, rankings: AnyRankings) -> Mallows:
        """Find the centre, then the spread that makes the rankings most probable.

        Parameters
        ----------
        rankings : Rankings or PartitionedRankings
            Full or top-K; their weights count.
        """
        require_one_subject(rankings)
        center = self._find_center(rankings)
        self._with_center(rankings.items, center, 0.0)
        sums = reduce_parts(rankings, add_up_statistics, center)
        self.spread_ = best_spread(sums)
        self.log_likelihood_ = sums.log_likelihood(self.spread_)
        return self

    def _find_center(self, rankings: AnyRankings) -> tuple[str, ...]:
        if self.consensus == "borda":
            return average_order(rankings)
        require_choice("consensus", self.consensus, (*METHODS, "borda"))
        found = kemeny(rankings, self.consensus, verbose=self.verbose)
        return tuple(str(item) for item in found.order)

    def _with_center(
        self, items: tuple[str, ...], center: tuple[str, ...], spread: float
    ) -> Mallows:
        self.items_ = items
        self.center_ = self.mode_ = center
        self.spread_ = spread
        return self

    def log_prob(self, rankings: AnyRankings) -> Any:
        """Return the log-probability of each ranking; a lazy array for rankings in parts."""
        check_is_fitted(self)
        rankings = with_items(require_any_rankings(rankings), self.items_)
        return map_rows(rankings, log_prob, self.center_, self.spread_)

    def sample(self, n: int = 1, k: int | None = None, random_state: Seed = None) -> Rankings:
        """Draw ``n`` independent top-``k`` rankings (full ones by default).

        The draws are exact (repeated insertion): the numbers V_j are independent, and each has a
        geometric distribution that is truncated at the number of items left.

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
        k = require_sample_length(n, k, C)
        rng = require_generator(random_state)
        code = {name: i for i, name in enumerate(self.items_)}
        center = np.array([code[name] for name in self.center_], np.int32)
        lists = np.empty((n, k), np.int32)
        for rows in row_blocks(n, C):
            passed = _draw_passed(self.spread_, C, k, rows.stop - rows.start, rng)
            lists[rows] = center[_place(passed, C)].T
        return Rankings.from_item_numbers(lists, items=self.items_, trusted=True)


# ---- Sampling


def _draw_passed(
    spread: float, n_items: int, k: int, n: int, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Draw V_j, one row per stage, by inverting the truncated geometric distribution."""
    left = np.arange(n_items, n_items - k, -1)[:, None]
    u = rng.random((k, n))
    if spread == 0:
        passed = u * left
    elif np.isinf(spread):
        passed = np.zeros((k, n))
    else:
        passed = np.log1p(u * np.expm1(-spread * left)) / -spread
    # Rounding can give the number after the last item.
    return np.minimum(passed.astype(np.int32), left - 1).astype(np.int32)


def _place(passed: NDArray[np.int32], n_items: int) -> NDArray[np.intp]:
    """Return the centre's ranks of the items placed, one row per stage.

    V_j numbers an item among those left at stage j. To go back one stage, the item placed there
    is put back among them: all later numbers from its own on increase by one.
    """
    # The smallest integers that can hold the rank of any item are the fastest.
    small = np.uint8 if n_items <= 256 else np.uint32
    ranks = passed.astype(small)
    for j in range(len(ranks) - 2, -1, -1):
        later = ranks[j + 1 :]
        np.add(later, later >= ranks[j], out=later)
    return ranks.astype(np.intp)
