"""Score tables as CSV, Parquet and .npz, read in batches."""

import csv
import io
import re
import zipfile
from contextlib import suppress
from itertools import islice

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from peak_memory import peak_of
from rankshot import RankshotError, Scores
from rankshot.zeroshot.files.score_tables import open_scores, write_score_table

ENDINGS = [".csv", ".parquet", ".npz"]
FUZZ = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
ITEMS = ("leopard", "bus, red", 'the "x"')


@pytest.fixture(autouse=True)
def _needs_pyarrow(request):
    if "parquet" in request.node.name:
        pytest.importorskip("pyarrow")


def save(path, values, items=ITEMS, ids=None, **parquet):
    """Write a score table by other means than the package's."""
    values = np.asarray(values)
    if path.suffix == ".npz":
        extra = {} if ids is None else {"id": np.array(ids)}
        np.savez(path, scores=values, classes=np.array(items), **extra)
    elif path.suffix == ".parquet":
        import pyarrow as pa
        from pyarrow.parquet import write_table

        columns = dict(zip(items, values.T, strict=True))
        columns |= {} if ids is None else {"id": ids}
        write_table(pa.table(columns), path, **parquet)
    else:
        with path.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow([*([] if ids is None else ["id"]), *items])
            for i, row in enumerate(values.tolist()):
                writer.writerow([*([] if ids is None else [ids[i]]), *row])
    return path


def whole(table):
    batches = list(table.batches())
    ids = None if batches[0][0] is None else [name for names, _ in batches for name in names]
    return ids, np.concatenate([scores.values for _, scores in batches])


# -------------------------------------------------------------------- what is read


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_rows_do_not_depend_on_the_batches(tmp_path, rng, ending):
    values = rng.normal(size=(100, 3)) * 10.0 ** rng.integers(-300, 29, size=(100, 3))
    names = [f"x{i}" for i in rng.permutation(100)]
    path = save(tmp_path / f"scores{ending}", values, ids=names)
    for batch_rows in (7, None):
        table = open_scores(path, batch_rows)
        assert (table.items, table.kind, table.has_ids) == (ITEMS, "multiclass", True)
        assert table.n_rows == (None if ending == ".csv" else 100)
        ids, read = whole(table)
        assert ids == names
        assert all(type(name) is str for name in ids)
        assert read.dtype == np.float64
        np.testing.assert_array_equal(read, values)
        assert max(len(scores) for _, scores in table.batches()) <= (batch_rows or 100)


@pytest.mark.parametrize("ending", ENDINGS)
def test_without_ids(tmp_path, ending):
    """Large scores keep their digits."""
    table = open_scores(str(save(tmp_path / f"s{ending}", [[1.7e29, 1.7e29, -1.0]])))
    assert not table.has_ids
    ((ids, scores),) = table.batches()
    assert ids is None
    np.testing.assert_array_equal(scores.values, [[1.7e29, 1.7e29, -1.0]])


@pytest.mark.parametrize(
    ("save_as", "dtype"), [(np.savez, ">f4"), (np.savez_compressed, "f2"), (np.savez, "u8")]
)
def test_npz_of_all_numbers(tmp_path, save_as, dtype):
    scores = np.arange(8).reshape(4, 2).astype(dtype)
    ids = np.array([10, 2, 3, 4])
    save_as(tmp_path / "s.npz", scores=scores, classes=np.array([5, 17]), id=ids)
    table = open_scores(tmp_path / "s.npz", 3)
    assert table.items == ("5", "17")
    names, values = whole(table)
    assert names == ["10", "2", "3", "4"]
    assert values.dtype == (np.float32 if str(dtype).endswith("f4") else np.float64)
    np.testing.assert_array_equal(values, np.arange(8).reshape(4, 2))


@pytest.mark.parametrize(
    ("classes", "columns", "named", "kind"),
    [
        ("abcd", 6, None, "one-vs-one"),
        ("abc", 3, None, "multiclass"),
        ("abc", 3, ["one-vs-one"], "one-vs-one"),
    ],
)
def test_one_vs_one_is_known_by_its_columns(tmp_path, classes, columns, named, kind):
    extra = {} if named is None else {"kind": np.array(named)}
    scores = np.ones((2, columns))
    np.savez(tmp_path / "s.npz", scores=scores, classes=list(classes), **extra)
    table = open_scores(tmp_path / "s.npz")
    assert (table.kind, table.items) == (kind, tuple(classes))
    assert whole(table)[1].shape == (2, columns)


