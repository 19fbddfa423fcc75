"""Rankings in parts: every answer is that of all rankings in one value, however they are cut."""

from functools import reduce

import numpy as np
import pytest
from sklearn.base import clone

import rankshot as rs
from rankshot.ranking.parts import RankingCounts, RankingParts, add_results


class ListOfParts(RankingParts):
    """Parts in memory: the least that the interface asks for."""

    def __init__(self, parts):
        self.parts = parts
        self.items = parts[0].items

    def reduce(self, function, *arguments, combine=None):
        found = [function(part, *arguments) for part in self.parts if len(part)]
        return reduce(combine or add_results, found) if found else None

    def map_parts(self, function, *arguments, items=None):
        mapped = ListOfParts([function(part, *arguments) for part in self.parts])
        assert mapped.items == (items or self.items)
        return mapped

    def map_rows(self, function, *arguments):
        return np.concatenate([function(part, *arguments) for part in self.parts if len(part)])


def cut(rankings, rng, n=4):
    """Rankings in n parts, some of which may be empty, in an order of their own."""
    part = rng.integers(0, n, len(rankings))
    return ListOfParts([rankings[part == i] for i in range(n)]), np.argsort(part, kind="stable")


KINDS = ["full", "top", "ties", "cut ties", "subsets"]


def draw(rng, kind, n=25, C=6, weights=(0, 0.3, 1, 2.5)):
    """Random rankings of a kind."""
    if kind in {"full", "top", "subsets"}:
        lengths = rng.integers(2, C + 1, n) if kind != "full" else np.full(n, C)
        orders = [rng.permutation(C)[:length].tolist() for length in lengths]
    else:
        orders = rs.Rankings.from_scores(rng.integers(0, 3, (n, C)), items=range(C)).orders()
    drawn = rs.Rankings.from_orders(
        orders,
        items=range(C),
        weights=rng.choice(weights, n),
        raters=rng.choice(["ann", "bob", "cy"], n).tolist(),
        kind="subset" if kind == "subsets" else "top",
    )
    return drawn.top(rng.integers(1, C, n)) if kind == "cut ties" else drawn


@pytest.mark.parametrize("kind", KINDS)
def test_consensus_and_models_do_not_depend_on_the_parts(rng, kind):
    rankings = draw(rng, kind)
    parts, order = cut(rankings, rng)
    for rule in (rs.borda, rs.copeland, rs.schulze):
        one, two = rule(parts), rule(rankings)
        assert (one.order, one.score) == (two.order, pytest.approx(two.score, rel=1e-12))
    assert rs.ranking.smith_set(parts) == rs.ranking.smith_set(rankings)
    assert rs.ranking.condorcet_winner(parts) == rs.ranking.condorcet_winner(rankings)
    assert rs.kemeny(parts, "exact").score == pytest.approx(rs.kemeny(rankings, "exact").score)
    for regularization in (0, 0.01):
        model = rs.PlackettLuce(regularization=regularization)
        whole, found = (clone(model).fit(some) for some in (rankings, parts))
        np.testing.assert_allclose(found.worths_, whole.worths_, rtol=0, atol=1e-10)
        assert found.log_likelihood_ == pytest.approx(whole.log_likelihood_, rel=1e-10)
    np.testing.assert_allclose(
        found.standard_errors(parts), found.standard_errors(rankings), rtol=1e-10
    )
    np.testing.assert_allclose(found.log_prob(parts), found.log_prob(rankings)[order], rtol=1e-13)
    turned = parts.map_parts(rs.Rankings.with_items, tuple("543210"), items=tuple("543210"))
    np.testing.assert_allclose(found.log_prob(turned), found.log_prob(parts), rtol=1e-12)
    if kind != "subsets":
        whole, found = rs.Mallows().fit(rankings), rs.Mallows().fit(parts)
        assert found.center_ == whole.center_
        assert found.spread_ == pytest.approx(whole.spread_, rel=1e-10)
        assert found.log_likelihood_ == pytest.approx(whole.log_likelihood_, rel=1e-12)
        expected = whole.log_prob(rankings)[order]
        np.testing.assert_allclose(whole.log_prob(parts), expected, rtol=1e-13)
    else:
        with pytest.raises(rs.RankshotError, match="use PlackettLuce"):
            rs.Mallows().fit(parts)


@pytest.mark.parametrize("kind", KINDS)
def test_agreement_and_summaries_do_not_depend_on_the_parts(rng, kind):
    rankings = draw(rng, kind)
    parts, _ = cut(rankings, rng)
    expected = rs.ranking.concordance(rankings)
    assert rs.ranking.concordance(parts) == pytest.approx(expected, rel=1e-12)
    for k in (1, 3, None):
        (whole,), (found,) = rs.summarize(rankings, k=k), rs.summarize(parts, k=k)
        assert (found.order, found.k, found.n_rankings) == (whole.order, whole.k, whole.n_rankings)
        assert found.concordance == pytest.approx(whole.concordance, rel=1e-12)
        assert 0 <= found.concordance <= 1
        assert dict(found.disagreement) == pytest.approx(dict(whole.disagreement), rel=1e-9)
        assert found.mean_distance == pytest.approx(whole.mean_distance, rel=1e-10)


def test_an_estimate_that_does_not_exist_is_refused_in_parts():
    """b and c are compared in one part, a and b in the other."""
    first = rs.Rankings.from_orders([["b", "c"], ["c", "b"]], items=list("abc"), kind="subset")
    second = rs.Rankings.from_orders([["a", "b"]], items=list("abc"), kind="subset")
    model = rs.PlackettLuce(regularization=0)
    with pytest.raises(rs.RankshotError, match="nothing else was placed before 'a'"):
        model.fit(ListOfParts([first, second]))
    third = rs.Rankings.from_orders([["c", "a"]], items=list("abc"), kind="subset")
    assert model.fit(ListOfParts([first, second, third])).worths_.sum() == pytest.approx(1)


def test_an_empty_part_makes_no_pair_of_one_ranking():
    one, none = (RankingCounts(n, n, n, frozenset(), 0) for n in (1, 0))
    assert not (one + none).has_pairs
    assert (one + one).has_pairs
