"""A linear classifier as numbers: its scores, Platt's scaling of them, and its file."""

import zipfile
from dataclasses import replace

import numpy as np
import pytest
from reproduction.classifiers import LinearClassifier

from rankshot.core.errors import RankshotError
from rankshot.zeroshot.platt import PlattScaling
from rankshot.zeroshot.scores import KINDS, n_columns
from reproduction import classifiers as linear_classifier

CLASSES = ("bus", "cat", "dog", "elk")
MARK = "trained on this"

each_kind = pytest.mark.parametrize("kind", KINDS)


def made(rng, kind="multiclass", d=6):
    columns = n_columns(len(CLASSES), kind)
    coef, intercept = rng.normal(size=(columns, d)), rng.normal(size=columns)
    return LinearClassifier(kind, CLASSES, coef.astype(np.float32), intercept.astype(np.float32))


def inputs(rng, n=50, d=6):
    return rng.normal(size=(n, d)).astype(np.float32)


def same(one, other):
    return (
        (one.kind, one.classes) == (other.kind, other.classes)
        and np.array_equal(one.coef, other.coef)
        and np.array_equal(one.intercept, other.intercept)
    )


# ---- What it says


@each_kind
def test_scores_are_sums_of_products(rng, kind):
    model, X = made(rng, kind), inputs(rng)
    found = model.scores(X)
    assert (found.kind, found.items) == (kind, CLASSES)
    assert found.values.dtype == np.float32
    expected = [
        [sum(w * x for w, x in zip(ws, row, strict=True)) + b
         for ws, b in zip(model.coef.tolist(), model.intercept.tolist(), strict=True)]
        for row in X.tolist()
    ]  # fmt: skip
    np.testing.assert_allclose(found.values, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["multiclass", "one-vs-rest"])
def test_the_class_of_the_highest_score_is_predicted(rng, kind):
    model, X = made(rng, kind), inputs(rng)
    best = [max(zip(row, CLASSES, strict=True))[1] for row in model.scores(X).values.tolist()]
    assert model.predict(X).tolist() == best
    assert len(set(best)) > 1


def most_wins(row):
    """The class that wins most pairs; of equals, the one with the larger sum of scores."""
    won, total = dict.fromkeys(CLASSES, 0), dict.fromkeys(CLASSES, 0.0)
    pairs = [(a, b) for i, a in enumerate(CLASSES) for b in CLASSES[i + 1 :]]
    for f, (a, b) in zip(row, pairs, strict=True):
        won[a if f > 0 else b] += 1
        total[a] += f
        total[b] -= f
    return max(CLASSES, key=lambda name: (won[name], total[name]))


def test_the_class_that_wins_most_pairs_is_predicted(rng):
    model, X = made(rng, "one-vs-one"), inputs(rng, n=200)
    expected = [most_wins(row) for row in model.scores(X).values.tolist()]
    assert model.predict(X).tolist() == expected


@each_kind
def test_a_block_at_a_time_changes_nothing(rng, monkeypatch, kind):
    model, X = made(rng, kind), inputs(rng)
    expected = model.predict(X)
    blocks = [slice(0, 20), slice(20, 21), slice(21, 50)]
    monkeypatch.setattr(linear_classifier, "row_blocks", lambda n, cells: blocks)
    np.testing.assert_array_equal(model.predict(X), expected)


@each_kind
def test_no_inputs_no_answers(rng, kind):
    assert made(rng, kind).predict(inputs(rng, n=0)).shape == (0,)


# ---- Platt's scaling


@pytest.mark.parametrize("kind", ["one-vs-rest", "one-vs-one"])
def test_scaled_scores_are_those_of_platt_scaling(rng, kind):
    model, held_out, new = made(rng, kind), inputs(rng, n=80), inputs(rng, n=30)
    y = np.where(rng.random(80) < 0.6, model.predict(held_out), rng.choice(CLASSES, 80))
    scaled = model.with_platt_scaling(held_out, y)
    platt = PlattScaling().fit(model.scores(held_out), y)
    found, expected = scaled.scores(new), platt.transform(model.scores(new))
    assert (found.kind, found.items) == (expected.kind, expected.items)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-4, atol=1e-5)
    assert found.values.dtype == np.float32
    assert not np.allclose(found.values, model.scores(new).values, atol=0.1)


def test_multiclass_scores_are_not_scaled(rng):
    model, X = made(rng), inputs(rng)
    with pytest.raises(RankshotError, match="one-vs-rest and one-vs-one scores"):
        model.with_platt_scaling(X, model.predict(X))


# ---- Its file


@each_kind
def test_what_was_saved_is_loaded(rng, tmp_path, kind):
    model, path, X = made(rng, kind), tmp_path / "model.npz", inputs(rng)
    model.save(path, MARK)
    again = LinearClassifier.load(path, MARK)
    assert same(again, model)
    assert isinstance(again.classes, tuple)
    assert isinstance(again.kind, str)
    assert again.coef.dtype == again.intercept.dtype == np.float32
    np.testing.assert_array_equal(again.scores(X).values, model.scores(X).values)
    assert list(tmp_path.iterdir()) == [path]


