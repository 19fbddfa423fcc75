"""Rehearsals on a circle of sixteen classes, and what they forecast."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import binomtest, norm, t
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import balanced_accuracy_score

import rankshot as rs
from rankshot.zeroshot import Settings, Trial, forecast as model
from rankshot.zeroshot.forecast import (
    STRENGTHS,
    draw_strengths,
    find_strengths,
    predict_mean_accuracy,
    simulate_accuracies,
    weigh_draws,
)
from refusals import refuses

NAMES = [f"c{i:02}" for i in range(16)]
NEW = ["c03", "c07", "c11", "c15", "c05", "c09"]
SEEN = [name for name in NAMES if name not in NEW]
PLAYERS = ["c00", "c04", "c08", "c12", "c14"]
LEFT = [name for name in SEEN if name not in PLAYERS]


def angle(names):
    return np.array([int(name[1:]) for name in names]) * np.pi / 8


def inputs(names, n=40, seed=0, std=1.0):
    where = np.repeat(angle(names), n)
    noise = std * np.random.default_rng(seed).normal(size=(where.size, 2))
    return 4 * np.column_stack([np.cos(where), np.sin(where)]) + noise, np.repeat(names, n)


class Towards(ClassifierMixin, BaseEstimator):
    """A score is how far an input lies in the direction of a class; notes what it was fitted to."""

    fitted: ClassVar = []

    def __init__(self, scale=1.0):
        self.scale = scale

    def fit(self, X, y):
        self.fitted.append(set(y))
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        where = angle(self.classes_)
        return self.scale * X @ np.array([np.cos(where), np.sin(where)])


def scores_of(X, items=SEEN, scale=1.0):
    return rs.Scores(Towards(scale).fit(None, items).decision_function(X), items)


def ranked(targets, items, source="near", turn=0.0, rater="a person"):
    """Items by their distance on the circle; a source with a turn is wrong by this angle."""
    closeness = np.cos(angle(targets)[:, None] + turn - angle(items) - 1e-6)
    orders = np.array(items)[np.argsort(-closeness, axis=1)].tolist()
    return rs.Rankings.from_orders(
        orders, items=items, targets=targets, sources=source, raters=rater
    )


X, Y = inputs(SEEN)
SCORES = scores_of(X)
RANKED = ranked(PLAYERS, LEFT)
TWO_SOURCES = rs.Rankings.concatenate([RANKED, ranked(PLAYERS, LEFT, "wrong", turn=2.5)])


def rehearse(*rankings, settings=None, scores=SCORES, labels=Y, batch=None, **options):
    lists = [one.change_items(scores.items) for one in rankings or [RANKED]]
    known = rs.Knowledge(rs.Rankings.concatenate(lists), (scores, labels), batch=batch)
    return known.rehearse(settings or Settings(), **{"grid": {}} | options)


def test_an_accuracy_is_what_it_would_be_by_hand():
    forecast = rehearse(settings=Settings(k=3, classes="all"))
    plays = np.isin(Y, PLAYERS)
    for trial, is_used in zip(forecast.trials, (True, False), strict=True):
        reference = SCORES.select(LEFT)[~plays] if is_used else None
        found = rs.WeightedMean(k=3).fit(RANKED, reference=reference)
        found = found.predict(SCORES.select(LEFT)[plays])
        assert trial.settings.use_reference == is_used
        assert trial.accuracy.estimate == pytest.approx(balanced_accuracy_score(Y[plays], found))
        assert trial.by_class["c00"] == np.mean(found[Y[plays] == "c00"] == "c00")
    assert forecast.classes.tolist() == PLAYERS
    assert forecast.settings.classes == "all", "what is not tried stays"


def test_no_scale_of_temperatures_is_better():
    forecast = rehearse()
    plays = np.isin(Y, PLAYERS)

    def loss(temperature):
        head = replace(forecast.settings, temperature=temperature).make_estimator()
        reference = SCORES.select(LEFT)[~plays] if forecast.settings.use_reference else None
        head.fit(RANKED, reference=reference)
        log_proba = head.log_proba(SCORES.select(LEFT)[plays])
        return -np.mean(log_proba[np.arange(plays.sum()), np.searchsorted(head.classes_, Y[plays])])

    best = forecast.settings.temperature
    assert all(loss(best) < loss(best * factor) for factor in (0.8, 0.95, 1.05, 1.25))
    before, after = forecast.calibration_error
    assert after < before


def test_a_source_that_misleads_is_left_out():
    forecast = rehearse(TWO_SOURCES)
    assert forecast.settings.source_weights == {"near": 1.0, "wrong": 0.0}
    tried = {trial.what: trial for trial in forecast.trials}
    assert tried["near alone"].is_clearly_better(tried["wrong alone"])
    assert tried["near alone"].settings.source_weights == forecast.settings.source_weights
    some = rs.Rankings.concatenate([ranked(NEW[1:], SEEN), ranked(NEW, SEEN, "other", 2.5)])
    head = rs.Knowledge(some, SCORES).fit(forecast.settings)
    assert head.about["source_weights"] == {"near": 1.0, "other": 0.0}
    assert head.temperature == forecast.settings.temperature
    with refuses("source_weights", "near"):
        rs.Knowledge(ranked(NEW, SEEN, "wrong", 2.5), SCORES).fit(forecast.settings)


def test_a_source_that_lacks_a_class_is_trusted_and_another_fills_in():
    partly = [ranked(PLAYERS[1:], LEFT), ranked(PLAYERS, LEFT, "wrong", turn=2.5)]
    partly[0] = replace(partly[0], raters=np.full(len(partly[0]), "somebody", object))
    forecast = rehearse(*partly)
    assert forecast.settings.source_weights == {"near": 1.0, "wrong": 0.0}
    assert forecast.trials[0].by_class.keys() == set(PLAYERS)


def test_nothing_is_tried_twice_or_changed_for_nothing():
    places = len(SEEN)
    forecast = rehearse(TWO_SOURCES, settings=Settings(k=places), grid={"k": [places, 99]})
    # The first k is what was chosen before.
    tried = [trial.what for trial in forecast.trials]
    alone = ["near alone", "wrong alone"]
    assert tried == ["default settings", *alone, "k=99", "no reference"]
    assert forecast.settings.k == places, "nothing is gained by the other"


def test_a_source_must_gain_two_standard_errors_and_a_setting_one(monkeypatch):
    better, asked = Trial.is_clearly_better, []

    def note(self, other, n_errors=1.0):
        asked.append((self, other, n_errors))
        return better(self, other, n_errors)

    monkeypatch.setattr(Trial, "is_clearly_better", note)
    rehearse(TWO_SOURCES, grid={"k": [2]})
    assert {("near" in one.what, n_errors) for one, _, n_errors in asked} == {(True, 2), (False, 1)}
    one, other, _ = asked[0]
    gain = np.subtract(*([trial.by_class[name] for name in PLAYERS] for trial in (one, other)))
    z = gain.mean() / (gain.std(ddof=1) / np.sqrt(len(gain)))
    assert z > 0
    assert better(one, other, 0.99 * z)
    assert not better(one, other, 1.01 * z)


def test_a_setting_that_is_clearly_better_is_chosen():
    """Orders that are right at their ends only: all places together say nothing."""
    forecast = rehearse(settings=Settings(k=len(LEFT), decay=0.0), grid={"k": [2]})
    assert forecast.settings.k == 2


def test_rankings_of_all_classes_are_held_out_in_turn():
    """What is forecast fits new classes."""
    X_new, y_new = inputs(NEW, seed=1)
    forecast = rehearse(ranked(SEEN, SEEN), ranked(NEW, SEEN), grid=None, n_folds=3)
    assert forecast.classes.tolist() == SEEN == sorted(forecast.trials[0].by_class)
    assert len(forecast.trials) > 5, "a grid by default"
    head = rs.Knowledge(ranked([*NEW, "c00"], SEEN), SCORES).fit(forecast.settings)
    found = np.mean(head.predict(scores_of(X_new)) == y_new)
    assert forecast.predicted.low <= found <= forecast.predicted.high


def test_a_classifier_is_trained_without_the_rehearsed_classes():
    rankings = rs.Rankings.concatenate([RANKED.change_items(SEEN), ranked(NEW, SEEN)])
    trained = FrozenEstimator(Towards().fit(X, Y))
    kept = rs.ZeroShotClassifier(trained, rankings=rankings).rehearse(X, Y, grid={})
    assert kept.accuracy == rehearse(rankings).accuracy
    assert kept.predicted == rehearse(rankings).predicted
    Towards.fitted.clear()
    zs = rs.ZeroShotClassifier(Towards(), rankings=rankings, settings=Settings(decay=0.4))
    forecast = zs.rehearse(X, Y, grid={"k": [3]})
    # All classes for the reference; their inputs are not among those that it was trained on.
    assert Towards.fitted == [set(SEEN), set(LEFT)]
    assert len(forecast.reference) == len(Y) / 4
    assert forecast.settings.decay == 0.4
    assert forecast.predicted is not None
    zs.set_params(settings=forecast.settings)
    assert zs.fit(X, Y).head_.temperature == forecast.settings.temperature
    with refuses("X"):
        zs.rehearse(X[::20], Y[::20])


# ---- The prediction


@pytest.mark.parametrize("strength", [-1.0, 0.0, 1.5, 3.0])
def test_two_classes_have_a_known_accuracy(strength):
    for rho in (0.0, 0.5, -0.4):
        K = np.array([[1.0, rho], [rho, 1.0]])
        found = simulate_accuracies(K)[:, np.argmin(abs(STRENGTHS - strength))]
        # The difference of two values has mean d (1 - rho) and variance 2 (1 - rho).
        expected = norm.cdf(strength * np.sqrt((1 - rho) / 2))
        np.testing.assert_allclose(found, expected, atol=0.075)


def test_the_prediction_does_not_depend_on_the_choice_of_eigenvectors(rng, monkeypatch):
    """Their signs are arbitrary, and so are they where eigenvalues are equal."""
    values = rng.normal(size=(200, 6)) @ rng.normal(size=(6, 6))
    K = np.corrcoef(values.T)
    found = simulate_accuracies(K)
    variance, directions = np.linalg.eigh(K)
    monkeypatch.setattr(np.linalg, "eigh", lambda _: (variance, directions * [1, -1, 1, -1, -1, 1]))
    np.testing.assert_array_equal(simulate_accuracies(K), found)


def test_strengths_are_found_again(rng):
    values = rng.normal(size=(200, 6)) @ rng.normal(size=(6, 6))
    K = np.corrcoef(values.T)
    simulated = simulate_accuracies(K)
    wanted = np.array([0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
    column = np.searchsorted(STRENGTHS, wanted - 1e-9)
    found = find_strengths(simulated[np.arange(6), column], K)
    np.testing.assert_allclose(found, wanted, atol=0.11)


def test_strengths_of_unrelated_classes_have_students_distribution(rng):
    given, n_new = rng.normal(2.0, 1.0, 9), 4
    drawn = draw_strengths(given, np.eye(9 + n_new), np.random.default_rng(0))
    scale = given.std(ddof=1) * np.sqrt(1 / n_new + 1 / 9)
    levels = [0.1, 0.25, 0.5, 0.75, 0.9]
    # A thousand draws: three standard errors of a quantile.
    np.testing.assert_allclose(
        np.quantile(drawn.mean(axis=1), levels),
        given.mean() + scale * t.ppf(levels, 8),
        atol=0.16 * scale,
    )


def test_strengths_of_similar_classes_are_those_of_a_gaussian_process(rng, monkeypatch):
    """The mean has a flat prior; here it is a further variable with a huge variance."""
    similarity = np.corrcoef(rng.normal(size=(12, 30)) + rng.normal(size=30))
    given = np.array([0.5, 1.0, 2.5, 3.0, 1.5, 2.0, 0.0])
    monkeypatch.setattr(model, "SHARES", [0.6])
    monkeypatch.setattr(model, "N_DRAWS", 100_000)
    drawn = draw_strengths(given, similarity, np.random.default_rng(0))
    covariance = 0.4 * np.eye(12) + 0.6 * similarity + 1e6
    inverse = np.linalg.inv(covariance[:7, :7])
    np.testing.assert_allclose(drawn.mean(axis=0), covariance[7:, :7] @ inverse @ given, atol=0.02)
    schur = covariance[7:, 7:] - covariance[7:, :7] @ inverse @ covariance[:7, 7:]
    # The variance is known from six degrees of freedom, of which the t-distribution keeps 6 / 4.
    known = given @ inverse @ given / 4
    np.testing.assert_allclose(np.cov(drawn.T), known * schur, atol=0.04 * known)


def test_intervals_contain_the_mean_strength_of_a_new_kind_of_classes():
    """Five kinds of classes with strengths in common; the new classes are all of one of them."""
    rng = np.random.default_rng(0)
    n_trials, kind = 200, np.repeat(np.arange(5), 4)
    similarity = 0.05 * np.eye(20) + 0.95 * (kind[:, None] == kind)
    inside = 0
    for _ in range(n_trials):
        share = rng.choice(model.SHARES)
        root = np.linalg.cholesky((1 - share) * np.eye(20) + share * similarity)
        strengths = 2 + root @ rng.normal(size=20)
        means = draw_strengths(strengths[:16], similarity, rng).mean(axis=1)
        low, high = np.quantile(means, [0.025, 0.975])
        inside += low <= strengths[16:].mean() <= high
    assert binomtest(inside, n_trials, 0.95).pvalue > 0.01


def test_the_interval_is_that_of_simulated_accuracies():
    equal = predict_mean_accuracy(np.full(5, 2.0), np.eye(9), np.eye(4))
    column = np.searchsorted(STRENGTHS, 2.0)
    assert equal.low <= simulate_accuracies(np.eye(4))[:, column].mean() <= equal.high
    assert equal.high - equal.low < 0.05
    unequal = predict_mean_accuracy(np.array([0.0, 4.0] * 3), np.eye(10), np.eye(4))
    assert unequal.low < 0.4
    assert unequal.high > 0.9
    sure = predict_mean_accuracy(np.full(5, 6.0), np.eye(7), np.eye(2))
    assert 0.99 < sure.low <= sure.estimate <= sure.high <= 1


def test_draws_and_a_measurement_have_the_normal_posterior():
    draws = norm.ppf((np.arange(4000) + 0.5) / 4000, 0.5, 0.1)
    # Precisions 100 and 25: the mean moves by a fifth of the difference.
    expected = 0.54 + norm.ppf([0.5, 0.025, 0.975]) * 125**-0.5
    assert weigh_draws(draws, 0.7, 0.2) == pytest.approx(expected, abs=0.002)
    plain = 0.5 + norm.ppf([0.5, 0.025, 0.975]) * 0.1
    assert weigh_draws(draws, 0.0, np.inf) == pytest.approx(plain, abs=0.002)


def test_only_a_batch_of_new_classes_is_used_for_the_forecast():
    both, batch = [ranked(PLAYERS, SEEN), ranked(NEW, SEEN)], scores_of(inputs(NEW, seed=1)[0])
    alone, more = rehearse(*both), rehearse(*both, batch=batch)
    assert more.predicted.high - more.predicted.low < alone.predicted.high - alone.predicted.low
    assert more.accuracy == alone.accuracy
    gated = rehearse(*both, batch=batch, settings=Settings(classes="all"))
    assert gated.predicted == alone.predicted


def test_of_many_new_classes_some_are_simulated(monkeypatch):
    every = predict_mean_accuracy(np.arange(1.0, 4.0), np.eye(43), np.eye(40))
    monkeypatch.setattr(model, "MOST_CLASSES", 20)
    some = predict_mean_accuracy(np.arange(1.0, 4.0), np.eye(43), np.eye(40))
    # They compete with all 40.
    assert some.estimate == pytest.approx(every.estimate, abs=0.03)


def test_no_accuracy_is_predicted_for_tables():
    table = {"source": "table", "rater": None}
    tables = [ranked(PLAYERS, LEFT, **table), ranked(NEW, SEEN, **table)]
    assert rehearse(*tables, RANKED, ranked(NEW, SEEN)).predicted is not None
    assert rehearse(*tables).predicted is None
    assert rehearse(RANKED).predicted is None, "no new classes"


def test_rehearsed_classes_without_a_column_are_not_new():
    """They are neither counted nor predicted."""
    forecast = rehearse(RANKED, ranked(NEW, LEFT), scores=SCORES.select(LEFT))
    assert forecast.classes.tolist() == PLAYERS
    assert forecast.new.tolist() == sorted(NEW)
    assert forecast.predicted is not None
    assert any("of the 6 new classes" in line for line in forecast.describe())


# ---- Bad input

REFUSED = {
    "labels, unknown": {"labels": np.where(Y == "c01", "d01", Y)},
    "labels, of other rows": {"labels": np.roll(Y, 120)},
    "labels": {"labels": Y[1:]},
    "reference": {"labels": None},
    "rankings, not rehearsed": {"rankings": ranked(NEW, SEEN)},
    "grid": {"grid": {"kk": [1]}},
    "n_folds": {"rankings": ranked(SEEN, SEEN), "n_folds": 6},
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    options = {"rankings": RANKED} | REFUSED[case]
    with refuses(case.partition(",")[0]):
        rehearse(options.pop("rankings"), **options)
