"""Configurations: weights, reference and temperature by hand; choices never see the real task."""

from dataclasses import replace
from math import exp, log
from types import SimpleNamespace

import numpy as np
import pytest
from reproduction.benchmark import Task
from reproduction.classifiers import LinearClassifier
from reproduction.evaluator import Configuration, Evaluator, weigh_raters, weight_rankings
from scipy.stats import sem

import rankshot as rs
from rankshot.zeroshot.metrics import Interval

ITEMS = tuple("abcdefghijkl")
TARGETS = ("cow", "elk", "yak")
RATERS = ("ann", "bob", "eve")
LIST = 5


def made_task(rng, name):
    """Three raters, the last of whom guesses, and three sources; features are the scores."""
    likes = rng.normal(size=(3, 12))
    errors = {"ann": 0.3, "bob": 0.8, "eve": 50.0}
    panel = rs.Rankings.from_orders(
        [
            [ITEMS[i] for i in np.argsort(-likes[z] - rng.normal(scale=error, size=12))[:LIST]]
            for z in range(3)
            for error in errors.values()
        ],
        items=ITEMS,
        targets=np.repeat(TARGETS, 3).tolist(),
        raters=RATERS * 3,
    )
    tables = {name: likes + rng.normal(size=likes.shape) for name in ("web", "book", "half")}
    # The last source knows nothing of elks.
    tables["half"][1] = np.nan
    sources = {name: rs.Similarity(v, TARGETS, ITEMS, name) for name, v in tables.items()}
    code = np.repeat(range(3), (10, 20, 30))
    test = 1.2 * likes[code] + rng.normal(scale=1.5, size=(60, 12)) + np.linspace(-1, 2, 12)
    usual = rng.normal(scale=np.linspace(0.5, 2, 12), size=(40, 12)) + np.linspace(-1, 2, 12)
    nothing, nobody = np.zeros((0, 12), np.float32), np.array([], str)
    return Task(
        name=name,
        train=nothing,
        train_label=nobody,
        validation=usual.astype(np.float32),
        validation_label=np.resize(ITEMS, 40),
        test=test.astype(np.float32),
        test_label=np.array(TARGETS)[code],
        items=ITEMS,
        targets=TARGETS,
        sources=sources,
        panels={"similar": panel},
    )


class FakeCache:
    """Hands out classifiers: the inputs times C, plus a number for the setting."""

    def __init__(self):
        self.made = []

    def load_or_train(self, setting, C):
        self.made.append((setting, C))
        shift = np.full(12, len(setting), np.float32) * np.linspace(0, 1, 12, dtype=np.float32)
        return LinearClassifier(
            "multiclass", ITEMS, np.float32(C) * np.eye(12, dtype=np.float32), shift
        )


@pytest.fixture
def evaluator(rng):
    benchmark = SimpleNamespace(rehearsal=made_task(rng, "others"), real=made_task(rng, "all"))
    return Evaluator(benchmark, {"others": FakeCache(), "all": FakeCache()})


@pytest.fixture
def task(evaluator):
    return evaluator.benchmark.rehearsal


MEAN = Configuration("multiclass", 1.0, rs.ProbabilisticRanking(k=4, decay=0.5, temperature=1))

# ---- The mean by hand


def log_probability(f, order, decay):
    """log P(π|x) place by place, each less what it is by chance, the first counting most."""
    left, total = list(range(len(f))), 0.0
    for place, item in enumerate(order, start=1):
        chosen = f[item] - log(sum(exp(f[i]) for i in left))
        total += place**-decay * (chosen + log(len(left)))
        left.remove(item)
    return total


def mean_by_hand(task, f, k, decay, raters, sources):
    """log P(z|x) but for a constant: the panel and the sources, each with its weight.

    A source gives a target that it does not know the mean probability of those that it knows.
    """

    def log_prob(order):
        return log_probability(f, [ITEMS.index(name) for name in order[:k]], decay)

    of_panel = sum(raters.values())
    total, weights = np.zeros(len(TARGETS)), of_panel
    for order, of, rater in zip(
        task.panel.orders(), task.panel.targets, task.panel.raters, strict=True
    ):
        total[TARGETS.index(of)] += raters[rater] * log_prob(order)
    for source, weight in sources.items():
        rows = task.sources[source].values
        found = np.array(
            [
                np.nan if np.isnan(row).all() else log_prob([ITEMS[i] for i in np.argsort(-row)])
                for row in rows
            ]
        )
        # Longer lists are less probable: what is compared is the ratio to equal scores.
        found[np.isnan(found)] = np.log(np.nanmean(np.exp(found)))
        total += weight * of_panel * found
        weights += weight * of_panel
    return total / weights


