"""Tables of votes between two items and of ballots, and data frames of numbers."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

import rankshot as rs
from rankshot.core.errors import InputError
from rankshot.ranking.votes import OUTCOMES
from refusals import ANY, refuses

Rankings = rs.Rankings
ARENA = """id,model_a,model_b,winner,judge,weight
1,ant,bee,model_a,p1,1
2,bee,cat,model_b,p2,2
3,ant,cat,tie (bothbad),p1,1
4,cat,ant,Tie,,1
5,cat,ant,ant,p3,0.5
"""


def write(path, text):
    if path.suffix == ".csv":
        path.write_text(text)
    else:
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        source = path.with_suffix(".txt")
        source.write_text(text)
        pandas.read_csv(source).to_parquet(path)
    return path


@pytest.fixture(params=["arrow", "csv"])
def reader(request, monkeypatch):
    """CSV is read by PyArrow, and without it."""
    if request.param == "csv":
        monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    else:
        pytest.importorskip("pyarrow")


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas", "polars"])
@pytest.mark.usefixtures("reader")
def test_a_table_of_two_sides_and_an_outcome(tmp_path, kind):
    votes = write(tmp_path / f"votes.{'parquet' if kind == 'parquet' else 'csv'}", ARENA)
    if kind in {"pandas", "polars"}:
        votes = pytest.importorskip(kind).read_csv(votes)
    pairs = rs.read_rankings(votes)
    assert pairs.orders() == [
        ["ant", "bee"], ["cat", "bee"], [["ant", "cat"]], [["ant", "cat"]], ["ant", "cat"]
    ]  # fmt: skip
    assert pairs.raters.tolist() == ["p1", "p2", "p1", None, "p3"]
    # Weights are relative to their mean.
    assert_allclose(pairs.weights, np.array([1, 2, 1, 1, 0.5]) / 1.1)
    assert rs.read_rankings(votes, items=["cat", "bee", "ant", "dog"]).items[-1] == "dog"
    assert rs.read_rankings(votes, category="id").targets.tolist() == list("12345")


@pytest.mark.parametrize("word", [*OUTCOMES, "MODEL_A", "Model A", "bothbad", "y ", "x"])
def test_the_winner_has_many_spellings(tmp_path, word):
    wanted = {"MODEL_A": 0, "Model A": 0, "bothbad": 2, "y ": 1, "x": 0}
    order = [["x", "y"], ["y", "x"], [["x", "y"]]][(OUTCOMES | wanted)[word]]
    path = write(tmp_path / "votes.csv", f"left,right,outcome\nx,y,{word}\n")
    assert rs.read_rankings(path).orders() == [order]


@pytest.mark.parametrize(
    ("text", "options", "parameter", "value", "line"),
    [
        (ARENA.replace("Tie", "both"), {}, "'winner'", "both", ":5"),
        (ARENA.replace("bee,cat", "cat,cat"), {}, "item", "cat", ":3"),
        (ARENA.replace("0.5", "x"), {}, "'weight'", "x", ":6"),
        (ARENA.replace("0.5", "-1"), {}, "'weight'", "-1", ":6"),
        (ARENA.replace("Tie", "NA"), {}, "row", ANY, ":5"),
        (ARENA, {"count": "weight"}, "'weight'", "0.5", ":6"),
        (ARENA.replace(",bee,model_a", ",,model_a"), {}, "row", ANY, ":2"),
        (ARENA, {"rater": "jugde"}, "column", "jugde", ""),
        (ARENA, {"winner": "won"}, "column", "won", ""),
        (ARENA, {"a": "modela"}, "column", "modela", ""),
        ("x,loses\na,b\n", {"loser": "loses"}, "winner", ANY, ""),
        ("x,won\na,b\n", {"winner": "won"}, "a", ANY, ""),
        ("x,won\na,b\n", {"winner": "won", "a": "x"}, "b", ANY, ""),
        ("winner,loser\na,b\nDraw,a\n", {}, "winner", "Draw", ":3"),
        ("winner,loser\na,b\n", {"tie": "ties"}, "column", "ties", ""),
        (ARENA, {"items": ["ant", "bee", "cats"]}, "item", "cat", ":3"),
        ("winner,loser,tie\na,b,perhaps\n", {}, "'tie'", "perhaps", ":2"),
        ("a,b,winner\nleft,x,b\nx,left,left\n", {}, "outcomes", "left", ":3"),
        ("a,b,winner\nx,y\n", {}, "line", ANY, ":2"),
        # Lines are counted across quoted line breaks and blank lines.
        ('a,b,winner\n"x\n1",y,a\n\ny,z,never\n', {}, "'winner'", "never", ":5"),
    ],
)
@pytest.mark.usefixtures("reader")
def test_errors_name_the_line(tmp_path, text, options, parameter, value, line):
    path = write(tmp_path / "votes.csv", text)
    with refuses(parameter, value, f"{path}{line}"):
        rs.read_rankings(path, **options)


# ---- Rows that cannot be read, copies, and who voted


BAD = """vote_id,model_a,model_b,winner,user_id,session_id,weight
1,ant,bee,model_a,p1,s1,2
2,ant,ant,model_a,p1,s1,1
3,bee,cat,neighter,p2,s2,1
4,cat,,model_a,p2,s2,1
5,cat,dog,model_a,p2,s2,x
6,bee,cat,model_b,p2,s3
7,bee,cat,model_b,p2,s3,4
7,bee,cat,model_b,p2,s3,4
"""


@pytest.mark.usefixtures("reader")
def test_bad_rows_are_counted_shown_and_skipped(tmp_path):
    path = write(tmp_path / "votes.csv", BAD)
    with refuses("line", where=f"{path}:7"):
        rs.read_rankings(path, rater="user_id")
    with pytest.warns(UserWarning, match=r"6 rows of 8 .*votes\.csv:7: .*votes\.csv:3: "):
        found = rs.read_rankings(path, rater="user_id", on_error="skip")
    assert found.items == ("ant", "bee", "cat")
    assert found.orders() == [["ant", "bee"], ["cat", "bee"]]
    # Those that are left have the mean weight 1.
    assert_allclose(found.weights, [2 / 3, 4 / 3])
    with refuses("table", where=str(path)):
        rs.read_rankings(path, rater="user_id", on_error="skip", items=["x", "y"])
    with refuses("on_error", "raise"):
        rs.read_rankings(path, on_error="raise")
    path = tmp_path / "votes.jsonl"
    path.write_text('{"winner": "a", "loser": "b"}\n{"winner"\n{"winner": "b", "loser": "c"}\n')
    with pytest.warns(UserWarning, match=r"1 row of 3 .*votes\.jsonl:2: "):
        assert len(rs.read_rankings(path, on_error="skip")) == 2


@pytest.mark.parametrize(
    ("text", "options", "told", "wanted"),
    [
        (
            "name,1,2,weight\nann,tea,beer,1\nbob,tea,tea,1\ncy,,,1\ndan,rum,tea,x\neva,rum,tea,3\n",
            {},
            r"3 rows of 5 .*:3: .*:4: .*:5: 'weight'='x'",
            [["tea", "beer"], ["rum", "tea"]],
        ),
        (
            "1,2\ntea,beer\nmilk,tea\nbeer,tea\n",
            {"items": ["tea", "beer"]},
            r"1 row of 3 .*:3: .*'milk'",
            [["tea", "beer"], ["beer", "tea"]],
        ),
        (
            "tea,beer\n1,2\nx,2\n1,-2\n0,\n2,1\n",
            {"layout": "places"},
            r"3 rows of 5 .*:3: 'tea'='x'.*:4: 'beer'='-2'.*:5: ",
            [["tea", "beer"], ["beer", "tea"]],
        ),
        (
            "tea,beer,count\n1,2,1\nhigh,3,1\n3,1,0.5\n2,1,4\n",
            {"layout": "scores"},
            r"2 rows of 4 .*:3: 'tea'='high'.*:4: 'count'='0.5'",
            [["beer", "tea"], ["tea", "beer"]],
        ),
        (
            "voter,item,rank\na,tea,1\na,gin,2\na,tea,2\nb,beer,1\nb,tea,2\na,beer,3\n",
            {"items": ["tea", "beer"]},
            r"2 rows of 6 .*:3: .*'gin'.*:4: .*'tea'",
            [["tea", "beer"], ["beer", "tea"]],
        ),
    ],
)
def test_ballots_that_cannot_be_read_are_skipped(tmp_path, text, options, told, wanted):
    path = write(tmp_path / "ballots.csv", text)
    with pytest.raises(InputError):
        rs.read_rankings(path, **options)
    with pytest.warns(UserWarning, match=told):
        found = rs.read_rankings(path, on_error="skip", **options)
    assert found.orders() == wanted


def test_what_could_be_read_in_two_ways_is_not_skipped(tmp_path):
    path = write(tmp_path / "ballots.csv", "tea,beer\n1,2\n2,1\n")
    with refuses("layout"):
        rs.read_rankings(path, on_error="skip")
    path = write(tmp_path / "ballots.csv", "height,tea,beer\ntall,1,2\nshort,2,1\n")
    with refuses("table", where=str(path)):
        rs.read_rankings(path, on_error="skip", layout="places")


def test_what_applies_to_tables_is_refused_for_rankings(tmp_path):
    path = tmp_path / "rankings.jsonl"
    path.write_text('{"ranking": ["a", "b"]}\n')
    rs.write_rankings(rs.read_rankings(path), tmp_path / "rankings.soi")
    for each in (path, path.with_suffix(".soi")):
        for name, value in (("on_error", "skip"), ("missing", "-99"), ("layout", "places")):
            with refuses(name, value):
                rs.read_rankings(each, **{name: value})


def test_covariates_skip_the_same_rows_and_must_be_numbers(tmp_path):
    rows = [f"{a},{b},{w},{i % 7}" for i in range(40) for a, b, w in (["x", "y", "xy"[i % 3 % 2]],)]
    good = write(tmp_path / "good.csv", "\n".join(["a,b,winner,length", *rows]))
    bad = write(tmp_path / "bad.csv", "\n".join(["a,b,winner,length", "x,y,?,9", *rows]))
    wanted = rs.leaderboard(good, covariates=["length"]).effects["length"]
    with pytest.warns(UserWarning, match="1 row of 41 skipped"):
        found = rs.leaderboard(bad, covariates=["length"], on_error="skip").effects["length"]
    assert found == wanted
    path = write(tmp_path / "votes.csv", "a,b,winner,length\nx,y,a,1\ny,x,a,high\n")
    with refuses("'length'", "high", f"{path}:3"):
        rs.leaderboard(path, covariates=["length"])


def test_copies_are_counted_and_named(tmp_path):
    text = "id,model_a,model_b,winner\n1,x,y,a\n2,y,x,a\n1,x,y,a\n2,x,z,a\n"
    path = write(tmp_path / "votes.csv", text)
    told = r"1 vote of 4 have the id of an earlier vote.*votes\.csv:4: 'id' is '1'"
    with pytest.warns(UserWarning, match=told):
        assert len(rs.read_rankings(path)) == 4
    # A named column is that of votes, whatever they say.
    with pytest.warns(UserWarning, match="2 votes of 4 have the id"):
        rs.read_rankings(path, id="id")
    with pytest.warns(UserWarning, match="2 rows of 4 skipped"):
        assert len(rs.read_rankings(path, id="id", on_error="skip")) == 2
    # Votes without an id are no copies of one another.
    path = write(tmp_path / "some.csv", "id,a,b,winner\n1,x,y,a\n,x,y,a\n,x,y,a\n")
    assert len(rs.read_rankings(path)) == 3


# ---- Ballots and votes that are not files


def test_tables_need_not_be_files():
    polars = pytest.importorskip("polars")
    columns = {"name": ["ann", "bob"], "second": ["tea", "beer"], "first": ["rum", "tea"]}
    wanted = [["rum", "tea"], ["tea", "beer"]]
    records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    frame = polars.DataFrame(columns)
    for table in (columns, records, frame, frame.lazy(), frame.to_pandas()):
        found = rs.read_rankings(table)
        assert found.orders() == wanted
        assert found.raters.tolist() == ["ann", "bob"]
    votes = [{"winner": "x", "loser": "y", "n": 2}, {"winner": "y", "loser": "x", "n": 1.0}]
    assert rs.leaderboard(votes, count="n").weight == 3
    with refuses("row", where="table: row 1"):
        rs.leaderboard([{"winner": "x", "loser": "y"}, {"winner": "y"}])
    for more in ({}, {"covariates": ["length"]}):
        with refuses("winer"):
            rs.leaderboard(votes, winer="x", **more)
    with refuses("judge"):
        rs.leaderboard(votes, category="n", judge="x")


def test_items_tell_columns_apart(tmp_path):
    text = "name,tea,beer,juice,height\nann,1,2,3,170\nbob,2,1,,181\n"
    path = write(tmp_path / "ballots.csv", text)
    found = rs.read_rankings(path, items=["juice", "tea", "beer"], layout="places")
    assert found.orders() == [["tea", "beer", "juice"], ["beer", "tea"]]
    assert found.items == ("juice", "tea", "beer")
    path = write(tmp_path / "ballots.csv", "1,2\ntea,beer\nbeer,north\n")
    with refuses("item", "north", f"{path}:3"):
        rs.read_rankings(path, items=["juice", "tea", "beer"])


# ---- Data frames of numbers are matched by name


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_columns_of_data_frames_are_matched_by_name(package):
    votes = {"winner": ["x"], "loser": ["y"], "judge": [None]}
    assert rs.read_rankings(pytest.importorskip(package).DataFrame(votes)).raters.tolist() == [None]
    frame = pytest.importorskip(package).DataFrame({"b": [1.0, 2.0], "a": [3.0, 1.0]})
    for items in (["a", "b"], None):
        assert Rankings.from_scores(frame, items=items).orders() == [["a", "b"], ["b", "a"]]
        assert Rankings.from_positions(frame, items=items).orders() == [["b", "a"], ["a", "b"]]
    with refuses("the columns of scores"):
        Rankings.from_scores(frame, items=["a", "c"])
    wins = pytest.importorskip(package).DataFrame({"y": [0, 7], "x": [2, 0]})
    pairs = Rankings.from_pair_counts(wins, items=["x", "y"])
    assert dict(zip(map(tuple, pairs.orders()), pairs.weights, strict=True)) == {
        ("x", "y"): 7, ("y", "x"): 2
    }  # fmt: skip
    # Items without a pair stay, in their order.
    three = Rankings.from_pair_counts([[0, 0, 1], [0, 0, 0], [2, 0, 0]], items=["z", "y", "x"])
    assert three.items == ("z", "y", "x")


def test_the_index_of_counts_is_matched_by_name():
    pandas = pytest.importorskip("pandas")
    wins = pandas.DataFrame([[0, 2], [7, 0]], index=["y", "x"], columns=["y", "x"])
    assert wins.loc["x", "y"] == 7
    for table in (wins, wins.loc[["x", "y"]], wins[["x", "y"]]):
        pairs = Rankings.from_pair_counts(table, items=["x", "y"])
        assert pairs.weights[[order == ["x", "y"] for order in pairs.orders()]].tolist() == [7]
    with refuses("the rows of wins"):
        Rankings.from_pair_counts(wins.rename(index={"x": "z"}))
