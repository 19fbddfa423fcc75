"""``rankshot leaderboard``: tables of votes and rankings, the table, files and bad input."""

import json

import numpy as np
import pytest

import rankshot as rs
from command_line import check_refused, read_csv, run_well

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


def test_a_table_of_votes_becomes_a_leaderboard(folder):
    out = run_well(f"{BOARD} -o board.csv")
    assert "3 items, 24 votes by 3 raters, 95% comparison intervals" in out
    assert "leaderboard written to board.csv" in out
    wanted = rs.leaderboard("votes.csv")
    rows = read_csv("board.csv")
    assert [row["item"] for row in rows] == ["ant", "bee", "cat"]
    assert [row["rank"] for row in rows] == ["1", "2", "3"]
    np.testing.assert_array_equal([float(row["rating"]) for row in rows], wanted.log_worths)
    low = [float(row["low"]) for row in rows]
    np.testing.assert_array_equal(low, wanted.comparison_intervals[:, 0])
    ranks = [[int(row["best_rank"]), int(row["worst_rank"])] for row in rows]
    assert ranks == wanted.rank_intervals.tolist()
    for row in wanted.iterate_rows():
        assert all(cell in out for cell in row)
    assert "is preferred, ties aside" in out


def test_names_do_not_break_on_a_narrow_terminal(folder, monkeypatch):
    """With lines between the columns, a name of 20 letters took three lines."""
    monkeypatch.setenv("COLUMNS", "80")
    names = {"ant": "mistral-large-2407", "bee": "claude-sonnet-4-2025", "cat": "gpt-4o-mini"}
    text = VOTES
    for short, name in names.items():
        text = text.replace(f"{short},", f"{name},")
    (folder / "votes.csv").write_text(text)
    table = run_well(BOARD).partition("\nrank ")[2]
    assert [row.split()[1] for row in table.splitlines()[2:5]] == list(names.values())


def test_options_are_those_of_python(folder):
    run_well(f"{BOARD} --level .8 --ties half --seed 4 --scale elo --looks many -o board.json")
    options = {"level": 0.8, "ties": "half", "random_state": 4, "scale": "elo", "looks": "many"}
    wanted = rs.leaderboard("votes.csv", **options)
    found = json.loads((folder / "board.json").read_text())
    assert (found["level"], found["scale"], found["weight"]) == (0.8, "elo", 24)
    assert found["items"] == [row._asdict() for row in wanted]


def test_columns_can_have_other_names(folder):
    table = VOTES.replace("model_a,model_b,winner", "x,y,outcome").replace("model_a", "x")
    (folder / "other.csv").write_text(table.replace("model_b", "y"))
    run_well(
        "leaderboard other.csv --column a=x --column b=y --column winner=outcome -o other.json"
    )
    run_well(f"{BOARD} -o board.json")
    files = [json.loads((folder / name).read_text()) for name in ("other.json", "board.json")]
    readings = [found.pop("reading") for found in files]
    assert files[0] == files[1]
    assert readings[0] != readings[1]


def test_items_that_only_the_penalty_holds_are_named(folder):
    assert "always won" not in run_well(BOARD)
    (folder / "more.csv").write_text(VOTES + "dog,ant,model_a,ann\neel,cat,model_b,bob\n")
    out = run_well("leaderboard more.csv")
    assert "(nothing else was placed before 'dog'; nothing else was placed after 'eel')" in out
    with_tie = VOTES + "dog,ant,model_a,ann\ndog,ant,tie,ann\n"
    (folder / "more.csv").write_text(with_tie)
    assert "always won" not in run_well("leaderboard more.csv")
    assert "before 'dog')" in run_well("leaderboard more.csv --ties ignore")
    assert "too few votes to be ranked: dog (2)" in run_well("leaderboard more.csv --min-votes 5")


