"""From the directory of Animals with Attributes to features, held to scikit-learn's PCA."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

import rankshot as rs
from rankshot.datasets import animals
from rankshot.datasets.animals import (
    KINDS,
    build_animals_features,
    load_animals,
)
from rankshot.datasets.embedded import class_names
from rankshot.datasets.features import fit_pca

WIDTHS = {"lss": 4, "phog": 5, "rgsift": 3, "sift": 6, "surf": 2}
CLASSES = ["antelope", "grizzly+bear", "seal", "pig"]
TEST = ["seal"]
COUNTS = {"antelope": 6, "grizzly+bear": 9, "seal": 5, "pig": 12}


def quiet(_done, _todo, _what):
    pass


def write_directory(directory, rng, classes, test, counts):
    """Lay out a small data set as the archives unpack, and return its histograms."""
    numbered = "".join(f"{i:5}\t{name}\n" for i, name in enumerate(classes, 1))
    (directory / "classes.txt").write_text(numbered)
    (directory / "predicates.txt").write_text("    1\tblack\n    2\twhite\n    3\tbig\n")
    train = [name for name in reversed(classes) if name not in test]
    (directory / "trainclasses.txt").write_text("\n".join(train) + "\n")
    (directory / "testclasses.txt").write_text("\n".join(test) + "\n")
    attributes = rng.uniform(0, 100, size=(len(classes), 3)).round(2)
    attributes[0, 1] = -1
    rows = ["  ".join(f"{value:7.2f}" for value in row) for row in attributes]
    (directory / "predicate-matrix-continuous.txt").write_text("\n".join(rows) + "\n")
    histograms = {}
    for kind, width in WIDTHS.items():
        for name in classes:
            folder = directory / "Features" / f"{kind}-hist" / name
            folder.mkdir(parents=True)
            counted = rng.integers(0, 30, size=(counts[name], width)).astype(float)
            if kind == "surf" and name == "pig":
                counted[2] = 0
            histograms[kind, name] = counted
            for i, row in enumerate(counted, 1):
                text = " ".join(f"{value:g}" for value in row)
                (folder / f"{name}_{i:04}.txt").write_text(text + " \n")
    return attributes, histograms


@pytest.fixture
def source(tmp_path, rng):
    directory = tmp_path / "Animals_with_Attributes"
    directory.mkdir()
    return directory, *write_directory(directory, rng, CLASSES, TEST, COUNTS)


def built(directory, destination):
    build_animals_features(directory, destination, quiet)
    with np.load(destination, allow_pickle=False) as arrays:
        return dict(arrays)


def joined(histograms, classes=CLASSES):
    """Return all images, each histogram divided by its sum and square-rooted, one by one."""
    rows = []
    for name in classes:
        for i in range(len(histograms["lss", name])):
            row = []
            for kind in KINDS:
                counts = histograms[kind, name][i]
                row += [(count / counts.sum()) ** 0.5 if counts.sum() else 0.0 for count in counts]
            rows.append(row)
    return np.array(rows)


def expected_features(histograms, n_components):
    rows = joined(histograms)
    train = np.repeat([name not in TEST for name in CLASSES], list(COUNTS.values()))
    pca = PCA(n_components, svd_solver="full").fit(rows[train])
    found = pca.transform(rows)
    return found / np.sqrt((found[train] ** 2).mean())


def assert_equal_up_to_sign(found, expected, atol):
    assert found.shape == expected.shape
    signs = np.sign((found * expected).sum(axis=0))
    assert set(signs) <= {-1, 1}
    np.testing.assert_allclose(found, signs * expected, rtol=0, atol=atol)


def test_features_are_principal_components_of_the_training_classes(source, tmp_path, monkeypatch):
    directory, _, histograms = source
    # Small blocks, so that there are several; float32 instead of float16 is not to be had.
    monkeypatch.setattr(animals, "BLOCK_ROWS", 7)
    monkeypatch.setattr(animals, "N_COMPONENTS", 6)
    arrays = built(directory, tmp_path / "features.npz")
    assert arrays["features"].dtype == np.float16
    assert_equal_up_to_sign(arrays["features"], expected_features(histograms, 6), atol=2e-3)


def test_the_reduction_in_full_precision(rng, monkeypatch):
    monkeypatch.setattr(animals, "BLOCK_ROWS", 11)
    table = (rng.normal(size=(60, 9)) * np.arange(1, 10) + 3).astype(np.float32)
    train = rng.random(60) < 0.7
    pca = PCA(svd_solver="full").fit(table[train].astype(float))
    expected = pca.transform(table.astype(float))
    expected /= np.sqrt((expected[train] ** 2).mean())
    found = animals._reduce(table, train)
    assert_equal_up_to_sign(found, expected, atol=1e-5)
    assert np.mean(found[train] ** 2) == pytest.approx(1, abs=1e-6)


def test_there_are_as_many_components_as_the_images_tell(source, tmp_path):
    """Of five shares one follows from the others, but not of their roots: all 20 numbers vary."""
    directory, _, histograms = source
    arrays = built(directory, tmp_path / "features.npz")
    assert arrays["features"].shape == (32, 20)
    assert_equal_up_to_sign(arrays["features"], expected_features(histograms, 20), atol=5e-3)


def test_few_images_tell_few_directions(rng):
    table = rng.normal(size=(9, 30)).astype(np.float32)
    train = np.arange(9) < 5
    assert animals._reduce(table, train).shape == (9, 4)
    table[1] = table[0]
    assert animals._reduce(table, train).shape == (9, 3)


def test_the_sign_does_not_depend_on_the_library(rng):
    """A direction's largest number is positive."""
    table = rng.normal(size=(50, 8)).astype(np.float32)
    directions = fit_pca(lambda: iter([table[:20], table[20:]]), 8).components
    largest = np.abs(directions).argmax(axis=1)
    assert (directions[np.arange(8), largest] > 0).all()
    np.testing.assert_allclose(directions @ directions.T, np.eye(8), atol=1e-12)


