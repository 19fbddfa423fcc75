"""Ties of alike items, against the integral that takes every item by itself."""

import numpy as np
import pytest

from rankshot.ranking.models.tie_integral import TiedChoice, TiedClasses

TIES = [
    ([1, 1], 1),
    ([1, 1], 2),
    ([2, 1], 2),
    ([5], 1),
    ([5], 3),
    ([3, 1, 2], 1),
    ([3, 1, 2], 3),
    ([3, 1, 2], 5),
    ([3, 1, 2], 6),
    ([12, 1, 1], 4),
]


@pytest.mark.parametrize("scale", [1, 5])
@pytest.mark.parametrize(("counts", "taken"), TIES)
def test_sums_over_classes_of_the_derivatives_by_item(rng, counts, taken, scale):
    log_worths, rest = rng.normal(0, scale, (2, len(counts))), rng.normal(0, scale, 2)
    class_of = np.repeat(np.arange(len(counts)), counts)
    expected = TiedChoice(log_worths[:, class_of], rest, taken)
    found = TiedClasses(log_worths, np.array([counts] * 2), rest, taken)
    # One row per item, and log r last; one column per class.
    adds = np.eye(len(counts) + 1)[np.append(class_of, len(counts))]
    assert found.log_prob == pytest.approx(expected.log_prob, rel=1e-12, abs=1e-13)
    gradient = expected.gradient @ adds[:-1, :-1]
    assert found.gradient == pytest.approx(gradient, rel=1e-11, abs=1e-12)
    hessian = adds.T @ expected.hessian @ adds
    assert found.hessian == pytest.approx(hessian, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("log_ratio", [-20.0, -2.0, 0.0, 60.0])
@pytest.mark.parametrize(("size", "taken"), [(2, 2), (118, 10), (900, 3), (40, 40)])
def test_equal_items_have_a_closed_form(size, taken, log_ratio):
    """m of g items of worth v before a rest of worth r: Π j v / (j v + r), g ≥ j > g - m."""
    log_worths, rest = np.array([[log_ratio]]), np.zeros(1)
    assert TiedClasses.can_hold(log_worths, rest, size, taken) or taken * log_ratio < -600
    if taken * log_ratio < -600:
        return
    found = TiedClasses(log_worths, np.array([[size]]), rest, taken).log_prob[0]
    j = np.arange(size - taken + 1, size + 1)
    expected = -np.log1p(np.exp(-log_ratio) / j).sum()
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_products_that_would_underflow_are_told_beforehand():
    gap = np.array([[0.0, -400.0]])
    assert not TiedClasses.can_hold(gap, np.zeros(1), size=2, taken=2)
    assert TiedClasses.can_hold(gap / 400, np.zeros(1), size=2, taken=2)
