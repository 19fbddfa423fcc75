"""``rankshot rehearse``, and ``--settings`` of classify, explain and report."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rankshot as rs
from command_line import check_refused, run_well, write_scores
from rankshot.cli.rehearse import PREDICTED
from rankshot.zeroshot import Settings
from rankshot.zeroshot.files.predictions import read_predictions

SEEN = [
    *("bear", "beaver", "bus", "bowl", "bottle", "cattle", "chair"),
    *("couch", "crocodile", "dolphin", "elephant", "fox", "hamster", "house"),
    *("leopard", "lion", "lizard", "maple", "motorcycle", "oak", "orchid"),
    *("plate", "rabbit", "rose", "seal", "shark", "skunk", "snake"),
    *("table", "tank", "tiger", "tractor", "train", "tulip", "wardrobe"),
    *("whale", "willow", "wolf"),
]
NEW = ["cat", "dog", "frog", "truck", "palm"]
WORDNET = rs.WordNet()
N_PLAYERS = 10
REHEARSE = "rehearse seen.csv --truth labels.csv --rankings rehearsal.jsonl"
WHOLE = f"{REHEARSE} --new-rankings rankings.jsonl -o settings.json"
CLASSIFY = "classify scores.csv --rankings rankings.jsonl --settings settings.json -o out.csv"
WITH_REFERENCE = f"{CLASSIFY} --reference seen.csv"


def make_inputs(names, n, seed):
    """Return scores as similar to those of WordNet as the noise allows, and the classes."""
    mean = WORDNET.similarity(names, SEEN).values.repeat(n, axis=0)
    return 6 * mean + np.random.default_rng(seed).normal(size=mean.shape), np.repeat(names, n)


SEEN_SCORES, SEEN_LABELS = make_inputs(SEEN, 8, 0)
NEW_SCORES, NEW_LABELS = make_inputs(NEW, 6, 1)
SEEN_IDS = [f"s{i}" for i in range(len(SEEN_SCORES))]
NEW_IDS = [f"n{i}" for i in range(len(NEW_SCORES))]


def write_labels(path, ids, labels):
    rows = "".join(f"{name},{label}\n" for name, label in zip(ids, labels, strict=True))
    path.write_text(f"id,label\n{rows}", encoding="utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with all files up to settings.json, as the commands write them."""
    folder = tmp_path_factory.mktemp("rehearsal")
    before = Path.cwd()
    os.chdir(folder)
    try:
        write_scores(folder / "seen.csv", SEEN_SCORES, SEEN, SEEN_IDS)
        write_scores(folder / "scores.csv", NEW_SCORES, SEEN, NEW_IDS)
        write_labels(folder / "labels.csv", SEEN_IDS[::-1], SEEN_LABELS[::-1])
        write_labels(folder / "truth.csv", NEW_IDS, NEW_LABELS)
        (folder / "seen.txt").write_text("\n".join(SEEN), encoding="utf-8")
        (folder / "new.txt").write_text("\n".join(NEW), encoding="utf-8")
        sources = "--source wordnet --source wordnet:wup"
        run_well(f"rank --seen seen.txt --rehearse {N_PLAYERS} {sources} -o rehearsal.jsonl")
        run_well(f"rank --seen seen.txt --new new.txt {sources} -o rankings.jsonl")
        out = run_well(WHOLE)
    finally:
        os.chdir(before)
    (folder / "printed.txt").write_text(out, encoding="utf-8")
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    for path in made.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def in_python(made):
    """The same rehearsal with the library alone."""
    rankings = rs.read_rankings(made / "rehearsal.jsonl")
    return rs.Rehearsal().fit(rs.Scores(SEEN_SCORES, SEEN), SEEN_LABELS, rankings)


def new_rankings(folder):
    return rs.read_rankings(folder / "rankings.jsonl", items=SEEN)


# ---- The whole way


def test_what_is_printed_is_what_the_library_finds(folder, in_python):
    out = (folder / "printed.txt").read_text(encoding="utf-8")
    assert f"Mean accuracy of {N_PLAYERS} seen classes, held out as new ones" in out
    for trial in in_python.trials_:
        assert re.search(rf"{re.escape(trial.what)} .*{re.escape(str(trial.accuracy))}", out)
    assert out.count("│ chosen │") == 1
    assert re.search(rf"{re.escape(str(in_python.accuracy_))} │ chosen", out)
    assert in_python.predict_accuracy(new_rankings(folder)) is None
    assert "no accuracy is predicted for the 5 new classes: tables without raters" in out
    assert "alone: " not in out
    assert "--reference seen.csv --settings settings.json -o PREDICTIONS" in out
    assert f"warning: only {N_PLAYERS} classes were held out, so the temperature" in out
    assert "uncertain; hold out 20 or more" in out


