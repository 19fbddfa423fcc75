"""CIFAR's features, inside the package and from a file: whole, balanced, small, checked."""

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import rankshot as rs
from rankshot.datasets import load_cifar, load_thumbnails
from rankshot.datasets.embedded import class_names

DATA = Path(rs.__file__).parent / "datasets" / "data"
ORIGINS = {
    "seen_train": "seen_train",
    "seen_validation": "seen_test",
    "new": "unseen_test",
}
STORED = {"seen_train": "seen_train", "seen_validation": "seen_validation", "new": "unseen"}
"""The names of the arrays in the embedded file."""


@pytest.fixture(scope="module")
def data():
    return load_cifar()


@pytest.fixture(scope="module")
def stored():
    with np.load(DATA / "cifar_features.npz", allow_pickle=False) as arrays:
        return dict(arrays)


@lru_cache(maxsize=1)
def read_arrays(path):
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


@pytest.fixture
def originals(shared_data):
    return read_arrays(shared_data / "cifar" / "features.npz")


# ---- Features


@pytest.mark.parametrize(("part", "rows"), [("seen_train", 80), ("seen_validation", 30)])
def test_seen_classes_have_the_same_number_of_images(data, part, rows):
    names, counts = np.unique(getattr(data, f"{part}_label"), return_counts=True)
    assert tuple(names) == data.seen_classes
    assert set(counts) == {rows}
    assert getattr(data, part).shape == (100 * rows, 256)


def test_new_classes_have_the_same_number_of_images(data):
    names, counts = np.unique(data.new_label, return_counts=True)
    assert tuple(names) == data.new_classes
    assert set(counts) == {400}
    assert data.new.shape == (4000, 256)


def test_no_new_class_is_seen(data):
    assert len(set(data.seen_classes)) == 100
    assert len(set(data.new_classes)) == 10
    assert not set(data.seen_classes) & set(data.new_classes)