def test_the_other_arrays(source, tmp_path):
    directory, attributes, _ = source
    arrays = built(directory, tmp_path / "features.npz")
    assert set(arrays) == {
        *("features", "label", "classes", "unseen", "attributes", "attribute_names")
    }
    assert arrays["classes"].tolist() == CLASSES
    assert arrays["unseen"].tolist() == [False, False, True, False]
    assert arrays["attribute_names"].tolist() == ["black", "white", "big"]
    np.testing.assert_allclose(arrays["attributes"], attributes, rtol=1e-6)
    assert arrays["label"].tolist() == [0] * 6 + [1] * 9 + [2] * 5 + [3] * 12


def test_progress_is_announced_step_by_step(source, tmp_path):
    said = []
    build_animals_features(
        source[0], str(tmp_path / "features.npz"), lambda *step: said.append(step)
    )
    assert [done for done, _, _ in said] == list(range(len(said)))
    assert {todo for _, todo, _ in said} == {len(said) - 1} == {len(KINDS) * len(CLASSES) + 2}
    assert said[0][2] == "reading lss of antelope"
    assert said[-1][2] == "done"


def test_what_is_built_can_be_loaded(tmp_path, rng):
    seen, new = class_names("animals")
    classes = list(rng.permutation(seen + new))
    directory = tmp_path / "all"
    directory.mkdir()
    write_directory(directory, rng, classes, list(new), dict.fromkeys(classes, 15))
    build_animals_features(directory, tmp_path / "features.npz", quiet)
    data = load_animals(tmp_path / "features.npz")
    assert repr(data) == (
        "animals: 540 + 60 images of 40 seen classes, 150 of 10 new ones, 20 features"
    )
    assert np.isnan(data.attributes.select([classes[0]]).values[0]).tolist() == [False, True, False]


# ---- What is refused

