"""Every command as a user calls it: what it writes is what the library returns."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from onnxruntime import InferenceSession
from PIL import Image
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from skops.io import dump

import rankshot as rs
from command_line import (
    IDS,
    LOGITS,
    SEEN,
    TRUTH,
    USUAL,
    rankings,
    rankshot,
    read_csv,
    run_well,
    table_rows,
)
from rankshot import leaderboards
from rankshot.datasets import write_photographs
from rankshot.recognition import open_run
from rankshot.recognition.models import BUILT_IN_FILE, open_built_in
from rankshot.zeroshot.tables import read_predictions

SCORES = rs.Scores(LOGITS, SEEN)


@pytest.mark.parametrize(
    ("options", "known"),
    [
        ("--reference usual.parquet", {"reference": rs.Scores(USUAL, SEEN)}),
        ("--settings settings.json", {"settings": rs.zeroshot.Settings(k=2, decay=1.5)}),
        ("--batch yes", {"batch": True}),
        ("--examples truth.csv", {"examples": (SCORES, TRUTH)}),
        ("--classes all", {"classes": "all"}),
    ],
)
def test_options_are_arguments_in_python(folder, options, known):
    rs.zeroshot.Settings(k=2, decay=1.5).write(folder / "settings.json")
    batch = "" if "batch" in known else "--batch no"
    words = f"recognise scores.csv --rankings rankings.jsonl {options} {batch} -o out.parquet"
    out = run_well(words)
    predicted = read_predictions("out.parquet")
    expected = rs.recognise(SCORES, rankings(), **{"batch": False, **known})
    best = expected.proba.max(axis=1)
    printed = [table_rows(out)[name][:3] for name in IDS]
    assert printed == [
        [name, label, f"{p:.2f}"] for name, label, p in zip(IDS, expected.labels, best, strict=True)
    ]
    assert "7 predictions written to out.parquet" in out
    assert all(f"rankshot {name} scores.csv.rankshot-run" in out for name in ("review", "doctor"))
    assert all(note in out for note in expected.notes)
    assert predicted.ids.tolist() == IDS
    assert predicted.labels.tolist() == expected.labels.tolist()
    np.testing.assert_allclose(predicted.proba, expected.proba, atol=1e-6)


@pytest.mark.parametrize(
    ("table", "score_type"), [("scores.csv", "auto"), ("pairs.parquet", "one-vs-one")]
)
def test_tables_are_classified_by_rankings_alone(folder, table, score_type):
    out = run_well(
        f"classify {table} --rankings rankings.jsonl --score-type {score_type} -o out.parquet"
    )
    expected = rs.recognise(folder / table, rankings(), batch=False)
    counts = Counter(expected.labels.tolist())
    assert table_rows(out) == {name: [name, str(n), f"{n / 7:.1%}"] for name, n in counts.items()}
    assert "7 predictions written to out.parquet" in out
    np.testing.assert_allclose(read_predictions("out.parquet").proba, expected.proba, atol=1e-6)


def test_improbable_inputs_are_rejected_and_the_best_classes_are_written(folder):
    run_well("classify scores.csv --rankings rankings.jsonl --reject-below .9 --top 2 -o out.csv")
    rows = read_csv("out.csv")
    assert {"id", "label", "probability", "label_2", "probability_2"} == set(rows[0])
    is_rejected = [row["label"] == "rejected" for row in rows]
    assert is_rejected == [float(row["probability"]) < 0.9 for row in rows]
    assert any(is_rejected)
    assert not all(is_rejected)


def test_a_saved_head_classifies_one_table_and_many(folder):
    run_well("recognise scores.csv --rankings rankings.jsonl --folder run -o first.csv")
    run_well("export run -o head.rankshot")
    (folder / "parts").mkdir()
    for name in ("a", "b"):
        (folder / "parts" / f"{name}.csv").write_bytes((folder / "scores.csv").read_bytes())
    out = run_well("classify parts --head head.rankshot -o out --workers 1")
    first = read_csv("first.csv")
    counts = Counter(row["label"] for row in first)
    printed = {name: int(row[1]) for name, row in table_rows(out).items()}
    assert printed == {name: 2 * n for name, n in counts.items()}
    assert "14 predictions written to out" in out
    for name in ("a", "b"):
        part = read_predictions(folder / "out" / f"{name}.parquet")
        assert part.labels.tolist() == [row["label"] for row in first]


def test_a_run_is_kept_reported_explained_examined_and_exported(folder):
    run_well("recognise scores.csv --rankings rankings.jsonl --folder run -o out.csv")
    run = open_run("run")
    assert run.ids.tolist() == IDS
    assert run_well("report run --truth truth.csv -o page.html").split()[-1] == "page.html"
    assert "leopard" in Path("page.html").read_text("utf-8")
    why = run_well("report run --id x1 --against dog")
    assert str(rs.explain(run.head, SCORES[[0]], against="dog")[0]) in why
    steps = [line.split() for line in run_well("doctor run").splitlines() if " rankshot " in line]
    assert {words[1] for words in steps} == {"recognise", "review"}
    assert float(run_well("export run -o head.onnx").split()[-1]) < 1e-5
    out = run_well("export run -o head.rankshot --note 'for the tests'")
    assert out.startswith("3 classes written to head.rankshot;")
    head = rs.load_head("head.rankshot")
    np.testing.assert_array_equal(head.predict_proba(SCORES), run.head.predict_proba(SCORES))
    out = run_well("doctor head.rankshot").splitlines()
    assert out[:2] == [repr(head), "classes: 'cat', 'dog', 'truck'"]
    assert "note: for the tests" in out
    run_well("report out.csv --truth truth.csv -o other.html")


def test_a_table_to_label_is_written_once_and_read_as_examples(folder):
    run_well("recognise scores.csv --rankings rankings.jsonl --folder run -o out.csv")
    assert run_well("review run --csv labels.csv --number 3").startswith("3 inputs to label in")
    rows = read_csv("labels.csv")
    assert len(rows) == 3
    name = rows[0]["id"]
    text = Path("labels.csv").read_text("utf-8").splitlines()
    Path("labels.csv").write_text("\n".join([text[0], f"{text[1]}cat", *text[2:]]) + "\n")
    assert rankshot("review run --csv labels.csv --overwrite").status == 2
    run_well("recognise scores.csv --rankings rankings.jsonl --examples labels.csv --folder run2")
    assert open_run("run2").labelled == {name: "cat"}


def test_photographs_and_names_are_enough(folder):
    write_photographs(folder / "photos")
    out = run_well('recognise photos --model efficientnet-lite0 --new "raccoon, rocket" -o out.csv')
    used = open_run("photos.rankshot-run").knowledge.rankings
    for name in ("raccoon", "rocket"):
        order = used.select(target=name).orders()[0]
        assert table_rows(out)[name][1].startswith(" > ".join(order[:4]))
        assert table_rows(out)[name][2] == "look-alikes"
    assert "and 4 more in out.csv" in out
    labels = {row["id"]: row["label"] for row in read_csv("out.csv")}
    assert labels["raccoon.jpg"] == "raccoon"
    assert labels["rocket.jpg"] == "rocket"
    assert list((folder / "photos.rankshot-run" / "prompts").glob("rater-*.txt"))


def test_the_head_of_a_run_behind_the_built_in_network(folder):
    write_photographs(folder / "photos")
    run_well('recognise photos --model efficientnet-lite0 --new "raccoon, rocket" --folder run')
    run_well("export run --attach efficientnet-lite0 -o whole.onnx")
    run_well(f"export run --attach '{BUILT_IN_FILE}' -o same.onnx")
    assert Path("whole.onnx").read_bytes() == Path("same.onnx").read_bytes()
    model, run, session = open_built_in(), open_run("run"), InferenceSession("whole.onnx")
    with Image.open("photos/raccoon.jpg") as image:
        pixels = np.asarray(model.preprocessing(image), np.float32)[None]
    found = session.run(["probabilities"], {session.get_inputs()[0].name: pixels})[0]
    head = run.head
    expected = head.predict_proba(rs.Scores(model.run(pixels), head.inner.seen))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert expected.argmax() == list(head.classes_).index("raccoon")


def test_texts_are_scored_and_skipped_ones_are_named(folder):
    model = make_pipeline(CountVectorizer(), LogisticRegression())
    texts = ["a wheel", "a wing", "", " "]
    model.fit(texts[:2], ["car", "bird"])
    dump(model, "model.skops")
    lines = ["id,text", *(f"t{i},{text}" for i, text in enumerate(texts))]
    Path("texts.csv").write_text("\n".join(lines) + "\n")
    assert rankshot("score texts.csv --model model.skops -o s.csv").status == 2
    words = "score texts.csv --model model.skops --on-error skip -o"
    lines = run_well(f"{words} s.csv").splitlines()
    skipped = "skipped 2 inputs: 2 no text in the column 'text'"
    assert lines[:2] == ["2 inputs scored; scores written to s.csv", skipped]
    assert lines[2:] == rs.recognition.check_scores(rs.scores_of(model, texts[:2])).describe()
    assert [row["id"] for row in read_csv("s.csv")] == ["t0", "t1"]
    assert run_well(f"{words} parts").splitlines()[1] == skipped
    again = run_well(f"{words} parts").splitlines()[0]
    assert again == "2 inputs scored; 1 of 1 parts by an earlier run; scores written to parts"


def test_rankings_of_names_and_prompts_that_ask_for_them(folder):
    (folder / "seen.txt").write_text("zebra\nbus\nleopard\n")
    out = run_well('rank --seen seen.txt --new "okapi, tram" --source look-alikes -o rank.jsonl')
    assert "4 rankings written to rank.jsonl" in out
    merged = rs.read_rankings("rank.jsonl")
    seen = ["zebra", "bus", "leopard"]
    assert merged.orders() == rs.LookAlikes().rankings(["okapi", "tram"], seen).orders()
    run_well("rank --seen seen.txt --rehearse 1 --source look-alikes -o held.jsonl")
    (held_out,), rest = rs.sources.choose_rehearsed(seen, 1)
    assert set(rs.read_rankings("held.jsonl").targets) == {held_out}
    assert set(rs.read_rankings("held.jsonl").items) <= set(rest)
    out = run_well('rank --seen seen.txt --new "okapi, tram" --prompts prompts')
    assert out.startswith("5 prompts written to prompts")
    guide = Path("prompts/READ-ME-FIRST.txt").read_text("utf-8")
    assert all(f"prompts/rater-{i}.txt" in guide for i in range(1, 6))
    assert "okapi" in (folder / "prompts" / "rater-1.txt").read_text("utf-8")
    answer = folder / "prompts" / "answers" / "rater-1.txt"
    answer.write_text("okapi: zebra, leopard, bus\ntram: bus, zebra, leopard\n")
    words = 'rank --seen seen.txt --new "okapi, tram" --source answers:prompts/answers -o a.jsonl'
    run_well(words)
    assert rs.read_rankings("a.jsonl").orders()[0][0] == "zebra"


def test_what_each_source_says_is_printed(folder):
    Path("seen.txt").write_text("zebra\nbus\nleopard\ntram car\n")
    Path("answers").mkdir()
    for rater in (1, 2):
        Path(f"answers/rater-{rater}.txt").write_text("okapi: zebra, leopard\n")
    Path("names.csv").write_text("class,look_up\ntram car,streetcar\n")
    words = 'rank --seen seen.txt --new "okapi, giraffe" --k 2 --names names.csv -o r.jsonl'
    out = run_well(f"{words} --source answers:answers --source look-alikes")
    read = rs.read_rankings("r.jsonl")
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines()]
    rows = {(row[0], row[2]): row[1] for row in rows if len(row) == 3}
    answered, looked = sorted({*read.sources}, key="look-alikes".__eq__)
    assert rows["okapi", answered].split(" (")[0] == "zebra > leopard"
    assert "1 more rater" in rows["okapi", answered]
    assert rows["okapi", looked].startswith(
        read.select(target="okapi", source=looked).orders()[0][0]
    )
    assert ("giraffe", answered) not in rows


def test_a_question_of_ones_own_and_a_model_that_costs_money(folder, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    words = "rank --seen truth.txt --new okapi"
    Path("truth.txt").write_text("zebra\nbus\n")
    Path("own.txt").write_text("Which of {items} smells like {target}? The first {k}.")
    run_well(f"{words} --question own.txt --prompts prompts")
    assert "smells like" in Path("prompts/rater-1.txt").read_text("utf-8")
    done = rankshot(f"{words} --question none.txt --prompts other")
    assert (done.status, Path("other").exists()) == (2, False)
    assert "--question" in done.err
    # Nobody can be asked for confirmation here.
    done = rankshot(f"{words} --source llm:some-model -o r.jsonl")
    assert (done.status, Path("r.jsonl").exists()) == (2, False)
    assert "--yes" in done.err
    Path("latin.csv").write_bytes("caf\xe9\nbus\n".encode("latin-1"))
    assert rankshot("rank --seen latin.csv --new okapi -o r.jsonl").status == 2


@pytest.mark.parametrize("method", ["kemeny", "plackett-luce", "mallows"])
def test_a_consensus_is_that_of_python_and_printed_with_its_numbers(folder, method):
    read = rs.read_rankings("rankings.jsonl")
    models = {"plackett-luce": rs.PlackettLuce(), "mallows": rs.Mallows()}
    summaries = rs.ranking.summarize(read, models.get(method, method))
    out = run_well(f"consensus rankings.jsonl --method {method} -o merged.jsonl")
    merged = rs.read_rankings("merged.jsonl")
    assert merged.orders() == [one.consensus.orders()[0] for one in summaries]
    assert set(merged.sources) == {"consensus"}
    head = next(line for line in out.splitlines() if line.startswith("┃"))
    names = [cell.strip() for cell in head.split("┃")[1:-1]]
    after = " worths" if method == "plackett-luce" else ""
    assert names[:3] == ["target", "rankings", f"consensus, with{after}" if after else "consensus"]
    rows = table_rows(out)
    for one in summaries:
        row = dict(zip(names, rows[one.target], strict=True))
        assert row["rankings"] == str(one.n_rankings)
        assert row["W"] == ("-" if one.concordance is None else f"{one.concordance:.2f}")
        assert row["distance"] == f"{one.mean_distance:.2f}"
        far = [f"{name} {value:.2f}" for name, value in one.disagreement if value >= 0.005]
        assert row["furthest"] == (" ".join(far[:3]) or "-")
        assert row.get("spread") == (f"{one.model.spread_:.3g}" if method == "mallows" else None)
        first = names[2] == "consensus" or f"{one.model.worths_.max():.2g}"
        assert first is True or f" {first} > " in row[names[2]]


@pytest.mark.parametrize("n", [50, 51])
def test_of_a_long_consensus_the_first_places_are_printed(folder, n):
    names = [f"item {i}" for i in range(n)]
    Path("ballots.csv").write_text(
        f"rater,{','.join(names)}\nann,{','.join(map(str, range(1, n + 1)))}\n"
    )
    out = run_well("consensus ballots.csv --layout places --column ignore=")
    assert "items: item 0" in out
    assert ("1 more" in out, "-o FILE" in out) == (n > 50, n > 50)
    some = " --column 'items=item 1, item 0' --column ignore="
    out = run_well(f"consensus ballots.csv --layout places{some}")
    assert "items: item 1, item 0" in out


def test_a_table_that_is_too_wide_has_no_lines_and_whole_numbers(folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "44")
    out = run_well("consensus rankings.jsonl")
    table = out[out.index("Consensus of") : out.index("W: 1")].splitlines()
    assert "│" not in out
    assert all(line.strip() for line in table)
    assert max(map(len, table)) <= 44
    for one in rs.ranking.summarize(rs.read_rankings("rankings.jsonl"), "kemeny"):
        assert f" {one.mean_distance:.2f} " in out


def test_options_of_a_leaderboard_are_arguments_in_python(folder, rng):
    rows = ["winner,loser,who,prompt,length,kind"]
    for _ in range(60):
        pair = ",".join(rng.choice(list("abc"), 2, replace=False))
        rows.append(
            f"{pair},p{rng.integers(9)},q{rng.integers(9)},{rng.normal()},k{rng.integers(2)}"
        )
    Path("votes.csv").write_text("\n".join(rows))
    out = run_well(
        "leaderboard votes.csv --layout votes --column rater=who --cluster prompt --ties half "
        "--covariates length --category kind --min-votes 1 --scale elo --looks many --level .9 "
        "-o board.json --html board.html"
    )
    columns = {"rater": "who", "cluster": "prompt", "category": "kind", "covariates": ["length"]}
    options = {"ties": "half", "min_votes": 1, "scale": "elo", "looks": "many", "level": 0.9}
    read = leaderboards.read_votes("votes.csv", **columns)
    board = rs.leaderboard(read, category=True, **options)
    leaderboards.save_board(board, "expected.json")
    assert Path("board.json").read_bytes() == Path("expected.json").read_bytes()
    assert Path("board.html").stat().st_size > 0
    printed = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines()]
    for one in (board, *board.categories.values()):
        assert all(list(row) in printed for row in one.iterate_rows())
    run_well(
        "leaderboard votes.csv --column rater=who --column ignore=prompt,length,kind "
        "--plot board.svg -o board.csv"
    )
    assert Path("board.svg").stat().st_size > 0
    assert {row["item"] for row in read_csv("board.csv")} == {"a", "b", "c"}
    done = rankshot("leaderboard votes.csv --category kind --plot other.svg")
    assert (done.status, Path("other.svg").exists()) == (2, False)


def test_the_demo_writes_the_files_of_the_guide(folder):
    out = run_well("demo --files-only -o demo")
    assert "rankshot recognise demo/photographs --model efficientnet-lite0" in out
    assert "votes.csv" in out
    assert len(list((folder / "demo" / "photographs").glob("*.jpg"))) == 12
    run_well("demo --files-only -o demo")
    (folder / "demo" / "mine.txt").write_text("mine")
    done = rankshot("demo --files-only -o demo")
    assert done.status == 2
    assert (folder / "demo" / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("words", [["--help"], ["recognise", "none.csv", "--new", "okapi"]])
def test_help_is_quick_and_a_missing_file_is_named_at_once(words):
    code = f"import sys; sys.argv = {['rankshot', *words]}\n"
    code += "from rankshot.cli import main\ntry: main()\nexcept SystemExit: pass\n"
    code += "print(sorted({'numpy', 'scipy', 'sklearn'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert ("none.csv" in done.stderr) == (len(words) > 1)
