"""Which items a question shows: the nearest ones, and sets of them where they are many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from rankshot.ranking.arguments import require_rankings
from rankshot.ranking.consensus import average_order
from rankshot.ranking.encode import as_names
from rankshot.ranking.errors import RankshotError, did_you_mean
from rankshot.ranking.rankings import Rankings
from rankshot.survey.bounds import MOST_ITEMS, check_count


def nearest_items(
    rankings: Rankings, targets: Iterable[Any], items: Iterable[Any], n: int
) -> list[tuple[str, ...]]:
    """Return the ``n`` items nearest to each target, nearest first.

    People cannot order a hundred names. The paper showed the ten of the smallest average place
    in five sources, or in WordNet alone.

    Parameters
    ----------
    rankings : Rankings
        Of the items, one or more for each target; weights count.
    targets, items : iterables of names
        A target that is itself an item is not among its nearest.
    n : int
        How many.

    Returns
    -------
    list of tuples of str
        In the order of the targets. Items of the same average place are ordered by name; those
        that no ranking of the target compares come last.

    Examples
    --------
    >>> import rankshot as rs
    >>> similarity = rs.WordNet().similarity(["tiger"], ["leopard", "seal", "mole", "wolf"])
    >>> nearest_items(similarity.to_rankings(), similarity.targets, similarity.items, 2)
    [('leopard', 'wolf')]
    """
    require_rankings(rankings)
    target_names, item_names = as_names(targets, "targets"), as_names(items)
    check_count("n", n, 1)
    counted = rankings.with_items(item_names)
    counted = counted[counted.weights > 0]
    return [_nearest(counted, target, n) for target in target_names]


def _nearest(rankings: Rankings, target: str, n: int) -> tuple[str, ...]:
    these = rankings[rankings.targets == target]
    if len(these) == 0:
        hint = did_you_mean(target, rankings.target_names)
        raise RankshotError(f"there is no ranking of the target {target!r}{hint}: add one")
    compared = {rankings.items[i] for i in these.entries}
    if not these.is_subset.all():
        compared = set(rankings.items)
    # The average of an item that nobody compares is a guess, and comes after what is known.
    order = sorted(average_order(these), key=lambda name: name not in compared)
    found = [name for name in order if name != target]
    if len(found) < n:
        raise RankshotError(
            f"{n} items are wanted for the target {target!r}, and there are {len(found)}: ask for "
            "fewer"
        )
    return tuple(found[:n])


def item_sets(pool: Sequence[str], show: int, rng: Random) -> list[tuple[str, ...]]:
    """Split a pool into sets of ``show`` items that overlap, or return it as the only set.

    The sets are windows on the shuffled pool, bent to a ring. Each begins about half a window
    after the one before it, so that every item is in two sets or more, and neighbours share
    items: from the answers, all items of the pool can be compared.

    Parameters
    ----------
    pool : sequence of str
        At least ``show`` different names. Their order has no influence on the sets.
    show : int
        How many items each set has.
    rng : Random
        Shuffles the pool.

    Returns
    -------
    list of tuples of str
        Each in the order of the pool.

    Examples
    --------
    >>> item_sets(["a", "b", "c", "d"], 2, Random(1))
    [('a', 'd'), ('a', 'c'), ('b', 'c'), ('b', 'd')]
    """
    names = as_names(pool, "pool")
    check_count("show", show, 2, MOST_ITEMS)
    size = len(names)
    if size < show:
        raise RankshotError(f"a pool of {size} cannot fill sets of {show} items: show fewer")
    if size == show:
        return [names]
    ring = sorted(names)
    rng.shuffle(ring)
    # Twice the pool, in windows of `show`: two windows on, one begins at most `show` later.
    count = -(-2 * size // show)
    place = {name: i for i, name in enumerate(names)}
    sets = []
    for begin in (i * size // count for i in range(count)):
        window = [ring[(begin + i) % size] for i in range(show)]
        sets.append(tuple(sorted(window, key=place.__getitem__)))
    return sets
