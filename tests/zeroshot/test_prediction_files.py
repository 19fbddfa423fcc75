"""Predictions as CSV and Parquet, written in batches, completely or not at all."""

import csv
import os
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from rankshot import RankshotError
from rankshot.core.errors import OutputError
from rankshot.zeroshot.files.predictions import open_predictions, read_predictions

ENDINGS = [".csv", ".parquet"]
FUZZ = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
TARGETS = ("cat", "bus, red", "P(x)")


@pytest.fixture(autouse=True)
def _needs_pyarrow(request):
    if "parquet" in request.node.name:
        pytest.importorskip("pyarrow")


def probabilities(rng, n, L, dtype=np.float64):
    proba = rng.dirichlet(np.full(L, 0.3), size=n).astype(dtype)
    return proba, np.array([f"t{j}" for j in range(L)])[proba.argmax(axis=1)]


def write(path, ids, labels, proba, targets, batch_rows=None):
    n = batch_rows or len(labels)
    with open_predictions(path, targets) as writer:
        for i in range(0, len(labels), n):
            some = slice(i, i + n)
            writer.write(None if ids is None else ids[some], labels[some], proba[some])


# -------------------------------------------------------------------- what is written


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(("dtype", "batch_rows"), [(np.float32, 7), (np.float64, 1000)])
def test_batches_leave_no_trace(tmp_path, rng, ending, dtype, batch_rows):
    proba, labels = probabilities(rng, 60, 4, dtype)
    targets, ids = [f"t{j}" for j in range(4)], [f"x{i}" for i in rng.permutation(60)]
    path, at_once = tmp_path / f"p{ending}", tmp_path / f"q{ending}"
    write(path, ids, labels, proba, targets, batch_rows)
    write(at_once, ids, labels, proba, targets)
    assert path.read_bytes() == at_once.read_bytes()
    read = read_predictions(str(path))
    assert (read.targets, list(read.ids), list(read.labels)) == (tuple(targets), ids, list(labels))
    assert all(type(name) is str for name in (*read.ids, *read.labels))
    assert len(read) == 60
    assert read.proba.dtype == (np.float64 if ending == ".csv" else dtype)
    np.testing.assert_array_equal(read.proba.astype(dtype), proba)


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_columns(tmp_path, ending):
    path = tmp_path / f"p{ending}"
    proba = np.array([[0.2, 0.7, 0.1], [0.1, 0.1, 0.8]], np.float32)
    write(path, None, [TARGETS[1], TARGETS[2]], proba, TARGETS, batch_rows=1)
    columns = ["id", "label", "probability", "P(cat)", "P(bus, red)", "P(P(x))"]
    if ending == ".csv":
        with path.open(newline="") as stream:
            assert list(csv.reader(stream)) == [
                columns,
                ["0", "bus, red", "0.7", "0.2", "0.7", "0.1"],
                ["1", "P(x)", "0.8", "0.1", "0.1", "0.8"],
            ]
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        table = parquet.read_table(path)
        assert table.column_names == columns
        assert [str(kind) for kind in table.schema.types] == ["string"] * 2 + ["float"] * 4
        assert table["id"].to_pylist() == ["0", "1"]
        assert table["label"].to_pylist() == ["bus, red", "P(x)"]
        np.testing.assert_array_equal(table["probability"], proba[[0, 1], [1, 2]])
    assert read_predictions(path).targets == TARGETS