# -------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,a\n", r"s\.csv: the table has no rows"),
        ("id\n1\n", r"s\.csv: expected one column per seen class, and at most one named 'id'"),
        ("id,a,a\n1,2,3\n", r"s\.csv: the header must name each only once, not 'a'"),
        ("id,a,b\nx,1,2\ny,,2\n", r"s\.csv:3: 'a' is empty; scores must be finite numbers"),
        ("id,a,b\nx,1,2\ny,3,1e31\n", r"s\.csv:3: 'b' is 1e\+31; numbers must be less than 1e\+30"),
        ("id,a\nx,1\ny,2\nx,3\ny,2\n", r"s\.csv: 2 ids more than once: 'x', 'y'; every input"),
    ],
)
def test_bad_csv_is_named_by_file_and_line(tmp_path, content, message):
    (tmp_path / "s.csv").write_text(content)
    with pytest.raises(RankshotError, match=message):
        whole(open_scores(tmp_path / "s.csv", batch_rows=1))


@pytest.mark.parametrize("ending", [".parquet", ".npz"])
@pytest.mark.parametrize(("odd", "batch_rows"), [(np.nan, 7), (-1e31, None)])
def test_bad_scores_are_located_in_the_whole_file(tmp_path, ending, odd, batch_rows):
    values = np.zeros((40, 3))
    values[16, 1], values[30, 0] = odd, np.nan
    path = save(tmp_path / f"s{ending}", values)
    message = (
        rf"s\{ending}: row 16: .*'bus, red' is {re.escape(str(odd))}; (scores|numbers) must be"
    )
    with pytest.raises(RankshotError, match=message):
        whole(open_scores(path, batch_rows))


def test_a_pair_that_is_not_finite(tmp_path):
    scores = np.zeros((2, 6))
    scores[1, 4] = np.nan
    np.savez(tmp_path / "s.npz", scores=scores, classes=list("abcd"))
    with pytest.raises(RankshotError, match="row 1: column 'b' against 'd' is nan"):
        whole(open_scores(tmp_path / "s.npz"))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"classes": ["a"]}, r"s\.npz: no array 'scores'; the arrays are 'classes'"),
        (
            {"scores": np.ones((5, 4)), "classes": list("abc")},
            r"'scores' has the shape \(5, 4\); the 3 'classes' need \(n, 3\), or",
        ),
        ({"scores": np.ones((0, 1)), "classes": ["a"]}, "the table has no rows"),
        (
            {"scores": [[1.0]], "classes": np.array(["a"], object)},
            r"not a complete .npz file of numbers and text \(Object arrays",
        ),
        ({"scores": [["1"]], "classes": ["a"]}, "'scores' must be numbers, not <U1"),
        (
            {"scores": [[1.0]], "classes": [1.5]},
            r"'classes' must be text, .* classes.astype\(str\)",
        ),
        (
            {"scores": np.ones((4, 2)), "classes": list("ab"), "id": list("xyz")},
            r"'scores' has the shape \(4, 2\), 'id' \(3,\)",
        ),
        ({"scores": [[1.0]] * 2, "classes": ["a"], "id": ["x", ""]}, "row 1: 'id' is empty"),
        ({"scores": np.full((1, 1), np.longdouble("1e400")), "classes": ["a"]}, "'a' is inf"),
    ],
)
def test_bad_npz(tmp_path, arrays, message):
    np.savez(tmp_path / "s.npz", **arrays)
    with pytest.raises(RankshotError, match=message):
        whole(open_scores(tmp_path / "s.npz", 1))


def npz_with(path, header=None, version=b"\x01\x00", method=zipfile.ZIP_STORED, data=b"\0" * 16):
    """Write an archive whose ``scores`` have a header of one's own."""
    header = header or "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1), }"
    classes = io.BytesIO()
    np.save(classes, np.array(["a"]))
    length = len(header).to_bytes(2 if version[:1] == b"\x01" else 4, "little")
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("classes.npy", classes.getvalue())
        member = b"\x93NUMPY" + version + length + header.encode() + data
        archive.writestr("scores.npy", member)


