"""Maps: by distances that are computed anew here; the tree of the new classes is WordNet's."""

from itertools import combinations

import numpy as np
import pytest
from reproduction.benchmark import Benchmark, load_benchmark
from reproduction.class_maps import (
    build_class_tree,
    build_source_maps,
    build_word_maps,
    place_points,
)
from reproduction.class_vectors import ClassVectors
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA
from small_run import without_images

import rankshot as rs
from exact import mean_distance
from rankshot.datasets import load_cifar
from rankshot.datasets.embedded import class_names
from rankshot.sources.similarity import Similarity
from rankshot.sources.wordnet import WordNet
from rankshot.sources.wordnet_nouns import load_nouns

pytestmark = pytest.mark.slow

NAN = np.nan
SEEN, UNSEEN = ("bus", "fox", "lion", "wolf"), ("cat", "dog", "truck")


def make_benchmark(tables):
    """Return a benchmark of four seen and three new classes, with these similarities."""
    sources = {name: Similarity(values, UNSEEN, SEEN, name) for name, values in tables.items()}
    panel = rs.Rankings.from_orders([["bus"]], items=SEEN, targets=["truck"])
    vectors = ClassVectors(SEEN + UNSEEN, np.eye(7))
    return Benchmark(without_images("cifar", SEEN, UNSEEN), sources, panel, panel, vectors)


def assert_same_map(found, expected):
    """Compare places; the sign of an axis is arbitrary."""
    for axis in range(2):
        a, b = found[:, axis], expected[:, axis]
        np.testing.assert_allclose(a, b * np.sign(a @ b), atol=1e-8)


def scaled(distance):
    """Return classical scaling by the definition, with the centring matrix written out."""
    n = len(distance)
    J = np.eye(n) - np.ones((n, n)) / n
    values, vectors = np.linalg.eigh(-J @ distance**2 @ J / 2)
    return vectors[:, [-1, -2]] * np.sqrt(values[[-1, -2]])


# ---- Classical scaling


def test_points_of_a_plane_are_found_but_for_a_turn(rng):
    points = rng.normal(size=(20, 2)) * [3, 1]
    distances = cdist(points, points)
    found = place_points(distances)
    np.testing.assert_allclose(cdist(found, found), distances, atol=1e-9)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-9)
    # The longer axis comes first, and the farthest point lies on its positive side.
    assert found[:, 0].var() > found[:, 1].var()
    assert (found[np.abs(found).argmax(axis=0), [0, 1]] > 0).all()


# ---- Words


def test_word_maps_are_scaled_one_minus_similarities():
    benchmark = load_benchmark(load_cifar())
    names, senses = benchmark.data.new_classes, dict(build_class_tree(benchmark).senses)
    by_tree = 1 - WordNet("wup", senses=senses).similarity(names, names).values
    vectors = benchmark.vectors.select(names).values
    lengths = np.linalg.norm(vectors, axis=1)
    by_words = 1 - vectors @ vectors.T / lengths / lengths[:, None]
    for found, distance in zip(build_word_maps(benchmark), (by_tree, by_words), strict=True):
        assert found.targets == names
        assert found.left_out == ()
        assert_same_map(found.places, scaled(distance))


# ---- Sources

TABLES = {
    "one": [[0.1, 0.9, 0.5, 0.8], [0.2, 0.6, 0.4, 0.9], [0.7, 0.1, 0.3, 0.2]],
    # Ties, a missing cell (to be put last, with the table's least value), and a row of one value.
    "two": [[1, 5, 5, 5], [NAN, 7, 2, 4], [3, 3, 3, 3]],
    # Nothing known, and nothing but one value known.
    "three": [[NAN] * 4, [NAN, 6, 6, NAN], [8, 2, 2, 2]],
}
ROWS = np.array([*TABLES["one"], [1, 5, 5, 5], [1, 7, 2, 4], [8, 2, 2, 2]], dtype=float)


def test_three_distances_of_what_sources_say():
    maps = build_source_maps(make_benchmark(TABLES))
    left_out = (("two", "truck"), ("three", "cat"), ("three", "dog"))
    for found in maps:
        assert found.sources == ("one", "one", "one", "two", "two", "three")
        assert found.targets == ("cat", "dog", "truck", "cat", "dog", "truck")
        assert found.left_out == left_out
    euclidean, normalized, kendall = (found.places for found in maps)
    # Classical scaling of Euclidean distances is the analysis of principal components.
    assert_same_map(euclidean, PCA(2).fit_transform(ROWS))
    assert_same_map(normalized, PCA(2).fit_transform(ROWS / np.abs(ROWS).sum(axis=1)[:, None]))
    orders = [
        [np.flatnonzero(row == level).tolist() for level in np.unique(row)[::-1]] for row in ROWS
    ]
    distance = np.array([[float(mean_distance(a, b, range(4), 2)) for b in orders] for a in orders])
    np.fill_diagonal(distance, 0)
    assert_same_map(kendall, scaled(distance))


# ---- The tree


@pytest.fixture(scope="module", params=["cifar", "animals"])
def benchmark(request):
    return load_benchmark(
        load_cifar()
        if request.param == "cifar"
        else without_images("animals", *class_names("animals"))
    )


def classes_below(node):
    return {one.label for _, one in node.walk() if one.is_class}


def lowest_above(root, names):
    """Return the lowest node that has all these classes below it."""
    found = [(depth, node) for depth, node in root.walk() if names <= classes_below(node)]
    return max(found, key=lambda pair: pair[0])[1]


def way_up(nouns, synset):
    way = [synset]
    while parents := nouns.parents(way[-1]):
        way.append(parents[0])
    return way


def test_two_classes_meet_at_their_lowest_common_word(benchmark):
    tree, nouns = build_class_tree(benchmark), load_nouns()
    ways = {name: way_up(nouns, nouns.synset(sense)) for name, sense in tree.senses}
    for one, other in combinations(ways, 2):
        common = next(synset for synset in ways[one] if synset in set(ways[other]))
        assert lowest_above(tree.root, {one, other}).label == nouns.word(common), (one, other)