def test_parquet_has_few_row_groups(tmp_path, rng, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("rankshot.core.tables.GROUP_CELLS", 5 * 100)
    proba, labels = probabilities(rng, 250, 2)
    write(tmp_path / "p.parquet", None, labels, proba, ["t0", "t1"], batch_rows=1)
    metadata = parquet.read_metadata(tmp_path / "p.parquet")
    groups = range(metadata.num_row_groups)
    assert [metadata.row_group(g).num_rows for g in groups] == [100, 100, 50]


def test_a_parquet_file_has_one_precision(tmp_path):
    pytest.importorskip("pyarrow")
    with open_predictions(tmp_path / "p.parquet", ["a", "b"]) as writer:
        writer.write(["x"], ["a"], np.array([[0.75, 0.25]], np.float32))
        writer.write(np.array([7]), np.array(["b"]), [[0.1, 0.9]])
    read = read_predictions(tmp_path / "p.parquet")
    assert list(read.ids) == ["x", "7"]
    assert read.proba.dtype == np.float32
    np.testing.assert_array_equal(read.proba, np.array([[0.75, 0.25], [0.1, 0.9]], np.float32))


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


@st.composite
def tables(draw):
    targets = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    labels = draw(st.lists(st.sampled_from(targets), min_size=1, max_size=5))
    ids = draw(st.lists(names, min_size=len(labels), max_size=len(labels)))
    row = st.lists(st.floats(0, 1), min_size=len(targets), max_size=len(targets))
    proba = draw(st.lists(row, min_size=len(labels), max_size=len(labels)))
    return ids, labels, np.array(proba), targets


@pytest.mark.parametrize("ending", ENDINGS)
@given(table=tables())
@FUZZ
def test_what_is_written_is_read_back_to_the_last_bit(tmp_path, ending, table):
    ids, labels, proba, targets = table
    write(tmp_path / f"p{ending}", ids, labels, proba, targets)
    read = read_predictions(tmp_path / f"p{ending}")
    assert list(read.ids) == ids
    assert list(read.labels) == labels
    assert read.targets == tuple(targets)
    np.testing.assert_array_equal(read.proba, proba)


def test_a_rounding_error_is_a_probability(tmp_path):
    for odd in (1 + 1e-7, -1e-9):
        write(tmp_path / "p.csv", None, ["a"], np.array([[odd]]), ["a"])
        assert read_predictions(tmp_path / "p.csv").proba == odd


# -------------------------------------------------------------------- whole or not at all


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    ("error", "there", "before"), [(KeyboardInterrupt, True, 3), (RuntimeError, False, 0)]
)
def test_an_interrupted_run_leaves_the_old_file_or_none(
    tmp_path, monkeypatch, ending, error, there, before
):
    monkeypatch.setattr("rankshot.core.tables.GROUP_CELLS", 1)
    path = tmp_path / f"p{ending}"
    if there:
        write(path, ["old"], ["a"], np.array([[1.0]]), ["a"])
    content = path.read_bytes() if there else None

    def run():
        with open_predictions(path, ["a", "b"]) as writer:
            for _ in range(before):
                writer.write(None, ["a"] * 1000, np.full((1000, 2), 0.5))
                assert len(list(tmp_path.iterdir())) == 1 + there
            raise error

    with pytest.raises(error):
        run()
    assert list(tmp_path.iterdir()) == ([path] if there else [])
    assert not there or path.read_bytes() == content


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_full_disk(tmp_path, ending, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=r"cannot be written: No space left"):
        write(tmp_path / f"p{ending}", None, ["a"], np.array([[1.0]]), ["a"])
    assert list(tmp_path.iterdir()) == []