BEAR = "Features/sift-hist/grizzly+bear/grizzly+bear_0003.txt"


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("classes.txt", None, "classes.txt: no such file; is this Animals with Attributes"),
        ("classes.txt", "1 antelope\n3 seal\n", r"classes.txt:2: expected '2' and a name"),
        ("classes.txt", "1 antelope\n2\n", r"classes.txt:2: expected '2' and a name"),
        ("classes.txt", "1 pig\n2 pig\n", r"classes.txt names 'pig' more than once"),
        ("classes.txt", "", r"classes.txt is empty"),
        ("predicates.txt", None, "predicates.txt: no such file"),
        ("predicates.txt", "1 black", "continuous.txt: expected 4 rows of 1 numbers"),
        ("predicate-matrix-continuous.txt", "1 2 3\n4 x 6", r"continuous.txt:2: could not .* 'x'"),
        ("predicate-matrix-continuous.txt", "1 2 3", "expected 4 rows of 3 numbers"),
        (
            "predicate-matrix-continuous.txt",
            "1 2 nan",
            "continuous.txt:1: nan is not a finite number",
        ),
        ("trainclasses.txt", "antelope\ngrizzly+bear", "'pig' in neither trainclasses.txt nor"),
        ("trainclasses.txt", "antelop", r"'antelop' is not in classes.txt \(did you mean 'ant"),
        ("testclasses.txt", "seal\npig", "testclasses.txt: 'pig' also in trainclasses.txt"),
        ("testclasses.txt", None, "testclasses.txt: no such file"),
        (BEAR, None, "bear_0003.txt: no such file, though other kinds of features have it"),
        (BEAR, "1 2 3 x 5 6", "bear_0003.txt: could not convert string to float: 'x'"),
        (BEAR, "1 2 3 inf 5 6", "bear_0003.txt: inf is not a finite number"),
        (BEAR, "1 2 3 -4 5 6", "bear_0003.txt: a histogram has no negative numbers, not -4"),
        (BEAR, "1 2 3", "bear_0003.txt: 3 numbers, but the first image has 6"),
        (BEAR, " \n", "bear_0003.txt: empty; it should have numbers"),
    ],
)
def test_a_directory_with_something_wrong(source, tmp_path, file, content, message):
    path = source[0] / file
    path.unlink()
    if content is not None:
        path.write_text(content)
    destination = tmp_path / "features.npz"
    destination.write_text("as it was")
    with pytest.raises(rs.RankshotError, match=message):
        build_animals_features(source[0], destination, quiet)
    assert destination.read_text() == "as it was"
    assert sorted(tmp_path.iterdir()) == [source[0], destination]


def test_a_kind_that_was_not_unpacked(source, tmp_path):
    (source[0] / "Features" / "surf-hist").rename(tmp_path / "elsewhere")
    with pytest.raises(rs.RankshotError, match=r"surf-hist/antelope: no such directory; unpack"):
        build_animals_features(source[0], tmp_path / "features.npz", quiet)


def test_a_class_without_images(source, tmp_path):
    for kind in KINDS:
        for path in (source[0] / "Features" / f"{kind}-hist" / "pig").iterdir():
            path.unlink()
    with pytest.raises(rs.RankshotError, match=r"lss-hist/pig: no file pig_0001\.txt"):
        build_animals_features(source[0], tmp_path / "features.npz", quiet)


def test_a_place_to_write_is_looked_for_first(source, tmp_path):
    said = []
    with pytest.raises(rs.RankshotError, match="cannot write there"):
        build_animals_features(
            source[0], tmp_path / "nowhere" / "features.npz", lambda *step: said.append(step)
        )
    assert said == []


@pytest.mark.parametrize("n", [1, 4])
def test_images_that_do_not_vary(n):
    with pytest.raises(rs.RankshotError, match=r"one image|the same features"):
        animals._reduce(np.ones((n, 3), np.float32), np.ones(n, bool))
