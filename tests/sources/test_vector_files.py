"""Files of word vectors: every format gives the same answer, and bad files give our error."""

import gzip
import struct
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from peak_memory import peak_of
from rankshot import RankshotError
from rankshot.sources import vectors
from rankshot.sources.vectors import WordVectors, detect_format

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


def fasttext(words=WORDS, matrix=MATRIX):
    """fastText ends every line with a space."""
    return word2vec(words, matrix).replace(b"\n", b" \n").replace(b" \n", b"\n", 1)


def binary(words=WORDS, matrix=MATRIX, end=b""):
    head = f"{len(words)} {matrix.shape[1]}\n".encode()
    return head + b"".join(
        w.encode() + b" " + struct.pack(f"<{len(v)}f", *v) + end
        for w, v in zip(words, matrix, strict=True)
    )


def binary_of_c(words=WORDS, matrix=MATRIX):
    """The word2vec program itself ends every record with a newline."""
    return binary(words, matrix, b"\n")


WRITERS = [glove, word2vec, fasttext, binary, binary_of_c]


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


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("write", WRITERS)
def test_every_format_gives_the_similarities_of_the_table(read, by_mapping, write, pack):
    table = read(pack(write()), NAMES, WORDS)
    np.testing.assert_array_equal(table.values, by_mapping.values)
    assert (table.notes, table.unknown_targets) == (by_mapping.notes, ("yeti",))


@pytest.mark.parametrize("is_binary", [True, False])
def test_what_gensim_writes(tmp_path, by_mapping, is_binary):
    gensim = pytest.importorskip("gensim.models")
    keyed = gensim.KeyedVectors(MATRIX.shape[1])
    keyed.add_vectors(WORDS, MATRIX)
    path = str(tmp_path / "gensim")
    keyed.save_word2vec_format(path, binary=is_binary)
    expected = "word2vec-binary" if is_binary else "word2vec"
    assert detect_format(tmp_path / "gensim") == expected
    table = WordVectors.from_file(path, source="gensim's").similarity(NAMES, WORDS)
    assert table.source == "gensim's"
    np.testing.assert_allclose(table.values, by_mapping.values, atol=1e-6)


@given(
    # Four bytes of a vector of one or two numbers may happen to be digits.
    st.integers(3, 6).flatmap(
        lambda d: st.lists(
            st.lists(st.floats(-(2.0**90), 2.0**90, width=32), min_size=d, max_size=d),
            min_size=2,
            max_size=4,
        )
    )
)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_numbers_are_detected_and_read_back(tmp_path, rows):
    matrix = np.array(rows, np.float32)
    words = [f"w{i}" for i in range(len(rows))]
    expected = WordVectors(dict(zip(words, matrix, strict=True))).similarity(words, words)
    path = tmp_path / "vectors"
    for write in (glove, word2vec, binary, binary_of_c):
        path.write_bytes(write(words, matrix))
        table = WordVectors.from_file(path).similarity(words, words)
        np.testing.assert_array_equal(table.values, expected.values)


def test_words_with_spaces_as_in_the_largest_glove(read):
    content = b". . . 1 2\nat name@domain.com 3 4\nsea lion 0 1\nat 1 0\nDog 1 0\n"
    table = read(b"the 1 1\n" + content, ["sea lion", "at", "lion"], ["Dog"])
    np.testing.assert_array_equal(table.values[:, 0], [0, 1, np.nan])


# ---- Bad lines


@pytest.mark.parametrize("line", [b"cat 1", b"cat", b"cat 1 nan", b"cat 1 \xff"])
def test_a_bad_line_matters_where_it_is_needed(read, line):
    content = b"the 1 2\n" + line + b"\nDog 3 4\n"
    with pytest.raises(RankshotError, match=r"vectors:2: 'cat' must have 2 finite numbers, not b'"):
        read(content)
    unneeded = read(content, ["the"], ["Dog"])
    assert unneeded.values[0, 0] == pytest.approx(11 / 5 / np.sqrt(5))


# ---- Hostile files