def test_parquet_on_a_disk_that_fills_up(tmp_path, monkeypatch):
    """The writer fails, is closed, fails again, and must not fail once more when it is gone."""
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("rankshot.core.tables.GROUP_CELLS", 1)
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    proba = np.random.default_rng(1).random((20_000, 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        with pytest.raises(OutputError, match="cannot be written: File too large"):
            write(tmp_path / "p.parquet", None, ["a"] * 20_000, proba, ["a"], 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("ids", "labels", "proba", "message"),
    [
        (["x"], ["a"], [[0.5, 0.25, 0.25]], r"probabilities of shape \(1, 3\), not \(1, 2\)"),
        (["x", "y"], ["a"], [[0.5, 0.5]], "2 ids, 1 labels and probabilities of shape"),
        (
            None,
            ["bb"],
            [[0.5, 0.5]],
            r"row 1: the label 'bb' is not one of the classes \(did you mean 'b'\?\)",
        ),
        (None, ["a"], [[0.5, np.nan]], "row 1: 'b' is nan, which is not a probability"),
        (None, ["a"], [[1, -0.5]], "row 1: 'b' is -0.5, which is not a probability"),
        (["\ud800"], ["a"], [[1, 0]], r"UTF-8 cannot encode the character '\\ud800'"),
    ],
)
def test_bad_predictions_are_not_written(tmp_path, ids, labels, proba, message):
    def run():
        with open_predictions(tmp_path / "p.parquet", ["a", "b"]) as writer:
            writer.write(["first"], ["a"], [[1, 0]])
            writer.write(ids, labels, proba)

    with pytest.raises(RankshotError, match=message):
        run()
    assert list(tmp_path.iterdir()) == []


def test_bad_targets_and_places(tmp_path):
    def refused(message, name, targets):
        with (
            pytest.raises(RankshotError, match=message),
            open_predictions(tmp_path / name, targets),
        ):
            pytest.fail("it opened")

    refused("targets names 'a' more than once", "p.csv", ["a", "a"])
    refused("targets is empty", "p.csv", [])
    refused("UTF-8 cannot encode the character", "p.csv", ["\ud800"])
    refused(r"unknown ending '.npz'; known are .csv, .parquet", "p.npz", ["a"])
    refused("cannot write there", "none/p.csv", ["a"])
    with pytest.raises(RankshotError, match=r"unknown ending '.npz'; known are .csv, .parquet"):
        read_predictions("p.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ENDINGS)
def test_memory_is_a_few_batches(tmp_path, ending, monkeypatch):
    """The probabilities have 16 MB, a batch 160 kB."""
    monkeypatch.setattr("rankshot.core.tables.GROUP_CELLS", 2**14)
    batches = 100 if ending == ".parquet" else 10
    targets = [f"t{j}" for j in range(20)]
    proba, labels = np.full((1000, 20), 0.05), ["t0"] * 1000

    def run():
        with open_predictions(tmp_path / f"p{ending}", targets) as writer:
            for _ in range(batches):
                writer.write(None, labels, proba)

    run()
    tracemalloc.start()
    try:
        run()
        assert tracemalloc.get_traced_memory()[1] < 8 * proba.nbytes
    finally:
        tracemalloc.stop()


# -------------------------------------------------------------------- bad files


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,label,probability,P(a)\n", r"p\.csv: the table has no rows"),
        ("label,P(a)\na,1\n", r"no column 'id'; the columns are 'label', 'P\(a\)'"),
        ("id,lable,P(a)\nx,a,1\n", r"no column 'label' \(did you mean 'lable'\?\); the columns"),
        ("id,label,a\nx,a,1\n", r"no columns such as 'P\(cat\)'; the columns are 'id', 'label'"),
        ("id,label,P(a),P(a)\nx,a,1,1\n", r"p\.csv: the header names 'a' more than once"),
        ("id,label,P(a)\nx,a,1\n\n,a,1\n", r"p\.csv:4: 'id' is empty"),
        ("id,label,P(a)\nx,,1\n", r"p\.csv:2: 'label' is empty"),
        ("id,label,P(a)\nx,b,1\n", r"p\.csv:2: no column 'P\(b\)' for this label"),
        ("id,label,P(a)\nx,a,\n", r"p\.csv:2: 'P\(a\)' is empty; probabilities must be numbers"),
        ("id,label,P(a)\n\nx,a,2\n", r"p\.csv:3: 'P\(a\)' is 2.0, which is not a probability"),
    ],
)
def test_bad_csv_is_named_by_file_and_line(tmp_path, content, message):
    (tmp_path / "p.csv").write_text(content)
    with pytest.raises(RankshotError, match=message):
        read_predictions(tmp_path / "p.csv")


def test_parquet_of_others(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    labels = arrow.array(["a", "b", "a"]).dictionary_encode()
    columns = {"P(b)": [0, 1, 0], "label": labels, "more": ["?"] * 3, "id": [1, 2, 3]}
    parquet.write_table(arrow.table(columns | {"P(a)": [1.0, 0, 1]}), tmp_path / "p.parquet")
    read = read_predictions(tmp_path / "p.parquet")
    assert (list(read.ids), list(read.labels)) == (["1", "2", "3"], ["a", "b", "a"])
    assert read.targets == ("b", "a")
    np.testing.assert_array_equal(read.proba, [[0, 1], [1, 0], [0, 1]])


@pytest.mark.parametrize("ending", ENDINGS)
@given(place=st.integers(0, 5000), junk=st.binary(max_size=8), cut=st.integers(0, 100))
@FUZZ
def test_damaged_files(tmp_path, ending, place, junk, cut):
    original = tmp_path / f"whole{ending}"
    if not original.exists():
        write(original, ["x", "y"], ["a", "b"], np.array([[0.75, 0.25], [0, 1]]), ["a", "b"])
    content = original.read_bytes()
    place %= len(content)
    path = tmp_path / f"damaged{ending}"
    path.write_bytes(content[:place] + junk + content[place + len(junk) : len(content) - cut])
    with suppress(RankshotError):
        assert len(read_predictions(path)) > 0


def test_a_rejected_input_has_the_largest_probability(tmp_path):
    with open_predictions(tmp_path / "p.csv", ["a", "b", "c"]) as writer:
        writer.write(["x", "y"], ["rejected", "a"], [[0.2, 0.3, 0.5], [0.4, 0.3, 0.3]])
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines[1].split(",")[:3] == ["x", "rejected", "0.5"]
    assert lines[2].split(",")[:3] == ["y", "a", "0.4"]
    assert read_predictions(tmp_path / "p.csv").labels.tolist() == ["rejected", "a"]
