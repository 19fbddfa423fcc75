"""Labelled examples of new classes: means of classes, weights, and what heads do with them."""

from dataclasses import replace

import numpy as np
import pytest
from examples_problem import CLASSES, ITEMS, draw_problem
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import log_softmax, softmax
from scipy.stats import norm
from sklearn.covariance import oas

import rankshot as rs
from rankshot.testing import check_head
from rankshot.zeroshot.examples import (
    CALIBRATION,
    EXPLAINED_BY_RATERS,
    ISOTROPIC,
    Noise,
    Prototypes,
    Signal,
    assign_folds,
    balance_classes,
    fit_class_means,
    fit_factors,
    measure_between,
    measure_noise,
    measure_reference,
    measure_shrinkage,
    posterior_means,
)
from refusals import refuses

# ------------------------------------------------------------------ the means of the classes


def test_posterior_means_are_those_of_the_joint_normal_distribution():
    rng = np.random.default_rng(0)
    counts = np.array([3, 0, 1, 2])
    expected, residual = rng.normal(size=(4, 2)), np.array([[0.5], [0.5], [0.2], [0.9]])
    variance, common = np.array([0.7, 1.9]), 0.4
    observed = np.where(counts[:, None] > 0, rng.normal(size=(4, 2)), 0.0)
    found, spread = posterior_means(observed, counts, expected, residual, variance, common)
    for i in range(2):
        prior = common * np.ones((4, 4)) + np.diag(residual[:, 0])
        seen = np.flatnonzero(counts)
        noisy = prior[np.ix_(seen, seen)] + np.diag(variance[i] / counts[seen])
        surprise = observed[seen, i] - expected[seen, i]
        truth = expected[:, i] + prior[:, seen] @ np.linalg.solve(noisy, surprise)
        np.testing.assert_allclose(found[:, i], truth)
        # Given the shift, classes are independent.
        known = 1 / (1 / residual[:, 0] + counts / variance[i])
        np.testing.assert_allclose(spread[:, i], known)


def draw_classes(rng, n_classes, d, beta, rho):
    """Return directions of rankings, and means of classes that follow them this much."""
    w = rng.normal(size=(n_classes, d))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    rest = rng.normal(size=(n_classes, d)) * np.sqrt((rho - beta**2) / d)
    return w, 0.2 * np.ones(d) / np.sqrt(d) + beta * w + rest


def test_shrinkage_is_that_of_scikit_learn():
    rng = np.random.default_rng(4)
    for n, d in [(8, 30), (60, 5), (4, 4)]:
        x = rng.normal(size=(n, d)) * np.linspace(0.1, 3, d)
        assert measure_shrinkage(x.T @ x, n, d) == pytest.approx(oas(x, assume_centered=True)[1])


def test_noise_of_few_examples_is_that_of_all_directions():
    """Without the span of what is known, with a table of all directions."""
    rng = np.random.default_rng(5)
    d, labels = 30, np.array([0, 0, 1, 2, 2, 3])
    x = rng.normal(size=(6, d)) * np.linspace(0.05, 0.5, d)
    w, _ = draw_classes(rng, 4, d, 0.3, 0.3)
    found = measure_noise(x, labels, w)
    assert found.axes.shape == (d, 10)
    y = x - x.mean(axis=0)
    sums = np.array([y[labels == z].sum(axis=0) for z in range(4)])
    within = y.T @ y - measure_between(sums, np.bincount(labels).astype(float), (y**2).sum())
    told = (1 - ISOTROPIC) * (1 - measure_shrinkage(within, 5, d))
    dense = told * within / np.trace(within) + (1 - told) / d * np.eye(d)
    np.testing.assert_allclose(
        found.axes @ (found.shares[:, None] * found.axes.T) @ x.T, dense @ x.T
    )
    shares, axes = np.linalg.eigh(dense)
    prototypes = Prototypes(w, EXPLAINED_BY_RATERS)
    few, all_ = (
        fit_class_means(x, labels, 4, Signal(0.3, 0.5), noise, prototypes)
        for noise in (found, Noise(axes, shares, None))
    )
    np.testing.assert_allclose(few.slopes, all_.slopes, atol=1e-9)
    np.testing.assert_allclose(few.offsets, all_.offsets, atol=1e-9)


