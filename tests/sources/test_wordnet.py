import csv
from collections import Counter
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pytest

import rankshot as rs
from rankshot.sources.wordnet import find_candidates
from rankshot.sources.wordnet_nouns import MEASURES, compare_synsets, load_nouns

PAIRS = Path(__file__).parent / "nltk_similarities.csv"


@pytest.fixture(scope="module")
def nouns():
    return load_nouns()


def test_a_thousand_random_pairs_are_as_alike_as_in_nltk(nouns):
    with PAIRS.open(encoding="utf-8", newline="") as stream:
        pairs = list(csv.DictReader(stream))
    assert len(pairs) == 1000
    a, b = ([nouns.synset(row[side]) for row in pairs] for side in "ab")
    for measure in ("path", "lch"):
        expected = np.array([float(row[measure]) for row in pairs])
        assert np.diag(compare_synsets(nouns, measure, a, b)) == pytest.approx(expected, rel=1e-14)


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
    found = {name: compare_synsets(nouns, name, synsets, synsets) for name in MEASURES}
    content = nouns.information
    for i, j in combinations(range(len(synsets)), 2):
        up_i, up_j = (brute_ancestors(nouns, synsets[k]) for k in (i, j))
        shared = up_i.keys() & up_j.keys()
        steps = min(up_i[s] + up_j[s] for s in shared)
        depth = {s: 1 + longest_way(nouns, s) for s in shared}
        best = max(content[s] for s in shared)
        own = content[synsets[i]] + content[synsets[j]]
        expected = {
            "path": 1 / (1 + steps),
            "lch": -np.log((steps + 1) / 38),
            "wup": max(2 * depth[s] / (up_i[s] + up_j[s] + 2 * depth[s]) for s in shared),
            "resnik": best,
            "lin": 2 * best / own,
            "jcn": 1 / (1 + own - 2 * best),
        }
        assert {name: found[name][i, j] for name in expected} == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_sizes_and_information_count_a_synset_and_all_its_kinds(nouns):
    """The counts of 'big cat' are its own and those of the cats below it, one more for each."""
    big_cat = nouns.synset("big_cat.n.01")
    above = [nouns.ancestors(synset) for synset in range(len(nouns.sizes))]
    below = Counter(chain.from_iterable(above))
    assert nouns.sizes.tolist() == [below[v] for v in range(len(nouns.sizes))]
    tagged = everything = 0
    for lemma in nouns.lemmas:
        for sense, count in zip(nouns.senses(lemma), nouns.counts(lemma), strict=True):
            everything += count
            tagged += count * (big_cat in above[sense])
    share = (tagged + below[big_cat]) / (everything + len(above))
    assert nouns.information[big_cat] == pytest.approx(-np.log(share), rel=1e-12)
    assert nouns.information[nouns.synset("entity.n.01")] == 0


@pytest.mark.parametrize(
    ("name", "sense", "note"),
    [
        ("Lawn Mower", "lawn_mower.n.01", None),
        ("grizzly+bear", "grizzly.n.01", None),
        ("pick-up truck", "pickup.n.01", None),
        ("crane 2", "crane.n.05", "'crane 2' was looked up as 'crane'"),
        ("roses", "rose.n.01", "'roses' was looked up as 'rose'"),
        ("mice", "mouse.n.01", "'mice' was looked up as 'mouse'"),
        ("maple_tree", "maple.n.02", "'maple_tree' was looked up as 'maple', a kind of 'tree'"),
        ("aquarium_fish", "fish.n.01", "'aquarium_fish' was looked up as its head noun, 'fish'"),
    ],
)
def test_names_are_found_in_many_spellings(nouns, name, sense, note):
    found = find_candidates(nouns, name)
    assert nouns.synset(sense) in found.synsets
    assert found.note == note


def test_every_lemma_is_found_as_itself(nouns):
    """Also those of several words, joined by underscores and hyphens, as ImageNet has them."""
    for lemma in nouns.lemmas[::70]:
        found, own = find_candidates(nouns, lemma), nouns.senses(lemma)
        assert list(found.synsets[: len(own)]) == own
        assert found.note is None
        others = {other for other in nouns.spellings(lemma) if other != lemma}
        assert set(found.synsets) == {s for x in (lemma, *others) for s in nouns.senses(x)}


def test_plurals_of_usual_nouns_are_read_as_those_nouns(nouns):
    """By the rules of spelling; WordNet has some plurals as words of their own."""
    usual = [x for x in nouns.lemmas if x.isalpha() and x.isascii() and sum(nouns.counts(x)) > 0]
    wrong = []
    for noun in usual:
        hissing = noun.endswith(("s", "x", "z", "ch", "sh"))
        plural = noun + ("es" if hissing else "s")
        if noun.endswith("y") and noun[-2:-1] not in "aeiou":
            plural = noun[:-1] + "ies"
        if plural in nouns:
            continue
        found, own = find_candidates(nouns, plural), nouns.senses(noun)
        if list(found.synsets[: len(own)]) != own:
            wrong.append((plural, found.note))
    assert len(usual) > 5000
    # Two nouns can have one plural: axes, bases.
    assert len(wrong) < 0.002 * len(usual), wrong


def test_names_of_all_synsets_lead_back_to_them(nouns, rng):
    for synset in rng.integers(0, len(nouns.depths), size=500).tolist():
        assert nouns.synset(nouns.name(synset)) == synset


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rs.WordNet("cosine"), "measure must be one of 'path', 'lch', 'wup'"),
        (lambda: rs.WordNet().senses(["cat", "n99999999"]), "'n99999999' is not the id of a noun"),
        (lambda: rs.WordNet().senses(["xyzzy"]), r"WordNet has no noun 'xyzzy'\. Pin such a name"),
        (
            lambda: rs.WordNet(senses={"dgo": "dog.n.01"}).similarity(["cat"], ["dog"]),
            r"'dgo' is pinned, but is neither a target nor an item \(did you mean 'dog'",
        ),
    ],
)
def test_bad_calls(call, message):
    with pytest.raises(rs.RankshotError, match=message):
        call()
