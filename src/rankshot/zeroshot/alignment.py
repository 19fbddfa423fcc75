"""Align semantics (rankings or similarities) with the classes of a classifier.

The items become the classes that the classifier was trained on, and the targets the new classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.ranking.parts import require_rankings
from rankshot.ranking.rankings import Rankings
from rankshot.sources.similarity import Similarity

Semantics = Rankings | Similarity


def align_to(semantics: Semantics | None, items: tuple[str, ...]) -> Semantics:
    """Return the same semantics with the seen classes of a classifier as items.

    Rankings that name only some of these classes become top-K rankings of all of them. A ranking
    that lists another class is refused: nothing is dropped.
    """
    semantics = require_semantics(semantics)
    if isinstance(semantics, Similarity):
        return semantics.select(semantics.targets, items)
    return require_targets(semantics).change_items(items)


def require_semantics(semantics: Any) -> Semantics:
    """Return ``semantics`` if they are `Rankings` or a `Similarity`; raise otherwise."""
    if not isinstance(semantics, Rankings | Similarity):
        raise RankshotError(
            f"rankings must be Rankings (see Rankings.from_orders and read_rankings), or a "
            f"Similarity for heads that take one, not {short_repr(semantics)}"
        )
    return semantics


def only_new(semantics: Semantics) -> Semantics:
    """Keep only the targets that are not items: the new classes."""
    is_new = np.array([name not in semantics.items for name in semantics.targets], bool)
    if not is_new.any():
        raise RankshotError(
            "there are rankings of seen classes only "
            f"({quote_names(dict.fromkeys(semantics.targets), 4)})"
        )
    return select_targets(semantics, is_new)


def select_targets(semantics: Semantics, wanted: NDArray[np.bool_]) -> Semantics:
    """Keep the rankings, or the rows of a similarity table, that are marked in ``wanted``."""
    if isinstance(semantics, Rankings):
        return semantics[wanted]
    return semantics.select(np.array(semantics.targets)[wanted], semantics.items)


def require_targets(rankings: Rankings) -> Rankings:
    """Return the rankings with a weight above 0 that prefer an item; each must have a target."""
    if isinstance(rankings, Similarity):
        raise RankshotError(
            f"expected Rankings, not the similarities of {rankings.source!r}: use its to_rankings()"
        )
    require_rankings(rankings)
    nameless = np.flatnonzero([target is None for target in rankings.targets])
    if nameless.size:
        raise RankshotError(
            f"ranking {nameless[0]} has no target: name the target of each ranking with targets=, "
            'or with "target" in a file'
        )
    weighted = rankings[rankings.weights > 0]
    if len(weighted) == 0:
        raise RankshotError("there are no rankings (or all have weight 0)")
    used = weighted[_prefers_an_item(weighted)]
    if lost := sorted(set(weighted.target_names) - set(used.target_names)):
        raise RankshotError(
            f"the rankings of {quote_names(lost)} prefer no seen class to another: each compares a "
            "single one, or ties all that it compares"
        )
    return used


def _prefers_an_item(rankings: Rankings) -> NDArray[np.bool_]:
    """Mark the rankings that say something: a subset of one item, or of tied ones, does not."""
    n_places = rankings.places[rankings.starts[1:] - 1] + 1
    return np.asarray((n_places > 1) | ~rankings.is_subset)
