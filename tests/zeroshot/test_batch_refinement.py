"""`BatchRefinement`: each iteration against plain loops, and invariances."""

import numpy as np
import pytest
from exact import by_pair, equally_frequent
from head_cases import ITEMS, RANKINGS, TARGETS, fitted, permuted, random_scores
from scipy.special import log_softmax, softmax
from scipy.stats import multivariate_normal

import rankshot as rs
from rankshot.zeroshot.heads import batch_refinement
from rankshot.zeroshot.heads.batch_refinement import (
    BatchRefinement,
    balancing_offsets,
    calibrating_temperature,
    refine_batch,
    variety,
)
from rankshot.zeroshot.scores import KINDS

each_kind = pytest.mark.parametrize("kind", KINDS)
each_prior = pytest.mark.parametrize("class_prior", ["equal", "estimated"])


def batch(rng, kind="multiclass", n=40, dtype=np.float64):
    return random_scores(rng, kind, n, scale=1.5, dtype=dtype)


# ------------------------------------------------------------------ the numbers


def levelled(row, kind):
    """One number per class: scores minus their mean, or the sum over the pairs of the class."""
    if kind != "one-vs-one":
        return [f - sum(row) / len(row) for f in row]
    f = by_pair(row, ITEMS)
    return [sum(f[i, j] for j in ITEMS if j != i) for i in ITEMS]


def standardized(table, usual):
    """Features of a table, measured from the mean over another, in standard deviations."""
    own, theirs = (np.array([levelled(row, t.kind) for row in t.values]) for t in (table, usual))
    return (own - theirs.mean(axis=0)) / theirs.std(axis=0)


def one_round(x, share, said, shrinkage, class_prior):
    """Means, covariance, log P(z) and log P(z|x), from sums over inputs and targets."""
    n, L = share.shape
    C = x.shape[1]
    means = [sum(share[i, z] * x[i] for i in range(n)) / share[:, z].sum() for z in range(L)]
    within = np.zeros((C, C))
    for i in range(n):
        for z in range(L):
            within += share[i, z] * np.outer(x[i] - means[z], x[i] - means[z]) / n
    covariance = (1 - shrinkage) * within + shrinkage * np.eye(C) * np.trace(within) / C
    joint = said.copy()
    for z in range(L):
        joint[:, z] += multivariate_normal.logpdf(x, means[z], covariance) / 2
    log_prior = np.log(share.sum(axis=0) / n)
    if class_prior == "equal":
        log_prior = equally_frequent(joint)
    return np.array(means), covariance, log_prior, log_softmax(joint + log_prior, axis=1)


def class_means(refined):
    """Mean scores of each class, from those along the directions."""
    return refined.means_ @ refined.directions_.T


def calibrated(log_share, said):
    """As certain as the head's confidence makes likely; tried in small steps."""
    odds = 1 / np.mean(1 - np.exp(said).max(axis=1)) - 1
    right = 1 / (1 + np.exp(-0.3) * odds**-1.5)
    for temperature in np.exp(np.arange(0, 9, 1e-3)):
        found = log_softmax(log_share / temperature, axis=1)
        if np.exp(found).max(axis=1).mean() <= right:
            return found
    raise AssertionError


