"""Where the files are that come with the package."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rankshot.core.errors import RankshotError, short_repr, suggest_name
from rankshot.ranking.files import read_rankings
from rankshot.ranking.rankings import Rankings
from rankshot.semantics.similarity import Similarity
from rankshot.semantics.vectors import ClassVectors

CLASS_FILES = {
    "cifar": ("cifar100_classes.txt", "cifar10_classes.txt"),
    "animals": ("animals_seen_classes.txt", "animals_unseen_classes.txt"),
}
"""By data set: the file of the seen classes and that of the unseen ones, a name a line."""
PANEL_FILES = {"cifar": "language_model_panel.jsonl", "animals": "animals_panel.jsonl"}
HELD_OUT_PANEL_FILES = {"cifar": "held_out_panel.jsonl", "animals": "animals_held_out_panel.jsonl"}
SIMILARITY_FILES = {"cifar": "similarities.npz", "animals": "animals_similarities.npz"}
SOURCES = ("WordNet", "GloVe", "Wikipedia", "word2vec", "GloVe 100d")
VECTOR_SOURCE = "GloVe 100d"
CIFAR_SENSES = {
    "baby": "baby.n.01",
    "boy": "male_child.n.01",
    "castle": "castle.n.02",
    "caterpillar": "caterpillar.n.01",
}
"""For CIFAR-10 and CIFAR-100 together; `WordNet` chooses the other 106 rightly by itself."""
ANIMAL_SENSES: dict[str, str] = {}
"""For Animals with Attributes: `WordNet` chooses all 50 rightly by itself."""


# -------------------- datasets.embedded
# Where the files are that come with the package.


def embedded_file(file: str) -> AbstractContextManager[Path]:
    """Return the path of a data file, good inside ``with``, even from inside a zip.

    Examples
    --------
    >>> with embedded("cifar10_classes.txt") as path:
    ...     print(path.read_text(encoding="utf-8").split()[0])
    airplane
    """
    return as_file(files("rankshot.datasets") / "data" / file)


# -------------------- datasets.class_names
# The names of the classes of both data sets, seen and unseen.


class ClassNames(NamedTuple):
    """The names of the seen and of the unseen classes, each sorted."""

    seen: tuple[str, ...]
    new: tuple[str, ...]


def class_names(dataset: str) -> ClassNames:
    """Return the names of the classes of "cifar" or "animals".

    Examples
    --------
    >>> from rankshot.datasets.embedded import class_names
    >>> seen, unseen = class_names("animals")
    >>> len(seen), unseen[:3]
    (40, ('chimpanzee', 'giant+panda', 'hippopotamus'))
    """
    require_dataset(dataset)
    seen, unseen = CLASS_FILES[dataset]
    return ClassNames(_read_names(seen), _read_names(unseen))


def require_dataset(dataset: Any) -> None:
    """Raise if there is no such data set."""
    if not isinstance(dataset, str) or dataset not in CLASS_FILES:
        hint = f"{suggest_name(dataset, CLASS_FILES)}; there are {' and '.join(map(repr, CLASS_FILES))}"
        raise RankshotError(f"no data set {short_repr(dataset)}{hint}")


def _read_names(file: str) -> tuple[str, ...]:
    with embedded_file(file) as path:
        return tuple(path.read_text(encoding="utf-8").split())


# -------------------- datasets.panel
# The language-model panel: what a new class looks most like, in eight opinions.


def load_panel(dataset: str = "cifar") -> Rankings:
    """Return 80 rankings: 8 raters on 10 unseen classes as targets, top-10 of the seen classes.

    Each rater is a large language model that was asked afresh to put in order the 10 of the seen
    classes that look most like each target. They are a language-model panel, not people.
    ``language_model_panel.md`` beside the data says how they were asked.

    Parameters
    ----------
    dataset : {"cifar", "animals"}
        CIFAR: the classes of CIFAR-10 as targets, the 100 of CIFAR-100 as items. Animals with
        Attributes: 10 animals as targets, the other 40 as items.

    Examples
    --------
    >>> from rankshot.datasets.embedded import load_panel
    >>> load_panel().select(target="cat", rater="lm1")
    Rankings: 1 ranking of 100 items, 1 target, 1 source, 1 rater
      cat: hamster > rabbit > fox > leopard > tiger > lion > raccoon > mouse > …
    >>> load_panel("animals").select(target="persian+cat", rater="lm1")
    Rankings: 1 ranking of 40 items, 1 target, 1 source, 1 rater
      persian+cat: siamese+cat > chihuahua > hamster > rabbit > bobcat > collie > fox
        > dalmatian > …
    """
    seen = class_names(dataset).seen
    return _read_panel(PANEL_FILES[dataset], seen)


def load_held_out_panel(dataset: str = "cifar") -> Rankings:
    """Return 8 rankings each of some *seen* classes played as unseen, top-10 of the others.

    Train on the items alone and classify images of the targets: this is where to choose K, a
    regulariser or weights without a look at unseen classes.

    Parameters
    ----------
    dataset : {"cifar", "animals"}
        CIFAR: 20 of CIFAR-100's classes as targets, the other 80 as items. Animals with
        Attributes: 10 of the 40 seen animals as targets, the other 30 as items.

    Examples
    --------
    >>> from rankshot.datasets.embedded import load_held_out_panel
    >>> load_held_out_panel().select(target="bear", rater="lm1")
    Rankings: 1 ranking of 80 items, 1 target, 1 source, 1 rater
      bear: wolf > lion > chimpanzee > raccoon > tiger > cattle > leopard > fox > …
    """
    seen, file = class_names(dataset).seen, HELD_OUT_PANEL_FILES[dataset]
    held_out = set(_read_panel(file).target_names)
    return _read_panel(file, [name for name in seen if name not in held_out])


def _read_panel(file: str, items: Sequence[str] | None = None) -> Rankings:
    with embedded_file(file) as path:
        return read_rankings(path, items=items)


# -------------------- datasets.similarities
# Similarities of classes by WordNet, by word vectors and by a text.


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
    >>> from rankshot.datasets.embedded import load_similarities
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
        embedded_file(SIMILARITY_FILES[dataset]) as path,
        np.load(path, allow_pickle=False) as arrays,
    ):
        return {
            name: Similarity(
                arrays[name], unseen + seen, seen, name, arrays[f"{name}_notes"].tolist()
            )
            for name in SOURCES
        }


# -------------------- datasets.class_vectors
# Word vectors of the classes, for methods that learn from them.


def load_class_vectors(dataset: str = "cifar") -> ClassVectors:
    """Return the vectors of all classes of a data set by GloVe 6B, 100 numbers each, of length 1.

    A name of several words is the mean of its words, as `WordVectors` has it; ``class_vectors.md``
    beside the data says where they come from. The unseen classes are first, then the seen ones.

    Parameters
    ----------
    dataset : {"cifar", "animals"}

    Examples
    --------
    >>> from rankshot.datasets.embedded import load_class_vectors
    >>> load_class_vectors("animals")
    ClassVectors: 50 names with 100 numbers each, of GloVe 100d
    >>> load_class_vectors().select(["cat", "pickup_truck"]).values.shape
    (2, 100)
    """
    seen, unseen = class_names(dataset)
    with (
        embedded_file("class_vectors.npz") as path,
        np.load(path, allow_pickle=False) as arrays,
    ):
        return ClassVectors(unseen + seen, arrays[dataset], VECTOR_SOURCE)
