"""`SeenAndNew` and its gate, by the equations, by enumeration and by a plain optimiser."""

import numpy as np
import pytest
from head_cases import ITEMS, RANKINGS, SIMILARITY, TARGETS, fitted, permuted, random_scores
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from test_weighted_mean import by_class, rows_of

import rankshot as rs
from rankshot.zeroshot.scores import KINDS
from rankshot.zeroshot.seen_and_new import DEFAULT_GATE

GATE = rs.zeroshot.Gate(new=(0.7, -1.3, 0.4), none=(0.2, -0.9, -0.1))
each_kind = pytest.mark.parametrize("kind", KINDS)


def both(head="weighted", reference=None, labels=None, **options):
    """A fitted `SeenAndNew`; the head inside has the same reference, if it is a weighted mean."""
    if isinstance(head, str):
        takes = reference is not None and head == "weighted"
        head = rs.WeightedMean().fit(RANKINGS, reference=reference) if takes else fitted(head)
    return rs.SeenAndNew(head, **options).fit(reference, labels)


# -------------------------------------------------------------------- the equations


@each_kind
@pytest.mark.parametrize(("with_reference", "none"), [(True, True), (True, False), (False, False)])
def test_probabilities_are_those_of_the_equations(rng, kind, with_reference, none):
    scores, usual = random_scores(rng, kind), random_scores(rng, kind, n=40)
    reference = usual if with_reference else None
    head = both(reference=reference, gate=GATE, none=none, seen_temperature=0.6)
    f, inner = by_class(scores), head.head
    # A seen class is a target whose ranking puts it first, alone.
    own = rs.Rankings.from_orders([[item] for item in ITEMS], items=ITEMS, targets=ITEMS)
    logs = [
        rs.ProbabilisticRanking().fit(some).decision_function(f).max(axis=1)
        for some in (RANKINGS, own)
    ]
    z, s = np.array(logs) / f.std(axis=1) / np.sqrt(RANKINGS.lengths.max())
    features = np.column_stack([z / 1.1, (s - 1) / 1.7])
    # The default gate then has the log-odds of new classes z - s.
    log_odds = features @ DEFAULT_GATE.new[:2] + DEFAULT_GATE.new[2]
    np.testing.assert_allclose(log_odds, z - s)
    if with_reference:
        rows, usual_rows = rows_of(f), rows_of(by_class(usual))
        n = np.bincount(usual_rows.argmax(axis=1), minlength=len(ITEMS))
        alpha = np.maximum(n / (n + 5), 40**2 / (n**2).sum() / 5 * 40 / 45)
        mean, std = alpha * usual_rows.mean(axis=0), usual_rows.std(axis=0) ** alpha
        posteriors = [inner.decision_function(some) for some in (scores, usual)]
        measured = [
            np.column_stack(
                [
                    ((log - posteriors[1].mean(axis=0)) / posteriors[1].std(axis=0)).max(axis=1),
                    ((some - mean) / std).max(axis=1),
                ]
            )
            for log, some in zip(posteriors, (rows, usual_rows), strict=True)
        ]
        by_reference = (measured[0] - measured[1].mean(axis=0)) / measured[1].std(axis=0)
        by_reference = by_reference.clip(-5, 5)
        share = alpha.min() ** 2
        features = share * by_reference + (1 - share) * features
    np.testing.assert_allclose(head.gate_features(scores), features, atol=1e-9)
    logits = np.column_stack(
        [np.zeros(len(f))]
        + [features @ c[:2] + c[2] for c in (GATE.new, GATE.none)[: 2 if none else 1]]
    )
    p_group = softmax(logits, axis=1)
    p_seen = p_group[:, :1] * softmax(rows_of(f) / 0.6, axis=1)
    p_new = p_group[:, 1:2] * inner.predict_proba(scores)
    expected = dict(zip([*ITEMS, *TARGETS], np.hstack([p_seen, p_new]).T, strict=True))
    if none:
        expected["none of these"] = p_group[:, 2]
    found = head.predict_proba(scores)
    assert head.classes_.tolist() == sorted(expected)
    assert head.classes_[head.seen_].tolist() == list(ITEMS)
    np.testing.assert_allclose(found, np.array([expected[c] for c in head.classes_]).T, atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(head.gate_proba(scores), p_group, atol=1e-9)


@each_kind
@pytest.mark.parametrize("with_reference", [True, False])
def test_without_seen_classes_none_has_their_probability(rng, kind, with_reference):
    scores, usual = random_scores(rng, kind), random_scores(rng, kind, n=40)
    reference = usual if with_reference else None
    together = both(reference=reference, gate=GATE)
    found = rs.SeenAndNew(together.head, gate=GATE, seen=False).fit(reference)
    assert found.classes_.tolist() == sorted([*TARGETS, "none of these"])
    assert not found.seen_.any()
    proba = together.predict_proba(scores)
    expected = dict(zip(together.classes_, proba.T, strict=True))
    expected["none of these"] = proba[:, together.seen_].sum(axis=1)
    np.testing.assert_allclose(
        found.predict_proba(scores), np.array([expected[c] for c in found.classes_]).T, atol=1e-12
    )


@each_kind
@pytest.mark.parametrize("with_reference", [True, False])
def test_the_order_of_the_columns_never_matters(rng, kind, with_reference):
    scores, usual = random_scores(rng, kind), random_scores(rng, kind, n=30)
    order = [3, 0, 4, 1, 2]
    items = [ITEMS[i] for i in order]
    found = []
    for change in (False, True):
        names = items if change else ITEMS
        now, then = (
            rs.Scores(permuted(some.values, order, kind), names, kind) if change else some
            for some in (scores, usual)
        )
        rankings = RANKINGS.change_items(names)
        reference = then if with_reference else None
        head = rs.SeenAndNew(
            rs.WeightedMean().fit(rankings, reference=reference), none=with_reference
        )
        head.fit(reference)
        found.append((head.classes_.tolist(), head.predict_proba(now)))
    assert found[0][0] == found[1][0]
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-9)