def test_noise_in_few_directions_does_not_drown_the_rankings():
    """As of a network with many classes, whose scores differ mostly in a few ways."""
    rng = np.random.default_rng(6)
    L, C, n = 10, 400, 40
    shared = rng.normal(size=(6, C))
    names = [f"seen{i}" for i in range(C)]
    lists = [rng.permutation(C)[:8] for _ in range(L)]
    labels = np.repeat(np.arange(L), n)
    values = rng.normal(size=(L * n, C)) + rng.normal(size=(L * n, 6)) @ shared
    for row, label in enumerate(labels):
        values[row, lists[label]] += 2.5
    rankings = rs.Rankings.from_orders(
        [[names[i] for i in order] for order in lists],
        items=names,
        targets=[f"c{i}" for i in range(L)],
    )
    scores, truth = rs.Scores(values, names, "multiclass"), np.array([f"c{i}" for i in labels])
    shown = np.arange(len(labels)) % n < 2
    alone = rs.WeightedMean().fit(rankings)
    both = rs.WeightedMean().fit(rankings, examples=(scores[shown], truth[shown]))
    right = [np.mean(h.predict(scores[~shown]) == truth[~shown]) for h in (alone, both)]
    assert right[1] > right[0] - 0.01, right


@pytest.mark.parametrize(("beta", "rho"), [(0.5, 0.5), (0.0, 0.3), (0.3, 0.2)])
def test_slope_and_signal_are_measured(beta, rho):
    rng = np.random.default_rng(1)
    w, means = draw_classes(rng, 60, 40, beta, rho)
    labels = np.repeat(np.arange(60), 8)
    x = means[labels] + rng.normal(size=(480, 40)) * np.sqrt((1 - rho) / 40)
    prototypes = Prototypes(w, EXPLAINED_BY_RATERS)
    found = fit_class_means(x, labels, 60, Signal(0.4, 0.5), None, prototypes)
    assert found.slope == pytest.approx(beta, abs=0.04)
    assert found.signal == pytest.approx(rho, abs=0.03)


def test_slope_and_signal_are_those_of_the_formulas_written_out():
    """One example per class: ρ is what is known beforehand, and what the slope says of it."""
    rng = np.random.default_rng(8)
    w, means = draw_classes(rng, 6, 20, 0.5, 0.5)
    x = means + 0.1 + rng.normal(size=means.shape) * np.sqrt(0.5 / 20)
    share, spread = 0.6, 0.4
    size = np.mean([one @ one for one in x])
    common = np.mean([x[i] @ x[j] for i in range(6) for j in range(6) if i != j])
    v = w - w.mean(axis=0)
    explained = sum(one @ one for one in v) / 6

    def fit(signal, spread=spread):
        return fit_class_means(x, np.arange(6), 6, signal, None, Prototypes(w, (share, spread)))

    known = Signal(0.4, 0.3)
    found = fit(known)
    # β: least squares, combined with its prior, times the probability that rankings are correct.
    prior = np.sqrt(share * known.size)
    std = prior / 2 * np.hypot(spread, known.spread)
    weight = np.array([one @ one for one in v])
    each = np.array([v[z] @ (x[z] - x.mean(axis=0)) for z in range(6)])
    by_examples = each.sum() / weight.sum()
    scatter = ((each - by_examples * weight) ** 2).sum() * 6 / 5
    error = np.sqrt(max(scatter, (weight * size / 20).sum())) / weight.sum()
    own, others = 1 / std**2, 1 / error**2
    beta = (own * prior + others * by_examples) / (own + others)
    wrong = norm.pdf(by_examples, -prior / 5, np.hypot(std / 5, error))
    right = norm.pdf(by_examples, prior, np.hypot(std, error))
    beta *= right / (right + wrong)
    assert found.slope == pytest.approx(beta)
    relative_error = 1 / np.sqrt(own + others) / beta
    by_slope = Signal(beta**2 * explained / share, np.hypot(spread, 2 * relative_error))
    both = known.combine(by_slope)
    assert found.signal == pytest.approx(both.size * np.exp(-(both.spread**2)))
    # ρ is at most what is not common to all inputs, and at least what the rankings explain.
    assert fit(Signal(9.0, 0.1)).signal == pytest.approx(size - common)
    low = fit(Signal(0.05, 1e-3), spread=5.0)
    assert low.signal == pytest.approx(low.slope**2 * explained)
    assert low.signal > 0.06
    # The variance over inputs of other classes is the distance between the means of log-odds.
    alone = fit_class_means(x, np.arange(6), 6, known)
    each, noise = np.full((6, 1), alone.signal / 20), (size - common - alone.signal) / 20
    means, uncertain = posterior_means(
        x, np.ones(6, int), 0 * x, each, np.full(20, noise), common / 20
    )
    center = means.mean(axis=0)
    slopes = (means - center) / (noise + uncertain.mean(axis=0))
    length = np.linalg.norm(slopes, axis=1)
    values = (x - center) @ (slopes / length[:, None]).T
    of_others = [np.delete(values[:, z], z) for z in range(6)]
    square = np.mean(np.square(of_others)) * 6 / 5
    ratio = (sum(5 * one.var() for one in of_others) + 6 * square) / 30
    factor = ((means - center) * slopes).sum() / (ratio * length @ length)
    np.testing.assert_allclose(alone.slopes, factor * slopes)


