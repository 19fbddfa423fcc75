"""Rankings in Parquet files."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankshot import Rankings, read_rankings
from refusals import refuses

ABC = ["a", "b", "c"]


@pytest.fixture
def read(tmp_path):
    """Write columns to a file and read rankings from it."""

    def read(items=None, *, row_group_size=None, **columns):
        table = pa.table({name: pa.array(*column) for name, column in columns.items()})
        pq.write_table(table, tmp_path / "votes.parquet", row_group_size=row_group_size)
        return read_rankings(tmp_path / "votes.parquet", items)

    return read


@pytest.mark.parametrize("kind", [pa.large_list(pa.large_string()), pa.list_(pa.string(), 2)])
def test_lists_and_text_of_any_arrow_type(read, kind):
    found = read(ranking=([["b", "a"], ["c", "ü"]], kind), row_group_size=1)
    assert found == Rankings.from_orders([["b", "a"], ["c", "ü"]])


def test_null_means_that_a_field_is_left_out(read):
    found = read(
        ranking=([["b", "a"], ["b"]],),
        target=([None, "cat"],),
        rater=([None, None], pa.null()),
        kind=([None, "subset"],),
        k=([1.0, None],),
        note=(["other columns", "are ignored"],),
    )
    assert found == Rankings.from_orders(
        [["b"], ["b"]], items=["a", "b"], targets=[None, "cat"], kind=["top", "subset"]
    )


@pytest.mark.parametrize(
    ("columns", "parameter", "row"),
    [
        ({"ranking": [["a"], ["b"], ["x"]]}, "item", ": row 2"),
        ({"ranking": [["a"], None]}, "ranking", ": row 1"),
        ({"ranking": [[["a"]], [["b"], None]]}, "item", ": row 1"),
        ({"order": [["a"]]}, "column", ""),
        ({"ranking": [["a"], ["b"], ["c"]], "weight": [1, 2, -1]}, "weights", ": row 2"),
        ({"ranking": [["a"], ["b"], ["c"]], "k": [1, 1, 2]}, "k", ": row 2"),
    ],
)
@pytest.mark.parametrize("row_group_size", [None, 2])
def test_errors_name_the_file_and_the_row(read, tmp_path, columns, parameter, row, row_group_size):
    values = {name: (cells,) for name, cells in columns.items()}
    with refuses(parameter, where=f"{tmp_path / 'votes.parquet'}{row}"):
        read(ABC, row_group_size=row_group_size, **values)


def test_a_byte_that_was_changed_is_found(tmp_path):
    path = tmp_path / "votes.parquet"
    pq.write_table(pa.table({"ranking": [["a", "b"], ["b", "a"]]}), path, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    place = content.index(b"a\x01\x00\x00\x00b")
    content[place] ^= 2
    path.write_bytes(content)
    with refuses("file", where=str(path)):
        read_rankings(path)
