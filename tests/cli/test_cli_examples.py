"""``rankshot suggest``, ``--examples`` and ``--evidence``: what the commands add to rankings."""

import csv
from pathlib import Path

import numpy as np
import pytest

import rankshot as rs
from command_line import (
    IDS,
    LOGITS,
    SEEN,
    TARGETS,
    USUAL,
    check_refused,
    rankings,
    rankshot,
    read_csv,
    run_well,
    softmax,
    write_scores,
)
from rankshot.zeroshot import read_predictions, suggest
from rankshot.zeroshot.files import score_tables
from rankshot.zeroshot.files.score_tables import open_scores, write_score_table

CLASSIFY = "classify scores.csv --rankings rankings.jsonl -o out.csv"
LABELS = "id,guess,probability,label\nx1,cat,.9,cat\nx2,cat,.5,dog\nx5,cat,.5,\nx3,dog,.4,truck\n"
EVIDENCE = np.array([[2, 0, 0], [1, 3, 0], [0, 1, 2], [0, 0, 3], [3, 1, 1], [1, 1, 2], [2, 1, 0.5]])
MODEL = rs.Scores(LOGITS, SEEN, evidence=rs.Scores(EVIDENCE, TARGETS))


@pytest.fixture
def folder(folder):
    (folder / "labels.csv").write_text(LABELS)
    # Its rows and columns are in another order, and there is evidence of other inputs.
    order = [6, 0, 2, 1, 3, 5, 4]
    table = np.vstack([EVIDENCE[order][:, ::-1], np.ones((2, 3))])
    ids = [*(IDS[i] for i in order), "y1", "y2"]
    write_scores(folder / "evidence.parquet", table, TARGETS[::-1], ids)
    write_scores(folder / "evidence.csv", table, TARGETS[::-1], ids)
    return folder


def examples():
    return LOGITS[[0, 1, 2]], ["cat", "dog", "truck"]


def write_labelled(path, values, labels):
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["label", *SEEN])
        writer.writerows([label, *row] for label, row in zip(labels, values.tolist(), strict=True))


# ---- Examples and evidence


