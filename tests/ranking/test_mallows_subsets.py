"""The Mallows model of subset rankings, against sums over all full rankings."""

from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.special import logsumexp

import rankshot as rs
from rankshot.ranking.models import mallows_subsets

SPREADS = [0.0, 1e-7, 0.3, 2.0]


def by_enumeration(model, ranking):
    """The mean over the strict lists that ties allow of the sum over all rankings with the list."""
    every = rs.Rankings.from_orders(list(permutations(model.center_)), items=model.items_)
    log_prob = model.log_prob(every)
    k = int(ranking.lengths[0])
    groups = [set(g) if isinstance(g, list) else {g} for g in ranking.orders()[0]]
    place = {item: i for i, group in enumerate(groups) for item in group}
    kept, lists = [], set()
    for order, value in zip(every.orders(), log_prob, strict=True):
        first = [item for item in order if item in place][:k]
        rest = sorted((place[item] for item in place), key=int)[:k]
        if [place[item] for item in first] == rest:
            kept.append(value)
            lists.add(tuple(first))
    return logsumexp(kept) - np.log(len(lists))


@pytest.mark.parametrize("spread", SPREADS)
def test_every_order_of_every_subset_of_five_items(spread):
    """All pairs, triples and lists of four: the probabilities by enumeration."""
    items = list("abcde")
    model = rs.Mallows.from_center(list("dbeac"), spread)
    full = rs.Rankings.from_orders(list(permutations(items)), items=items)
    chance = np.exp(model.log_prob(full))
    positions = full.positions()
    orders = [o for m in (1, 2, 3, 4) for s in combinations(range(5), m) for o in permutations(s)]
    expected = [
        chance[(np.diff(positions[:, list(order)], axis=1) > 0).all(axis=1)].sum()
        for order in orders
    ]
    subsets = rs.Rankings.from_orders(
        [[items[i] for i in order] for order in orders], items=items, kind="subset"
    )
    np.testing.assert_allclose(np.exp(model.log_prob(subsets)), expected, rtol=1e-11)


@pytest.mark.parametrize(
    ("order", "k"),
    [
        ([["a", "b"]], None),
        (["e", ["a", "c"], "b"], None),
        ([["a", "c", "f"], ["b", "e"]], None),
        (["c", "a", "f", "e"], 1),
        ([["c", "a", "f"], "e"], 2),
        ([["c", "a", "f"], "e", "b"], 1),
    ],
)
def test_ties_and_cut_lists_of_a_subset(order, k):
    model = rs.Mallows.from_center(list("fbadec"), 0.6)
    ranking = rs.Rankings.from_orders([order], items=list("abcdef"), kind="subset")
    ranking = ranking if k is None else ranking.top(k)
    assert model.log_prob(ranking)[0] == pytest.approx(by_enumeration(model, ranking), rel=1e-12)


def test_a_mixture_of_kinds_has_the_log_prob_of_each_and_any_numbers_of_items(random_rankings):
    items = list("abcdef")
    kinds = ["top", "subset", "subset", "top", "subset"]
    orders = [list("cabfed"), list("fa"), list("bdf"), [["c", "a"], "e"], [["c", "e"], "a"]]
    votes = rs.Rankings.from_orders(orders, items=items, kind=kinds)
    model = rs.Mallows.from_center(list("bcafed"), 0.8)
    alone = [float(model.log_prob(votes[i])[0]) for i in range(5)]
    assert model.log_prob(votes) == pytest.approx(alone)
    for i in (1, 2, 4):
        assert alone[i] == pytest.approx(by_enumeration(model, votes[i]), rel=1e-12)
    assert model.log_prob(votes.with_items(list("fedcba"))) == pytest.approx(alone)


@pytest.mark.parametrize("spread", [0.0, 1e-9, 1e-3, 0.02, 0.5, 40.0])
@pytest.mark.parametrize("n_between", [0, 1, 30, 400])
def test_the_closed_form_of_pairs_is_the_sum_over_insertions(spread, n_between):
    """The second item is inserted after n - 1 others, and must pass over those up to the first.
    The place of the first has a distribution that each insertion in between changes."""
    n = n_between + 2
    chance = np.array([1.0])
    for i in range(1, n - 1):
        weights = np.exp(-spread * np.arange(i + 1))[::-1]
        weights /= weights.sum()
        # At place p, an item inserted at one of the places 0 .. p moves it to p + 1.
        up = np.cumsum(weights)[:i]
        moved = np.zeros(i + 1)
        moved[1:] += chance * up
        moved[:-1] += chance * (1 - up)
        chance = moved
    weights = np.exp(-spread * np.arange(n))[::-1]
    reverse = chance @ np.cumsum(weights / weights.sum())[: n - 1]
    items = [f"{i:03}" for i in range(n)]
    pairs = [[items[0], items[-1]], [items[-1], items[0]]]
    votes = rs.Rankings.from_orders(pairs, items=items, kind="subset")
    if n == 2:
        votes = rs.Rankings.from_orders(pairs, items=[*items, "last"], kind="subset")
        items = [*items, "last"]
    found = np.exp(rs.Mallows.from_center(items, spread).log_prob(votes))
    assert found == pytest.approx([1 - reverse, reverse], rel=1e-9, abs=1e-13)


