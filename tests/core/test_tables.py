"""Tables: cells of CSV as numbers, and data frames of several libraries."""

from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pytest

from rankshot import RankshotError
from rankshot.core.tables import as_frame, frame_to_matrix, parse_numbers, read_csv_rows

RULE = "numbers must be finite"
LIBRARIES = ["pandas", "polars", "pyarrow"]


def make_frame(library, columns):
    module = pytest.importorskip(library)
    return module.table(columns) if library == "pyarrow" else module.DataFrame(columns)


@pytest.mark.parametrize("cell", ["", " ", "nan", "-NaN", " +nan "])
def test_missing_cells_are_nan_where_they_are_allowed(cell):
    numbers = parse_numbers(["1", cell], "ab", RULE, "t.csv:2", allow_missing=True)
    np.testing.assert_array_equal(numbers, [1, np.nan])
    with pytest.raises(RankshotError, match=r"t\.csv:2: 'b' is .*; numbers must be finite"):
        parse_numbers(["1", cell], "ab", RULE, "t.csv:2")


@pytest.mark.parametrize("allow_missing", [True, False])
@pytest.mark.parametrize("cell", ["x", "inf", "-1e999", "+", "nano", "1,5"])
def test_other_cells_are_refused(cell, allow_missing):
    with pytest.raises(RankshotError, match=r"t\.csv:2: 'b' is '.*'; numbers must be finite"):
        parse_numbers(["1", cell], "ab", RULE, "t.csv:2", allow_missing=allow_missing)


def test_large_numbers_are_refused_only_from_the_limit_on():
    assert parse_numbers(["1e308"] * 4, "abcd", RULE, "t.csv:2") == [1e308] * 4
    assert parse_numbers(["9", "-9"], "ab", RULE, "t.csv:2", limit=10) == [9, -9]
    for cell in ("10", "-1e3"):
        with pytest.raises(RankshotError) as error:
            parse_numbers(["1", cell], "ab", RULE, "t.csv:2", limit=10)
        assert str(error.value) == f"t.csv:2: 'b' is '{cell}'; numbers must be less than 10 in size"


def test_lines_without_cells_are_skipped(tmp_path):
    (tmp_path / "t.csv").write_text("\na,b\n\n1,2\n   \n3,4\n")
    rows = list(read_csv_rows(tmp_path / "t.csv"))
    assert rows == [(2, ["a", "b"]), (4, ["1", "2"]), (6, ["3", "4"])]


@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_as_numbers(library):
    frame = as_frame(make_frame(library, {"a": [1, None], "b": [0.5, 2.5], "c": [True, False]}))
    table = frame_to_matrix(frame)
    assert (frame.columns, table.dtype) == (["a", "b", "c"], np.float64)
    np.testing.assert_array_equal(table, [[1, 0.5, 1], [np.nan, 2.5, 0]])
    decimals = make_frame(library, {"a": [Decimal("1.5"), None]})
    np.testing.assert_array_equal(frame_to_matrix(as_frame(decimals)), [[1.5], [np.nan]])


@pytest.mark.parametrize("library", LIBRARIES)
def test_single_precision_stays(library):
    values = np.array([0.1, 0.2], np.float32)
    table = frame_to_matrix(as_frame(make_frame(library, {"a": values, "b": values})))
    assert table.dtype == np.float32
    np.testing.assert_array_equal(table, np.column_stack([values, values]))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("cell", ["x", datetime(2020, 1, 1, tzinfo=UTC), [1.0]])
def test_the_column_that_does_not_hold_numbers_is_named(library, cell):
    frame = as_frame(make_frame(library, {"a": [1.5], "b": [cell]}))
    with pytest.raises(RankshotError, match="column 'b': expected numbers"):
        frame_to_matrix(frame)


def test_what_is_no_data_frame():
    polars = pytest.importorskip("polars")
    for other in (np.zeros((2, 2)), [[1]], {"a": [1]}, None, 3, polars.Series([1])):
        assert as_frame(other) is None
    assert as_frame(polars.DataFrame({"a": [1]}).lazy()) is None
