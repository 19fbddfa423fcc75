"""The weight of each place of a ranking, and log-probabilities where all scores are equal."""

from math import log

import numpy as np
import pytest

import rankshot as rs
from rankshot import RankshotError
from rankshot.zeroshot.likelihoods.scorers import (
    BabingtonSmithScorer,
    PlackettLuceScorer,
    log_chance,
    require_decay,
    stage_weights,
)

ITEMS = list("abcdef")
PAIRS = len(ITEMS) * (len(ITEMS) - 1) // 2


def rankings(orders, **options):
    return rs.Rankings.from_orders(orders, items=ITEMS, **options)


EVERY_SHAPE = rs.Rankings.concatenate(
    [
        rankings([["a"], ["c", "b"], [*"fedcba"], [["a", "b"], "c"], [[*"abcdef"]]]),
        rankings([["a", ["b", "c", "d"], "e"]]).top(3),
        rankings([["e", "a"], [["d", "b"], "c", "a"], [["f", "e"]]], kind="subset"),
        rankings([[["d", "b"], "c", "a"]], kind="subset").top(2),
    ]
)
"""Lists of all lengths, strict and tied, ties that are cut; top-K and of subsets."""


# ------------------------------------------------------------------ the weights


@pytest.mark.parametrize("decay", [0.25, 0.5, 1, 3])
def test_a_place_counts_by_a_power_of_its_number(decay):
    weights = stage_weights(rankings([["b", "a", "f", "c"], ["d"]]), decay)
    np.testing.assert_allclose(weights[0], [1, 2**-decay, 3**-decay, 4**-decay], rtol=1e-15)
    np.testing.assert_array_equal(weights[1], [1, 0, 0, 0])


def test_tied_items_share_the_weights_of_their_places():
    tied = rankings([["a", ["b", "c", "d"], "e"], [["f", "e"], ["a", "b"], "c"]])
    places = 1 / np.arange(1, 6)
    three = (places[1] + places[2] + places[3]) / 3
    first, second = (places[0] + places[1]) / 2, (places[2] + places[3]) / 2
    expected = [[1, three, three, three, places[4]], [first, first, second, second, places[4]]]
    np.testing.assert_allclose(stage_weights(tied, 1), expected, rtol=1e-15)


def test_of_a_tie_that_is_cut_the_places_that_count_are_shared():
    cut = rankings([["a", ["b", "c", "d"], "e"]]).top(3)
    assert cut.orders() == [["a", ["b", "c", "d"]]]
    shared = (2**-0.5 + 3**-0.5) / 2
    np.testing.assert_allclose(stage_weights(cut, 0.5), [[1, shared, shared]], rtol=1e-15)


def test_without_decay_all_places_are_alike():
    weights = stage_weights(EVERY_SHAPE, 0)
    places = np.arange(weights.shape[1])
    np.testing.assert_array_equal(weights, places < EVERY_SHAPE.lengths[:, None])


def test_the_order_inside_a_tie_does_not_matter():
    one, other = (rankings([["a", tie, "e"]]) for tie in (["d", "b"], ["b", "d"]))
    np.testing.assert_array_equal(stage_weights(one, 0.5), stage_weights(other, 0.5))


def test_nothing_to_weigh():
    nothing = EVERY_SHAPE[np.zeros(len(EVERY_SHAPE), bool)]
    assert stage_weights(nothing, 0.5).shape == (0, 0)


@pytest.mark.parametrize("decay", [0, 0.5, 3, np.float32(0.25)])
def test_a_decay_is_a_number_from_zero_on(decay):
    assert require_decay(decay) == decay


@pytest.mark.parametrize(
    "decay", [-1e-9, -1, np.nan, np.inf, "fast", "0.5", b"1", True, False, None, [0.5, 1]]
)
def test_anything_else_is_refused_by_name(decay):
    with pytest.raises(RankshotError, match=r"^decay must be .*, not "):
        require_decay(decay)
    with pytest.raises(RankshotError, match=r"^decay must be .*, not "):
        rs.ProbabilisticRanking(decay=decay).fit(rankings([["a"]], targets="z"))


# ------------------------------------------------------------------ chance


