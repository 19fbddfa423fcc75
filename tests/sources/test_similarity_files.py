"""Similarity tables as CSV and Parquet."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from rankshot import RankshotError, Similarity
from rankshot.sources.similarity import read_similarity, write_similarity

names = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6),
    min_size=1,
    max_size=4,
    unique=True,
)


@st.composite
def tables(draw):
    targets, items = draw(names), draw(names)
    cells = arrays(float, (len(targets), len(items)), elements=st.floats(allow_infinity=False))
    return Similarity(draw(cells), targets, items, source="mine")


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@given(table=tables())
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None
)
def test_what_is_written_is_read_back_to_the_last_bit(tmp_path, ending, table):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"mine{ending}"
    write_similarity(table, path)
    again = read_similarity(path)
    assert again == table
    assert (
        np.array_equal(np.signbit(again.values), np.signbit(table.values))
        or np.isnan(table.values).any()
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("target\ncat\n", r"mine.csv: the columns must be the targets and the items, not 'target'"),
        ("target;a;b\ncat;1;2\n", r"not 'target;a;b'; in CSV they are separated by commas"),
        ("target,a,a\ncat,1,2\n", "mine.csv: items names 'a' more than once"),
        ("target,a\ncat,1\ncat,1\n", "mine.csv:3: the target 'cat' occurs twice"),
        ("target,a,b\ncat,1,x\n", "mine.csv:2: 'b' is 'x'; similarities must be finite numbers"),
    ],
)
def test_bad_csv_is_named_by_file_and_line(tmp_path, content, message):
    (tmp_path / "mine.csv").write_text(content)
    with pytest.raises(RankshotError, match=message):
        read_similarity(tmp_path / "mine.csv")


def test_claims_of_a_parquet_file_are_not_believed(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    write_similarity(Similarity([[1], [2]], ["x", "y"], ["a"]), tmp_path / "t.parquet")
    monkeypatch.setattr("rankshot.sources.similarity.MAX_CELLS", 3)
    with pytest.raises(RankshotError, match="2 rows of 2 columns, too many to hold"):
        read_similarity(tmp_path / "t.parquet")
