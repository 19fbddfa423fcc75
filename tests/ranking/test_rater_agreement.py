"""How much rankings agree: Kendall's W, distances, and summaries of targets."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

import rankshot as rs
from rankshot.core.errors import RankshotError
from rankshot.ranking.matrices import restrict_items
from rankshot.ranking.rater_agreement import concordance, merge_rankings


def test_the_w_of_random_rankings_has_the_tabulated_distribution():
    """Three rankings of three items: W is 1/3 on average, and Friedman's 6 W has these tails."""
    orders = list(permutations("abc"))
    triples = [rs.Rankings.from_orders([orders[0], *two]) for two in product(orders, repeat=2)]
    W = np.array([concordance(triple) for triple in triples])
    assert W.mean() == pytest.approx(1 / 3, abs=1e-12)
    table = {0: 1, 0.667: 0.944, 2: 0.528, 2.667: 0.361, 4.667: 0.194, 6: 0.028}
    tails = {value: (value - 0.001 < 6 * W).mean() for value in table}
    assert tails == pytest.approx(table, abs=5e-4)


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


def draw(random_rankings, rng, *, ties, shortest):
    """Draw rankings of six items, and each as sets, with its weight; K cuts no tie."""
    n = int(rng.integers(4, 10))
    kinds, weights = rng.choice(["top", "subset"], n).tolist(), rng.integers(1, 5, n) / 4
    full = random_rankings(6, n, ties, shortest, kind=kinds, weights=weights)
    drawn, lengths = [], []
    for order, subset, weight in zip(full.orders(), full.is_subset, full.weights, strict=True):
        groups = [set(group) for group in order]
        ranked = groups[: rng.integers(1, len(groups) + 1)]
        compared = set().union(*groups) if subset else set(full.items)
        drawn.append((ranked, compared.difference(*ranked), Fraction(weight)))
        lengths.append(sum(map(len, ranked)))
    return full.top(np.array(lengths)), drawn


def names_all(drawn):
    """Whether somebody ranked each item; an item that nobody ranked does not count."""
    return {i for ranked, *_ in drawn for group in ranked for i in group} == set("abcdef")


@pytest.mark.parametrize("ties", [False, True])
def test_top_lists_of_every_length_are_as_defined(random_rankings, rng, ties):
    for _ in range(25):
        rankings, drawn = draw(random_rankings, rng, ties=ties, shortest=6)
        if names_all(drawn):
            found = concordance(rankings.change_items(tuple("abcdefgh")))
            assert found == pytest.approx(float(slow_w(drawn)), abs=1e-12)
            assert 0 <= found <= 1


# ---- Incomplete blocks


def slow_durbin(drawn, order):
    """Durbin's statistic and its largest value, ranking by ranking; ``order`` is the consensus."""
    items = sorted({i for ranked, left, _ in drawn for i in {*left}.union(*ranked)})
    place = {item: n for n, item in enumerate(items)}
    A, agreed, covariance = np.zeros(len(items)), np.zeros(len(items)), np.zeros((len(items),) * 2)
    for ranked, left, weight in drawn:
        r = centered([*ranked, left] if left else ranked)
        k = len(r)
        for item in r:
            A[place[item]] += weight * r[item]
        for item, value in zip(sorted(r, key=order.index), sorted(r.values()), strict=True):
            agreed[place[item]] += weight * value
        own = [place[item] for item in r]
        spread = float(weight * sum(x**2 for x in r.values()) / max(k - 1, 1))
        covariance[np.ix_(own, own)] += spread * (np.eye(k) - 1 / k)
    return [x @ np.linalg.lstsq(covariance, x, rcond=1e-10)[0] for x in (A, agreed)]


@pytest.mark.filterwarnings("ignore:.* were never compared")
@pytest.mark.parametrize("ties", [False, True])
def test_subsets_are_as_defined(random_rankings, rng, ties):
    compared = 0
    for _ in range(30):
        rankings, drawn = draw(random_rankings, rng, ties=ties, shortest=2)
        found, partial = concordance(rankings), rankings.is_subset & (rankings.n_listed < 6)
        if found is not None and names_all(drawn) and partial.any():
            T, most = slow_durbin(drawn, rs.kemeny(rankings).order)
            assert found == pytest.approx(min(T / most, 1), abs=1e-9)
            compared += 1
    assert compared > 15


@pytest.mark.parametrize(
    ("orders", "raters", "why"),
    [
        (["abc"], None, "at least two raters"),
        (["abc", "acb"], "ann", "at least two raters"),
        (["ab", "bc"], None, "contradict one another"),
        (["ab", "cd"], ["ann", "bob"], "contradict one another"),
    ],
)
def test_there_is_a_reason_if_there_is_no_w(orders, raters, why):
    kind = "top" if len(orders[0]) == 3 else "subset"
    votes = rs.Rankings.from_orders(map(list, orders), raters=raters, kind=kind)
    assert concordance(votes) is None
    assert why in rs.ranking.summarize(votes)[0].note
    with pytest.raises(RankshotError, match=why):
        rs.agreement(votes)


def test_weights_below_one_do_not_make_votes_agree():
    orders = [["a", "b"], ["b", "c"], ["c", "a"], ["a", "b"]]
    votes = [rs.Rankings.from_orders(orders, kind="subset", weights=[w] * 4) for w in (1, 0.25)]
    assert concordance(votes[0]) < 1
    assert concordance(votes[1]) == pytest.approx(concordance(votes[0]))


# ---- Raters