def accuracy_of(rng, n_examples, *, wrong, size=10):
    """Return the accuracy of both, of rankings alone and of examples alone, for drawn classes."""
    w, means = draw_classes(rng, size, 30, 0.45, 0.35)
    labels, test = (np.repeat(np.arange(size), n) for n in (n_examples, 40))
    x, inputs = (
        means[y] + rng.normal(size=(len(y), 30)) * np.sqrt(0.65 / 30) for y in (labels, test)
    )
    given = np.roll(w, 1, axis=0) if wrong else w
    prototypes = Prototypes(given, EXPLAINED_BY_RATERS)
    found = fit_class_means(x, labels, size, Signal(0.35, 0.5), None, prototypes)
    means_of_examples = np.array([x[labels == z].mean(axis=0) for z in range(size)])
    nearest = inputs @ means_of_examples.T - 0.5 * np.vecdot(means_of_examples, means_of_examples)
    values = (inputs @ found.slopes.T + found.offsets, inputs @ given.T, nearest)
    return [np.mean(one.argmax(axis=1) == test) for one in values]


@pytest.mark.parametrize("n_examples", [1, 2, 5])
def test_both_are_better_than_either_and_wrong_rankings_cost_nothing(n_examples):
    rng = np.random.default_rng(2)
    both, rankings, examples = np.mean(
        [accuracy_of(rng, n_examples, wrong=False) for _ in range(20)], axis=0
    )
    assert both > max(rankings, examples) + 0.02
    both, _, examples = np.mean(
        [accuracy_of(rng, n_examples, wrong=True) for _ in range(20)], axis=0
    )
    assert both > examples - 0.01


def test_the_factors_make_labels_most_probable():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=50)
    one, other = (c * np.eye(3)[labels] + rng.normal(size=(50, 3)) for c in (0.4, 2.0))

    def loss(v):
        a, b = np.exp(v)
        own = log_softmax(a * one + b * other, axis=1)[np.arange(50), labels]
        return 0.5 * ((v - np.log(0.6)) ** 2).sum() / CALIBRATION**2 - own.sum()

    best = minimize(loss, [0, 0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12})
    np.testing.assert_allclose(fit_factors(one, other, labels, 0.6), np.exp(best.x), rtol=1e-4)
    # Without labels, nothing changes.
    assert fit_factors(one[:0], other[:0], labels[:0], 0.6) == pytest.approx((0.6, 0.6))


def test_classes_with_few_examples_vary_as_much_as_the_others():
    rng = np.random.default_rng(2)
    labels = np.repeat([0, 1, 2], [200, 200, 1])
    scale = np.array([1.0, 3.0, 0.2, 0.4])
    values = rng.normal(size=(401, 4)) * scale + 9 * (labels[:, None] == np.arange(4))
    factors = balance_classes(values, labels)
    # The first two classes have equally many examples, and keep their proportion.
    assert factors[0] == factors[1]
    variance = np.array([values[labels != z, z].var() for z in range(4)])
    balanced = factors**2 * variance
    np.testing.assert_allclose(balanced[[2, 3]], variance.mean())
    np.testing.assert_allclose(balanced[:2].mean(), variance.mean())
    np.testing.assert_array_equal(balance_classes(values[:200], labels[:200]), np.ones(4))
    # One example of each of two classes: no variance, and not a factor of 0.
    two = np.array([0, 1])
    np.testing.assert_array_equal(balance_classes(values[two, :2], two), np.ones(2))


