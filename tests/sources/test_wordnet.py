"""WordNet: measures by other means, names in many spellings, and the choice of senses."""

from collections import Counter
from itertools import chain, combinations
from types import SimpleNamespace

import numpy as np
import pytest

import rankshot as rs
from rankshot.datasets.embedded import CIFAR_SENSES, class_names, load_panel
from rankshot.sources.wordnet import WEAK_POWER, _SenseList, find_candidates
from rankshot.sources.wordnet_nouns import MEASURES, compare_synsets, load_nouns
from refusals import refuses


@pytest.fixture(scope="module")
def nouns():
    return load_nouns()


# ---- Measures


def brute_ancestors(nouns, synset):
    """Every ancestor with the shortest way to it, by trying all ways."""
    found = {synset: 0}
    for parent in nouns.parents(synset):
        for ancestor, steps in brute_ancestors(nouns, parent).items():
            found[ancestor] = min(found.get(ancestor, 99), steps + 1)
    return found


def longest_way(nouns, synset):
    return max((1 + longest_way(nouns, parent) for parent in nouns.parents(synset)), default=0)


def test_measures_by_their_definitions(nouns, rng):
    synsets = [nouns.synset(n) for n in ("dog.n.01", "cat.n.01", "truck.n.01", "person.n.01")]
    synsets += rng.integers(0, len(nouns.depths), size=12).tolist()
    found = {name: compare_synsets(name, synsets, synsets) for name in MEASURES}
    for i, j in combinations(range(len(synsets)), 2):
        up_i, up_j = (brute_ancestors(nouns, synsets[k]) for k in (i, j))
        shared = up_i.keys() & up_j.keys()
        steps = min(up_i[s] + up_j[s] for s in shared)
        depth = {s: 1 + longest_way(nouns, s) for s in shared}
        expected = {
            "path": 1 / (1 + steps),
            "wup": max(2 * depth[s] / (up_i[s] + up_j[s] + 2 * depth[s]) for s in shared),
        }
        assert {name: found[name][i, j] for name in expected} == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_sizes_count_a_synset_and_all_its_kinds(nouns):
    below = Counter(chain.from_iterable(map(nouns.ancestors, range(len(nouns.sizes)))))
    assert nouns.sizes.tolist() == [below[synset] for synset in range(len(nouns.sizes))]


# ---- Names


@pytest.mark.parametrize(
    ("name", "sense", "note"),
    [
        ("Lawn Mower", "lawn_mower.n.01", None),
        ("grizzly+bear", "grizzly.n.01", None),
        ("pick-up truck", "pickup.n.01", None),
        ("crane 2", "crane.n.05", "'crane 2' was looked up as 'crane'"),
        ("crane (2)", "crane.n.05", "'crane (2)' was looked up as 'crane'"),
        ("crane_(bird)", "crane.n.05", None),
        ("xyzzy, crane", "crane.n.05", "'xyzzy, crane': WordNet has no noun 'xyzzy'"),
        ("xyzzy, cranes", "crane.n.05", "'xyzzy, cranes' was looked up as 'crane'"),
        ("mice", "mouse.n.01", "'mice' was looked up as 'mouse'"),
        ("maple_tree", "maple.n.02", "'maple_tree' was looked up as 'maple', a kind of 'tree'"),
        ("aquarium_fish", "fish.n.01", "'aquarium_fish' was looked up as its head noun, 'fish'"),
    ],
)
def test_names_are_found_in_many_spellings(nouns, name, sense, note):
    found = find_candidates(name)
    assert nouns.synset(sense) in found.synsets
    assert found.note == note


# ---- Lists with a known truth

CIFAR_10 = load_panel().target_names
CIFAR_100 = load_panel().items
ANIMALS = sum(class_names("animals"), ())
LABELS = rs.sources.read_class_labels("imagenet-1k")
IMAGENET = SimpleNamespace(
    names=LABELS.names, ids=LABELS.synsets, synonyms=[", ".join(words) for words in LABELS.synonyms]
)

FIRST = """
    apple baby bear bed bee bridge bus camel can caterpillar chair crab cup fox girl house
    keyboard lion man mountain mouse orange pear plain rabbit rocket rose sea shark snail tank
    tractor train worm bird cat dog truck ship
"""
RIGHT = {name: f"{name}.n.01" for name in FIRST.split()} | {
    "aquarium_fish": "fish.n.01", "beaver": "beaver.n.07", "boy": "male_child.n.01",
    "castle": "castle.n.02", "cloud": "cloud.n.02", "dolphin": "dolphin.n.02",
    "flatfish": "flatfish.n.02", "leopard": "leopard.n.02", "lobster": "lobster.n.02",
    "maple_tree": "maple.n.02", "oak_tree": "oak.n.02", "otter": "otter.n.02",
    "palm_tree": "palm.n.03", "plate": "plate.n.04", "raccoon": "raccoon.n.02", "ray": "ray.n.07",
    "seal": "seal.n.09", "shrew": "shrew.n.02", "skunk": "skunk.n.04", "table": "table.n.02",
    "television": "television_receiver.n.01", "tiger": "tiger.n.02", "trout": "trout.n.02",
    "turtle": "turtle.n.02", "whale": "whale.n.02",
}  # fmt: skip
"""Senses looked up by hand, of all of CIFAR's names whose first sense is wrong, and more."""


