"""CIFAR's features, inside the package and from a file: whole, balanced, small, checked."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import rankshot as rs
from rankshot.datasets import load_cifar, load_thumbnails
from rankshot.datasets.embedded import class_names

DATA = Path(rs.__file__).parent / "datasets" / "data"


@cache
def read_arrays(path):
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


@pytest.fixture
def stored():
    return read_arrays(DATA / "cifar_features.npz")


@pytest.fixture
def originals(shared_data):
    return read_arrays(shared_data / "cifar" / "features.npz")


@pytest.mark.parametrize("part", ["seen_train", "seen_validation", "unseen"])
def test_no_image_is_there_twice(stored, part):
    rows = stored[f"{part}_row"]
    assert len(set(rows.tolist())) == len(rows)
    assert len(rows) == len(stored[f"{part}_label"]) == stored[part].shape[1]


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
def test_rebuilding_gives_the_very_same(build, stored, originals):
    anew = build.features(originals)
    assert list(anew) == list(stored)
    for name, array in anew.items():
        np.testing.assert_array_equal(array, stored[name])
    assert tuple(originals["seen_classes"]) == class_names("cifar").seen
    assert tuple(originals["unseen_classes"]) == class_names("cifar").new
