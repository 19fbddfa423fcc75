"""The peers, tuned on a made rehearsal: their rows by hand."""

import numpy as np
import pytest
from reproduction.benchmark import Benchmark
from reproduction.classifiers import LinearClassifier, train_classifier
from reproduction.features import ImageData
from reproduction.peer_comparison import (
    CONSE_GRID,
    ESZSL_GRID,
    UNCHANGED,
    UNIT,
    PeerTrial,
    choose_best_trial,
    expand_grid,
    format_setting,
    peer_methods,
    peer_table,
    prepare_task,
    try_settings,
)
from reproduction.peers.attributes import IAP

import rankshot as rs
from rankshot.core.errors import RankshotError
from rankshot.sources.class_vectors import ClassVectors

SEEN = tuple("abcdefghijkl")
UNSEEN = ("cow", "elk", "yak")
PLAYING = ("d", "h", "l")


def make_benchmark(attributes=True):
    """Features are a noisy image of the vectors of the classes, with a mean of their own."""
    rng = np.random.default_rng(20150701)
    names = SEEN + UNSEEN
    words = rng.normal(size=(len(names), 4))
    answers = np.column_stack([words > 0, words[:, :3] > 0.5]).astype(float)
    to_features = rng.normal(size=(4, 6))

    def part(classes, n):
        labels = np.repeat(classes, n)
        code = [names.index(label) for label in labels]
        X = words[code] @ to_features + rng.normal(scale=1.5, size=(len(code), 6)) + 2.0
        return X.astype(np.float32), labels

    images = ImageData(
        "made",
        *part(SEEN, 20),
        *part(SEEN, 4),
        *part(UNSEEN, 30),
        seen_classes=SEEN,
        new_classes=UNSEEN,
        attributes=ClassVectors(names, answers, "attributes") if attributes else None,
    )
    items = [name for name in SEEN if name not in PLAYING]
    panel, held_out = (
        rs.Rankings.from_orders([list(of[:3])] * 3, items=of, targets=list(targets))
        for of, targets in ((SEEN, UNSEEN), (items, PLAYING))
    )
    vectors = ClassVectors(names, words, "words")
    return Benchmark(images, {}, {"similar": panel}, {"similar": held_out}, vectors)


@pytest.fixture(scope="module")
def benchmark():
    return make_benchmark()


@pytest.fixture(scope="module")
def classifiers(benchmark):
    return tuple(
        train_classifier("multiclass", 1.0, task.train, task.train_label)
        for task in (benchmark.rehearsal, benchmark.real)
    )


@pytest.fixture(scope="module")
def said():
    return []


@pytest.fixture(scope="module")
def table(benchmark, classifiers, said):
    return peer_table(benchmark, *classifiers, said.append)


# ---- By hand


def prepared(task, kind):
    train, test = task.train.astype(float), task.test.astype(float)
    if kind == UNIT:
        train, test = (np.array([x / np.sqrt(x @ x) for x in X]) for X in (train, test))
    mean = sum(train) / len(train)
    size = np.sqrt(np.mean([(x - mean) @ (x - mean) for x in train]))
    return (train - mean) / size, (test - mean) / size


def mean_class(truth, found):
    return np.mean([(found[truth == name] == name).mean() for name in np.unique(truth)])


def eszsl(task, vectors, setting):
    """The formula of the paper, with inverses."""
    X, T = prepared(task, setting["features"])
    classes = np.unique(task.train_label)
    S, of_targets = (
        np.array([v / np.sqrt(v @ v) for v in vectors.select(names).values])
        for names in (classes, task.targets)
    )
    Y = np.where(task.train_label[:, None] == classes, 1.0, -1.0)
    left = np.linalg.inv(X.T @ X + setting["feature_penalty"] * np.eye(X.shape[1]))
    right = np.linalg.inv(S.T @ S + setting["vector_penalty"] * np.eye(S.shape[1]))
    scores = T @ left @ X.T @ Y @ S @ right @ of_targets.T
    return np.array(task.targets)[scores.argmax(axis=1)]


@pytest.mark.parametrize("source", ["words", "attributes"])
def test_eszsl_is_tuned_on_the_rehearsal_and_judged_on_the_new(benchmark, table, source):
    vectors = benchmark.vectors if source == "words" else benchmark.attributes
    task = benchmark.rehearsal
    accuracies = [
        mean_class(task.test_label, eszsl(task, vectors, setting))
        for setting in expand_grid(ESZSL_GRID)
    ]
    best = expand_grid(ESZSL_GRID)[int(np.argmax(accuracies))]
    right = eszsl(benchmark.real, vectors, best) == benchmark.real.test_label
    _, setting, rehearsal, accuracy, by_class = table.row("ESZSL", source)
    assert setting == format_setting(best)
    assert rehearsal == pytest.approx(max(accuracies))
    assert min(accuracies) < max(accuracies)
    assert accuracy.estimate == pytest.approx(right.mean())
    assert by_class.estimate == pytest.approx(right.mean())  # classes of one size
    assert accuracy.low < accuracy.estimate < accuracy.high


def conse(task, vectors, classifier, n):
    logits = task.test @ classifier.coef.T + classifier.intercept
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    unit = {name: v / np.sqrt(v @ v) for name, v in zip(vectors.names, vectors.values, strict=True)}
    found = []
    for row in proba:
        best = np.argsort(-row)[:n]
        place = sum(row[i] * unit[classifier.classes[i]] for i in best)
        found.append(max(task.targets, key=lambda name: place @ unit[name]))
    return np.array(found)


