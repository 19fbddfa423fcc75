"""Score tables as CSV and Parquet, read in batches."""

import csv
from itertools import islice

import numpy as np
import pytest

from peak_memory import peak_of
from rankshot import RankshotError, Scores
from rankshot.zeroshot.tables import open_scores, write_score_table
from refusals import ANY, refuses

ENDINGS = [".csv", ".parquet"]
ITEMS = ("leopard", "bus, red", 'the "x"')


@pytest.fixture(autouse=True)
def _needs_pyarrow(request):
    if "parquet" in request.node.name:
        pytest.importorskip("pyarrow")


def save(path, values, items=ITEMS, ids=None, features=None, **parquet):
    """Write a score table by other means than the package's."""
    values = np.asarray(values)
    if path.suffix == ".parquet":
        import pyarrow as pa
        from pyarrow.parquet import write_table

        columns = {} if features is None else {"features": list(features)}
        columns |= dict(zip(items, values.T, strict=True)) | ({} if ids is None else {"id": ids})
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
    values = rng.normal(size=(100, 3)) * 10.0 ** rng.integers(-300, 14, size=(100, 3))
    names = [f"x{i}" for i in rng.permutation(100)]
    path = save(tmp_path / f"scores{ending}", values, ids=names)
    for batch_rows in (7, None):
        table = open_scores(path, batch_rows)
        n_rows = None if ending == ".csv" else 100
        assert table.header[:5] == (ITEMS, "multiclass", ("id",), 0, n_rows)
        ids, read = whole(table)
        assert ids == names == table.read().ids.tolist()
        assert all(type(name) is str for name in ids)
        assert read.dtype == np.float64
        np.testing.assert_array_equal(read, values)
        assert max(len(scores) for _, scores in table.batches()) <= (batch_rows or 100)


P = np.array([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]])


@pytest.mark.parametrize("ending", ENDINGS)
def test_score_types(tmp_path, ending):
    path, log_odds = save(tmp_path / f"s{ending}", P, "abc"), np.log(P / (1 - P))
    for score_type, kind, expected in [
        ("logits", "multiclass", P),
        ("probabilities", "multiclass", np.log(P)),
        ("auto", "multiclass", np.log(P)),
        ("one-vs-rest-logits", "one-vs-rest", P),
        ("one-vs-rest-probabilities", "one-vs-rest", log_odds),
    ]:
        scores, ids, labels = open_scores(str(path), score_type=score_type).read()
        assert (scores.items, scores.kind) == (tuple("abc"), kind)
        np.testing.assert_allclose(scores.values, expected, rtol=1e-14)
        assert (ids.tolist(), labels) == (["0", "1"], None)
    assert next(open_scores(path).batches())[0] is None
    for table, found in ((P, "probabilities"), (P + 0.1, "logits"), (P[:, :1], "logits")):
        path = save(tmp_path / f"s{ending}", table, "abc"[: table.shape[1]])
        assert open_scores(path).guess_type() == found
    with refuses("score_type", "one-vs-one", str(path)):
        open_scores(path, score_type="one-vs-one")
    with refuses("scores", where=str(path)):
        open_scores(save(path, 100 * P, "abc"), score_type="auto").read()


def test_pairs_of_classes_are_kept_in_parquet(tmp_path, rng):
    pytest.importorskip("pyarrow")
    scores = Scores(rng.normal(size=(3, 6)), ["a", "id", "b", "c"], "one-vs-one")
    path = tmp_path / "pairs.parquet"
    write_score_table(path, scores.items, [(list("xyz"), scores)], "one-vs-one")
    table = open_scores(path)
    assert table.guess_type() == "one-vs-one"
    for score_type in ("logits", "auto", "one-vs-one"):
        found = open_scores(path, score_type=score_type).read().scores
        assert (found.items, found.kind) == (scores.items, "one-vs-one")
        np.testing.assert_array_equal(found.pairs, scores.pairs)
    with refuses("score_type", "one-vs-rest-logits", str(path)):
        open_scores(path, score_type="one-vs-rest-logits")
    with refuses("path", where=str(tmp_path / "pairs.csv")):
        write_score_table(tmp_path / "pairs.csv", scores.items, [], "one-vs-one")


@pytest.mark.parametrize("ending", ENDINGS)
def test_classes_with_the_names_of_columns(tmp_path, ending):
    items = ("id", "label", "features", "class id", "class")
    scores = Scores(np.arange(10.0).reshape(2, 5), items)
    assert write_score_table(tmp_path / f"s{ending}", items, [(["x", "y"], scores)]) == 2
    found, ids, labels = open_scores(tmp_path / f"s{ending}").read()
    assert (found.items, ids.tolist(), labels) == (items, ["x", "y"], None)
    np.testing.assert_array_equal(found.values, scores.values)


