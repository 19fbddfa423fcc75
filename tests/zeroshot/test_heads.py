"""What all heads have in common, and the numbers of each against high-precision ones."""

from itertools import permutations

import exact
import numpy as np
import pandas as pd
import polars as pl
import pytest
from exact import mp, mpf
from head_cases import (
    ITEMS,
    RANKINGS,
    TARGETS,
    each_case,
    few_cases,
    fitted,
    random_scores,
    semantics_of,
)
from scipy.special import log_softmax
from sklearn.base import clone

import rankshot as rs
from rankshot import RankshotError

# ------------------------------------------------------------------ the numbers


def order_of_scores(row, kind):
    """Classes by score, or by pairs won and then the sum of scores; equal ones tied."""
    key = dict(zip(ITEMS, row.tolist(), strict=True)) if kind != "one-vs-one" else {}
    if kind == "one-vs-one":
        f = exact.by_pair(row.tolist(), ITEMS)
        for i in ITEMS:
            mine = [f[i, j] for j in ITEMS if j != i]
            key[i] = sum(np.sign(mine)), mp.fsum(map(mpf, mine))
    levels = sorted(set(key.values()), reverse=True)
    return [[i for i in ITEMS if key[i] == level] for level in levels]


def exact_log_proba(head, row, kind):
    return exact.log_normalized(exact_weights(head, row, kind), head.temperature_)


def exact_weights(head, row, kind):
    """P(z|x) of the model itself, up to a factor."""
    if isinstance(head, rs.DeterministicRanking):
        mine = order_of_scores(row, kind)
        orders = head.consensus_.orders()
        d = [exact.mean_distance(order, mine, ITEMS, head.k) for order in orders]
        return [mp.exp(-x) for x in d]
    if isinstance(head, rs.DirectSimilarity):
        p = exact.class_probabilities(row, kind)
        p = [x / mpf(head.class_prior[item]) for x, item in zip(p, ITEMS, strict=True)]
        return [mp.fprod(o ** mpf(y) for o, y in zip(p, z, strict=True)) for z in head.exponents_]
    if isinstance(head, rs.ConSE):
        return exact.conse(head, row, kind)
    if isinstance(head, rs.WeightedMean):
        return exact.weighted_mean(head.rankings_, head.classes_, head.decay, row, kind)
    if head.posterior == "sum":
        lists = rs.Rankings.from_orders(permutations(ITEMS, head.k), items=ITEMS)
        weights = [exact.prob_of(one, row, ITEMS, kind) for one in lists]
        log_prior = np.array([head.priors_[z].log_prob(lists) for z in head.classes_])
        log_prior[:, np.isneginf(log_prior).all(axis=0)] = 0
        prior = [[mp.exp(mpf(x)) for x in column] for column in log_prior.T.tolist()]
        terms = [[w * p / mp.fsum(ps) for p in ps] for w, ps in zip(weights, prior, strict=True)]
        return [mp.fsum(z) for z in zip(*terms, strict=True)]
    compared = head.rankings_ if head.posterior == "mean" else head.consensus_
    weights = []
    for z in head.classes_:
        theirs = compared.select(target=z)
        share = theirs.weights / theirs.weights.sum()
        weights.append(
            mp.fprod(
                exact.prob_of(one, row, ITEMS, kind, head.decay) ** mpf(w)
                for one, w in zip(theirs, share, strict=True)
            )
        )
    return weights


def confident(gap, kind):
    """Rows with one class far above, far below, two alike above, or all far apart."""
    f = np.array(
        [
            [gap + 0.3, 0.0, 1.0, 0.3, -0.5],
            [0.3, 0.0, 1 - gap, 0.3, -0.5],
            [0.3, gap, gap, 0.3, -0.5],
            [0, -0.25 * gap, 0.5 * gap, -gap, 0.75 * gap],
        ]
    )
    first, second = np.triu_indices(len(ITEMS), 1)
    return f[:, first] - f[:, second] if kind == "one-vs-one" else f


@each_case
def test_log_probabilities_have_nine_digits(name, kind):
    head, values = fitted(name), np.vstack([confident(gap, kind) for gap in (1.0, 1000.0)])
    truth = [exact_log_proba(head, row, kind) for row in values]
    log_proba = head.predict_log_proba(rs.Scores(values.copy(), ITEMS, kind))
    np.testing.assert_allclose(log_proba, truth, rtol=1e-13, atol=1e-9)


