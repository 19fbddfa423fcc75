"""Names of classes: labels as they come, one name in many spellings, words to look up."""

import json

import numpy as np
import pytest

import rankshot as rs
from rankshot.datasets import class_names
from rankshot.sources import compare_as, find_misspellings, read_look_up
from rankshot.sources.names import ClassLabels
from rankshot.sources.spelling import reduce_name
from rankshot.sources.wordnet_nouns import load_nouns
from refusals import refuses

IMAGENET = rs.sources.read_class_labels("imagenet-1k")
FIRST = [words[0] for words in IMAGENET.synonyms]
LISTS = [", ".join(words) for words in IMAGENET.synonyms]
PLACES = [[synset, first] for synset, first in zip(IMAGENET.synsets, FIRST, strict=True)]


def fails(source, value):
    with refuses("seen", value):
        rs.sources.read_class_labels(source)


# ---- imagenet-1k


def test_a_word_in_parentheses_chooses_the_sense_or_is_ignored():
    for name, sense in (("crane (bird)", "crane.n.05"), ("maillot (tights)", "maillot.n.02")):
        assert rs.WordNet().senses([name, "bulldozer"])[name].name == sense
    among = ["bulldozer", "excavator"]
    assert rs.WordNet().senses(["crane (machine)", *among])["crane (machine)"].name == "crane.n.04"
    words = rs.WordVectors({"crane": [1, 0], "bus": [1, 1]})
    assert words.similarity(["crane (machine)"], ["bus"]).values == pytest.approx(np.sqrt(0.5))


# ---- Forms of labels


@pytest.mark.parametrize(
    "labels",
    [
        IMAGENET.synsets,
        LISTS,
        PLACES,
        [f"{synset}\t{words}" for synset, words in zip(IMAGENET.synsets, LISTS, strict=True)],
        {str(i): pair for i, pair in reversed(list(enumerate(PLACES)))},
        {name: i for i, name in enumerate(IMAGENET.names)},
        np.array(IMAGENET.names),
    ],
    ids=range(7),
)
def test_imagenet_in_all_its_forms(labels, tmp_path):
    found = rs.sources.read_class_labels(labels)
    assert found.names == IMAGENET.names
    assert found.synsets == IMAGENET.synsets
    assert [set(map(reduce_name, words)) for words in found.synonyms] == [
        set(map(reduce_name, words)) for words in IMAGENET.synonyms
    ]
    if not isinstance(labels, np.ndarray):
        (tmp_path / "labels.json").write_text(json.dumps(labels))
        assert rs.sources.read_class_labels(tmp_path / "labels.json") == found


def test_files_as_they_are_found(tmp_path):
    (tmp_path / "config.json").write_text(
        json.dumps({"id2label": {str(i): name for i, name in enumerate(LISTS)}})
    )
    assert rs.sources.read_class_labels(tmp_path).names == IMAGENET.names
    # A dictionary of Python, which is no JSON.
    (tmp_path / "classes.txt").write_text(repr(dict(enumerate(LISTS))))
    assert rs.sources.read_class_labels(str(tmp_path / "classes.txt")).names == IMAGENET.names
    (tmp_path / "words.txt").write_text("\ufeff# two\ntench, Tinca tinca  # a fish\n\nC#\n")
    assert rs.sources.read_class_labels(tmp_path / "words.txt").names == ("tench", "C#")
    (tmp_path / "odd.txt").write_text("[CLS]\n[SEP]\n")
    assert rs.sources.read_class_labels(tmp_path / "odd.txt").names == ("[CLS]", "[SEP]")


@pytest.mark.parametrize(
    "names",
    [
        ["cat", "water_lilly", "sea-lion", "Crane 2"],
        ["Turkey", "turkey"],
        ["arts, culture and sports", "1,000 m", "0", 7],
        ["crane.n.04", "crane.n.05", "n99999999", "x.n.77"],
    ],
)
def test_plain_names_stay(names):
    labels = rs.sources.read_class_labels(names)
    assert labels.names == labels.given == tuple(map(str, names))
    assert labels.words == {}


