"""How much rankings agree: distances, and summaries of targets."""

from time import process_time

import numpy as np
import pytest

import rankshot as rs
from rankshot.ranking import mean_distances
from rankshot.ranking.agreement import merge_rankings, summarize_target
from rankshot.ranking.mean_distances import compare_common_items, mean_common_distance
from rankshot.ranking.restriction import restrict_items

# ---- Agreement


def test_weights_count_as_copies():
    once = rs.Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"], ["b", "a", "c"]])
    weighted = once.unique()
    assert weighted.weights.tolist() == [1, 2]
    one, two = rs.agreement(once), rs.agreement(weighted)
    assert one.concordance == pytest.approx(two.concordance, abs=1e-12)
    assert one.mean_kendall_distance == pytest.approx(two.mean_kendall_distance, abs=1e-12)
    assert one.distance_to_others[:2] == pytest.approx(two.distance_to_others, abs=1e-12)


def test_equal_rankings_agree_entirely():
    found = rs.agreement(rs.Rankings.from_orders([["a", "b"]] * 3, items=list("abcd")))
    assert found.concordance == pytest.approx(1, abs=1e-12)
    assert found.mean_kendall_distance == 0


def test_a_single_ranking_has_nobody_to_agree_with():
    with pytest.raises(rs.RankshotError, match="at least two rankings"):
        rs.agreement(rs.Rankings.from_orders([["a", "b"]]))


def test_agreement_on_different_items_is_refused():
    rankings = rs.Rankings.from_orders([list("ab"), list("bc")], kind="subset")
    for given in (rankings, rs.Rankings.concatenate([rankings, rankings[:1]])):
        with pytest.raises(rs.RankshotError, match=r"ranking 0 compares only .* concordance\("):
            rs.agreement(given)


@pytest.mark.parametrize("sizes", [[2], [1, 2], [2, 3], [2, 4, 6]])
@pytest.mark.parametrize("tied", [False, True])
def test_equal_subset_rankings_are_merged_and_sets_are_compared_apart(rng, sizes, tied):
    """The mean distance is that over all pairs of rankings, compared one by one."""
    orders = []
    for _ in range(300):
        order = [f"{i}" for i in rng.permutation(7)[: rng.choice(sizes)]]
        orders.append([order] if tied and rng.random() < 0.3 else order)
    weights = rng.choice([0, 0.25, 0.5, 1, 1.5, 3], len(orders))
    rankings = rs.Rankings.from_orders(orders, items=range(7), kind="subset", weights=weights)
    for k in (1, 3):
        distance = compare_common_items(rankings, k=k)
        both = np.outer(weights, weights) - np.diag(weights * np.minimum(weights, 1))
        both[np.isnan(distance)] = 0
        wanted = (both * np.nan_to_num(distance)).sum() / both.sum()
        assert mean_common_distance(rankings, k) == pytest.approx(wanted, rel=1e-9)


def test_many_votes_between_two_items_are_summarized_in_time(rng):
    """The time is that of the different votes: all pairs of votes would be 10 billion."""
    sides = rng.permuted(np.tile(np.arange(20), (100_000, 1)), axis=1)[:, :2]
    votes = rs.Rankings.from_pairs(sides[:, 0], sides[:, 1], items=range(20))
    start = process_time()
    found = rs.summarize(votes)[0]
    assert process_time() - start < 5
    assert found.mean_distance == pytest.approx(0.5, abs=0.01)
    assert len(found.order) == 2
    assert len(found.model.mode_) == 20


def test_too_many_different_subset_rankings_have_no_mean_distance(monkeypatch, rng):
    orders = [rng.permutation(6)[:4].tolist() for _ in range(40)]
    rankings = rs.Rankings.from_orders(orders, items=range(6), kind="subset")
    assert rs.summarize(rankings)[0].mean_distance is not None
    monkeypatch.setattr(mean_distances, "MOST_CELLS", 100)
    assert rs.summarize(rankings)[0].mean_distance is None
    # Few rankings of all items are compared one by one, too, but they need not be.
    long = rs.Rankings.from_orders([rng.permutation(99).tolist() for _ in range(20)])
    assert rs.summarize(long)[0].mean_distance is not None


