"""``rankshot leaderboard``: tables of votes and rankings, the table, files and bad input."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import rankshot as rs
from command_line import check_refused, run_well

pytest.importorskip("matplotlib")

VOTES = "model_a,model_b,winner,rater\n" + "".join(
    line * times
    for line, times in (
        ("ant,bee,model_a,ann\n", 9),
        ("ant,bee,model_b,bob\n", 4),
        ("bee,cat,model_a,ann\n", 7),
        ("bee,cat,cat,cy\n", 3),
        ("ant,cat,tie,cy\n", 1),
    )
)
BALLOTS = """\
{"ranking": ["ant", "bee", "cat"], "target": "spring", "weight": 5}
{"ranking": ["bee", "ant", "cat"], "target": "spring", "weight": 2}
{"ranking": ["cat", "ant", "bee"], "target": "autumn"}
"""
BOARD = "leaderboard votes.csv"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "votes.csv").write_text(VOTES)
    (tmp_path / "ballots.jsonl").write_text(BALLOTS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read_board(path):
    with Path(path).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_a_table_of_votes_becomes_a_leaderboard(folder):
    out = run_well(f"{BOARD} -o board.csv")
    assert "3 items, 24 rankings, 95 % intervals by simulation" in out
    assert "leaderboard written to board.csv" in out
    wanted = rs.leaderboard(rs.read_pairs("votes.csv"), random_state=0)
    rows = read_board("board.csv")
    assert [row["item"] for row in rows] == ["ant", "bee", "cat"]
    assert [row["rank"] for row in rows] == ["1", "2", "3"]
    np.testing.assert_array_equal([float(row["log_worth"]) for row in rows], wanted.log_worths)
    ranks = [[int(row["best_rank"]), int(row["worst_rank"])] for row in rows]
    assert ranks == wanted.rank_intervals.tolist()
    for row in wanted.iterate_rows():
        assert all(cell in out for cell in row)


def test_options_are_those_of_python(folder):
    # The votes are without a rater: three of them would be too few for the bootstrap.
    lines = [line.rsplit(",", 1)[0] for line in VOTES.splitlines()]
    (folder / "votes.csv").write_text("\n".join(lines))
    options = {"level": 0.8, "method": "bootstrap", "n_draws": 30}
    run_well(f"{BOARD} --level .8 --method bootstrap --draws 30 --seed 4 -o board.json")
    wanted = rs.leaderboard(rs.read_pairs("votes.csv"), random_state=4, **options)
    found = json.loads((folder / "board.json").read_text())
    assert (found["level"], found["method"], found["weight"]) == (0.8, "bootstrap", 24)
    low = [item["low"] for item in found["items"]]
    np.testing.assert_array_equal(low, wanted.intervals[:, 0])


def test_columns_can_have_other_names(folder):
    table = VOTES.replace("model_a,model_b,winner", "left,right,outcome").replace("model_a", "left")
    (folder / "other.csv").write_text(table.replace("model_b", "right"))
    run_well("leaderboard other.csv --first left --second right --winner outcome -o other.json")
    run_well(f"{BOARD} -o board.json")
    assert (folder / "other.json").read_bytes() == (folder / "board.json").read_bytes()


def test_rankings_of_one_target(folder):
    run_well("leaderboard ballots.jsonl --target spring -o board.csv")
    assert [row["item"] for row in read_board("board.csv")] == ["ant", "bee", "cat"]


@pytest.mark.parametrize(("name", "begin"), [("w.png", b"\x89PNG"), ("w.svg", b"<?xml")])
def test_a_picture_is_written(folder, name, begin):
    out = run_well(f"{BOARD} --plot {name}")
    assert f"picture written to {name}" in out
    assert (folder / name).read_bytes().startswith(begin)


@pytest.mark.parametrize(
    ("words", "files", "message"),
    [
        ("consensus votes.csv", {}, "with Rankings.from_positions if there is one for each item"),
        (BOARD, {"votes.csv": VOTES.replace("tie", "both")}, "votes.csv:25: 'winner' is 'both'"),
        (f"{BOARD} --winner victor", {}, "with --first, --second and --winner, or those of"),
        ("leaderboard ballots.jsonl", {}, "several targets ('autumn', 'spring'); choose one with"),
        ("leaderboard ballots.jsonl --first a", {}, "--first is for tables of pairs, not rankings"),
        (f"{BOARD} --level 95", {}, "--level must be positive and below 1, not 95"),
    ],
)
def test_bad_input_is_refused(folder, words, files, message):
    check_refused(folder, words, files, message)