def test_classes_of_the_same_word_are_told_apart():
    """By what they are kinds of, by another word, or by their synsets."""
    nouns = load_nouns()

    def name(*senses):
        ids = [nouns.id(nouns.synset(sense)) for sense in senses]
        return rs.sources.read_class_labels(ids).names

    assert name("seal.n.02", "seal.n.09") == ("seal (device)", "seal (pinniped mammal)")
    # Landings are of the same kind, with the same words.
    landings = ("landing (n00052334)", "landing (n00052500)")
    assert name("landing.n.04", "landing.n.03") == landings
    robins = ("robin (erithacus rubecola)", "robin (American robin)")
    assert name("robin.n.01", "robin.n.02") == robins
    every = [nouns.id(synset) for synset in range(0, len(nouns.sizes), 40)]
    names = rs.sources.read_class_labels(every).names
    assert len(set(map(reduce_name, names))) == len(every) > 2000


def test_other_names_in_imagenets_list_keep_no_synset():
    """A network may have other classes at some places."""
    given = [*FIRST[:998], "ferry", "ger, felt tent"]
    labels = rs.sources.read_class_labels(given)
    assert labels.names == (*IMAGENET.names[:998], "ferry", "ger")
    assert labels.synsets == (*IMAGENET.synsets[:998], None, None)
    assert labels.changes[0] == "998 labels are classes of imagenet-1k, with known synsets"
    # The same names in another order are not recognised; then nothing tells the cranes apart.
    fails(FIRST[::-1], "maillot")


# ---- Errors


@pytest.mark.parametrize(
    ("labels", "value"),
    [
        ([], []),
        (["cat", "dog", "cat"], "cat"),
        ({0: "a", 1: "b", 3: "c"}, [3]),
        ({"model_type": "vit", "hidden_size": 3}, ["model_type", "hidden_size"]),
        ("imagenet", "imagenet"),
        (["cat", " "], " "),
        (["cat", True], True),
        (5, 5),
        ({"a", "b"}, {"a", "b"}),
        (b"cat", b"cat"),
    ],
)
def test_labels_that_are_none(labels, value):
    fails(labels, value)


def test_a_file_that_is_not_json_is_named(tmp_path):
    path = tmp_path / "labels.json"
    path.write_text("[1, 2")
    fails(path, str(path))


def test_placeholders_are_reported_and_what_was_read_once_stays():
    labels = rs.sources.read_class_labels(["cat", "LABEL_1", "LABEL_2"])
    [change] = labels.changes
    assert "'LABEL_1'" in change
    assert rs.sources.read_class_labels(labels) is labels


# ---- Matching


def spell(row):
    """The spellings of one class."""
    name, synset, words = IMAGENET.names[row], IMAGENET.synsets[row], LISTS[row]
    yield from (name, name.replace(" ", "_"), name.upper(), synset, f"{synset} {FIRST[row]}")
    nouns = load_nouns()
    yield from (f"{synset}, {words}", nouns.name(nouns.synset(synset)), synset.upper())
    if FIRST.count(FIRST[row]) == 1 or "," in words:
        yield from (words, words.replace(" ", "_"), words.replace(", ", ","))
    if FIRST.count(FIRST[row]) == 1:
        yield FIRST[row]


def test_every_spelling_of_every_class_is_found():
    wrong = [
        (spelling, IMAGENET.match(spelling))
        for row in range(1000)
        for spelling in spell(row)
        if IMAGENET.match(spelling) != [IMAGENET.names[row]]
    ]
    # Without its case, the dog's name is the garment's.
    assert wrong == [("CARDIGAN", ["Cardigan Welsh corgi", "cardigan"])]


def test_a_name_is_found_in_the_singular_and_in_the_plural():
    for classes, name in (("leopard", "leopards"), ("leopards", "leopard"), ("Mice", "mouse")):
        assert ClassLabels.from_names((classes, "bus")).match(name) == [classes]


