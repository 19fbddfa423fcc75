"""``rankshot classify``: the answers of the library, batch by batch, whole or not at all."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import rankshot as rs
from command_line import (
    IDS,
    LOGITS,
    SEEN,
    TARGETS,
    USUAL,
    Done,
    pairs_of,
    rankings,
    rankshot,
    run_well,
    softmax,
    table_rows,
    write_scores,
)
from rankshot.zeroshot.files import predictions
from rankshot.zeroshot.files.predictions import read_predictions

PR = rs.ProbabilisticRanking
CLASSIFY = "classify scores.csv --rankings rankings.jsonl -o out.csv"


@pytest.fixture
def small_batches(monkeypatch):
    """Tables are read two rows at a time."""
    monkeypatch.setattr("rankshot.zeroshot.files.score_tables.BATCH_CELLS", 10)


def run_classify(words):
    """Run a command; predictions are written as Parquet, which has all digits."""
    out = run_well(words.replace("out.csv", "out.parquet"))
    return out, read_predictions("out.parquet")


# -------------------------------------------------------------------- right answers


@pytest.mark.parametrize(
    ("options", "head"),
    [
        ("--set decay=1.5 --set k=2", rs.WeightedMean(k=2, decay=1.5)),
        ("--reference usual.parquet", rs.WeightedMean()),
        ("--head probabilistic --reference usual.parquet", PR()),
        ("--head probabilistic --set temperature=.5", PR(temperature=0.5)),
        (
            "--head probabilistic --set posterior=consensus --set prior=mallows",
            PR(posterior="consensus", prior=rs.Mallows()),
        ),
        (
            "--head probabilistic --set posterior=sum --set prior=mallows --set k=3",
            PR(k=3, posterior="sum", prior=rs.Mallows()),
        ),
        ("--head deterministic", rs.zeroshot.paper.DeterministicRanking(k=10)),
        ("--head direct", rs.zeroshot.paper.DirectSimilarity()),
        ("--head conse", rs.zeroshot.paper.ConSE()),
    ],
)
def test_every_head_answers_as_in_python(folder, options, head):
    semantics = rankings()
    words = f"{CLASSIFY} {options}"
    if isinstance(head, (rs.zeroshot.paper.DirectSimilarity, rs.zeroshot.paper.ConSE)):
        words = words.replace("rankings.jsonl", "similarity.csv")
        table = rs.sources.read_similarity("similarity.csv")
        semantics = table.select(table.targets, SEEN)
    head.fit(semantics, *([USUAL] if "--reference" in options else []))
    _, found = run_classify(words)
    assert found.ids.tolist() == IDS
    assert found.targets == tuple(TARGETS)
    assert found.labels.tolist() == head.predict(LOGITS).tolist()
    np.testing.assert_allclose(found.proba, head.predict_proba(LOGITS), rtol=1e-9)


def test_one_vs_one(folder):
    _, found = run_classify(CLASSIFY.replace("scores.csv", "pairs.parquet"))
    head = rs.WeightedMean().fit(rankings())
    wanted = head.predict_proba(rs.Scores(pairs_of(LOGITS), SEEN, "one-vs-one"))
    np.testing.assert_allclose(found.proba, wanted, rtol=1e-12)
    assert found.ids.tolist() == IDS


def test_without_ids_rows_are_numbered_through_all_batches(folder, small_batches):
    write_scores(folder / "scores.csv", LOGITS, ids=[])
    _, found = run_classify(CLASSIFY)
    assert found.ids.tolist() == ["0", "1", "2", "3", "4", "5", "6"]


# -------------------------------------------------------------------- what the scores are


def test_probabilities_are_told_from_logits_and_it_is_said(folder):
    done, by_logits = run_classify(CLASSIFY)
    assert "scores.csv: the scores are interpreted as logits (see --score-type)\n" in done
    done, by_probabilities = run_classify(CLASSIFY.replace("scores.csv", "probabilities.csv"))
    assert "probabilities.csv: the scores are interpreted as probabilities (see" in done
    np.testing.assert_allclose(by_probabilities.proba, by_logits.proba, rtol=1e-9)


@pytest.mark.parametrize("are", ["one-vs-rest-logits", "one-vs-rest-probabilities"])
def test_one_vs_rest(folder, are):
    values = 1 / (1 + np.exp(-LOGITS)) if are.endswith("probabilities") else LOGITS
    write_scores(folder / "scores.csv", values)
    words = f"{CLASSIFY} --head direct".replace("rankings.jsonl", "similarity.csv")
    _, found = run_classify(f"{words} --score-type {are}")
    table = rs.sources.read_similarity("similarity.csv")
    head = rs.zeroshot.paper.DirectSimilarity().fit(table.select(table.targets, SEEN))
    wanted = head.predict_proba(rs.Scores(LOGITS, SEEN, "one-vs-rest"))
    np.testing.assert_allclose(found.proba, wanted, rtol=1e-9)
    assert not np.allclose(wanted, head.predict_proba(LOGITS), rtol=1e-3)


def test_a_reference_is_what_the_scores_are(folder):
    words = CLASSIFY.replace("scores.csv", "probabilities.csv")
    words += " --reference usual_probabilities.csv"
    done, inferred = run_classify(words)
    assert done.count("the scores are interpreted as probabilities") == 2
    head = rs.WeightedMean().fit(
        rankings(), reference=rs.Scores.from_probabilities(softmax(USUAL), SEEN)
    )
    wanted = head.predict_proba(rs.Scores.from_probabilities(softmax(LOGITS), SEEN))
    np.testing.assert_allclose(inferred.proba, wanted, rtol=1e-9)
    done, as_logits = run_classify(f"{words} --score-type logits")
    assert "interpreted as" not in done
    head.fit(rankings(), rs.Scores(softmax(USUAL), SEEN))
    wanted = head.predict_proba(rs.Scores(softmax(LOGITS), SEEN))
    np.testing.assert_allclose(as_logits.proba, wanted, rtol=1e-9)


# -------------------------------------------------------------------- what is shown and written


def test_reject_below(folder, small_batches):
    _, sure = run_classify(CLASSIFY)
    threshold = float(np.median(sure.proba.max(axis=1))) - 1e-9
    done, found = run_classify(f"{CLASSIFY} --reject-below {threshold!r}")
    kept = sure.proba.max(axis=1) >= threshold
    assert found.labels.tolist() == np.where(kept, sure.labels, "rejected").tolist()
    assert set(kept) == {True, False}
    np.testing.assert_allclose(found.proba, sure.proba, rtol=1e-13)
    assert table_rows(done)["rejected"] == ["rejected", "3", "42.9%"]


# -------------------------------------------------------------------- whole or not at all


@pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
def test_an_interrupted_run_leaves_what_was_there(folder, monkeypatch, small_batches, output):
    (folder / output).write_bytes(b"the old one")
    before = sorted(folder.iterdir())
    batches = iter(range(9))
    label_or_reject = predictions.label_or_reject

    def interrupt(*arguments):
        if next(batches) == 2:
            raise KeyboardInterrupt
        return label_or_reject(*arguments)

    monkeypatch.setattr(predictions, "label_or_reject", interrupt)
    done = rankshot(f"classify scores.csv --rankings rankings.jsonl -o {output}")
    assert next(batches) == 3
    assert done.status not in {0, 2}
    assert "Traceback" not in done.err
    assert sorted(folder.iterdir()) == before
    assert (folder / output).read_bytes() == b"the old one"


def test_a_bad_row_far_down_leaves_nothing(folder, small_batches):
    with (folder / "scores.csv").open("a") as stream:
        stream.write("x8,1,2,3,4,nan\n")
    before = sorted(folder.iterdir())
    done = rankshot(CLASSIFY)
    assert done == Done(
        2,
        "",
        "rankshot: scores.csv:9: 'tram' is nan; scores must be finite numbers "
        "(a column of names must be called id)\n",
    )
    assert sorted(folder.iterdir()) == before


WAITS_WHILE_IT_WRITES = """
import signal, time
from rankshot.cli import main
from rankshot.zeroshot.files.predictions import PredictionWriter

write = PredictionWriter.write

def write_and_wait(*rows):
    write(*rows)
    time.sleep(600)

PredictionWriter.write = write_and_wait
# A shell that runs the tests in the background makes all processes ignore this signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing_behind(folder, number):
    (folder / "out.csv").write_text("the old one")
    before = sorted(folder.iterdir())
    running = subprocess.Popen(
        [sys.executable, "-c", WAITS_WHILE_IT_WRITES, *CLASSIFY.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        while not list(folder.glob(".out.csv.*")) and running.poll() is None:
            time.sleep(0.02)
        assert running.poll() is None, running.stderr.read()
        running.send_signal(number)
        _, errors = running.communicate()
    finally:
        running.kill()
    assert running.returncode not in {0, 2}
    assert "Traceback" not in errors
    assert sorted(folder.iterdir()) == before
    assert (folder / "out.csv").read_text() == "the old one"