@pytest.fixture(scope="module")
def imagenet_senses():
    return rs.WordNet().senses(IMAGENET.names)


def find_wrong(nouns, senses, names, ids):
    """The names whose sense is not that of the id."""
    pairs = zip(names, ids, strict=True)
    return [name for name, id_ in pairs if nouns.synset(senses[name].name) != nouns.synset(id_)]


def test_imagenets_bare_names_get_their_synsets(nouns, imagenet_senses):
    """960 of 1,000; those that are wrong are mostly as alike as robin.n.01 and robin.n.02."""
    wrong = find_wrong(nouns, imagenet_senses, IMAGENET.names, IMAGENET.ids)
    assert len(wrong) == 40
    assert sum(sense.is_doubtful for sense in imagenet_senses.values()) == 146
    total = sum(sense.probability for sense in imagenet_senses.values())
    assert total == pytest.approx(945.38, abs=0.01)
    right = "ram", "slug", "plane", "teddy", "Cardigan", "cardigan", "beaver", "missile"
    assert not {*right, "zucchini", "peacock", "kite", "stage", "polecat", "chain"} & set(wrong)


def test_synonyms_lead_to_their_synset(nouns):
    """Of lines with several words, only the two echidnas are left, which have the same words."""
    count = Counter(IMAGENET.synonyms)
    pairs = zip(IMAGENET.names, IMAGENET.synonyms, strict=True)
    lines = [name if count[line] > 1 else line for name, line in pairs]
    wrong = find_wrong(nouns, rs.WordNet().senses(lines), lines, IMAGENET.ids)
    assert [line for line in wrong if "," in line] in ([], ["echidna, spiny anteater, anteater"])
    assert len(wrong) == 15


def test_ids_are_taken_as_such(nouns):
    senses = rs.WordNet().senses(IMAGENET.ids)
    assert find_wrong(nouns, senses, IMAGENET.ids, IMAGENET.ids) == []
    # From ImageNet's own list: the offsets are those of WordNet 3.0.
    assert senses["n02012849"].name == "crane.n.05"
    assert senses["n03126707"].name == "crane.n.04"
    assert {sense.probability for sense in senses.values()} == {1.0}


def test_every_cifar_name_gets_the_right_sense():
    senses = rs.WordNet(senses=CIFAR_SENSES).senses(CIFAR_10 + CIFAR_100)
    assert {name: senses[name].name for name in RIGHT} == RIGHT
    alone = {name for name in RIGHT if name not in CIFAR_SENSES}
    unpinned = rs.WordNet().senses(CIFAR_10 + CIFAR_100)
    assert {name: unpinned[name].name for name in alone} == {name: RIGHT[name] for name in alone}
    # The pins are needed: where the automatic choice is right, there should be none.
    assert all(unpinned[name].name != sense for name, sense in CIFAR_SENSES.items())
    assert all(unpinned[name].is_doubtful for name in CIFAR_SENSES)


def test_every_animal_is_an_animal_without_pinning():
    senses = rs.WordNet().senses(ANIMALS)
    assert {sense.category for sense in senses.values()} == {"animal"}
    hard = {name: RIGHT[name] for name in ("leopard", "seal", "tiger", "beaver", "dolphin", "fox")}
    hard |= {"mole": "mole.n.06", "chihuahua": "chihuahua.n.03", "dalmatian": "dalmatian.n.02"}
    hard |= {"cow": "cow.n.01", "buffalo": "old_world_buffalo.n.01", "pig": "hog.n.03"}
    assert {name: senses[name].name for name in hard} == hard


@pytest.mark.parametrize(
    ("names", "sense"),
    [
        (["mouse", "keyboard", "printer", "screen"], "mouse.n.04"),
        # A walrus has this name as well, but not as its first.
        (["sea horse", "tiger", "seal"], "seahorse.n.02"),
        (["seahorse", *IMAGENET.ids], "seahorse.n.02"),
    ],
)
def test_the_other_names_decide(names, sense):
    assert rs.WordNet().senses(names)[names[0]].name == sense


# ---- The model


