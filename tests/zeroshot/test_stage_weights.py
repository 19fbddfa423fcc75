"""The weight of each place of a ranking, and log-probabilities where all scores are equal."""

from math import log

import numpy as np
import pytest

import rankshot as rs
from rankshot.zeroshot.likelihoods.scorers import (
    log_chance,
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