@pytest.mark.parametrize(
    "options",
    [
        {"header": "(" * 3000},
        {"data": b"\0" * 8},
        {"header": "{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999, 1)}"},
        {"header": "{'descr': '<f8', 'fortran_order': False, 'shape': (-2, -1)}"},
    ],
)
def test_claims_of_an_npz_file_are_not_believed(tmp_path, options):
    npz_with(tmp_path / "s.npz", **options)
    with pytest.raises(RankshotError, match=r"s\.npz: (not a complete .npz file|'scores' has)"):
        whole(open_scores(tmp_path / "s.npz"))


@pytest.mark.parametrize("ending", [".parquet", ".npz"])
def test_fakes_and_pieces(tmp_path, ending):
    path = save(tmp_path / f"s{ending}", np.zeros((50, 3)))
    content = path.read_bytes()
    for piece in (b"", b"id,a\n1,2\n", content[: len(content) // 2], content[:-10], content[10:]):
        path.write_bytes(piece)
        with pytest.raises(RankshotError, match=rf"s\{ending}: not a complete \S+ file"):
            whole(open_scores(path))


def test_a_flipped_bit_is_noticed(tmp_path):
    path = save(tmp_path / "s.npz", np.arange(300.0).reshape(100, 3))
    content = bytearray(path.read_bytes())
    content[1000] ^= 1
    path.write_bytes(content)
    with pytest.raises(RankshotError, match=r"s\.npz: not a complete .npz file .*\(Bad CRC-32"):
        whole(open_scores(path, 7))


@pytest.mark.parametrize("ending", [".parquet", ".npz", " packed.npz"])
@given(place=st.integers(0, 5000), junk=st.binary(max_size=8), cut=st.integers(0, 100))
@FUZZ
def test_damaged_files(tmp_path, ending, place, junk, cut):
    original = tmp_path / f"whole{ending}"
    if not original.exists():
        save(original, np.arange(12.0).reshape(4, 3), ids=list("wxyz"))
        if "packed" in ending:
            np.savez_compressed(original, **np.load(original))
    content = original.read_bytes()
    place %= len(content)
    path = tmp_path / f"damaged{ending}"
    path.write_bytes(content[:place] + junk + content[place + len(junk) : len(content) - cut])
    with suppress(RankshotError):
        whole(open_scores(path))


@given(st.binary(max_size=200) | st.text('",a\r\n1.', max_size=30).map(str.encode))
@FUZZ
def test_any_bytes_as_csv(tmp_path, content):
    path = tmp_path / "fuzzed.csv"
    for start in (b"", b"id,a\n"):
        path.write_bytes(start + content)
        with suppress(RankshotError):
            assert np.isfinite(whole(open_scores(path))[1]).all()


@pytest.mark.parametrize("ending", ENDINGS)
def test_files_that_are_not_there_or_change(tmp_path, ending):
    with pytest.raises(FileNotFoundError):
        open_scores(tmp_path / f"none{ending}")
    with pytest.raises(RankshotError, match=r"run: no such file or folder"):
        open_scores(tmp_path / "none.rankshot-run")
    (tmp_path / f"folder{ending}").mkdir()
    with pytest.raises(RankshotError, match="no parts"):
        open_scores(tmp_path / f"folder{ending}")
    table = open_scores(save(tmp_path / f"s{ending}", [[1, 2]], items=list("ab")))
    save(table.path, [[2, 1]], items=list("ba"))
    assert whole(table)[1].tolist() == [[1, 2]]


# -------------------------------------------------------------------- memory


@pytest.mark.parametrize(
    ("ending", "n", "batch_rows", "buffers"),
    [
        (".parquet", 32_000, 500, 2.2e6),  # 64 kB a column; the file has one row group
        (".csv", 3000, 50, 0.2e6),
    ],
)
def test_memory_is_a_few_batches(tmp_path, rng, ending, n, batch_rows, buffers):
    """A row has 160 bytes, so most of the tables have 5 MB."""
    items, ids = [f"c{i}" for i in range(20)], np.arange(n).astype(str)
    # No reader can hold less of a Parquet file than a page of each column.
    pages = {"data_page_size": 2**13, "use_dictionary": False}
    values = rng.normal(size=(n, 20)) if ending == ".parquet" else np.zeros((n, 20))
    path = save(tmp_path / f"s{ending}", values, items, ids, **pages)
    table = open_scores(path, batch_rows)
    assert sum(len(scores) for _, scores in islice(table.batches(), 2)) == 2 * batch_rows
    peak, read = peak_of(lambda: sum(len(scores) for _, scores in table.batches()))
    assert read == n
    assert peak < 4 * batch_rows * 160 + buffers < n * 160 / 2


# -------------------------------------------------------------------- features


def save_features(path, values, features, ids):
    """Write a table with features by other means than the package's."""
    if path.suffix == ".npz":
        arrays = {"scores": values, "features": features, "id": np.array(ids)}
        np.savez(path, classes=np.array(ITEMS), **arrays)
        return path
    import pyarrow as pa
    from pyarrow.parquet import write_table

    columns = {"features": list(features), "id": ids, **dict(zip(ITEMS, values.T, strict=True))}
    write_table(pa.table(columns), path, row_group_size=30)
    return path


@pytest.mark.parametrize("ending", ENDINGS[1:])
def test_features_come_with_their_rows(tmp_path, rng, ending):
    pytest.importorskip("pyarrow")
    values, ids = rng.normal(size=(700, 3)), [f"x{i}" for i in range(700)]
    features = rng.normal(size=(700, 5)).astype(np.float32)
    path = save_features(tmp_path / f"s{ending}", values, features, ids)
    for batch_rows in (7, 300, None):
        table = open_scores(path, batch_rows)
        assert (table.n_features, table.items) == (5, ITEMS)
        read = [scores for _, scores in table.batches(features=True)]
        found = np.concatenate([scores.features for scores in read])
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, features)
        np.testing.assert_array_equal(np.concatenate([scores.values for scores in read]), values)
        assert next(table.batches())[1].features is None
    # What is written is read, with another number of rows in each block.
    whole = [(names.tolist(), scores) for names, scores in table.batches(features=True)]
    write_score_table(tmp_path / "copy.parquet", ITEMS, whole)
    copy = open_scores(tmp_path / "copy.parquet", 11)
    assert copy.n_features == 5
    read = np.concatenate([scores.features for _, scores in copy.batches(features=True)])
    np.testing.assert_array_equal(read, features)
    write_score_table(tmp_path / "copy.csv", ITEMS, whole)
    assert open_scores(tmp_path / "copy.csv").n_features == 0


@pytest.mark.parametrize("ending", ENDINGS[1:])
def test_features_that_are_not_numbers_are_named(tmp_path, ending):
    pytest.importorskip("pyarrow")
    features = np.ones((2, 3))
    features[1, 2] = np.nan
    path = save_features(tmp_path / f"s{ending}", np.ones((2, 3)), features, ["a", "b"])
    with pytest.raises(RankshotError, match=r"row 1: feature 2 is nan; features must be finite"):
        list(open_scores(path).batches(features=True))


def test_lists_of_different_lengths_are_refused(tmp_path):
    pytest.importorskip("pyarrow")
    path = save_features(tmp_path / "s.parquet", np.ones((2, 3)), [[1.0, 2.0], [3.0]], ["a", "b"])
    with pytest.raises(RankshotError, match="must have lists of numbers, all of one length"):
        list(open_scores(path).batches(features=True))


def test_parts_have_the_same_features_unless_they_are_empty(tmp_path):
    pytest.importorskip("pyarrow")
    ones = Scores(np.ones((2, 3)), ITEMS, features=np.ones((2, 4)))
    write_score_table(tmp_path / "a.parquet", ITEMS, [])
    write_score_table(tmp_path / "b.parquet", ITEMS, [(["a", "b"], ones)])
    table = open_scores(tmp_path)
    assert table.n_features == 4
    assert [scores.features.shape for _, scores in table.batches(features=True)] == [(2, 4)]
    write_score_table(tmp_path / "c.parquet", ITEMS, [(["c", "d"], Scores(ones.values, ITEMS))])
    with pytest.raises(
        RankshotError, match=r"c.parquet: its columns differ from those of the first table"
    ):
        list(open_scores(tmp_path).batches(features=True))
