"""Labelled examples of new classes: leaving one out, the weights, and what heads do with them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import log_softmax

import rankshot as rs
from rankshot.core.errors import RankshotError
from rankshot.zeroshot.evidence import LOG_WEIGHT_STD, RIDGE, refine

ITEMS = [f"seen{i}" for i in range(12)]
CLASSES = ["a", "b", "c", "d"]


def left_out(features, targets, weight, center, penalty):
    """Predict each example by a ridge regression on the others, solved as normal equations."""
    X, found = features - center, np.empty_like(targets)
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        W = weight[rest, None]
        gram = X[rest].T @ (W * X[rest]) + penalty * np.eye(X.shape[1])
        found[i] = X[i] @ np.linalg.solve(gram, X[rest].T @ (W * targets[rest]))
    return found


def test_the_weights_make_left_out_examples_most_probable():
    rng = np.random.default_rng(0)
    labels = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 4])
    features = rng.normal(size=(10, 3)) + labels[:, None]
    log_proba = log_softmax(rng.normal(size=(10, 5)) + np.eye(5)[labels], axis=1)
    found = refine(log_proba, features, labels)
    size = np.array([3, 2, 4, 0, 1])[labels]
    weight = 2.5 / size
    center = weight @ features / 10
    there = [0, 1, 2, 4]
    targets = np.eye(5)[labels] - np.isin(np.arange(5), there) / 4
    penalty = RIDGE * (weight @ ((features - center) ** 2).sum(axis=1)) / 10
    predicted = left_out(features, targets, weight, center, penalty)
    scale = predicted[:, there].std()
    several = size > 1
    usual = np.log([0.8, 0.2 * np.sqrt(10 / 5)])

    def loss(v):
        a, b = np.exp(v)
        logits = a * log_proba + b * predicted / scale
        own = log_softmax(logits, axis=1)[np.arange(10), labels]
        return -(weight * own)[several].sum() + 0.5 * (((v - usual) / LOG_WEIGHT_STD) ** 2).sum()

    best = minimize(loss, usual, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    weights = found.head_weight, found.example_weight
    np.testing.assert_allclose(weights, np.exp(best.x), rtol=1e-4)
    X = features - center
    gram = X.T @ (weight[:, None] * X) + penalty * np.eye(3)
    slopes = np.linalg.solve(gram, X.T @ (weight[:, None] * targets))
    np.testing.assert_allclose(found.slopes, slopes * weights[1] / scale, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.center, center)
    assert not found.slopes[:, 3].any()


def test_one_example_per_class_has_the_usual_weights_and_equal_examples_say_nothing():
    log_proba = log_softmax(np.random.default_rng(0).normal(size=(3, 3)), axis=1)
    found = refine(log_proba, np.eye(3), np.arange(3))
    np.testing.assert_allclose([found.head_weight, found.example_weight], [0.8, 0.2])
    assert not refine(log_proba, np.ones((3, 2)), np.arange(3)).slopes.any()


@pytest.fixture(scope="module")
def problem():
    """Scores whose rankings say something, and features that say more."""
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(4), 40)
    centers = rng.normal(size=(4, 12))
    values = centers[y] + 2 * rng.normal(size=(160, 12))
    guess = centers + 1.5 * rng.normal(size=centers.shape)
    rankings = rs.Rankings.from_scores(guess, items=ITEMS, targets=CLASSES).top(5)
    features = 2 * rng.normal(size=(4, 20))[y] + 2 * rng.normal(size=(160, 20))
    return rankings, rs.Scores(values, ITEMS, features=features), np.array(CLASSES)[y]


def split(problem, n=5):
    rankings, scores, labels = problem
    rows = np.concatenate([np.flatnonzero(labels == name)[:n] for name in CLASSES])
    rest = np.setdiff1d(np.arange(len(labels)), rows)
    plain = replace(scores, features=None)
    return rankings, plain, scores, labels, rows, rest


@pytest.mark.parametrize("with_reference", [False, True])
@pytest.mark.parametrize("with_features", [False, True])
def test_the_head_and_a_ridge_regression_add_up(problem, with_features, with_reference):
    rankings, plain, scores, labels, rows, rest = split(problem)
    reference = plain[::3] if with_reference else None
    alone = rs.WeightedMean().fit(rankings, reference)
    given = scores if with_features else plain
    head = rs.WeightedMean().fit(rankings, reference, (given[rows], labels[rows]))
    values = plain.values - plain.values.mean(axis=1, keepdims=True)
    seen = scores.features if with_features else values / values.std(axis=1, keepdims=True)
    log_proba = alone.predict_log_proba(plain)
    columns = np.searchsorted(CLASSES, labels[rows])
    found = refine(log_proba[rows], seen[rows], columns)
    logits = found.head_weight * log_proba + (seen - found.center) @ found.slopes
    expected = log_softmax(logits, axis=1)
    np.testing.assert_allclose(head.predict_log_proba(given), expected, atol=1e-9)
    before, after = (np.mean(h.predict(given[rest]) == labels[rest]) for h in (alone, head))
    assert after > before + (0.3 if with_features else 0)
    weights = found.head_weight, found.example_weight
    np.testing.assert_allclose(head.example_weights_, weights)


@pytest.mark.slow
def test_files_exports_and_heads_around_it_have_the_examples(problem, tmp_path):
    torch = pytest.importorskip("torch")
    onnxruntime = pytest.importorskip("onnxruntime")
    rankings, plain, scores, labels, rows, _ = split(problem)
    for given in (plain, scores):
        head = rs.WeightedMean().fit(rankings, plain[::3], (given[rows], labels[rows]))
        expected = head.predict_proba(given)
        head.save(tmp_path / "head.rankshot")
        again = rs.load_head(tmp_path / "head.rankshot")
        np.testing.assert_array_equal(again.predict_proba(given), expected)
        inputs = {"scores": given.values.astype(np.float32)}
        if given.features is not None:
            inputs["features"] = given.features.astype(np.float32)
        module = head.to_torch()
        found = module(*map(torch.from_numpy, inputs.values())).exp()
        np.testing.assert_allclose(found, expected, atol=1e-5)
        rs.export_onnx(head, tmp_path / "head.onnx")
        session = onnxruntime.InferenceSession(str(tmp_path / "head.onnx"))
        np.testing.assert_allclose(session.run(["probabilities"], inputs)[0], expected, atol=1e-5)
        both = rs.SeenAndNew(head).fit(plain[::3] if given is plain else scores[::3])
        new = ~both.seen_
        share = both.predict_proba(given)[:, new]
        np.testing.assert_allclose(share / share.sum(axis=1, keepdims=True), expected, atol=1e-9)
        why = rs.explain(head, given[:3], against="a")
        total = head.decision_function(given[:3]) / head.temperature_
        for row, one in enumerate(why):
            column = CLASSES.index(one.target)
            said = sum(c for _, c in one.items) + one.examples
            np.testing.assert_allclose(said, total[row, column] - total[row, 0], atol=1e-9)
        assert "labelled examples" in str(why[0])


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
    some = rows[labels[rows] != "d"]
    head = rs.WeightedMean().fit(rankings, examples=(plain[some], labels[some]))
    alone = rs.WeightedMean().fit(rankings)
    assert head.classes_.tolist() == CLASSES
    # Among each other, classes without examples are compared as before.
    two = rs.WeightedMean().fit(rankings, examples=(plain[rows[:10]], labels[rows[:10]]))
    ratio = (h.predict_log_proba(plain) @ [0, 0, 1, -1] for h in (alone, two))
    np.testing.assert_allclose(next(ratio) * two.example_weights_[0], next(ratio), atol=1e-9)
    fewer = rankings[np.array([z != "d" for z in rankings.targets])]
    unranked = rs.WeightedMean().fit(fewer, examples=(scores[rows], labels[rows]))
    found = unranked.predict(scores) == labels
    assert found[labels == "d"].mean() > 0.5
    sparse = replace(scores, features=csr_matrix(scores.features))
    same = rs.WeightedMean().fit(fewer, examples=(sparse[rows], labels[rows]))
    np.testing.assert_allclose(same.predict_proba(sparse), unranked.predict_proba(scores))
    unranked.save(tmp_path / "unranked.rankshot")
    assert rs.load_head(tmp_path / "unranked.rankshot").predict(scores).tolist() == (
        unranked.predict(scores).tolist()
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, y: (s, np.where(y == "a", "seen1", y)), "'seen1' is a seen class"),
        (lambda s, y: (s, y[1:]), "need as many labels"),
        (lambda s, y: s, "must be a pair"),
        (lambda s, y: (s[:0], y[:0]), "need as many labels"),
    ],
)
def test_examples_that_do_not_fit_are_refused(problem, change, message):
    rankings, plain, _, labels, rows, _ = split(problem)
    with pytest.raises(RankshotError, match=message):
        rs.WeightedMean().fit(rankings, examples=change(plain[rows], labels[rows]))


def test_features_that_do_not_fit_are_refused(problem):
    rankings, plain, scores, labels, rows, _ = split(problem)
    head = rs.WeightedMean().fit(rankings, examples=(scores[rows], labels[rows]))
    for given in (plain, replace(scores, features=scores.features[:, :3])):
        with pytest.raises(RankshotError, match="20 features"):
            head.predict(given)
    with pytest.raises(RankshotError, match="one row for each of 160"):
        replace(plain, features=scores.features[:9])
    names = [["tram", "bus"], ["leopard", "fox"]]
    rankings = rs.Rankings.from_orders(
        names, items=["bus", "fox", "leopard", "tram"], targets=["truck", "gerenuk"]
    )
    with pytest.raises(RankshotError, match=r"no ranking of 'gerenouk'.*'gerenuk'"):
        rs.WeightedMean().fit(rankings, examples=([[3.0, 0, 0, 1]], ["gerenouk"]))