def test_single_precision_and_blocks(rng):
    scores = random_scores(rng, "multiclass", n=20_000, dtype=np.float32)
    head = both(reference=random_scores(rng, "multiclass", n=50))
    found = head.predict_proba(scores)
    assert found.dtype == np.float32
    some = slice(19_000, 19_020)
    np.testing.assert_allclose(found[some], head.predict_proba(scores[some]), rtol=1e-5)
    np.testing.assert_allclose(
        head.gate_features(scores)[some], head.gate_features(scores[some]), rtol=1e-4, atol=1e-5
    )


# -------------------------------------------------------------------- the temperature


def test_the_temperature_is_the_most_likely_one(rng):
    scores = random_scores(rng, "multiclass", n=400)
    logits = rows_of(scores.values) / 0.7
    cumulated = softmax(logits, axis=1).cumsum(axis=1)
    labels = np.array(ITEMS)[(cumulated < rng.random((400, 1))).sum(axis=1)]
    head = both(reference=scores, labels=labels)
    own = labels[:, None] == np.array(ITEMS)

    def loss(t):
        return -log_softmax(rows_of(scores.values) / t, axis=1)[own].mean()

    grid = np.linspace(0.3, 2, 1701)
    best = grid[np.argmin([loss(t) for t in grid])]
    assert head.seen_temperature_ == pytest.approx(best, abs=2e-3)
    assert 0.5 < head.seen_temperature_ < 1
    assert both(reference=scores).seen_temperature_ is None
    fixed = both(reference=scores, labels=labels, seen_temperature=2.0)
    assert fixed.seen_temperature_ == 2


# -------------------------------------------------------------------- the gate


def groups(rng, *sizes):
    centres = ([0.0, 0.0], [1.5, -1.0], [-0.5, -1.5])
    return [rng.normal(centre, 1.0, (n, 2)) for n, centre in zip(sizes, centres, strict=False)]


