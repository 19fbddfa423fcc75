"""Tables: CSV and Parquet by one reader and one writer, and data frames of several libraries."""

import os
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pytest

from rankshot import RankshotError
from rankshot.core.columns import NumberCheck, open_table, read_batches
from rankshot.core.tables import as_frame, frame_to_matrix, open_writer
from refusals import ANY, refuses

ENDINGS = [".csv", ".parquet"]
LIBRARIES = ["pandas", "polars", "pyarrow"]
RULE = NumberCheck("numbers must be finite", limit=1e30)
MISSING = NumberCheck("numbers must be finite", allow_missing=True)


@pytest.fixture(autouse=True)
def _needs_pyarrow(request):
    if "parquet" in request.node.name:
        pytest.importorskip("pyarrow")


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_written_is_read_in_batches_of_any_size(tmp_path, rng, ending, dtype):
    path = tmp_path / f"t{ending}"
    names = ["a", "two\nlines", "c,", 'd"', "e\r", "=f", " g "]
    values = (rng.normal(size=(7, 3)) * 10.0 ** rng.integers(-30, 29, (7, 3))).astype(dtype)
    with open_writer(path, ["name", "x", "y", "z"]) as put:
        for rows in (slice(3), slice(3, 3), slice(3, 7)):
            put([names[rows]], values[rows])
    table = open_table(path)
    assert table.columns == ["name", "x", "y", "z"]
    for size in (1, 2, 7, None):
        parts = list(read_batches(path, ["name", "z", "x"], size)) if size else [table]
        assert len(parts) == -(-7 // (size or 7))
        assert [text for part in parts for text in part.read_texts("name")[0]] == names
        numbers = np.concatenate([part.read_numbers(["z", "x"]) for part in parts])
        np.testing.assert_array_equal(numbers.astype(dtype), values[:, [2, 0]])
    if ending == ".csv":
        # A carriage return is quoted as well, and rows end in a line feed.
        assert b'\n"e\r",' in path.read_bytes()
    places = [":2", ":3", ":5", ":6", ":7", ":8", ":9"]
    places = places if ending == ".csv" else [f": row {row}" for row in range(7)]
    assert list(map(table.where, range(7))) == [f"{path}{place}" for place in places]


@pytest.mark.parametrize("ending", ENDINGS)
def test_missing_numbers_are_empty_cells(tmp_path, ending):
    path = tmp_path / f"t{ending}"
    for dtype in (np.float32, np.float64):
        with open_writer(path, ["a", "b"]) as put:
            put([], np.array([[1, np.nan], [3, np.nan]], dtype))
        table = open_table(path)
        numbers = table.read_numbers(["a", "b"], MISSING)
        np.testing.assert_array_equal(numbers, [[1, np.nan], [3, np.nan]])
        with refuses("'b'"):
            table.read_numbers(["a", "b"], RULE)


def test_csv_of_spreadsheets(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbf\r\n a ,b\r\n\r\n x ,2\r\n   \r\n,4\r\n")
    table = open_table(path, {""})
    assert table.read_texts("a") == [["x", ""]]
    with refuses("'a'", where=f"{path}:6"):
        table.require_texts("a")


def read_both(path):
    table = open_table(path)
    table.read_texts("a")
    table.read_numbers(["b"], RULE)


@pytest.mark.parametrize(
    ("content", "parameter", "value", "line"),
    [
        ("", "file", ANY, ""),
        ("a,b\n", "table", ANY, ""),
        ("b,c\n1,2\n", "column", "a", ""),
        ("a,b,a\n1,2,3\n", "column", "a", ""),
        ("a,b\nx,1\ny\n", "line", ANY, ":3"),
        ("a,b\nx,one\n", "'b'", "one", ":2"),
        ("a,b\nx,\n", "'b'", "empty", ":2"),
        ("a,b\nx,1\ny,nan\n", "'b'", ANY, ":3"),
        ("a,b\nx,-1e999\n", "'b'", -np.inf, ":2"),
        ("a,b\nx,1e31\n", "'b'", 1e31, ":2"),
        ('a,b\n"two\nlines",1\ny,x\n', "'b'", "x", ":4"),
        ('a,b\nx,1\n"y,1\n', "line", ANY, ":3"),
        # PyArrow reads this as yz; then the line of the wrong number cannot be counted.
        ('a,b\nx,1\n"y"z,1\nw,one\n', "line", ANY, ":3"),
        (b"a,b\ncaf\xe9,1\n", "line", ANY, ":2"),
    ],
)
def test_bad_csv_is_named_by_file_line_and_column(tmp_path, content, parameter, value, line):
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with refuses(parameter, value, f"{path}{line}"):
        read_both(path)


@pytest.mark.parametrize(
    ("columns", "parameter", "value", "row"),
    [
        ({"a": [], "b": []}, "table", ANY, ""),
        ({"b": [1.0]}, "column", "a", ""),
        ({"a": ["x"], "b": ["1"]}, "column", "b", ""),
        ({"a": [["x"]], "b": [1]}, "column", "a", ""),
        ({"a": ["x", "y"], "b": [1, None]}, "'b'", ANY, ": row 1"),
        ({"a": ["x", "y"], "b": [1, 1e31]}, "'b'", 1e31, ": row 1"),
        ({"a": [b"\xff"], "b": [1.0]}, "file", ANY, ""),
    ],
)
def test_bad_parquet_is_named_by_file_row_and_column(tmp_path, columns, parameter, value, row):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    parquet.write_table(arrow.table(columns), path)
    with refuses(parameter, value, f"{path}{row}"):
        read_both(path)


def test_columns_of_others_in_parquet(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {
        "t": [1.0, 2.5],
        "category": arrow.array(["u", None]).dictionary_encode(),
        "n": arrow.array([3, None], arrow.int8()),
        "d": [Decimal("1.25"), None],
    }
    parquet.write_table(arrow.table(columns), tmp_path / "t.parquet")
    table = open_table(tmp_path / "t.parquet")
    assert table.read_texts("t", "category") == [["1", "2.5"], ["u", ""]]
    numbers = table.read_numbers(["d", "n"], MISSING)
    np.testing.assert_array_equal(numbers, [[1.25, 3], [np.nan, np.nan]])


def test_a_parquet_file_that_promises_more_rows_than_it_has(tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    with open_writer(tmp_path / "t.parquet", ["a"]) as put:
        put([], np.ones((4, 1)))
    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", lambda *_, **__: iter([]))
    with refuses("file", where=str(tmp_path / "t.parquet")):
        list(read_batches(tmp_path / "t.parquet", ["a"]))


# -------------------------------------------------------------------- data frames


def test_a_lazy_frame_is_collected_and_a_series_is_no_frame():
    polars = pytest.importorskip("polars")
    assert as_frame(polars.DataFrame({"a": [1]}).lazy()).shape == (1, 1)
    assert as_frame(polars.Series([1])) is None


def make_frame(library, columns):
    module = pytest.importorskip(library)
    return module.table(columns) if library == "pyarrow" else module.DataFrame(columns)


def test_cells_of_any_type_are_text():
    cells = [True, 1, 1.0, " True", None, 2.5, np.nan, "-"]
    wanted = ["True", "1", "1", "True", "", "2.5", "", ""]
    assert open_table({"a": cells}, {"", "-"}).read_texts("a") == [wanted]
    with pytest.raises(RankshotError, match="text"):
        open_table({"a": [["x"]]}, {""}).read_texts("a")


@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_as_numbers(library):
    frame = as_frame(make_frame(library, {"a": [1, None], "b": [0.5, 2.5], "c": [True, False]}))
    table = frame_to_matrix(frame)
    assert (frame.columns, table.dtype) == (["a", "b", "c"], np.float64)
    np.testing.assert_array_equal(table, [[1, 0.5, 1], [np.nan, 2.5, 0]])
    decimals = make_frame(library, {"a": [Decimal("1.5"), None]})
    np.testing.assert_array_equal(frame_to_matrix(as_frame(decimals)), [[1.5], [np.nan]])
    values = np.array([0.1, 0.2], np.float32)
    single = frame_to_matrix(as_frame(make_frame(library, {"a": values})))
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single[:, 0], values)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("cell", ["x", datetime(2020, 1, 1, tzinfo=UTC), [1.0]])
def test_the_column_that_does_not_hold_numbers_is_named(library, cell):
    frame = as_frame(make_frame(library, {"a": [1.5], "b": [cell]}))
    with refuses("column", "b"):
        frame_to_matrix(frame)


@pytest.mark.parametrize(
    ("text", "value"), [("a;b\n1;2,5\n", 2.5), ("a\tb\n1\t2.5\n", 2.5), ("a,b;c\n1,2.5\n", 2.5)]
)
def test_columns_are_separated_by_commas_tabs_or_semicolons(tmp_path, text, value):
    path = tmp_path / "table.csv"
    path.write_text(text)
    table = open_table(path)
    assert table.read_numbers(table.columns[1:]).tolist() == [[value]]


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".json", ".parquet", ".csv.gz"])
def test_a_pipe_is_refused(tmp_path, ending):
    path = tmp_path / f"t{ending}"
    os.mkfifo(path)
    with refuses("path", str(path)):
        open_table(path)
