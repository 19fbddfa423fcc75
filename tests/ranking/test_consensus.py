from itertools import permutations

import numpy as np
import pytest

import rankshot as rs
from rankshot.ranking.consensus import kemeny_solvers
from rankshot.ranking.consensus.kemeny_solvers import (
    OrderProgram,
    insertion_search,
    order_few,
    reversed_weight,
    solve_exactly,
)
from rankshot.ranking.consensus.precedence import precedence
from refusals import refuses


def score_of(order, W, items):
    """Kemeny's score by the definition: a later item that was preferred costs its votes."""
    code = {name: i for i, name in enumerate(items)}
    return sum(W[code[order[b]], code[order[a]]] for b in range(len(order)) for a in range(b))


def best_score(W, items):
    return min(score_of(order, W, items) for order in permutations(items))


@pytest.mark.parametrize("scale", [None, 1e-12, 1, 1e12])
@pytest.mark.parametrize("kind", ["top", "subset"])
@pytest.mark.parametrize("seed", range(3))
def test_exact_kemeny_is_the_best_of_all_orders(seed, kind, scale):
    """With whole weights the score is exact; other weights may have any size."""
    rng = np.random.default_rng(seed)
    orders = [list(rng.permutation(6)[: rng.integers(2, 7)]) for _ in range(9)]
    weights = rng.integers(1, 4, size=9) if scale is None else scale * rng.random(9)
    rankings = rs.Rankings.from_orders(orders, items=range(6), weights=weights, kind=kind)
    W, rel = precedence(rankings), 0 if scale is None else 1e-12
    found = rs.kemeny(rankings, "exact")
    assert found.score == pytest.approx(best_score(W, rankings.items), rel=rel, abs=0)
    assert found.score == pytest.approx(score_of(found.order, W, rankings.items), rel=rel, abs=0)
    assert found.optimal
    assert found.bound == found.score


def paley_tournament(q):
    """A tournament whose triangle relaxation is not integral."""
    squares = {i * i % q for i in range(1, q)}
    return np.array([[float((j - i) % q in squares) for j in range(q)] for i in range(q)])


@pytest.mark.parametrize("rows", [50, 1])
@pytest.mark.parametrize("votes", ["one", "whole", "fractions", "random"])
def test_linear_and_integer_programs_prove_the_best_order(monkeypatch, votes, rows):
    """With large weights, the solver's own relative gap of 1e-4 is many votes."""
    used = []
    solve = OrderProgram.solve

    def spy(self, *, integer, deadline):
        used.append(integer)
        return solve(self, integer=integer, deadline=deadline)

    monkeypatch.setattr(OrderProgram, "solve", spy)
    monkeypatch.setattr(kemeny_solvers, "ROWS_PER_ITEM", rows)
    monkeypatch.setattr(kemeny_solvers, "FEW_ITEMS", 2)
    rng = np.random.default_rng(6)
    if votes == "random":
        W = rng.integers(0, 6, (9, 9)).astype(float)
        np.fill_diagonal(W, 0)
    else:
        W = paley_tournament(11)
        W *= 1 if votes == "one" else rng.integers(100_000, 101_000, size=(11, 11))
        W /= 7 if votes == "fractions" else 1
    order, gap = solve_exactly(W)
    assert gap == 0
    assert reversed_weight(W, order) == pytest.approx(reversed_weight(W, order_few(W)), rel=1e-6)
    assert any(used) or votes != "one"


def test_scores_differ_by_whole_steps():
    assert kemeny_solvers.common_step(np.array([6.0, 9.0, -1.5])) == 1.5
    assert kemeny_solvers.common_step(np.array([6.0, 0.3])) == 0
    assert kemeny_solvers.common_step(np.array([2.0**53, 1.0])) == 0


def test_the_order_in_which_items_are_listed_decides_nothing(random_rankings, rng):
    rankings = random_rankings(n_items=7, n=6)
    shuffled = rankings.with_items([rankings.items[i] for i in rng.permutation(7)])
    for method in ("adjacent", "insertion", "exact"):
        assert rs.kemeny(rankings, method).order == rs.kemeny(shuffled, method).order
    assert rs.borda(rankings).order == rs.borda(shuffled).order


def test_borda_of_lists_shares_the_places_left():
    votes = rs.Rankings.from_orders([["a"], ["b"], [["c", "d"]]], items=list("abcde"))
    # a: 1, 3.5, 4; b the same; c and d: 3.5, 3.5, 1.5; e: 3.5, 3.5, 4.
    assert rs.borda(votes).order == (("a", "b", "c", "d"), "e")


