"""The corpus against counting in plain loops, and tables of hit counts."""

import gzip
import lzma
from collections import Counter
from math import log, sqrt

import numpy as np
import pytest

from rankshot.core.errors import RankshotError
from rankshot.sources import corpus as corpus_module
from rankshot.sources.corpus import Corpus, plurals, read_hit_counts
from refusals import refuses

TARGETS = ["truck", "Sea_lion", "fox"]
ITEMS = ["pickup_truck", "lion", "poppy", "bus", "fox", "unicorn"]
REGULAR = ("truck", "Sea_lion", "pickup_truck", "lion", "unicorn")
FORMS = {name: [text := name.lower().replace("_", " "), text + "s"] for name in REGULAR}
FORMS |= {"fox": ["fox", "foxes"], "poppy": ["poppy", "poppies"], "bus": ["bus", "buses"]}
WORDS = ["truck", "trucks", "sea", "lion", "lions", "pickup", "poppies", "Bus", "foxes", "fox"]
WORDS += ["a", "the", "of", "red"]


# ---- The truth, in loops


def joined_loops(text):
    """The words of a text; each name in it as ("name",)."""
    words = "".join(c if c.isalnum() else " " for c in text.lower()).split()
    forms = {tuple(form.split()): name for name, all_ in FORMS.items() for form in all_}
    result = []
    while words:
        for size in (2, 1):
            name = forms.get(tuple(words[:size]))
            if name is not None:
                break
        result.append((name,) if name else words[0])
        words = words[size if name else 1 :]
    return result


def vectors_loops(texts, width):
    """The association of each name with each word, by the definition in the docstring."""
    joined = [words for words in map(joined_loops, texts) if words]
    near, totals, near_totals = {name: Counter() for name in FORMS}, Counter(), Counter()
    whole = sum(map(len, joined))
    for words in joined:
        totals.update(words)
        for i, word in enumerate(words):
            for j, other in enumerate(words):
                if isinstance(word, tuple) and other != word and abs(i - j) < width:
                    near[word[0]][other] += width - abs(i - j)
                    near_totals[word[0]] += width - abs(i - j)
    return {
        name: {
            w: max(0, log(n * whole / (near_totals[name] * totals[w]))) for w, n in counts.items()
        }
        for name, counts in near.items()
    }


def cosine_loops(a, b):
    size = sqrt(sum(x * x for x in a.values()) * sum(x * x for x in b.values()))
    return sum(x * b.get(word, 0) for word, x in a.items()) / size if size else 0.0


def random_texts(rng, n=40, longest=60):
    pieces = [word + mark for word in WORDS for mark in (" ", " ", " ", ", ", "-", "_", "  ")]
    return ["".join(rng.choice(pieces, size)) for size in rng.integers(1, longest, n)]


def write(path, texts, end="\n"):
    path.write_text(end.join(texts), encoding="utf-8")
    return path


# ---- Counting


@pytest.mark.parametrize("width", [2, 4, 50])
def test_cosine_against_loops(tmp_path, rng, width):
    texts = random_texts(rng)
    path = write(tmp_path / "c.txt", texts)
    table = Corpus(path, width).similarity(TARGETS, ITEMS)
    vectors = vectors_loops(texts, width)
    for a in TARGETS:
        for b in ITEMS[:-1]:
            assert table[a, b] == pytest.approx(cosine_loops(vectors[a], vectors[b]), abs=1e-12)
    assert table.unknown_items == ("unicorn",)
    assert table.coverage == 15 / 18


def test_rare_names_are_unknown_and_reported(tmp_path):
    lines = ["the fox ran"] * 6 + ["the bus ran"] * 5 + ["a lion ran"] * 4 + ["the poppy"]
    path = write(tmp_path / "c.txt", lines)
    table = Corpus(path).similarity(["fox"], ["bus", "lion", "poppy", "owl"])
    assert table.unknown_items == ("lion", "poppy", "owl")
    assert table.to_rankings().orders() == [["bus"]]
    assert table.notes == (
        "47 words of c.txt",
        "in the text fewer than 5 times: lion (4), poppy (1)",
    )
    again = Corpus(path, min_count=1).similarity(["fox"], ["bus", "lion", "poppy"])
    assert again["fox", "bus"] > again["fox", "lion"] > 0


# ---- Files


def test_counts_do_not_depend_on_blocks(tmp_path, rng, monkeypatch):
    path = write(tmp_path / "c.txt", random_texts(rng, n=100, longest=20))
    whole = Corpus(path, 5, min_count=2).similarity(TARGETS, ITEMS)
    monkeypatch.setattr(corpus_module, "BLOCK_LINES", 7)
    table = Corpus(path, 5, min_count=2).similarity(TARGETS, ITEMS)
    np.testing.assert_allclose(table.values, whole.values, rtol=1e-13)
    assert table.notes == whole.notes


@pytest.mark.parametrize(("ending", "module"), [(".gz", gzip), (".xz", lzma)])
def test_compressed_equals_plain_and_cut_short_is_refused(tmp_path, rng, ending, module):
    plain = write(tmp_path / "c.txt", random_texts(rng, n=100))
    packed = tmp_path / f"c.txt{ending}"
    packed.write_bytes(module.compress(plain.read_bytes()))
    tables = [Corpus(p, 3, min_count=1).similarity(TARGETS, ITEMS) for p in (plain, packed)]
    assert tables[0] == tables[1]
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(RankshotError):
        Corpus(packed, 3).similarity(TARGETS, ITEMS)


def test_regular_plurals():
    words = ["fox", "bus", "quiz", "torch", "bush", "pony", "monkey", "potato", "cat"]
    found = [" ".join(plurals(word)) for word in words]
    wanted = ["foxes", "buses", "quizes", "torches", "bushes", "ponies", "monkeys"]
    assert found == [*wanted, "potatos potatoes", "cats"]


# ---- Hit counts

HEADER = "target,item,n_target,n_item,n_both\n"


@pytest.fixture
def write_hits(tmp_path):
    def write(text):
        path = tmp_path / "flickr.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_file_with_missing_pairs_and_silent_names(write_hits):
    path = write_hits(
        "\ufeffn_both,item,target,n_item,n_target,when\n"
        '4,"fox, red",cat,20,10,x\n'
        "\n"
        "0,bus,cat,5,10,x\n"
        "1,bus,dog,5,8,x\n"
        "0,owl,dog,0,8,x\n"
    )
    table = read_hit_counts(path)
    assert (table.targets, table.items) == (("cat", "dog"), ("fox, red", "bus", "owl"))
    expected = [[8 / 30, 0, np.nan], [np.nan, 2 / 13, np.nan]]
    np.testing.assert_allclose(table.values, expected)
    assert table.unknown_items == ("owl",)
    assert table.source == "flickr"


@pytest.mark.parametrize(
    ("rows", "line", "parameter", "value"),
    [
        ("cat,fox,10,20,11\n", 2, "counts", [10, 20, 11]),
        ("cat,fox,10,20,1\ncat,fox,10,20,1\n", 3, "pair", ("cat", "fox")),
        ("cat,fox,10,20,-1\n", 2, "counts", [10, 20, -1]),
    ],
)
def test_impossible_counts_are_refused_with_their_line(write_hits, rows, line, parameter, value):
    with refuses(parameter, value) as caught:
        read_hit_counts(write_hits(HEADER + rows))
    assert caught.value.where.endswith(f":{line}")