def test_names_are_matched_to_the_labels_that_they_mean():
    labels = rs.sources.read_class_labels(["n02012849", "n03126707", "sea_lion", "Bow", "bow"])
    names = ["crane (bird)", "n03126707", "Sea Lions", "okapi", "BOW"]
    means = {"crane (bird)": "n02012849", "n03126707": "n03126707", "Sea Lions": "sea_lion"}
    assert labels.match_all(names) == means
    with refuses("names", "sea-lion"):
        labels.match_all(["Sea Lion", "sea-lion"])
    # In ImageNet's list, the places tell the two maillots and cranes apart.
    names = [*FIRST[:517], "crane (machine)", *FIRST[518:639], "maillot, tank suit", *FIRST[640:]]
    found = IMAGENET.match_all(names)
    assert [found[name] for name in ("crane", "maillot")] == ["crane (bird)", "maillot (tights)"]
    assert len(found) == 1000


def test_sources_get_the_name_and_the_other_words_of_a_class():
    labels = rs.sources.read_class_labels(["Tinca, tench", "n02012849", "bus", "crane.n.04"])
    assert labels.words == {"Tinca": "Tinca, tench", "crane (bird)": "crane"}
    assert labels.senses == {"crane (bird)": "n02012849", "crane.n.04": "n03126707"}


# ---- Words to look up


def test_the_source_gets_the_words_and_the_table_has_the_names():
    asked = []

    def compare(targets, items):
        """The longer two words, the more similar they are."""
        asked.append((targets, items))
        values = [[len(target) + 10 * len(item) for item in items] for target in targets]
        return rs.Similarity(values, targets, items, "lengths", ["a note"])

    look_up = {"A": "water lily", "x": "crane", "y": "crane"}
    table = compare_as(compare, ["A", "B"], ["x", "bus", "y"], look_up)
    assert asked == [(("water lily", "B"), ("crane", "bus"))]
    assert (table.targets, table.items, table.source) == (("A", "B"), ("x", "bus", "y"), "lengths")
    assert table.values.tolist() == [[60, 40, 60], [51, 31, 51]]
    assert table.notes == ("a note",)
    with refuses("look_up", "tigre"):
        compare_as(compare, ["cat"], ["tiger"], {"tigre": "tiger"})


def test_a_file_of_words(tmp_path):
    path = tmp_path / "names.csv"
    path.write_bytes(
        b"\xef\xbb\xbfremark,class,look_up\r\n,water_lilly, water lily \r\n\r\n,,\r\n"
        b'x,"a, b",crane\r\n'
    )
    found = read_look_up(path, ["water_lilly", "bus", "a, b"])
    assert found == {"water_lilly": "water lily", "a, b": "crane"}


@pytest.mark.parametrize(
    ("text", "line", "parameter", "value"),
    [
        ("class,look_up\n\ncta,dog\n", 3, "class", "cta"),
        ("class,look_up\ncat,a\ncat,b\n", 3, "class", "cat"),
        ("class,look_up\ncat,\n", 2, "class", "cat"),
        ("class,look_up\ncat,seal.n.99\n", 2, "sense", "seal.n.99"),
        ("class,look_up\ncat,n00000001\n", 2, "sense", "n00000001"),
    ],
)
def test_a_bad_file_of_words_is_named_by_line(tmp_path, text, line, parameter, value):
    path = tmp_path / "names.csv"
    path.write_text(text)
    with refuses(parameter, value) as caught:
        read_look_up(path, ["cat", "bus"])
    assert str(caught.value.where).endswith(f":{line}")


# ---- Spelling


def test_a_letter_too_many_missing_exchanged_or_swapped_is_corrected():
    misspelt = ["giraaffe", "girafe", "gitaffe", "giarffe"]
    assert find_misspellings([*misspelt, "xyzzy"]) == dict.fromkeys(misspelt, "giraffe")


def test_names_of_real_data_are_spelt_well():
    """A name that is no noun of WordNet is not misspelt for that: maple tree, sea horses."""
    known = [IMAGENET.names, *class_names("cifar"), *class_names("animals")]
    assert find_misspellings(dict.fromkeys(name for names in known for name in names)) == {}
    odd = ["sea_horses", "seahorse", "class_17", "n02012849", "crane.n.04", "ash, ash tree"]
    odd += ["goldfihs, Carassius auratus", "ram2", "crane (2)", "747", "***", "_"]
    # Many parts, each of which could be any of several nouns, are no burden.
    assert find_misspellings([*odd, "_".join(["boft"] * 15)]) == {}
