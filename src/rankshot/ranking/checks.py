"""Checks of the rankings that a caller passes."""

from __future__ import annotations

import warnings

import numpy as np

from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.ranking.rankings import Rankings

# -------------------- ranking.arguments
# Checks of the rankings that a caller passes.


def require_rankings(value: Rankings) -> Rankings:
    """Return the value, or say how to make `Rankings` of what was passed instead."""
    if not isinstance(value, Rankings):
        raise RankshotError(
            f"expected Rankings, not {short_repr(value)}: make them with Rankings.from_orders, "
            "from_positions, from_scores or read_rankings"
        )
    return value


def require_one_subject(rankings: Rankings) -> Rankings:
    """Return rankings that are to be merged, but not before a warning if they differ in target.

    Raises where there is nothing to merge.
    """
    require_rankings(rankings)
    if len(rankings) == 0 or not rankings.weights.sum() > 0:
        raise RankshotError("there are no rankings to fit or merge (or all have weight 0)")
    if len(rankings.target_names) > 1:
        warnings.warn(
            f"rankings of several targets are merged into one: {quote_names(rankings.target_names, 4)}. "
            "Use select(target=...) or by_target()",
            stacklevel=3,
        )
    return rankings


def refuse_partial(rankings: Rankings, why: str) -> None:
    """Raise for the first ranking that compares only some of the items."""
    partial = rankings.is_subset & (rankings.n_listed < rankings.n_items)
    if partial.any():
        row = int(partial.argmax())
        raise RankshotError(f"ranking {row} compares only a subset of the items: {why}")


# -------------------- ranking.sampling
# What every sampler is asked: how many rankings, how long, from which random numbers.


def require_sample_length(n: int, k: int | None, n_items: int) -> int:
    """Return the length of the lists to draw, after checking both numbers."""
    if not isinstance(n, (int, np.integer)) or n < 1:
        raise RankshotError(f"n must be 1 or more, not {n}")
    if k is None:
        return n_items
    if not isinstance(k, (int, np.integer)) or not 1 <= k <= n_items:
        raise RankshotError(f"k={k} is not between 1 and the {n_items} items")
    return int(k)
