"""The data that come with the package: class names, panels, similarities, vectors, ballots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.ranking.ranking_files import read_rankings
from rankshot.ranking.rankings import Rankings
from rankshot.sources.similarity import Similarity
from rankshot.sources.vectors import ClassVectors

QUESTIONS = {
    "cifar": ("photographs", "contrast", "similar"),
    "animals": ("photographs", "contrast", "similar"),
    "intents": ("requests",),
}
"""For each data set: the questions that the panel was asked, the default first."""
SOURCES = ("WordNet", "GloVe", "Wikipedia", "word2vec", "GloVe 100d")
VECTOR_SOURCE = "GloVe 100d"
CIFAR_SENSES = {
    "boy": "male_child.n.01",
    "bridge": "bridge.n.01",
    "mushroom": "mushroom.n.05",
    "television": "television_receiver.n.01",
}
"""WordNet senses for CIFAR-10 and CIFAR-100; `WordNet` chooses the other 106 correctly, and all 50
of Animals with Attributes."""


def embedded_file(file: str) -> AbstractContextManager[Path]:
    """Return the path of a data file, valid inside ``with``, even if the package is in a zip."""
    return as_file(files("rankshot.datasets") / "data" / file)


@contextmanager
def embedded_arrays(file: str) -> Iterator[Any]:
    """Open the arrays of an .npz data file."""
    with embedded_file(file) as path, np.load(path, allow_pickle=False) as arrays:
        yield arrays


def embedded_rankings(file: str, items: Sequence[str] | None = None) -> Rankings:
    """Return the rankings of a data file."""
    with embedded_file(file) as path:
        return read_rankings(path, items=items)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Make the array read-only and return it."""
    array.flags.writeable = False
    return array


# ---- Class names


class ClassNames(NamedTuple):
    """The names of the seen and of the new classes, each sorted.

    Attributes
    ----------
    seen, new : tuple of str
        The seen and the new classes.

    Examples
    --------
    >>> from rankshot.datasets import class_names
    >>> seen, new = class_names("animals")
    >>> len(seen), len(new), new[:2]
    (40, 10, ('chimpanzee', 'giant+panda'))
    """

    seen: tuple[str, ...]
    new: tuple[str, ...]


def class_names(dataset: str) -> ClassNames:
    """Return the names of the seen and new classes of a data set.

    Parameters
    ----------
    dataset : {"cifar", "animals", "intents"}

    Examples
    --------
    >>> from rankshot.datasets import class_names
    >>> class_names("animals").new[:3]
    ('chimpanzee', 'giant+panda', 'hippopotamus')
    """
    if dataset not in QUESTIONS:
        hint = f"{suggest_name(dataset, QUESTIONS)}; there are {quote_names(QUESTIONS)}"
        raise RankshotError(f"no data set {short_repr(dataset)}{hint}")
    folder = files("rankshot.datasets") / "data"
    paths = [folder / f"{dataset}_{kind}_classes.txt" for kind in ClassNames._fields]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    return ClassNames(*(tuple(text.split()) for text in texts))


# ---- The language-model panel


def load_panel(dataset: str = "cifar", question: str | None = None) -> Rankings:
    """Return the rankings of a language-model panel: seen classes, for each new class as target.

    Each rater is a separate run of a large language model. The raters are not people. They saw no
    image, score or result, but may have read about such data sets. ``language_model_panel.md``, in
    the data folder, contains the full questions.

    Parameters
    ----------
    dataset : {"cifar", "animals", "intents"}
        CIFAR: the 10 classes of CIFAR-10 as targets, the 100 of CIFAR-100 as items. Animals with
        Attributes: 10 animals as targets, the other 40 as items. Intents (CLINC150): 30 intents
        as targets, the other 120 as items.
    question : {"photographs", "contrast", "similar", "requests"}, optional
        What the raters were asked. ``"photographs"``, the default for images: which classes would a
        classifier predict most often for photographs of the target (6 raters, the first 15)?
        ``"contrast"``: which would it predict more often for this target than for the other targets
        (4 raters, the first 15)? ``"similar"``: which are most similar to the target (8 raters, the
        first 10)? ``"requests"``, the only one for intents: which would a text classifier predict
        most often for requests of this intent (4 raters, the first 10)?

    Returns
    -------
    Rankings
        Their source is "language-model panel: " and the question, so that the rankings of
        several questions can be concatenated.

    Examples
    --------
    >>> from rankshot.datasets import load_panel
    >>> load_panel().select(target="cat", rater="ph1")
    Rankings: 1 ranking of 100 items, 1 target, 1 source, 1 rater
      cat: mouse > rabbit > hamster > raccoon > possum > fox > wolf > skunk > …
    >>> load_panel("animals", "similar").select(target="persian+cat", rater="lm1")
    Rankings: 1 ranking of 40 items, 1 target, 1 source, 1 rater
      persian+cat: siamese+cat > chihuahua > hamster > rabbit > bobcat > collie > fox
        > dalmatian > …
    """
    return _read_panel("panel", dataset, question)


