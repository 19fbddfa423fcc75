"""`BatchRefinement`: each iteration against plain loops, and invariances."""

from dataclasses import replace

import numpy as np
import pytest
from head_cases import RANKINGS, TARGETS, random_scores
from scipy.linalg import sqrtm
from scipy.special import digamma, log_softmax, softmax
from scipy.stats import dirichlet_multinomial, multivariate_normal, zscore
from sklearn.covariance import OAS

import rankshot as rs
from rankshot.zeroshot import batch_refinement
from rankshot.zeroshot.batch_refinement import (
    BatchRefinement,
    Data,
    balance,
    calibrating_temperature,
    find_components,
    improve_concentration,
    refine_batch,
    run_em,
    shrink,
)
from rankshot.zeroshot.scores import KINDS

each_kind = pytest.mark.parametrize("kind", KINDS)
each_prior = pytest.mark.parametrize("class_prior", ["equal", "estimated"])


def refine_plain(head, scores, **options):
    """Refine without a temperature."""
    refined = BatchRefinement(head, **options).fit(scores)
    refined.head_ = replace(refined.head_, temperature=1.0)
    return refined


def data_of(head, scores):
    """What the algorithm gets of a batch without examples, and its principal components."""
    components = find_components(scores)
    points, said = components.transform(scores), np.asarray(head.log_proba(scores))
    return Data(
        points, said, np.zeros((0, points.shape[1])), np.zeros((0, said.shape[1]))
    ), components


def default():
    return rs.WeightedMean(k=3).fit(RANKINGS)


def batch(rng, kind="multiclass", n=40, dtype=np.float64):
    return random_scores(rng, kind, n, scale=1.5, dtype=dtype)


# ------------------------------------------------------------------ the numbers


def one_round(x, share, said, within, class_prior, concentration):
    """Means, covariance and log P(z|x), from sums over inputs and targets."""
    n, L = share.shape
    C = x.shape[1]
    total = sum(np.outer(row, row) for row in x) / n
    size = share.sum(axis=0)
    if within is None:
        means = [sum(share[i, z] * x[i] for i in range(n)) / size[z] for z in range(L)]
        within = sum(
            share[i, z] * np.outer(x[i] - means[z], x[i] - means[z]) / n
            for i in range(n)
            for z in range(L)
        )
    covariance = shrink(within, n)
    # The prior covariance of the means: what varies more in the batch than within classes.
    root = np.real(sqrtm(covariance))
    values, axes = np.linalg.eigh(np.linalg.solve(root, np.linalg.solve(root, total).T))
    between = root @ axes @ np.diag(np.maximum(values - 1, 1e-9)) @ axes.T @ root
    joint, new_within = said.copy(), np.zeros((C, C))
    for z in range(L):
        # The posterior of a normal mean with a normal prior.
        known = size[z] * np.linalg.inv(covariance)
        uncertain = np.linalg.inv(known + np.linalg.inv(between))
        mean = uncertain @ known @ (share[:, z] @ x / size[z])
        joint[:, z] += multivariate_normal.logpdf(x, mean, covariance) / 2
        joint[:, z] -= np.trace(np.linalg.solve(covariance, uncertain)) / 4
        if class_prior == "estimated":
            sizes = size + concentration
            joint[:, z] += digamma(sizes[z]) - digamma(sizes.sum())
        new_within += size[z] * uncertain / n
        for i in range(n):
            new_within += share[i, z] * np.outer(x[i] - mean, x[i] - mean) / n
    return new_within, log_softmax(joint, axis=1)


@each_kind
@each_prior
def test_rounds_are_those_written_out(rng, kind, class_prior):
    head, scores = default(), batch(rng, kind)
    data, _ = data_of(head, scores)
    log_share = run_em(data, prior=class_prior).log_share
    share, within, concentration = np.exp(data.head_log_proba), None, 1.0
    for _ in range(batch_refinement.N_ITERATIONS):
        concentration = improve_concentration(concentration, share.sum(axis=0))
        within, expected = one_round(
            data.points, share, data.head_log_proba, within, class_prior, concentration
        )
        share = np.exp(expected)
    np.testing.assert_allclose(np.exp(log_share), share, atol=1e-6)


def test_shrinkage_is_that_of_scikit_learn(rng):
    x = rng.normal(size=(30, 6)) @ np.diag([3, 2, 1, 1, 1, 0.5])
    x -= x.mean(axis=0)
    expected = OAS(assume_centered=True).fit(x).covariance_
    np.testing.assert_allclose(shrink(x.T @ x / 30, 30), expected, rtol=1e-9)


