"""Kendall's W: the classic formula, what rankings leave open, sets of items, and chance."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import friedmanchisquare

import rankshot as rs
from rankshot.ranking.agreement import concordance

# ---- The classic formula, for complete rankings


def test_kendalls_w_of_kendalls_own_kind_of_example():
    """Four people judging five things without ties, by the textbook formula."""
    places = np.array([[1, 2, 3, 4, 5], [2, 1, 3, 5, 4], [1, 3, 2, 4, 5], [3, 1, 2, 4, 5]])
    rankings = rs.Rankings.from_positions(places, items=range(5))
    totals = places.sum(axis=0)
    expected = 12 * ((totals - totals.mean()) ** 2).sum() / (4**2 * (5**3 - 5))
    assert concordance(rankings) == pytest.approx(expected, abs=1e-12)


def test_kendalls_w_with_ties_follows_the_mean_spearman_correlation():
    """W = (1 + (m - 1) ρ)/m where ρ is the mean correlation of mid-ranks with equal ties."""
    orders = [["a", ["b", "c"], "d"], [["a", "c"], "b", "d"][::-1], ["b", ["a", "d"], "c"]]
    rankings = rs.Rankings.from_orders(orders)
    mid = np.array([[1, 2.5, 2.5, 4], [3.5, 2, 3.5, 1], [2.5, 1, 4, 2.5]])
    rho = np.mean([np.corrcoef(mid[i], mid[j])[0, 1] for i, j in ((0, 1), (0, 2), (1, 2))])
    assert concordance(rankings) == pytest.approx((1 + 2 * rho) / 3, abs=1e-12)


def friedmans_w(scores):
    """SciPy's statistic is corrected for ties: it is W times m (n - 1)."""
    m, n = scores.shape
    return friedmanchisquare(*scores.T).statistic / (m * (n - 1))


def test_complete_rankings_with_any_ties_have_the_w_of_friedmans_test(rng):
    for _ in range(20):
        scores = rng.integers(0, 4, rng.integers(3, 9, 2))
        rankings = rs.Rankings.from_scores(scores, items=range(scores.shape[1]))
        assert concordance(rankings) == pytest.approx(friedmans_w(scores), abs=1e-12)


def test_what_lists_of_one_length_leave_out_is_one_tie(rng):
    for k in (1, 2, 3, 4, 5):
        lists = np.array([rng.permutation(5)[:k] for _ in range(20)])
        scores = np.zeros((20, 5))
        np.put_along_axis(scores, lists, np.arange(k, 0, -1), axis=1)
        rankings = rs.Rankings.from_item_numbers(lists, items=range(5))
        assert concordance(rankings) == pytest.approx(friedmans_w(scores), abs=1e-12)


# ---- Lengths, sets and weights, by definition
#
# A ranking is a list of sets of items, best first, and the set of those that it leaves open.


def mid_places(groups):
    """The place of each item; tied items share the mean."""
    found, before = {}, 0
    for group in groups:
        found |= dict.fromkeys(group, before + Fraction(len(group) + 1, 2))
        before += len(group)
    return found


def centered(groups):
    places = mid_places(groups)
    mean = sum(places.values()) / Fraction(len(places))
    return {item: place - mean for item, place in places.items()}


def squared_after_cut(groups, k):
    """Σ r² of a ranking whose items after the first k share the mean of their places."""
    r = sorted(centered(groups).values())
    rest = r[k:]
    shared = [sum(rest) / Fraction(len(rest))] * len(rest) if rest else []
    return sum(x**2 for x in r[:k] + shared)


def slow_w(rankings):
    """W of one set of items: all pairs of rankings, one by one."""
    among = {i for ranked, _, _ in rankings for group in ranked for i in group}
    full = [([*ranked, left & among] if left & among else ranked) for ranked, left, _ in rankings]
    length = [sum(map(len, ranked)) for ranked, _, _ in rankings]
    r = [centered(groups) for groups in full]
    S = most = Fraction(0)
    weights = [w for *_, w in rankings]
    for a, b in product(range(len(rankings)), repeat=2):
        both, k = weights[a] * weights[b], min(length[a], length[b])
        S += both * sum(r[a][i] * r[b][i] for i in among)
        most += both * (squared_after_cut(full[a], k) + squared_after_cut(full[b], k)) / 2
    return S / most if most else Fraction(1)


