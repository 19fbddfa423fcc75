"""The tree of the new classes: WordNet's, without chains, in the senses of the similarities."""

from itertools import combinations

import numpy as np
import pytest
from reproduction.benchmark import load_benchmark
from reproduction.class_maps import SENSES, build_class_tree

from rankshot.datasets import ImageData, load_cifar
from rankshot.datasets.embedded import class_names, load_similarities
from rankshot.sources.wordnet import WordNet
from rankshot.sources.wordnet_nouns import load_nouns


def animals():
    """Return the animals without their images, which a tree does not need."""
    seen, new = class_names("animals")
    nothing = np.zeros((0, 2), np.float32), np.array([], str)
    return ImageData("animals", *nothing, *nothing, *nothing, seen, new)


@pytest.fixture(scope="module", params=["cifar", "animals"])
def benchmark(request):
    return load_benchmark(load_cifar() if request.param == "cifar" else animals())


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


def test_senses_are_those_of_the_similarities(benchmark):
    """With the senses of the tree pinned, WordNet gives the same table."""
    table = load_similarities(benchmark.name)["WordNet"]
    tree = build_class_tree(benchmark)
    assert [name for name, _ in tree.senses] == list(benchmark.data.new_classes)
    wordnet = WordNet("path", senses=SENSES[benchmark.name] | dict(tree.senses))
    again = wordnet.similarity(table.targets, table.items)
    np.testing.assert_array_equal(again.values, table.values)
