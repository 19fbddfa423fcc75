"""Predictions as CSV and Parquet, written whole or not at all; and true labels, read from both."""

from decimal import Context

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from peak_memory import peak_of
from rankshot.core.columns import open_table
from rankshot.core.errors import OutputError
from rankshot.zeroshot.tables import (
    PROBABILITY_RULE,
    open_predictions,
    read_predictions,
    read_truth,
)
from refusals import ANY, refuses

ENDINGS = [".csv", ".parquet"]
FUZZ = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
TARGETS = ("cat", "bus, red", "P(x)")
P_AB = ["P(a)", "P(b)"]


@pytest.fixture(autouse=True)
def _needs_pyarrow(request):
    if "parquet" in request.node.name:
        pytest.importorskip("pyarrow")


def write(path, ids, labels, proba, targets, batch_rows=None):
    n = batch_rows or len(labels)
    with open_predictions(path, targets) as writer:
        for i in range(0, len(labels), n):
            some = slice(i, i + n)
            writer.write(None if ids is None else ids[some], labels[some], proba[some])


def as_written(proba, ending):
    """Return the numbers that a file has: CSV rounds to seven significant digits."""
    if ending != ".csv":
        return proba
    seven = Context(prec=7)
    rows = np.asarray(proba, float).tolist()
    return np.array([[float(seven.create_decimal(x)) for x in row] for row in rows])


# -------------------------------------------------------------------- what is written


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_columns(tmp_path, ending):
    path = tmp_path / f"p{ending}"
    proba = np.array([[0.2, 0.7, 0.1], [0.1, 0.8, 0.1]], np.float32)
    write(path, None, [TARGETS[0], "rejected"], proba, TARGETS, batch_rows=1)
    if ending == ".csv":
        assert path.read_text().splitlines() == [
            'id,label,probability,P(cat),"P(bus, red)",P(P(x))',
            "0,cat,0.2,0.2,0.7,0.1",
            "1,rejected,0.8,0.1,0.8,0.1",
        ]
    else:
        table = pytest.importorskip("pyarrow.parquet").read_table(path)
        columns = ["id", "label", "probability", "P(cat)", "P(bus, red)", "P(P(x))"]
        assert table.column_names == columns
        assert [str(kind) for kind in table.schema.types] == ["string"] * 2 + ["float"] * 4
        assert table["id"].to_pylist() == ["0", "1"]
        np.testing.assert_array_equal(table["probability"], proba[[0, 1], [0, 1]])
    read = read_predictions(path)
    assert (read.targets, read.labels.tolist()) == (TARGETS, ["cat", "rejected"])


@pytest.mark.parametrize("ending", ENDINGS)
def test_only_the_most_probable_classes(tmp_path, ending, rng):
    path, proba = tmp_path / f"p{ending}", rng.dirichlet(np.ones(3), size=9)
    order = np.array(TARGETS)[np.argsort(-proba, axis=1)]
    labels = ["rejected", *order[1:, 0]]
    with open_predictions(path, TARGETS, top=2) as writer:
        writer.write(None, labels, proba)
    table = open_table(path)
    assert table.columns == ["id", "label", "label_2", "probability", "probability_2"]
    assert table.read_texts("label", "label_2") == [labels, order[:, 1].tolist()]
    np.testing.assert_array_equal(
        table.read_numbers(["probability", "probability_2"], PROBABILITY_RULE),
        as_written(-np.sort(-proba, axis=1)[:, :2], ending),
    )
    with refuses("columns", where=str(path)):
        read_predictions(path)
    with open_predictions(path, TARGETS, top=99) as writer:
        writer.write(None, labels, proba)
    assert open_table(path).columns[-1] == "probability_3"


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
def test_what_is_written_is_read_back_to_the_last_digit(tmp_path, ending, table):
    ids, labels, proba, targets = table
    write(tmp_path / f"p{ending}", ids, labels, proba, targets)
    read = read_predictions(tmp_path / f"p{ending}")
    assert list(read.ids) == ids
    assert list(read.labels) == labels
    assert read.targets == tuple(targets)
    np.testing.assert_array_equal(read.proba, as_written(proba, ending))


