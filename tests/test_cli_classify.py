"""``rankshot classify``: the answers of the library, batch by batch, whole or not at all."""

import inspect
import io
import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from contextlib import redirect_stdout
from unittest.mock import patch

import numpy as np
import pytest

import rankshot as rs
from command_line import (
    IDS,
    LOGITS,
    SEEN,
    TARGETS,
    Done,
    pairs_of,
    rankings,
    rankshot,
    softmax,
    write_scores,
    write_small_run,
)
from rankshot.cli import head_options, main
from rankshot.zeroshot.files import predictions as classified
from rankshot.zeroshot.files.predictions import read_predictions

PR = rs.ProbabilisticRanking
CLASSIFY = "classify scores.csv --rankings rankings.jsonl -o out.csv"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_small_run(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def run_classify(words, output="out.csv"):
    done = rankshot(words)
    assert (done.status, done.err) == (0, "")
    return done, read_predictions(output)


# -------------------------------------------------------------------- right answers


@pytest.mark.parametrize(
    ("options", "head"),
    [
        ("", rs.WeightedMean()),
        ("--head weighted-mean", rs.WeightedMean()),
        ("--k 2", rs.WeightedMean(k=2)),
        ("--k 99", rs.WeightedMean(k=None)),
        ("--decay 1.5 --k 2", rs.WeightedMean(k=2, decay=1.5)),
        ("--temperature 3", rs.WeightedMean(temperature=3)),
        ("--head probabilistic", PR()),
        ("--head probabilistic --k 2", PR(k=2)),
        ("--head probabilistic --k 99", PR(k=None)),
        ("--head probabilistic --decay 0", PR(decay=0)),
        ("--head probabilistic --decay 1.5 --k 2", PR(k=2, decay=1.5)),
        ("--head probabilistic --temperature .5", PR(temperature=0.5)),
        ("--head probabilistic --posterior consensus", PR(posterior="consensus")),
        (
            "--head probabilistic --posterior consensus --prior plackett-luce",
            PR(posterior="consensus"),
        ),
        (
            "--head probabilistic --posterior consensus --prior mallows",
            PR(posterior="consensus", prior=rs.Mallows()),
        ),
        (
            "--head probabilistic --posterior consensus --decay 0 --k 4",
            PR(k=4, decay=0, posterior="consensus"),
        ),
        ("--head probabilistic --posterior mean", PR(posterior="mean")),
        ("--head probabilistic --posterior sum", PR(posterior="sum")),
        (
            "--head probabilistic --posterior sum --prior mallows --k 3",
            PR(k=3, posterior="sum", prior=rs.Mallows()),
        ),
        ("--head deterministic", rs.DeterministicRanking(k=10)),
        ("--head deterministic --prior mallows", rs.DeterministicRanking(k=10, prior=rs.Mallows())),
        ("--head deterministic --temperature 2", rs.DeterministicRanking(temperature=2)),
        ("--head direct --similarity similarity.csv", rs.DirectSimilarity()),
        ("--head conse --similarity similarity.csv", rs.ConSE()),
        ("--head conse --similarity similarity.csv --temperature 1", rs.ConSE(temperature=1)),
    ],
)
def test_every_head_answers_as_in_python(folder, options, head):
    semantics = rankings()
    if "--similarity" in options:
        table = rs.read_similarity("similarity.csv")
        semantics = table.select(table.targets, SEEN)
    head.fit(semantics)
    _, found = run_classify(f"{CLASSIFY} {options}")
    assert found.ids.tolist() == IDS
    assert found.targets == tuple(TARGETS)
    assert found.labels.tolist() == head.predict(LOGITS).tolist()
    np.testing.assert_allclose(found.proba, head.predict_proba(LOGITS), rtol=1e-12)


@pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
@pytest.mark.parametrize("scores", ["scores.csv", "scores.parquet", "scores.npz"])
def test_formats_do_not_matter(folder, scores, output):
    _, wanted = run_classify(CLASSIFY)
    _, found = run_classify(f"classify {scores} --rankings rankings.jsonl -o {output}", output)
    assert found.ids.tolist() == wanted.ids.tolist()
    assert found.labels.tolist() == wanted.labels.tolist()
    assert found.targets == wanted.targets
    np.testing.assert_array_equal(found.proba, wanted.proba)


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 7, 100])
@pytest.mark.parametrize(
    "options",
    [
        "",
        "--reference usual.csv",
        "--head probabilistic",
        "--head probabilistic --posterior consensus",
        "--head deterministic",
    ],
)
def test_the_size_of_a_batch_does_not_matter(folder, batch_rows, options):
    _, wanted = run_classify(f"{CLASSIFY} {options}")
    _, found = run_classify(f"{CLASSIFY} {options} --batch-rows {batch_rows}")
    assert found.ids.tolist() == wanted.ids.tolist()
    assert found.labels.tolist() == wanted.labels.tolist()
    np.testing.assert_allclose(found.proba, wanted.proba, rtol=1e-13)


