"""The data in the package are those that the script makes of the measurement data."""

import importlib.util
import json
import lzma
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest

import rankshot as rs
from rankshot.datasets import class_names, load_cifar, load_thumbnails

pytestmark = pytest.mark.shared_data
SCRIPT = Path(__file__).parents[2] / "scripts" / "build_datasets.py"
DATA = Path(rs.__file__).parent / "datasets" / "data"


@pytest.fixture(scope="module")
def build():
    """The script, as a module."""
    spec = importlib.util.spec_from_file_location("build_datasets", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_arrays(path):
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


@pytest.fixture
def stored():
    return read_arrays(DATA / "cifar_features.npz")


@pytest.fixture
def originals(shared_data):
    return read_arrays(shared_data / "cifar" / "features.npz")


def test_rebuilding_the_features_gives_the_very_same(build, stored, originals):
    anew = build.features(originals)
    assert list(anew) == list(stored)
    for name, array in anew.items():
        np.testing.assert_array_equal(array, stored[name])
    assert tuple(originals["seen_classes"]) == class_names("cifar").seen
    assert tuple(originals["unseen_classes"]) == class_names("cifar").new


def test_thumbnails_are_the_images_of_their_rows(shared_data, stored, originals):
    images, _, rows = load_thumbnails()
    arrays = read_arrays(shared_data / "cifar" / "images.npz")
    place = {row: i for i, row in enumerate(arrays["unseen_test_index"].tolist())}
    of_all = stored["unseen_row"][rows].tolist()
    expected = arrays["unseen_test_image"][[place[row] for row in of_all]]
    np.testing.assert_array_equal(images, expected)
    # The same rows in the file of all features.
    features = originals["unseen_test"][of_all].astype(np.float32)
    assert np.abs(load_cifar().new[rows] - features).max() <= stored["step"] / 2


@pytest.mark.parametrize("dataset", ["cifar", "animals", "intents"])
def test_rebuilding_the_panels_gives_the_very_same(
    build, shared_data, dataset, tmp_path, monkeypatch
):
    monkeypatch.setattr(build, "DATA", tmp_path)
    build.write_panels(dataset, class_names(dataset).seen, shared_data)
    written = sorted(tmp_path.iterdir())
    assert len(written) == 2
    for path in written:
        assert path.read_bytes() == (DATA / path.name).read_bytes()


def test_rebuilding_the_requests_gives_the_very_same(shared_data, build):
    chosen = build.choose_requests(shared_data / "intents", class_names("intents"))
    stored = lzma.decompress((DATA / "intents_requests.jsonl.xz").read_bytes()).decode()
    assert [json.loads(line) for line in stored.splitlines()] == chosen
    assert build.all_names(shared_data)["intents"] == class_names("intents")


def test_rebuilding_the_sounds_gives_the_very_same(shared_data, build, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "DATA", tmp_path)
    build.write_sounds(shared_data / "sounds")
    stored, anew = (read_arrays(folder / "sounds_scores.npz") for folder in (DATA, tmp_path))
    assert list(anew) == list(stored)
    for name, array in anew.items():
        np.testing.assert_array_equal(array, stored[name])
    panels = [(folder / "sounds_panel.jsonl").read_bytes() for folder in (DATA, tmp_path)]
    assert panels[0] == panels[1]


def test_rebuilding_the_dictionaries_gives_the_very_same(shared_data, tmp_path, monkeypatch):
    script = run_path(SCRIPT.with_name("build_look_alikes.py"))
    own = script["DATA"]
    monkeypatch.setitem(script["main"].__globals__, "DATA", tmp_path)
    script["main"](shared_data)
    for path in tmp_path.iterdir():
        stored, anew = read_arrays(own / path.name), read_arrays(path)
        assert list(anew) == list(stored)
        for name, array in anew.items():
            np.testing.assert_array_equal(array, stored[name])
