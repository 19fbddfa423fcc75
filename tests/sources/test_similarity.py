"""Similarity tables: their rankings, means and files."""

import numpy as np
import pandas as pd
import pytest

import rankshot as rs
from rankshot.core.tables import open_writer
from rankshot.sources import read_similarity
from rankshot.testing import check_source
from refusals import refuses

NAN = np.nan
ITEMS = ["a", "b", "c"]


def test_rankings_keep_ties_and_leave_out_what_is_unknown():
    table = rs.Similarity(
        [[0.5, 0.5, 0.1], [0.2, NAN, 0.9], [NAN, NAN, NAN]], ["x", "y", "z"], ITEMS, source="s"
    )
    rankings = table.to_rankings()
    assert rankings.orders() == [[["a", "b"], "c"], ["c", "a"]]
    assert rankings.is_subset.tolist() == [False, True]
    assert rankings.targets.tolist() == ["x", "y"]
    assert rankings.source_names == ("s",)
    assert table.unknown_targets == ("z",)
    assert table.unknown_items == ()
    assert table.coverage == pytest.approx(5 / 9)
    assert rankings.top(1) == table.to_rankings(k=1)


def test_means_match_names_and_count_what_is_known():
    one = rs.Similarity([[0.0, 1.0, 2.0]], ["x"], ITEMS)
    two = rs.Similarity([[8.0, 4.0, NAN]], ["x"], ["c", "b", "a"])
    # Scaled: one is 0, .5, 1; two, by name a, b, c, is unknown, 0, 1.
    assert rs.sources.arithmetic_mean([one, two]).values.tolist() == [[0, 0.25, 1]]
    # Zeros count half of the smallest positive value: .25 in one, .5 in two.
    expected = [[0.25, np.sqrt(0.5 * 0.5), 1]]
    assert rs.sources.geometric_mean([one, two]).values == pytest.approx(np.array(expected))


@pytest.mark.parametrize("mean", [rs.sources.arithmetic_mean, rs.sources.geometric_mean])
def test_the_order_of_the_sources_breaks_no_tie(mean):
    """Each item gets .1, .2 and .3, from different sources; 0 and 1 fix the scale."""
    items = [*ITEMS, "low", "high"]
    rows = ([0.1, 0.2, 0.3, 0, 1], [0.2, 0.3, 0.1, 0, 1], [0.3, 0.1, 0.2, 0, 1])
    order = mean([rs.Similarity([row], ["x"], items) for row in rows]).to_rankings().orders()[0]
    assert order == ["high", ["a", "b", "c"], "low"]


@pytest.mark.parametrize(
    "source",
    [
        *(rs.WordNet("wup"), rs.LookAlikes()),
        rs.WordVectors({"cat": [1, 2], "truck": [3, 1], "bus": [2, 1], "fox": [0, 1]}),
        rs.LanguageModel("me", ask=lambda _: '["fox", "bus"]', k=2),
    ],
)
def test_sources_hold_to_their_contract(source):
    check_source(source, ["cat", "truck"], ["bus", "fox"])


def test_values_are_read_by_name_and_cannot_be_changed():
    table = rs.Similarity([[1.0, 2.0, 3.0]], ["x"], ITEMS)
    assert table["x", "b"] == 2
    assert table.source == "similarity"
    with pytest.raises(ValueError, match="read-only"):
        table.values[0, 0] = 5
    assert table.select(["x"], ["c", "a"]).values.tolist() == [[3, 1]]
    assert table.reindex(["y", "x"], ["c", "d"]) == rs.Similarity(
        [[NAN, NAN], [3, NAN]], ["y", "x"], ["c", "d"]
    )
    assert table.reindex(["x"], ["c", "d"]).unknown_items == ("d",)
    assert table.rescale().values.tolist() == [[0, 0.5, 1]]


def test_tables_are_equal_by_values_names_and_source():
    table = rs.Similarity([[1, NAN]], ["x"], ["a", "b"])
    assert table == rs.Similarity([[1, NAN]], ["x"], ["a", "b"], notes=["other"])
    for values, targets, items, source in (
        ([[1, 2]], ["x"], ["a", "b"], "similarity"),
        ([[1, NAN]], ["y"], ["a", "b"], "similarity"),
        ([[1, NAN]], ["x"], ["a", "c"], "similarity"),
        ([[1, NAN]], ["x"], ["a", "b"], "other"),
    ):
        assert table != rs.Similarity(values, targets, items, source)
    assert table != 1


def test_a_table_of_one_value_or_of_nothing_can_be_rescaled():
    assert rs.Similarity([[3, 3]], ["x"], ["a", "b"]).rescale().values.tolist() == [[1, 1]]
    unknown = rs.Similarity([[NAN]], ["x"], ["a"])
    assert unknown.rescale() is unknown
    with pytest.raises(rs.RankshotError):
        unknown.to_rankings()


@pytest.mark.parametrize(
    ("call", "parameter", "value"),
    [
        (lambda: rs.Similarity([[1.0]], ["x"], ITEMS), "values", [[1.0]]),
        (lambda: rs.Similarity([[1, np.inf, 2]], ["x"], ITEMS), "values", np.inf),
        (lambda: rs.Similarity([[1, 2, 3]], ["x"], ["a", "a", "b"]), "items", "a"),
        (lambda: rs.Similarity([[1, 2, 3]], ["x"], ITEMS)["x", "aa"], "items", "aa"),
        (lambda: rs.sources.arithmetic_mean([]), "tables", []),
    ],
)
def test_bad_calls(call, parameter, value):
    with refuses(parameter, value):
        call()


# ---- Files


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_what_is_written_is_read_back_to_the_last_bit(tmp_path, ending):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    values = [[0.1 + 0.2, -0.0, 5e-324], [NAN, 1e308, -1 / 3], [NAN, NAN, NAN]]
    table = rs.Similarity(values, ["x", "a, b", '"'], ["target ", "1", "é"], source="mine")
    path = tmp_path / f"mine{ending}"
    with open_writer(path, ["target", *table.items]) as put:
        put([table.targets], table.values)
    again = read_similarity(path)
    assert again == table
    assert np.array_equal(np.signbit(again.values[:, 1]), [True, False, np.signbit(NAN)])
    assert read_similarity(path, source="ours").source == "ours"


def test_the_targets_of_parquet_are_the_column_of_that_name_or_the_first(tmp_path):
    pytest.importorskip("pyarrow")
    for names in (["a", "target"], ["class", "a"]):
        path = tmp_path / "mine.parquet"
        columns = {"a": [1.5], "target": ["x"], "class": ["x"]}
        pd.DataFrame({name: columns[name] for name in names}).to_parquet(path)
        assert read_similarity(path)["x", "a"] == 1.5


def test_rows_of_a_spreadsheet_without_anything_are_left_out(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("class,a,b\nx,1,\n,,\ny,,\n")
    table = read_similarity(path)
    assert table.targets == ("x", "y")
    assert table.unknown_targets == ("y",)


@pytest.mark.parametrize(
    "content",
    ["target\ncat\n", "target,a,a\ncat,1,2\n", "target,a\ncat,1\ncat,1\n", "target,a\ncat,x\n"],
    ids=["no items", "an item twice", "a target twice", "no number"],
)
def test_bad_csv_is_refused_with_its_file(tmp_path, content):
    (tmp_path / "mine.csv").write_text(content)
    with pytest.raises(rs.RankshotError) as caught:
        read_similarity(tmp_path / "mine.csv")
    assert str(caught.value).startswith(str(tmp_path / "mine.csv"))