# -------------------------------------------------------------------- whole or not at all


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
    ("ids", "labels", "proba", "parameter", "value"),
    [
        (["x", "y"], ["a"], [[0.5, 0.5]], "proba", (1, 2)),
        (["x"], ["a", "b"], [[0.5, 0.5]], "proba", (1, 2)),
        (None, ["bb"], [[0.5, 0.5]], "label", "bb"),
        (None, ["a"], [[0.5, 1.5]], "'b'", 1.5),
    ],
)
def test_bad_predictions_are_not_written(tmp_path, ids, labels, proba, parameter, value):
    where = "predictions: row 1" if ids is None else ""
    path = tmp_path / "p.parquet"
    with refuses(parameter, value, where), open_predictions(path, ["a", "b"]) as writer:
        writer.write(["first"], ["a"], [[1, 0]])
        writer.write(ids, labels, proba)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_without_rows_has_its_columns(tmp_path, ending):
    with open_predictions(tmp_path / f"p{ending}", ["a", "b"], {"key": "x"}):
        pass
    assert open_table(tmp_path / f"p{ending}").columns == ["id", "label", "probability", *P_AB]


@pytest.mark.parametrize("ending", ENDINGS)
def test_memory_is_a_few_batches(tmp_path, ending, monkeypatch):
    """Four batches more, of 48 kB each, need no more memory than two."""
    monkeypatch.setattr("rankshot.core.tables.GROUP_CELLS", 2**12)
    targets = [f"t{j}" for j in range(20)]
    proba, labels = np.full((300, 20), 0.05), ["t0"] * 300

    def run(batches):
        with open_predictions(tmp_path / f"p{ending}", targets) as writer:
            for _ in range(batches):
                writer.write(None, labels, proba)

    run(1)
    few, many = (peak_of(lambda n=n: run(n))[0] for n in (2, 6))
    assert many < few + proba.nbytes


# -------------------------------------------------------------------- true labels


def test_true_labels_in_any_order(tmp_path, rng):
    """The label of an id is its square: the truth can be told from the id alone."""
    path, rows = tmp_path / "t.csv", (f"?,{i**2},{i}\n" for i in rng.permutation(50).tolist())
    path.write_text("more,label,id\n" + "".join(rows))
    wanted = [str(i) for i in rng.choice(50, size=20)]
    assert read_truth(str(path), wanted).tolist() == [str(int(i) ** 2) for i in wanted]


def test_true_labels_without_ids_and_inputs_without_a_label(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("\nlabel\nb\n\na\n\n\n")
    assert read_truth(path, ["x", "y"]).tolist() == ["b", "a"]
    path.write_text("id,label\nx,a\ny, \n")
    assert read_truth(path, ["z", "y", "x"], partial=True).tolist() == ["", "", "a"]
    with refuses("label", "z", str(path)):
        read_truth(path, ["z", "y"], partial=True)


def read_two(path):
    return read_truth(path, ["x", "y"])


@pytest.mark.parametrize(
    ("read", "content", "parameter", "value", "line"),
    [
        (read_predictions, "id,label,probability,P(a)\n", "table", ANY, None),
        (read_predictions, "id,label,a\nx,a,1\n", "columns", ANY, None),
        (read_predictions, "id,label,P(a)\nx,a,1\n\n,a,1\n", "'id'", ANY, 4),
        (read_predictions, "id,label,P(a)\nx,b,1\n", "label", "b", 2),
        (read_predictions, "id,label,P(a)\n\nx,a,2\n", "'P(a)'", 2, 3),
        (read_two, "id,label\n", "table", ANY, None),
        (read_two, "id,label\nz,a\nx,b\n", "label", "y", None),
        (read_two, "id,label\nx,a\n\ny,\n", "label", ANY, 4),
        (read_two, "label\na\nb\nc\n", "labels", 3, None),
        (read_two, "id,label\nx,a\ny,b\nx,a\n", "id", "x", 4),
        (read_two, "id,label,id\nx,a,x\n", "column", "id", None),
    ],
)
def test_bad_files_are_named_by_file_and_line(tmp_path, read, content, parameter, value, line):
    path = tmp_path / "p.csv"
    path.write_text(content)
    with refuses(parameter, value, f"{path}:{line}" if line else str(path)):
        read(path)
