"""Rankings in Parquet files."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from random_rankings import any_rankings
from rankshot import Rankings, RankshotError, read_rankings, write_rankings

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
    assert table.to_pydict() == {"ranking": [["b", "a"], ["c"]]}
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
        "weight": [1.0, 2.0],
        "kind": ["subset", "top"],
        "k": [2, None],
    }


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.string()),
        pa.large_list(pa.large_string()),
        pa.list_(pa.string(), 2),
        pa.list_(pa.dictionary(pa.int8(), pa.string())),
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
        k=([1, None],),
        note=(["other columns", "are ignored"],),
    )
    assert found == Rankings.from_orders(
        [["b"], ["b"]], items=["a", "b"], targets=[None, "cat"], kind=["top", "subset"]
    )


LISTS = [["a", "b"], ["b", "c"], ["c"], ["a"]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"ranking": [["a"], ["b"], ["x"]]}, "row 2: item='x'"),
        ({"ranking": [["a"], ["b"], [], ["c"]]}, "row 2: the ranking is empty"),
        ({"ranking": [["a"], None]}, "row 1: the ranking is missing"),
        ({"ranking": [["a"], ["b"], ["c", None]]}, "row 2: item must be a name, not None"),
        ({"ranking": [[["a"]], [["b"], None]]}, "row 1, place 2: the tie is missing"),
        ({"ranking": ["a", "b"]}, "ranking must be a column of lists"),
        ({"order": [["a"]]}, "column='ranking' is missing; the columns are 'order'"),
        ({"ranking": LISTS, "wieght": [1, 2, 3, 4]}, "did you mean 'weight'"),
        (
            {"ranking": LISTS, "weight": [1, 2, float("nan"), 4]},
            "row 2: weights must be a finite number",
        ),
        ({"ranking": LISTS, "weight": ["1", "2", "3", "4"]}, "column='weight' holds string"),
        ({"ranking": LISTS, "rater": [7, 8, 9, 7]}, "rater must be a column of text"),
        ({"ranking": LISTS, "kind": ["top", "top", "sub", None]}, "row 2: kind must be 'top' or"),
        ({"ranking": LISTS, "k": [1, 1, 1, 2]}, "row 3: k must be a whole number from 1 to 1"),
        ({"ranking": []}, "contains no rankings"),
    ],
)
@pytest.mark.parametrize("row_group_size", [None, 2])
def test_errors_name_the_file_and_the_row(read, columns, message, row_group_size):
    kinds = {"ranking": pa.list_(pa.string())} if columns.get("ranking") == [] else {}
    values = {name: (cells, kinds.get(name)) for name, cells in columns.items()}
    with pytest.raises(RankshotError, match=rf"votes\.parquet: (.*{message})"):
        read(ABC, row_group_size=row_group_size, **values)


def test_a_byte_that_was_changed_is_found(tmp_path):
    path = tmp_path / "votes.parquet"
    write_rankings(Rankings.from_orders([["a", "b"], ["b", "a"]]), path)
    content = bytearray(path.read_bytes())
    place = content.index(b"a\x01\x00\x00\x00b")
    content[place] ^= 2
    path.write_bytes(content)
    with pytest.raises(RankshotError, match=r"votes\.parquet: .*(CRC|checksum|integrity)"):
        read_rankings(path)