@pytest.mark.parametrize("decay", [0, 0.5, 2])
def test_the_chance_of_a_list(decay):
    """One of six, then one of five, …; of a subset, one of those compared."""
    lists = rs.Rankings.concatenate(
        [rankings([["a", "b", "c"]]), rankings([["a", "b", "c"]], kind="subset")]
    )
    found = log_chance(lists, stage_weights(lists, decay))
    expected = [
        -(log(6) + log(5) * 2**-decay + log(4) * 3**-decay),
        -(log(3) + log(2) * 2**-decay),
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize("decay", [0, 0.5, 2])
def test_chance_is_what_equal_scores_come_to(decay):
    scorer = PlackettLuceScorer(EVERY_SHAPE, decay)
    for level in (0.0, -700.0, 3.7):
        log_prob = scorer.log_prob_by_group(np.full((2, 6), level)).T
        np.testing.assert_allclose(log_prob, [scorer.log_chance] * 2, atol=1e-12)
    lists = rankings([[*"abc"], ["c", ["a", "f"]], [[*"abcd"]]]).top(3)
    pairs = BabingtonSmithScorer(lists, decay)
    np.testing.assert_array_equal(pairs.log_chance, 0)
    np.testing.assert_allclose(pairs.log_prob_by_group(np.zeros((2, PAIRS))), 0, atol=1e-12)


@pytest.mark.parametrize("decay", [0, 0.5, 2])
@pytest.mark.parametrize("posterior", ["mean", "consensus"])
def test_equal_scores_say_nothing_whatever_the_lengths(posterior, decay):
    # A subset of tied items says nothing by itself, and is refused.
    said = [one for one in EVERY_SHAPE if one.orders() != [[["e", "f"]]] or not one.is_subset[0]]
    assert len(said) == len(EVERY_SHAPE) - 1
    rows = rs.Rankings.concatenate(
        [
            rankings(
                [one.orders()[0]], targets=f"z{i}", kind="subset" if one.is_subset[0] else "top"
            )
            for i, one in enumerate(said)
        ]
    )
    head = rs.ProbabilisticRanking(k=3, posterior=posterior, decay=decay).fit(rows)
    assert len(set(head.rankings_.lengths.tolist())) == 3
    log_posterior = head._log_posterior(np.full((2, 6), 1.25), "multiclass")
    np.testing.assert_allclose(log_posterior, 0, atol=1e-12)
    np.testing.assert_allclose(
        head.item_contributions(np.zeros((2, 6)), "multiclass"), 0, atol=1e-12
    )
    pairs = rs.ProbabilisticRanking(k=1, posterior=posterior, decay=decay).fit(rows[:5])
    log_posterior = pairs._log_posterior(np.zeros((2, PAIRS)), "one-vs-one")
    np.testing.assert_allclose(log_posterior, 0, atol=1e-12)


# ------------------------------------------------------------------ both ends of it


@pytest.mark.parametrize("gap", [1.0, 2000.0])
@pytest.mark.parametrize("kind", ["multiclass", "one-vs-one"])
def test_a_steep_decay_leaves_the_first_place_alone(rng, kind, gap):
    """Even where 2^-decay is 0, and scores are far apart."""
    lists = rankings([[*"abcd"], [*"badc"], [*"fecd"]], targets=["u", "v", "w"])
    values = gap * rng.normal(size=(20, PAIRS if kind == "one-vs-one" else 6))
    scores = rs.Scores(values, ITEMS, kind)
    steep = rs.ProbabilisticRanking(k=4, decay=2000, temperature=1).fit(lists)
    first = rs.ProbabilisticRanking(k=1, temperature=1).fit(lists)
    np.testing.assert_allclose(steep.predict_log_proba(scores), first.predict_log_proba(scores))


@pytest.mark.parametrize("kind", ["multiclass", "one-vs-one"])
def test_a_list_of_one_has_nothing_to_decay(rng, kind):
    lists = rankings([["a"], ["f"], ["c"]], targets=["u", "v", "w"])
    scores = rs.Scores(rng.normal(size=(9, PAIRS if kind == "one-vs-one" else 6)), ITEMS, kind)
    one, other = (
        rs.ProbabilisticRanking(decay=decay).fit(lists).predict_log_proba(scores)
        for decay in (0, 5)
    )
    np.testing.assert_array_equal(one, other)
