"""The corpus against counting in plain loops, and against hostile files."""

import gzip
import lzma
import subprocess
import sys
from collections import Counter
from math import log, sqrt

import numpy as np
import pytest

from peak_memory import peak_of
from rankshot.core.errors import RankshotError
from rankshot.sources import corpus as corpus_module
from rankshot.sources.corpus import Corpus, NameIndex, plurals, read_blocks, tokenize

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


def test_phrases_do_not_reach_over_the_end_of_a_text():
    names, _ = NameIndex.build(["sea lion"])
    assert (tokenize("the sea\nlion", names, blank_lines=False).entries < 0).all()
    assert (tokenize("the sea\nlion", names, blank_lines=True).entries >= 0).sum() == 1
    assert (tokenize("the sea\n\nlion", names, blank_lines=True).entries < 0).all()


def test_the_order_of_names_permutes_the_table_and_nothing_else(tmp_path, rng):
    path = write(tmp_path / "c.txt", random_texts(rng))
    forward = Corpus(path).similarity(TARGETS, ITEMS)
    backward = Corpus(path).similarity(TARGETS[::-1], ITEMS[::-1])
    assert backward.select(TARGETS, ITEMS) == forward


def test_rare_names_tie_last_and_are_reported(tmp_path):
    lines = ["the fox ran"] * 6 + ["the bus ran"] * 5 + ["a lion ran"] * 4 + ["the poppy"]
    path = write(tmp_path / "c.txt", lines)
    table = Corpus(path).similarity(["fox"], ["bus", "lion", "poppy", "owl"])
    assert table.to_rankings().orders() == [["bus", ["lion", "poppy"]]]
    assert table.notes == (
        "47 words of c.txt",
        "in the text fewer than 5 times: lion (4), poppy (1)",
        "fox: 2 items tied last, because a name of the pair occurs fewer than 5 times",
    )
    again = Corpus(path, min_count=1).similarity(["fox"], ["bus", "lion", "poppy"])
    assert again["fox", "bus"] > again["fox", "lion"] > 0


# ---- Blocks, processes, files


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(corpus_module, "BLOCK_BYTES", 256)


def test_counts_do_not_depend_on_blocks_and_processes(tmp_path, rng, monkeypatch):
    path = write(tmp_path / "c.txt", random_texts(rng, n=100, longest=20))
    whole = Corpus(path, 5, workers=1, min_count=2).similarity(TARGETS, ITEMS)
    for size, workers in ((300, 1), (1000, 2)):
        monkeypatch.setattr(corpus_module, "BLOCK_BYTES", size)
        assert len(list(read_blocks(path))) > 3
        table = Corpus(path, 5, workers=workers, min_count=2).similarity(TARGETS, ITEMS)
        np.testing.assert_allclose(table.values, whole.values, rtol=1e-13)
        assert table.notes == whole.notes


def test_forgetting_rare_words_keeps_the_frequent_ones(tmp_path, rng, small_blocks, monkeypatch):
    lines = [f"fox red w{i} bus red w{i}x truck" for i in range(300)]
    path = write(tmp_path / "c.txt", lines)
    monkeypatch.setattr(corpus_module, "CONTEXT_WORDS", 4)
    exact = Corpus(path, workers=1).similarity(["fox"], ["bus", "truck"])
    monkeypatch.setattr(corpus_module, "MAX_WORDS", 40)
    assert Corpus(path, workers=1).similarity(["fox"], ["bus", "truck"]) == exact


@pytest.mark.parametrize(("ending", "module"), [(".gz", gzip), (".xz", lzma)])
def test_compressed_equals_plain_and_cut_short_is_refused(
    tmp_path, rng, small_blocks, ending, module
):
    plain = write(tmp_path / "c.txt", random_texts(rng, n=100))
    packed = tmp_path / f"c.txt{ending}"
    packed.write_bytes(module.compress(plain.read_bytes()))
    tables = [
        Corpus(p, 3, min_count=0, workers=1).similarity(TARGETS, ITEMS) for p in (plain, packed)
    ]
    assert tables[0] == tables[1]
    whole = packed.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"no" + whole[2:], whole[:-9] + b"123456789"):
        packed.write_bytes(damaged)
        with pytest.raises(RankshotError, match=rf"c\.txt\{ending}:\d+: the file is damaged"):
            Corpus(packed, 3, workers=1).similarity(TARGETS, ITEMS)


@pytest.mark.parametrize("workers", [1, 2])
def test_wrong_encoding_names_the_line(tmp_path, small_blocks, workers):
    path = tmp_path / "c.txt"
    path.write_bytes(b"fox bus\n" * 200 + b"caf\xe9\n" + b"fox bus\n" * 200)
    with pytest.raises(RankshotError, match=r"c\.txt:201: not UTF-8 text"):
        Corpus(path, workers=workers).similarity(["fox"], ["bus"])


@pytest.mark.parametrize(
    ("piece", "size"),
    [("x", 1_000_000), ("fox bus " + "x" * 4000 + " ", 1_000_000), ("fox and bus ", 100_000)],
    ids=["one word", "one line", "short words"],
)
def test_hostile_files_do_not_fill_the_memory(tmp_path, monkeypatch, piece, size):
    monkeypatch.setattr(corpus_module, "BLOCK_BYTES", 2**15)
    path = tmp_path / "c.txt.xz"
    path.write_bytes(lzma.compress(piece.encode() * (size // len(piece)), preset=0))
    peak, table = peak_of(lambda: Corpus(path, 3, workers=1).similarity(["fox"], ["bus"]))
    assert peak < 3e6
    assert np.isnan(table["fox", "bus"]) != ("fox" in piece)


@pytest.mark.slow
def test_a_script_without_a_guard_works(tmp_path):
    text = write(tmp_path / "c.txt", ["fox bus"] * 200_000)
    script = tmp_path / "script.py"
    script.write_text(
        "from rankshot.sources.corpus import Corpus\n"
        f"corpus = Corpus({str(text)!r}, workers=2)\n"
        "print(corpus.similarity(['fox'], ['fox'])['fox', 'fox'])\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == "1.0\n"


def test_a_character_is_never_cut(tmp_path, small_blocks):
    for shift in range(5):
        path = write(tmp_path / "c.txt", ["x" * shift + "жあ🦊" * 500])
        blocks = list(read_blocks(path))
        assert len(blocks) > 3
        assert "".join(block.text(path) for block in blocks) == path.read_text(encoding="utf-8")


def test_regular_plurals():
    words = ["fox", "bus", "quiz", "torch", "bush", "pony", "monkey", "potato", "cat"]
    found = [" ".join(plurals(word)) for word in words]
    wanted = ["foxes", "buses", "quizes", "torches", "bushes", "ponies", "monkeys"]
    assert found == [*wanted, "potatos potatoes", "cats"]
