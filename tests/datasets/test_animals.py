"""Animals with Attributes from a file of features: the split, the attributes, what is refused."""

from collections import Counter

import numpy as np
import pytest

import rankshot as rs
from rankshot.datasets.animals import load_animals
from rankshot.datasets.embedded import class_names

COUNTS = np.array([20, 35, 50] * 16 + [40, 25])
"""Images of each of the 50 classes."""


@pytest.fixture
def arrays(rng):
    """What a small file has; its classes are in no order, as in the data set."""
    classes = rng.permutation([name for some in class_names("animals") for name in some])
    attributes = rng.uniform(0, 100, size=(50, 6)).astype(np.float32)
    attributes[3, :2] = -1
    n = COUNTS.sum()
    return {
        # The first feature of an image is its row, to find it again.
        "features": np.column_stack([np.arange(n), rng.normal(size=(n, 4))]).astype(np.float16),
        "label": np.repeat(np.arange(50), COUNTS).astype(np.int16),
        "classes": classes,
        "unseen": np.isin(classes, class_names("animals").new),
        "attributes": attributes,
        "attribute_names": np.array(list("abcdef")),
    }


@pytest.fixture
def load(arrays, tmp_path):
    def load():
        np.savez(tmp_path / "features.npz", **arrays)
        return load_animals(tmp_path / "features.npz")

    return load


PARTS = ("seen_train", "seen_validation", "new")


def test_every_image_is_in_one_part(arrays, load):
    data = load()
    rows = np.concatenate([getattr(data, part)[:, 0] for part in PARTS]).astype(int)
    labels = np.concatenate([getattr(data, f"{part}_label") for part in PARTS])
    assert sorted(rows) == list(range(COUNTS.sum()))
    np.testing.assert_array_equal(labels, arrays["classes"][arrays["label"][rows]])
    for part in PARTS:
        features = getattr(data, part)
        original = arrays["features"][features[:, 0].astype(int)]
        np.testing.assert_array_equal(features, original.astype(np.float32))


def test_seen_and_new_classes_are_those_of_the_data_set(load):
    data = load()
    assert (data.seen_classes, data.new_classes) == class_names("animals")
    assert set(data.seen_train_label) == set(data.seen_validation_label) == set(data.seen_classes)
    assert set(data.new_label) == set(data.new_classes)
    assert repr(data).startswith("animals: ")


def test_a_tenth_of_every_class_is_for_validation(load):
    data = load()
    train, validation = Counter(data.seen_train_label), Counter(data.seen_validation_label)
    n_seen = len(data.seen_train) + len(data.seen_validation)
    assert len(data.seen_validation) == round(n_seen * 2448 / 24295)
    for name in data.seen_classes:
        share = (train[name] + validation[name]) * 2448 / 24295
        assert abs(validation[name] - share) <= 1


def test_the_split_is_always_the_same(load):
    first, second = load(), load()
    np.testing.assert_array_equal(first.seen_validation, second.seen_validation)
    np.testing.assert_array_equal(first.seen_train, second.seen_train)


def test_arrays_are_read_only(load):
    data = load()
    for part in PARTS:
        features, labels = getattr(data, part), getattr(data, f"{part}_label")
        assert (features.dtype, labels.dtype.kind) == (np.float32, "U")
        assert not features.flags.writeable
        assert not labels.flags.writeable


def test_missing_attributes_are_nan(arrays, load):
    attributes = load().attributes
    assert (len(attributes), attributes.dimension, attributes.source) == (50, 6, "attributes")
    for name, values, original in zip(
        arrays["classes"], attributes.values, arrays["attributes"], strict=True
    ):
        np.testing.assert_array_equal(attributes.select([name]).values[0], values)
        np.testing.assert_array_equal(values, np.where(original == -1, np.nan, original))
    assert np.isnan(attributes.values).sum() == 2


def change_unseen(arrays):
    arrays["unseen"][arrays["classes"] == "seal"] = False


def one_image_a_class(arrays):
    rows = np.unique(arrays["label"], return_index=True)[1]
    arrays["features"], arrays["label"] = arrays["features"][rows], arrays["label"][rows]


def put(name, place, value):
    def change(arrays):
        arrays[name][place] = value

    return change


def swap(name, new):
    def change(arrays):
        arrays[name] = new(arrays[name])

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays.pop("unseen"), "no array 'unseen'"),
        (change_unseen, "'unseen' is False for 'seal', which is a new class in the data set"),
        (swap("unseen", lambda a: a.astype(int)), "'unseen' is int64 .* not True or False"),
        (swap("unseen", lambda a: a[1:]), r"'unseen' is bool of shape \(49,\)"),
        (put("classes", 7, "unicorn"), "'classes' has the unknown class 'unicorn'"),
        (put("label", 2, 50), "'label' has class 50 in row 2"),
        (swap("label", lambda a: a[1:]), "'label' is int16 of shape"),
        (put("features", (5, 1), np.nan), "'features' has nan in row 5, column 1"),
        (put("attributes", (5, 1), np.nan), "'attributes' has nan in row 5, column 1"),
        (
            put("attributes", (5, 1), -2),
            "'attributes' has -2 for .* in column 1; the smallest value is 0",
        ),
        (swap("attributes", lambda a: a[1:]), "'attributes' has 49 rows"),
        (one_image_a_class, "'label' has too few images of seen classes"),
    ],
)
def test_a_file_with_something_wrong(arrays, load, tmp_path, change, message):
    change(arrays)
    with pytest.raises(rs.RankshotError, match=message) as raised:
        load()
    assert str(raised.value).startswith(str(tmp_path / "features.npz"))


@pytest.mark.shared_data
def test_all_images(shared_data):
    data = load_animals(shared_data / "animals" / "features.npz")
    assert repr(data) == (
        "animals: 21847 + 2448 images of 40 seen classes, 6180 of 10 new ones, 512 features"
    )
    train, validation = Counter(data.seen_train_label), Counter(data.seen_validation_label)
    for name in data.seen_classes:
        assert validation[name] / (train[name] + validation[name]) == pytest.approx(0.1, abs=0.005)
    assert (len(data.attributes), data.attributes.dimension) == (50, 85)
    missing = [
        data.attributes.names[row] for row, _ in np.argwhere(np.isnan(data.attributes.values))
    ]
    assert missing == ["antelope"] * 4
    assert np.nanmax(data.attributes.values) == 100