@each_kind
@each_prior
def test_rounds_are_those_written_out(rng, monkeypatch, kind, class_prior):
    monkeypatch.setattr(batch_refinement, "N_ITERATIONS", 3)
    shrinkage = 5 / 45
    head, scores = fitted("mean"), batch(rng, kind)
    said = head.predict_log_proba(scores)
    x, log_share = standardized(scores, scores), said
    for _ in range(3):
        means, covariance, log_prior, log_share = one_round(
            x, np.exp(log_share), said, shrinkage, class_prior
        )
    found = BatchRefinement(head, class_prior=class_prior).fit(scores)
    directions = found.directions_
    np.testing.assert_allclose(directions.T @ directions, np.eye(5), atol=1e-9)
    np.testing.assert_allclose(found.means_ @ directions.T, means, atol=1e-6)
    np.testing.assert_allclose(directions @ found.covariance_ @ directions.T, covariance, atol=1e-6)
    assert found.class_prior_ == class_prior
    assert found.agreement_ == np.mean(log_share.argmax(axis=1) == said.argmax(axis=1))
    expected = calibrated(log_share, said)
    np.testing.assert_allclose(np.exp(found.predict_log_proba(scores)), np.exp(expected), atol=1e-3)
    if class_prior == "equal":
        log_prior = log_prior - log_prior[0] + found.log_prior_[0]
    np.testing.assert_allclose(found.log_prior_, log_prior, atol=1e-5)


@each_kind
@each_prior
def test_new_inputs_are_measured_as_the_batch_was(rng, kind, class_prior):
    head, scores, new = fitted("mean"), batch(rng, kind), batch(rng, kind, n=7)
    found = BatchRefinement(head, class_prior=class_prior).fit(scores)
    x = standardized(new, scores) @ found.directions_
    joint = np.array(
        [multivariate_normal.logpdf(x, mean, found.covariance_) / 2 for mean in found.means_]
    ).T
    joint += head.predict_log_proba(new) + found.log_prior_
    log_proba = found.predict_log_proba(new)
    expected = log_softmax(joint / found.calibration_temperature_, axis=1)
    np.testing.assert_allclose(log_proba, expected, atol=1e-9)
    # Each is answered alone: only the batch that was fitted counts.
    np.testing.assert_allclose(found.predict_log_proba(new[3:4]), log_proba[3:4], atol=1e-12)


# ------------------------------------------------------------------ what it is good for


def clusters(rng, sizes, kind="multiclass", named=1.2):
    """Targets that differ in classes that no ranking names, and hardly in those that one does."""
    items = list("abcdefgh")
    lists = rs.Rankings.from_orders([["a"], ["b"], ["c"], ["d"]], items=items, targets=TARGETS)
    truth = np.repeat(np.arange(4), sizes)
    far = np.array([[4, -2, 0, 1], [-3, 4, 1, 0], [0, 1, 5, -4], [1, -5, -2, 3]])
    f = rng.normal(size=(len(truth), 8))
    f[:, :4] += named * np.eye(4)[truth]
    f[:, 4:] += 2 * far[truth]
    if kind == "one-vs-one":
        first, second = np.triu_indices(8, 1)
        f = f[:, first] - f[:, second]
    head = rs.ProbabilisticRanking(k=1).fit(lists)
    return head, rs.Scores(f, items, kind), np.array(TARGETS)[truth]


@each_kind
@pytest.mark.parametrize(
    ("class_prior", "sizes", "named"),
    [("equal", [50] * 4, 1.2), ("estimated", [90, 60, 30, 20], 1.6)],
)
def test_clusters_are_found_from_a_poor_head(rng, monkeypatch, kind, class_prior, sizes, named):
    head, scores, truth = clusters(rng, sizes, kind, named)
    poor = np.mean(head.predict(scores) == truth)
    assert 0.4 < poor < 0.8
    # Probabilities from pairs are far too sure.
    head.set_params(temperature=10 if kind == "one-vs-one" else None)
    refined = BatchRefinement(head, class_prior=class_prior)
    assert np.mean(refined.fit(scores).predict(scores) == truth) > poor + 0.15
    # Ten iterations stop early: where the head is this poor, EM needs more to converge.
    monkeypatch.setattr(batch_refinement, "N_ITERATIONS", 20)
    refined.fit(scores)
    np.testing.assert_array_equal(refined.predict(scores), truth)
    if class_prior == "estimated":
        np.testing.assert_allclose(np.exp(refined.log_prior_), np.array(sizes) / 200, atol=5e-3)


# ------------------------------------------------------------------ where the head is kept


