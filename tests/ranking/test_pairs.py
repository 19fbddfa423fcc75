"""Files of pairs."""

import re

import pytest
from numpy.testing import assert_allclose

import rankshot as rs
from rankshot.core.errors import RankshotError

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


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_of_two_sides_and_an_outcome(tmp_path, ending):
    path = write(tmp_path / f"votes.{ending}", ARENA)
    pairs = rs.read_pairs(path, rater="judge")
    assert pairs.orders() == [
        ["ant", "bee"], ["cat", "bee"], [["ant", "cat"]], [["ant", "cat"]], ["ant", "cat"]
    ]  # fmt: skip
    assert pairs.raters.tolist() == ["p1", "p2", "p1", None, "p3"]
    assert_allclose(pairs.weights, [1, 2, 1, 1, 0.5])
    assert rs.read_pairs(path, items=["cat", "bee", "ant", "dog"]).items[-1] == "dog"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_of_winners_and_losers(tmp_path, ending):
    text = "winner,loser,tie\na,b,False\nc,b,True\n"
    pairs = rs.read_pairs(write(tmp_path / f"votes.{ending}", text))
    assert pairs.orders() == [["a", "b"], [["b", "c"]]]
    other = rs.read_pairs(
        write(tmp_path / f"games.{ending}", "home,away\n3,1\n1,2\n"), winner="home", loser="away"
    )
    assert other.orders() == [["3", "1"], ["1", "2"]]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (ARENA.replace("Tie", "both"), {}, "votes.csv:5: 'winner' is 'both'; expected 'model_a', "),
        (ARENA.replace("bee,cat", "cat,cat"), {}, "votes.csv:3: item 'cat' against itself"),
        (ARENA.replace("0.5", "x"), {}, "votes.csv:6: 'weight' is 'x'; expected a number"),
        (ARENA.replace(",bee,model_a", ",,model_a"), {}, "votes.csv:2: 'model_b' is empty"),
        (ARENA, {"rater": "jugde"}, "no column 'jugde' (did you mean 'judge'?)"),
        (
            "winner,loser\na,b\nDraw,a\n",
            {},
            "votes.csv:3: 'winner' is 'Draw', a tie and not an item",
        ),
        (ARENA, {"items": ["ant", "bee", "cats"]}, "votes.csv:3: unknown item 'cat' (did you mean"),
        ("winner,loser,tie\na,b,perhaps\n", {}, "votes.csv:2: 'tie' is 'perhaps'; expected true"),
    ],
)
def test_errors_name_the_line(tmp_path, text, options, message):
    path = write(tmp_path / "votes.csv", text)
    with pytest.raises(RankshotError, match=re.escape(message)):
        rs.read_pairs(path, **options)


def test_a_column_of_lists_is_refused(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "votes.parquet"
    pandas.DataFrame({"winner": [["a"]], "loser": ["b"]}).to_parquet(path)
    with pytest.raises(RankshotError, match="column 'winner' holds list"):
        rs.read_pairs(path)