def minimum(tables, log_priors):
    """The coefficients against the first group, by a plain optimiser without derivatives."""
    logs = np.array(log_priors)

    def loss(c):
        total = 0.0
        for group, table in enumerate(tables):
            logits = np.column_stack(
                [np.zeros(len(table)), *(table @ row[:2] + row[2] for row in c.reshape(-1, 3))]
            )
            total -= log_softmax(logits, axis=1)[:, group].mean()
        return total

    fitted_ = minimize(loss, np.zeros(3 * (len(tables) - 1)), method="BFGS", tol=1e-8).x
    return fitted_.reshape(-1, 3) + np.pad(logs[:, None], ((0, 0), (2, 0)))


def test_a_gate_is_a_logistic_regression_of_two_or_three_groups(rng):
    seen, new, none = groups(rng, 500, 120, 200)
    gate = rs.zeroshot.fit_gate(new, seen)
    (expected,) = minimum([seen, new], np.zeros(1))
    np.testing.assert_allclose(gate.new, expected, rtol=0.01, atol=0.01)
    assert gate.none is None
    gate = rs.zeroshot.fit_gate(new, seen, none)
    priors = np.log([1, 0.1 / 0.45])
    expected = minimum([seen, new, none], priors)
    np.testing.assert_allclose([gate.new, gate.none], expected, rtol=0.01, atol=0.015)


def test_a_reference_of_one_class_hardly_changes_anything(rng):
    """It covers one of five classes: the features without a reference keep 97 % of the weight."""
    scores, usual = random_scores(rng, "one-vs-rest"), random_scores(rng, "one-vs-rest", n=20)
    usual.values[:, 0] = 99
    head, plain = both(reference=usual), both()
    assert head.coverage_ == pytest.approx(20 / 25 / 5)
    np.testing.assert_allclose(head.gate_proba(scores), plain.gate_proba(scores), atol=0.1)


# -------------------------------------------------------------------- what is refused

USUAL = np.random.default_rng(0).normal(size=(30, 5))
SEEN_TOO = rs.Rankings.from_orders([["a", "b"], ["c"]], items=ITEMS, targets=["a", "u"])
REFUSED = {
    "labels alone": (lambda: both(labels=["a"]), "that of the labels, to fit"),
    "an unknown label": (lambda: both(reference=USUAL, labels=["A"] * 30), "a seen class for each"),
    "half a reference": (
        lambda: rs.SeenAndNew(rs.WeightedMean().fit(RANKINGS, reference=USUAL)).fit(),
        "pass the reference of the head",
    ),
    "a seen class of the head": (
        lambda: rs.SeenAndNew(rs.WeightedMean().fit(SEEN_TOO)).fit(),
        "'a' would be both seen and new",
    ),
    "none without a reference": (lambda: both(none=True), "no coefficients for 'none of these'"),
    "no rankings": (
        lambda: both(rs.zeroshot.paper.ConSE().fit(SIMILARITY)),
        "ConSE has no rankings, so a ref",
    ),
    "no number": (lambda: rs.zeroshot.Gate((1, 2, 3), (1, 2, np.nan)), "none must be three finite"),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(call, message):
    with pytest.raises(rs.RankshotError, match=message):
        call()


def test_a_fitted_gate_is_calibrated(rng):
    """With the expected shares of the groups, the mean probability of each group is its share."""
    tables = groups(rng, 900, 900, 200)
    gate = rs.zeroshot.fit_gate(tables[1], tables[0], tables[2])
    proba = np.exp(gate.log_proba(np.concatenate(tables), none=True))
    np.testing.assert_allclose(proba.mean(axis=0), [0.45, 0.45, 0.1], atol=0.03)
    np.testing.assert_allclose(proba.sum(axis=1), 1)


@pytest.mark.parametrize("shares", [(0.0, 1.0, 0.0), (0.3, 0.6, 0.1), (0.1, 0.5, 0.4)])
def test_the_share_of_other_inputs_is_found_whatever_the_gate_was_fitted_for(rng, shares):
    centers = np.array([[-1.0, 2.0], [2.0, -1.0], [-2.0, -2.0]])
    groups = [rng.normal(center, size=(2000, 2)) for center in centers]
    gate = rs.zeroshot.fit_gate(groups[1], groups[0], groups[2])
    group = rng.choice(3, size=3000, p=shares)
    found = gate.estimate_other_share(rng.normal(centers[group]))
    assert found == pytest.approx(np.mean(group != 1), abs=0.03)
