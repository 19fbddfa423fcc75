"""Training word2vec on a text, with the names of classes as words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, quote_names
from rankshot.core.progress import ProgressLine
from rankshot.core.validation import as_names
from rankshot.sources.cooccurrence import NameIndex, TokenizedText, tokenize
from rankshot.sources.corpus import read_blocks

MAX_SENTENCE = 10_000
"""The most words in a sentence: gensim silently drops those beyond it."""


def train_word2vec(
    path: str | Path,
    names: Iterable[Any],
    vector_size: int = 100,
    *,
    window: int = 10,
    epochs: int = 5,
    min_count: int = 5,
    seed: int = 0,
    workers: int = 1,
    verbose: bool = False,
) -> dict[str, NDArray[np.float32]]:
    """Train skip-gram word2vec on a text and return the vectors of the names.

    Names are found as `Corpus` finds them (phrases, plurals, the longest first), and each is one
    word to the model: "pickup trucks" is trained as ``pickup_truck``. Use it for texts of a
    special field whose words pretrained vectors do not contain; a small corpus gives poor
    vectors.

    Parameters
    ----------
    path : str or Path
        UTF-8 text, plain or compressed, as for `Corpus`. It is read once to count the words, and
        then once per epoch.
    names : iterable of names
        The names to find vectors for.
    vector_size, window, epochs, min_count, seed : int
        As in gensim. Names that occur fewer than ``min_count`` times get no vector.
    workers : int
        The number of threads. With more than one, the vectors differ from run to run.
    verbose : bool
        Show progress.

    Returns
    -------
    dict
        The vector of each name that occurs often enough; the other names are left out.

    Examples
    --------
    >>> from pathlib import Path
    >>> from rankshot import train_word2vec
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "zoo.txt"
    ...     _ = path.write_text("Sea lions swim. Cats do not. " * 9)
    ...     vectors = train_word2vec(path, ["sea_lion", "cat", "bus"], vector_size=4)
    >>> {name: vector.shape for name, vector in vectors.items()}
    {'sea_lion': (4,), 'cat': (4,)}
    """
    wanted = as_names(names, "names")
    index, entry = NameIndex.build(wanted)
    model = _gensim_word2vec()(
        vector_size=vector_size,
        window=window,
        min_count=min_count,
        seed=seed,
        workers=workers,
        epochs=epochs,
        sg=1,
    )
    with ProgressLine("word2vec", enabled=verbose) as line:
        sentences = _Sentences(Path(path), index, line)
        model.build_vocab(sentences)
        _require_vocabulary(model, path, wanted, min_count)
        model.train(sentences, total_examples=model.corpus_count, epochs=epochs)
    words = [index.entries[i].replace(" ", "_") for i in entry]
    known = model.wv.key_to_index
    return {
        name: np.array(model.wv[word])
        for name, word in zip(wanted, words, strict=True)
        if word in known
    }


def _gensim_word2vec() -> Any:
    try:
        return import_module("gensim.models").Word2Vec
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "gensim":
            raise
        raise RankshotError(
            "training word2vec needs gensim: pip install 'rankshot[corpus]'"
        ) from None


def _require_vocabulary(
    model: Any, path: str | Path, names: tuple[str, ...], min_count: int
) -> None:
    if not len(model.wv):
        raise RankshotError(
            f"{path}: no word occurs {min_count} times, so no vectors can be trained for "
            f"{quote_names(names)}"
        )


@dataclass(frozen=True)
class _Sentences:
    """The paragraphs of a text as lists of words; each iteration reads the file again."""

    path: Path
    names: NameIndex
    line: ProgressLine

    def __iter__(self) -> Iterator[list[str]]:
        name_tokens = [entry.replace(" ", "_") for entry in self.names.entries]
        for block in read_blocks(self.path, paragraphs=True):
            self.line.update(f"line {block.line:,}")
            text = block.text(self.path)
            found = tokenize(text, self.names, blank_lines=block.blank_lines)
            yield from _sentences(found, name_tokens)


def _sentences(found: TokenizedText, names: list[str]) -> Iterator[list[str]]:
    vocabulary = [*found.vocabulary, *names]
    plain = len(found.vocabulary)
    tokens = np.where(found.entries >= 0, plain + found.entries, found.words)
    ends = np.flatnonzero(np.diff(found.texts)) + 1
    for sentence in np.split(tokens, ends):
        for start in range(0, sentence.size, MAX_SENTENCE):
            part = sentence[start : start + MAX_SENTENCE]
            yield [vocabulary[token] for token in part.tolist()]
