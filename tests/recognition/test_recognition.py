"""`recognise`: the steps that it takes are those of the other functions."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import rankshot as rs
from rankshot.ranking.matrices import restrict_items
from rankshot.zeroshot.class_rankings import only_new
from rankshot.zeroshot.remarks import EXPECTED

NAMES = [f"s{i:02}" for i in range(24)]
PLACES = np.arange(24)


def make_scores(rng, places, n=20):
    """Classes on a line, as a network sees them."""
    where = np.repeat(places, n)
    return rs.Scores(-abs(where[:, None] - PLACES) + rng.normal(size=(len(where), 24)), NAMES)


def rank(places, names):
    near = -abs(np.array(places)[:, None] - PLACES).astype(float)
    return rs.Similarity(near, names, NAMES, source="line").to_rankings()


@pytest.fixture
def task(rng):
    places = [2.5, 9.5, 16.5]
    rankings = rs.Rankings.concatenate([rank(places, ["x", "y", "z"]), rank(PLACES, NAMES)])
    seen = make_scores(rng, PLACES, 10), np.repeat(NAMES, 10)
    return make_scores(rng, places), np.repeat(["x", "y", "z"], 20), rankings, seen


def test_rankings_alone(task):
    scores, truth, rankings, _ = task
    found = rs.recognise(scores, rankings, batch=False)
    head = rs.WeightedMean().fit(only_new(rankings))
    np.testing.assert_array_equal(found.labels, head.predict(scores))
    np.testing.assert_allclose(found.proba, head.predict_proba(scores))
    assert found.predicted is found.forecast is None
    assert np.mean(found.labels == truth) > 0.9


@pytest.mark.parametrize(
    ("source", "note"),
    [
        (None, "rankings: without the names of sources or raters"),
        # A person may have written them.
        ("my own", "rankings: by 'my own'"),
        (
            "wordnet-path",
            f"rankings: by 'wordnet-path', without people or language models: {EXPECTED}",
        ),
    ],
)
def test_only_tables_are_called_worse_than_a_language_model(source, note):
    rankings = rs.Rankings.from_orders(
        [["a"], ["b"]], items=["a", "b"], targets=["x", "y"], sources=source
    )
    found = rs.recognise(rs.Scores([[4.0, 0.5]], ["a", "b"]), rankings)
    assert found.notes[0] == note


def test_a_rehearsal_and_a_batch(task):
    scores, _, rankings, seen = task
    found = rs.recognise(scores, rankings, rehearse=seen)
    rehearsal = rs.Rehearsal(n_folds=3).fit(*seen, rankings)
    head = rehearsal.fit_head(rankings)
    np.testing.assert_array_equal(found.alone, head.predict(scores))
    refined = rs.BatchRefinement(head).fit(scores)
    np.testing.assert_array_equal(found.labels, refined.predict(scores))
    assert found.predicted == rehearsal.predict_accuracy(rankings)
    assert any("classified jointly" in note for note in found.notes)
    assert not any("few for a rehearsal" in note for note in found.notes)


def test_inputs_of_other_classes_are_noticed(task, rng):
    scores, truth, rankings, seen = task
    # The new classes are at 2.5, 9.5 and 16.5.
    others = make_scores(
        rng, np.array([5.5, 6, 6.5, 12.5, 13, 13.5, 20, 20.5, 21, 21.5, 22, 22.5]), 5
    )
    mixed = rs.Scores(np.concatenate([scores.values, others.values]), NAMES)
    sentence = "of the inputs seem to be of none of the new classes"
    found = rs.recognise(mixed, rankings, rehearse=seen)
    [note] = [note for note in found.notes if sentence in note]
    assert 0.3 < int(note.split("about ")[1].split("%")[0]) / 100 < 0.7
    # They do not mislead the others.
    own = slice(len(truth))
    assert np.mean(found.labels[own] == truth) >= np.mean(found.alone[own] == truth) - 0.01
    assert sentence not in " ".join(rs.recognise(scores, rankings, rehearse=seen).notes)


def test_examples_and_none_of_these(task):
    scores, truth, rankings, seen = task
    examples = scores[::10], truth[::10]
    found = rs.recognise(scores, rankings, examples=examples, none=True)
    head = rs.WeightedMean().fit(only_new(rankings), examples=examples)
    both = rs.SeenAndNew(head, seen=False).fit()
    np.testing.assert_allclose(found.proba, both.predict_proba(scores))
    # Inputs of the new classes are told from those of seen classes.
    positive, negative = (1 - both.predict_proba(x)[:, 0] for x in (scores, seen[0]))
    assert np.mean(positive[:, None] > negative) > 0.7
    together = rs.recognise(scores, rankings, rehearse=seen, classes="all", none=True)
    assert {*together.head.classes_} == {*NAMES, "x", "y", "z", "none of these"}


def test_names_are_ranked_by_sources():
    scores = rs.Scores([[3.0, 0.0, 1.0], [0.0, 3.0, 1.0]], ["leopard", "bus", "daisy"])
    table = rs.Similarity([[0.0, 1.0, 0.1], [1.0, 0.0, 0.1]], ["cat", "truck"], scores.items)

    class Opposite:
        def similarity(self, targets, items):
            return table.select(targets, items)

    assert rs.recognise(scores, ["cat", "truck"]).labels.tolist() == ["cat", "truck"]
    assert rs.recognise(scores, ["cat", "truck"], source=Opposite()).labels.tolist() == [
        "truck",
        "cat",
    ]
    with pytest.raises(rs.RankshotError, match="without a model, inputs must be Scores"):
        rs.recognise("photos/", ["cat", "truck"])


def test_rankings_may_be_a_dict_and_scores_a_table():
    f, names = np.array([[4.0, 0.5, 0.0], [0.0, 0.5, 3.0]]), ["bus", "fox", "leopard"]
    lists = {"cat": ["leopard", "fox"], "truck": ["bus"]}
    rankings = rs.Rankings.from_orders(lists.values(), items=names, targets=list(lists))
    found = rs.recognise(rs.Scores(f, names), lists)
    np.testing.assert_array_equal(found.labels, ["truck", "cat"])
    with_seen = rs.recognise(rs.Scores(f, names), lists | {"fox": ["leopard"]})
    assert any("rankings of 'fox' are left out" in note for note in with_seen.notes)
    assert not any("left out" in note for note in found.notes)
    turned = {"cat": ["bus"], "truck": ["leopard", "fox"]}
    assert rs.recognise(rs.Scores(f, names), turned).labels.tolist() == ["cat", "truck"]
    frame = pd.DataFrame(f[:, ::-1], columns=names[::-1])
    for table in (f, frame):
        np.testing.assert_array_equal(rs.recognise(table, rankings).proba, found.proba)
    with pytest.raises(rs.RankshotError, match=r"must be Scores, as in .* not DataFrame"):
        rs.recognise(frame, lists)


def test_a_class_that_no_source_knows_is_an_error():
    scores = rs.Scores([[4.0, 0.5], [0.5, 4.0]], ["bus", "leopard"])
    with pytest.raises(rs.RankshotError, match=r"no source knows 'caat'; 'caat' may be 'cat'\."):
        rs.recognise(scores, ["caat", "truck"])
    found = rs.recognise(scores, ["caat", "truck"], examples=(scores[1:], ["caat"]))
    assert found.head.classes_.tolist() == ["caat", "truck"]


def test_most_seen_classes_are_left_in_a_rehearsal(rng):
    """Of 12 classes, two groups of six were held out, and half of the network was missing."""
    names = NAMES[:12]
    scores = make_scores(rng, PLACES[:12], 10).select(names)
    rankings = rs.Rankings.concatenate([rank([2.5, 9.5], ["x", "y"]), rank(PLACES, NAMES)])
    rankings = rankings[np.isin(rankings.targets, ["x", "y", *names])]
    rankings = restrict_items(rankings, names)
    found = rs.recognise(scores, rankings, rehearse=(scores, np.repeat(names, 10)))
    assert [len(classes) for classes, _ in found.forecast.trials[0].correlations] == [4] * 3


def test_what_cannot_be_told_apart_is_noted():
    names = ["bus", "fox", "leopard"]
    lists = {"cat": ["leopard", "fox"], "kitten": ["leopard", "fox"], "truck": ["bus"]}
    scores = rs.Scores([[0.0, 0.5, 3.0], [0.1, 0.1, 0.1], [4.0, 0.0, 1.0]], names)
    found = rs.recognise(scores, lists)
    notes = "\n".join(found.notes)
    assert "warning: the rankings of 'cat', 'kitten' are the same in all places" in notes
    assert "warning: 1 of 3 inputs have the same score for all seen classes" in notes
    # The rule for ties is that of the head.
    np.testing.assert_array_equal(found.labels, found.head.predict(scores))
    lists["kitten"] = ["fox"]
    assert not any("warning" in note for note in rs.recognise(scores[[0, 2]], lists).notes)


def test_labels_are_those_of_the_head_where_classes_tie(rng):
    """Probabilities that differ by rounding only are equal: the same lists in another order."""
    names = [f"s{i}" for i in range(6)]
    lists = [rng.permutation(names)[:4].tolist() for _ in range(12)]
    targets = [f"a{i // 3}" for i in range(12)] + [f"b{i // 3}" for i in reversed(range(12))]
    rankings = rs.Rankings.from_orders(lists + lists[::-1], items=names, targets=targets)
    scores = rs.Scores(rng.normal(size=(500, 6)), names)
    found = rs.recognise(scores, rankings, batch=False)
    np.testing.assert_array_equal(found.labels, found.head.predict(scores))
    assert (found.labels != found.head.classes_[found.proba.argmax(axis=1)]).any()


def test_examples_are_compared_by_the_features_of_the_model(rng):
    """Unless this is not wanted."""
    X, y = rng.normal(size=(60, 5)), np.arange(60) % 3
    model = LogisticRegression().fit(X + 2 * np.eye(3, 5)[y], np.array(["a", "b", "c"])[y])
    lists = {"p": ["a"], "q": ["b", "c"]}
    inputs, examples = X[:20], (X[20:24], ["p", "q", "p", "q"])
    found = rs.recognise(inputs, lists, model=model, examples=examples)
    assert found.head.n_features_ == 5
    plain = rs.recognise(inputs, lists, model=model, examples=examples, features=False)
    assert plain.head.n_features_ == 0
    assert any("compared by their scores; " in note for note in plain.notes)
