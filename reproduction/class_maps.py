"""The new classes as a tree and on maps: the paper's Figures 1 and 3."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.spatial.distance import cdist

from rankshot.datasets.embedded import CIFAR_SENSES
from rankshot.ranking.distances import mean_kendall_distance
from rankshot.sources.similarity import Similarity
from rankshot.sources.wordnet import WordNet
from rankshot.sources.wordnet_nouns import Nouns, load_nouns
from reproduction.benchmark import Benchmark, collect_points

SENSES = {"cifar": CIFAR_SENSES, "animals": {}}
"""By data set, the fixed WordNet senses with which the package's similarities were computed."""
Floats = NDArray[np.float64]
WU_PALMER = "Wu & Palmer"
EUCLIDEAN = "Euclidean distance"
NORMALIZED = "Euclidean distance, normalised"
KENDALL = "Kendall’s distance of the first 2"
K = 2
"""The length of the top lists in the paper's Figure 3."""


# ---- Tree, Figure 1


@dataclass(frozen=True)
class TreeNode:
    """A class, or a WordNet word of which several classes are kinds."""

    label: str
    is_class: bool
    below: tuple[TreeNode, ...] = ()

    def walk(self, depth: int = 0) -> Iterator[tuple[int, TreeNode]]:
        """Yield the depth of every node and the node, parents before their children."""
        yield depth, self
        for child in self.below:
            yield from child.walk(depth + 1)

    def __str__(self) -> str:
        inside = ", ".join(map(str, self.below))
        return f"{self.label} ({inside})" if inside else self.label


@dataclass(frozen=True)
class ClassTree:
    """The new classes and the words above them in WordNet; a chain without a fork is one node."""

    dataset: str
    root: TreeNode
    senses: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return str(self.root)


def build_class_tree(benchmark: Benchmark) -> ClassTree:
    """Return the WordNet tree of the new classes."""
    senses = look_up_senses(benchmark)
    nouns = load_nouns()
    paths = {name: _path_from_root(nouns, nouns.synset(sense)) for name, sense in senses.items()}
    return ClassTree(benchmark.name, _build_node(nouns, paths), tuple(senses.items()))


def look_up_senses(benchmark: Benchmark) -> dict[str, str]:
    """Return the WordNet sense of each new class, the same as in the table of similarities.

    Senses are chosen in the context of *all* classes. Ten names alone are less context, and other
    senses could be chosen.
    """
    data = benchmark.data
    found = WordNet(senses=SENSES[benchmark.name]).senses(data.new_classes + data.seen_classes)
    return {name: found[name].name for name in data.new_classes}


def _path_from_root(nouns: Nouns, synset: int) -> list[int]:
    """Return a synset and those above it; of several hypernyms, the first."""
    path = [synset]
    while parents := nouns.parents(path[-1]):
        path.append(parents[0])
    return path[::-1]


def _build_node(nouns: Nouns, paths: dict[str, list[int]], depth: int = 0) -> TreeNode:
    """Follow the common path down to the first fork, and branch there."""
    while True:
        here = [name for name, path in paths.items() if len(path) == depth + 1]
        branches: dict[int, dict[str, list[int]]] = {}
        for name, path in paths.items():
            if len(path) > depth + 1:
                branches.setdefault(path[depth + 1], {})[name] = path
        if here or len(branches) != 1:
            break
        depth += 1
    below = tuple(_build_node(nouns, some, depth + 1) for some in branches.values())
    if here:
        return TreeNode(" = ".join(here), is_class=True, below=below)
    return TreeNode(nouns.word(next(iter(paths.values()))[depth]), is_class=False, below=below)


@dataclass(frozen=True, eq=False)
class SemanticMap:
    """Points in the plane, one per source and target."""

    name: str
    targets: tuple[str, ...]
    sources: tuple[str, ...]
    places: Floats
    left_out: tuple[tuple[str, str], ...] = ()


def place_points(distances: Floats) -> Floats:
    """Place points in the plane, by classical scaling, at nearly the given distances.

    The farthest point on each axis has a positive coordinate. An axis that the distances do not
    need is 0.
    """
    squares = np.square(distances)
    rows = squares.mean(axis=1)
    products = -0.5 * (squares - rows - rows[:, None] + squares.mean())
    n_axes = min(2, len(products))
    values, vectors = eigh(products, subset_by_index=(len(products) - n_axes, len(products) - 1))
    points = vectors[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0))
    farthest = np.take_along_axis(points, np.abs(points).argmax(axis=0)[None], axis=0)
    points = points * np.where(farthest < 0, -1, 1)
    return np.pad(points, ((0, 0), (0, 2 - n_axes)))


# ---- Maps of words, Figure 1


def build_word_maps(benchmark: Benchmark) -> tuple[SemanticMap, SemanticMap]:
    """Place the new classes on two maps: by WordNet, and by word vectors.

    The distance is 1 - similarity: Wu and Palmer's measure, and the cosine of word vectors.
    """
    classes, vectors = benchmark.data.new_classes, benchmark.vectors
    wordnet = WordNet("wup", senses=look_up_senses(benchmark))
    by_wordnet = _word_map(WU_PALMER, wordnet.similarity(classes, classes))
    return by_wordnet, _word_map(vectors.source, vectors.cosines(classes, classes))


def _word_map(name: str, table: Similarity) -> SemanticMap:
    """Place names by their similarity; a name without a vector is left out."""
    known = np.isfinite(np.diagonal(table.values))
    distances = 1 - table.values[np.ix_(known, known)]
    targets = tuple(np.array(table.targets)[known].tolist())
    left_out = tuple((name, str(target)) for target in np.array(table.targets)[~known])
    return SemanticMap(name, targets, (name,) * len(targets), place_points(distances), left_out)


# ---- Maps of sources, Figure 3


def build_source_maps(benchmark: Benchmark) -> tuple[SemanticMap, SemanticMap, SemanticMap]:
    """Place the points of `collect_points` on three maps, by three distances.

    The first two distances compare similarities, unchanged and divided by the sum of their
    absolute values. The third compares rankings, by Kendall's distance of the first 2. It is the
    mean over the strict lists that ties allow. The paper's Hausdorff distance takes the worst
    case; because WordNet ties many items, its rankings would then be far from all others, even
    from those of the same class.
    """
    points = collect_points(benchmark.real.sources)
    rows = points.values
    scaled = rows / np.abs(rows).sum(axis=1, keepdims=True)
    kendall = mean_kendall_distance(points.rankings, k=K)
    # The mean distance of a ranking with ties to itself is not 0; that of a point is.
    np.fill_diagonal(kendall, 0)
    distances = {EUCLIDEAN: cdist(rows, rows), NORMALIZED: cdist(scaled, scaled), KENDALL: kendall}
    targets, sources = tuple(points.targets.tolist()), tuple(points.sources.tolist())
    left_out = tuple((name, target) for name, lost in points.left_out.items() for target in lost)
    first, second, third = (
        SemanticMap(name, targets, sources, place_points(distance), left_out)
        for name, distance in distances.items()
    )
    return first, second, third
