from itertools import permutations

import mpmath
import numpy as np
import pytest

from rankshot.ranking.models.tie_integral import (
    TiedClasses,
    integrate_logs,
    place_nodes,
    tied_log_prob,
)

GROUPS = [(g, m) for g in range(1, 6) for m in range(1, g + 1)]


def by_logs(ratios, taken):
    return integrate_logs(ratios, taken, place_nodes(len(ratios), taken, ratios.max()))


def sum_over_orders(log_worths, log_rest, taken):
    """The log-probability of all ordered choices."""
    worths = [mpmath.exp(t) for t in log_worths]
    everything, total = sum(worths) + mpmath.exp(log_rest), mpmath.mpf(0)
    for chosen in permutations(worths, taken):
        left, p = everything, mpmath.mpf(1)
        for worth in chosen:
            p *= worth / left
            left -= worth
        total += p
    return mpmath.log(total)


def log_choice(log_worths, log_rest, taken):
    """The same, with enough digits for any ratio of worths."""
    with mpmath.workdps(60 + int(np.ptp([*log_worths, log_rest]))):
        return float(sum_over_orders(map(float, log_worths), float(log_rest), taken))


@pytest.mark.parametrize("scale", [1, 10, 1000])
@pytest.mark.parametrize(("size", "taken"), GROUPS)
def test_probability_is_the_sum_over_orders(rng, size, taken, scale):
    theta, rest = rng.normal(0, scale, size=(3, size)), rng.normal(0, scale, size=3)
    expected = [log_choice(t, r, taken) for t, r in zip(theta, rest, strict=True)]
    found = by_logs(theta.T - rest, taken)
    assert found == pytest.approx(expected, rel=1e-13, abs=1e-13)
    assert tied_log_prob(theta.T, rest, taken) == pytest.approx(expected, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize(("size", "taken"), [(7, 7), (10, 6), (24, 3), (30, 2), (25, 20)])
def test_both_integrals_are_equal(rng, size, taken):
    """Groups that come early, late and between, in one call."""
    theta = rng.normal(0, 3, size=(size, 50))
    rest = np.linspace(-20, 20, 50)
    exact = by_logs(theta - rest, taken)
    assert tied_log_prob(theta, rest, taken) == pytest.approx(exact, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize(("size", "taken"), [(g, m) for g, m in GROUPS if g <= 4])
def test_derivatives_by_complex_arithmetic_of_the_sum(rng, size, taken):
    """Against derivatives of the plain sum over orders, taken with 60 digits."""
    point = rng.normal(size=size + 1)

    def value(*z):
        return sum_over_orders(z[:-1], z[-1], taken)

    choice = TiedClasses(point[None, :size], np.ones((1, size), int), point[size:], taken)
    with mpmath.workdps(60):
        for i in range(size + 1):
            order = [int(i == k) for k in range(size + 1)]
            slope = float(mpmath.diff(value, tuple(point), tuple(order)))
            found = choice.gradient[0, i] if i < size else -choice.gradient[0].sum()
            assert found == pytest.approx(slope, abs=1e-12)
            for j in range(i + 1):
                second = [order[k] + int(j == k) for k in range(size + 1)]
                bend = float(mpmath.diff(value, tuple(point), tuple(second)))
                assert choice.hessian[0, i, j] == pytest.approx(bend, abs=1e-11)
                assert choice.hessian[0, j, i] == pytest.approx(bend, abs=1e-11)


# ---- Ties of alike items, against the integral that takes every item by itself

TIES = [([1, 1], 1), ([2, 1], 2), ([5], 3), *(([3, 1, 2], m) for m in (1, 3, 6)), ([12, 1, 1], 4)]


@pytest.mark.parametrize("scale", [1, 5])
@pytest.mark.parametrize(("counts", "taken"), TIES)
def test_sums_over_classes_of_the_derivatives_by_item(rng, counts, taken, scale):
    log_worths, rest = rng.normal(0, scale, (2, len(counts))), rng.normal(0, scale, 2)
    class_of = np.repeat(np.arange(len(counts)), counts)
    by_item = log_worths[:, class_of]
    expected = TiedClasses(by_item, np.ones(by_item.shape, int), rest, taken)
    from_logs = by_logs((by_item - rest[:, None]).T, taken)
    found = TiedClasses(log_worths, np.array([counts] * 2), rest, taken)
    # One row per item, and log r last; one column per class.
    adds = np.eye(len(counts) + 1)[np.append(class_of, len(counts))]
    assert found.log_prob == pytest.approx(from_logs, rel=1e-12, abs=1e-13)
    gradient = expected.gradient @ adds[:-1, :-1]
    assert found.gradient == pytest.approx(gradient, rel=1e-11, abs=1e-12)
    hessian = adds.T @ expected.hessian @ adds
    assert found.hessian == pytest.approx(hessian, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("log_ratio", [-20.0, -2.0, 0.0, 60.0])
@pytest.mark.parametrize(
    ("size", "taken"),
    [(2, 2), (118, 10), (900, 3), pytest.param(900, 450, marks=pytest.mark.slow), (2000, 2000)],
)
def test_equal_items_have_a_closed_form(size, taken, log_ratio):
    """m of g items of worth v before a rest of worth r: Π j v / (j v + r), g ≥ j > g - m."""
    log_worths, rest = np.array([[log_ratio]]), np.zeros(1)
    found = TiedClasses(log_worths, np.array([[size]]), rest, taken).log_prob[0]
    j = np.arange(size - taken + 1, size + 1)
    expected = -np.log1p(np.exp(-log_ratio) / j).sum()
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)
