"""Where the unseen classes stand in WordNet: the paper's Figure 1, left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from rankshot.core.errors import RankshotError, quote_names
from rankshot.datasets.embedded import ANIMAL_SENSES, CIFAR_SENSES
from rankshot.experiments.benchmark import Benchmark
from rankshot.ranking.distances import classical_scaling, mean_kendall_distance
from rankshot.ranking.rankings import Rankings
from rankshot.semantics.similarity import Similarity
from rankshot.semantics.wordnet import Branch, Hierarchy, WordNet

SENSES = {"cifar": CIFAR_SENSES, "animals": ANIMAL_SENSES}
"""The pins with which the package's table of WordNet similarities was made, by data set."""
Floats = NDArray[np.float64]
WU_PALMER = "Wu & Palmer"
EUCLIDEAN = "Euclidean distance"
NORMALIZED = "Euclidean distance, normalized"
KENDALL = "Kendall’s distance of the first 2"
K = 2
"""The paper's, in its Figure 3."""


# -------------------- experiments.class_tree
# Where the unseen classes stand in WordNet: the paper's Figure 1, left.


@dataclass(frozen=True)
class TreeNode:
    """A class, or a word of WordNet that several classes are kinds of.

    Attributes
    ----------
    label : str
        Classes of one sense share a node, and are joined by " = ".
    is_class : bool
    below : tuple of TreeNode
    """

    label: str
    is_class: bool
    below: tuple[TreeNode, ...] = ()

    def walk(self, depth: int = 0) -> Iterator[tuple[int, TreeNode]]:
        """Yield every node and its depth, from the top, each before what is below it."""
        yield depth, self
        for child in self.below:
            yield from child.walk(depth + 1)

    def __str__(self) -> str:
        inside = ", ".join(map(str, self.below))
        return f"{self.label} ({inside})" if inside else self.label


@dataclass(frozen=True)
class ClassTree:
    """The unseen classes and what they are kinds of; a chain without a fork is one node.

    Attributes
    ----------
    dataset : str
    root : TreeNode
    senses : tuple of (str, str)
        Each class, and the sense of WordNet that it was taken in.
    """

    dataset: str
    root: TreeNode
    senses: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return str(self.root)


def build_class_tree(benchmark: Benchmark) -> ClassTree:
    """Return the tree of a benchmark's unseen classes.

    Examples
    --------
    >>> from rankshot.datasets.cifar import load_cifar
    >>> from rankshot.experiments.class_maps import class_tree
    >>> from rankshot.experiments.benchmark import load_benchmark
    >>> tree = class_tree(load_benchmark(load_cifar()))
    >>> print(tree.root.below[0])
    vehicle (craft (airplane, ship), motor_vehicle (automobile, truck))
    """
    senses = choose_senses(benchmark)
    hierarchy = Hierarchy(senses, WordNet(senses=senses))
    return ClassTree(benchmark.name, _node(hierarchy.root), tuple(senses.items()))


def choose_senses(benchmark: Benchmark) -> dict[str, str]:
    """Return the sense of each unseen class, as the table of similarities has it.

    It is chosen by the company of *all* classes. Ten names alone are less company, and could
    mislead.
    """
    data = benchmark.images
    found = WordNet(senses=SENSES[benchmark.name]).senses(data.new_classes + data.seen_classes)
    return {name: found[name].name for name in data.new_classes}


def _node(branch: Branch) -> TreeNode:
    return TreeNode(branch.label, branch.is_name, tuple(map(_node, branch.below)))


# -------------------- experiments.semantic_maps
# Classes on maps, near what they are like: the paper's Figure 1, right, and Figure 3.


@dataclass(frozen=True, eq=False)
class SemanticMap:
    """Points in the plane, each for what one source says of one target.

    Attributes
    ----------
    name : str
        By what distance the points were placed.
    targets, sources : tuples of str
        Of the points.
    places : ndarray of shape (points, 2)
    left_out : tuple of (str, str)
        Sources and targets without a point: the source knows nothing of the target.
    """

    name: str
    targets: tuple[str, ...]
    sources: tuple[str, ...]
    places: Floats
    left_out: tuple[tuple[str, str], ...] = ()


# -------------------------------------------------------------------- words, Figure 1


