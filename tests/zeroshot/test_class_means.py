"""Means of classes by examples, against Bayes' rule, brute force and scikit-learn."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from rankshot.zeroshot.class_means import (
    DENSITY_WEIGHT,
    EXPLAINED,
    ClassMeans,
    ClassModel,
    Examples,
    Groups,
    Inputs,
    LinearMap,
    Reference,
    Space,
    assign_folds,
    fit_correction,
    learn_correction,
    measure_slope,
)
from rankshot.zeroshot.default_head import fit_linear_part, rank_bonus


def standardize(x):
    x = x - x.mean(axis=1, keepdims=True)
    return x / x.std(axis=1, keepdims=True)


def make_inputs(rng, centers, codes, d=0):
    f = standardize(centers[codes] + rng.normal(size=(len(codes), centers.shape[1])))
    features = rng.normal(size=(len(codes), d))
    features[:, : centers.shape[1]] += f[:, :d]
    return Inputs(f, rank_bonus(f), features / np.linalg.norm(features, axis=1, keepdims=True))


def as_map(weights, d=0):
    part = fit_linear_part(weights)
    return LinearMap(part.slopes, part.rank_slopes, np.zeros((len(weights), d)), part.offsets)


def test_groups_have_the_products_of_all_pairs():
    rng = np.random.default_rng(0)
    x, codes = rng.normal(size=(12, 3)), np.array([0] * 5 + [1] * 6 + [2])
    products = [
        np.mean(
            [
                x[i] @ x[j]
                for i in range(12)
                for j in range(12)
                if i != j and codes[i] == codes[j] == c
            ]
        )
        for c in (0, 1)
    ]
    groups = Groups.collect(x, codes, 4)
    assert groups.common() == pytest.approx(np.mean(products))
    np.testing.assert_allclose(groups.means[2], x[-1])
    assert Groups.collect(x[-1:], codes[-1:], 4).common() is None


def test_means_of_new_classes_are_those_of_the_joint_normal_distribution():
    # Shift, residuals and noise are normal: the posterior by conditioning one large covariance.
    rng = np.random.default_rng(1)
    L, C = 3, 2
    weights = rng.random((L, C))
    weights[2] = 0
    space = Space(np.zeros(C), np.eye(C), np.array([0.3, 0.7]), 0.4, rng.normal(size=(C, C)))
    codes = np.array([0, 0, 1])
    x = rng.normal(size=(3, C))
    found = space.fit_new_means(weights, Groups.collect(x, codes, L), None)
    prior = weights[:2] / weights[:2].sum(axis=1, keepdims=True) @ space.seen
    explained = unexplained = 0.4 * EXPLAINED
    prior *= np.sqrt(explained) / np.linalg.norm(prior, axis=1, keepdims=True)
    prior = np.vstack([prior, np.zeros(C)])
    n = np.array([[2.0], [1.0], [0.0]])
    observed = np.array([x[:2].mean(axis=0), x[2], np.zeros(C)])
    slope = measure_slope(prior, observed, n / (n * unexplained / C + space.variance))
    prior *= slope
    known = unexplained + explained * max(0, 1 - slope**2)
    rest = np.array([known, known, unexplained + explained]) / C
    for axis in range(C):
        means = np.diag(rest) + unexplained / C
        across = means[:, codes]
        own = means[np.ix_(codes, codes)] + space.variance[axis] * np.eye(3)
        posterior = prior[:, axis] + across @ np.linalg.solve(own, x[:, axis] - prior[codes, axis])
        np.testing.assert_allclose(found.new[:, axis], posterior)


def test_the_factor_of_the_rankings_is_that_of_a_ridge_regression():
    rng = np.random.default_rng(2)
    prior, noise = rng.normal(size=(2, 6, 4))
    weights = rng.random((6, 4))
    weights[5] = 0
    for factor in (0.0, 0.4, 1.2):
        observed = factor * prior + 0.1 * noise
        a, b, w = (some[:5] for some in (prior, observed, weights))
        a, b = a - a.mean(axis=0), b - b.mean(axis=0)
        model = Ridge(alpha=1, fit_intercept=False)
        model.fit(a.reshape(-1, 1), (b - a).ravel(), sample_weight=w.ravel())
        expected = np.clip(1 + model.coef_[0], 0, 1.5)
        assert measure_slope(prior, observed, weights) == pytest.approx(expected)
    assert measure_slope(prior, prior, weights * [[1], [0], [0], [0], [0], [0]]) == 1


@pytest.mark.parametrize("n_examples", [1, 3])
def test_rankings_that_the_examples_contradict_hardly_count(n_examples):
    rng = np.random.default_rng(3)
    C, L = 12, 6
    seen, weights = 4 * np.eye(C), np.eye(C)[:L] + np.eye(C)[L:]
    reference = np.arange(600) % C
    inputs = make_inputs(rng, seen, reference)
    codes = np.repeat(np.arange(L), n_examples)
    few = Examples(make_inputs(rng, weights @ seen / 2, codes), codes)

    def trust(rankings, examples=few):
        known = Reference(inputs, reference)
        return learn_correction(
            ClassModel(rankings, as_map(rankings), known, examples), examples
        ).trust

    assert trust(weights) == 1
    assert trust(np.roll(weights, 2, axis=0)) < 0.5
    # A class without examples has nothing but its rankings.
    some = Examples(few.inputs.take(codes > 0), codes[codes > 0])
    assert trust(np.roll(weights, 2, axis=0), some) == 1


def test_means_of_seen_classes_go_from_what_is_expected_to_what_is_measured():
    rng = np.random.default_rng(2)
    C = 4
    centers = 0.3 * np.eye(C) + 0.1 * rng.normal(size=(C, C))
    codes = np.repeat(np.arange(C), [1000, 1000, 2, 0])
    x = centers[codes] + 0.1 * rng.normal(size=(len(codes), C))
    space = Space.measure(x, codes, np.eye(C))
    seen = space.seen @ np.linalg.inv(space.rotation) + space.center
    np.testing.assert_allclose(seen[:2], centers[:2], atol=0.02)
    expected = seen[3] - space.center
    assert expected.argmax() == 3
    assert np.count_nonzero(expected.round(6)) == 1


def test_a_correction_is_the_logistic_regression_of_scikit_learn():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(60, 4))
    codes = rng.integers(0, 3, 60)
    size = (x**2).sum(axis=1).mean()
    model = LogisticRegression(C=1 / size, fit_intercept=False, tol=1e-8).fit(x, codes)
    factors, slopes = fit_correction(x, codes, np.zeros((2, 60, 3)))
    np.testing.assert_allclose(slopes, model.coef_, atol=1e-3)
    # Tables that tell nothing keep their factors.
    np.testing.assert_allclose(factors, [DENSITY_WEIGHT] * 2, rtol=1e-3)


def test_the_factors_of_log_posteriors_are_those_that_the_labels_were_drawn_by():
    rng = np.random.default_rng(4)
    tables, x = rng.normal(size=(2, 4000, 3)), 1e-9 * rng.normal(size=(4000, 1))
    logits = 0.3 * tables[0] + 1.5 * tables[1]
    codes = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    factors, _ = fit_correction(x, codes, tables)
    np.testing.assert_allclose(factors, [0.3, 1.5], atol=0.1)
    # One label moves the logarithm of a factor by its gradient, as its prior variance is 1.
    one, _ = fit_correction(x[:1], codes[:1], tables[:, :1])
    share = np.exp(one @ tables[:, 0])
    slope = tables[:, 0, codes[0]] - tables[:, 0] @ share / share.sum()
    np.testing.assert_allclose(np.log(one / DENSITY_WEIGHT), one * slope, atol=1e-3)


def test_folds_divide_each_class():
    codes = np.array([0] * 5 + [1] * 10 + [2])
    fold = assign_folds(codes)
    for c in (0, 1):
        np.testing.assert_array_equal(np.bincount(fold[codes == c], minlength=5), [c + 1] * 5)


def test_points_unfold_to_columns():
    rng = np.random.default_rng(4)
    columns, codes = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    slopes, offsets = rng.normal(size=(4, 3)), rng.normal(size=4)
    for own in (np.eye(3), np.zeros((3, 3))):
        for space in (Space.measure(columns, codes, own), Space.expect(columns, codes, own)):
            unfolded, moved = space.unfold(slopes, offsets)
            np.testing.assert_allclose(
                space.place(columns) @ slopes.T + offsets, columns @ unfolded.T + moved
            )


CENTERS = 4 * np.eye(6)
RANKED = np.array([[0.6, 0.4, 0, 0, 0, 0], [0, 0, 0.6, 0.4, 0, 0]])
TRUTH = np.array([[0, 3.0, 0, 0, 3, 0], [0, 0, 0, 3.0, 0, 3]])


@pytest.mark.parametrize(("has_reference", "d"), [(True, 0), (True, 9), (False, 0), (False, 9)])
def test_examples_improve_on_rankings_and_calibrate(has_reference, d):
    rng = np.random.default_rng(5)
    part = as_map(RANKED, d)
    reference = make_inputs(rng, CENTERS, rng.integers(0, 6, 600), d)
    reference = Reference(reference, reference.f.argmax(axis=1)) if has_reference else None
    labels = rng.integers(0, 2, 1000)
    tested = make_inputs(rng, 0.5 * TRUTH, labels, d)
    alone = np.mean(part.evaluate(tested).argmax(axis=1) == labels)
    for n in (1, 5, 20):
        codes = np.repeat([0, 1], n)
        examples = Examples(make_inputs(rng, 0.5 * TRUTH, codes, d), codes)
        learned = learn_correction(ClassModel(RANKED, part, reference, examples), examples)
        log_posterior = learned.log_posterior.evaluate(tested)
        assert np.mean(log_posterior.argmax(axis=1) == labels) > alone - 0.02
    accuracy = np.mean(log_posterior.argmax(axis=1) == labels)
    assert accuracy > alone + 0.02
    proba = 1 / (1 + np.exp(-np.abs(np.diff(log_posterior)[:, 0]) / learned.temperature))
    assert proba.mean() == pytest.approx(accuracy, abs=0.06)


def test_log_odds_are_calibrated_by_the_points_of_other_classes():
    """Their variance is the distance of the means, by loops."""
    rng = np.random.default_rng(8)
    space = Space(np.zeros(3), np.eye(3), np.ones(3), 0.4, rng.normal(size=(4, 3)))
    means = ClassMeans(rng.normal(size=(2, 3)), np.array([0.5, 1.0, 2.0]))
    points, codes = rng.normal(size=(7, 3)) * [1, 2, 3], np.array([0, 0, 0, 0, 1, 1, 1])
    values = [
        sum(a * p * b for a, p, b in zip(means.new[z], means.precision, points[i], strict=True))
        for z in range(2)
        for i in range(7)
        if codes[i] != z
    ]
    distance = sum(p * a**2 for row in means.new for a, p in zip(row, means.precision, strict=True))
    assert space.calibrate(means, points, codes) == pytest.approx(distance / (2 * np.var(values)))
    assert space.calibrate(means, points, 0 * codes) == pytest.approx(
        distance / (2 * np.var(points @ (means.new[1] * means.precision)))
    )