def test_rankings_that_are_drawn_are_the_same_every_day(folder, rng):
    """15 classes have more top-10 rankings than are gone through one by one."""
    items = [f"class {i}" for i in range(15)]
    write_scores(folder / "scores.csv", rng.normal(size=(5, 15)), items, IDS[:5])
    lines = [{"target": name, "ranking": [items[i], items[i + 2]]} for i, name in enumerate("abc")]
    (folder / "rankings.jsonl").write_text("\n".join(map(json.dumps, lines)))
    _, wanted = run_classify(f"{CLASSIFY} --head probabilistic --posterior sum")
    _, found = run_classify(f"{CLASSIFY} --head probabilistic --posterior sum --batch-rows 2")
    np.testing.assert_allclose(found.proba, wanted.proba, rtol=1e-13)


def test_one_vs_one(folder):
    _, found = run_classify(CLASSIFY.replace("scores.csv", "pairs.npz"))
    head = rs.WeightedMean().fit(rankings())
    wanted = head.predict_proba(rs.Scores(pairs_of(LOGITS), SEEN, "one-vs-one"))
    np.testing.assert_allclose(found.proba, wanted, rtol=1e-12)
    assert found.ids.tolist() == IDS


def test_without_ids_rows_are_numbered_through_all_batches(folder):
    write_scores(folder / "scores.csv", LOGITS, ids=[])
    _, found = run_classify(f"{CLASSIFY} --batch-rows 3")
    assert found.ids.tolist() == ["0", "1", "2", "3", "4", "5", "6"]


def test_float32_stays_float32(folder):
    write_scores(folder / "scores.npz", LOGITS.astype(np.float32))
    _, found = run_classify(
        "classify scores.npz --rankings rankings.jsonl -o o.parquet", "o.parquet"
    )
    assert found.proba.dtype == np.float32


def test_the_options_have_the_defaults_of_the_head(monkeypatch):
    """The lists above are short: they would not show it."""
    monkeypatch.setenv("COLUMNS", "200")
    k, decay = head_options.K, head_options.DECAY
    assert (PR().k, PR().decay, rs.DeterministicRanking().k) == (k, decay, k)
    default = rs.WeightedMean()
    assert (default.k, default.decay) == (head_options.K_OF_WEIGHTED_MEAN, decay)
    assert inspect.signature(rs.summarize).parameters["k"].default == k
    for name in ("classify", "explain", "report"):
        assert "15 for --head weighted-mean" in " ".join(rankshot(f"{name} --help").out.split())


# -------------------------------------------------------------------- what the scores are


def test_probabilities_are_told_from_logits_and_it_is_said(folder):
    done, by_logits = run_classify(CLASSIFY)
    assert "scores.csv: the scores are taken as logits (see --score-type)\n" in done.out
    done, by_probabilities = run_classify(CLASSIFY.replace("scores.csv", "probabilities.csv"))
    assert "probabilities.csv: the scores are taken as probabilities (see" in done.out
    np.testing.assert_allclose(by_probabilities.proba, by_logits.proba, rtol=1e-9)


