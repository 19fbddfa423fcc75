"""Files of word vectors: every format gives the same answer, and bad files give our error."""

import numpy as np
import pytest

from rankshot.core.errors import InputError
from rankshot.sources.vectors import WordVectors
from refusals import refuses

rng = np.random.default_rng(0)
WORDS = ["the", "cat", "Dog", "polar_bear", "café", "日本", "sea-lion", "5", "maple", "tree"]
MATRIX = rng.normal(size=(len(WORDS), 7)).astype(np.float32)
NAMES = ["Cat", "dog", "polar bear", "café", "日本", "sea_lion", "maple_tree", "yeti"]


def digits(vector):
    return " ".join(repr(float(x)) for x in vector)


def glove(words=WORDS, matrix=MATRIX):
    return "".join(f"{w} {digits(v)}\n" for w, v in zip(words, matrix, strict=True)).encode()


def word2vec(words=WORDS, matrix=MATRIX):
    return f"{len(words)} {matrix.shape[1]}\n".encode() + glove(words, matrix)


def binary(words=WORDS, matrix=MATRIX):
    head = f"{len(words)} {matrix.shape[1]}\n".encode()
    records = [w.encode() + b" " + v.tobytes() for w, v in zip(words, matrix, strict=True)]
    return head + b"".join(records)


@pytest.fixture
def read(tmp_path):
    """Write bytes to a file and ask it for similarities."""

    def read(content, targets=("cat",), items=("Dog",)):
        path = tmp_path / "vectors"
        path.write_bytes(content)
        return WordVectors.from_file(path).similarity(targets, items)

    return read


@pytest.fixture
def by_mapping():
    return WordVectors(dict(zip(WORDS, MATRIX, strict=True))).similarity(NAMES, WORDS)


# ---- The same answer


@pytest.mark.parametrize("write", [glove, word2vec, binary])
def test_every_format_gives_the_similarities_of_the_table(read, by_mapping, write):
    if write is binary:
        pytest.importorskip("gensim")
    table = read(write(), NAMES, WORDS)
    np.testing.assert_allclose(table.values, by_mapping.values, rtol=1e-6)
    assert (table.notes, table.unknown_targets) == (by_mapping.notes, ("yeti",))


def test_words_with_spaces_as_in_the_largest_glove(read):
    content = b". . . 1 2\nat name@domain.com 3 4\nsea lion 0 1\nat 1 0\nDog 1 0\n"
    table = read(b"the 1 1\n" + content, ["sea lion", "at", "lion"], ["Dog"])
    np.testing.assert_array_equal(table.values[:, 0], [0, 1, np.nan])


# ---- Bad lines and files


@pytest.mark.parametrize("line", [b"cat 1", b"cat", b"cat 1 nan", b"cat 1 \xff"])
def test_a_bad_line_matters_where_it_is_needed(read, line):
    content = b"the 1 2\n" + line + b"\nDog 3 4\n"
    with refuses("line") as caught:
        read(content)
    assert caught.value.where.endswith("vectors, line 2")
    unneeded = read(content, ["the"], ["Dog"])
    assert unneeded.values[0, 0] == pytest.approx(11 / 5 / np.sqrt(5))


@pytest.mark.parametrize(
    "content",
    [b"", b" \n\n", binary()[:-3]],
    ids=["empty", "blank", "cut"],
)
def test_what_is_not_a_complete_file_of_vectors_is_refused(read, content):
    with pytest.raises(InputError):
        read(content)