@pytest.mark.parametrize("n", [0, 3])
def test_a_batch_smaller_than_its_targets(rng, n):
    head, new = fitted("mean"), batch(rng)
    message = f"a batch of {n} inputs is too small to estimate 4 classes: the answers of the head"
    with pytest.warns(UserWarning, match=message):
        kept = BatchRefinement(head).fit(batch(rng, n=n))
    assert kept.fell_back_
    expected = head.predict_log_proba(new)
    np.testing.assert_allclose(kept.predict_log_proba(new), expected, atol=1e-12)


def test_absent_targets_are_noticed(rng):
    """By the head's answers: with equal frequencies, half of the batch would be wrong."""
    head, scores, truth = clusters(rng, [100, 100, 0, 0])
    sure = rs.Scores(scores.values + 5 * np.eye(8)[np.searchsorted(TARGETS, truth)], scores.items)
    refined = BatchRefinement(head).fit(sure)
    assert refined.class_prior_ == "estimated"
    assert np.mean(refined.predict(sure) == truth) > 0.95
    forced = BatchRefinement(head, class_prior="equal")
    with pytest.warns(UserWarning, match="many classes may not occur in the batch"):
        forced.fit(sure)
    equal = BatchRefinement(head).fit(clusters(rng, [50] * 4)[1])
    assert equal.class_prior_ == "equal"


@pytest.mark.parametrize(("sizes", "prior"), [([35] * 4, "equal"), ([60, 30, 25, 25], "estimated")])
def test_unequal_frequencies_are_noticed_though_all_classes_are_predicted(rng, sizes, prior):
    """Their variety is .85: the sure answers of the head were overruled to make classes equal."""
    head, scores, truth = clusters(rng, sizes, "multiclass", 3)
    assert variety(head.predict_log_proba(scores)) > 0.8
    refined = BatchRefinement(head).fit(scores)
    assert refined.class_prior_ == prior
    assert np.mean(refined.predict(scores) == truth) >= np.mean(head.predict(scores) == truth)


# ------------------------------------------------------------------ how certain it is


@pytest.mark.parametrize("scale", [1, 1e4])
def test_the_calibrating_temperature_solves_its_equation(rng, scale):
    log_proba = log_softmax(scale * rng.normal(size=(50, 4)), axis=1)
    assert calibrating_temperature(log_proba, np.exp(log_proba).max(axis=1).mean()) == 1
    found = calibrating_temperature(log_proba, 0.4)
    assert found > 1
    assert softmax(log_proba / found, axis=1).max(axis=1).mean() == pytest.approx(0.4)
    assert calibrating_temperature(log_proba, 0.2) == np.inf


@pytest.mark.parametrize("temperature", [1, 30, 1000])
def test_no_temperature_of_the_head_hides_the_answers(rng, temperature):
    """A head of low confidence, as after a poor rehearsal, was made uniform: one answer for all."""
    head, scores, _ = clusters(rng, [20] * 4, "multiclass", 1.2)
    head.set_params(temperature=temperature)
    refined = BatchRefinement(head, class_prior="equal").fit(scores)
    confidence = head.predict_proba(scores).max(axis=1).mean()
    assert refined.predict_proba(scores).max(axis=1).mean() > confidence - 1e-6
    plain = BatchRefinement(head, class_prior="equal", temperature=1).fit(scores)
    np.testing.assert_array_equal(refined.predict(scores), plain.predict(scores))


def test_variety_is_the_effective_number_of_answers():
    """By how often two different inputs have the same answer, counted pair by pair."""
    answers = np.array([0, 0, 0, 0, 1, 1, 2])
    pairs = [answers[i] == answers[j] for i in range(7) for j in range(7) if i != j]
    log_proba = np.log(0.1 + 0.6 * np.eye(4)[answers])
    assert variety(log_proba) == pytest.approx(1 / (4 * np.mean(pairs)))
    assert variety(np.zeros((1, 4))) == np.inf


# ------------------------------------------------------------------ directions and shrinkage