def test_conse_is_tuned_and_judged_without_training(benchmark, table, classifiers):
    task = benchmark.rehearsal
    accuracies = {
        n: mean_class(task.test_label, conse(task, benchmark.vectors, classifiers[0], n))
        for n in CONSE_GRID["n_classes"]
    }
    best = max(accuracies, key=lambda n: accuracies[n])
    right = (
        conse(benchmark.real, benchmark.vectors, classifiers[1], best) == benchmark.real.test_label
    )
    trains, setting, rehearsal, accuracy, _ = table.row("ConSE", "words")
    assert (trains, setting) == ("nothing", f"n classes {best}")
    assert rehearsal == pytest.approx(accuracies[best])
    assert accuracy.estimate == pytest.approx(right.mean())


def test_iap_has_nothing_to_tune(benchmark, table, classifiers):
    attributes = benchmark.attributes
    figures = []
    for task, classifier in zip((benchmark.rehearsal, benchmark.real), classifiers, strict=True):
        fitted = IAP().fit(attributes.select(task.items))
        found = fitted.predict(classifier.scores(task.test), attributes.select(task.targets))
        figures.append(mean_class(task.test_label, found))
    trains, setting, rehearsal, _, by_class = table.row("IAP", "attributes")
    assert (trains, setting) == ("nothing", "none")
    assert (rehearsal, by_class.estimate) == pytest.approx(figures)


def test_every_method_has_its_best_trial(benchmark, table, classifiers):
    arena = prepare_task(benchmark.rehearsal, classifiers[0])
    for one in peer_methods(benchmark):
        tried = list(try_settings(one, arena))
        assert [trial.setting for trial in tried] == list(one.settings)
        _, setting, rehearsal, *_ = table.row(one.method, one.vectors)
        assert rehearsal == max(trial.accuracy for trial in tried)
        first = next(trial for trial in tried if trial.accuracy == rehearsal)
        assert setting == format_setting(first.setting)


# ---- The table


def test_rows_and_progress(table, said):
    rows = [row[:2] for row in table.rows]
    assert rows == [
        *(("ESZSL", "words"), ("SAE", "words"), ("VectorRegression", "words")),
        ("ConSE", "words"),
        *(("ESZSL", "attributes"), ("SAE", "attributes"), ("DAP", "attributes")),
        ("IAP", "attributes"),
    ]
    assert [text.split()[0] for text in said] == ["tuning"] * 8 + ["testing"] * 8
    assert "DAP with attributes, 3 settings" in said[6]
    assert "of 12 seen classes, 9 to train on and 3 that play new ones" in table.notes[0]
    assert "The panel's rankings cannot replace class vectors" in table.notes[2]


def test_without_attributes_methods_that_need_them_are_left_out():
    methods = [one.method for one in peer_methods(make_benchmark(attributes=False))]
    assert methods == ["ESZSL", "SAE", "VectorRegression", "ConSE"]


def test_new_labels_choose_nothing(benchmark, table, classifiers):
    data = benchmark.data
    turned = np.roll(data.new_label, 30)
    other = ImageData(**{**vars(data), "new_label": turned})
    again = peer_table(
        Benchmark(other, {}, benchmark.panels, benchmark.held_out_panels, benchmark.vectors),
        *classifiers,
        str,
    )
    for row, changed in zip(table.rows, again.rows, strict=True):
        assert row[:5] == changed[:5]
    assert any(row[5] != changed[5] for row, changed in zip(table.rows, again.rows, strict=True))


def test_of_equal_trials_the_first_is_taken():
    tried = [PeerTrial({"a": 1}, 0.3), PeerTrial({"a": 2}, 0.7), PeerTrial({"a": 3}, 0.7)]
    assert choose_best_trial(tried).setting == {"a": 2}


def test_features_are_centred_by_what_is_trained_on(benchmark, classifiers):
    arena = prepare_task(benchmark.real, classifiers[1])
    for kind in (UNCHANGED, UNIT):
        train, test = arena.features[kind]
        np.testing.assert_allclose(train.mean(axis=0), 0, atol=1e-12)
        assert (train**2).sum(axis=1).mean() == pytest.approx(1)
        for found, expected in zip((train, test), prepared(benchmark.real, kind), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
        assert np.abs(test.mean(axis=0)).max() > 0.01


def test_other_classifiers_are_refused(benchmark, classifiers):
    rehearsed, real = classifiers
    separate = LinearClassifier("one-vs-rest", real.classes, real.coef, real.intercept)
    with pytest.raises(
        RankshotError, match=r"real_classifier must be a multiclass .* not one-vs-rest"
    ):
        peer_table(benchmark, rehearsed, separate, str)


def test_inputs_that_are_all_the_same_are_refused(benchmark, classifiers):
    data = benchmark.data
    same = ImageData(**{**vars(data), "seen_train": np.ones_like(data.seen_train)})
    flat = Benchmark(same, {}, benchmark.panels, benchmark.held_out_panels, benchmark.vectors)
    with pytest.raises(RankshotError, match="all 240 training inputs are the same"):
        prepare_task(flat.real, classifiers[1])