def test_what_is_said_of_scores_counts(folder):
    words = CLASSIFY.replace("scores.csv", "probabilities.csv")
    done, found = run_classify(f"{words} --score-type logits")
    assert "taken as" not in done.out
    head = rs.WeightedMean().fit(rankings())
    wanted = head.predict_proba(rs.Scores(softmax(LOGITS), head.items_))
    np.testing.assert_allclose(found.proba, wanted, rtol=1e-12)


@pytest.mark.parametrize("are", ["one-vs-rest-logits", "one-vs-rest-probabilities"])
def test_one_vs_rest(folder, are):
    values = 1 / (1 + np.exp(-LOGITS)) if are.endswith("probabilities") else LOGITS
    write_scores(folder / "scores.csv", values)
    words = f"{CLASSIFY} --head direct --similarity similarity.csv"
    _, found = run_classify(f"{words} --score-type {are}")
    table = rs.read_similarity("similarity.csv")
    head = rs.DirectSimilarity().fit(table.select(table.targets, SEEN))
    wanted = head.predict_proba(rs.Scores(LOGITS, SEEN, "one-vs-rest"))
    np.testing.assert_allclose(found.proba, wanted, rtol=1e-9)
    assert not np.allclose(wanted, head.predict_proba(LOGITS), rtol=1e-3)


def test_numbers_that_may_be_probabilities_of_separate_questions(folder):
    write_scores(folder / "scores.csv", 1 / (1 + np.exp(-LOGITS)))
    done, _ = run_classify(CLASSIFY)
    assert "give --score-type one-vs-rest-probabilities" in done.out


# -------------------------------------------------------------------- what is shown and written


def test_reject_below(folder):
    _, sure = run_classify(CLASSIFY)
    threshold = float(np.median(sure.proba.max(axis=1))) - 1e-9
    done, found = run_classify(f"{CLASSIFY} --reject-below {threshold!r} --batch-rows 2")
    kept = sure.proba.max(axis=1) >= threshold
    assert found.labels.tolist() == np.where(kept, sure.labels, "rejected").tolist()
    assert set(kept) == {True, False}
    np.testing.assert_allclose(found.proba, sure.proba, rtol=1e-13)
    assert row_of(done, "rejected") == ["rejected", "3", "42.9%"]


def row_of(done, name):
    """Return the cells of the row of a printed table that starts with a name."""
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in done.out.splitlines()]
    return next(row for row in rows if row and row[0] == name)


def test_the_classes_are_counted(folder):
    done, found = run_classify(CLASSIFY)
    for name in TARGETS:
        count = (found.labels == name).sum()
        assert row_of(done, name) == [name, str(count), f"{count / 7:.1%}"]
    assert "7 predictions written to out.csv" in done.out


def test_of_many_classes_the_most_frequent_are_shown(folder):
    items = [f"class {i:02}" for i in range(30)]
    lines = [{"target": f"new {i:02}", "ranking": [item]} for i, item in enumerate(items)]
    (folder / "rankings.jsonl").write_text("\n".join(map(json.dumps, lines)))
    write_scores(folder / "scores.csv", 9 * np.eye(30), items, [])
    done, _ = run_classify(CLASSIFY)
    assert "and 10 more" in done.out


@pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
def test_any_name_will_do(folder, output):
    items = ['a "fox"', "b,us", "[red]tiger[/red]", "łęópard\nof two lines", "e"]
    target = 'c,"a"\nt & <dög>'
    line = {"target": target, "ranking": items[:3]}
    (folder / "rankings.jsonl").write_text(json.dumps(line, ensure_ascii=False), encoding="utf-8")
    ids = [f"'{name}', \"x\"\n猫" for name in IDS]
    write_scores(folder / "scores.csv", LOGITS, items, ids)
    done, found = run_classify(f"classify scores.csv --rankings rankings.jsonl -o {output}", output)
    assert found.targets == (target,)
    assert found.ids.tolist() == ids
    assert "t & <dög>" in done.out