@pytest.mark.parametrize("decay", [0.0, 0.5])
@pytest.mark.parametrize("raters", [{}, {"ann": 0.5, "bob": 0.2, "eve": 0.05}], ids=["", "raters"])
@pytest.mark.parametrize(
    "sources", [{}, {"web": 0.3}, {"web": 0.3, "book": 0.1}, {"half": 0.5}], ids=" ".join
)
def test_weights_reach_the_mean(evaluator, task, decay, raters, sources):
    """A source's one ranking of a target weighs so many times what all of the panel's do."""
    configuration = replace(MEAN, raters=raters, sources=sources).with_head(decay=decay)
    head = evaluator.fit_head(configuration, task)
    scores = evaluator.scores(configuration, task, "test")
    found = head.predict_log_proba(scores)
    assert head.classes_.tolist() == list(TARGETS)
    for row, f in zip(found[::7], scores.values[::7].astype(float).tolist(), strict=True):
        expected = mean_by_hand(task, f, 4, decay, raters or dict.fromkeys(RATERS, 1.0), sources)
        expected -= np.logaddexp.reduce(expected)
        np.testing.assert_allclose(row, expected, rtol=0, atol=1e-5)


def test_the_weights_are_those_written_down(task):
    """By hand: the panel's three rankings of a target weigh 3, or what their raters do."""
    found = weight_rankings(replace(MEAN, sources={"web": 0.5, "half": 0.1}), task)
    assert found.weights[:9].tolist() == [1.0] * 9
    # Of web three rankings, of half two.
    np.testing.assert_allclose(found.weights[9:], [1.5] * 3 + [0.3] * 2)
    assert found.targets[9:].tolist() == [*TARGETS, "cow", "yak"]
    weights = {"ann": 1.0, "bob": 0.5, "eve": 0.25}
    found = weight_rankings(replace(MEAN, raters=weights, sources={"web": 2.0}), task)
    assert found.weights[:9].tolist() == [weights[name] for name in task.panel.raters]
    np.testing.assert_allclose(found.weights[9:], [3.5] * 3)
    # The task's own rankings stay as they are.
    assert task.panel.weights.tolist() == [1.0] * 9


def test_a_source_is_cut_like_a_rater(task):
    """Ten of twelve items are listed."""
    found = weight_rankings(replace(MEAN, sources={"web": 0.5}), task)
    assert found.lengths[9:].tolist() == [10] * 3


# ---- Reference and temperature


def test_a_reference_is_what_is_said_of_validation_inputs(evaluator, task):
    configuration = replace(MEAN, reference=True)
    usual = task.validation.astype(float) + setting_shift("multiclass")
    head = rs.ProbabilisticRanking(k=4, decay=0.5).fit(task.panel, reference=usual)
    test = task.test.astype(float) + setting_shift("multiclass")
    assert evaluator.predict(configuration, task).tolist() == head.predict(test).tolist()
    assert (evaluator.predict(MEAN, task) != evaluator.predict(configuration, task)).any()


def setting_shift(setting):
    return len(setting) * np.linspace(0, 1, 12)


# ---- Two classifiers


def test_scores_of_two_classifiers_are_standardised_and_averaged(evaluator, task):
    """By hand: each column in standard deviations from its mean over the validation inputs."""
    pair = replace(MEAN, partner=("least squares", 3.0))
    alone = MEAN, replace(MEAN, setting="least squares", C=3.0)
    expected = 0
    for one in alone:
        usual, test = (
            evaluator.scores(one, task, part).values.astype(float)
            for part in ("validation", "test")
        )
        expected = expected + (test - usual.mean(axis=0)) / usual.std(axis=0) / 2
    found = evaluator.scores(pair, task, "test")
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-5)
    assert (found.items, found.kind) == (ITEMS, "one-vs-rest")
    assert pair.classifiers == (("multiclass", 1.0), ("least squares", 3.0))
    assert MEAN.classifiers == (("multiclass", 1.0),)


# ---- Questions


