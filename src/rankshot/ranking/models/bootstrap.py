"""The bootstrap of a model with worths: fits to raters who are drawn with replacement."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rankshot.core.errors import RankshotError, quote_names
from rankshot.ranking.models.information import describe_one_sided, find_uncompared
from rankshot.ranking.models.units import Sample
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
FEW_UNITS = 10
"""Draws from fewer raters vary too little: their errors are clearly too small."""
MOST_UNITS = 1e15
"""Weights that add up to more are no numbers of rankings."""


def bootstrap_log_worths(
    model: Any, sample: Sample, n_draws: int, rng: np.random.Generator, *, ties_compare: bool
) -> Floats:
    """Return the log-worths of fits to drawn raters, one row per draw.

    Parameters
    ----------
    model : estimator
        It is copied for each draw.
    sample : Sample
        The different rankings, and who gave them.
    n_draws : int
    rng : Generator
    ties_compare : bool
        Whether a tie of two items says something of their worths, as it does if a tie is an
        outcome.
    """
    n_units = _require_units(sample.counts)
    _require_compared(sample.rankings, ties_compare=ties_compare)
    fits: list[Floats] = []
    n_failed = 0
    while len(fits) < n_draws:
        try:
            fits.append(clone(model).fit(_resample(sample, n_units, rng)).log_worths_)
        except RankshotError as error:
            n_failed += 1
            reason = str(error)
            if n_failed > n_draws:
                raise RankshotError(
                    "the bootstrap drew rankings that cannot be fitted, in most of its draws: "
                    f"{reason}"
                ) from None
    if n_failed:
        warnings.warn(
            f"{n_failed} of {n_failed + n_draws} draws of the bootstrap could not be fitted, and "
            f"were replaced by others, which makes errors too small (the last one: {reason})",
            stacklevel=3,
        )
    return np.array(fits)


def _resample(sample: Sample, n_units: int, rng: np.random.Generator) -> Rankings:
    """Return the different rankings with the weights that they have among drawn raters."""
    total = sample.counts.sum()
    drawn = rng.multinomial(n_units, sample.counts / total)
    return replace(sample.rankings, weights=drawn @ sample.copies * (total / n_units))


# ---- What the draws cannot say


def _require_units(counts: Floats) -> int:
    """Return how many units a draw has: raters, and rankings without one, by their weights."""
    total = float(counts.sum())
    if total < 2:
        raise RankshotError(
            "the bootstrap needs at least 2 raters, or rankings without a rater, to draw from; "
            f"here is {total:.3g} (a ranking of weight w counts as w). Use method='simulation'"
        )
    if total > MOST_UNITS:
        raise RankshotError(
            "the bootstrap takes a ranking of weight w as w rankings, but the weights add up to "
            f"{total:.3g}: give numbers of rankings as weights, or use method='simulation'"
        )
    if total < FEW_UNITS:
        warnings.warn(
            f"the bootstrap draws from only {total:.3g} raters or rankings: its errors are too "
            "small. Use method='simulation', or ask more raters",
            stacklevel=4,
        )
    return round(total)


def _require_compared(rankings: Rankings, *, ties_compare: bool) -> None:
    """Refuse items that are not compared, warn of one-sided ones: all draws say the same of both.

    Only the regulariser holds such items in place. What it says does not depend on the draw, so it
    would look certain.
    """
    apart = find_uncompared(rankings, ties_compare=ties_compare)
    if apart:
        raise RankshotError(
            "the bootstrap says nothing of items that no ranking compares with the others, "
            f"directly or through others: {quote_names(apart)}. Leave them out, or use "
            "method='simulation'"
        )
    # An item that only ties is as strong as the others of its tie in every draw.
    if one_sided := describe_one_sided(rankings, ties_compare=False):
        warnings.warn(
            f"the errors of some items are too small: {one_sided}. All draws of the bootstrap say "
            "the same of them. Use method='simulation'",
            stacklevel=4,
        )