def build_word_maps(benchmark: Benchmark) -> tuple[SemanticMap, SemanticMap]:
    """Place the unseen classes by WordNet, and by word vectors.

    The distance is 1 - similarity: Wu and Palmer's measure, and the cosine of word vectors.

    Examples
    --------
    >>> from rankshot.datasets.cifar import load_cifar
    >>> from rankshot.experiments.class_maps import word_maps
    >>> from rankshot.experiments.benchmark import load_benchmark
    >>> [(one.name, one.places.shape) for one in word_maps(load_benchmark(load_cifar()))]
    [('Wu & Palmer', (10, 2)), ('GloVe 100d', (10, 2))]
    """
    classes, vectors = benchmark.images.new_classes, benchmark.vectors
    wordnet = WordNet("wup", senses=choose_senses(benchmark))
    by_wordnet = _word_map(WU_PALMER, wordnet.similarity(classes, classes))
    return by_wordnet, _word_map(vectors.source, vectors.cosines(classes, classes))


def _word_map(name: str, table: Similarity) -> SemanticMap:
    """Place names by how alike they are; one without a vector is like nothing, itself included."""
    known = np.isfinite(np.diagonal(table.values))
    distances = 1 - table.values[np.ix_(known, known)]
    targets = tuple(np.array(table.targets)[known].tolist())
    left_out = tuple((name, str(target)) for target in np.array(table.targets)[~known])
    return SemanticMap(
        name, targets, (name,) * len(targets), classical_scaling(distances), left_out
    )


# -------------------------------------------------------------------- sources, Figure 3


def build_source_maps(benchmark: Benchmark) -> tuple[SemanticMap, SemanticMap, SemanticMap]:
    """Place what each source says of each unseen class, by three distances of rows.

    The first two compare the numbers, as they are and divided by the sum of their absolute values;
    the third their order, by Kendall's distance of the first 2. It is the mean over the strict
    lists that ties allow, and not the Hausdorff distance of the paper, which takes the worst of
    them: WordNet ties so many items that its rows would then be far from all rows, those of the
    same class and one another included.

    Of a row that is known, what is unknown inside is put last, as for the rankings of a `Task`.

    Examples
    --------
    >>> from rankshot.datasets.cifar import load_cifar
    >>> from rankshot.experiments.class_maps import source_maps
    >>> from rankshot.experiments.benchmark import load_benchmark
    >>> maps = source_maps(load_benchmark(load_cifar()))
    >>> [(one.name, len(one.places)) for one in maps]
    [('Euclidean distance', 50), ('Euclidean distance, normalized', 50),
     ('Kendall’s distance of the first 2', 50)]
    """
    rows, sources, targets, left_out = _known_rows(benchmark)
    scaled = rows / np.abs(rows).sum(axis=1, keepdims=True)
    rankings = Rankings.from_scores(rows, items=benchmark.images.seen_classes)
    kendall = mean_kendall_distance(rankings, k=K)
    # A ranking with ties is at some distance of itself, on average; a point is not.
    np.fill_diagonal(kendall, 0)
    distances = {EUCLIDEAN: cdist(rows, rows), NORMALIZED: cdist(scaled, scaled), KENDALL: kendall}
    first, second, third = (
        SemanticMap(name, targets, sources, classical_scaling(distance), left_out)
        for name, distance in distances.items()
    )
    return first, second, third


def _known_rows(
    benchmark: Benchmark,
) -> tuple[Floats, tuple[str, ...], tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Return the rows that rank something, their sources and targets, and those that do not."""
    rows: list[Floats] = []
    kept: list[tuple[str, str]] = []
    left_out: list[tuple[str, str]] = []
    for source, table in benchmark.real.sources.items():
        values, known = table.values, np.isfinite(table.values)
        # Nothing is above nothing, so a row without a number is left out, too.
        highest = np.where(known, values, -np.inf).max(axis=1)
        lowest = np.where(known, values, np.inf).min(axis=1)
        for row, target in enumerate(table.targets):
            if highest[row] > lowest[row]:
                rows.append(np.where(known[row], values[row], lowest.min()))
                kept.append((source, target))
            else:
                left_out.append((source, target))
    if not rows:
        raise RankshotError(
            f"no source says anything of {quote_names(benchmark.images.new_classes)}"
        )
    sources, targets = zip(*kept, strict=True)
    return np.array(rows), sources, targets, tuple(left_out)