@pytest.mark.parametrize(("n", "d"), [(40, 16), (300, 16), (400, 20), (2000, 30)])
def test_directions_hold_the_largest_variance(rng, n, d):
    items = [f"i{j:02}" for j in range(30)]
    lists = rs.Rankings.from_orders([[name] for name in items[:4]], items=items, targets=TARGETS)
    values = rng.normal(size=(n, 30)) @ rng.normal(size=(30, 30)) + 5 * np.eye(30)[np.arange(n) % 4]
    found = BatchRefinement(rs.ProbabilisticRanking(k=1).fit(lists)).fit(values)
    assert found.directions_.shape == (30, d)
    level = values - values.mean(axis=1, keepdims=True)
    z = (level - level.mean(axis=0)) / level.std(axis=0)
    largest = (np.linalg.svd(z)[1] ** 2)[:d].sum()
    assert ((z @ found.directions_) ** 2).sum() == pytest.approx(largest)


# ------------------------------------------------------------------ what must not matter


@each_kind
@each_prior
def test_another_order_of_items_and_targets_permutes_the_answers(rng, kind, class_prior):
    scores, order = batch(rng, kind), [3, 1, 4, 0, 2]
    rename = dict(zip(TARGETS, ["s", "z", "k", "t"], strict=True))
    lists = rs.Rankings.from_orders(
        RANKINGS.orders()[::-1],
        items=[ITEMS[i] for i in order],
        targets=[rename[z] for z in RANKINGS.targets[::-1]],
        weights=RANKINGS.weights[::-1],
    )
    before = BatchRefinement(fitted("mean"), class_prior=class_prior).fit(scores)
    other = rs.ProbabilisticRanking(k=3, decay=0).fit(lists)
    mixed = rs.Scores(permuted(scores.values, order, kind), other.items_, kind)
    after = BatchRefinement(other, class_prior=class_prior).fit(mixed)
    column = [after.classes_.tolist().index(rename[z]) for z in TARGETS]
    expected = before.predict_log_proba(scores)
    for asked in (mixed, scores):
        found = after.predict_log_proba(asked)[:, column]
        np.testing.assert_allclose(found, expected, atol=1e-8)
    np.testing.assert_allclose(class_means(after)[column], class_means(before)[:, order], atol=1e-8)


# ------------------------------------------------------------------ equal frequencies


@pytest.mark.parametrize(
    ("scale", "n", "L"), [(0.1, 50, 2), (3.0, 1000, 10), (100, 1000, 10), (1000, 50, 2)]
)
def test_balancing_solves_its_equations(rng, scale, n, L):
    """However certain the rows are; a general solver needs uncertain ones."""
    joint = scale * (rng.normal(size=(n, L)) + rng.normal(size=L))
    assert np.ptp(softmax(joint, axis=1).mean(axis=0)) * L > 0.01
    added = balancing_offsets(joint)
    share = softmax(joint + added, axis=1).mean(axis=0)
    np.testing.assert_allclose(L * share, 1, atol=1e-4)
    if scale < 10:
        np.testing.assert_allclose(added - added[0], equally_frequent(joint), atol=1e-5)


@pytest.mark.parametrize("sizes", [(60, 40), (99, 1), (100, 0)])
def test_balancing_takes_from_the_more_frequent(sizes):
    """However sure the rows are, half of all goes to each of two columns."""
    for scale in (100, 1e4):
        joint = scale * np.eye(2)[np.repeat([0, 1], sizes)]
        share = softmax(joint + balancing_offsets(joint), axis=1)
        np.testing.assert_allclose(share[: sizes[0], 0], 50 / sizes[0], atol=1e-4)
        np.testing.assert_allclose(share[sizes[0] :, 1], 1, atol=1e-4)


class Sure(rs.ProbabilisticRanking):
    """Rules out the second target for every input."""

    def predict_log_proba(self, scores, candidates=None):
        found = super().predict_log_proba(scores, candidates).copy()
        found[:, 1] = -np.inf
        return found