@pytest.mark.parametrize("kind", ["top", "subset"])
def test_items_that_nobody_ranked_change_nothing(rng, kind):
    """A survey that shows 6 of 40 items says as much as one that has only 6."""
    orders = [list(rng.permutation(list("abcdef"))[: rng.integers(2, 7)]) for _ in range(30)]
    lists = [[*order, *sorted(set("abcdef") - {*order})] for order in orders]
    lengths = np.array([len(order) for order in orders])

    def both(items):
        given = lists if kind == "subset" else orders
        ranked = rs.Rankings.from_orders(
            given, items=items, raters=[f"r{i}" for i in range(30)], kind=kind
        ).top(lengths)
        return rs.agreement(ranked), rs.summarize(ranked, k=4)[0]

    few, brief = both(list("abcdef"))
    many, wide = both([f"unseen {i}" for i in range(34)] + list("fedcba"))
    assert many.concordance == pytest.approx(few.concordance, rel=1e-12)
    assert many.mean_kendall_distance == pytest.approx(few.mean_kendall_distance, rel=1e-12)
    assert many.distance_to_others == pytest.approx(few.distance_to_others, rel=1e-12)
    assert wide.order == brief.order
    assert wide.concordance == pytest.approx(brief.concordance, rel=1e-12)
    assert wide.mean_distance == pytest.approx(brief.mean_distance, rel=1e-12)
    assert dict(wide.disagreement) == pytest.approx(dict(brief.disagreement), rel=1e-12)


@pytest.mark.parametrize("kind", ["top", "subset"])
def test_who_stops_early_does_not_disagree(kind):
    lists = [["a", "b", "c", "d"], ["a"], ["a", "b"], ["a", "b", "c"], ["a"]]
    lengths = np.array([len(order) for order in lists])
    given = [lists[0]] * 5 if kind == "subset" else lists
    rankings = rs.Rankings.from_orders(given, raters=list("vwxyz"), kind=kind).top(lengths)
    (brief,) = rs.summarize(rankings)
    assert brief.concordance == pytest.approx(1, abs=1e-12)
    assert brief.mean_distance == pytest.approx(0, abs=1e-12)
    assert dict(brief.disagreement) == dict.fromkeys("vwxyz", 0)


def test_all_who_rank_a_single_item_and_the_same_agree():
    (brief,) = rs.summarize(rs.Rankings.from_orders([["a"]] * 3, items=list("abcd"), raters="x"))
    assert (brief.concordance, brief.mean_distance, brief.disagreement) == (1, 0, (("x", 0),))


@pytest.mark.parametrize(("n", "k"), [(6, 6), (6, 3), (7, 1)])
def test_the_mean_distance_of_random_rankings(rng, n, k):
    """A pair of items counts half if both rankings order it, and fully if only one does.

    So the share of the largest distance is 1 - p/2, where p is the share of ordered pairs:
    1/2 for complete rankings, and nearly 1 if each ranks one of many items.
    """
    p = 1 - (n - k) * (n - k - 1) / (n * (n - 1))
    lists = [np.array([rng.permutation(n)[:k] for _ in range(60)]) for _ in range(40)]
    found = [
        rs.summarize(rs.Rankings.from_item_numbers(some, items=[*range(n), *"abc"]), k=n)[0]
        for some in lists
    ]
    means = np.array([brief.mean_distance for brief in found])
    assert means.mean() == pytest.approx(1 - p / 2, abs=4 * means.std() / np.sqrt(40))


# ---- Summaries

ITEMS = ["bus", "fox", "leopard", "lion", "tiger"]


def votes(**columns):
    orders = [["leopard", "tiger"], ["tiger", "leopard", "lion"], ["fox", "leopard"]]
    return rs.Rankings.from_orders(orders, items=ITEMS, **columns)


def test_the_consensus_is_the_mode_of_the_model_and_the_rest_is_agreement():
    rankings = votes(targets="cat", raters=["ann", "bob", "cy"])
    (brief,) = rs.summarize(rankings, k=2)
    first = rankings.top(2)
    model = rs.PlackettLuce().fit(first)
    assert brief.k == 2
    assert brief.order == model.mode_[:2]
    assert brief.n_rankings == 3
    found = rs.agreement(first)
    # Nobody has bus or lion among the first two.
    most = 2 * (2 * 3 - 2 - 1) / 2
    assert brief.concordance == pytest.approx(found.concordance)
    assert brief.mean_distance == pytest.approx(found.mean_kendall_distance / most)
    among = ["fox", "leopard", "tiger"]
    consensus = rs.Rankings.from_orders([list(brief.order)], items=among)
    distances = rs.kendall_distance(restrict_items(first, among), consensus)[:, 0] / most
    assert dict(brief.disagreement) == pytest.approx(
        dict(zip(["ann", "bob", "cy"], distances, strict=True))
    )
    shares = [share for _, share in brief.disagreement]
    assert shares == sorted(shares, reverse=True)


def test_the_opposite_order_is_as_far_as_can_be():
    rankings = rs.Rankings.from_orders(
        [ITEMS, ITEMS[::-1]], items=ITEMS, raters=["ann", "bob"], weights=[2, 1]
    )
    (brief,) = rs.summarize(rankings, rs.Mallows(), k=5)
    assert brief.target is None
    assert brief.disagreement == (("bob", 1.0), ("ann", 0.0))