def test_a_terminal_without_the_letters(folder):
    (folder / "rankings.jsonl").write_text('{"target": "d\\u00f6g", "ranking": ["fox"]}')
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with (
        patch.object(sys, "argv", ["rankshot", *CLASSIFY.split()]),
        redirect_stdout(stream),
        pytest.raises(SystemExit, match="0"),
    ):
        main()
    stream.flush()
    assert b"d\\xf6g" in stream.buffer.getvalue()


@pytest.mark.parametrize("long", [False, True])
def test_the_cost_of_a_sum_is_said_beforehand(folder, monkeypatch, long):
    module = sys.modules["rankshot.cli.classify"]
    monkeypatch.setattr(module, "LONG", 0.0 if long else 1e6)
    done, _ = run_classify(f"{CLASSIFY} --head probabilistic --posterior sum --k 2")
    n = len(SEEN) * (len(SEEN) - 1)
    said = f"--posterior sum: all {n} rankings are added up for each input; 1,000 inputs take"
    assert (said in " ".join(done.out.split())) == long


@pytest.mark.parametrize("name", ["demo", "rank", "consensus", "classify", "explain", "report"])
def test_help_has_an_example(name):
    done = rankshot(f"{name} --help")
    assert done.status == 0
    assert f"Example: rankshot {name} " in " ".join(done.out.split())


# -------------------------------------------------------------------- whole or not at all


@pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
@pytest.mark.parametrize("old", [None, b"the old one"])
def test_an_interrupted_run_leaves_what_was_there(folder, monkeypatch, output, old):
    if old is not None:
        (folder / output).write_bytes(old)
    before = sorted(folder.iterdir())
    batches = iter(range(9))
    label_or_reject = classified.label_or_reject

    def interrupt(*arguments):
        if next(batches) == 2:
            raise KeyboardInterrupt
        return label_or_reject(*arguments)

    monkeypatch.setattr(classified, "label_or_reject", interrupt)
    done = rankshot(f"classify scores.csv --rankings rankings.jsonl -o {output} --batch-rows 2")
    assert next(batches) == 3
    assert done.status not in {0, 2}
    assert "Traceback" not in done.err
    assert sorted(folder.iterdir()) == before
    if old is not None:
        assert (folder / output).read_bytes() == old