def test_an_accuracy_is_predicted_for_rankings_of_raters(folder):
    for name in ("rehearsal.jsonl", "rankings.jsonl"):
        rankings = rs.read_rankings(name)
        named = replace(rankings, raters=np.full(len(rankings), "a person", object))
        rs.write_rankings(named, name)
    out = run_well(WHOLE)
    rehearsal = rs.Rehearsal().fit(
        rs.Scores(SEEN_SCORES, SEEN), SEEN_LABELS, rs.read_rankings("rehearsal.jsonl")
    )
    new = new_rankings(folder)
    predicted = rehearsal.predict_accuracy(new)
    assert f"new classes, each input alone, with 95% interval: {predicted} (random" in out
    (lin,) = (trial for trial in rehearsal.trials_ if trial.what == "wordnet-wup alone")
    by_lin = rehearsal.predict_accuracy(new, trial=lin)
    assert f"predicted for wordnet-wup alone: {by_lin}\n" in out
    notes = json.loads(Path("settings.json").read_text())["notes"]
    assert notes[PREDICTED] == pytest.approx(predicted)


def test_the_classes_of_labelled_inputs_are_ranked(folder):
    """Labels are repeated; of classes chosen at random there may be no inputs."""
    write_labels(folder / "some.csv", range(6), [*SEEN[:3], *SEEN[:3]])
    out = run_well("rank --seen seen.txt --rehearse some.csv -o few.jsonl")
    assert {*rs.read_rankings("few.jsonl").target_names} == {*SEEN[:3]}
    assert "chosen at random" not in out
    write_labels(folder / "all.csv", range(len(SEEN)), SEEN)
    run_well("rank --seen seen.txt --rehearse all.csv -o third.jsonl")
    assert len(rs.read_rankings("third.jsonl").target_names) == len(SEEN) // 3
    Path("names.txt").write_text("\n".join([SEEN[4], SEEN[4]]))
    run_well("rank --seen seen.txt --rehearse names.txt -o few.jsonl")
    assert rs.read_rankings("few.jsonl").target_names == (SEEN[4],)
    out = run_well("rank --seen seen.txt --rehearse 2 -o few.jsonl")
    assert "classes are chosen at random, and the rehearsal needs labelled inputs of each" in out


def test_the_settings_are_those_of_the_library(folder, in_python):
    found = Settings.read("settings.json")
    assert found.make_head().get_params() == in_python.head_.get_params()
    assert found.to_json() == in_python.settings_.to_json()


@pytest.mark.parametrize("options", ["", "--classes all-or-none"])
def test_answers_are_those_of_the_library(folder, in_python, options):
    run_well(f"{WITH_REFERENCE} {options}".replace("out.csv", "out.parquet"))
    head = in_python.fit_head(
        new_rankings(folder), classes="all" if "all" in options else "new", none="none" in options
    )
    found = read_predictions("out.parquet")
    np.testing.assert_allclose(found.proba, head.predict_proba(NEW_SCORES), rtol=1e-7)
    assert found.labels.tolist() == head.predict(NEW_SCORES).tolist()


@pytest.mark.parametrize(
    ("gate", "why"),
    [
        ({}, "in the rehearsal, the head was not better with a reference"),
        ({"gate": None}, "the rehearsal had too few inputs of other seen classes to try a"),
    ],
    ids=["tried", "not tried"],
)
def test_an_unused_reference_is_explained(folder, gate, why):
    change_settings(folder, reference=False, **gate)
    assert why in run_well(WITH_REFERENCE)


def test_the_weights_of_the_sources_are_printed(folder):
    change_settings(folder, source_weights={"wordnet-wup": 1.0, "wordnet-path": 0.3})
    printed = run_well(WITH_REFERENCE)
    assert "weights of the sources: 'wordnet-path' 0.3, 'wordnet-wup' 1\n" in printed
    change_settings(folder, source_weights={"wordnet-wup": 1.0, "crowd": 1.0})
    printed = run_well(WITH_REFERENCE)
    assert "warning: no rankings by 'crowd', which the rehearsal used" in printed


# ---- Bad input