HOSTILE = {
    b" \n\n": "an empty file",
    b"PK\x03\x04 and so on": "a zip archive: unpack it first",
    b"\x80\x04\x95 and so on": "a pickle, which can run code",
    b"\xba\x16\x4f\x2f and so on": "a fastText model",
    b"10 1000000000\ncat \x00\x01": ":1: expected '<words> <dimension>' as word2vec writes",
    b"9" * 40 + b" 300\ncat \x00": "truncated in word 1 of 9",
    b"3 2\ncat 1 2\nDog 3 4\n": "truncated after 2 words",
    b"no vectors here\n": ":1: expected a word and its numbers, not b'no vectors here",
    "cat 1 2\nDog 1 2\n".encode("utf-16"): ":1: expected a word and its numbers",
    b"\x1f\x8b nonsense": "damaged gzip",
    gzip.compress(glove(), mtime=0)[:-20]: "damaged gzip",
    b"\x93NUMPY and nothing": "a NumPy matrix without words",
    binary()[:-3]: "truncated in word 10",
}


@pytest.mark.parametrize(("content", "message"), HOSTILE.items())
def test_hostile_files(read, content, message):
    with pytest.raises(RankshotError, match=f"vectors.*{message}"):
        read(content)


def test_a_binary_vector_must_be_finite(read):
    with pytest.raises(RankshotError, match="vector of 'cat' must be a row of finite numbers"):
        read(binary(["the", "cat", "Dog"], np.array([[1], [np.inf], [1]], np.float32)))


@pytest.mark.parametrize(
    ("write", "pack"),
    [(binary, bytes), (binary_of_c, bytes), (word2vec, bytes), (word2vec, gzip.compress)],
)
def test_cut_anywhere(read, write, pack):
    # The last newline may be absent, and digits of the last number cannot be missed.
    whole = write(WORDS[:3], np.round(40 * MATRIX[:3, :4])).rstrip(b"\n")
    end = whole.rindex(b" ") if write is word2vec else len(whole)
    for size in range(len(b"3 4\n"), end):
        with pytest.raises(RankshotError):
            read(pack(whole[:size]), NAMES, WORDS)


def test_records_across_blocks(read, by_mapping, monkeypatch):
    monkeypatch.setattr(vectors, "MAX_WORD_BYTES", 20)
    for block in (49, 64, 100):
        monkeypatch.setattr(vectors, "_BLOCK_BYTES", block)
        np.testing.assert_array_equal(read(binary(), NAMES, WORDS).values, by_mapping.values)


@pytest.mark.parametrize("start", [b"", b"5 300\nthe 1 ", b"5 300\n"])
def test_a_line_without_end_takes_no_memory(tmp_path, start):
    path = tmp_path / "vectors"
    path.write_bytes(start + b"7" * 10**7)

    def attempt():
        with suppress(RankshotError):
            WordVectors.from_file(path).similarity(["cat"], ["7"])

    assert peak_of(attempt)[0] < 4e6


@pytest.mark.parametrize("numbers", [b"0 " * 999 + b"1\n", b"\0\0\x80?" * 1000])
def test_a_file_is_read_in_blocks(tmp_path, monkeypatch, numbers):
    monkeypatch.setattr(vectors, "_BLOCK_BYTES", 2**18)
    monkeypatch.setattr(vectors, "_SAMPLE_BYTES", 2**15)
    path, words = tmp_path / "vectors", ["cat", *(f"w{i}" for i in range(1000)), "Dog"]
    with path.open("wb") as stream:
        stream.write(b"%d 1000\n" % len(words))
        stream.writelines(word.encode() + b" " + numbers for word in words)
    peak, table = peak_of(lambda: WordVectors.from_file(path).similarity(["cat"], ["Dog"]))
    # Four blocks at most, and half of the file.
    assert peak < min(1.2e6, path.stat().st_size / 1.5)
    assert table["cat", "Dog"] == pytest.approx(1)


# ---- Fuzz


contents = st.one_of(
    st.binary(max_size=300),
    st.text("cat Dog10.-e\n\t\x00", max_size=100).map(str.encode),
    st.builds(
        lambda whole, cut, junk: whole[: cut % len(whole)] + junk + whole[(cut * 7) % len(whole) :],
        st.sampled_from([write() for write in WRITERS]),
        st.integers(0, 10**4),
        st.binary(max_size=8),
    ),
)


@given(contents, st.sampled_from("pgz"))
@settings(
    max_examples=26, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_the_file_holds_the_answer_is_a_table_or_our_error(tmp_path, content, pack):
    path = tmp_path / "fuzzed"
    packed = {"p": content, "g": gzip.compress(content), "z": b"\x1f\x8b\x08" + content}[pack]
    path.write_bytes(packed)
    try:
        table = WordVectors.from_file(path).similarity(NAMES, WORDS)
    except (RankshotError, OSError):
        return
    assert table.targets == tuple(NAMES)
