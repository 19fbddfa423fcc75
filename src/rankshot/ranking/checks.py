"""Checks of the rankings and sample sizes that a caller passes."""

from __future__ import annotations

import warnings
from typing import Any

from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.core.validation import require_whole_number
from rankshot.ranking.parts import AnyRankings, Overview, RankingParts, look_over
from rankshot.ranking.rankings import Rankings

MOST_SAMPLES = 2**31
"""Rankings that are drawn at once."""
WIDEST_RANGE = 1e12
"""The ratio of two weights up to which about four digits of the smaller one count."""


def require_rankings(value: Rankings) -> Rankings:
    """Return the value, or raise with a hint how to make `Rankings`."""
    if isinstance(value, RankingParts):
        raise RankshotError(
            "rankings in parts are not taken here; if they fit in memory, give rankings.compute()"
        )
    if not isinstance(value, Rankings):
        raise RankshotError(
            f"expected Rankings, not {short_repr(value)}: make them with Rankings.from_orders, "
            "from_positions, from_scores, from_pairs, read_rankings or read_pairs"
        )
    return value


def require_any_rankings(value: AnyRankings) -> AnyRankings:
    """Return the value if it is `Rankings`, or rankings in parts."""
    return value if isinstance(value, RankingParts) else require_rankings(value)


def require_one_subject(rankings: AnyRankings) -> Overview:
    """Return an overview of rankings to merge; raise if there are none, warn of several targets."""
    found = look_over(require_any_rankings(rankings))
    if not found.weight > 0:
        raise RankshotError("there are no rankings to fit or merge (or all have weight 0)")
    if len(found.target_names) > 1:
        warnings.warn(
            "rankings of several targets are merged into one: "
            f"{quote_names(found.target_names, 4)}. Use select(target=...) or by_target()",
            stacklevel=3,
        )
    return found


def warn_of_weight_range(found: Overview) -> None:
    """Warn of weights so different that the sums over all rankings do not show the smallest."""
    if found.largest_weight > WIDEST_RANGE * found.smallest_weight:
        warnings.warn(
            f"the weights of the rankings go from {found.smallest_weight:.3g} to "
            f"{found.largest_weight:.3g}: what rankings say that weigh less than "
            f"{1 / WIDEST_RANGE:g} of others is lost in rounding. Give weights that differ less",
            stacklevel=3,
        )


def refuse_partial(rankings: Rankings, why: str) -> None:
    """Raise for the first ranking that compares only some of the items."""
    partial = rankings.is_subset & (rankings.n_listed < rankings.n_items)
    if partial.any():
        what = describe_ranking(rankings, int(partial.argmax()))
        raise RankshotError(f"{what} compares only a subset of the items: {why}")


def describe_ranking(rankings: Rankings, row: int) -> str:
    """Return how an error message names a ranking: its number, its target and who gave it."""
    target, origin = rankings.targets[row], rankings.raters[row] or rankings.sources[row]
    what = f"ranking {row}"
    what += "" if target is None else f" of {target!r}"
    return what + ("" if origin is None else f" by {origin!r}")


def require_model(model: Any) -> Any:
    """Return a model that can be fitted, or raise with what was passed instead."""
    if isinstance(model, type) or not (hasattr(model, "fit") and hasattr(model, "get_params")):
        raise RankshotError(f"model must be a model like PlackettLuce(), not {short_repr(model)}")
    return model


def require_sample_length(n: int, k: int | None, n_items: int) -> int:
    """Return the length of the lists that a sampler draws, after a check of both numbers."""
    require_whole_number("n", n, most=MOST_SAMPLES)
    return n_items if k is None else require_whole_number("k", k, most=n_items)