def two_questions(task):
    """The panel's lists, and two of them as answers to another question."""
    few = task.panel[np.isin(task.panel.raters, ["ann", "bob"])]
    return replace(task, panels={"similar": task.panel, "contrast": few})


def test_questions_weigh_the_same_however_many_answer_them(task):
    asked = two_questions(task)
    found = weight_rankings(MEAN, asked)
    assert len(found) == 9 + 6
    assert found.weights[:9].sum() == pytest.approx(found.weights[9:].sum())
    assert len(set(found.weights[:9].round(12))) == len(set(found.weights[9:].round(12))) == 1
    alone = weight_rankings(replace(MEAN, questions=("contrast",)), asked)
    assert alone.orders() == asked.panels["contrast"].orders()
    assert alone.weights.tolist() == [1.0] * 6


# ---- Scores


def test_scores_are_made_once_for_each_classifier_task_and_part(evaluator):
    tasks = evaluator.benchmark.rehearsal, evaluator.benchmark.real
    asked = [
        (replace(MEAN, setting=setting, C=C), task, part)
        for setting in ("multiclass", "least squares")
        for C in (1.0, 2.0)
        for task in tasks
        for part in ("validation", "test")
    ]
    first = [evaluator.scores(*one) for one in asked]
    again = [evaluator.scores(*one) for one in asked]
    assert all(a is b for a, b in zip(first, again, strict=True))
    # Each is that of its own classifier and inputs.
    for (configuration, task, part), found in zip(asked, first, strict=True):
        expected = configuration.C * getattr(task, part) + setting_shift(configuration.setting)
        np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-4)
    for cache in evaluator.caches.values():
        assert len(cache.made) == 8


def test_heads_of_one_classifier_share_its_scores(evaluator, task):
    for k in (2, 4, 5):
        evaluator.rehearse(MEAN.with_head(k=k))
    assert evaluator.caches["others"].made == [("multiclass", 1.0)]
    assert evaluator.caches["all"].made == []


def test_a_head_is_fitted_once_for_each_configuration_and_task(evaluator):
    tasks = evaluator.benchmark.rehearsal, evaluator.benchmark.real
    configurations = [MEAN, MEAN.with_head(k=2), replace(MEAN, reference=True)]
    first = [
        evaluator.fit_head(configuration, task)
        for configuration in configurations
        for task in tasks
    ]
    again = [
        evaluator.fit_head(configuration, task)
        for configuration in configurations
        for task in tasks
    ]
    assert all(a is b for a, b in zip(first, again, strict=True))
    assert len(set(map(id, first))) == 6
    for head, task in zip(first, tasks * 3, strict=True):
        assert head.rankings_.orders() == task.panel.top(head.k).orders()
    # The configuration's own head is never fitted.
    assert not hasattr(MEAN.head, "classes_")


# ---- Choosing


def test_other_settings_make_another_configuration():
    other = MEAN.with_head(k=2, posterior="consensus")
    assert (other.head.k, other.head.posterior, other.head.decay) == (2, "consensus", 0.5)
    assert (MEAN.head.k, MEAN.head.posterior) == (4, "mean")
    assert (other.setting, other.C) == (MEAN.setting, MEAN.C)


def test_the_rehearsal_is_judged_by_the_mean_over_classes(evaluator, task):
    """Its classes have 10, 20 and 30 inputs, and count alike."""
    found = evaluator.predict(MEAN, task)
    shares = [np.mean(found[task.test_label == name] == name) for name in TARGETS]
    rehearsed = evaluator.rehearse(MEAN)
    assert isinstance(rehearsed, Interval)
    assert rehearsed.estimate == pytest.approx(sum(shares) / 3)
    assert rehearsed.estimate != pytest.approx(np.mean(found == task.test_label))
    # Of a thousand resamples of three classes some have the best one only, some the worst.
    assert (rehearsed.low, rehearsed.high) == pytest.approx((min(shares), max(shares)))
    assert rehearsed.low < rehearsed.high
    assert evaluator.rehearse(MEAN) == rehearsed


class Blind:
    """A benchmark whose real task must not be looked at."""

    def __init__(self, rehearsal):
        self.rehearsal = rehearsal

    @property
    def real(self):
        raise AssertionError("the real task was looked at")