def test_the_concentration_is_the_most_likely_one():
    sizes = np.array([30, 20, 12, 3])
    found = 1.0
    for _ in range(500):
        found = improve_concentration(found, sizes.astype(float))
    tried = np.exp(np.linspace(-3, 5, 4001))
    log_likelihood = [dirichlet_multinomial.logpmf(sizes, np.full(4, a), 65) for a in tried]
    assert found == pytest.approx(tried[np.argmax(log_likelihood)], rel=0.01)


def test_balanced_columns_have_the_same_share(rng):
    joint = rng.normal([0, 1, 2, -1], size=(40, 4))
    share = softmax(joint + balance(joint, np.zeros(4)), axis=1).mean(axis=0)
    np.testing.assert_allclose(share, 0.25, atol=1e-3)


@each_kind
@each_prior
def test_new_inputs_are_measured_as_the_batch_was(rng, kind, class_prior):
    head, scores, new = default(), batch(rng, kind), batch(rng, kind, n=7)
    refined = BatchRefinement(head, class_prior=class_prior).fit(scores)
    data, components = data_of(head, scores)
    start = None
    if class_prior == "equal":
        start = run_em(data, prior="balanced").log_share
    mixture = run_em(data, prior=class_prior, start=start)
    joint = components.transform(new) @ mixture.slopes + mixture.offsets + head.log_proba(new)
    log_proba = refined.log_proba(new)
    expected = log_softmax(joint / refined.head_.temperature, axis=1)
    np.testing.assert_allclose(log_proba, expected, atol=1e-9)
    # Each is predicted alone: only the batch that was fitted counts.
    np.testing.assert_allclose(refined.log_proba(new[3:4]), log_proba[3:4], atol=1e-12)


def test_equal_and_estimated_frequencies_are_weighed_by_the_variety(rng):
    head, scores, _ = clusters(rng, [60, 60, 40, 10], named=3)
    found, equal, estimated = (
        refine_plain(head, scores, class_prior=prior) for prior in ("auto", "equal", "estimated")
    )
    assert (equal.equality_, estimated.equality_) == (1, 0)
    same = run_em(data_of(head, scores)[0], prior="equal")
    share = np.exp(same.log_share).mean(axis=0)
    weight = (1 / (4 * np.sum(share**2))) ** 6
    assert 0.1 < weight < 0.9
    assert found.equality_ == pytest.approx(weight)
    tables = (each.log_proba(scores) for each in (equal, estimated))
    mean = sum(w * table for w, table in zip((weight, 1 - weight), tables, strict=True))
    expected = log_softmax(mean, axis=1)
    np.testing.assert_allclose(found.log_proba(scores), expected, atol=1e-9)


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
    head = rs.WeightedMean(k=1).fit(lists)
    return head, rs.Scores(f, items, kind), np.array(TARGETS)[truth]


@each_kind
@pytest.mark.parametrize(
    ("class_prior", "sizes", "named", "gain"),
    [("equal", [50] * 4, 1.2, 0.15), ("estimated", [90, 60, 30, 20], 1.6, 0.0)],
)
def test_clusters_are_found_from_a_poor_head(rng, kind, class_prior, sizes, named, gain):
    head, scores, truth = clusters(rng, sizes, kind, named)
    poor = np.mean(head.predict(scores) == truth)
    assert 0.4 < poor < 0.8
    refined = BatchRefinement(head, class_prior=class_prior)
    assert np.mean(refined.fit(scores).predict(scores) == truth) > poor + gain


# ------------------------------------------------------------------ where the head is kept


@pytest.mark.parametrize("n", [0, 3, 7])
def test_a_batch_of_fewer_than_two_inputs_per_class(rng, n):
    head, new = default(), batch(rng)
    with pytest.warns(UserWarning, match=f"a batch of {n} inputs is too small"):
        kept = BatchRefinement(head).fit(batch(rng, n=n))
    assert kept.head_ is head.head_
    expected = head.log_proba(new)
    np.testing.assert_allclose(kept.log_proba(new), expected, atol=1e-12)