def test_probabilities_too_small_for_a_number_have_logarithms():
    """Pairs by the closed form in exact fractions; more items by the sum over all rankings."""
    items = [f"{i:03}" for i in range(400)]
    far = rs.Rankings.from_orders([["399", "000"]], items=items, kind="subset")
    e = Fraction(np.exp(-3.0))
    reverse = 399 / (e**-399 - 1) - 400 / (e**-400 - 1)
    expected = np.log(float(reverse * 10**500)) - 500 * np.log(10)
    found = rs.Mallows.from_center(items, 3).log_prob(far)
    assert found == pytest.approx([expected], rel=1e-12)
    assert found == pytest.approx([-1191.06224], abs=1e-5)
    model = rs.Mallows.from_center(list("abcde"), 300)
    orders = [["e", "a"], ["e", "c", "a"], ["e", "d", "b", "a"], ["a", "b"], [["e", "d"], "a"]]
    votes = rs.Rankings.from_orders(orders, items=list("abcde"), kind="subset")
    expected = [by_enumeration(model, vote) for vote in votes]
    assert min(expected) < -2000
    assert model.log_prob(votes) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_the_fit_has_the_best_spread_and_recovers_it():
    """Pairs, triples and full rankings of one model, with weights."""
    truth = rs.Mallows.from_center(list("edcba"), 0.9)
    drawn = truth.sample(1500, random_state=0)
    rng = np.random.default_rng(0)
    orders, kinds = [], []
    for row, order in enumerate(drawn.orders()):
        size = (2, 3, 5)[row % 3]
        kept = set(rng.choice(list("abcde"), size, replace=False))
        orders.append([item for item in order if item in kept])
        kinds.append("top" if size == 5 else "subset")
    votes = rs.Rankings.from_orders(
        orders, items=list("abcde"), kind=kinds, weights=rng.integers(1, 3, len(orders))
    )
    model = rs.Mallows(method="exact").fit(votes)
    assert model.center_ == tuple("edcba")
    assert model.spread_ == pytest.approx(0.9, abs=0.08)
    assert model.log_likelihood_ == pytest.approx(votes.weights @ model.log_prob(votes))
    for other in (0.99, 1.01):
        near = rs.Mallows.from_center(model.center_, other * model.spread_).log_prob(votes)
        assert votes.weights @ near < model.log_likelihood_
    merged = rs.Mallows(method="exact").fit(votes.unique())
    assert merged.spread_ == pytest.approx(model.spread_, rel=1e-6)


def test_many_pairs_take_little_time():
    truth = rs.Mallows.from_center([f"{i:02}" for i in range(60)], 0.1)
    rows = truth.sample(20_000, random_state=0).codes.reshape(-1, 60)
    rng = np.random.default_rng(0)
    places = np.sort(np.argsort(rng.random(rows.shape), axis=1)[:, :2], axis=1)
    pairs = np.take_along_axis(rows, places, axis=1)
    votes = rs.Rankings.from_orders(
        np.array(truth.items_)[pairs].tolist(), items=truth.items_, kind="subset"
    )
    model = rs.Mallows(method="borda").fit(votes)
    assert model.spread_ == pytest.approx(0.1, rel=0.1)


def test_pairs_that_agree_have_an_infinite_spread_and_single_items_say_nothing():
    votes = rs.Rankings.from_orders(
        [["a", "b"], ["b", "c"], ["c"], ["a", "b", "c"]], items=list("abcd"), kind="subset"
    )
    model = rs.Mallows().fit(votes)
    assert model.spread_ == np.inf
    assert model.log_likelihood_ == 0
    other = rs.Rankings.from_orders(
        [["b", "a"], ["c", "b", "a"]], items=list("abcd"), kind="subset"
    )
    assert model.log_prob(other).tolist() == [-np.inf, -np.inf]
    alone = rs.Rankings.from_orders([["a"]], items=["a", "b"], kind="subset")
    assert rs.Mallows.from_center(["b", "a"], 1.0).log_prob(alone) == 0


def test_what_would_take_too_long_is_refused(monkeypatch):
    items = [f"i{i}" for i in range(200)]
    model = rs.Mallows.from_center(items, 0.1)
    wide = rs.Rankings.from_orders([items[::40]], items=items, kind="subset")
    with pytest.raises(rs.RankshotError, match="the 5 items of a subset among the items between"):
        model.log_prob(wide)
    near = rs.Rankings.from_orders([items[50:55]], items=items, kind="subset")
    expected = rs.ranking.mallows_log_normalizer(0.1, 5)
    assert model.log_prob(near)[0] == pytest.approx(-expected)
    tied = rs.Rankings.from_orders([[items[:8]]], items=items, kind="subset")
    with pytest.raises(rs.RankshotError, match="its ties allow more than 5,040 orders"):
        model.log_prob(tied)
    monkeypatch.setattr(mallows_subsets, "MOST_WORK", 10)
    with pytest.raises(rs.RankshotError, match="over more than 10 sets of places"):
        model.log_prob(near)