def test_the_best_is_chosen_without_a_look_at_the_real_task(evaluator, task):
    blind = Evaluator(Blind(task), {"others": FakeCache()})
    configurations = [
        replace(MEAN, C=C, reference=reference).with_head(k=k)
        for C in (0.2, 1.0)
        for reference in (False, True)
        for k in (1, 2, 4)
    ]
    found = blind.choose_best(iter(configurations))
    figures = [evaluator.rehearse(configuration).estimate for configuration in configurations]
    assert found is configurations[int(np.argmax(figures))]
    assert len(set(figures)) > 3
    # The others can be asked for, too.
    assert isinstance(blind.is_clearly_better(found, configurations[0]), bool)
    assert set(weigh_raters(blind, found)) == set(RATERS)
    with pytest.raises(AssertionError, match="looked at"):
        blind.mark_correct(found)


def test_of_equals_the_first_is_best(evaluator):
    configurations = [MEAN, replace(MEAN), MEAN.with_head(k=4)]
    assert evaluator.choose_best(configurations) is configurations[0]
    assert evaluator.choose_best(configurations[::-1]) is configurations[-1]


def test_what_is_right_is_that_of_the_real_task(evaluator):
    real = evaluator.benchmark.real
    head = rs.ProbabilisticRanking(k=4, decay=0.5).fit(real.panel)
    test = real.test.astype(float) + setting_shift("multiclass")
    expected = head.predict(test) == real.test_label
    assert evaluator.mark_correct(MEAN).tolist() == expected.tolist()
    assert 0 < expected.sum() < 60


RIGHT = {
    "old": (5, 5, 5, 5),
    "all a little": (6, 6, 6, 6),
    "one a lot": (9, 5, 5, 4),
    "three of four": (7, 6, 6, 5),
    "not quite": (9, 4, 5, 6),
    "worse": (4, 4, 5, 4),
    "up and down": (9, 3, 8, 2),
}
"""By the setting of a configuration, how many of ten inputs it gets right, class by class."""


class Told(Evaluator):
    def predict(self, configuration, task):
        labels = task.test_label.copy()
        for name, n in zip("abcd", RIGHT[configuration.setting], strict=True):
            labels[np.flatnonzero(task.test_label == name)[n:]] = "wrong"
        return labels


@pytest.mark.parametrize("new", RIGHT)
def test_a_gain_must_exceed_its_standard_error_over_classes(new):
    labels = np.repeat(np.array(list("abcd"), "<U5"), 10)
    evaluator = Told(SimpleNamespace(rehearsal=SimpleNamespace(test_label=labels)), {})
    gain = (np.array(RIGHT[new]) - RIGHT["old"]) / 10
    expected = gain.mean() > sem(gain)
    found = evaluator.is_clearly_better(replace(MEAN, setting=new), replace(MEAN, setting="old"))
    assert found is bool(expected)
    assert found is (new in {"all a little", "three of four"})


# ---- What raters are worth


@pytest.mark.parametrize("reference", [False, True])
def test_raters_are_worth_what_they_reach_alone(evaluator, task, reference):
    configuration = replace(MEAN, reference=reference, sources={"web": 0.5})
    found = weigh_raters(evaluator, configuration)
    assert list(found) == list(RATERS)
    usual = evaluator.scores(MEAN, task, "validation") if reference else None
    for rater in RATERS:
        head = rs.ProbabilisticRanking(k=4, decay=0.5).fit(task.panel.select(rater=rater), usual)
        labels = head.predict(evaluator.scores(MEAN, task, "test"))
        shares = [np.mean(labels[task.test_label == name] == name) for name in TARGETS]
        assert found[rater] == pytest.approx(max(sum(shares) / 3 - 1 / 3, 0.01))
    assert found["eve"] < found["ann"]


def test_a_rater_who_does_worse_than_chance_keeps_a_little_weight(evaluator, task):
    """With no weight at all some targets might have no ranking left."""
    orders = [order[::-1] for order in task.panel.select(rater="ann").orders()]
    # Every target gets what is said of another.
    wrong = rs.Rankings.from_orders(
        orders[1:] + orders[:1], items=ITEMS, targets=TARGETS, raters=["liar"] * 3
    )
    benchmark = SimpleNamespace(rehearsal=replace(task, panels={"similar": wrong}))
    alone = Evaluator(benchmark, {"others": FakeCache()})
    worth = weigh_raters(alone, MEAN)["liar"]
    assert alone.rehearse(MEAN).estimate - 1 / 3 < worth == 0.01
