"""`recognise`: one entrance for scores, models, rankings and names; what it does is `Knowledge`."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import rankshot as rs
from rankshot.zeroshot.class_rankings import only_new
from refusals import refuses

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


def test_the_other_spelling_gets_a_hint():
    with pytest.raises(AttributeError, match="recognise"):
        rs.__getattr__("recognize")


def test_rankings_alone(task):
    scores, truth, rankings, _ = task
    found = rs.recognise(scores, rankings, batch=False)
    head = rs.WeightedMean().fit(only_new(rankings))
    np.testing.assert_array_equal(found.labels, head.predict(scores))
    np.testing.assert_allclose(found.proba, head.predict_proba(scores))
    assert found.forecast is None
    assert np.mean(found.labels == truth) > 0.9
    np.testing.assert_array_equal(found.predict(scores[:5]), found.labels[:5])


def test_a_rehearsal_and_a_batch(task, tmp_path):
    scores, truth, rankings, seen = task
    found = rs.recognise(scores, rankings, reference=seen)
    known = rs.Knowledge(rankings, seen, batch=scores)
    forecast = known.rehearse(n_folds=3)
    assert found.settings == replace(forecast.settings, batch="auto")
    assert found.forecast.predicted == forecast.predicted
    np.testing.assert_array_equal(found.labels, known.fit(found.settings).predict(scores))
    assert np.mean(found.labels == truth) >= np.mean(found.alone == truth) > 0.9
    found.save(tmp_path)
    assert rs.recognition.open_run(tmp_path).predicted == forecast.predicted
    assert rs.recognise(scores, rankings, reference=seen, rehearse=False).forecast is None
    # Labels are not needed for a reference.
    alone = rs.recognise(scores, rankings, reference=seen[0], batch=False)
    head = rs.WeightedMean().fit(only_new(rankings), reference=seen[0])
    np.testing.assert_array_equal(alone.labels, head.predict(scores))


def test_examples_and_none_of_these(task):
    scores, truth, rankings, seen = task
    examples = scores[::10], truth[::10]
    found = rs.recognise(scores, rankings, examples=examples, batch=False)
    head = rs.WeightedMean().fit(only_new(rankings), examples=examples)
    np.testing.assert_allclose(found.proba, head.predict_proba(scores))
    together = rs.recognise(scores, rankings, reference=seen, classes="all", none=True)
    np.testing.assert_array_equal(together.alone, together.labels)
    assert {*together.head.classes_} == {*NAMES, "x", "y", "z", "none of these"}


def test_all_forms_of_rankings_and_scores_give_one_result(task, tmp_path):
    scores = task[0]
    lists = {"x": NAMES[2:9], "y": NAMES[9:15], "z": NAMES[16:22]}
    rankings = rs.Rankings.from_orders(list(lists.values()), items=NAMES, targets=list(lists))
    wanted = rs.recognise(scores, rankings, batch=False).proba
    rs.write_rankings(rankings, tmp_path / "rankings.jsonl")
    frame = pd.DataFrame(scores.values[:, ::-1], columns=NAMES[::-1])
    frame.to_csv(tmp_path / "scores.csv", index_label="id")
    for table in (scores, frame, str(tmp_path / "scores.csv")):
        for given in (rankings, lists, tmp_path / "rankings.jsonl"):
            found = rs.recognise(table, given, batch=False)
            np.testing.assert_allclose(found.proba, wanted, atol=1e-9)
    found = rs.recognise(scores.values, lists, seen=NAMES, batch=False)
    np.testing.assert_allclose(found.proba, wanted, atol=1e-9)
    with refuses("scores", "ndarray"):
        rs.recognise(scores.values, lists)
    by_two = {name: [order, order[::-1]] for name, order in lists.items()}
    assert rs.recognise(scores, by_two, raters=["p", "q"]).knowledge.rankings.rater_names


def test_labels_of_inputs_in_tables_and_by_id(task, tmp_path):
    scores, truth, rankings, seen = task
    wanted = rs.recognise(scores, rankings, examples=(scores[:3], truth[:3]), batch=False).proba
    frame = pd.DataFrame(scores.values[:3], columns=NAMES)
    frame.insert(0, "label", truth[:3])
    frame.to_csv(tmp_path / "few.csv", index=False)
    pd.DataFrame({"id": ["0", "1", "2", "3"], "label": [*truth[:3], None]}).to_csv(
        tmp_path / "labels.csv", index=False
    )
    by_id = dict(zip("012", truth[:3].tolist(), strict=True))
    for examples in (frame, tmp_path / "few.csv", tmp_path / "labels.csv", by_id):
        found = rs.recognise(scores, rankings, examples=examples, batch=False)
        np.testing.assert_allclose(found.proba, wanted, atol=1e-9)
    # Inputs are predicted whether they have a label or not.
    frame["label"] = ["x", "", "y"]
    assert len(rs.recognise(frame, rankings, batch=False).labels) == 3
    assert rs.recognise(scores, rankings, examples=frame).knowledge.examples[1].tolist() == [
        "x",
        "y",
    ]
    with refuses("examples", "nobody"):
        rs.recognise(scores, rankings, examples={"nobody": "x"})
    with refuses("examples"):
        rs.recognise(scores, rankings, examples=scores[:3])
    with refuses("reference", (3,)):
        rs.recognise(scores, rankings, reference=(seen[0], truth[:3]))


def test_names_are_ranked_by_sources():
    scores = rs.Scores([[3.0, 0.0, 1.0], [0.0, 3.0, 1.0]], ["leopard", "bus", "daisy"])
    table = rs.Similarity([[0.0, 1.0, 0.1], [1.0, 0.0, 0.1]], ["cat", "truck"], scores.items)

    class Opposite:
        def similarity(self, targets, items):
            return table.select(targets, items)

    for source in (None, "wordnet", ["wordnet:path"]):
        found = rs.recognise(scores, ["cat", "truck"], source=source)
        assert found.labels.tolist() == ["cat", "truck"]
    found = rs.recognise(scores, ["cat", "truck"], source=Opposite())
    assert found.labels.tolist() == ["truck", "cat"]
    with refuses("source", "wordnett"):
        rs.recognise(scores, ["cat"], source="wordnett")
    with refuses("source"):
        rs.recognise(scores, {"cat": ["leopard"]}, source="wordnet")


def test_an_unknown_name_does_not_stop_the_others(tmp_path):
    scores = rs.Scores([[4.0, 0.5], [0.5, 4.0]], ["bus", "leopard"])
    (tmp_path / "new.txt").write_text("cat\ntruck\nzzyzx\n")
    found = rs.recognise(scores, tmp_path / "new.txt")
    assert found.labels.tolist() == ["truck", "cat"]
    assert any("'zzyzx'" in note for note in found.notes)
    with refuses("new", "caat") as caught:
        rs.recognise(scores, ["caat", "zzyzx"])
    assert "'zzyzx'" in caught.value.rule
    with refuses("model"):
        rs.recognise(tmp_path / "new.txt", ["cat"])
    with refuses("new", "nowhere.jsonl"):
        rs.recognise(scores, "nowhere.jsonl")


def test_a_budget_needs_a_reference_and_both_kinds_of_classes(task):
    scores, _, rankings, seen = task
    with refuses("seen_loss", 0.02):
        rs.recognise(scores, rankings, classes="all", seen_loss=0.02)
    with refuses("seen_loss", 0.02):
        rs.recognise(scores, rankings, reference=seen, seen_loss=0.02)
    both = {"classes": "all", "seen_loss": 0.02, "batch": False}
    for reference in (seen, (seen[0], None)):
        found = rs.recognise(scores, rankings, reference=reference, **both)
        assert found.settings.seen_loss == 0.02
        assert {*found.head.classes_} == {*NAMES, "x", "y", "z"}


def test_a_budget_needs_ten_inputs_and_says_how_many_there_are(task):
    scores, _, rankings, (seen, labels) = task
    both = {"classes": "all", "seen_loss": 0.02}
    for n in (1, 9):
        with refuses("reference", n):
            rs.recognise(scores, rankings, reference=(seen[:n], labels[:n]), **both)
    found = rs.recognise(scores, rankings, reference=(seen[:10], labels[:10]), **both)
    assert not {*found.labels} & {*"xyz"}
    # The inputs themselves can limit what is predicted as new.
    found = rs.recognise(scores, rankings, reference=(seen[:9], labels[:9]), batch=True, **both)
    assert found.knowledge.reference is None


def test_a_scikit_learn_pipeline_and_texts():
    texts = ["a song", "one more song", "ring the bell", "the bell rings"]
    model = make_pipeline(CountVectorizer(), LogisticRegression())
    model.fit(texts, ["music", "music", "alarm", "alarm"])
    new = {"volume": ["music"], "timer": ["alarm"]}
    found = rs.recognise(["a loud song", "a bell"], new, model=model)
    assert found.labels.tolist() == ["volume", "timer"]
    assert found.inputs.values == ["a loud song", "a bell"]
    assert found.predict(["song"]).tolist() == ["volume"]
    frame = found.to_frame()
    assert frame["id"].tolist() == ["0", "1"]
    assert frame["P(volume)"].tolist() == pytest.approx(found.proba[:, 1])
    assert "<td>volume</td>" in found._repr_html_()
