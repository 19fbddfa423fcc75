"""Every command as a user calls it: what it writes is what the library returns."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rankshot as rs
from command_line import IDS, LOGITS, SEEN, TRUTH, USUAL, rankings, rankshot, read_csv, run_well
from rankshot.datasets import write_photographs
from rankshot.recognition import open_run
from rankshot.zeroshot.files.predictions import read_predictions

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
    run_well(words)
    predicted = read_predictions("out.parquet")
    expected = rs.recognise(SCORES, rankings(), **{"batch": False, **known})
    assert predicted.ids.tolist() == IDS
    assert predicted.labels.tolist() == expected.labels.tolist()
    np.testing.assert_allclose(predicted.proba, expected.proba, atol=1e-6)


@pytest.mark.parametrize(
    ("table", "score_type"), [("scores.csv", "auto"), ("pairs.parquet", "one-vs-one")]
)
def test_tables_are_classified_by_rankings_alone(folder, table, score_type):
    run_well(f"classify {table} --rankings rankings.jsonl --score-type {score_type} -o out.parquet")
    expected = rs.recognise(folder / table, rankings(), batch=False)
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
    run_well("classify parts --head head.rankshot -o out --workers 1")
    first = read_csv("first.csv")
    for name in ("a", "b"):
        part = read_predictions(folder / "out" / f"{name}.parquet")
        assert part.labels.tolist() == [row["label"] for row in first]


def test_a_run_is_kept_reported_explained_examined_and_exported(folder):
    run_well("recognise scores.csv --rankings rankings.jsonl --folder run -o out.csv")
    run = open_run("run")
    assert run.ids.tolist() == IDS
    run_well("report run --truth truth.csv -o page.html")
    assert "leopard" in Path("page.html").read_text("utf-8")
    why = run_well("report run --id x1 --against dog")
    assert str(rs.explain(run.head, SCORES[[0]], against="dog")[0]) in why
    assert "rankshot review run" in run_well("doctor run")
    run_well("export run -o head.onnx")
    run_well("export run -o head.rankshot")
    head = rs.load_head("head.rankshot")
    np.testing.assert_array_equal(head.predict_proba(SCORES), run.head.predict_proba(SCORES))
    assert "LinearHead" in run_well("doctor head.rankshot")
    run_well("report out.csv --truth truth.csv -o other.html")


def test_a_table_to_label_keeps_what_was_filled_in(folder):
    run_well("recognise scores.csv --rankings rankings.jsonl --folder run -o out.csv")
    run_well("review run --csv labels.csv --number 3")
    rows = read_csv("labels.csv")
    assert len(rows) == 3
    name = rows[0]["id"]
    text = Path("labels.csv").read_text("utf-8").splitlines()
    Path("labels.csv").write_text("\n".join([text[0], f"{text[1]}cat", *text[2:]]) + "\n")
    run_well("review run --csv labels.csv --number 3")
    again = read_csv("labels.csv")
    assert {row["id"]: row["label"] for row in again}[name] == "cat"
    run_well("recognise scores.csv --rankings rankings.jsonl --examples labels.csv --folder run2")
    assert open_run("run2").labelled == {name: "cat"}


def test_photographs_and_names_are_enough(folder):
    write_photographs(folder / "photos")
    run_well('recognise photos --model efficientnet-lite0 --new "raccoon, rocket" -o out.csv')
    labels = {row["id"]: row["label"] for row in read_csv("out.csv")}
    assert labels["raccoon.jpg"] == "raccoon"
    assert labels["rocket.jpg"] == "rocket"
    assert list((folder / "photos.rankshot-run" / "prompts").glob("rater-*.txt"))


def test_rankings_of_names_and_prompts_that_ask_for_them(folder):
    (folder / "seen.txt").write_text("zebra\nbus\nleopard\n")
    run_well('rank --seen seen.txt --new "okapi, tram" --source look-alikes -o rank.jsonl')
    merged = rs.read_rankings("rank.jsonl")
    expected = rs.LookAlikes().rankings(["okapi", "tram"], ["zebra", "bus", "leopard"])
    assert merged.orders() == expected.orders()
    run_well('rank --seen seen.txt --new "okapi, tram" --prompts prompts')
    assert "okapi" in (folder / "prompts" / "rater-1.txt").read_text("utf-8")
    answer = folder / "prompts" / "answers" / "rater-1.txt"
    answer.write_text("okapi: zebra, leopard, bus\ntram: bus, zebra, leopard\n")
    words = 'rank --seen seen.txt --new "okapi, tram" --source answers:prompts/answers -o a.jsonl'
    run_well(words)
    assert rs.read_rankings("a.jsonl").orders()[0][0] == "zebra"


def test_consensus_and_leaderboard(folder):
    run_well("consensus rankings.jsonl -o merged.jsonl")
    merged = rs.read_rankings("merged.jsonl")
    summaries = rs.ranking.summarize(rs.read_rankings("rankings.jsonl"), "kemeny", None)
    assert merged.orders() == [one.consensus.orders()[0] for one in summaries]
    votes = "winner,loser,rater\na,b,1\na,c,2\nb,a,3\nb,c,1\nc,a,2\n"
    (folder / "votes.csv").write_text(votes)
    run_well("leaderboard votes.csv --html board.html -o board.json --plot board.svg")
    board = rs.leaderboard("votes.csv")
    assert {row["item"] for row in json.loads(Path("board.json").read_text())["items"]} == {
        *board.items
    }
    assert Path("board.html").stat().st_size > 0
    assert Path("board.svg").stat().st_size > 0


def test_the_demo_writes_the_files_of_the_guide(folder):
    run_well("demo --files-only -o demo")
    assert len(list((folder / "demo" / "photographs").glob("*.jpg"))) == 12
    run_well("demo --files-only -o demo")
    (folder / "demo" / "mine.txt").write_text("mine")
    done = rankshot("demo --files-only -o demo")
    assert done.status == 2
    assert (folder / "demo" / "mine.txt").read_text() == "mine"


def test_help_is_quick_and_loads_no_library():
    code = "import sys; sys.argv = ['rankshot', '--help']\n"
    code += "from rankshot.cli import main\ntry: main()\nexcept SystemExit: pass\n"
    code += "print(sorted({'numpy', 'scipy', 'sklearn'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
