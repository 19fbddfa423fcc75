"""The Mallows model: the farther a ranking is from the centre, the less probable it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankshot.core.blocks import row_blocks
from rankshot.core.validation import (
    Seed,
    as_names,
    require_choice,
    require_generator,
    require_number,
)
from rankshot.ranking.consensus.kemeny import METHODS, kemeny
from rankshot.ranking.consensus.precedence import average_order
from rankshot.ranking.models.mallows_distances import (
    DISTANCES,
    add_up_distances,
    draw_permutations,
    fit_spread,
    log_prob_full,
)
from rankshot.ranking.models.mallows_likelihood import add_up_statistics, best_spread
from rankshot.ranking.models.mallows_subsets import (
    find_partial,
    fit_spread_with_subsets,
    log_prob_with_subsets,
)
from rankshot.ranking.parts import (
    AnyRankings,
    map_rows,
    reduce_parts,
    require_any_rankings,
    require_one_subject,
    require_sample_length,
    with_items,
)
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
Distance = Literal["kendall", "footrule", "spearman", "cayley", "hamming"]
CHOICES = ("kendall", *DISTANCES)


class Mallows(BaseEstimator):
    r"""The Mallows model: full and top-K rankings, ties included; full ones with other distances.

    The probability of a full ranking is :math:`e^{-\lambda d(\pi, \pi_0)} / \varphi(\lambda)`. With
    Kendall's distance, that of a top-K ranking (the paper's equation 11, after Fligner and
    Verducci) is

    .. math:: P(\pi; \pi_0, \lambda) = \frac{1}{\varphi(\lambda)} e^{-\lambda \sum_{j=1}^K V_j}

    where V_j counts the items still unplaced at stage j that the centre π₀ prefers to the one
    placed. Lists of different lengths may be mixed: each has its own normaliser. A tie means
    that the order of its items is unknown and every order is equally likely; the sum over the
    orders is exact. The probability of a subset ranking is the sum over all full rankings with its
    order. It is exact: in closed form for pairs, else by a sum over the places that the listed
    items can have, which is refused where it has more than 50 million terms.

    With the other distances only full rankings without ties have a likelihood here. Their
    normalisers are exact: a product for Cayley's distance, a sum over distances for Hamming's, a
    sum over paths for the footrule, in time C², and a sum over all sets of items for Spearman's, so
    for at most 18 items.

    Parameters
    ----------
    method : {"insertion", "exact", "adjacent", "borda"}
        How the centre is found. With Kendall's distance the maximum-likelihood centre is Kemeny's
        consensus, so ``"exact"`` gives the maximum-likelihood estimate with proof; see `kemeny`.
        This is so for full and top-K rankings, but not for subset rankings and ties that K cuts:
        see the notes.
        With the other distances, ``"borda"`` is the order of the average places, and all others
        mean the maximum-likelihood centre: an assignment problem for the footrule and Hamming's
        distance, the order of the average places for Spearman's, and a search by swaps for
        Cayley's, which tries all orders of up to 6 items and has no proof for more.
    distance : {"kendall", "footrule", "spearman", "cayley", "hamming"}
        See `kendall_distance`, `footrule_distance`, `spearman_distance`, `cayley_distance` and
        `hamming_distance`.
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
    equal to it. So it is with subset rankings: the consensus counts the pairs that were compared.

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
        method: Literal["insertion", "exact", "adjacent", "borda"] = "insertion",
        distance: Distance = "kendall",
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.distance = distance
        self.verbose = verbose

    @classmethod
    def from_center(
        cls, center: Sequence[str], spread: float, distance: Distance = "kendall"
    ) -> Mallows:
        """Return a fitted model with a given centre (all items, best first) and spread.

        Examples
        --------
        >>> from rankshot import Mallows
        >>> Mallows.from_center(["b", "a"], spread=0.5).mode_
        ('b', 'a')
        """
        spread = require_number("spread", spread, least=0)
        names = as_names(center, "center")
        require_choice("distance", distance, CHOICES)
        return cls(distance=distance)._with_center(names, names, spread)

    def fit(self, rankings: AnyRankings) -> Mallows:
        """Find the centre, then the spread that makes the rankings most probable.

        Parameters
        ----------
        rankings : Rankings or PartitionedRankings
            Full, top-K or of subsets (not in parts); their weights count. Full with other distances
            than Kendall's.
        """
        require_choice("distance", self.distance, CHOICES)
        require_choice("method", self.method, (*METHODS, "borda"))
        require_one_subject(rankings)
        center = self._find_center(rankings)
        self._with_center(rankings.items, center, 0.0)
        if self.distance != "kendall":
            full = reduce_parts(rankings, add_up_distances, center, self.distance)
            self.spread_, self.log_likelihood_ = fit_spread(full, self.distance, len(center))
            return self
        if isinstance(rankings, Rankings) and find_partial(rankings).any():
            self.spread_, self.log_likelihood_ = fit_spread_with_subsets(rankings, center)
            return self
        sums = reduce_parts(rankings, add_up_statistics, center)
        self.spread_ = best_spread(sums)
        self.log_likelihood_ = sums.log_likelihood(self.spread_)
        return self

    def _find_center(self, rankings: AnyRankings) -> tuple[str, ...]:
        if self.method == "borda":
            return average_order(rankings)
        if self.distance != "kendall":
            return DISTANCES[self.distance].find_center(rankings)
        found = kemeny(rankings, self.method, verbose=self.verbose)
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
        if self.distance != "kendall":
            return map_rows(rankings, log_prob_full, self.center_, self.spread_, self.distance)
        return map_rows(rankings, log_prob_with_subsets, self.center_, self.spread_)

    def sample(self, n: int = 1, k: int | None = None, random_state: Seed = None) -> Rankings:
        """Draw ``n`` independent top-``k`` rankings (full ones by default).

        The draws are exact. With Kendall's distance (repeated insertion) the numbers V_j are
        independent, and each has a geometric distribution that is truncated at the number of items
        left. With the other distances a full ranking is drawn and cut to k.

        Examples
        --------
        >>> from rankshot import Mallows
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
            if self.distance != "kendall":
                size = rows.stop - rows.start
                places = draw_permutations(self.distance, self.spread_, C, size, rng)
                lists[rows] = center[np.argsort(places, axis=1)[:, :k]]
                continue
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
