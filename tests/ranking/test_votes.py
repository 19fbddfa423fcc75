"""Tables of votes between two items and of ballots, and data frames of numbers."""

import re
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

import rankshot as rs
from rankshot.core.errors import RankshotError
from rankshot.ranking.votes import OUTCOMES

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


def read_frame(kind, text, tmp_path):
    package = pytest.importorskip(kind)
    return package.read_csv(write(tmp_path / "votes.csv", text))


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
    if kind in {"csv", "parquet"}:
        votes = write(tmp_path / f"votes.{kind}", ARENA)
    else:
        votes = read_frame(kind, ARENA, tmp_path)
    pairs = Rankings.from_votes(votes)
    assert pairs.orders() == [
        ["ant", "bee"], ["cat", "bee"], [["ant", "cat"]], [["ant", "cat"]], ["ant", "cat"]
    ]  # fmt: skip
    assert pairs.raters.tolist() == ["p1", "p2", "p1", None, "p3"]
    # Weights are relative to their mean.
    assert_allclose(pairs.weights, np.array([1, 2, 1, 1, 0.5]) / 1.1)
    assert Rankings.from_votes(votes, items=["cat", "bee", "ant", "dog"]).items[-1] == "dog"
    assert Rankings.from_votes(votes, category="id").targets.tolist() == list("12345")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_of_winners_and_losers(tmp_path, ending):
    text = "winner,loser,tie,n\na,b,False,3\nc,b,True,1\n"
    path = write(tmp_path / f"votes.{ending}", text)
    pairs = Rankings.from_votes(path, count="n")
    assert pairs.orders() == [["a", "b"], [["b", "c"]]]
    assert pairs.weights.tolist() == [3, 1]
    # The mean is that of the votes that count.
    path = write(tmp_path / f"some.{ending}", "winner,loser,weight\na,b,0\na,b,1\nb,a,3\n")
    assert Rankings.from_votes(path).weights.tolist() == [0, 0.5, 1.5]
    path = write(tmp_path / f"games.{ending}", "home,away\n3,1\n1,2\n")
    other = Rankings.from_votes(path, winner="home", loser="away")
    assert other.orders() == [["3", "1"], ["1", "2"]]


@pytest.mark.parametrize("word", [*OUTCOMES, "1.0", "0.0", ".5", "MODEL_A", "y ", "x"])
def test_the_winner_has_many_spellings(tmp_path, word):
    wanted = {"1.0": 0, "0.0": 1, ".5": 2, "MODEL_A": 0, "y ": 1, "x": 0}
    order = [["x", "y"], ["y", "x"], [["x", "y"]]][(OUTCOMES | wanted)[word]]
    path = write(tmp_path / "votes.csv", f"left,right,outcome\nx,y,{word}\n")
    assert Rankings.from_votes(path).orders() == [order]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (ARENA.replace("Tie", "both"), {}, "votes.csv:5: 'winner' is 'both'; expected the name of"),
        (ARENA.replace("bee,cat", "cat,cat"), {}, "votes.csv:3: item 'cat' against itself"),
        (ARENA.replace("0.5", "x"), {}, "votes.csv:6: 'weight' is 'x'; expected a finite number"),
        (ARENA.replace("0.5", "-1"), {}, "votes.csv:6: 'weight' is -1; a weight must be a number"),
        (ARENA, {"count": "weight"}, "votes.csv:6: 'weight' is 0.5; a count must be a whole"),
        (ARENA.replace(",bee,model_a", ",,model_a"), {}, "votes.csv:2: 'model_b' is empty"),
        (ARENA, {"rater": "jugde"}, "no column 'jugde' (did you mean 'judge'?)"),
        (ARENA, {"winner": "won"}, "name the columns of the two items and of the winner with a=,"),
        (
            "winner,loser\na,b\nDraw,a\n",
            {},
            "votes.csv:3: 'winner' is 'Draw', a tie and not an item",
        ),
        (ARENA, {"items": ["ant", "bee", "cats"]}, "votes.csv:3: unknown item 'cat' (did you mean"),
        ("winner,loser,tie\na,b,perhaps\n", {}, "votes.csv:2: 'tie' is 'perhaps'; expected the"),
        (
            "a,b,winner\nleft,x,b\nx,left,left\n",
            {},
            "votes.csv:3: 'winner' is 'left'; it names one",
        ),
        ("a,b,winner\nx,y\n", {}, "votes.csv:2: 2 cells, but the first line names 3 columns"),
    ],
)
@pytest.mark.usefixtures("reader")
def test_errors_name_the_line(tmp_path, text, options, message):
    path = write(tmp_path / "votes.csv", text)
    with pytest.raises(RankshotError, match=re.escape(message)):
        Rankings.from_votes(path, **options)


