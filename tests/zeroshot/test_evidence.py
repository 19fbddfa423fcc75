"""Labelled examples and evidence of another model: their weights, and what heads do with them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import log_softmax, softmax

import rankshot as rs
from rankshot.core.errors import RankshotError
from rankshot.zeroshot import word_evidence
from rankshot.zeroshot.evidence import (
    LOG_WEIGHT_STD,
    RIDGE,
    SHARE,
    center_evidence,
    fit_evidence,
    refine,
    weigh_evidence,
)

ITEMS = [f"seen{i}" for i in range(12)]
CLASSES = ["a", "b", "c", "d"]


def opinions(rng, y, strength):
    """Log-probabilities of a calibrated model that knows this much."""
    values = strength * np.eye(4)[y] + rng.normal(size=(len(y), 4)) * np.sqrt(strength)
    return log_softmax(values, axis=1)


def standardized(evidence):
    centered, scale = center_evidence(evidence)
    return centered / scale


@pytest.fixture(scope="module")
def problem():
    """Scores whose rankings say something, and features and evidence that say more."""
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(4), 40)
    centers = rng.normal(size=(4, 12))
    values = centers[y] + 1.5 * rng.normal(size=(160, 12))
    guess = centers + 1.5 * rng.normal(size=centers.shape)
    rankings = rs.Rankings.from_scores(guess, items=ITEMS, targets=CLASSES).top(5)
    features = 2 * rng.normal(size=(4, 20))[y] + 2 * rng.normal(size=(160, 20))
    # Other columns, in another order; cosines have a small range.
    table = 0.1 * opinions(rng, y, 1.5)[:, [2, 0, 3, 1]] + 0.7
    evidence = rs.Scores(np.column_stack([table, table[:, 0]]), ["c", "a", "d", "b", "other"])
    scores = rs.Scores(values, ITEMS, features=features, evidence=evidence)
    return rankings, scores, np.array(CLASSES)[y]


# ------------------------------------------------------------------ labelled examples


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


def split(problem, n=5):
    rankings, scores, labels = problem
    rows = np.concatenate([np.flatnonzero(labels == name)[:n] for name in CLASSES])
    rest = np.setdiff1d(np.arange(len(labels)), rows)
    scores = replace(scores, evidence=None)
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


# ------------------------------------------------------------------ evidence


def test_the_weight_follows_from_the_agreement():
    """With many inputs and independent errors, the accuracy of the evidence is found."""
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=100_000)
    by_head, evidence = opinions(rng, y, 2.0), standardized(opinions(rng, y, 1.0))
    weight = weigh_evidence(by_head, evidence) / SHARE
    accuracy = np.mean(evidence.argmax(axis=1) == y)
    confidence = softmax(weight * evidence, axis=1).max(axis=1).mean()
    assert confidence == pytest.approx(accuracy, abs=0.01)


def test_evidence_that_agrees_by_chance_has_no_weight():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=400)
    by_head = opinions(rng, y, 2.0)
    assert weigh_evidence(by_head, standardized(rng.normal(size=(400, 4)))) < 0.05
    assert weigh_evidence(by_head, standardized(-by_head)) == 0
    assert weigh_evidence(by_head, standardized(100 * by_head)) <= 1


def test_the_same_agreement_of_fewer_inputs_gives_less_weight():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=40)
    few = opinions(rng, y, 2.0), standardized(opinions(rng, y, 1.0))
    many = [np.tile(table, (25, 1)) for table in few]
    assert 0 < weigh_evidence(*few) < weigh_evidence(*many) < 1


def test_a_head_with_evidence_is_the_sum_of_both(problem):
    rankings, scores, truth = problem
    head = rs.WeightedMean(evidence_weight=0.7).fit(rankings, evidence=scores)
    alone = rs.WeightedMean().fit(rankings)
    e = scores.evidence.select(CLASSES).values
    e = e - e.mean(axis=1, keepdims=True)
    expected = log_softmax(alone.predict_log_proba(scores) + 0.7 * e / e.std(), axis=1)
    np.testing.assert_allclose(head.predict_log_proba(scores), expected, atol=1e-9)
    # A single input gets the same answer as in the batch.
    np.testing.assert_allclose(head.predict_log_proba(scores[7:8]), expected[7:8], atol=1e-9)
    both = rs.WeightedMean().fit(rankings, evidence=scores)
    right = [np.mean(h == truth) for h in (both.predict(scores), alone.predict(scores))]
    assert right[0] > max(right[1], np.mean(np.array(CLASSES)[e.argmax(axis=1)] == truth))


def test_what_is_added_to_a_row_and_the_scale_do_not_matter(problem):
    rankings, scores, _ = problem
    head = rs.WeightedMean().fit(rankings, evidence=scores)
    e = scores.evidence
    moved = rs.Scores(30 * e.values + np.arange(160.0)[:, None], e.items)
    other = replace(scores, evidence=moved)
    again = rs.WeightedMean().fit(rankings, evidence=other)
    np.testing.assert_allclose(
        again.predict_log_proba(other), head.predict_log_proba(scores), atol=1e-9
    )


def test_files_and_heads_around_it_have_the_evidence(problem, tmp_path):
    rankings, scores, truth = problem
    head = rs.WeightedMean().fit(rankings, examples=(scores[::20], truth[::20]), evidence=scores)
    expected = head.predict_log_proba(scores)
    head.save(tmp_path / "head.rankshot")
    loaded = rs.load_head(tmp_path / "head.rankshot")
    np.testing.assert_array_equal(loaded.predict_log_proba(scores), expected)
    both = rs.SeenAndNew(head).fit()
    new = both.predict_log_proba(scores)[:, ~both.seen_]
    np.testing.assert_allclose(log_softmax(new, axis=1), expected, atol=1e-9)
    with pytest.raises(RankshotError, match="these inputs have none"):
        both.predict(replace(scores, evidence=None))


WRONG = {
    "no names": (lambda s: replace(s, evidence=np.ones((160, 4))), "must name"),
    "rows": (lambda s: replace(s, evidence=s.evidence[:9]), "160 inputs, not 9"),
    "columns": (
        lambda s: replace(s, evidence=s.evidence.select(["a", "b"])),
        "no column of 'c', 'd'",
    ),
    "none": (lambda s: rs.Scores(s.values, ITEMS), "these inputs have none"),
    "an array": (lambda s: s.values, "evidence must be Scores"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_evidence(problem, name):
    rankings, scores, _ = problem
    make, message = WRONG[name]
    with pytest.raises(RankshotError, match=message):
        rs.WeightedMean().fit(rankings, evidence=make(scores))


def test_words():
    found = word_evidence(
        ["what is my balance", "flip a coin for me", "no common word"],
        ["account_balance", "flip_coin"],
        corpus=["is it me", "what for"],
    )
    assert found.items == ("account_balance", "flip_coin")
    assert found.values[:2].argmax(axis=1).tolist() == [0, 1]
    same = word_evidence(["flip coin"], ["flip_coin", "other"])
    np.testing.assert_allclose(same.values[0, 0], 1, rtol=1e-6)


def test_labels_tell_temperature_and_weight():
    """The best of all pairs, found without gradients."""
    rng = np.random.default_rng(3)
    y = rng.integers(4, size=300)
    by_head, evidence = 2 * opinions(rng, y, 1.0), standardized(opinions(rng, y, 1.5))
    weight = rng.uniform(size=300)
    temperature, c = fit_evidence([(by_head, evidence, y, weight)])

    def loss(parameters):
        log_t, weight_of_evidence = parameters
        logits = by_head / np.exp(log_t) + weight_of_evidence * evidence
        return -weight @ log_softmax(logits, axis=1)[np.arange(300), y]

    best = minimize(loss, [0, 1], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12})
    np.testing.assert_allclose([np.log(temperature), c], best.x, rtol=1e-3)
    assert fit_evidence([(by_head, -evidence, y, weight)])[1] == 0