def test_two_rankings_of_one_rater_are_not_two_raters(rng):
    once = rs.Rankings.from_orders(
        [list(rng.permutation(list("abcde"))) for _ in range(4)], raters=list("wxyz")
    )
    twice = rs.Rankings.concatenate([once, once[:3], once[:1]])
    assert concordance(twice) == pytest.approx(concordance(once))
    # Two different rankings of a rater count as their mean.
    other = rs.Rankings.from_orders([list("edcba")], items=once.items, raters="w")
    places = np.vstack([once.positions(), other.positions()]).astype(float)
    means = np.vstack([places[[0, 4]].mean(axis=0), places[1:4]])
    S = 5 * np.var(means.sum(axis=0))
    found = concordance(rs.Rankings.concatenate([once, other]))
    assert found == pytest.approx(12 * S / (16 * (5**3 - 5)))


def test_the_number_of_places_of_a_summary_does_not_change_w(rng):
    votes = rs.Mallows.from_center(list("abcdefgh"), 0.5).sample(12, random_state=rng)
    summaries = [rs.ranking.summarize(votes, k=k)[0] for k in (2, 5, None)]
    assert [s.concordance for s in summaries] == [concordance(votes)] * 3
    assert len({s.mean_distance for s in summaries}) == 3


# ---- Agreement


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
        return rs.agreement(ranked, n_resamples=9), rs.ranking.summarize(ranked, k=4)[0]

    few, brief = both(list("abcdef"))
    many, wide = both([f"unseen {i}" for i in range(34)] + list("fedcba"))
    assert many.concordance == pytest.approx(few.concordance, rel=1e-12)
    assert wide.order == brief.order
    assert wide.concordance == pytest.approx(brief.concordance, rel=1e-12)
    assert wide.mean_distance == pytest.approx(brief.mean_distance, rel=1e-12)
    assert dict(wide.disagreement) == pytest.approx(dict(brief.disagreement), rel=1e-12)


# ---- Summaries

ITEMS = ["bus", "fox", "leopard", "lion", "tiger"]


def votes(**columns):
    orders = [["leopard", "tiger"], ["tiger", "leopard", "lion"], ["fox", "leopard"]]
    return rs.Rankings.from_orders(orders, items=ITEMS, **columns)


def test_the_consensus_is_the_mode_of_the_model_and_the_rest_is_agreement():
    rankings = votes(targets="cat", raters=["ann", "bob", "cy"])
    (brief,) = rs.ranking.summarize(rankings, k=2)
    first = rankings.top(2)
    model = rs.PlackettLuce().fit(first)
    assert brief.k == 2
    assert brief.order == model.mode_[:2]
    assert brief.n_rankings == 3
    # Nobody has bus or lion among the first two.
    most = 2 * (2 * 3 - 2 - 1) / 2
    assert brief.concordance == pytest.approx(rs.agreement(rankings).concordance)
    among = ["fox", "leopard", "tiger"]
    consensus = rs.Rankings.from_orders([list(brief.order)], items=among)
    distances = rs.kendall_distance(restrict_items(first, among), consensus)[:, 0] / most
    assert dict(brief.disagreement) == pytest.approx(
        dict(zip(["ann", "bob", "cy"], distances, strict=True))
    )
    assert brief.mean_distance == pytest.approx(distances.mean())
    shares = [share for _, share in brief.disagreement]
    assert shares == sorted(shares, reverse=True)


def test_every_target_has_its_own_and_raters_without_a_name_count_for_their_source():
    rankings = votes(
        targets=["cat", "cat", "dog"], raters=["ann", None, None], sources=["x", "x", "y"]
    )
    cat, dog = rs.ranking.summarize(rankings)
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
    (brief,) = rs.ranking.summarize(rankings)
    assert brief.order[:2] == ("leopard", "tiger")
    assert brief.disagreement == (("ann", 0.0), ("bob", 0.0), ("cy", 0.0))
    assert brief.mean_distance == 0
    assert brief.concordance == pytest.approx(1)


def test_the_consensus_of_subsets_names_only_what_was_compared():
    """c is last for both; d and e, of which nothing is known, do not come before it."""
    votes = rs.Rankings.from_orders(
        [list("bac"), list("bc")], items=list("abcde"), targets="x", kind="subset"
    )
    merged = merge_rankings(votes, rs.PlackettLuce().fit(votes))
    assert merged.orders() == [["b", "a", "c"]]
    assert merged.is_subset.all()
    assert rs.ranking.summarize(votes)[0].order == ("b", "a", "c")


def test_a_consensus_has_the_items_of_its_rankings():
    votes = rs.Rankings.from_orders([list("bac"), list("bca")], items=list("dbac"))
    assert merge_rankings(votes, rs.PlackettLuce().fit(votes)).items == votes.items


def test_one_short_list_does_not_cut_the_others_short(rng):
    center = [f"i{n}" for n in range(8)]
    long = rs.Mallows.from_center(center, spread=1.0).sample(20, k=6, random_state=rng)
    short = rs.Rankings.from_orders([[center[0]]], items=long.items)
    both = rs.Rankings.concatenate([long, short])
    alone, together = rs.ranking.summarize(long)[0], rs.ranking.summarize(both)[0]
    assert together.k == alone.k == 6
    assert list(map(str, together.order)) == list(map(str, alone.order))
    assert together.concordance == pytest.approx(alone.concordance, abs=0.05)
    assert together.mean_distance == pytest.approx(alone.mean_distance, abs=0.05)