def test_a_bad_row_far_down_leaves_nothing(folder):
    with (folder / "scores.csv").open("a") as stream:
        stream.write("x8,1,2,3,4,nan\n")
    before = sorted(folder.iterdir())
    done = rankshot(f"{CLASSIFY} --batch-rows 1")
    assert done == Done(
        2,
        "rankings.jsonl: the source 'web' has no ranking of 'dog', 'truck': there the other "
        "sources decide\n"
        "scores.csv: the scores are taken as logits (see --score-type)\n",
        "rankshot: scores.csv:9: 'tram' is nan; scores must be finite numbers "
        "(a column of names must be called id)\n",
    )
    assert sorted(folder.iterdir()) == before


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing_behind(folder, number):
    """A batch is a row, so that the run takes far longer than we wait."""
    write_scores(folder / "scores.npz", np.tile(LOGITS, (50_000, 1)), ids=[])
    (folder / "out.csv").write_text("the old one")
    before = sorted(folder.iterdir())
    words = CLASSIFY.replace("scores.csv", "scores.npz").split()
    running = subprocess.Popen(
        [sys.executable, "-m", "rankshot.cli", *words, "--batch-rows", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        deadline = time.monotonic() + 60
        while not list(folder.glob(".out.csv.*")) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert running.poll() is None, running.stderr.read()
        running.send_signal(number)
        _, errors = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode not in {0, 2}
    assert "Traceback" not in errors
    assert sorted(folder.iterdir()) == before
    assert (folder / "out.csv").read_text() == "the old one"


# -------------------------------------------------------------------- memory


@pytest.mark.parametrize(("ending", "n"), [(".npz", 20_000), (".parquet", 20_000), (".csv", 8000)])
def test_memory_is_that_of_a_batch(folder, rng, ending, n):
    """100 classes, 20,000 inputs: 16 MB of scores; a batch of 200 has 160 kB."""
    items = [f"class {i}" for i in range(100)]
    lines = [{"target": f"new {i}", "ranking": items[i : i + 4]} for i in range(5)]
    (folder / "rankings.jsonl").write_text("\n".join(map(json.dumps, lines)))
    values = rng.standard_normal((n, 100))
    size = values.nbytes
    write_scores(folder / f"scores{ending}", values, items, [])
    del values
    words = f"classify scores{ending} --rankings rankings.jsonl -o out.parquet --batch-rows 200"
    # What is imported at the first run is not counted.
    rankshot(words)
    tracemalloc.start()
    try:
        done = rankshot(words)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert f"{n:,} predictions written" in done.out
    assert peak < size / 2


# ------------------------------------------------------------------ messages to the user


def test_three_classes_can_be_said_to_be_pairs(folder):
    pairs = np.array([[2.0, 1.0, -1.0], [-1.0, -2.0, -0.5]])
    np.savez(folder / "three.npz", scores=pairs, classes=["bus", "fox", "tram"])
    (folder / "r.jsonl").write_text(
        '{"target": "cat", "ranking": ["fox", "tram"]}\n'
        '{"target": "van", "ranking": ["bus", "tram"]}\n'
    )
    words = "classify three.npz --rankings r.jsonl --k 2 -o out.csv"
    done, found = run_classify(f"{words} --score-type one-vs-one")
    head = rs.WeightedMean(k=2).fit(
        rs.read_rankings(folder / "r.jsonl", items=["bus", "fox", "tram"])
    )
    scores = rs.Scores(pairs, ["bus", "fox", "tram"], "one-vs-one")
    np.testing.assert_allclose(found.proba, head.predict_proba(scores), rtol=1e-12)
    assert "taken as logits" in rankshot(words).out
    done = rankshot(f"{CLASSIFY} --score-type one-vs-one")
    assert done.status == 2
    assert "has one column per class, which the score type one-vs-one does not fit" in done.err


def test_what_the_rankings_do_not_say_is_said(folder):
    (folder / "rankings.jsonl").write_text(
        '{"target": "cat", "ranking": ["fox"]}\n{"target": "dog", "ranking": ["fox"]}\n'
        '{"target": "bus", "ranking": ["tram"]}\n'
    )
    out = rankshot(f"{CLASSIFY} --k 1").out
    assert "rankings of 'bus' are left out: they are seen classes" in out
    assert "3 of 5 seen classes occur in no ranking: 'bus', 'leopard', 'tiger'" in out
    assert "the rankings of 'cat', 'dog' are the same" in out
    (folder / "rankings.jsonl").write_text('{"target": "cat", "ranking": ["fox"]}\n')
    assert "'cat' is the only class" in rankshot(CLASSIFY).out


def test_a_class_without_a_column_is_blamed_on_the_scores(folder):
    (folder / "scores.csv").write_text("id;bus;fox\nx1;1;2\n")
    err = rankshot(CLASSIFY).err
    assert (
        "unknown item 'leopard'; the items are 'id;bus;fox'; items must be columns of scores.csv"
        in err
    )


def test_the_version(folder):
    assert rankshot("--version").out == f"rankshot {rs.__version__}\n"


def test_classes_that_are_never_predicted_are_named(folder):
    write_scores(folder / "scores.csv", LOGITS[:2])
    assert "never predicted: 'truck'" in rankshot(CLASSIFY).out
    write_scores(folder / "scores.csv", LOGITS)
    assert "never predicted" not in rankshot(CLASSIFY).out