@pytest.mark.parametrize("size", [2, 3, 10])
def test_few_classes_are_calibrated(size):
    rng = np.random.default_rng(size)
    confident, correct = [], []
    for _ in range(60):
        means = rng.normal(size=(size, 30)) * np.sqrt(0.35 / 30)
        labels, test = np.repeat(np.arange(size), 10), np.repeat(np.arange(size), 20)
        x, inputs = (
            means[y] + rng.normal(size=(len(y), 30)) * np.sqrt(0.65 / 30) for y in (labels, test)
        )
        found = fit_class_means(x, labels, size, Signal(0.35, 0.5))
        proba = softmax(inputs @ found.slopes.T + found.offsets, axis=1)
        confident.append(proba.max(axis=1).mean())
        correct.append(np.mean(proba.argmax(axis=1) == test))
    assert np.mean(confident) == pytest.approx(np.mean(correct), abs=0.04)


def test_examples_of_a_class_are_in_different_folds():
    labels = np.array([0, 1, 0, 0, 2, 1, 0, 0])
    fold = assign_folds(labels)
    assert len(set(fold[labels == 0].tolist())) == 5
    assert len(set(fold[labels == 1].tolist())) == 2


def expected_means(u, label):
    """Return the posterior means of classes, by the joint normal distribution of their inputs."""
    size, found = (u**2).sum(axis=1).mean(), np.zeros((label.max() + 1, u.shape[1]))
    groups = [u[label == c] for c in range(len(found))]
    pairs = [np.mean((x @ x.T)[~np.eye(len(x), dtype=bool)]) for x in groups if len(x) > 1]
    common = np.clip(np.mean(pairs), 0, size)
    for c, x in enumerate(groups):
        covariance = common + (size - common) * np.eye(len(x))
        found[c] = np.full(len(x), common) @ np.linalg.solve(covariance, x)
    return found


def test_classes_with_few_inputs_do_not_tell_their_means():
    rng = np.random.default_rng(4)
    label = np.repeat(np.arange(5), [1, 1, 2, 4, 9])
    u = rng.normal(size=(5, 3))[label] + rng.normal(size=(17, 3))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    sums = np.array([u[label == c].sum(axis=0) for c in range(5)])
    between = measure_between(sums, np.bincount(label).astype(float), (u**2).sum())
    within = u - expected_means(u, label)[label]
    np.testing.assert_allclose(u.T @ u - between, within.T @ within)


def test_a_reference_says_what_its_inputs_have_in_common():
    rng = np.random.default_rng(3)
    label = rng.integers(6, size=300)
    values = 3 * np.eye(6)[label] + rng.normal(size=(300, 6))
    mean, std, noise, signal, _ = measure_reference(rs.Scores(values, list("abcdef")), np.ones(6))
    f = values - values.mean(axis=1, keepdims=True)
    f /= f.std(axis=1, keepdims=True)
    np.testing.assert_allclose(mean, f.mean(axis=0))
    np.testing.assert_allclose(std, f.std(axis=0))
    u = (f - mean) / std / np.sqrt(6)
    np.testing.assert_allclose(noise.total, np.cov(u.T, bias=True))
    predicted = f.argmax(axis=1)
    within = u - expected_means(u, predicted)[predicted]
    shape = 0.25 * within.T @ within / (within**2).sum() + 0.75 * np.eye(6) / 6
    np.testing.assert_allclose((noise.axes * noise.shares) @ noise.axes.T, shape)
    p = softmax(values, axis=1)
    pairs = [
        (np.outer(p[:, c], p[:, c]) * (u @ u.T) * ~np.eye(300, dtype=bool)).sum()
        / (np.outer(p[:, c], p[:, c]) * ~np.eye(300, dtype=bool)).sum()
        for c in range(6)
    ]
    assert signal.size == pytest.approx(np.mean(pairs), abs=0.02)