def test_boards_by_category_and_covariates(folder):
    lines = VOTES.splitlines()
    rows = [f"{line},{'day' if i % 2 else 'night'},{i % 5}" for i, line in enumerate(lines[1:])]
    (folder / "more.csv").write_text("\n".join([f"{lines[0]},time,length", *rows]))
    out = run_well("leaderboard more.csv --category time --ties half -o boards.csv")
    assert out.index("day: 3 items, 12 votes") < out.index("night: 3 items, 12 votes")
    assert "No item differs clearly between the categories" in out
    categories = ["all"] * 3 + ["day"] * 3 + ["night"] * 3
    assert [row["category"] for row in read_csv("boards.csv")] == categories
    out = run_well("leaderboard more.csv --covariates length,position --ties half")
    assert "effect of length: " in out
    assert "effect of position: " in out


def test_ballots_are_read(folder):
    (folder / "ballots.csv").write_text("name,first,second\nann,tea,milk\nbob,milk,tea\ncy,tea,\n")
    assert "2 items, 3 rankings" in run_well("leaderboard ballots.csv")
    read_as = "read as items in order, best first; items: milk, tea"
    for command in ("consensus", "leaderboard"):
        assert read_as in run_well(f"{command} ballots.csv")
    assert "tea > milk" in run_well("consensus ballots.csv")
    assert "tea 0.67 > milk 0.33" in run_well("consensus ballots.csv --method plackett-luce")
    (folder / "places.csv").write_text("tea,milk,rum\n1,2,2\n2,1,3\n")
    out = run_well("consensus places.csv --layout places")
    assert "read as places, 1 is best; items: tea, milk, rum" in out
    assert "tea = milk > rum" in out
    assert "3 items, 2 rankings" in run_well("leaderboard places.csv --layout places")
    for command in ("consensus", "leaderboard"):
        message = "places (1 is best, --layout places) or scores (the highest is best, --layout sc"
        check_refused(folder, f"{command} places.csv", {}, message)


def test_votes_have_a_consensus_of_all_items(folder):
    (folder / "few.csv").write_text("winner,loser\nant,bee\nbee,cat\ncat,dog\nbee,ant\ndog,cat\n")
    out = run_well("consensus few.csv")
    assert "warning: 3 pairs of items were never compared" in out
    assert "use --method plackett-luce" in out
    out = run_well("consensus few.csv --method plackett-luce")
    assert all(f"{name} 0." in out for name in ("ant", "bee", "cat", "dog"))


def test_long_form_kinds_and_skipped_rows(folder):
    (folder / "long.csv").write_text("who;item;stars\n1;tea;3\n1;rum;5\n2;rum;4\n2;gin;1\n")
    out = run_well("leaderboard long.csv --column rater=who --column score=stars")
    assert "read as scores, the highest is best; items: gin, rum, tea" in out
    (folder / "some.csv").write_text("1,2\ntea,rum\nrum,gin\n")
    assert "tea > rum > gin" in run_well("consensus some.csv --kind subset")
    (folder / "votes.csv").write_text(VOTES + "ant,bee,?,cy\n")
    ballots = folder / "ballots.csv"
    ballots.write_text("1,2\nx,y\nx,x\ny,x\n")
    for command in ("leaderboard", "consensus"):
        out = run_well(f"{command} ballots.csv --column on_error=skip")
        assert "warning: 1 row of 3 skipped: ballots.csv:3: item 'x' is listed" in out
    out = run_well(f"{BOARD} --column on_error=skip")
    assert "warning: 1 row of 25 skipped: votes.csv:26: 'winner' is '?'" in out
    assert "3 items, 24 votes" in out


def test_all_places_count_and_are_shown(folder):
    """Ballots of twelve items: no place is left out, unless the user says so."""
    items = [f"i{number:02}" for number in range(12)]
    swapped = [*items[:10], "i11", "i10"]
    rows = [[str(place) for place in range(1, 13)], items, swapped, swapped]
    (folder / "long.csv").write_text("\n".join(map(",".join, rows)))
    out = run_well("consensus long.csv -o merged.jsonl --explain")
    assert all(name in out for name in items)
    assert rs.read_rankings("merged.jsonl").orders() == [swapped]
    assert "over the first 12 places, divided by the largest possible distance" in out
    out = run_well("consensus long.csv --k 4")
    assert "Only the first 4 places of each ranking are used: there are 12 items." in out
    assert "--explain describes all columns" in out