def draw_one(rng, items, *, ties):
    """Draw groups of random items, as many as it happens, and the rest."""
    order = [str(item) for item in rng.permutation(items)]
    k = int(rng.integers(1, len(order) + 1))
    groups, begin = [], 0
    while begin < k:
        size = min(int(rng.integers(1, 4)) if ties else 1, k - begin)
        groups.append(set(order[begin : begin + size]))
        begin += size
    return groups, set(order[k:])


def as_rankings(drawn, items, kinds):
    orders = [
        [
            *(sorted(group) for group in ranked),
            *([sorted(left)] if left and kind == "subset" else []),
        ]
        for (ranked, left, _), kind in zip(drawn, kinds, strict=True)
    ]
    weights = [float(w) for *_, w in drawn]
    made = rs.Rankings.from_orders(orders, items=items, weights=weights, kind=kinds)
    return made.top(np.array([sum(map(len, ranked)) for ranked, *_ in drawn]))


@pytest.mark.parametrize("ties", [False, True])
def test_every_kind_together_is_as_defined(rng, ties):
    sets = [list("abcdef"), list("abc"), list("cdef")]
    for _ in range(40):
        chosen = rng.integers(0, 3, rng.integers(2, 9))
        drawn = [
            (*draw_one(rng, sets[which], ties=ties), Fraction(int(rng.integers(1, 5)), 4))
            for which in chosen
        ]
        kinds = ["subset" if which or rng.random() < 0.5 else "top" for which in chosen]
        if {i for ranked, *_ in drawn for group in ranked for i in group} < set("abcdef"):
            continue  # An item that nobody ranked belongs to no set.
        groups = [[drawn[i] for i in np.flatnonzero(chosen == which)] for which in range(3)]
        groups = [group for group in groups if len(group) > 1]
        found = concordance(as_rankings(drawn, list("abcdefgh"), kinds))
        if not groups:
            assert found is None
            continue
        weights = [sum(w for *_, w in group) for group in groups]
        parts = [w * slow_w(group) for w, group in zip(weights, groups, strict=True)]
        assert found == pytest.approx(float(sum(parts) / sum(weights)), abs=1e-12)
        assert 0 <= found <= 1


@pytest.mark.parametrize("lengths", [(4, 1, 2), (3, 2, 2), (4, 1, 3), (4, 2, 3)])
def test_w_is_the_share_of_the_largest_s_that_lists_of_these_lengths_can_have(lengths):
    """All lists of these lengths, of four items, which the first one may name."""

    def total(orders):
        open_ends = [[*({i} for i in order), set("abcd") - {*order}] for order in orders]
        r = [centered([group for group in groups if group]) for groups in open_ends]
        return sum(sum(each[i] for each in r) ** 2 for i in "abcd")

    first, *others = lengths
    every = list(product(["abcd"[:first]], *(permutations("abcd", k) for k in others)))
    S = [total(orders) for orders in every]
    most = max(S)
    for orders, one in zip(every, S, strict=True):
        if {i for order in orders for i in order} == set("abcd"):
            found = concordance(rs.Rankings.from_orders(map(list, orders), items=list("abcd")))
            assert found == pytest.approx(float(one / most), abs=1e-12)


def test_weights_count_as_copies(rng):
    drawn = [(*draw_one(rng, list("abcdef"), ties=True), int(rng.integers(1, 4))) for _ in range(9)]
    copies = [(ranked, left, 1) for ranked, left, w in drawn for _ in range(w)]
    kinds = ["top", "subset"] * 30
    weighted = as_rankings(drawn, list("abcdef"), ["top"] * 9)
    expected = concordance(as_rankings(copies, list("abcdef"), kinds[: len(copies)]))
    assert concordance(weighted) == pytest.approx(expected, abs=1e-12)
    nothing = rs.Rankings.from_orders([list("ghfedcba")], items=list("abcdefgh"), weights=[0])
    both = rs.Rankings.concatenate([weighted.change_items(nothing.items), nothing])
    assert concordance(both) == pytest.approx(expected, abs=1e-12)


