"""How much raters agree, with a test."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from rankshot.core.errors import NO_VALUE, InputError
from rankshot.core.validation import Seed, require_generator, require_whole_number
from rankshot.ranking.construction import number_labels
from rankshot.ranking.rankings import Rankings, require_one_subject
from rankshot.ranking.rater_agreement import arrange_blocks, deviations, prepare_raters

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_CELLS = 20_000_000
"""Permutations draw at most this many numbers; for more raters, the chi-square test holds."""


@dataclass(frozen=True, eq=False)
class Agreement:
    """The agreement of raters: Kendall's W with a test.

    `summarize` tells who disagrees.

    Attributes
    ----------
    concordance : float
        Kendall's W, as `concordance` returns it.
    chance : float
        The expected W if raters are unrelated.
    chi_square, degrees : float, int
        Friedman's statistic, corrected for ties; Durbin's for incomplete blocks. If raters are
        unrelated, it approximately follows a chi-square distribution with this many degrees of
        freedom.
    p_value : float
        The probability of at least this much agreement if raters are unrelated.
    method : {"permutation", "chi-square"}
        How the p-value is computed: by random permutations of each rater's items, or from the
        chi-square distribution.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [list("abcd"), list("bacd"), list("abdc"), list("dabc")],
    ...     raters=["ann", "bob", "cy", "dan"])
    >>> found = rs.agreement(votes, random_state=0)
    >>> found
    W = 0.50 (0.25 by chance), p = 0.093 by permutation
    """

    concordance: float
    chance: float
    chi_square: float
    degrees: int
    p_value: float
    method: str

    def __repr__(self) -> str:
        return (
            f"W = {self.concordance:.2f} ({self.chance:.2f} by chance), "
            f"p = {self.p_value:.2g} by {self.method}"
        )


def agreement(rankings: Rankings, *, n_resamples: int = 1999, random_state: Seed = 0) -> Agreement:
    """Measure how much raters agree, and test whether they agree more than by chance.

    Parameters
    ----------
    rankings : Rankings
        All rankings by one rater are combined into one; a ranking without a rater and with weight
        w counts as w raters.
    n_resamples : int
        The number of random permutations of each rater's items. If a rater ranked several
        different sets of items, the order is either kept or reversed.
    random_state : int or numpy.random.Generator, optional

    Examples
    --------
    >>> import rankshot as rs
    >>> sets = rs.Rankings.from_orders(
    ...     [["a", "b", "d"], ["b", "c", "e"], ["c", "d", "f"], ["d", "e", "g"], ["a", "e", "f"],
    ...      ["b", "f", "g"], ["a", "c", "g"]], kind="subset")
    >>> found = rs.agreement(sets, random_state=0)
    >>> found.concordance, round(found.chi_square, 6), found.degrees, found.p_value < 0.05
    (1.0, 12.0, 6, True)
    """
    require_whole_number("n_resamples", n_resamples)
    rng = require_generator(random_state)
    rankings = require_one_subject(rankings)
    units = _find_units(rankings)
    blocks = arrange_blocks(units.rankings)
    if isinstance(blocks, str):
        raise InputError("rankings", NO_VALUE, f"allow no measure of agreement: {blocks}")
    covariance = units.covariance()
    inverse = np.linalg.pinv(covariance, hermitian=True)
    degrees = int(np.linalg.matrix_rank(covariance, hermitian=True))
    totals = units.deviations.sum(axis=0)
    statistic = float(totals @ inverse @ totals)
    few = n_resamples * units.deviations.size <= MOST_CELLS
    if few:
        drawn = np.stack([units.permute(rng) for _ in range(n_resamples)])
        drawn_statistics = np.sum(drawn @ inverse * drawn, axis=1)
        p_value = (1 + int((drawn_statistics >= statistic * (1 - 1e-9)).sum())) / (1 + n_resamples)
    else:
        p_value = float(chdtrc(degrees, statistic))
    metric = np.eye(len(totals)) if blocks.metric is None else blocks.metric
    W = chance = 1.0
    if most := blocks.find_most(units.rankings):
        W = min(float(blocks.measure(totals)) / most, 1.0)
        chance = float(np.sum(metric * covariance)) / most
    method = "permutation" if few else "chi-square"
    return Agreement(W, chance, statistic, degrees, p_value, method)


# ---- Raters


class _Units(NamedTuple):
    """Raters: the places of items less the mean, and which items they compared.

    ``one_set`` tells who compared the same
    items in every ranking.
    """

    rankings: Rankings
    deviations: Floats
    compared: NDArray[np.bool_]
    one_set: NDArray[np.bool_]

    def covariance(self) -> Floats:
        """Covariance of the totals of items over all permutations."""
        size = self.compared.sum(axis=1)
        share = (self.deviations**2).sum(axis=1) / np.maximum(size - 1, 1) / size
        weighed = self.compared * np.where(self.one_set, share, 0)[:, None]
        pairs = weighed.T @ self.compared
        signed = self.deviations[~self.one_set]
        return np.asarray(np.diag((weighed.T @ size).ravel()) - pairs + signed.T @ signed)

    def permute(self, rng: np.random.Generator) -> Floats:
        """Totals of items if each rater has the own items in a random order."""
        n, C = self.deviations.shape
        signs = np.where(self.one_set, 1, rng.choice([-1, 1], n))
        if self.compared.all() and self.one_set.all():
            return np.asarray(rng.permuted(self.deviations, axis=1).sum(axis=0))
        # Keys of items that were not compared, or not permuted, keep their order and come last.
        moved = self.compared & self.one_set[:, None]
        keys = np.where(moved, rng.random((n, C)), 1 + np.arange(C))
        source = np.argsort(keys, axis=1)
        target = np.argsort(np.where(moved, 0, 1 + np.arange(C)), axis=1, kind="stable")
        totals = np.zeros(C)
        values = np.take_along_axis(self.deviations, source, axis=1) * signs[:, None]
        np.add.at(totals, target, values)
        return totals


def _find_units(rankings: Rankings) -> _Units:
    rankings = prepare_raters(rankings)
    rater, weights = number_labels(rankings.raters), rankings.weights
    # A ranking without a rater, of a whole weight, stands for as many raters.
    whole = (rater == 0) & (weights % 1 == 0)
    times = np.where(whole, weights, 1).astype(np.int64)
    rankings = replace(rankings, weights=np.where(whole, 1.0, weights))
    rankings, rater = rankings[np.repeat(np.arange(times.size), times)], np.repeat(rater, times)
    unit = np.where(rater > 0, rater, rater.max(initial=0) + np.cumsum(rater == 0)) - 1
    n, C, codes = int(unit.max(initial=-1)) + 1, rankings.n_items, rankings.codes
    of_entry = unit[rankings.entry_rows]
    of_entries, of_rest = deviations(rankings)
    table, compared = np.zeros((n, C)), np.zeros((n, C), bool)
    np.add.at(table, unit, (rankings.weights * of_rest)[:, None])
    shifts = rankings.weights[rankings.entry_rows] * (of_entries - of_rest[rankings.entry_rows])
    np.add.at(table, (of_entry, codes), shifts)
    compared[of_entry, codes] = True
    compared[unit[~rankings.is_subset]] = True
    one_set = np.ones(n, bool)
    one_set[unit[rankings.n_compared < compared.sum(axis=1)[unit]]] = False
    return _Units(rankings, table, compared, one_set)