def test_every_target_has_its_own_and_raters_without_a_name_count_for_their_source():
    rankings = votes(
        targets=["cat", "cat", "dog"], raters=["ann", None, None], sources=["x", "x", "y"]
    )
    cat, dog = rs.summarize(rankings)
    assert (cat.target, dog.target) == ("cat", "dog")
    assert {name for name, _ in cat.disagreement} == {"ann", "x"}
    assert dog.concordance is None
    assert dog.mean_distance is None
    assert dog.disagreement == ()


def test_a_subset_is_compared_on_its_own_items():
    """Bob knows three cats, and orders them as the consensus does; the others agree on two."""
    rankings = rs.Rankings.from_orders(
        [["leopard", "tiger"], ["leopard", "tiger", "lion"], ["leopard", "tiger"]],
        items=ITEMS,
        targets="cat",
        raters=["ann", "bob", "cy"],
        kind=["top", "subset", "top"],
    )
    (brief,) = rs.summarize(rankings)
    assert brief.order[:2] == ("leopard", "tiger")
    assert brief.disagreement == (("ann", 0.0), ("bob", 0.0), ("cy", 0.0))
    assert brief.mean_distance == 0
    # W is that of ann and cy, who compare all items.
    assert brief.concordance == 1


def test_a_tied_ranking_does_not_disagree_with_itself():
    tied = rs.Rankings.from_orders([[["lion", "fox"]]], items=ITEMS, sources="wordnet")
    assert rs.summarize(tied)[0].disagreement == ()


def test_the_consensus_of_subsets_names_only_what_was_compared():
    """c is last for both; d and e, of which nothing is known, do not come before it."""
    votes = rs.Rankings.from_orders(
        [list("bac"), list("bc")], items=list("abcde"), targets="x", kind="subset"
    )
    merged = merge_rankings(votes, rs.PlackettLuce().fit(votes))
    assert merged.orders() == [["b", "a", "c"]]
    assert merged.is_subset.all()
    assert rs.summarize(votes)[0].order == ("b", "a", "c")


def test_lists_of_other_lengths_are_compared_as_far_as_both_go():
    consensus = rs.Rankings.from_orders([["leopard", "tiger", "lion"]], items=ITEMS)
    brief = summarize_target(None, votes(raters=["ann", "bob", "cy"]), consensus, 3)
    found = dict(brief.disagreement)
    assert found["ann"] == 0
    third = rs.Rankings.from_orders([["tiger", "leopard", "lion"]], items=ITEMS)
    expected = rs.kendall_distance(third, consensus)[0, 0] / (3 * (2 * 4 - 3 - 1) / 2)
    assert found["bob"] == pytest.approx(expected)


def test_weights_count_and_zero_is_nothing():
    heavy = votes(targets="cat", raters=["ann", "bob", "cy"], weights=[0, 1, 0])
    (brief,) = rs.summarize(heavy)
    assert brief.n_rankings == 1
    assert brief.order[:2] == ("tiger", "leopard")


@pytest.mark.parametrize(
    ("rankings", "k", "message"),
    [
        (votes(weights=[0, 0, 0]), None, "no rankings to summarize"),
        (votes(targets=["cat", None, "cat"]), None, "ranking 1 has no target, but others have"),
        (votes(), 0, "k must be a whole number from 1 on, not 0"),
        ([["a"]], None, "expected Rankings"),
    ],
)
def test_what_is_refused(rankings, k, message):
    with pytest.raises(rs.RankshotError, match=message):
        rs.summarize(rankings, k=k)


def test_permuting_the_items_changes_nothing(rng):
    lists = np.array([rng.permutation(6)[:3] for _ in range(5)])
    items = [f"i{i}" for i in range(6)]
    rankings = rs.Rankings.from_item_numbers(lists, items=items)
    turned = rankings.with_items(items[::-1])
    one, two = rs.summarize(rankings)[0], rs.summarize(turned)[0]
    same = [set(x) if isinstance(x, tuple) else x for x in one.order]
    assert same == [set(x) if isinstance(x, tuple) else x for x in two.order]
    assert one.concordance == pytest.approx(two.concordance)


def test_one_short_list_does_not_cut_the_others_short(rng):
    center = [f"i{n}" for n in range(8)]
    long = rs.Mallows.from_center(center, spread=1.0).sample(20, k=6, random_state=rng)
    short = rs.Rankings.from_orders([[center[0]]], items=long.items)
    both = rs.Rankings.concatenate([long, short])
    alone, together = rs.summarize(long)[0], rs.summarize(both)[0]
    assert together.k == alone.k == 6
    assert list(map(str, together.order)) == list(map(str, alone.order))
    assert together.concordance == pytest.approx(alone.concordance, abs=0.05)
    assert together.mean_distance == pytest.approx(alone.mean_distance, abs=0.05)
    # The short list is compared in the first place only.
    to_short = rs.kendall_distance(long, short, k=1)[:, 0] / 7
    n = len(long)
    expected = (alone.mean_distance * n * (n - 1) + 2 * to_short.sum()) / ((n + 1) * n)
    assert together.mean_distance == pytest.approx(expected)