def test_odd_names_come_back(rng, tmp_path):
    model = replace(made(rng), classes=("persian+cat", "猫", "a, b\n", "x" * 99))
    model.save(tmp_path / "model.npz", "π \n mark")
    assert same(LinearClassifier.load(tmp_path / "model.npz", "π \n mark"), model)


def test_nothing_in_it_is_a_pickle(rng, tmp_path):
    made(rng).save(tmp_path / "model.npz", MARK)
    with np.load(tmp_path / "model.npz", allow_pickle=False) as arrays:
        assert set(arrays.files) == set(linear_classifier.ARRAYS)
        assert all(arrays[name].dtype.kind in "Uf" for name in arrays.files)


@pytest.mark.parametrize("mark", ["trained on that", "", MARK + " ", MARK.upper()])
def test_another_mark_is_another_classifier(rng, tmp_path, mark):
    made(rng).save(tmp_path / "model.npz", MARK)
    assert LinearClassifier.load(tmp_path / "model.npz", mark) is None


def test_no_file_is_no_classifier(tmp_path):
    assert LinearClassifier.load(tmp_path / "model.npz", MARK) is None
    assert LinearClassifier.load(tmp_path / "nowhere" / "model.npz", MARK) is None


def test_a_later_one_takes_the_place(rng, tmp_path):
    path, old, new = tmp_path / "model.npz", made(rng), made(rng)
    old.save(path, MARK)
    new.save(path, "later")
    assert LinearClassifier.load(path, MARK) is None
    assert same(LinearClassifier.load(path, "later"), new)


def test_a_save_that_fails_leaves_the_old_one(rng, tmp_path, monkeypatch):
    path, model = tmp_path / "model.npz", made(rng)
    model.save(path, MARK)

    def full(stream, **arrays):
        stream.write(b"PK half a file")
        raise OSError("the disk is full")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="full"):
        made(rng).save(path, "later")
    assert same(LinearClassifier.load(path, MARK), model)
    assert list(tmp_path.iterdir()) == [path]


# ---- Files that are damaged


@pytest.fixture
def saved(rng, tmp_path):
    path, model = tmp_path / "model.npz", made(rng, d=3)
    model.save(path, MARK)
    return path, model, path.read_bytes()


def test_half_a_file_is_no_classifier(saved):
    path, _, whole = saved
    for length in range(0, len(whole), 29):
        path.write_bytes(whole[:length])
        assert LinearClassifier.load(path, MARK) is None


def test_a_byte_that_changed_is_noticed_or_does_not_matter(saved, rng):
    """Dates, for example, do not matter; no number may change without notice."""
    path, model, whole = saved
    noticed = 0
    for place in range(0, len(whole), 3):
        path.write_bytes(
            whole[:place] + bytes([whole[place] ^ 1 << int(rng.integers(8))]) + whole[place + 1 :]
        )
        found = LinearClassifier.load(path, MARK)
        assert found is None or same(found, model), place
        noticed += found is None
    assert noticed > len(whole) / 6


def test_a_damaged_head_that_hides_the_damage_is_noticed(rng, tmp_path):
    """NumPy reads as many numbers as the head says, and no check sum before the last of them."""
    path = tmp_path / "model.npz"
    made(rng, d=5000).save(path, MARK)
    whole = path.read_bytes()
    assert whole.count(b"(4, 5000)") == 1
    path.write_bytes(whole.replace(b"(4, 5000)", b"(4, 1000)"))
    with np.load(path, allow_pickle=False) as arrays:
        assert arrays["coef"].shape == (4, 1000)
    assert LinearClassifier.load(path, MARK) is None


def text(path):
    path.write_text("no archive", encoding="utf-8")


def plain_array(path):
    with path.open("wb") as stream:
        np.save(stream, np.arange(3))


def archive_of_text(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "not ours")


def other_arrays(path):
    with path.open("wb") as stream:
        np.savez(stream, coef=np.ones(3), fingerprint=MARK)


def pickled(path):
    anything = np.array([{"a": 1}], dtype=object)
    with path.open("wb") as stream:
        arrays = dict.fromkeys(linear_classifier.ARRAYS, anything)
        np.savez(stream, **arrays | {"fingerprint": np.array(MARK)})


@pytest.mark.parametrize("write", [text, plain_array, archive_of_text, other_arrays, pickled])
def test_a_file_of_somebody_else_is_no_classifier(tmp_path, write):
    path = tmp_path / "model.npz"
    write(path)
    assert LinearClassifier.load(path, MARK) is None


def test_saving_mends_what_is_damaged(saved):
    path, model, whole = saved
    path.write_bytes(whole[:-9])
    model.save(path, MARK)
    assert same(LinearClassifier.load(path, MARK), model)
