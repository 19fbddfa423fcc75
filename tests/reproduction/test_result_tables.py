"""Tables of results: what they refuse, how cells read, and what a CSV file gives back."""

import csv
from math import isnan

import numpy as np
import pytest
from reproduction.result_tables import (
    OursAndPaper,
    ResultTable,
    format_markdown,
    format_value,
    write_csv,
    write_markdown,
)

from rankshot.core.errors import RankshotError
from rankshot.zeroshot.metrics import Interval

HEAD = ["table", "row", "column", "value", "low", "high", "paper"]


def table(rows, columns=("method", "one", "two"), **others):
    return ResultTable("table 2", "Table 2", tuple(columns), tuple(rows), **others)


def read(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))


# ---- The table


@pytest.mark.parametrize("row", [("DS", 0.5), ("DS", 0.5, 0.6, 0.7), ()])
def test_a_row_of_another_length_is_named(row):
    message = f"table 2: row 1 has {len(row)} values for 3 columns"
    with pytest.raises(RankshotError, match=message):
        table([("PR", 0.1, 0.2), row])


@pytest.mark.parametrize("labels", [(4, "x"), ("x", None), ("x", 0.5)])
def test_a_label_that_is_no_text_is_named(labels):
    message = "table 2: row 1: the first 2 values must be texts"
    with pytest.raises(RankshotError, match=message):
        table([("PR", "x", 0.2), (*labels, 0.5)], n_labels=2)


def test_a_row_is_found_by_all_its_labels():
    found = table([("PR", "panel", 0.1), ("PR", "WordNet", 0.2), ("DS", "panel", None)], n_labels=2)
    assert found.row("PR", "WordNet") == (0.2,)
    assert found.row("DS", "panel") == (None,)
    assert table([("PR", 0.1, 0.2)]).row("PR") == (0.1, 0.2)


@pytest.mark.parametrize("labels", [("PR",), ("PR", "Panel"), ("PR", "panel", "x"), ()])
def test_a_row_that_is_not_there_is_named(labels):
    found = table([("PR", "panel", 0.1)], n_labels=2)
    with pytest.raises(RankshotError, match="table 2: no row") as caught:
        found.row(*labels)
    assert all(repr(label) in str(caught.value) for label in labels)


def test_a_table_may_be_empty_and_is_never_changed():
    empty = table([])
    assert empty.rows == empty.notes == ()
    with pytest.raises(AttributeError):
        empty.rows = ((),)


# ---- Cells as text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        ("yes", "yes"),
        ("", ""),
        (12, "12"),
        (0.5, ".500"),
        (np.float64(0.5), ".500"),
        (Interval(0.445, 0.43, 0.461), ".445 [.430, .461]"),
        (OursAndPaper(Interval(0.445, 0.43, 0.461), 0.72), ".445 [.430, .461]; paper .720"),
        (OursAndPaper(0.5, None), ".500"),
        (OursAndPaper(0.5, 0.0), ".500; paper .000"),
        (OursAndPaper(None, 0.72), "–; paper .720"),
        (OursAndPaper(None, None), "–"),
    ],
)
def test_a_cell_as_text(value, text):
    assert format_value(value) == text


# ---- The file


def test_every_cell_with_a_number_is_a_line(tmp_path):
    one = table(
        [
            ("PR", Interval(0.445, 0.43, 0.461), 0.1 + 0.2),
            ("DS", OursAndPaper(Interval(0.4, 0.3, 0.5), 0.72), OursAndPaper(0.25, None)),
            ("DR", OursAndPaper(None, 0.5), OursAndPaper(None, None)),
            ("no", None, "yes"),
            ("n", 12, np.float64(1 / 3)),
        ]
    )
    other = ResultTable("sizes", "", ("a", "b", "c"), (("x", "y", 7),), n_labels=2)
    path = tmp_path / "results.csv"
    write_csv(iter([one, other]), path)
    head, *lines = read(path)
    assert head == HEAD
    assert lines == [
        ["table 2", "PR", "one", "0.445", "0.43", "0.461", ""],
        ["table 2", "PR", "two", "0.30000000000000004", "", "", ""],
        ["table 2", "DS", "one", "0.4", "0.3", "0.5", "0.72"],
        ["table 2", "DS", "two", "0.25", "", "", ""],
        ["table 2", "DR", "one", "", "", "", "0.5"],
        ["table 2", "n", "one", "12", "", "", ""],
        ["table 2", "n", "two", "0.3333333333333333", "", "", ""],
        ["sizes", "x | y", "c", "7", "", "", ""],
    ]


def test_numbers_come_back_to_the_last_digit(tmp_path, rng):
    values = [*(rng.normal(size=20) * 10.0 ** rng.integers(-9, 9, 20)).tolist(), 5e-324, 1e300]
    path = tmp_path / "results.csv"
    write_csv([table([(f"{i}", v, None) for i, v in enumerate(values)])], path)
    assert [float(line[3]) for line in read(path)[1:]] == values
    write_csv([table([("n", np.nan, -0.0)])], path)
    nothing, zero = (float(line[3]) for line in read(path)[1:])
    assert isnan(nothing)
    assert np.signbit(zero)


@pytest.mark.parametrize(
    "name",
    ["a, b", 'the "best"', "two\nlines", "tab\there", " spaces ", "Größe π|x", "猫"],
)
def test_odd_names_come_back(tmp_path, name):
    path = tmp_path / "results.csv"
    odd = ResultTable(name, name, ("", name), ((name, 0.5), ("plain", 0.25)))
    write_csv([odd], path)
    assert read(path)[1:] == [
        [name, name, name, "0.5", "", "", ""],
        [name, "plain", name, "0.25", "", "", ""],
    ]


def test_no_tables_no_lines(tmp_path):
    write_csv([], tmp_path / "results.csv")
    assert (tmp_path / "results.csv").read_text(encoding="utf-8") == ",".join(HEAD) + "\n"


def test_what_goes_wrong_half_way_leaves_the_old_file(tmp_path):
    path = tmp_path / "results.csv"
    write_csv([table([("PR", 0.1, 0.2)])], path)
    before = path.read_bytes()

    def half():
        yield table([("PR", 0.3, 0.4)])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_csv(half(), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    write_csv([table([("PR", 0.3, 0.4)])], path)
    assert read(path)[1][3] == "0.3"


def test_a_place_where_nothing_can_be_written_is_named(tmp_path):
    path = tmp_path / "nowhere" / "results.csv"
    with pytest.raises(RankshotError, match=r"results\.csv: cannot write there"):
        write_csv([], path)


# ---- Markdown


def test_a_table_in_markdown(tmp_path):
    one = table(
        [("P(π|x)", 0.5, None), ("DS", OursAndPaper(0.25, 0.3), "x")], notes=("One.", "Two.")
    )
    expected = """### Table 2

| method | one | two |
| --- | --- | --- |
| P(π\\|x) | .500 | – |
| DS | .250; paper .300 | x |

- One.
- Two.
"""
    assert format_markdown(one) == expected
    write_markdown(iter([one, table([])]), tmp_path / "results.md")
    both = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert both == expected + "\n" + format_markdown(table([]))