def test_the_insertion_search_finds_the_best_order_of_cyclic_votes():
    rng = np.random.default_rng(0)
    for _ in range(8):
        W = rng.integers(0, 9, (13, 13)).astype(float)
        np.fill_diagonal(W, 0)
        assert reversed_weight(W, insertion_search(W)) == reversed_weight(W, order_few(W))


@pytest.mark.parametrize("kind", ["top", "subset"])
def test_the_score_of_ties_is_as_defined(random_rankings, rng, kind):
    """Ties that K cuts included."""
    for _ in range(10):
        rankings = random_rankings(n_items=6, n=7, kind=kind, weights=rng.integers(1, 4, 7))
        rankings = rankings.top(rng.integers(1, 7, 7))
        found = rs.borda(rankings)
        W, items = precedence(rankings), rankings.items
        place = {}
        for number, group in enumerate(found.order):
            place |= dict.fromkeys([group] if isinstance(group, str) else group, number)
        score = sum(
            W[i, j] * (0.5 if place[a] == place[b] else place[a] > place[b])
            for i, a in enumerate(items)
            for j, b in enumerate(items)
        )
        assert found.score == pytest.approx(score, rel=1e-12)
        assert found.bound <= best_score(W, items) + 1e-9
        assert found.optimal == (found.bound == found.score)


# ---- Alike items are moved together


@pytest.mark.parametrize(("levels", "k"), [(3, None), (3, 2), (99, None)])
def test_orders_of_classes_are_as_good_as_orders_of_items(rng, levels, k):
    """With few levels, items are alike; the best of all 720 orders is found, and its score."""
    for _ in range(5):
        rankings = rs.Rankings.from_positions(
            rng.integers(0, levels, (3, 6)), items=list("abcdef"), weights=rng.random(3) + 0.1
        )
        rankings = rankings if k is None else rankings.top(k)
        W, items = precedence(rankings), rankings.items
        best = best_score(W, items)
        for method in ("exact", "insertion", "adjacent"):
            found = rs.kemeny(rankings, method)
            assert sorted(found.order) == sorted(items)
            assert found.score == pytest.approx(score_of(found.order, W, items), abs=1e-12)
            assert found.bound - 1e-9 <= best <= found.score + 1e-9
            assert found.optimal == (found.bound == found.score)
            if method == "exact":
                assert found.score == pytest.approx(best, abs=1e-9)
                assert found.optimal


def test_pairs_that_were_never_compared_are_counted():
    votes = rs.Rankings.from_pairs(["a", "b", "c"], ["b", "c", "d"], ties=[False, True, False])
    with pytest.warns(UserWarning, match="3 of 6"):
        rs.kemeny(votes)
    (summary,) = rs.ranking.summarize(votes, "kemeny", None)
    assert summary.n_open_pairs == 3
    # The model's order has all items, though each vote has two.
    (summary,) = rs.ranking.summarize(votes, rs.PlackettLuce(regularization=0.1), None)
    assert summary.order == (("a", "c"), ("b", "d"))
    top = rs.Rankings.from_orders([["a"], ["b"]], items=["a", "b", "c", "d"])
    assert rs.ranking.summarize(top, "kemeny", None)[0].n_open_pairs == 0


@pytest.mark.filterwarnings("ignore:.* were never compared")
@pytest.mark.parametrize("options", [{"shortest": 5}, {"ties": True}, {"kind": "subset"}])
def test_a_best_order_is_found_and_of_several_the_first(random_rankings, options):
    for n in range(2, 7):
        votes = random_rankings(n_items=5, n=n, **options)
        W, items = precedence(votes), votes.items
        scores = {order: score_of(order, W, items) for order in permutations(items)}
        least = min(scores.values())
        best = {order for order, score in scores.items() if score <= least + 1e-9}
        assert rs.kemeny(votes, "exact").order in best
        first = next(order for order in scores if order in best)
        assert tuple(items[i] for i in order_few(W)) == first


def test_one_long_ranking_needs_no_table_of_pairs():
    names = list(map(str, range(50_000)))
    one = rs.Rankings.from_orders([names])
    assert rs.kemeny(one).order == tuple(names)
    (summary,) = rs.ranking.summarize(one, "kemeny", None)
    assert summary.order == tuple(names)
    two = rs.Rankings.from_orders([names, names[::-1]])
    with refuses("rankings", 50_000):
        rs.kemeny(two)
    assert len(rs.borda(two).order) == 1
