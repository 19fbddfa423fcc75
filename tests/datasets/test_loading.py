"""Where features come from: a file, the original data set, or a download if it is wanted."""

from types import SimpleNamespace

import numpy as np
import pytest

from rankshot.core.errors import RankshotError
from rankshot.datasets import loading
from rankshot.datasets.embedded import class_names
from rankshot.datasets.loading import MissingFeaturesError, load_images


@pytest.fixture
def cifar(rng):
    """The arrays of a small file."""
    found = {
        "seen_classes": np.array(class_names("cifar").seen),
        "unseen_classes": np.array(class_names("cifar").new),
    }
    parts = {"seen_train": (120, 100), "seen_test": (110, 100), "unseen_test": (17, 10)}
    for part, (n, classes) in parts.items():
        found[part] = rng.normal(size=(n, 3)).astype(np.float16)
        found[f"{part}_label"] = rng.permutation(np.arange(n) % classes).astype(np.int16)
    return found


@pytest.fixture
def animals(rng):
    classes = np.array([name for some in class_names("animals") for name in some])
    return {
        "features": rng.normal(size=(500, 3)).astype(np.float16),
        "label": np.repeat(np.arange(50), 10).astype(np.int16),
        "classes": classes,
        "unseen": np.isin(classes, class_names("animals").new),
        "attributes": rng.uniform(0, 100, size=(50, 4)).astype(np.float32),
    }


def save(path, arrays):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)


@pytest.fixture
def said():
    return []


@pytest.fixture
def look(tmp_path, said):
    """Look into the test's directory."""

    def look(name, download=False):
        return load_images(name, tmp_path, lambda *what: said.append(what), download=download)

    return look


@pytest.fixture
def builders(monkeypatch):
    """Builders that must not be called, for a test to replace."""

    def refuse(*_):
        pytest.fail("nothing was to be built")

    monkeypatch.setattr(loading, "build_animals_features", refuse)
    monkeypatch.setattr(loading, "build_cifar_features", refuse)
    return SimpleNamespace(
        animals=lambda build: monkeypatch.setattr(loading, "build_animals_features", build),
        cifar=lambda build: monkeypatch.setattr(loading, "build_cifar_features", build),
    )


# ---- Features that are there


@pytest.mark.usefixtures("builders")
@pytest.mark.parametrize("download", [False, True])
def test_cifar_that_is_there_is_read(look, cifar, tmp_path, download):
    """Even if it might be downloaded."""
    save(tmp_path / "cifar" / "features.npz", cifar)
    data = look("cifar", download)
    assert repr(data).startswith("cifar: 120 + 110 images of 100 seen classes, 17 of 10 new")
    np.testing.assert_array_equal(data.new, cifar["unseen_test"].astype(np.float32))


@pytest.mark.usefixtures("builders")
@pytest.mark.parametrize("own", [False, True])
def test_animals_that_are_there_are_read(look, animals, tmp_path, own):
    """And not made once more, if the data set's own files are there, too."""
    save(tmp_path / "animals" / "features.npz", animals)
    if own:
        (tmp_path / "Features").mkdir()
    data = look("animals")
    assert (data.name, len(data.new)) == ("animals", 100)


@pytest.mark.usefixtures("builders")
def test_each_data_set_has_a_file_of_its_own(look, cifar, animals, tmp_path):
    save(tmp_path / "cifar" / "features.npz", cifar)
    with pytest.raises(RankshotError, match=r"animals/features\.npz: there is no such file"):
        look("animals")
    save(tmp_path / "animals" / "features.npz", animals)
    assert (look("cifar").name, look("animals").name) == ("cifar", "animals")


@pytest.mark.usefixtures("builders")
@pytest.mark.parametrize("place", ["features.npz", "deep/features.npz", "deep/other.npz"])
@pytest.mark.parametrize("name", ["cifar", "animals"])
def test_the_directory_of_the_file_or_the_file_itself_will_do(request, tmp_path, name, place):
    path = tmp_path / place
    save(path, request.getfixturevalue(name))
    given = [path] if path.name == "other.npz" else [path, path.parent]
    for one in given:
        assert load_images(name, one, pytest.fail, download=True).name == name


@pytest.mark.usefixtures("builders")
def test_a_directory_named_after_the_data_set_comes_first(look, cifar, animals, tmp_path):
    save(tmp_path / "features.npz", animals)
    save(tmp_path / "cifar" / "features.npz", cifar)
    assert (look("cifar").name, look("animals").name) == ("cifar", "animals")


@pytest.mark.usefixtures("builders")
def test_features_of_another_data_set_are_refused_by_their_arrays(cifar, tmp_path):
    save(tmp_path / "features.npz", cifar)
    with pytest.raises(RankshotError, match=r"features\.npz: no array 'features'"):
        load_images("animals", tmp_path, pytest.fail, download=False)


# ---- To be made first


def test_animals_are_made_from_their_own_directory_once(look, builders, animals, tmp_path, said):
    (tmp_path / "Features").mkdir()
    built = []

    def build(directory, destination, announce):
        built.append((directory, destination))
        announce(1, 2, "histograms")
        save(destination, animals)

    builders.animals(build)
    assert len(look("animals").new) == 100
    assert len(look("animals").new) == 100
    assert built == [(tmp_path, tmp_path / "features.npz")]
    assert said == [(1, 2, "histograms")]


def test_what_is_wrong_in_their_own_directory_is_said(look, tmp_path):
    """By the builder itself, which names the file that is missing."""
    (tmp_path / "Features").mkdir()
    with pytest.raises(RankshotError, match=r"classes\.txt"):
        look("animals")
    assert [path.name for path in tmp_path.iterdir()] == ["Features"]


def test_cifar_is_downloaded_if_asked(look, builders, cifar, tmp_path, said):
    built = []

    def build(directory, announce):
        built.append(directory)
        announce(3, 4, "images")
        path = directory / "cifar" / "features.npz"
        save(path, cifar)
        return path

    builders.cifar(build)
    with pytest.raises(RankshotError, match="no such file"):
        look("cifar")
    assert (built, said) == ([], [])
    assert list(tmp_path.iterdir()) == []
    assert len(look("cifar", download=True).new) == 17
    assert (built, said) == ([tmp_path], [(3, 4, "images")])


# ---- Nothing there


@pytest.mark.usefixtures("builders")
@pytest.mark.parametrize("name", ["cifar", "animals"])
def test_nothing_there(look, tmp_path, name):
    """What to do about it, the command says: its options are no concern of the library."""
    with pytest.raises(MissingFeaturesError) as raised:
        look(name)
    assert str(raised.value) == f"{tmp_path / name / 'features.npz'}: there is no such file"
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_data_set_is_refused(look):
    with pytest.raises(RankshotError, match="no data set 'cifra'"):
        look("cifra")
    with pytest.raises(RankshotError, match="no data set 'intents'; there are 'cifar', 'animals'"):
        look("intents")


@pytest.mark.usefixtures("builders")
def test_animals_own_directory_is_nothing_for_cifar(look, tmp_path):
    (tmp_path / "Features").mkdir()
    with pytest.raises(RankshotError, match=r"cifar/features\.npz: there is no such file"):
        look("cifar")


@pytest.mark.usefixtures("builders")
def test_animals_are_downloaded_by_nobody(look):
    with pytest.raises(RankshotError, match=r"animals/features\.npz: there is no such file"):
        look("animals", download=True)