def test_features_of_a_reference_are_compared_with_its_scores():
    rng = np.random.default_rng(7)
    label = rng.integers(6, size=200)
    values = 3 * np.eye(6)[label] + rng.normal(size=(200, 6))
    features = rng.normal(size=(6, 4))[label] + rng.normal(size=(200, 4))
    table = rs.Scores(values, list("abcdef"), features=features)
    mean, std, *_ = measure_reference(table, np.ones(6))
    f = values - values.mean(axis=1, keepdims=True)
    f /= f.std(axis=1, keepdims=True)
    x = features - features.mean(axis=0)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    predicted, signals = f.argmax(axis=1), []
    for y in (x, (f - mean) / std / np.sqrt(6)):
        groups = [y[predicted == c] for c in range(6)]
        # The squared length of an input is taken to be 1.
        pairs = [((g @ g.T).sum() - len(g)) / (len(g) * (len(g) - 1)) for g in groups]
        signals.append(np.mean(pairs))
    for given in (table, table.with_blocks(features=csr_matrix(features))):
        found = measure_reference(given, np.ones(6)).feature_share
        assert found == pytest.approx(signals[0] / signals[1])


@pytest.mark.parametrize(("beta", "most"), [(0.0, 0.02), (0.4, 0.5)])
def test_rankings_that_agree_by_chance_have_no_slope(beta, most):
    """In the mean over draws of few classes with one example each."""
    slopes = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        w, means = draw_classes(rng, 12, 30, beta, 0.3)
        x = means + rng.normal(size=(12, 30)) * np.sqrt(0.7 / 30)
        prototypes = Prototypes(w, EXPLAINED_BY_RATERS)
        found = fit_class_means(x, np.arange(12), 12, Signal(0.3, 0.5), None, prototypes)
        slopes.append(found.slope)
    assert 0.8 * beta < np.mean(slopes) < most, np.mean(slopes)


def test_one_example_of_each_of_two_classes_tells_correct_rankings_from_exchanged_ones():
    slopes = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        w, means = draw_classes(rng, 2, 30, 0.4, 0.35)
        x = means + rng.normal(size=(2, 30)) * np.sqrt(0.65 / 30)
        slopes.append(
            [
                fit_class_means(
                    x,
                    np.arange(2),
                    2,
                    Signal(0.35, 0.5),
                    None,
                    Prototypes(given, EXPLAINED_BY_RATERS),
                ).slope
                for given in (w, w[::-1])
            ]
        )
    correct, exchanged = np.transpose(slopes)
    assert np.mean(correct > 0.2) > 0.95
    assert np.mean(exchanged < 0.1) > 0.95


# ------------------------------------------------------------------ heads


@pytest.fixture(scope="module")
def problem():
    """Scores whose rankings say something, and features that say more."""
    rng = np.random.default_rng(1)
    rankings, values, features, y = draw_problem(rng)
    return rankings, rs.Scores(values, ITEMS, features=features), np.array(CLASSES)[y]


def split(problem, n=5):
    rankings, scores, labels = problem
    rows = np.concatenate([np.flatnonzero(labels == name)[:n] for name in CLASSES])
    rest = np.setdiff1d(np.arange(len(labels)), rows)
    return rankings, scores.with_blocks(), scores, labels, rows, rest


@pytest.mark.parametrize("with_features", [False, True])
def test_a_head_learns_from_examples(problem, with_features):
    rankings, plain, scores, labels, rows, rest = split(problem)
    some = scores if with_features else plain
    alone = rs.WeightedMean().fit(rankings)
    head = rs.WeightedMean().fit(rankings, examples=(some[rows], labels[rows]))
    before, after = (np.mean(h.predict(some[rest]) == labels[rest]) for h in (alone, head))
    assert after > before + (0.3 if with_features else 0.0)
    assert head.examples_.n_examples == len(rows)
    assert head.head_.n_features == (20 if with_features else 0)
    assert head.by_rankings_.n_features == 0
    check_head(head, some[rest[:9]])
    why = rs.explain(head, some[:3], against="a")
    total = head.log_proba(some[:3])
    for row, one in enumerate(why):
        sums = sum(c for _, c in (*one.items, *one.others))
        assert sums == pytest.approx(total[row, CLASSES.index(one.target)] - total[row, 0])
        assert ("features" in dict(one.others)) == (with_features and one.target != "a")