def test_rankings_of_one_target(folder):
    run_well("leaderboard ballots.jsonl --target spring -o board.csv")
    assert [row["item"] for row in read_csv("board.csv")] == ["ant", "bee", "cat"]


@pytest.mark.parametrize(("name", "begin"), [("w.png", b"\x89PNG"), ("w.svg", b"<?xml")])
def test_a_plot_is_written(folder, name, begin):
    out = run_well(f"{BOARD} --plot {name}")
    assert f"plot written to {name}" in out
    assert (folder / name).read_bytes().startswith(begin)


@pytest.mark.parametrize(
    ("words", "files", "message"),
    [
        (BOARD, {"votes.csv": VOTES.replace("tie", "both")}, "votes.csv:25: 'winner' is 'both'"),
        (f"{BOARD} --column winner=victor", {}, "column='victor'"),
        (f"{BOARD} --column winer=x", {}, "not 'winer' (did you mean 'winner'?)"),
        (f"{BOARD} --column a=x --layout votes", {}, "column='x'"),
        (
            f"{BOARD} --column a=x --layout places",
            {},
            "--column a=x applies to votes, not to --layout",
        ),
        (f"{BOARD} --column item=rater", {}, "item=rater applies to ballots, but these are votes"),
        (
            BOARD,
            {"votes.csv": VOTES.replace("model_a,ann", "0,ann").replace("model_b,bob", "1,bob")},
            "choose with --column outcomes=index or --column outcomes=score",
        ),
        (
            "consensus b.csv --layout scores",
            {"b.csv": "age,x,y\n31,2,3\n"},
            "--column ignore=age leaves out columns that are not items",
        ),
        (f"{BOARD} --category rater --plot w.png", {}, "--plot shows one leaderboard"),
        (f"{BOARD} --target math", {}, "votes have no targets: use --category COLUMN"),
        (
            f"{BOARD} --category rater --layout orders",
            {},
            "rater applies to votes, not to",
        ),
        (
            "leaderboard b.csv --category region",
            {"b.csv": "voter,region,1,2\nann,north,x,y\n"},
            "b.csv: a must name one of the columns",
        ),
        (
            BOARD,
            {"votes.csv": "model_a,model_b,judge\nx,y,ann\n"},
            "votes.csv: winner must name one of the columns",
        ),
        ("leaderboard ballots.jsonl", {}, "several targets ('autumn', 'spring'); choose with"),
        ("leaderboard ballots.jsonl --target sprung", {}, "no target 'sprung' (did you mean"),
        (
            "leaderboard ballots.jsonl --column a=x",
            {},
            "applies to tables of votes or ballots, not rankings",
        ),
        (
            "leaderboard ballots.jsonl",
            {"ballots.jsonl": '{"ranking": ["a", "b"], "weight": 0}\n'},
            "must have a ranking of positive weight",
        ),
        (f"{BOARD} --level 95", {}, "--level must be positive and below 1, not 95"),
    ],
)
def test_bad_input_is_refused(folder, words, files, message):
    check_refused(folder, words, files, message)


def test_a_page_and_json_for_a_web_site(folder):
    pytest.importorskip("jinja2")
    out = run_well(f"{BOARD} --html board.html -o board.json")
    assert "page written to board.html" in out
    page = (folder / "board.html").read_text()
    assert "ant" in page
    assert 'id="raters"' in page
    found = json.loads((folder / "board.json").read_text())
    board = rs.leaderboard("votes.csv")
    assert found["items"][0]["better_than"] == int(board.clearly_better[0].sum())
    assert {pair["first"] for pair in found["pairs"]} <= {*board.items}
    assert sum(pair["votes"] for pair in found["pairs"]) == board.weight


def test_categories_may_have_covariates_and_clusters(folder):
    lines = (folder / "votes.csv").read_text().splitlines()
    more = [f"{line},{i % 2},{i % 5},{i % 3 - 1}" for i, line in enumerate(lines[1:] * 3)]
    (folder / "more.csv").write_text("\n".join([f"{lines[0]},topic,prompt,length", *more]))
    out = run_well("leaderboard more.csv --category topic --covariates length --cluster prompt")
    assert out.count("effect of length") == 3
