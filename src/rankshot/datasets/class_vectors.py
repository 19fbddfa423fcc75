"""Word vectors of the classes, for methods that learn from them."""

from __future__ import annotations

import numpy as np

from rankshot.datasets.class_names import class_names
from rankshot.datasets.embedded import embedded
from rankshot.semantics.class_vectors import ClassVectors

SOURCE = "GloVe 100d"


def load_class_vectors(dataset: str = "cifar") -> ClassVectors:
    """Return the vectors of all classes of a data set by GloVe 6B, 100 numbers each, of length 1.

    A name of several words is the mean of its words, as `WordVectors` has it; ``class_vectors.md``
    beside the data says where they come from. The unseen classes are first, then the seen ones.

    Parameters
    ----------
    dataset : {"cifar", "animals"}

    Examples
    --------
    >>> from rankshot.datasets.class_vectors import load_class_vectors
    >>> load_class_vectors("animals")
    ClassVectors: 50 names with 100 numbers each, of GloVe 100d
    >>> load_class_vectors().select(["cat", "pickup_truck"]).values.shape
    (2, 100)
    """
    seen, unseen = class_names(dataset)
    with (
        embedded("class_vectors.npz") as path,
        np.load(path, allow_pickle=False) as arrays,
    ):
        return ClassVectors(unseen + seen, arrays[dataset], SOURCE)
