"""Calibrations of made probabilities: errors by hand, and what each calibration can mend."""

import numpy as np
import pytest
from reproduction.calibration import (
    calibration_error,
    cross_fit,
    fit_dirichlet,
    fit_isotonic,
    fit_vector_scaling,
    judge,
    temper,
)
from reproduction.rehearsed_sources import TaskValues
from scipy.special import log_softmax

from rankshot.zeroshot.metrics import expected_calibration_error, negative_log_likelihood

CLASSES = ("cow", "elk", "yak")


@pytest.fixture
def made(rng):
    """Values whose softmax is the truth: classes are drawn from it."""
    values = 2 * rng.normal(size=(6000, 3))
    truth = np.array([rng.choice(3, p=row) for row in np.exp(temper(values, 1.0))])
    return TaskValues(values, truth)


def test_errors_are_those_of_the_metrics(made):
    """As long as the most probable class is the predicted one."""
    for temperature in (0.3, 1.0, 4.0):
        log_proba = temper(made.values, temperature)
        labels = np.array(CLASSES)[made.truth]
        found = judge(log_proba, made.truth, log_proba.argmax(axis=1))
        expected = expected_calibration_error(labels, np.exp(log_proba), CLASSES)
        assert found.error == pytest.approx(expected)
        expected = negative_log_likelihood(labels, log_proba, CLASSES)
        assert found.log_loss == pytest.approx(expected)


def test_the_confidence_of_the_predicted_class_counts_even_if_another_is_more_probable():
    log_proba = np.log([[0.2, 0.8], [0.2, 0.8]])
    found = judge(log_proba, np.array([0, 1]), np.array([0, 0]))
    # Confidence .2, one of two right.
    assert found.error == pytest.approx(0.3)
    assert calibration_error(np.array([0.2, 0.2]), np.array([True, False])) == pytest.approx(0.3)


def test_isotonic_regression_mends_any_order_preserving_distortion(made):
    distorted = TaskValues(temper(made.values, 0.2), made.truth)
    decided = distorted.values.argmax(axis=1)
    before = judge(distorted.values, made.truth, decided)
    fitted = fit_isotonic(TaskValues(distorted.values[:3000], made.truth[:3000]))
    rest = distorted.values[3000:]
    log_proba = fitted(rest)
    after = judge(log_proba, made.truth[3000:], rest.argmax(axis=1))
    assert before.error > 0.1
    assert after.error < 0.04
    np.testing.assert_allclose(np.exp(log_proba).sum(axis=1), 1.0)


@pytest.mark.parametrize("fit", [fit_vector_scaling, fit_dirichlet])
def test_calibrations_with_labels_mend_a_distortion_of_each_class(made, fit):
    """Of both, the log-loss of the truth is the least possible one."""
    wrong = made.values * [0.5, 2.0, 1.0] + [1.0, 0.0, -2.0]
    best = judge(temper(made.values, 1.0), made.truth, made.values.argmax(axis=1)).log_loss
    given = TaskValues(wrong, made.truth)
    before = -log_softmax(wrong, axis=1)[np.arange(6000), made.truth].mean()
    after = -cross_fit(fit, given)[np.arange(6000), made.truth].mean()
    assert before > best + 0.3
    assert best - 1e-3 < after < best + 0.01


def test_halves_are_calibrated_by_the_other_half(made):
    """A calibration that remembers its inputs must not see them again."""

    def remember(given):
        rows = {row.tobytes() for row in given.values}

        def apply(values):
            assert not any(row.tobytes() in rows for row in values)
            return values

        return apply

    found = cross_fit(remember, made)
    np.testing.assert_array_equal(found, made.values)


def test_the_same_parameters_for_all_classes_are_a_temperature(made):
    """With W = a I + b 1, Dirichlet calibration is softmax(a log p): the rest cancels."""
    log_proba = temper(made.values, 1.0)
    a, b, c = 0.4, 0.7, -1.3
    mixed = log_proba @ (a * np.eye(3) + b) + c
    np.testing.assert_allclose(temper(mixed, 1.0), temper(made.values, 1 / a), atol=1e-10)
