"""What is shown of a result too large for a page: the part most worth a look, and what it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.report.contents import ConsensusCard

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

MOST_CLASSES = 40
"""Classes that a matrix shows in full; also the length of the list that replaces a larger one."""

MOST_CARDS = 40
MOST_EXPLANATIONS = 24
MOST_PLACES = 12
MOST_SOURCES = 10
MOST_PUSHES = 12
MOST_ALTERNATIVES = 8


class Pair(NamedTuple):
    """Two classes, as places in the list of classes."""

    first: int
    second: int


def hardest_cards(cards: Sequence[ConsensusCard]) -> tuple[Sequence[ConsensusCard], str]:
    """Return the cards to show, and a sentence that says which those are."""
    if len(cards) <= MOST_CARDS:
        return cards, ""
    known = [card for card in cards if card.concordance is not None]
    if not known:
        return cards[:MOST_CARDS], f"The first {MOST_CARDS} of {len(cards):,} targets are shown."
    known.sort(key=lambda card: (card.concordance, card.target))
    shown = known[:MOST_CARDS]
    said = f"Shown are the {len(shown)} of {len(cards):,} targets whose sources agree least."
    return shown, said


def largest_confusions(confusion: NDArray[np.integer], classes: Sequence[str]) -> list[Pair]:
    """Return the pairs (truth, what it was taken for) with the largest counts, largest first.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.report.large_results import largest_confusions
    >>> largest_confusions(np.array([[9, 2], [3, 9]]), ["cat", "dog"])
    [Pair(first=1, second=0), Pair(first=0, second=1)]
    """
    wrong = np.array(confusion, dtype=float)
    np.fill_diagonal(wrong, 0)
    rows, columns = np.nonzero(wrong)
    return _first_pairs(-wrong[rows, columns], rows, columns, classes)


def hardest_pairs(pairwise: NDArray[np.floating], classes: Sequence[str]) -> list[Pair]:
    """Return the pairs of classes with the lowest two-class accuracy, lowest first.

    A pair is given once, the name that comes first in the alphabet first.
    """
    by_name = _name_ranks(classes)
    rows, columns = np.nonzero(~np.isnan(pairwise) & (by_name[:, None] < by_name))
    values = np.asarray(pairwise, dtype=float)[rows, columns]
    return _first_pairs(values, rows, columns, classes)


def lowest_classes(per_class: Sequence[float], classes: Sequence[str]) -> list[int]:
    """Return the places of the classes with the lowest accuracy, lowest first, unknown last."""
    order = sorted(range(len(classes)), key=lambda i: (_nan_last(per_class[i]), classes[i]))
    return order[:MOST_CLASSES]


def _nan_last(value: float) -> float:
    return np.inf if np.isnan(value) else value


def _name_ranks(classes: Sequence[str]) -> Ints:
    """Return the place of each class in the alphabet."""
    order = np.argsort(np.array(classes, dtype=object), kind="stable")
    return np.argsort(order)


def _first_pairs(values: Floats, rows: Ints, columns: Ints, classes: Sequence[str]) -> list[Pair]:
    """Return the pairs with the smallest values; names settle which of equal ones come first."""
    by_name = _name_ranks(classes)
    first = np.lexsort((by_name[columns], by_name[rows], values))[:MOST_CLASSES]
    return [Pair(int(rows[i]), int(columns[i])) for i in first]
