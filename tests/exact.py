"""Slow, obviously right answers with thirty digits, by enumeration.

An order lists items by name, best first; a tie is a list inside it. ``taken`` of the listed
items count, all by default. Scores are by name, or by pair of names.
"""

from functools import cache
from itertools import combinations, permutations, product

import mpmath
import numpy as np

mp = mpmath.mp.clone()
mp.dps = 30
mpf = mp.mpf


def strict_lists(order, taken=None):
    """All strict lists that a list with ties allows, cut to the first ``taken``."""
    groups = [tuple(g) if isinstance(g, list | tuple) else (g,) for g in order]
    lists = [sum(parts, ())[:taken] for parts in product(*(permutations(g) for g in groups))]
    return sorted(set(lists))


def first_lists(order, items, k):
    """All strict lists of k items that an order allows."""
    rest = [item for item in items if item not in list_items(order)]
    return strict_lists([*order, rest] if rest else order, k)


def mean_distance(first, second, items, k):
    """The mean top-k Kendall distance: equation 5 as the Hausdorff distance of completions."""
    pairs = list(product(first_lists(first, items, k), first_lists(second, items, k)))
    return mpf(sum(top_k_distance(one, two, items) for one, two in pairs)) / len(pairs)


def top_k_distance(one, two, items):
    """Pairs in opposite orders, and those that the first leaves out and the second does not."""
    place_one, place_two = ({x: n for n, x in enumerate(order)} for order in (one, two))
    far = len(items)
    total = 0
    for i, j in combinations(items, 2):
        a = place_one.get(i, far) - place_one.get(j, far)
        b = place_two.get(i, far) - place_two.get(j, far)
        total += a * b < 0 or (a == 0 != b)
    return total


def list_items(order):
    """All items of an order, without its ties."""
    return [x for g in order for x in (g if isinstance(g, list | tuple) else [g])]


def plackett_luce(order, f, taken=None, compared=None, decay=0):
    """P(π|x): the mean over the strict lists; ``compared`` are all items unless some were.

    With ``decay``, Π_i P_i^(i^-decay) over its choices P_i, one an item or a tie.
    """
    compared = list(f if compared is None else compared)
    v = {item: mp.exp(mpf(float(f[item]))) for item in compared}

    @cache
    def choice(item, gone):
        return v[item] / mp.fsum(v[x] for x in compared if x not in gone)

    def prob(strict):
        return mp.fprod(choice(item, frozenset(strict[:i])) for i, item in enumerate(strict))

    return weighted(lambda order, taken: mean_over_lists(prob, order, taken), order, taken, decay)


def babington_smith(order, f, items, taken=None, decay=0):
    """The mean weight of the strict lists: Π_{i ≤ K} Π_{j > i} e^{f_ij}; decay as above."""
    f = {pair: mpf(float(value)) for pair, value in f.items()}

    def weight(strict):
        whole = [*strict, *(x for x in items if x not in strict)]
        pairs = combinations(range(len(whole)), 2)
        return mp.exp(mp.fsum(f[whole[i], whole[j]] for i, j in pairs if i < len(strict)))

    return weighted(lambda order, taken: mean_over_lists(weight, order, taken), order, taken, decay)


def mean_over_lists(prob, order, taken):
    lists = strict_lists(order, taken)
    return mp.fsum(map(prob, lists)) / len(lists)


def weighted(prob, order, taken, decay):
    """The product of P(one group more) / P(the groups before), each to its own power.

    Both models choose group after group, whatever the order inside those before. The power is the
    mean of r^-decay over the places r that a group takes.
    """
    if decay == 0:
        return prob(order, taken)
    result, before, begin = mpf(1), mpf(1), 0
    for n, end, power in stages(order, taken, decay):
        after = prob(order[:n], end)
        result *= (after / before) ** power
        before, begin = after, end
    assert begin == (taken or len(list_items(order)))
    return result


def stages(order, taken, decay):
    """Each group: how many groups and how many places there are with it, and its power."""
    begin, taken = 0, taken or len(list_items(order))
    for n in range(1, len(order) + 1):
        end = min(len(list_items(order[:n])), taken)
        if end > begin:
            powers = [mpf(r) ** -mpf(decay) for r in range(begin + 1, end + 1)]
            yield n, end, mp.fsum(powers) / len(powers)
        begin = end


def by_pair(row, items):
    """f_ij = -f_ji by names, from a row of one-vs-one scores."""
    f = {}
    columns = [(i, j) for n, i in enumerate(items) for j in items[n + 1 :]]
    for (i, j), value in zip(columns, row, strict=True):
        f[i, j], f[j, i] = value, -value
    return f


def class_probabilities(row, kind):
    """P(y|x): sigmoids of one-vs-rest scores, or a softmax."""
    f = [mpf(float(x)) for x in row]
    if kind == "one-vs-rest":
        return [1 / (1 + mp.exp(-x)) for x in f]
    total = mp.fsum(mp.exp(x) for x in f)
    return [mp.exp(x) / total for x in f]


def log_normalized(weights, temperature=1):
    """The logarithms of weights to the power 1 / T, scaled to add up to one, as floats."""
    weights = [w ** (1 / mpf(temperature)) for w in weights]
    total = mp.fsum(weights)
    return np.array([float(mp.log(w / total)) for w in weights])


def weights_of_places(order, items, decay, taken=None, is_subset=False):
    """r^-decay of the place r of each item: the mean over the strict lists, with the sum 1.

    Of a subset ranking, the mean over the listed items is subtracted.
    """
    lists = strict_lists(order, taken)
    weight = dict.fromkeys(items, mpf(0))
    for strict in lists:
        total = mp.fsum(mpf(r) ** -mpf(decay) for r in range(1, len(strict) + 1))
        for r, item in enumerate(strict, 1):
            weight[item] += mpf(r) ** -mpf(decay) / total / len(lists)
    listed = list_items(order)
    if is_subset:
        mean = mp.fsum(weight[item] for item in listed) / len(listed)
        weight |= {item: weight[item] - mean for item in listed}
    return [weight[item] for item in items]


def class_weights(rankings, decay):
    """The mean over the rankings of one class, scaled to the sum of squares 1."""
    rows = [
        weights_of_places(order, rankings.items, decay, int(taken), is_subset)
        for order, taken, is_subset in zip(
            rankings.orders(), rankings.lengths, rankings.is_subset, strict=True
        )
    ]
    mean = [mp.fsum(map(mp.fmul, map(mpf, rankings.weights), w)) for w in zip(*rows, strict=True)]
    length = mp.sqrt(mp.fsum(w**2 for w in mean))
    return [w / length for w in mean]
