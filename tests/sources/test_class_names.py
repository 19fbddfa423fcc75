"""Class names: looked up by other words, and checked for their spelling."""

import numpy as np
import pytest

import rankshot as rs
from rankshot.datasets import class_names, imagenet_classes
from rankshot.sources import compare_as, find_misspellings, read_look_up
from rankshot.sources.names.look_up import split_synonyms
from rankshot.sources.wordnet_nouns import load_nouns


@pytest.fixture
def nouns():
    return load_nouns()


# ------------------------------------------------------------------ other words


def compare_lengths(targets, items):
    """A source that knows all words: the longer two words, the more similar they are."""
    values = [[len(target) + 10 * len(item) for item in items] for target in targets]
    return rs.Similarity(values, targets, items, "lengths", ["a note"])


def test_the_source_gets_the_words_and_the_table_has_the_names():
    asked = []

    def compare(targets, items):
        asked.append((targets, items))
        return compare_lengths(targets, items)

    look_up = {"A": "water lily", "x": "crane", "y": "crane"}
    table = compare_as(compare, ["A", "B"], ["x", "bus", "y"], look_up)
    assert asked == [(("water lily", "B"), ("crane", "bus"))]
    assert (table.targets, table.items, table.source) == (("A", "B"), ("x", "bus", "y"), "lengths")
    assert table.values.tolist() == [[60, 40, 60], [51, 31, 51]]
    assert table.notes == ("a note",)


def test_without_words_nothing_changes():
    names = ["a", "bb"], ["ccc", "c"]
    assert compare_as(compare_lengths, *names, {}) == compare_lengths(*names)


@pytest.mark.parametrize(
    ("look_up", "message"),
    [
        ({"tigre": "tiger"}, r"words to look up: no class 'tigre' \(did you mean 'tiger'\?\)"),
        ({"tiger": " "}, "the words to look up for 'tiger' are ' '"),
        (["tiger"], r"look_up must map names to words, not be \['tiger'\]"),
        ({"tiger": None}, "the words to look up for 'tiger' are None"),
    ],
)
def test_bad_words(look_up, message):
    with pytest.raises(rs.RankshotError, match=message):
        compare_as(compare_lengths, ["cat"], ["tiger"], look_up)


def test_a_file_of_words(tmp_path):
    path = tmp_path / "names.csv"
    path.write_bytes(
        b"\xef\xbb\xbfremark,class,look_up\r\n,water_lilly, water lily \r\n\r\n,,\r\n"
        b'x,"a, b",crane\r\n'
    )
    found = read_look_up(path, ["water_lilly", "bus", "a, b"])
    assert found == {"water_lilly": "water lily", "a, b": "crane"}


def test_the_words_of_every_synset(nouns):
    """By the other direction: the synsets of every word."""
    words = {}
    for lemma in nouns.lemmas:
        for synset in nouns.senses(lemma):
            words.setdefault(synset, set()).add(lemma)
    for wnid in imagenet_classes().ids[::50]:
        synset = nouns.synset(wnid)
        found = split_synonyms(wnid)
        assert found[0] == nouns.word(synset)
        assert (set(found), len(found)) == (words[synset], len(words[synset]))
    assert split_synonyms("n99999999") == ["n99999999"]
    assert split_synonyms(" , ") == [" , "]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names.csv: the file is empty"),
        (
            "class,words\ncat,dog\n",
            "names.csv:1: the first line must name the columns, class,look_up",
        ),
        ("cat,dog\n", "the columns, class,look_up; it is 'cat,dog'"),
        ("class,look_up,class\n", "names.csv: the column 'class' occurs 2 times"),
        ("class,look_up\n\ncta,dog\n", "names.csv:3: no class 'cta' .did you mean 'cat'.."),
        ("class,look_up\ncat,a\ncat,b\n", "names.csv:3: the class 'cat' occurs twice"),
        ("class,look_up\ncat,\n", "names.csv:2: the class 'cat' has no words to look up"),
        ("class,look_up\ncat,a,b\n", "names.csv:2: 3 cells, but the first line names 2 columns"),
    ],
)
def test_a_bad_file_of_words_is_named_by_line(tmp_path, text, message):
    path = tmp_path / "names.csv"
    path.write_text(text)
    with pytest.raises(rs.RankshotError, match=message):
        read_look_up(path, ["cat", "bus"])