@pytest.mark.parametrize("decay", [0, 0.5, 2])
@pytest.mark.parametrize("posterior", ["consensus", "mean"])
def test_lists_of_several_lengths_and_of_subsets(posterior, decay):
    """Each counts by how much more probable it is than where all scores are equal."""
    orders = [["a"], ["b", ["c", "d"], "a"], ["e", "a"], [["d", "b"], "c", "a"]]
    kinds = ["top", "top", "subset", "subset"]
    rankings = rs.Rankings.from_orders(orders, items=ITEMS, targets=list(TARGETS), kind=kinds)
    head = rs.ProbabilisticRanking(k=3, posterior=posterior, decay=decay).fit(rankings)
    values = np.vstack([confident(gap, "multiclass") for gap in (1.0, 1000.0)])
    truth = [exact_log_proba(head, row, "multiclass") for row in values]
    np.testing.assert_allclose(head.predict_log_proba(values), truth, rtol=1e-13, atol=1e-9)
    # Equal scores say nothing, whatever the lengths.
    np.testing.assert_allclose(head.predict_proba(np.full((2, 5), 1.25)), 0.25)
    parts = head.item_contributions(np.zeros((2, 5)), "multiclass")
    np.testing.assert_allclose(parts, 0, atol=1e-12)


@pytest.mark.parametrize("gap", [1.0, 2000.0])
@pytest.mark.parametrize("kind", ["multiclass", "one-vs-one"])
def test_a_steep_decay_leaves_the_first_place_alone(rng, kind, gap):
    """Even where 2^-decay is 0, and scores are far apart."""
    lists = rs.Rankings.from_orders(
        [[*"abcd"], [*"badc"], [*"eacd"]], items=ITEMS, targets=["u", "v", "w"]
    )
    scores = random_scores(rng, kind, n=20, scale=gap)
    steep = rs.ProbabilisticRanking(k=4, decay=2000, temperature=1).fit(lists)
    first = rs.ProbabilisticRanking(k=1, temperature=1).fit(lists)
    np.testing.assert_allclose(steep.predict_log_proba(scores), first.predict_log_proba(scores))


@pytest.mark.parametrize("prior", [rs.PlackettLuce(), rs.Mallows()])
def test_the_consensus_is_the_mode_of_the_prior(prior):
    """The consensus of a single ranking is this ranking, cut to k; its tie stays."""
    merging = rs.ProbabilisticRanking(k=3, posterior="consensus")
    for head in (merging, rs.DeterministicRanking(k=3)):
        consensus = head.set_params(prior=prior).fit(RANKINGS).consensus_
        orders = dict(zip(consensus.targets, consensus.orders(), strict=True))
        assert orders["v"] == ["e", ["a", "c", "d"]]
        assert consensus.lengths.tolist() == [3, 3, 3, 3]
        for z in ("u", "w"):
            mode = prior.fit(RANKINGS.select(target=z)).mode_
            assert orders[z] == [list(x) if isinstance(x, tuple) else x for x in mode][:3]


# ------------------------------------------------------------------ the temperature