def load_held_out_panel(dataset: str = "cifar", question: str | None = None) -> Rankings:
    """Return the panel's rankings for some *seen* held-out classes.

    Train on the items only and classify inputs of the targets, to choose K, a regulariser or
    weights without using the new classes.

    Parameters
    ----------
    dataset : {"cifar", "animals", "intents"}
        CIFAR: 20 of CIFAR-100's classes as targets, the other 80 as items. Animals with
        Attributes: 10 of the 40 seen animals as targets, the other 30 as items. Intents: 30 of
        the 120 seen intents as targets, the other 90 as items.
    question : {"photographs", "contrast", "similar", "requests"}, optional
        What the raters were asked, as for `load_panel`.

    Examples
    --------
    >>> from rankshot.datasets import load_held_out_panel
    >>> load_held_out_panel().select(target="bear", rater="ph1")
    Rankings: 1 ranking of 80 items, 1 target, 1 source, 1 rater
      bear: chimpanzee > cattle > porcupine > otter > wolf > lion > seal > raccoon > …
    """
    panel = _read_panel("held_out_panel", dataset, question)
    held_out = set(panel.target_names)
    return panel.change_items(tuple(name for name in panel.items if name not in held_out))


def _read_panel(which: str, dataset: str, question: str | None) -> Rankings:
    items, known = class_names(dataset).seen, QUESTIONS[dataset]
    if question is not None and question not in known:
        hint = f"{suggest_name(question, known)}; the panel was asked {quote_names(known)}"
        raise RankshotError(f"no question {short_repr(question)} for {dataset!r}{hint}")
    rankings = embedded_rankings(f"{dataset}_{which}.jsonl", items)
    return rankings.select(source=panel_source(question or known[0]))


def panel_source(question: str) -> str:
    """Return the source of the panel's rankings for a question."""
    return f"language-model panel: {question}"


# ---- Similarities and vectors


def load_similarities(dataset: str = "cifar") -> dict[str, Similarity]:
    """Return the tables of several sources: all classes of a data set against the seen ones.

    The targets are the new classes and then the seen ones, each of which is compared with
    itself as well. Unknown similarities are NaN: sweet_pepper does not occur in the part of
    Wikipedia that was used. The tables' ``notes`` report how each name was looked up;
    ``similarities.md``, in the folder of the data, describes how the tables were made, and their
    limits.

    Parameters
    ----------
    dataset : {"cifar", "animals", "intents"}
        CIFAR has 100 seen classes, Animals with Attributes 40, intents 120.

    Returns
    -------
    dict of str to Similarity
        "WordNet" (path similarity), "GloVe" (cosine of word vectors of 50 numbers), "Wikipedia"
        (cosine of co-occurrence vectors), "word2vec" (cosine of word vectors trained on the
        same text) and "GloVe 100d" (cosine of word vectors of 100 numbers). Intents have only
        the two of GloVe: WordNet describes things, and few names of intents occur in a
        text.

    Examples
    --------
    >>> from rankshot.datasets import load_similarities
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
    seen, new = class_names(dataset)
    with embedded_arrays(f"{dataset}_similarities.npz") as arrays:
        return {
            name: Similarity(arrays[name], new + seen, seen, name, arrays[f"{name}_notes"].tolist())
            for name in SOURCES
            if name in arrays
        }


def load_class_vectors(dataset: str = "cifar") -> ClassVectors:
    """Return the GloVe 6B vectors of all classes of a data set, 100 numbers each, of length 1.

    A name of several words has the mean of the vectors of its words, as in `WordVectors`;
    ``class_vectors.md``, in the folder of the data, describes where they come from. The new
    classes are first, then the seen ones. The intent ``rollover_401k`` has no vector (NaN).

    Parameters
    ----------
    dataset : {"cifar", "animals", "intents"}
        The data set.

    Examples
    --------
    >>> from rankshot.datasets import load_class_vectors
    >>> load_class_vectors("animals")
    ClassVectors: 50 names with 100 numbers each, of GloVe 100d
    >>> load_class_vectors().select(["cat", "pickup_truck"]).values.shape
    (2, 100)
    """
    seen, new = class_names(dataset)
    with embedded_arrays("class_vectors.npz") as arrays:
        return ClassVectors(new + seen, arrays[dataset], VECTOR_SOURCE)


# ---- An election


def load_election() -> Rankings:
    """Return the ballots of an election of the American Psychological Association in 1980.

    15,449 members ranked one to five candidates; 5,738 of the ballots are complete. Diaconis (1989)
    describes the data, and many books and packages use them. ``apa_1980.md``, in the data folder,
    describes their origin.

    Returns
    -------
    Rankings
        205 different top-K rankings of "candidate 1" to "candidate 5". The weight of a ranking is
        the number of its ballots. A ballot that names four candidates is complete.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.datasets import load_election
    >>> ballots = load_election()
    >>> int(ballots.weights.sum()), int(ballots[ballots.lengths >= 4].weights.sum())
    (15449, 5738)
    >>> rs.ranking.condorcet_winner(ballots)
    'candidate 3'
    """
    return embedded_rankings("apa_1980.soi")