# ------------------------------------------------------------------ spelling


def edit_distance(a, b):
    """The optimal string alignment: letters inserted, dropped, replaced, neighbours swapped."""
    d = np.zeros((len(a) + 1, len(b) + 1), int)
    d[:, 0], d[0, :] = range(len(a) + 1), range(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            same = a[i - 1] == b[j - 1]
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (not same))
            if i > 1 and j > 1 and a[i - 2 : i] == b[j - 2 : j][::-1]:
                d[i, j] = min(d[i, j], d[i - 2, j - 2] + 1)
    return d[-1, -1]


@pytest.mark.parametrize("name", ["zebrra", "zbera", "zabra", "zqbru", "brambbing", "xyzzy"])
def test_a_noun_is_found_exactly_if_one_differs_by_one_letter(name):
    near = {
        word
        for word in load_nouns().lemmas
        # One letter changes the length by at most 1, and the set of letters by at most 2.
        if abs(len(word) - len(name)) < 2 and len({*word} ^ {*name}) < 3
        if edit_distance(word, name) == 1
    }
    assert bool(near) == (name not in {"zqbru", "xyzzy"})
    found = find_misspellings([name])
    assert set(found.values()) <= near
    assert bool(found) == bool(near)


def test_any_slip_of_one_letter_is_found(rng):
    nouns = load_nouns()
    words = [word for word in nouns.lemmas if word.replace("_", "").isalpha() and len(word) > 5]
    for word in rng.choice(words, 60):
        place = int(rng.integers(1, len(word) - 1))
        if word[place] == "_" or word[place + 1] == "_":
            continue
        slip = word[:place] + word[place + 1] + word[place] + word[place + 2 :]
        if slip == word or find_misspellings([slip]) == {}:
            assert slip == word or any(nouns.spellings(s) for s in (slip, *nouns.singulars(slip)))
        else:
            assert edit_distance(slip, find_misspellings([slip])[slip]) == 1


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("water_lilly", "water_lily"),
        ("Water-Lilly", "water_lily"),
        ("rhinocerous", "rhinoceros"),
        ("dalmation", "dalmatian"),
        ("sea_loin", "sea_lion"),
        ("dgo", "dog"),
        ("labradore_retreiver", "labrador_retriever"),
        ("water_lilly_2", "water_lily"),
    ],
)
def test_what_was_meant(name, meant):
    assert find_misspellings(["bus", name]) == {name: meant}


def test_names_of_real_data_are_spelt_well():
    """A name that is no noun of WordNet is not misspelt for that: maple tree, sea horses."""
    known = [imagenet_classes().names, *class_names("cifar"), *class_names("animals")]
    assert find_misspellings(dict.fromkeys(name for names in known for name in names)) == {}
    odd = [
        "sea_horses",
        "seahorse",
        "class_17",
        "n02012849",
        "crane.n.04",
        "ash, ash tree",
        "goldfihs, Carassius auratus",
        "ram2",
        "crane (2)",
        "747",
        "***",
        "_",
    ]
    assert find_misspellings(odd) == {}


def test_a_thousand_unknown_words_of_several_parts_are_no_burden():
    """Each has dozens of parts that could each be any of several nouns."""
    assert find_misspellings(["_".join(["bst"] * 40)]) == {}


def test_signs_that_are_no_separators():
    labels = rs.sources.read_class_labels(["C", "Java", "1", "grizzly bear"])
    found = labels.match_all(["C++", "-1", "grizzly+bear", "java"])
    assert found == {"grizzly+bear": "grizzly bear", "java": "Java"}
