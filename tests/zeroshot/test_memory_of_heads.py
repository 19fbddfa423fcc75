"""Memory: heads work on one block of scores at a time, however many there are."""

import numpy as np
import pytest

import rankshot as rs
from peak_memory import peak_of

N, C, L = 2000, 1000, 1000


@pytest.fixture(scope="module")
def lists():
    """1,000 targets of 1,000 items, four of which each ranks."""
    rng = np.random.default_rng(20150701)
    items = [f"item {i:03}" for i in range(C)]
    orders = [[items[i] for i in rng.choice(C, 4, replace=False)] for _ in range(L)]
    return rs.Rankings.from_orders(
        orders, items=items, targets=[f"target {i:03}" for i in range(L)]
    )


@pytest.mark.parametrize(
    ("head", "order"),
    [
        (rs.WeightedMean(), "C"),
        (rs.WeightedMean(), "F"),
        (rs.ProbabilisticRanking(), "C"),
    ],
)
def test_probabilities_need_little_more_than_input_and_answer(rng, lists, head, order):
    """Twice 8 MB of scores and 8 MB of answers, the scores themselves included."""
    head.fit(lists)

    def work():
        scores = np.asarray(rng.standard_normal((N, C), np.float32), order=order)
        return scores, head.predict_log_proba(scores)

    peak, (scores, answer) = peak_of(work)
    assert answer.dtype == np.float32
    assert peak < 2 * (scores.nbytes + answer.nbytes)


def test_a_confident_classifier_needs_no_more(rng, lists):
    """Where totals underflow float32, and are added up as logarithms."""
    scores = 300 * rng.standard_normal((4, C), np.float32)
    head = rs.ProbabilisticRanking().fit(lists)
    peak, answer = peak_of(lambda: head.predict_log_proba(scores))
    assert np.isfinite(answer).all()
    assert peak < 64e6


def test_a_reference_is_read_in_blocks(rng, lists):
    """20 MB of scores as float32; correlations, their factor and a few blocks need 8 MB each."""
    usual = rng.standard_normal((5000, C), np.float32)
    peak, head = peak_of(lambda: rs.WeightedMean().fit(lists, usual))
    assert head.reference_ is not None
    assert peak < 100e6