def test_lines_are_counted_across_quoted_line_breaks_and_blank_lines(tmp_path):
    path = write(tmp_path / "votes.csv", 'a,b,winner\n"x\n1",y,a\n\ny,z,never\n')
    with pytest.raises(RankshotError, match=re.escape("votes.csv:5: 'winner' is 'never'")):
        Rankings.from_votes(path)


def test_what_is_not_a_table_is_refused(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "votes.parquet"
    pandas.DataFrame({"winner": [["a"]], "loser": ["b"]}).to_parquet(path)
    with pytest.raises(RankshotError, match="column 'winner' holds list"):
        Rankings.from_votes(path)


# ---- Ballots

ORDERS = "voter,first,second,third\nann,tea,beer,juice\nbob,beer,tea,\n"
PLACES = "name,tea,beer,juice\nann,1,2,3\nbob,2,1,\n"
SCORES = "tea,beer,juice,weight\n9,5,5,2\n1,,4,1\n"


MANY = "voter,1,2,3\n" + "ann,tea,beer,juice\nbob,beer,juice,tea\n" * 6
RATINGS = "voter,tea,beer,juice\n" + "ann,.1,.3,.2\nbob,.3,,.4\n" * 3


def add_column(text, name, *values):
    """Add a column, whose values are repeated if there are more rows."""
    header, *rows = text.splitlines()
    both = zip([header, *rows], [name, *(values * len(rows))[: len(rows)]], strict=True)
    return "".join(f"{line},{cell}\n" for line, cell in both)


def read_ballots(tmp_path, text, **options):
    return rs.read_rankings(write(tmp_path / "ballots.csv", text), **options)


def test_ballots_are_told_apart(tmp_path):
    wanted = [["tea", "beer", "juice"], ["beer", "tea"]]
    for text in (ORDERS, PLACES):
        found = read_ballots(tmp_path, text)
        assert found.orders() == wanted
        assert found.raters.tolist() == ["ann", "bob"]
    found = read_ballots(tmp_path, SCORES)
    assert found.orders() == [["tea", ["beer", "juice"]], ["juice", "tea"]]
    assert found.weights.tolist() == [2, 1]
    assert found.is_subset.all()
    assert read_ballots(tmp_path, SCORES, items=["juice", "tea", "beer"]).items[0] == "juice"
    assert len(read_ballots(tmp_path, ARENA)) == 5


def test_places_and_scores_that_look_alike_must_be_named(tmp_path):
    text = "tea,beer,juice\n1,1,3\n3,2,1\n"
    with pytest.raises(RankshotError, match="layout='places' or layout='scores'"):
        read_ballots(tmp_path, text)
    assert read_ballots(tmp_path, text, layout="places").orders()[0] == [["tea", "beer"], "juice"]
    assert read_ballots(tmp_path, text, layout="scores").orders()[0] == ["juice", ["tea", "beer"]]
    with pytest.raises(RankshotError, match="places must be numbers"):
        read_ballots(tmp_path, ORDERS, layout="places")
    with pytest.raises(RankshotError, match="layout must be one of"):
        read_ballots(tmp_path, ORDERS, layout="list")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("who,1st,2nd\nann,tea,beer\nbob,beer,tea\neve,tea,juice\n", "the names in 'who'"),
        ("left,right,by\ntea,beer,ann\nbeer,tea,bob\njuice,tea,eve\n", "the names in 'by'"),
        (add_column(MANY, "region", "north", "south"), "any of the names in 'region'. Delete"),
        (add_column(MANY, "comment", "", "", *([""] * 8), "nice"), "the names in 'comment'"),
        (add_column(MANY, "who", *"ABCDEFGHIJK", "tea"), "no other column has many of the names"),
        (add_column(PLACES, "region", "north", "south"), "in 'tea', 'beer', 'juice', and text in"),
        (add_column(MANY, "age", "20", "20"), "there are numbers in 'age', and text in '1', '2'"),
        (add_column(PLACES, "age", "25", "44"), "the numbers in 'age' are unlike"),
        (add_column(PLACES, "children", "0", "2"), "the numbers in 'children' are unlike"),
        (add_column(RATINGS, "age", *"5678"), "the numbers in 'age' are unlike"),
        ("model_a,model_b,judge\nx,y,ann\ny,x,bob\n", "no column 'winner'"),
        ("1st;2nd\ntea;beer\nbeer;tea\n", "separated by commas, not '1st;2nd'"),
        (
            "tea,beer,cola\nbeer,tea,juice\n",
            "csv:1: .* the ballots have 'tea', 'beer' as well: add",
        ),
        ("ann,tea,beer\nbob,beer,tea\neve,tea,juice\n", "add a header above the first ballot"),
        (
            ORDERS.replace("beer,tea", "beer,beer"),
            r"ballots\.csv:3: item 'beer' is listed more than",
        ),
    ],
)
def test_ballots_that_cannot_be_read_are_refused(tmp_path, text, problem):
    with pytest.raises(RankshotError, match=problem):
        read_ballots(tmp_path, text)


