"""Similarities of classes by WordNet, by word vectors and by a text."""

from __future__ import annotations

import numpy as np

from rankshot.datasets.class_names import class_names
from rankshot.datasets.embedded import embedded
from rankshot.semantics.similarity import Similarity

FILES = {"cifar": "similarities.npz", "animals": "animals_similarities.npz"}
SOURCES = ("WordNet", "GloVe", "Wikipedia", "word2vec", "GloVe 100d")


def load_similarities(dataset: str = "cifar") -> dict[str, Similarity]:
    """Return the tables of five sources: all classes of a data set against the seen ones.

    The targets are the 10 unseen classes and then the seen ones, each of which is compared
    with itself, too. What a source does not know is NaN: Wikipedia's slice never mentions
    sweet_pepper. The tables' ``notes`` say how each name was read; ``similarities.md`` beside the
    data says how the tables were made, and what they are not good for.

    Parameters
    ----------
    dataset : {"cifar", "animals"}
        CIFAR has 100 seen classes, Animals with Attributes 40.

    Returns
    -------
    dict of str to Similarity
        "WordNet" (path similarity), "GloVe" (cosine of word vectors of 50 numbers), "Wikipedia"
        (cosine of co-occurrence vectors), "word2vec" (cosine of word vectors trained on the
        same text) and "GloVe 100d" (cosine of word vectors of 100 numbers).

    Examples
    --------
    >>> from rankshot.datasets.similarities import load_similarities
    >>> tables = load_similarities()
    >>> for name, table in tables.items():
    ...     print(f"{name:<11}{table['cat', 'tiger']:.2f}  {table['cat', 'bus']:.2f}")
    WordNet    0.25  0.06
    GloVe      0.62  0.31
    Wikipedia  0.15  0.14
    word2vec   0.40  0.22
    GloVe 100d 0.54  0.20
    >>> tables["Wikipedia"].unknown_items
    ('sweet_pepper',)
    """
    seen, unseen = class_names(dataset)
    with (
        embedded(FILES[dataset]) as path,
        np.load(path, allow_pickle=False) as arrays,
    ):
        return {
            name: Similarity(
                arrays[name], unseen + seen, seen, name, arrays[f"{name}_notes"].tolist()
            )
            for name in SOURCES
        }