def test_examples_keep_their_classes_in_a_batch(problem):
    rankings, plain, _, labels, rows, rest = split(problem, n=20)
    head = rs.WeightedMean().fit(rankings)
    # Known classes that contradict the head: the means follow them.
    wrong = np.roll(np.array(CLASSES), 1)[np.searchsorted(CLASSES, labels[rows])]
    free = rs.BatchRefinement(head).fit(plain[rest])
    tied = rs.BatchRefinement(head).fit(plain[rest], (plain[rows], wrong))
    right = rs.BatchRefinement(head).fit(plain[rest], (plain[rows], labels[rows]))
    accuracy = [np.mean(h.predict(plain[rest]) == labels[rest]) for h in (tied, free, right)]
    assert accuracy[0] < accuracy[1] <= accuracy[2]


def test_classes_without_examples_without_rankings_and_sparse_features(problem, tmp_path):
    rankings, plain, scores, labels, rows, _ = split(problem)
    for n in (1, 5, 10, 15):
        # Examples of one class, of two, of three.
        head = rs.WeightedMean().fit(rankings, examples=(plain[rows[:n]], labels[rows[:n]]))
        assert head.classes_.tolist() == CLASSES
        assert set(head.predict(plain)) == set(CLASSES)
    fewer = rankings[np.array([z != "d" for z in rankings.targets])]
    unranked = rs.WeightedMean().fit(fewer, examples=(scores[rows], labels[rows]))
    found = unranked.predict(scores) == labels
    assert found[labels == "d"].mean() > 0.5
    sparse = scores.with_blocks(features=csr_matrix(scores.features))
    same = rs.WeightedMean().fit(fewer, examples=(sparse[rows], labels[rows]))
    np.testing.assert_allclose(same.predict_proba(sparse), unranked.predict_proba(scores))
    unranked.save(tmp_path / "unranked.rankshot")
    assert rs.load_head(tmp_path / "unranked.rankshot").predict(scores).tolist() == (
        unranked.predict(scores).tolist()
    )


def test_a_rehearsed_prior_counts_while_examples_are_few(problem):
    rankings, plain, _, labels, rows, _ = split(problem)
    few = plain[rows[[0, 5]]], labels[rows[[0, 5]]]
    low, high = (
        rs.WeightedMean(example_prior=(beta, 0.3)).fit(rankings, examples=few).examples_.slope
        for beta in (0.1, 0.6)
    )
    assert low < high - 0.1


@pytest.mark.parametrize(
    ("change", "value"),
    [
        (lambda s, y: (s, np.where(y == "a", "seen1", y)), "seen1"),
        (lambda s, y: (s, y[1:]), (19,)),
        (lambda s, y: (s[:0], y[:0]), (0,)),
        (lambda s, y: (s, np.where(y == "a", "gerenouk", y)), "gerenouk"),
    ],
)
def test_examples_that_do_not_fit_are_refused(problem, change, value):
    rankings, plain, _, labels, rows, _ = split(problem)
    some = np.array([{"a": "gerenuk"}.get(z, z) for z in rankings.targets], object)
    if value == "gerenouk":
        rankings = replace(rankings, targets=some)
    with refuses("examples", value):
        rs.WeightedMean().fit(rankings, examples=change(plain[rows], labels[rows]))


def test_features_that_do_not_fit_are_refused(problem):
    rankings, plain, scores, labels, rows, _ = split(problem)
    head = rs.WeightedMean().fit(rankings, examples=(scores[rows], labels[rows]))
    for some, n in ((plain, 0), (scores.with_blocks(features=scores.features[:, :3]), 3)):
        with refuses("features", n):
            head.predict(some)
    with refuses("features"):
        plain.with_blocks(features=scores.features[:9])


@pytest.mark.parametrize("n", [1, 2, 5])
def test_examples_of_one_class_say_nothing_of_the_others(problem, n):
    """They do not tell what distinguishes the class from what all classes share."""
    rankings, _, scores, labels, _, _ = split(problem)
    rows = np.flatnonzero(labels == "a")[:n]
    head = rs.WeightedMean().fit(rankings, examples=(scores[rows], ["a"] * n))
    assert head.examples_ == (n, 0.0, 0.0, "a")
    assert head.head_.about["examples"]["only_class"] == "a"
    expected = rs.WeightedMean().fit(rankings).predict_proba(scores)
    np.testing.assert_array_equal(head.predict_proba(scores), expected)