@pytest.mark.parametrize("sizes", [[100, 100, 0, 0], [120, 50, 20, 10]])
def test_absent_targets_and_unequal_frequencies_are_noticed(rng, sizes):
    head, scores, truth = clusters(rng, sizes, named=3)
    refined = BatchRefinement(head).fit(scores)
    assert refined.equality_ < 0.3
    np.testing.assert_allclose(refined.frequencies_, np.array(sizes) / 200, atol=0.03)
    assert np.mean(refined.predict(scores) == truth) > np.mean(head.predict(scores) == truth)
    assert bool(refine_batch(head, scores).about["batch"]["absent"]) == (0 in sizes)
    assert BatchRefinement(head).fit(clusters(rng, [50] * 4)[1]).equality_ > 0.8


def test_no_kind_of_batch_loses_against_one_at_a_time():
    """Means over draws: some of the classes, and unequal frequencies, with a mediocre head."""
    gains = {}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        skewed = np.ceil(100 * rng.dirichlet([0.5] * 4)).astype(int)
        kinds = {"all": [25] * 4, "three": [30, 30, 30, 0], "two": [0, 45, 45, 0]}
        for kind, sizes in {**kinds, "one": [0, 0, 80, 0], "skewed": skewed}.items():
            head, scores, truth = clusters(rng, rng.permutation(sizes))
            refined = BatchRefinement(head).fit(scores)
            found = [np.mean(h.predict(scores) == truth) for h in (refined, head)]
            gains.setdefault(kind, []).append(found[0] - found[1])
    assert all(np.mean(gain) > -0.01 for gain in gains.values()), gains
    assert np.mean(gains["all"]) > 0.1


# ------------------------------------------------------------------ labelled examples


def learn(rng, head, sizes, n):
    """A batch, and heads of the same rankings without and with ``n`` labelled inputs of it."""
    _, scores, truth = clusters(rng, sizes)
    rows = rng.permutation(len(truth))[:n]
    examples = scores[rows], truth[rows]
    heads = [rs.WeightedMean(k=1).fit(head.rankings_, examples=some) for some in (None, examples)]
    return scores, truth, np.delete(np.arange(len(truth)), rows), examples, *heads


def test_with_examples_the_rankings_are_added_once_more(rng, tmp_path):
    plain = rs.WeightedMean(k=1).fit(clusters(rng, [1] * 4)[0].rankings_)
    scores, _, _, examples, before, after = learn(rng, plain, [30, 20, 20, 30], 12)
    tables = [each.log_proba(scores) for each in (before, after)]
    expected = log_softmax(tables[1] + tables[0] / 2, axis=1)
    both = BatchRefinement._add_rankings(after)
    np.testing.assert_allclose(both.log_proba(scores), expected, atol=1e-9)
    assert BatchRefinement._add_rankings(before) is before.head_
    refined = BatchRefinement(after).fit(scores, examples)
    alone = BatchRefinement(both).fit(scores, examples)
    alone.head_ = replace(alone.head_, temperature=refined.head_.temperature)
    np.testing.assert_allclose(refined.log_proba(scores), alone.log_proba(scores), atol=1e-9)
    refined.save(tmp_path / "refined.rankshot")
    loaded = rs.load_head(tmp_path / "refined.rankshot").log_proba(scores)
    np.testing.assert_array_equal(loaded, refined.log_proba(scores))


def test_all_examples_count_where_a_class_has_no_ranking(rng):
    head, scores, truth = clusters(rng, [20] * 4)
    ranked = head.rankings_[head.rankings_.targets != TARGETS[0]]
    learned = rs.WeightedMean(k=1).fit(ranked, examples=(scores[::5], truth[::5]))
    assert BatchRefinement._add_rankings(learned) is learned.head_


def test_labels_help_a_batch_and_the_batch_helps_labels():
    gains = {"labels": [], "batch": []}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        plain = rs.WeightedMean(k=1).fit(clusters(rng, [1] * 4)[0].rankings_)
        scores, truth, rest, examples, before, after = learn(rng, plain, [60, 40, 15, 5], 4)
        heads = {
            "batch": after,
            "labels": BatchRefinement(before).fit(scores),
            "both": BatchRefinement(after).fit(scores, examples),
        }
        found = {key: np.mean((h.predict(scores) == truth)[rest]) for key, h in heads.items()}
        for key, gain in gains.items():
            gain.append(found["both"] - found[key])
    assert np.mean(gains["labels"]) > 0.1
    # Unless the rankings are added once more, this is .015.
    assert np.mean(gains["batch"]) > 0.025


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
    head = replace(head.head_, temperature=temperature)
    refined = BatchRefinement(head, class_prior="equal").fit(scores)
    confidence = head.predict_proba(scores).max(axis=1).mean()
    # Nor is it higher: a batch has no labels.
    assert refined.predict_proba(scores).max(axis=1).mean() == pytest.approx(confidence, abs=1e-6)
    plain = refine_plain(head, scores, class_prior="equal")
    np.testing.assert_array_equal(refined.predict(scores), plain.predict(scores))