def lines_about(*targets, ranking=("bus", "oak")):
    return "".join(f"{json.dumps({'target': t, 'ranking': ranking})}\n" for t in targets)


FOUR = lines_about("bear", "fox", "lion", "rose")
SIX = lines_about("bear", "fox", "lion", "rose", "seal", "wolf", ranking=["bus", "oka"])
BAD_FILES = {
    "no labels": ({"labels.csv": "id,label\n"}, "labels.csv: table has no rows"),
    "labels of no class": (
        {"labels.csv": "id,label\n" + "".join(f"{i},tigre\n" for i in SEEN_IDS)},
        "none of the inputs belongs to a ranked class",
    ),
    "too few classes": (
        {"rehearsal.jsonl": FOUR},
        (
            "seen.csv, labels.csv and rehearsal.jsonl: only 4 seen classes with rankings and "
            "inputs ('bear', 'fox', 'lion', 'rose'): a rehearsal needs at least 5"
        ),
    ),
    "an unknown item": (
        {"rehearsal.jsonl": SIX},
        "the rankings list 'oka', which the scores do not have (did you mean 'oak'?)",
    ),
    "seen classes as new ones": (
        {"rankings.jsonl": FOUR},
        "rankings.jsonl: there are rankings of seen classes only ('bear', 'fox', 'lion', 'rose')",
    ),
    "new rankings by other sources": (
        {"rankings.jsonl": lines_about("cat", "dog")},
        "no ranking by 'wordnet-",
    ),
}


@pytest.mark.parametrize(("files", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_rehearsal_is_refused(folder, files, message):
    check_refused(folder, WHOLE, files, message)


def change_settings(folder, **values):
    """Change settings.json: the sources are those of the rankings, unless they are given."""
    path = folder / "settings.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | values), encoding="utf-8")


BAD_SETTINGS = {
    "score type": ({}, f"{WHOLE} --score-type probabilities", "seen.csv:2"),
    "twice": (
        {},
        f"{WITH_REFERENCE} --set k=4 --set temperature=1 --head probabilistic --set posterior=mean",
        "settings.json: has the settings of the head; leave out --head and --set",
    ),
    "no reference": ({}, CLASSIFY, "settings.json: the head was rehearsed with a reference: giv"),
    "no reference for the gate": (
        {"reference": False},
        f"{CLASSIFY} --classes all",
        "settings.json: the gate to the seen classes was rehearsed with a reference",
    ),
    "no gate": (
        {"gate": None},
        f"{WITH_REFERENCE} --classes all",
        "settings.json: there is no gate between seen and new classes",
    ),
    "other sources": (
        {"source_weights": {"crowd": 1.0}},
        WITH_REFERENCE,
        (
            "no ranking by 'crowd' with a weight in source_weights, only by 'wordnet-path', "
            "'wordnet-wup'"
        ),
    ),
    "a bad temperature": (
        {"parameters": {"temperature": -1}},
        WITH_REFERENCE,
        "settings.json: temperature must be positive",
    ),
}


@pytest.mark.parametrize(("changes", "words", "message"), BAD_SETTINGS.values(), ids=BAD_SETTINGS)
def test_settings_that_do_not_fit_are_refused(folder, changes, words, message):
    change_settings(folder, **changes)
    check_refused(folder, words, {}, message)


def test_evidence_is_rehearsed_and_then_needed(folder):
    players = rs.read_rankings("rehearsal.jsonl").target_names
    rng = np.random.default_rng(0)
    for name, ids, labels, classes in (
        ("seen_evidence.csv", SEEN_IDS, SEEN_LABELS, players),
        ("new_evidence.csv", NEW_IDS, NEW_LABELS, NEW),
    ):
        own = labels[:, None] == np.array(classes)
        write_scores(folder / name, 3 * own + rng.normal(size=own.shape), classes, ids)
    out = run_well(f"{WHOLE} --evidence seen_evidence.csv")
    weight = Settings.read("settings.json").evidence_weight
    assert f"evidence: weight {weight:.2f} relative to the rankings" in out
    assert "labelled examples: their scores follow the rankings with a slope of" in out
    assert "--evidence EVIDENCE" in out
    check_refused(folder, WITH_REFERENCE, {}, "the head was rehearsed with evidence: give --evi")
    done = run_well(f"{WITH_REFERENCE} --evidence new_evidence.csv")
    assert f"evidence: weight {weight:.2f} relative to the rankings" in done
    found = read_predictions("out.csv")
    assert np.mean(found.labels == NEW_LABELS) > 0.8
