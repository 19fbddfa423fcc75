"""What a network itself says, and scores that are unlike those of a trained network."""

import numpy as np
import pytest

import rankshot as rs
from peak_memory import peak_of
from rankshot.recognition import check_scores

NAMES = [f"class{i:02}" for i in range(20)]


@pytest.fixture
def table(rng):
    """Scores of 60 inputs of six classes, of which the right one is mostly the highest."""
    label = np.arange(60) % 6
    values = rng.normal(size=(60, 20)) + 3 * np.eye(20)[label]
    return rs.Scores(values, NAMES), [NAMES[i] for i in label]


@pytest.mark.parametrize("kind", ["multiclass", "one-vs-rest"])
def test_numbers_are_those_of_a_slow_way(table, kind):
    scores = rs.Scores(table[0].values, NAMES, kind)
    found = check_scores(scores, [*table[1][:30], *[""] * 29, "okapi"])
    values = scores.values
    first = values.argmax(axis=1)
    assert found.n_inputs == 60
    for name, n in found.most_frequent:
        assert n == sum(NAMES[i] == name for i in first)
    assert sorted((n for _, n in found.most_frequent), reverse=True) == [
        n for _, n in found.most_frequent
    ]
    correlation = np.corrcoef(values)[np.triu_indices(60, 1)].mean()
    assert found.mean_correlation == pytest.approx(correlation)
    right = sum(NAMES[first[i]] == table[1][i] for i in range(30))
    assert found.n_labelled == 30
    assert found.accuracy.estimate == pytest.approx(right / 30)
    assert not found.doubts


def test_one_vs_one_scores_are_checked(rng):
    scores = rs.Scores(rng.normal(size=(12, 45)), NAMES[:10], "one-vs-one")
    found = check_scores(scores)
    assert (found.n_classes, found.accuracy, found.doubts) == (10, None, ())


def test_scores_that_hardly_depend_on_the_input_are_doubted(table, rng):
    scores, labels = table
    usual = rng.normal(size=20)
    same = rs.Scores(usual + 0.2 * scores.values, NAMES)
    # The order of the seen classes is another one.
    others = [NAMES[-1 - NAMES.index(name)] for name in labels]
    assert not check_scores(scores, labels).doubts
    (wrong,) = check_scores(scores, others).doubts
    (alike,) = check_scores(same).doubts
    assert "almost the same (mean correlation .9" in alike
    assert "check the preprocessing" in alike
    assert "hardly any inputs of its own classes" in wrong
    # Too few inputs, or classes, are not judged.
    assert not check_scores(same[:9]).doubts
    assert not check_scores(same.select(NAMES[:9])).doubts
    # Equal scores of a row have no direction, and raise no warning of NumPy.
    flat = rs.Scores(np.zeros((12, 20)), NAMES)
    (constant,) = check_scores(flat).doubts
    assert constant.startswith("12 of 12 inputs have the same score for all seen classes")


def test_a_network_must_recognise_twice_as_many_inputs_as_chance():
    """With ten classes, 14 % of 500 inputs are few, though more than a tenth."""
    label = np.arange(500) % 10
    right = np.arange(500) < 70
    scores = rs.Scores(np.eye(10)[np.where(right, label, (label + 1) % 10)], NAMES[:10])
    found = check_scores(scores, [NAMES[i] for i in label])
    assert found.accuracy.low > 0.1
    assert found.accuracy.high < 0.2
    assert any("hardly any inputs of its own classes" in doubt for doubt in found.doubts)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "doubted"),
    [
        (lambda x: x, False),
        (lambda x: 128 * x + 127, True),
        (lambda x: x.transpose(0, 2, 3, 1).reshape(x.shape), True),
    ],
    ids=["right", "raw pixels", "channels last"],
)
def test_the_built_in_network_with_wrong_pixels(spoil, doubted):
    from PIL import Image

    from rankshot.datasets import load_thumbnails
    from rankshot.recognition.models import open_built_in
    from rankshot.sources.names import read_class_labels

    images = load_thumbnails()[0]
    model = open_built_in()
    x = np.stack([model.preprocessing(Image.fromarray(image)) for image in images[::2]])
    values = model.run(np.ascontiguousarray(spoil(x), np.float32))
    names = read_class_labels("imagenet-1k").names
    assert bool(check_scores(rs.Scores(values, names)).doubts) is doubted


def test_a_large_table_is_checked_in_blocks():
    scores = rs.Scores(np.ones((25_000, 1000), np.float32), map(str, range(1000)))
    scores.values[:, 3] = 2
    peak, found = peak_of(lambda: check_scores(scores))
    assert "25,000 inputs" in found.describe()[0]
    assert peak < 2 * scores.values.nbytes