@few_cases
def test_a_temperature_divides_log_posteriors_and_changes_no_decision(rng, name, kind):
    temperature = 0.2
    scores, default = random_scores(rng, kind, n=40), fitted(name)
    head = clone(default).set_params(temperature=temperature).fit(semantics_of(name))
    assert head.temperature_ == temperature
    log_posterior = default.decision_function(scores)
    for one in (head, default):
        expected = log_softmax(log_posterior / one.temperature_, axis=1)
        np.testing.assert_allclose(one.predict_log_proba(scores), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(head.predict(scores), default.predict(scores))


# ------------------------------------------------------------------ the manners


@few_cases
def test_probabilities_add_up_and_the_largest_decide(rng, name, kind):
    head, scores = fitted(name), random_scores(rng, kind, n=40)
    scores.values.flags.writeable = False
    log_proba, proba = head.predict_log_proba(scores), head.predict_proba(scores)
    assert tuple(head.classes_) == TARGETS
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(np.log(proba), log_proba)
    assert len(set(head.predict(scores).tolist())) > 1
    for k in (1, 3, 4):
        labels, p = head.top(scores, k)
        assert labels.shape == p.shape == (len(scores), k)
        np.testing.assert_array_equal(labels[:, 0], head.predict(scores))
        for row, names, values in zip(log_proba, labels, p, strict=True):
            by_rank = sorted(zip(-row.round(9), TARGETS, strict=True))[:k]
            assert [z for _, z in by_rank] == names.tolist()
            np.testing.assert_allclose(np.log(values), [row[TARGETS.index(z)] for z in names])
    single = rs.Scores(np.float32(scores.values), ITEMS, kind)
    found = head.predict_log_proba(single)
    assert found.dtype == head.predict_proba(single).dtype == np.float32
    wide = head.predict_log_proba(rs.Scores(np.float64(single.values), ITEMS, kind))
    np.testing.assert_allclose(found, wide, rtol=1e-5, atol=1e-5)
    assert head.predict(scores[:0]).shape == (0,)
    assert head.predict_proba(scores[:0], []).shape == (0, 4)
    assert head.top(scores[:0], 2).labels.shape == (0, 2)


@few_cases
def test_candidates_share_the_whole(rng, name, kind):
    head, scores = fitted(name), random_scores(rng, kind, n=3)
    names = [["w", "u"], ["v"], ["x", "w", "v", "u"]]
    mask = np.array([[z in row for z in TARGETS] for row in names])
    some = np.where(mask, head.predict_proba(scores), 0)
    expected = some / some.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(head.predict_proba(scores, names), expected, rtol=1e-12)
    np.testing.assert_array_equal(
        head.predict_log_proba(scores, mask), head.predict_log_proba(scores, names)
    )
    assert head.predict(scores, names)[1] == "v"
    labels, proba = head.top(scores, 4, names)
    assert labels[1].tolist() == ["v", "u", "w", "x"]
    assert proba[1].tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([["u"], ["vv"]], r"input 1: no class 'vv' \(did you mean 'v'\?\)"),
        ([["u"], []], "input 1 has no candidate"),
    ],
)
def test_candidates_that_cannot_be(candidates, message):
    with pytest.raises(RankshotError, match="candidates.*" + message):
        fitted("consensus").predict(np.zeros((2, 5)), candidates)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_data_frames_are_matched_by_name(rng, frame):
    head, scores = fitted("weighted"), random_scores(rng, "multiclass", dtype=np.float32)
    columns = {ITEMS[i]: scores.values[:, i] for i in [3, 1, 4, 0, 2]}
    log_proba = head.predict_log_proba(frame(columns))
    assert log_proba.dtype == np.float32
    np.testing.assert_allclose(log_proba, head.predict_log_proba(scores), rtol=1e-6)
    with pytest.raises(RankshotError, match=r"not in the rankings: 'ee' \(did you mean 'e'\?\)"):
        head.predict(frame(columns | {"ee": columns["a"]}))
    del columns["e"]
    with pytest.raises(RankshotError, match="no scores for 'e'"):
        head.predict(frame(columns))


@few_cases
def test_batches_give_what_the_whole_gives(rng, monkeypatch, name, kind):
    head, scores = fitted(name), random_scores(rng, kind, n=50)
    whole, labels = head.predict_log_proba(scores), head.predict(scores)
    parts = [head.predict_log_proba(scores[i : i + 7]) for i in range(0, 50, 7)]
    np.testing.assert_allclose(np.vstack(parts), whole, rtol=1e-12, atol=1e-14)
    monkeypatch.setattr(type(head), "_block_rows", lambda *given: 16)
    np.testing.assert_allclose(head.predict_log_proba(scores), whole, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(head.predict(scores), labels)


def test_three_classes_one_against_one():
    """Three classes have three pairs: only Scores can say which is meant."""
    rankings = rs.Rankings.from_orders(
        [["a", "b"], ["c", "b"]], items=["a", "b", "c"], targets=["u", "v"]
    )
    row = [[0.5, 1.0, 2.0]]  # c is best; or else a beats b and c, and b beats c
    for head in (rs.ProbabilisticRanking(k=2), rs.DeterministicRanking(k=2)):
        assert head.fit(rankings).predict(row) == ["v"]
        assert head.predict(rs.Scores(row, ["a", "b", "c"], "one-vs-one")) == ["u"]
    pairs = rs.Scores(row, ["a", "b", "c"], "one-vs-one")
    weights = np.exp([0.5 + 1 + 2, -2 - 1 - 0.5])
    expected = [weights / weights.sum()]
    head = rs.ProbabilisticRanking(k=2, decay=0, temperature=1).fit(rankings)
    np.testing.assert_allclose(head.predict_proba(pairs), expected)


def test_the_default_temperatures():
    """The places of the longest list that counts: RANKINGS has five at most."""
    assert rs.ProbabilisticRanking().fit(RANKINGS).temperature_ == pytest.approx(5**0.5)
    assert rs.ProbabilisticRanking(k=4).fit(RANKINGS).temperature_ == 2
    assert rs.ProbabilisticRanking(posterior="consensus").fit(RANKINGS).temperature_ == 1
    assert fitted("sum").temperature_ == 1
    assert fitted("weighted").temperature_ == 0.7
    by_table = rs.Similarity(np.eye(2), ["cat", "truck"], ["leopard", "bus"]).to_rankings()
    assert rs.WeightedMean().fit(by_table).temperature_ == 1
    assert fitted("deterministic").temperature_ == fitted("direct").temperature_ == 1
    assert fitted("conse").temperature_ == 0.1
