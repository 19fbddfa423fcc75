"""Rankings in Parquet files."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from random_rankings import any_rankings
from rankshot import Rankings, read_rankings, write_rankings
from refusals import refuses

ABC = ["a", "b", "c"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all examples of a property."""
    return tmp_path_factory.mktemp("parquet")


@pytest.fixture
def read(tmp_path):
    """Write columns to a file and read rankings from it."""

    def read(items=None, *, row_group_size=None, **columns):
        table = pa.table({name: pa.array(*column) for name, column in columns.items()})
        pq.write_table(table, tmp_path / "votes.parquet", row_group_size=row_group_size)
        return read_rankings(tmp_path / "votes.parquet", items)

    return read


@settings(max_examples=20)
@given(rankings=any_rankings())
def test_json_lines_and_parquet_give_back_all_and_are_read_alike(folder, rankings):
    """Also where another program wrote the file, which then does not name the items."""
    write_rankings(rankings, folder / "one.jsonl")
    write_rankings(rankings, folder / "one.parquet")
    assert read_rankings(folder / "one.jsonl", rankings.items) == rankings
    assert read_rankings(folder / "one.parquet") == rankings
    turned = rankings.items[::-1]
    assert read_rankings(folder / "one.parquet", turned) == rankings.with_items(turned)
    table = pq.read_table(folder / "one.parquet").replace_schema_metadata()
    pq.write_table(table, folder / "one.parquet", row_group_size=2)
    assert read_rankings(folder / "one.parquet") == read_rankings(folder / "one.jsonl")


def test_other_programs_read_plain_lists_of_names(tmp_path):
    strict = Rankings.from_orders([["b", "a"], ["c"]], items=ABC)
    write_rankings(strict, tmp_path / "strict.parquet")
    table = pq.read_table(tmp_path / "strict.parquet")
    nothing = {name: [None, None] for name in ("target", "source", "rater", "kind", "k")}
    assert table.to_pydict() == {"ranking": [["b", "a"], ["c"]], "weight": [1.0, 1.0], **nothing}
    assert table.schema.field("ranking").type == pa.list_(pa.field("element", pa.string()))
    tied = Rankings.from_orders(
        [["b", ["c", "a"]], ["c"]],
        items=ABC,
        targets=["cat", None],
        weights=[1, 2],
        kind=["subset", "top"],
    ).top(2)
    write_rankings(tied, tmp_path / "tied.parquet")
    assert pq.read_table(tmp_path / "tied.parquet").to_pydict() == {
        "ranking": [[["b"], ["a", "c"]], [["c"]]],
        "target": ["cat", None],
        "source": [None, None],
        "rater": [None, None],
        "kind": ["subset", None],
        "weight": [1.0, 2.0],
        "k": [2, None],
    }


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.string()),
        pa.large_list(pa.large_string()),
        pa.list_(pa.string(), 2),
    ],
)
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


LISTS = [["a", "b"], ["b", "c"], ["c"], ["a"]]


@pytest.mark.parametrize(
    ("columns", "parameter", "row"),
    [
        ({"ranking": [["a"], ["b"], ["x"]]}, "item", ": row 2"),
        ({"ranking": [["a"], ["b"], [], ["c"]]}, "ranking", ": row 2"),
        ({"ranking": [["a"], None]}, "ranking", ": row 1"),
        ({"ranking": [["a"], ["b"], ["c", None]]}, "item", ": row 2"),
        ({"ranking": [[["a"]], [["b"], None]]}, "item", ": row 1"),
        ({"order": [["a"]]}, "column", ""),
        ({"ranking": LISTS, "wieght": [1, 2, 3, 4]}, "field", ""),
        ({"ranking": LISTS, "weight": [1, 2, float("nan"), 4]}, "weights", ": row 2"),
        ({"ranking": LISTS, "weight": ["1", "2", "3", "4"]}, "weights", ": row 0"),
        ({"ranking": LISTS, "rater": [0.5, 8, 9, 7]}, "raters", ": row 0"),
        ({"ranking": LISTS, "kind": ["top", "top", "sub", None]}, "kind", ": row 2"),
        ({"ranking": LISTS, "k": [1, 1, 1, 2]}, "k", ": row 3"),
        ({"ranking": []}, "table", ""),
    ],
)
@pytest.mark.parametrize("row_group_size", [None, 2])
def test_errors_name_the_file_and_the_row(read, tmp_path, columns, parameter, row, row_group_size):
    kinds = {"ranking": pa.list_(pa.string())} if columns.get("ranking") == [] else {}
    values = {name: (cells, kinds.get(name)) for name, cells in columns.items()}
    with refuses(parameter, where=f"{tmp_path / 'votes.parquet'}{row}"):
        read(ABC, row_group_size=row_group_size, **values)


def test_a_byte_that_was_changed_is_found(tmp_path):
    path = tmp_path / "votes.parquet"
    write_rankings(Rankings.from_orders([["a", "b"], ["b", "a"]]), path)
    content = bytearray(path.read_bytes())
    place = content.index(b"a\x01\x00\x00\x00b")
    content[place] ^= 2
    path.write_bytes(content)
    with refuses("file", where=str(path)):
        read_rankings(path)
