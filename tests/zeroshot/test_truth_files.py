"""True labels, read from CSV and Parquet."""

import numpy as np
import pytest

from rankshot import RankshotError
from rankshot.zeroshot.files.predictions import read_truth

ENDINGS = [".csv", ".parquet"]


@pytest.fixture(autouse=True)
def _needs_pyarrow(request):
    if "parquet" in request.node.name:
        pytest.importorskip("pyarrow")


def save(path, columns):
    if path.suffix == ".parquet":
        import pyarrow as pa
        from pyarrow.parquet import write_table

        write_table(pa.table(columns), path, row_group_size=2)
    else:
        rows = [columns, *zip(*columns.values(), strict=True)]
        path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("ending", ENDINGS)
def test_rows_in_any_order(tmp_path, rng, ending):
    """The label of an id is its square: the truth can be told from the id alone."""
    numbers = rng.permutation(50)
    columns = {"more": ["?"] * 50, "label": [f"l{i**2}" for i in numbers], "id": numbers}
    path = save(tmp_path / f"t{ending}", columns)
    wanted = [str(i) for i in rng.choice(50, size=20)]
    labels = read_truth(str(path), wanted)
    assert labels.dtype == object
    assert labels.tolist() == [f"l{int(i) ** 2}" for i in wanted]
    assert read_truth(path, np.array(wanted, object)).tolist() == labels.tolist()


@pytest.mark.parametrize("ending", ENDINGS)
def test_without_ids_by_row(tmp_path, ending):
    path = save(tmp_path / f"t{ending}", {"label": ["b", "a", "b"]})
    assert read_truth(path, ["x", "y", "z"]).tolist() == ["b", "a", "b"]
    for n in (2, 4):
        with pytest.raises(RankshotError, match=rf"t\{ending}: 3 labels for {n} inputs; with"):
            read_truth(path, [f"x{i}" for i in range(n)])


@pytest.mark.parametrize("ending", ENDINGS)
def test_labels_may_be_numbers(tmp_path, ending):
    path = save(tmp_path / f"t{ending}", {"id": ["x", "y"], "label": [3, 12]})
    assert read_truth(path, ["y", "x"]).tolist() == ["12", "3"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,label\n", r"t\.csv: the table has no rows"),
        ("id,lable\nx,a\n", r"no column 'label' \(did you mean 'lable'\?\); the columns are"),
        ("id,label\nz,a\nx,b\n", "no label for 1 of the 2 inputs: 'y'"),
        ("id,label\nx,a\n\ny,\n", r"t\.csv:4: the label is empty"),
        ("id,label\nx, \n", r"t\.csv:2: the label is empty"),
        ("label\na\n\nb\n", r"t\.csv:3: the label is empty"),
        ("id,label\nx,a\ny,b\nx,a\n", r"t\.csv:4: the id 'x' is also in .*t\.csv:2$"),
        ("id,label,id\nx,a,x\n", r"t\.csv: the column 'id' occurs 2 times"),
    ],
)
def test_bad_csv_is_named_by_file_and_line(tmp_path, content, message):
    path = tmp_path / "t.csv"
    path.write_text(content)
    with pytest.raises(RankshotError, match=message):
        read_truth(path, ["x", "y"])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": list("xyz"), "label": ["a", "b", None]}, r"t\.parquet: row 2: the label is empty"),
        (
            {"id": list("xyx"), "label": list("aba")},
            r"row 2: the id 'x' is also in .*: row 0$",
        ),
    ],
)
def test_bad_parquet_is_named_by_file_and_row(tmp_path, columns, message):
    with pytest.raises(RankshotError, match=message):
        read_truth(save(tmp_path / "t.parquet", columns), ["x", "y"])


def test_many_missing_ids_are_counted(tmp_path):
    path = save(tmp_path / "t.csv", {"id": ["x"], "label": ["a"]})
    with pytest.raises(RankshotError, match=r"for 100 of the 101 inputs: '0', .* and 92 more"):
        read_truth(path, ["x", *map(str, range(100))])


def test_a_single_column_may_end_in_blank_lines(tmp_path):
    (tmp_path / "t.csv").write_text("\nlabel\na\nb\n\n\n")
    assert read_truth(tmp_path / "t.csv", ["x", "y"]).tolist() == ["a", "b"]