def brute_log_odds(nouns, options, posterior):
    """The model by its definition, with loops."""
    rows = [(i, c) for i, option in enumerate(options) for c in option.candidates]
    total = len(nouns.sizes)

    def rate(flag, among):
        weights = [p for row, p in zip(rows, posterior, strict=True) if among(row)]
        flagged = [p for row, p in zip(rows, posterior, strict=True) if among(row) and flag(row)]
        return (sum(flagged) + 0.5) / (sum(weights) + 1)

    def log_rate(row, flag, among):
        if not among(row):
            return 0.0
        return np.log(rate(flag, among) if flag(row) else 1 - rate(flag, among))

    def is_leaf(row):
        return nouns.sizes[row[1].synset] == 1

    def has_capital(row):
        first = options[row[0]].name.split(",")[0]
        return first != first.lower()

    leaves = sum(size == 1 for size in nouns.sizes.tolist()) / total
    found = []
    for i, c in rows:
        others = [(d, p) for (j, d), p in zip(rows, posterior, strict=True) if j != i]
        density = sum(
            sum(p for d, p in others if v in brute_ancestors(nouns, d.synset)) / nouns.sizes[v]
            for v in brute_ancestors(nouns, c.synset)
        )
        category = nouns.category(c.synset)
        alike = sum(p for d, p in others if nouns.category(d.synset) == category)
        usual = leaves if is_leaf((i, c)) else 1 - leaves
        weak = np.log(c.count + 0.5) + np.log(alike + 0.5) - np.log(usual)
        weak += log_rate((i, c), is_leaf, lambda row: True)
        found.append(
            np.log(density + 1 / total)
            + WEAK_POWER * weak
            + log_rate((i, c), lambda row: row[1].is_first, lambda row: True)
            + log_rate(
                (i, c),
                lambda row: row[1].is_complete,
                lambda row: nouns.word_counts[row[1].synset] > 1,
            )
            + log_rate((i, c), has_capital, lambda row, k=c.is_capital: row[1].is_capital == k)
        )
    return found


def test_the_model_by_its_definition(nouns, rng):
    names = ["Turkey", "crane", "seal", "Cardigan", "cardigan", "mole"]
    names.append("goldfish, Carassius auratus")
    options = [find_candidates(name) for name in names]
    listed = _SenseList(options)
    posterior = listed.normalize(rng.normal(size=listed.owner.size))
    assert np.bincount(listed.owner, posterior) == pytest.approx(1)
    expected = brute_log_odds(nouns, options, posterior)
    assert listed.weigh(posterior) == pytest.approx(expected, rel=1e-10)
    synsets = [c.synset for option in options for c in option.candidates]
    for row, synset in enumerate(synsets):
        other = sum(posterior[k] for k in range(len(synsets)) if k != row and synsets[k] == synset)
        expected = np.log(max(1 - other, 0.5 / (len(names) + 1)))
        assert listed.log_free(posterior)[row] == pytest.approx(expected, abs=1e-12)


# ---- What is reported


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("names", [["crane 1", "crane 2"], ["crane", "crane 2"]])
def test_a_name_without_a_number_chooses_first_then_the_first_by_name(names, step):
    senses = rs.WordNet().senses([*names[::step], "heron", "truck", "bulldozer"])
    assert [senses[name].name for name in names] == ["crane.n.05", "crane.n.04"]


def test_names_of_one_sense_are_warned_of():
    notes = rs.WordNet().similarity(["grizzly", "grizzly_bear"], ["dog", "bus"]).notes
    (warning,) = (note for note in notes if note.startswith("WARNING"))
    assert "'grizzly'" in warning
    assert "'grizzly_bear'" in warning
    assert "'dog'" not in warning


def test_unknown_names_have_no_similarity():
    table = rs.WordNet().similarity(["water_lilly", "cat"], ["dog", "flamigno", "rose"])
    assert table.unknown_targets == ("water_lilly",)
    assert table.unknown_items == ("flamigno",)
    assert table.coverage == 2 / 6
    assert "water_lilly" not in str(table.notes)
    known = rs.WordNet().similarity(["cat"], ["dog", "rose"])
    assert table.select(["cat"], ["dog", "rose"]) == known


@pytest.mark.parametrize(
    ("call", "parameter", "value"),
    [
        (lambda: rs.WordNet("cosine"), "measure", "cosine"),
        (lambda: rs.WordNet().senses(["cat", "n99999999"]), "sense", "n99999999"),
        (lambda: rs.WordNet().senses(["cat", "xyzzy"]), "names", "xyzzy"),
        (lambda: rs.WordNet(senses={"x": "dog.n.01"}).similarity(["cat"], ["dog"]), "senses", "x"),
    ],
)
def test_bad_calls(call, parameter, value):
    with refuses(parameter, value):
        call()


def test_each_rule_of_wordnet_for_plurals(nouns):
    """All but the first also end in -s: the rule itself must be there."""
    plurals = ["cats", "buses", "foxes", "waltzes", "torches", "bushes", "firemen", "ponies"]
    singulars = ["cat", "bus", "fox", "waltz", "torch", "bush", "fireman", "pony"]
    assert all(one in nouns.singulars(s) for one, s in zip(singulars, plurals, strict=True))