def test_labels_come_with_their_rows(tmp_path):
    (tmp_path / "s.csv").write_text("label,b,id,a\n cat ,1,x,2\n,3,y,4\n")
    scores, ids, labels = open_scores(tmp_path / "s.csv", 1).read()
    assert (ids.tolist(), labels.tolist()) == (["x", "y"], ["cat", ""])
    assert (scores.items, scores.values.tolist()) == (("b", "a"), [[1, 2], [3, 4]])


# -------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("content", "parameter", "value", "line"),
    [
        ("id,a,b\nx,1,2\ny,3,4\nz,5,6\ny,7,8\n", "id", "y", 3),
        ("a,b\n1,2\n\n1e15,2\n", "'a'", 1e15, 4),
        ("a,b\n0.5,0.5\n1,0\n0.5,0.8\n", "probabilities", 1.3, 4),
        ("a,b\n0.5,0.5\n1,0\n-0.5,1.5\n", "'a'", -0.5, 4),
        ("a,,b\n1,2,3\n", "column", 2, None),
        ("id,label\nx,a\n", "columns", ANY, None),
        ("a,b\n", "table", ANY, None),
    ],
)
def test_what_is_wrong_and_where(tmp_path, content, parameter, value, line):
    path = tmp_path / "s.csv"
    path.write_text(content)
    with refuses(parameter, value, f"{path}:{line}" if line else str(path)):
        open_scores(path, 2, score_type="auto").read()


@pytest.mark.parametrize("ending", ENDINGS)
def test_files_that_are_not_there_or_change(tmp_path, ending):
    with pytest.raises(FileNotFoundError):
        open_scores(tmp_path / f"none{ending}")
    with refuses("path"):
        open_scores(tmp_path / "none.rankshot-run")
    (tmp_path / f"folder{ending}").mkdir()
    with refuses("scores"):
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


def test_features_come_with_their_rows(tmp_path, rng):
    pytest.importorskip("pyarrow")
    values, ids = rng.normal(size=(700, 3)), [f"x{i}" for i in range(700)]
    features = rng.normal(size=(700, 5)).astype(np.float32)
    path = save(tmp_path / "s.parquet", values, ids=ids, features=features, row_group_size=30)
    for batch_rows in (7, 300, None):
        table = open_scores(path, batch_rows)
        assert (table.header.n_features, table.items) == (5, ITEMS)
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
    assert copy.header.n_features == 5
    read = np.concatenate([scores.features for _, scores in copy.batches(features=True)])
    np.testing.assert_array_equal(read, features)
    write_score_table(tmp_path / "copy.csv", ITEMS, whole)
    assert open_scores(tmp_path / "copy.csv").header.n_features == 0


@pytest.mark.parametrize(
    ("features", "parameter", "value", "row"),
    [
        ([[1.0, 1.0], [1.0, np.nan]], "'feature 1'", ANY, ": row 1"),
        ([[1.0, 2.0], [3.0]], "column", "features", ""),
    ],
)
def test_bad_features_are_named(tmp_path, features, parameter, value, row):
    pytest.importorskip("pyarrow")
    path = save(tmp_path / "s.parquet", np.ones((2, 3)), features=features)
    with refuses(parameter, value, f"{path}{row}"):
        list(open_scores(path).batches(features=True))


def test_parts_have_the_same_features_unless_they_are_empty(tmp_path):
    pytest.importorskip("pyarrow")
    ones = Scores(np.ones((2, 3)), ITEMS, features=np.ones((2, 4)))
    write_score_table(tmp_path / "a.parquet", ITEMS, [])
    with pytest.raises(RankshotError):
        open_scores(tmp_path / "a.parquet")
    assert open_scores(tmp_path / "a.parquet", allow_empty=True).items == tuple(ITEMS)
    write_score_table(tmp_path / "b.parquet", ITEMS, [(["a", "b"], ones)])
    table = open_scores(tmp_path)
    assert table.header.n_features == 4
    assert [scores.features.shape for _, scores in table.batches(features=True)] == [(2, 4)]
    write_score_table(tmp_path / "c.parquet", ITEMS, [(["c", "d"], Scores(ones.values, ITEMS))])
    with refuses("columns", where=str(tmp_path / "c.parquet")):
        open_scores(tmp_path)