@pytest.mark.parametrize("part", ORIGINS)
def test_arrays_are_read_only(data, part):
    features, labels = getattr(data, part), getattr(data, f"{part}_label")
    assert (features.dtype, labels.dtype.kind) == (np.float32, "U")
    assert features.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        features[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        labels[0] = "cat"


@pytest.mark.parametrize("part", STORED.values())
def test_no_image_is_there_twice(stored, part):
    rows = stored[f"{part}_row"]
    assert len(set(rows.tolist())) == len(rows)
    assert len(rows) == len(stored[f"{part}_label"]) == stored[part].shape[1]


def test_classes_are_in_no_block(data):
    """So that the first rows of a part are a fair sample of it."""
    assert len(set(data.seen_train_label[:300])) > 80
    assert len(set(data.seen_validation_label[:300])) > 80
    assert len(set(data.new_label[:100])) == 10


def test_features_tell_the_classes_apart(data):
    """The nearest class mean is right far more often than one in a hundred: labels fit features."""
    means = np.array(
        [data.seen_train[data.seen_train_label == name].mean(axis=0) for name in data.seen_classes]
    )
    distances = cdist(data.seen_validation, means)
    guesses = np.array(data.seen_classes)[distances.argmin(axis=1)]
    assert np.mean(guesses == data.seen_validation_label) > 0.4


# ---- Pictures


def test_thumbnails_are_pictures_of_the_features(data):
    images, labels, rows = load_thumbnails()
    assert (images.shape, images.dtype) == ((60, 32, 32, 3), np.uint8)
    np.testing.assert_array_equal(data.new_label[rows], labels)
    assert set(np.unique(labels, return_counts=True)[1]) == {6}
    assert len(set(rows.tolist())) == 60
    with pytest.raises(ValueError, match="read-only"):
        images[0] = 0


def test_airplanes_and_ships_are_bluer_than_horses_and_deer():
    """Sky and sea, not grass: the pictures are those of the labels, and red is first."""
    images, labels, _ = load_thumbnails()
    blue = images[..., 2].mean(axis=(1, 2)) - images[..., 0].mean(axis=(1, 2))
    cool, warm = (np.isin(labels, names) for names in (["airplane", "ship"], ["horse", "deer"]))
    assert blue[cool].mean() > blue[warm].mean() + 10


@pytest.mark.shared_data
def test_thumbnails_are_the_images_of_their_rows(shared_data, stored, originals):
    images, _, rows = load_thumbnails()
    with np.load(shared_data / "cifar" / "images.npz", allow_pickle=False) as arrays:
        place = {row: i for i, row in enumerate(arrays["unseen_test_index"].tolist())}
        of_all = stored["unseen_row"][rows].tolist()
        expected = arrays["unseen_test_image"][[place[row] for row in of_all]]
    np.testing.assert_array_equal(images, expected)
    # The same rows in the file of all features.
    features = originals["unseen_test"][of_all].astype(np.float32)
    assert np.abs(load_cifar().new[rows] - features).max() <= stored["step"] / 2


@pytest.mark.shared_data
def test_rebuilding_thumbnails_gives_the_very_same(build, shared_data, stored):
    with np.load(shared_data / "cifar" / "images.npz", allow_pickle=False) as arrays:
        anew = build.thumbnails(arrays, stored)
    with np.load(DATA / "cifar_thumbnails.npz", allow_pickle=False) as arrays:
        assert set(anew) == set(arrays)
        for name, array in anew.items():
            np.testing.assert_array_equal(array, arrays[name])


# ---- Rebuilding


@pytest.mark.shared_data
@pytest.mark.parametrize("part", ORIGINS)
def test_features_are_those_of_the_images(data, stored, originals, part):
    """Within half a step of the originals at the rows kept, and of the same class."""
    rows, origin = stored[f"{STORED[part]}_row"], ORIGINS[part]
    gap = np.abs(getattr(data, part) - originals[origin][rows].astype(np.float32))
    assert gap.max() <= stored["step"] / 2
    classes = originals["unseen_classes" if part == "new" else "seen_classes"]
    names = classes[originals[f"{origin}_label"][rows]]
    np.testing.assert_array_equal(names, getattr(data, f"{part}_label"))


@pytest.mark.shared_data
def test_rebuilding_gives_the_very_same(build, stored, originals):
    anew = build.features(originals)
    assert list(anew) == list(stored)
    for name, array in anew.items():
        np.testing.assert_array_equal(array, stored[name])
    assert tuple(originals["seen_classes"]) == class_names("cifar").seen
    assert tuple(originals["unseen_classes"]) == class_names("cifar").new


def test_a_feature_beyond_the_steps_is_refused(build):
    assert build.quantise(np.array([[31.75, -31.75, 0.1]])).tolist() == [[127, -127, 0]]
    with pytest.raises(ValueError, match="more than 127 steps"):
        build.quantise(np.array([[32.0]]))


# ---- A file of features

PARTS = {"seen_train": 200, "seen_test": 100, "unseen_test": 30}


@pytest.fixture
def arrays(rng):
    """What a small file has, its names in another order than ours."""
    names = {
        "seen": rng.permutation(class_names("cifar").seen),
        "unseen": rng.permutation(class_names("cifar").new),
    }
    found = {f"{kind}_classes": some for kind, some in names.items()}
    for part, n in PARTS.items():
        kind = part.split("_")[0]
        found[part] = rng.normal(size=(n, 7)).astype(np.float16)
        # Every class has images of every part.
        found[f"{part}_label"] = rng.permutation(np.arange(n) % len(names[kind])).astype(np.int16)
    return found


def test_a_file_is_read(arrays, tmp_path):
    path = tmp_path / "features.npz"
    np.savez(path, **arrays)
    data = load_cifar(str(path))
    assert repr(data) == (
        "cifar: 200 + 100 images of 100 seen classes, 30 of 10 new ones, 7 features"
    )
    assert (data.name, data.attributes) == ("cifar", None)
    assert data.seen_classes == class_names("cifar").seen
    assert data.new_classes == class_names("cifar").new
    ours = {"seen_train": "seen_train", "seen_test": "seen_validation", "unseen_test": "new"}
    for part, field in ours.items():
        features, labels = getattr(data, field), getattr(data, f"{field}_label")
        names = arrays[f"{part.split('_')[0]}_classes"]
        np.testing.assert_array_equal(features, arrays[part].astype(np.float32))
        assert labels.tolist() == [names[i] for i in arrays[f"{part}_label"]]
        assert features.dtype == np.float32
        assert not features.flags.writeable
        assert not labels.flags.writeable


@pytest.mark.shared_data
def test_all_images(shared_data, originals):
    data = load_cifar(shared_data / "cifar" / "features.npz")
    assert repr(data) == (
        "cifar: 50000 + 10000 images of 100 seen classes, 10000 of 10 new ones, 256 features"
    )
    np.testing.assert_array_equal(data.seen_validation[-3:], originals["seen_test"][-3:])
    assert set(np.unique(data.new_label, return_counts=True)[1]) == {1000}


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("seen_test", None, "no array 'seen_test'; a file of features has 'seen_train'"),
        ("seen_train", lambda a: a[:-1], "'seen_train_label' is int16 of shape .*199 images"),
        ("seen_train", lambda a: a[0], r"'seen_train' is float16 of shape \(7,\), not a table"),
        ("seen_train", lambda a: a.astype(str), "'seen_train' is <U.*not a table of numbers"),
        ("seen_train", lambda a: a[:0], "not a table of numbers"),
        ("unseen_test", lambda a: a[:, 1:], "'unseen_test' has 6 features, but 'seen_train' has 7"),
        ("unseen_test", lambda a: put(a, (3, 2), np.inf), "has inf in row 3, column 2"),
        ("seen_test", lambda a: put(a, (9, 6), np.nan), "has nan in row 9, column 6"),
        ("seen_test_label", lambda a: put(a, 8, 100), "has class 100 in row 8, but there are 100"),
        ("seen_test_label", lambda a: put(a, 8, -1), "has class -1 in row 8"),
        ("seen_test_label", lambda a: a.astype(float), "'seen_test_label' is float64"),
        ("unseen_classes", lambda a: put(a, 4, "frgo"), "unknown class 'frgo'"),
        ("unseen_classes", lambda a: put(a, 4, a[5]), "more than once"),
        ("unseen_classes", lambda a: a[a != "frog"], "'unseen_classes' lacks 'frog'"),
        ("unseen_classes", lambda a: np.arange(10), "'unseen_classes' is int64"),
    ],
)
def test_a_file_with_something_wrong(arrays, tmp_path, name, change, message):
    if change is None:
        del arrays[name]
    else:
        arrays[name] = change(arrays[name])
    path = tmp_path / "odd.npz"
    np.savez(path, **arrays)
    with pytest.raises(rs.RankshotError, match=message) as raised:
        load_cifar(path)
    assert str(raised.value).startswith(str(path))