def test_a_head_that_rules_a_target_out_cannot_have_equal_frequencies(rng):
    head, scores = Sure(k=3).fit(RANKINGS), batch(rng)
    message = "cannot be made equally frequent in this batch: use class_prior='estimated'"
    with pytest.raises(rs.RankshotError, match=message):
        BatchRefinement(head, class_prior="equal").fit(scores)
    estimated = BatchRefinement(head).fit(scores)
    assert estimated.class_prior_ == "estimated"
    assert TARGETS[1] not in estimated.predict(scores)


def test_the_covariance_is_that_of_batch_and_examples_around_their_means():
    rng = np.random.default_rng(0)
    truth, values = np.repeat([0, 1], 200), 4 * np.repeat(np.eye(2, 3), 200, axis=0)
    values = values + rng.normal(size=(400, 3))
    lists = rs.Rankings.from_orders([["a"], ["b"]], items=["a", "b", "c"], targets=["x", "y"])
    far = values[::4] + np.array([2, 0, -2])
    known = np.array(["x", "y"])[truth[::4]]
    found = BatchRefinement(rs.WeightedMean().fit(lists), class_prior="equal", temperature=1.0)
    found.fit(values, (far, known))
    points = np.concatenate([found._in_directions(rs.Scores(x, [*"abc"])) for x in (values, far)])
    share = np.concatenate([found.predict_proba(values), np.eye(2)[truth[::4]]])
    means = share.T @ points / share.sum(axis=0)[:, None]
    within = sum(
        (share[:, z, None] * (points - means[z])).T @ (points - means[z]) for z in range(2)
    ) / len(points)
    shrunk = (1 - found._shrinkage) * within
    shrunk += found._shrinkage * np.trace(within) / 3 * np.eye(3)
    np.testing.assert_allclose(found.covariance_, shrunk, atol=0.01 * shrunk.max())


# ------------------------------------------------------------------ what is done with a batch


def test_a_batch_is_used_if_it_is_large_enough(rng):
    head, scores, truth = clusters(rng, [50] * 4)
    refined, why = refine_batch(head, scores)
    n = np.sum(refined.predict(scores) != head.predict(scores))
    assert np.mean(refined.predict(scores) == truth) > np.mean(head.predict(scores) == truth)
    assert f"assumed to be equally frequent: this changes {n} labels ({n / 200:.0%}). Cl" in why
    assert refine_batch(head, scores, batch="no") == (head, "")
    kept, why = refine_batch(head, scores[:19])
    assert kept is head
    assert "from 20 inputs on, 5 per class" in why
    assert refine_batch(head, scores[::12], batch="yes")[0] is not head
    sure = rs.Scores(scores.values[:100] + 9 * np.eye(8)[[0, 1] * 50], scores.items)
    with_none = rs.SeenAndNew(head, seen=False).fit()
    assert refine_batch(with_none, sure) == (with_none, "")
    with pytest.raises(rs.RankshotError, match="a batch refines a head of new classes alone"):
        refine_batch(with_none, sure, batch="yes")


def test_an_explanation_says_what_the_batch_adds(rng):
    head, scores, _ = clusters(rng, [50] * 4)
    refined = BatchRefinement(head).fit(scores)
    row = int(np.argmax(refined.predict(scores) != head.predict(scores)))
    why = rs.explain(refined, scores[[row]])[0]
    assert why.target == refined.predict(scores)[row]
    assert why.by_rankings[0] == head.predict(scores)[row]
    sums = np.asarray(refined.decision_function(scores[[row]]))[0]
    z = list(refined.classes_).index(why.target)
    total = sum(c for _, c in why.items) + why.batch
    assert total == pytest.approx(sums[z] - sums.mean())
    assert f"  other inputs of the batch: {why.batch:+.2f}" in str(why)
    assert "by this input alone: " in str(why)
