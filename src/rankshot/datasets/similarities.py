"""Similarities of CIFAR's classes by WordNet, by word vectors and by a text."""

from __future__ import annotations

from importlib.resources import as_file, files

import numpy as np

from rankshot.datasets.cifar import cifar10_classes, cifar100_classes
from rankshot.semantics.similarity import Similarity

SOURCES = ("WordNet", "GloVe", "Wikipedia")


def load_similarities() -> dict[str, Similarity]:
    """Return the tables of three sources: all 110 classes of CIFAR against the 100 seen ones.

    The targets are the 10 unseen classes and then the 100 seen ones, each of which is compared
    with itself, too. What a source does not know is NaN: Wikipedia's slice never mentions
    sweet_pepper. The tables' ``notes`` say how each name was read; ``similarities.md`` beside the
    data says how the tables were made, and what they are not good for.

    Returns
    -------
    dict of str to Similarity
        "WordNet" (path similarity), "GloVe" (cosine of word vectors) and "Wikipedia" (cosine of
        co-occurrence vectors).

    Examples
    --------
    >>> from rankshot.datasets.similarities import load_similarities
    >>> tables = load_similarities()
    >>> for name, table in tables.items():
    ...     print(f"{name:<10}{table['cat', 'tiger']:.2f}  {table['cat', 'bus']:.2f}")
    WordNet   0.25  0.06
    GloVe     0.62  0.31
    Wikipedia 0.15  0.14
    >>> tables["Wikipedia"].unknown_items
    ('sweet_pepper',)
    """
    seen = cifar100_classes()
    targets = cifar10_classes() + seen
    with (
        as_file(files("rankshot.datasets") / "data" / "similarities.npz") as path,
        np.load(path, allow_pickle=False) as arrays,
    ):
        return {
            name: Similarity(arrays[name], targets, seen, name, arrays[f"{name}_notes"].tolist())
            for name in SOURCES
        }