@pytest.mark.parametrize("with_evidence", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_examples_and_evidence_count_as_in_python(folder, own, with_evidence):
    write_labelled(folder / "own.csv", *examples())
    words = f"--examples {'own' if own else 'labels'}.csv"
    words += " --evidence evidence.parquet" * with_evidence
    given = {"evidence": MODEL} if with_evidence else {}
    head = rs.WeightedMean().fit(rankings(), reference=USUAL, examples=examples(), **given)
    words = f"{CLASSIFY} --reference usual.csv {words}"
    done = run_well(words.replace("out.csv", "out.parquet"))
    expected = head.predict_proba(MODEL)
    np.testing.assert_allclose(read_predictions("out.parquet").proba, expected, rtol=1e-9)
    facts = head.examples_
    assert (
        "examples: 3, compared by their scores; their scores follow the rankings with a slope of "
        f"{facts.slope:.2f} " in done
    )
    assert f"share {facts.signal:.2f} of their variation\n" in done
    n_classes = len({*np.asarray(USUAL).argmax(axis=1).tolist()})
    found = f"{len(USUAL)} inputs, which the model assigns to {n_classes} of the {len(SEEN)} seen"
    assert f"reference: {found} classes, {len(USUAL) / n_classes:.0f} each on average" in done
    if with_evidence:
        assert f"evidence: weight {head.evidence_weight_:.2f} relative to the rankings" in done


@pytest.mark.slow
def test_a_saved_head_explains_and_exports_what_was_added(folder):
    words = "--rankings rankings.jsonl --examples labels.csv --evidence evidence.csv"
    classify = run_well(f"classify scores.csv {words} --set evidence_weight=.5 -o full.csv")
    assert "evidence: weight 0.50" in classify
    run_well(f"fit --seen scores.csv {words} --set evidence_weight=.5 -o head.rankshot")
    saved = "--head head.rankshot --evidence evidence.csv"
    run_well(f"classify scores.csv {saved} -o short.csv")
    assert Path("short.csv").read_bytes() == Path("full.csv").read_bytes()
    shown = run_well(f"explain scores.csv {saved} --id x2 --against cat")
    why = rs.explain(rs.load_head("head.rankshot"), MODEL[1:2], against="cat")[0]
    assert str(why) in shown
    for text in ("by the rankings alone: ", "labelled examples: ", "evidence: "):
        assert text in shown
    described = run_well("head head.rankshot")
    assert "evidence" in described
    assert "weight 0.50; each input needs it" in described
    exported = run_well("export head.rankshot -o head.onnx")
    names = "'cat', 'dog', 'truck'"
    assert f"the last columns of the input 'features' are the evidence of {names}" in exported
    run_well(f"report short.csv --scores scores.csv {saved} -o out.html")


def test_features_of_a_table_are_what_examples_are_compared_by(folder):
    features = np.random.default_rng(0).normal(size=(7, 4)).astype(np.float32)
    inputs = rs.Scores(LOGITS, SEEN, features=features)
    write_score_table(folder / "features.parquet", SEEN, [(IDS, inputs)])
    words = CLASSIFY.replace("scores.csv", "features.parquet")
    done = run_well(f"{words} --examples labels.csv")
    assert "examples: 3, compared by 4 features; their scores follow " in done
    head = rs.WeightedMean().fit(rankings(), examples=(inputs[:3], examples()[1]))
    expected = head.predict_proba(inputs)
    np.testing.assert_allclose(read_predictions("out.csv").proba, expected, rtol=1e-6)
    head.save(folder / "h.rankshot")
    run_well("classify features.parquet --head h.rankshot -o saved.csv")
    np.testing.assert_allclose(read_predictions("saved.csv").proba, expected, rtol=1e-6)
    assert rankshot("classify scores.csv --head h.rankshot -o o.csv").status == 2


def test_probabilities_are_evidence_as_well(folder):
    write_scores(folder / "evidence.csv", softmax(EVIDENCE), TARGETS)
    done = run_well(f"{CLASSIFY} --evidence evidence.csv")
    assert "evidence.csv: the evidence is interpreted as probabilities" in done
    by_logits = rs.WeightedMean().fit(rankings(), evidence=MODEL).predict_proba(MODEL)
    np.testing.assert_allclose(read_predictions("out.csv").proba, by_logits, rtol=1e-6)


def test_all_classes_need_evidence_of_the_reference(folder):
    words = f"{CLASSIFY} --classes all --evidence evidence.csv --reference usual.csv"
    done = rankshot(words)
    assert "evidence.csv: evidence is missing for 40 of the 40 inputs in usual.csv" in done.err
    words = f"{CLASSIFY} --classes all --evidence evidence.csv --examples labels.csv"
    run_well(words.replace("out.csv", "out.parquet"))
    new = read_predictions("out.parquet")
    head = rs.WeightedMean().fit(rankings(), reference=None, examples=examples(), evidence=MODEL)
    np.testing.assert_allclose(new.proba, rs.SeenAndNew(head).fit().predict_proba(MODEL), rtol=1e-9)


def test_a_class_without_a_ranking_is_known_by_its_examples(folder):
    (folder / "labels.csv").write_text("id,label\nx1,cat\nx3,excavator\n")
    done = run_well(f"{CLASSIFY} --examples labels.csv")
    assert "examples: these classes have examples but no ranking: 'excavator'" in done
    assert read_predictions("out.csv").targets == ("cat", "dog", "excavator", "truck")


# ---- suggest


@pytest.mark.parametrize("of", ["scores", "predictions"])
def test_suggest_writes_a_table_that_examples_reads(folder, of):
    words = "suggest scores.csv --rankings rankings.jsonl"
    run_well(CLASSIFY)
    if of == "predictions":
        words = "suggest out.csv"
    done = run_well(f"{words} -n 3 -o todo.csv")
    assert "3 inputs to label in todo.csv" in done
    rows = read_csv("todo.csv")
    assert list(rows[0]) == ["id", "guess", "probability", "label"]
    head = rs.WeightedMean().fit(rankings())
    if of == "scores":
        found = suggest(head, LOGITS, 3)
        assert [row["id"] for row in rows] == [IDS[i] for i in found.rows]
    best = {row["id"]: row for row in rows}
    for i, proba in zip(IDS, head.predict_proba(LOGITS), strict=True):
        if i in best:
            assert best[i]["guess"] == TARGETS[proba.argmax()]
            assert float(best[i]["probability"]) == pytest.approx(proba.max(), abs=5e-4)
    text = Path("todo.csv").read_text()
    check_refused(folder, f"{CLASSIFY} --examples todo.csv", {}, "todo.csv: no label is filled in")
    Path("todo.csv").write_text(text.replace(",\n", ",cat\n", 1))
    run_well(f"{CLASSIFY} --examples todo.csv")
    done = run_well(f"{words} -n 9 -o more.csv --examples todo.csv")
    assert "6 inputs to label in more.csv" in done
    more = read_csv("more.csv")
    assert [row["label"] for row in more] == ["cat", *[""] * 6]
    assert len({row["id"] for row in more}) == 7


# ---- Bad input


def labels(*rows):
    return {"labels.csv": "\n".join(["id,label", *rows]) + "\n"}


def table(header, *rows):
    return {"evidence.csv": "\n".join([header, *rows]) + "\n"}


EXAMPLES = f"{CLASSIFY} --examples labels.csv"
WITH_EVIDENCE = f"{CLASSIFY} --evidence evidence.csv"
FIT = "fit --rankings rankings.jsonl --seen seen.txt -o h.rankshot"
NAMES = {"seen.txt": "\n".join(SEEN)}
PREDICTIONS = {"predictions.csv": "id,label,probability,P(cat)\nx1,cat,1,1\n"}
WRONG = [
    (EXAMPLES, labels("x1,cat", "x2,trukc"), "labels.csv:3: unknown class 'trukc' (did you "),
    (EXAMPLES, labels("x1,tiger"), "labels.csv:2: 'tiger' is a seen class, and examples are inp"),
    (EXAMPLES, labels("x1,cat", "x2,cat", "x1,dog"), "labels.csv:4: the input 'x1' is 'dog' her"),
    (EXAMPLES, labels("x1,cat", "z9,dog"), "labels.csv:3: 'z9' not found in scores.csv;"),
    (EXAMPLES, labels(",cat"), "labels.csv:2: the id is empty"),
    (EXAMPLES, labels("x1,"), "labels.csv: no label is filled in; write the classes of some"),
    (EXAMPLES, {"labels.csv": "id,klass\nx1,cat\n"}, "labels.csv: column='label'"),
    (
        EXAMPLES,
        {"labels.csv": "label,bus,fox\ncat,1,2\n"},
        "need all columns of scores.csv; it has no column 'leopard', 'tiger', 'tram'",
    ),
    (EXAMPLES.replace("labels.csv", "scores.npz"), {}, "unknown file extension '.npz'"),
    (f"{FIT} --examples labels.csv", NAMES, "labels.csv: has ids and no scores; give a table of"),
    (
        WITH_EVIDENCE,
        table("id,cat,dgo", *(f"{name},1,2" for name in IDS)),
        "evidence.csv: evidence: there is no column for 'dog', 'truck' (did you mean 'dgo'?)",
    ),
    (
        WITH_EVIDENCE,
        table("id,cat,dog,truck", "x1,1,2,3"),
        "evidence.csv: evidence is missing for 6 of the 7 inputs in scores.csv: 'x2', 'x3'",
    ),
    (WITH_EVIDENCE, table("cat,dog,truck", "1,2,3"), "without a column id, rows are numbered"),
    (f"{CLASSIFY} --evidence words", {}, "--evidence words needs the texts, which only `rankshot"),
    (f"{WITH_EVIDENCE} --set evidence_weight=-1", {}, "evidence_weight must be 0 or more"),
    (f"{FIT} --evidence evidence.csv", NAMES, "evidence.csv: the weight of evidence is estimated"),
    ("suggest scores.csv --rankings rankings.jsonl -n 0 -o t.csv", {}, "--number must be"),
    (
        "suggest predictions.csv --rankings rankings.jsonl -o t.csv",
        PREDICTIONS,
        "predictions.csv: has predictions, so no head is needed",
    ),
    (
        "suggest predictions.csv --examples labels.csv -o t.csv",
        PREDICTIONS,
        "labels.csv: 'x2', 'x3' not found in predictions.csv",
    ),
]


@pytest.mark.parametrize(("words", "files", "message"), WRONG)
def test_wrong_examples_and_evidence(folder, words, files, message):
    check_refused(folder, words, files, message)


def test_a_head_with_evidence_needs_that_of_the_inputs(folder):
    run_well(
        "fit --seen scores.csv --rankings rankings.jsonl --evidence evidence.csv -o h.rankshot"
    )
    with_head = "classify scores.csv --head h.rankshot -o o.csv"
    check_refused(folder, with_head, {}, "h.rankshot: was fitted with evidence: give that of the")
    (folder / "parts").mkdir()
    write_scores(folder / "parts" / "a.parquet", LOGITS)
    words = "classify parts --head h.rankshot --evidence evidence.csv -o out --workers 1"
    check_refused(
        folder, words, {}, "h.rankshot: needs evidence of each input, which a dataset of many"
    )
    rs.WeightedMean().fit(rankings()).save(folder / "h.rankshot")
    words = f"{with_head} --evidence evidence.csv"
    check_refused(folder, words, {}, "h.rankshot: was fitted without evidence; leave out")


def test_many_inputs_are_sampled_evenly(folder, monkeypatch):
    monkeypatch.setattr(score_tables, "MOST_SAMPLED", 5)
    write_scores(folder / "many.csv", np.arange(21.0)[:, None] * np.eye(5)[0], ids=[])
    found = open_scores(folder / "many.csv").sample()
    assert found.values[:, 0].tolist() == [0, 5, 10, 15, 20]