@pytest.mark.parametrize(
    ("part", "what"),
    [("seen_train", "to train on"), ("seen_test", "to validate on"), ("unseen_test", "to test on")],
)
def test_a_file_without_images_of_a_class(arrays, tmp_path, part, what):
    labels = arrays[f"{part}_label"]
    name = arrays[f"{part.split('_')[0]}_classes"][3]
    labels[labels == 3] = 4
    np.savez(tmp_path / "odd.npz", **arrays)
    with pytest.raises(rs.RankshotError, match=f"there is no image of '{name}' {what}"):
        load_cifar(tmp_path / "odd.npz")


def put(array, place, value):
    array[place] = value
    return array


def test_a_misspelt_class_is_guessed(arrays, tmp_path):
    arrays["seen_classes"][arrays["seen_classes"] == "leopard"] = "lepard"
    np.savez(tmp_path / "odd.npz", **arrays)
    with pytest.raises(rs.RankshotError, match=r"'lepard' \(did you mean 'leopard'\?\)"):
        load_cifar(tmp_path / "odd.npz")


def half(path, arrays):
    np.savez(path, **arrays)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def damaged(path, arrays):
    np.savez_compressed(path, **arrays)
    content = bytearray(path.read_bytes())
    content[200:400] = bytes(200)
    path.write_bytes(content)


WRITERS = {
    "text": lambda path, arrays: path.write_text("cat,dog"),
    "empty": lambda path, arrays: path.write_bytes(b""),
    "half": half,
    "damaged": damaged,
    "pickle": lambda path, arrays: np.savez(path, **arrays | {"seen_train": np.array([{}])}),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_file_that_is_none(arrays, tmp_path, write):
    path = tmp_path / "odd.npz"
    write(path, arrays)
    with pytest.raises(rs.RankshotError) as raised:
        load_cifar(path)
    # And no word of pickles: to allow them would be bad advice.
    assert str(raised.value) == f"{path}: not a complete .npz file of plain arrays"


def test_a_single_array_is_no_file_of_features(tmp_path):
    np.save(tmp_path / "one.npy", np.ones(3))
    with pytest.raises(rs.RankshotError, match=r"one\.npy: no array 'seen_train'"):
        load_cifar(tmp_path / "one.npy")


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_cifar(tmp_path / "none.npz")
