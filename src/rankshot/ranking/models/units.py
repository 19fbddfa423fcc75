"""Who gave which rankings: raters, or single rankings, as units that are grouped or drawn."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rankshot.ranking.parts import keep_counted_part, merge_copies
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
Unit = Literal["rater", "ranking"]


def find_units(rankings: Rankings, by: Unit) -> tuple[NDArray[np.intp], Floats, Floats]:
    """Return the units of rankings: raters with all of theirs, or each ranking.

    Returns
    -------
    unit : ndarray of shape (n,)
        The unit of each ranking, from 0.
    exponents : ndarray of shape (n,)
        How often each ranking counts within its unit.
    counts : ndarray of shape (units,)
        How many equal units each unit stands for: a ranking of weight w without a rater is w
        units.
    """
    n = len(rankings)
    owned = np.zeros(n, bool)
    if by == "rater":
        owned = np.array([rater is not None for rater in rankings.raters], bool)
    names, rater = np.unique(rankings.raters[owned].astype(str), return_inverse=True)
    alone = np.flatnonzero(~owned)
    unit = np.empty(n, np.intp)
    unit[owned] = rater
    unit[alone] = len(names) + np.arange(alone.size)
    exponents = np.where(owned, rankings.weights, 1.0)
    return unit, exponents, np.append(np.ones(len(names)), rankings.weights[alone])


class Sample(NamedTuple):
    """Rankings without repetitions, and who gave them.

    Attributes
    ----------
    rankings : Rankings
        The different rankings, with their total weights.
    copies : csr_array of shape (units, rankings)
        How often a unit, a rater or a ranking, gave each of them.
    counts : ndarray of shape (units,)
        How many equal units each one stands for.
    """

    rankings: Rankings
    copies: csr_array
    counts: Floats


def merge_equal(rankings: Rankings, by: Unit) -> Sample:
    """Merge equal rankings, and equal units that have one ranking each."""
    rankings = keep_counted_part(rankings)
    rankings = replace(rankings, targets=np.full(len(rankings), None, object))
    unit, exponents, counts = find_units(rankings, by)
    merged, number = merge_copies(rankings)
    # Units with a single ranking that counts once are equal if their rankings are.
    single = (np.bincount(unit)[unit] == 1) & (exponents == 1)
    many, other = np.unique(unit[~single], return_inverse=True)
    kinds, kind = np.unique(number[single], return_inverse=True)
    row = np.empty(len(rankings), np.intp)
    row[single], row[~single] = kind, len(kinds) + other
    alike = np.bincount(kind, counts[unit[single]], minlength=len(kinds))
    shape = (len(kinds) + len(many), len(merged))
    copies = np.where(single, 0.0, exponents)
    entries = csr_array((copies, (row, number)), shape=shape)
    entries += csr_array((np.ones(len(kinds)), (np.arange(len(kinds)), kinds)), shape=shape)
    entries.eliminate_zeros()
    return Sample(merged, entries, np.append(alike, np.ones(len(many))))