def test_what_may_be_ballots_is_read(tmp_path):
    """Places on which all agree, few ballots, and columns that are named otherwise."""
    orders = read_ballots(tmp_path, add_column(MANY, "4", "cola")).orders()
    assert orders[0] == ["tea", "beer", "juice", "cola"]
    few = "1,2,3\ntea,beer,juice\nbeer,tea,\ntea,beer,cola\n"
    assert read_ballots(tmp_path, few).items == ("beer", "cola", "juice", "tea")
    assert read_ballots(tmp_path, "tea,beer,rum\n9,3,4\n8,4,3\n").orders()[0][0] == "tea"
    found = read_ballots(tmp_path, PLACES.replace("name", "Voter"))
    assert found.raters.tolist() == ["ann", "bob"]


def test_items_tell_columns_apart(tmp_path):
    with_age = add_column(PLACES, "age", "25", "44")
    found = read_ballots(tmp_path, with_age, items=["juice", "tea", "beer"])
    assert found == read_ballots(tmp_path, PLACES).with_items(["juice", "tea", "beer"])
    with_region = add_column(MANY, "region", "", "north")
    message = r"ballots\.csv:3, column 'region': unknown item 'north'"
    with pytest.raises(RankshotError, match=message):
        read_ballots(tmp_path, with_region, items=["juice", "tea", "beer"])


def test_items_and_places_may_both_be_numbers(tmp_path):
    found = read_ballots(tmp_path, "1,2,3\n2,1,3\n3,2,1\n", layout="orders")
    assert found.orders() == [["2", "1", "3"], ["3", "2", "1"]]


# ---- Data frames of numbers are matched by name


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_columns_of_data_frames_are_matched_by_name(package):
    frame = pytest.importorskip(package).DataFrame({"b": [1.0, 2.0], "a": [3.0, 1.0]})
    for items in (["a", "b"], None):
        assert Rankings.from_scores(frame, items=items).orders() == [["a", "b"], ["b", "a"]]
        assert Rankings.from_positions(frame, items=items).orders() == [["b", "a"], ["a", "b"]]
    with pytest.raises(RankshotError, match=r"the columns of scores differ .* no 'c'; also 'b'"):
        Rankings.from_scores(frame, items=["a", "c"])
    wins = pytest.importorskip(package).DataFrame({"y": [0, 7], "x": [2, 0]})
    pairs = Rankings.from_pair_counts(wins, items=["x", "y"])
    assert dict(zip(map(tuple, pairs.orders()), pairs.weights, strict=True)) == {
        ("x", "y"): 7, ("y", "x"): 2
    }  # fmt: skip


def test_the_index_of_counts_is_matched_by_name():
    pandas = pytest.importorskip("pandas")
    wins = pandas.DataFrame([[0, 2], [7, 0]], index=["y", "x"], columns=["y", "x"])
    assert wins.loc["x", "y"] == 7
    for table in (wins, wins.loc[["x", "y"]], wins[["x", "y"]]):
        pairs = Rankings.from_pair_counts(table, items=["x", "y"])
        assert pairs.weights[[order == ["x", "y"] for order in pairs.orders()]].tolist() == [7]
    with pytest.raises(RankshotError, match="the rows of wins differ from items"):
        Rankings.from_pair_counts(wins.rename(index={"x": "z"}))