def test_a_head_stays_as_it_was_where_no_temperature_keeps_its_confidence(rng):
    scores = rs.Scores(rng.normal(size=(12, 3)), ["lion", "oak", "rose"])
    same = rs.recognise(scores, {"cat": ["lion", "rose"], "dog": ["lion", "rose"]})
    np.testing.assert_allclose(same.proba, 0.5)
    assert same.head.inner.about["batch"] == {"n": 12, "changed": 0, "absent": []}
    # Without any variance within classes, log-probabilities differ by 1e13.
    copies = rs.Scores(np.repeat([[3.0, 1, 0], [0, 1, 3]], 10, axis=0), scores.items)
    rankings = rs.Rankings.from_orders(
        [["lion"], ["rose"]], items=scores.items, targets=["cat", "dog"]
    )
    assert rs.recognise(copies, rankings).labels.tolist() == ["cat"] * 10 + ["dog"] * 10
    first = rs.WeightedMean().fit(rankings).inner
    refined = BatchRefinement(first).fit(copies)
    np.testing.assert_array_equal(refined.predict_proba(copies), first.predict_proba(copies))
    np.testing.assert_allclose(refined.frequencies_, 0.5)
    assert refined.agreement_ == 1


def test_the_components_are_those_of_largest_variance(rng, monkeypatch):
    monkeypatch.setattr(batch_refinement, "MOST_DIRECTIONS", 12)
    items = [f"i{j:02}" for j in range(30)]
    values = rng.normal(size=(90, 30)) @ rng.normal(size=(30, 30))
    components = find_components(rs.Scores(values, items))
    assert components.axes.shape == (30, 12)
    z = zscore(zscore(values, axis=1), axis=0)
    points = components.transform(rs.Scores(values, items))
    assert (points**2).sum() == pytest.approx((np.linalg.svd(z)[1] ** 2)[:12].sum())


# ------------------------------------------------------------------ what must not matter


# ------------------------------------------------------------------ what is done with a batch


def test_a_batch_is_used_if_it_is_large_enough(rng):
    head, scores, truth = clusters(rng, [50] * 4)
    refined = refine_batch(head, scores)
    n = int(np.sum(refined.predict(scores) != head.predict(scores)))
    assert np.mean(refined.predict(scores) == truth) > np.mean(head.predict(scores) == truth)
    assert refined.about["batch"] == {"n": 200, "changed": n, "absent": []}
    assert refine_batch(head, scores, batch=False) is head.head_
    kept = refine_batch(head, scores[:19])
    assert kept.slopes is head.head_.slopes or np.array_equal(kept.slopes, head.head_.slopes)
    assert "reason" in kept.about["batch"]
    assert "changed" in refine_batch(head, scores[::12], batch=True).about["batch"]


def test_evidence_of_another_model_is_in_the_mixture(rng):
    """The head that is returned says of the batch what the mixture does, and it is better."""
    truth = np.repeat([0, 1, 2], 60)
    items, names = [f"s{i}" for i in range(6)], np.array(["u", "v", "w"])
    scores = 0.8 * np.repeat(np.eye(3), 2, axis=1)[truth] + rng.normal(size=(180, 6))
    opinion = rs.Scores(4.0 + 1.2 * np.eye(3)[truth] + rng.normal(size=(180, 3)), names)
    batch = rs.Scores(scores, items, evidence=opinion)
    rankings = {"u": ["s0", "s1"], "v": ["s2", "s3"], "w": ["s4", "s5"]}
    lists = rs.Rankings.from_orders(list(rankings.values()), items=items, targets=list(rankings))
    head = rs.WeightedMean().fit(lists, evidence=batch)
    refined = refine_plain(head, batch)
    np.testing.assert_allclose(refined.predict_proba(batch).mean(axis=0), refined.frequencies_)
    assert np.mean(refined.predict(batch) == head.predict(batch)) == refined.agreement_
    alone, jointly = (np.mean(each.predict(batch) == names[truth]) for each in (head, refined))
    assert jointly > alone
    # A constant in each row of evidence changes nothing.
    shifted = rs.Scores(opinion.values + rng.normal(size=(180, 1)), names)
    np.testing.assert_allclose(
        refined.predict_proba(rs.Scores(scores, items, evidence=shifted)),
        refined.predict_proba(batch),
    )
