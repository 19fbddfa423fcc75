"""P(π|x) of both scorers, against the models of rankings, enumeration and high precision."""

from functools import cache

import numpy as np
import pytest

import exact
import rankshot as rs
from rankshot.zeroshot.paper.likelihoods import (
    babington_smith,
    log_prob_given_scores,
    plackett_luce,
)
from refusals import refuses

ITEMS = list("abcde")
C = len(ITEMS)
PAIRS = C * (C - 1) // 2

ORDERS = [
    ["a", "b"],
    ["e", "c", "a", "b", "d"],
    [["a", "b"], "c"],
    ["c", ["a", "b", "d"]],
    [["a", "b", "c", "d", "e"]],
    ["b"],
    [["e", "d"], ["a", "c"]],
]
"""Lists of several lengths, with and without ties, full ones among them."""

each_decay = pytest.mark.parametrize("decay", [0, 0.5])

GAPS = [0.1, 40.0, 120.0, 746.0, 1000.0]
"""exp underflows float32 at 104, and float64 at 746."""


def some_rankings(**options):
    return rs.Rankings.from_orders(ORDERS, items=ITEMS, **options)


def cut_rankings():
    """The same lists cut to 1, 2, …: some cuts go through a tie."""
    full = some_rankings()
    return rs.Rankings.concatenate([full.top(k) for k in (1, 2, 3)])


def confident(gap, n_items=C):
    """One class of score ``gap``, in turn each, or one as far below; the rest within one."""
    near = np.array([0.25, 0.0, 1.0, 0.25, -0.5])[:n_items]
    far = np.concatenate([np.eye(n_items), -np.eye(n_items)]) * gap
    tied = np.where(np.arange(n_items) < 2, gap, 0.0) + near * 0
    return np.vstack([far + near, tied, np.arange(n_items) * gap / (n_items - 1)])


def exact_plackett_luce(rankings, values, decay=0):
    """log P(π|x) in high precision, one row per input."""
    return [
        [
            exact.plackett_luce(
                one.orders()[0],
                dict(zip(ITEMS, row, strict=True)),
                int(one.lengths[0]),
                decay=decay,
            )
            for one in rankings
        ]
        for row in values
    ]


@cache
def exact_for_confident(gap, decay, dtype=np.float64):
    """log P(π|x) of `cut_rankings` and `confident` in high precision, which takes long."""
    return logs(exact_plackett_luce(cut_rankings(), confident(gap).astype(dtype), decay))


def logs(table):
    return np.array([[float(exact.mp.log(p)) for p in row] for row in table])


# ------------------------------------------------------------------ Plackett-Luce


@each_decay
def test_plackett_luce_is_right_for_confident_classifiers(decay):
    """The confident class first, last, in the tie, in a cut tie or left out."""
    rankings = cut_rankings()
    for gap in GAPS:
        values, truth = confident(gap), exact_for_confident(gap, decay)
        np.testing.assert_allclose(plackett_luce(rankings, values, decay), truth, rtol=0, atol=1e-9)
    # Beside 1000, what is 0.00002 apart is not lost.
    values = np.array([[1000, 2e-5, 0, 0, 0], [1000, 0.3, 0.30002, 0.7, 0.1]])
    truth = logs(exact_plackett_luce(rankings, values, decay))
    np.testing.assert_allclose(plackett_luce(rankings, values, decay), truth, rtol=1e-5)


def test_rankings_of_different_lengths_are_compared_with_equal_scores():
    items = [f"item {i}" for i in range(1000)]
    votes = rs.Rankings.from_orders([items[:1], items[:3]], items=items)
    equal = np.zeros((1, 1000))
    expected = -np.log([1000, 1000 * 999 * 998])
    np.testing.assert_allclose(plackett_luce(votes, equal)[0], expected)
    found = log_prob_given_scores(votes, rs.Scores(equal, items), 0)
    np.testing.assert_allclose(found, 0, atol=1e-12)


# ------------------------------------------------------------------ Babington-Smith


def of_length(k):
    """All lists of the length k that ORDERS allow, ties included."""
    rankings = some_rankings().top(k)
    return rankings[rankings.lengths == k]


def exact_babington_smith(rankings, values, decay=0):
    return logs(
        [
            [
                exact.babington_smith(
                    one.orders()[0], exact.by_pair(row, ITEMS), ITEMS, int(one.lengths[0]), decay
                )
                for row in values
            ]
            for one in rankings
        ]
    )


def confident_pairs(gap):
    """Differences of the scores above, and some that no scores of classes explain."""
    first, second = np.triu_indices(C, 1)
    f = confident(gap)
    cycles = np.where(np.arange(PAIRS) % 2, gap, -gap) + np.linspace(0, 1, PAIRS)
    return np.vstack([f[:, first] - f[:, second], cycles])


@each_decay
@pytest.mark.parametrize("gap", [0.5, 1000.0])
@pytest.mark.parametrize("k", [1, 3, 5])
def test_babington_smith_is_right_for_confident_classifiers(k, gap, decay):
    values = confident_pairs(gap)
    log_weight = babington_smith(of_length(k), values, decay).T
    truth = exact_babington_smith(of_length(k), values, decay)
    np.testing.assert_allclose(log_weight, truth, rtol=0, atol=1e-9)


def test_babington_smith_refuses_lists_of_two_lengths_and_subsets():
    values = np.zeros((1, PAIRS))
    with refuses("rankings", 1, where="ranking 5 (of 'z')"):
        babington_smith(some_rankings(targets="z"), values)
    with refuses("rankings", "subset"):
        babington_smith(some_rankings(kind="subset"), values)
