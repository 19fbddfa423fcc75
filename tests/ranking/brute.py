"""Slow, obviously right versions of what the package computes, by enumeration."""

from functools import cache
from itertools import combinations, permutations, product

import numpy as np


def strict_refinements(order, taken=None):
    """All strict lists that a list with ties allows, cut to the first ``taken`` items."""
    groups = [tuple(g) if isinstance(g, (list, tuple)) else (g,) for g in order]
    size = sum(len(g) for g in groups)
    taken = size if taken is None else taken
    full = [sum(parts, ()) for parts in product(*(permutations(g) for g in groups))]
    return sorted({f[:taken] for f in full})


def refinement_lists(order, taken):
    """The same, but each list as often as strict orders of the ties lead to it."""
    groups = [tuple(g) if isinstance(g, (list, tuple)) else (g,) for g in order]
    return [sum(parts, ())[:taken] for parts in product(*(permutations(g) for g in groups))]


def kendall(a, b):
    """Pairs of items in opposite orders; a and b list all items."""
    place_a = {item: i for i, item in enumerate(a)}
    place_b = {item: i for i, item in enumerate(b)}
    return sum(
        (place_a[i] - place_a[j]) * (place_b[i] - place_b[j]) < 0 for i, j in combinations(a, 2)
    )


def completions(order, items):
    """All full strict rankings that a top-K list with ties allows."""
    rest = [
        item for item in items if item not in {x for f in refinement_lists(order, None) for x in f}
    ]
    full = []
    for head in strict_refinements(order):
        full += [head + tail for tail in permutations(rest)]
    return full


def hausdorff(a, b, items, distance=kendall):
    """Critchlow's definition: the Hausdorff distance between the two sets of completions."""
    A, B = completions(a, items), completions(b, items)
    d = np.array([[distance(x, y) for y in B] for x in A])
    return max(d.min(axis=1).max(), d.min(axis=0).max())


def plackett_luce_full(full, worths):
    """The probability of a full ranking, by the definition."""
    left = sum(worths[item] for item in full)
    p = 1.0
    for item in full:
        p *= worths[item] / left
        left -= worths[item]
    return p


def plackett_luce(order, worths, items, kind="top", taken=None):
    """Mean over the strict lists of the sum over all full rankings that agree with each."""
    lists = set(strict_refinements(order, taken))
    k = len(next(iter(lists)))
    listed = {x for f in refinement_lists(order, None) for x in f}
    compared = listed if kind == "subset" else set(items)
    agree = [f for f in permutations(items) if tuple(x for x in f if x in compared)[:k] in lists]
    return sum(plackett_luce_full(full, worths) for full in agree) / len(lists)


@cache
def mallows_full(center, spread):
    """The probability of each full ranking, by the definition."""
    weight = {f: np.exp(-spread * kendall(f, center)) for f in permutations(center)}
    return {full: w / sum(weight.values()) for full, w in weight.items()}


def mallows(order, center, spread, taken=None):
    """Mean over the strict lists of the probability of all full rankings that start with each."""
    lists = set(strict_refinements(order, taken))
    k = len(next(iter(lists)))
    return sum(p for f, p in mallows_full(center, spread).items() if f[:k] in lists) / len(lists)


def babington_smith_weight(top, f, items):
    """Product over listed items of v over all that come after (the paper's equation 13)."""
    rest = [item for item in items if item not in top]
    order = list(top) + rest
    return np.exp(
        sum(f[order[i]][order[j]] for i in range(len(top)) for j in range(i + 1, len(order)))
    )