def test_nobody_to_agree_with():
    apart = rs.Rankings.from_orders([list("ab"), list("bc"), list("abc")], kind="subset")
    assert concordance(apart) is None
    assert concordance(apart[:1]) is None
    assert concordance(apart[:0]) is None


def test_rankings_that_order_nothing_agree():
    tied = rs.Rankings.from_orders([[["a", "b", "c"]]] * 3, weights=[0.1, 0.7, 1 / 3])
    assert concordance(tied) == 1


# ---- Chance

N, M = 6, 12


def draw_lists(rng, lengths, **options):
    orders = [rng.permutation(N)[:k].tolist() for k in lengths]
    return rs.Rankings.from_orders(orders, items=range(N + 5), **options)


def draw_tied(rng):
    return rs.Rankings.from_scores(rng.integers(0, 3, (M, N)), items=range(N))


def draw_sets(rng):
    """Half compare the first four items, half the last four."""
    orders = [(rng.permutation(4) + 2 * (i % 2)).tolist() for i in range(M)]
    lengths = np.tile([2, 2, 4, 4], M // 4)
    return rs.Rankings.from_orders(orders, items=range(N), kind="subset").top(lengths)


def draw_mixture(rng):
    """Complete rankings, and as many of four items."""
    orders = [rng.permutation(N if i % 2 else 4).tolist() for i in range(M)]
    return rs.Rankings.from_orders(orders, items=range(N), kind=["subset", "top"] * (M // 2))


def chance_of_lengths(lengths, n):
    """E S is Σ |r|², because two random rankings are not correlated."""
    squares = [
        squared_after_cut([{i} for i in range(n)], k) for k in np.minimum(lengths, n).tolist()
    ]
    return float(sum(squares) / sum(min(a, b) for a in squares for b in squares))


MANY_LENGTHS = np.resize([1, 2, 3, 4, 5, 6], M)
WEIGHTS = np.resize([0.5, 1, 2], M)
KINDS = {
    "complete": (lambda rng: draw_lists(rng, [N] * M), 1 / M),
    "top-K": (lambda rng: draw_lists(rng, [3] * M), 1 / M),
    "lengths": (lambda rng: draw_lists(rng, MANY_LENGTHS), chance_of_lengths(MANY_LENGTHS, N)),
    "weights": (
        lambda rng: draw_lists(rng, [N] * M, weights=WEIGHTS),
        (WEIGHTS**2).sum() / WEIGHTS.sum() ** 2,
    ),
    "tied": (draw_tied, 1 / M),
    "sets": (draw_sets, chance_of_lengths([2, 4] * (M // 4), 4)),
    "mixture": (draw_mixture, 2 / M),
}


@pytest.mark.parametrize("kind", KINDS)
def test_random_rankings_agree_as_chance_has_it(rng, kind):
    """The mean W of m random rankings is 1/m: within each set, and more if lengths differ."""
    draw, expected = KINDS[kind]
    found = np.array([concordance(draw(rng)) for _ in range(400)])
    assert found.mean() == pytest.approx(expected, abs=4 * found.std() / 20)
    n_sets = 2 if kind in ("sets", "mixture") else 1
    assert n_sets / M <= expected + 1e-12 < 1.5 * n_sets / M


def test_what_was_never_shown_is_no_agreement(rng):
    """50 random participants who rank some of the 10 items that they see, of 100: W was .62."""
    orders = [rng.permutation(10)[: rng.integers(1, 11)].tolist() for _ in range(50)]
    assert concordance(rs.Rankings.from_orders(orders, items=range(100))) < 0.06
    whole = [rng.permutation(10).tolist() for _ in range(50)]
    assert concordance(rs.Rankings.from_orders(whole, items=range(100))) < 0.06
