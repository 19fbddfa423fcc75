"""The default head, against sorting, regression and permutations."""

import numpy as np
import pytest

from rankshot.zeroshot import default_head
from rankshot.zeroshot.default_head import (
    PLACE_BONUS,
    SHARE,
    center_weights,
    choose_share,
    fit_linear_part,
    measure_baseline,
    measure_coverage,
    rank_bonus,
    rank_weights,
)


def by_all_orders(row):
    """Average the bonus over the orders that a tied row allows, one random order at a time."""
    rng, total = np.random.default_rng(0), np.zeros(len(row))
    bonus = np.zeros(max(len(row), len(PLACE_BONUS)))
    bonus[: len(PLACE_BONUS)] = PLACE_BONUS
    for _ in range(4000):
        order = np.lexsort((rng.random(len(row)), -row))
        total[order] += bonus[: len(row)]
    return total / 4000


@pytest.mark.parametrize(
    "row", [[3.0, 1, 2, 0, -1, -2, 5], [1, 1, 1, 0, 0, 0, 0, 2], [0, 0, 0], [7, 7, 7, 7, 7, 7, 7]]
)
def test_tied_scores_share_the_mean_bonus_of_their_places(row):
    found = rank_bonus(np.array([row], float))[0]
    np.testing.assert_allclose(found, by_all_orders(np.array(row, float)), atol=0.06)
    assert found.sum() == pytest.approx(sum(PLACE_BONUS[: len(row)]))


def test_weights_have_unit_deviation_and_long_lists_a_smaller_bonus():
    weights = np.zeros((3, 8))
    weights[0, :2] = 0.5
    weights[1, :6] = 1 / 6
    centered = center_weights(weights)
    assert np.linalg.norm(centered - centered.mean(axis=1, keepdims=True), axis=1) == pytest.approx(
        [1, 1, 0]
    )
    bonus = rank_weights(weights)
    assert bonus[0, 0] / centered[0, 0] > bonus[1, 0] / centered[1, 0]
    assert not bonus[2].any()


def test_a_full_reference_gives_the_discriminant_of_a_ridge_regression():
    rng = np.random.default_rng(3)
    f = rng.normal(size=(4000, 6)) @ rng.normal(size=(6, 6))
    f -= f.mean(axis=1, keepdims=True)
    f /= f.std(axis=1, keepdims=True)
    weights = rng.random((2, 6))
    baseline = measure_baseline(f)
    found = fit_linear_part(weights, baseline, 1.0)
    R = baseline.correlations
    # The minimum of |R a - R w|² in the metric of R⁻¹ with a ridge, found by least squares.
    root = np.linalg.cholesky(R).T
    ridge = np.sqrt(default_head.UNCERTAINTY * 6) * np.eye(6)
    for w, slopes in zip(center_weights(weights), found.slopes, strict=True):
        a = np.linalg.lstsq(
            np.vstack([root, ridge]), np.concatenate([np.linalg.solve(root.T, w), np.zeros(6)])
        )[0]
        np.testing.assert_allclose(slopes, a / np.sqrt(a @ R @ a), rtol=1e-9)


def test_coverage_grows_with_the_inputs_of_a_class():
    few, many = measure_coverage(np.array([3.0, 0, 0])), measure_coverage(np.full(3, 1000.0))
    assert 0 < few[1] < few[0] < 1
    np.testing.assert_allclose(many, 1, atol=0.01)


def test_a_reference_of_equal_inputs_changes_no_order():
    f = np.tile([1.0, -1.0, 0.0], (10, 1))
    baseline = measure_baseline(f)
    assert np.isfinite(baseline.correlations).all()
    assert np.isfinite(fit_linear_part(np.eye(3), baseline).slopes).all()


def test_all_of_the_reference_is_used_where_a_batch_says_so():
    rng = np.random.default_rng(4)
    usual = np.array([0.0, 2.0, 0, 0, 0, 0])
    standardize = lambda x: (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)  # noqa: E731
    reference = standardize(usual + rng.normal(size=(3000, 6)))
    weights = np.eye(2, 6)
    batch = usual + rng.normal(size=(200, 6))
    batch[:100, 0] += 3
    batch[100:, 1] += 3
    f = standardize(batch)
    args = f, rank_bonus(batch), weights, measure_baseline(reference)
    assert choose_share(*args) == 1.0
    assert choose_share(args[0], args[1], weights, measure_baseline(f[:1])) == SHARE


def test_a_column_that_is_high_for_all_inputs_counts_as_if_it_were_constant():
    """Its mean is subtracted in full, and so is its bonus; other means count by the share."""
    rng = np.random.default_rng(8)
    f = 0.3 * rng.normal(size=(600, 5))
    f[:, 0] += 2.0
    f[:, 1] += 0.2
    baseline, weights = measure_baseline(f), rng.random((3, 5))
    part = fit_linear_part(weights, baseline)
    assert baseline.excess[1:].tolist() == [0, 0, 0, 0]
    assert baseline.excess[0] == pytest.approx(2.0 - f[:, 0].std(), rel=0.05)
    values = part.evaluate(f, rank_bonus(f))
    # Regression of the mean values on what each share explains, term by term.
    a = np.linalg.solve(baseline.correlations + 0.5 * np.eye(5), center_weights(weights).T).T
    a /= np.sqrt(np.einsum("zi,ij,zj->z", a, baseline.correlations, a))[:, None]
    mean, std, bonus = f.mean(axis=0), f.std(axis=0), rank_bonus(f).mean(axis=0)
    left = a @ (f.mean(axis=0) * (1 - baseline.coverage)) / 2
    share = baseline.coverage[0] * (1 - std[0] / mean[0])
    left += center_weights(weights) @ (mean - [share * mean[0], 0, 0, 0, 0]) / 2
    left += rank_weights(weights) @ (bonus - [share * bonus[0], 0, 0, 0, 0])
    np.testing.assert_allclose(values.mean(axis=0), left, atol=1e-9)
