"""Checks of rankings before they are merged or fitted, and what is first asked of them."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import NO_VALUE, InputError, quote_names
from rankshot.core.validation import require_whole_number
from rankshot.ranking.construction import find_first
from rankshot.ranking.rankings import Rankings, require_rankings

T = TypeVar("T")
MOST_SAMPLES = 2**31
"""Rankings that are drawn at once."""


def require_some(rankings: object) -> Rankings:
    """Rankings, of which some count; a dict of lists becomes `Rankings`."""
    some = require_rankings(rankings)
    if not some.weights.sum() > 0:
        raise InputError("rankings", NO_VALUE, "must have a ranking of positive weight")
    return some


def require_one_subject(rankings: object) -> Rankings:
    """Rankings to merge, of which some count; warn if they have several targets."""
    some = require_some(rankings)
    if len(some.target_names) > 1:
        warnings.warn(
            "rankings of several targets are merged into one: "
            f"{quote_names(some.target_names, 4)}. Use select(target=...) or by_target()",
            stacklevel=3,
        )
    return some


def refuse_partial(rankings: Rankings, why: str) -> None:
    """Raise for the first ranking that compares only some of the items."""
    partial = rankings.n_compared < rankings.n_items
    if partial.any():
        raise InputError(
            "rankings",
            NO_VALUE,
            "must compare all items, but this one compares only a subset",
            where=describe_ranking(rankings, int(partial.argmax())),
            hint=why,
        )


def describe_ranking(rankings: Rankings, row: int) -> str:
    """The name of a ranking in an error: its number, its target and who gave it."""
    target, origin = rankings.targets[row], rankings.raters[row] or rankings.sources[row]
    what = f"ranking {row}"
    what += "" if target is None else f" of {target!r}"
    return what + ("" if origin is None else f" by {origin!r}")


def require_model(model: T) -> T:
    """A model that can be fitted."""
    if isinstance(model, type) or not (hasattr(model, "fit") and hasattr(model, "get_params")):
        raise InputError("model", model, "must be a model like PlackettLuce()")
    return model


def require_sample_length(n: int, k: int | None, n_items: int) -> int:
    """The length of the lists that a sampler draws, after a check of both numbers."""
    require_whole_number("n", n, most=MOST_SAMPLES)
    return n_items if k is None else require_whole_number("k", k, most=n_items)


def keep_counted(rankings: Rankings) -> Rankings:
    """Rankings without those of weight 0; not a copy if there are none."""
    return rankings if np.all(rankings.weights > 0) else rankings[rankings.weights > 0]


def has_pairs(rankings: Rankings) -> bool:
    """Whether there are two rankings to compare: one of weight 2 counts as two."""
    largest = rankings.weights.max(initial=0)
    return bool(rankings.weights.sum() > largest or largest > 1)


def are_votes(rankings: Rankings) -> bool:
    """Whether all rankings are votes between two items."""
    return bool(np.all(rankings.is_subset & (rankings.n_listed == 2)))


def merge_copies(rankings: Rankings) -> tuple[Rankings, NDArray[np.intp]]:
    """Add up the weights of equal rankings, whatever they describe; also the number of each."""
    number = rankings.lists.number_equal_rows([rankings.lengths, rankings.is_subset])
    first = find_first(number)
    if first.size == len(rankings):
        return rankings, np.arange(first.size)
    weights = np.bincount(number, rankings.weights).astype(float)
    return replace(rankings[first], weights=weights), number
