"""The data that come with the package, except images: names, panels, vectors, texts, sounds."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
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
from rankshot.zeroshot.scores import Scores

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
    """Return a language-model panel's rankings of the seen classes, for each new class as target.

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
    """Return the panel's rankings for some held-out *seen* classes.

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
        "WordNet" (path similarity), "GloVe" (cosine of 50-dimensional word vectors), "Wikipedia"
        (cosine of co-occurrence vectors), "word2vec" (cosine of word vectors trained on the same
        text) and "GloVe 100d" (cosine of 100-dimensional word vectors). Intents have only the two
        GloVe tables: WordNet describes things, and few names of intents occur in a text.

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
    """Return the GloVe 6B vectors of all classes of a data set: 100 dimensions, unit length.

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
    ClassVectors: 50 names with 100 numbers each, from GloVe 100d
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


# ---- Sounds

SOUNDS_FILE = "sounds_scores.npz"
SOUNDS_PANEL_FILE = "sounds_panel.jsonl"


class SoundScores(NamedTuple):
    """Scores and features of a network that knows 40 sounds, for clips of ten other sounds.

    Attributes
    ----------
    scores : Scores
        The network's logits for 400 clips, 40 of each new class, with ``features``: the 256 inputs
        of its last layer.
    labels : ndarray of str
        The new class of each clip.
    clips : ndarray of str
        The file of each clip in ESC-50; the second number in its name is the clip's number at
        freesound.org, where its author is named.
    rankings : Rankings
        For each new class the first twelve seen classes, by four raters, large language models.

    Examples
    --------
    >>> from rankshot.datasets import load_sounds
    >>> data = load_sounds()
    >>> data.scores.values.shape, data.scores.features.shape, str(data.labels[0])
    ((400, 40), (400, 256), 'dog')
    """

    scores: Scores
    labels: NDArray[np.str_]
    clips: NDArray[np.str_]
    rankings: Rankings


def load_sounds() -> SoundScores:
    """Return the scores of a network for recordings of ten sounds, and rankings of their classes.

    The recordings are those of ESC-10, a part of ESC-50 (Piczak 2015). The network was trained on
    the other 40 classes of ESC-50. There is no reference: the recordings of these classes may not
    be used commercially, so their scores are not included. ``sounds.md``, in the folder of the
    data, describes the network, the raters and the licences.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.datasets import load_sounds
    >>> data = load_sounds()
    >>> data.rankings.select(target="dog", rater="rater-1")
    Rankings: 1 ranking of 40 items, 1 target, 1 source, 1 rater
      dog: crow > coughing > hen > cat > laughing > sheep > door_wood_knock > can_opening > …
    >>> head = rs.WeightedMean().fit(data.rankings)
    >>> accuracy = (head.predict(data.scores) == data.labels).mean()
    >>> print(f"{accuracy:.2f}, where chance is {1 / len(head.classes_):.2f}")
    0.56, where chance is 0.10
    """
    with embedded_arrays(SOUNDS_FILE) as arrays:
        seen = tuple(arrays["classes"].tolist())
        values = arrays["logits"].astype(np.float32)
        # The file has whole steps, one row per dimension.
        features = np.multiply(arrays["features"].T, arrays["step"], order="C")
        labels, clips = (read_only(arrays[name]) for name in ("label", "clip"))
    rankings = embedded_rankings(SOUNDS_PANEL_FILE, seen)
    return SoundScores(Scores(values, seen, features=features), labels, clips, rankings)


# ---- Intents

Texts = NDArray[np.str_]
PARTS = {
    "seen_train": ("seen", "train"),
    "seen_validation": ("seen", "val"),
    "seen_test": ("seen", "test"),
    "new": ("new", "test"),
    "out_of_scope_validation": (None, "val"),
    "out_of_scope_test": (None, "test"),
}
"""The kind of class, None for texts without labels, and the split of the parts of `TextData`."""


@dataclass(frozen=True, eq=False, repr=False)
class TextData:
    """Texts with the names of their classes, and rankings of the classes; arrays are read-only.

    Attributes
    ----------
    name : str
        The data set, "intents", as for `load_similarities` and `load_class_vectors`.
    seen_train, seen_train_label : ndarrays of str, shape (n,)
        Texts of the seen classes, for training.
    seen_validation, seen_validation_label : ndarrays of str
        Other texts of the seen classes, for calibration and for the choice of settings.
    seen_test, seen_test_label : ndarrays of str
        Texts of the seen classes to report results on.
    new, new_label : ndarrays of str
        Texts of the new classes for reporting results; no setting may be chosen on them.
    out_of_scope_validation, out_of_scope_test : ndarrays of str
        Texts that belong to no class.
    seen_classes, new_classes : tuples of str
        The names of the classes, sorted.
    held_out_classes : tuple of str
        The held-out seen classes, sorted.
    panel : Rankings
        Rankings of the seen classes, for each new class as target.
    held_out_panel : Rankings
        Rankings of the seen classes that are not held out, for each held-out class as target.

    Examples
    --------
    >>> from rankshot.datasets import load_intents
    >>> data = load_intents()
    >>> len(data.seen_classes), len(data.new_classes)
    (120, 30)
    >>> print(data.new[0], "->", data.new_label[0])
    will i need to have a plug converter when i visit madrid -> plug_type
    """

    name: str
    seen_train: Texts
    seen_train_label: Texts
    seen_validation: Texts
    seen_validation_label: Texts
    seen_test: Texts
    seen_test_label: Texts
    new: Texts
    new_label: Texts
    out_of_scope_validation: Texts
    out_of_scope_test: Texts
    seen_classes: tuple[str, ...]
    new_classes: tuple[str, ...]
    held_out_classes: tuple[str, ...]
    panel: Rankings
    held_out_panel: Rankings

    def __repr__(self) -> str:
        seen = (self.seen_train, self.seen_validation, self.seen_test)
        return (
            f"{self.name}: {' + '.join(str(len(texts)) for texts in seen)} texts of "
            f"{len(self.seen_classes)} seen classes, {len(self.new)} of "
            f"{len(self.new_classes)} new ones, "
            f"{len(self.out_of_scope_validation)} + {len(self.out_of_scope_test)} out of scope"
        )


def load_intents() -> TextData:
    """Return requests to a virtual assistant, with rankings of their intents (CLINC150).

    These are some of the requests for all 150 intents; ``intents.md``, in the folder of the data,
    describes the selection, and its limits.

    Examples
    --------
    >>> from rankshot.datasets import load_intents
    >>> data = load_intents()
    >>> data
    intents: 4800 + 1200 + 1200 texts of 120 seen classes, 600 of 30 new ones, 100 + 200 out of
    scope
    >>> print(f"{data.new_label[0]}: {data.new[0]}")
    plug_type: will i need to have a plug converter when i visit madrid
    >>> data.panel.select(target="gas", rater="lm1")
    Rankings: 1 ranking of 120 items, 1 target, 1 source, 1 rater
      gas: gas_type > mpg > distance > oil_change_when > rewards_balance > jump_start >
        last_maintenance > pto_balance > …
    """
    with embedded_file("intents_requests.jsonl.xz") as path:
        lines = lzma.decompress(path.read_bytes()).decode().splitlines()
    seen, new = class_names("intents")
    return join_intents(lines, seen, new, load_panel("intents"), load_held_out_panel("intents"))


class Sentences(NamedTuple):
    """Sentences in languages that py3langid knows, and in eight that it does not.

    Attributes
    ----------
    texts, labels : ndarrays of str
        Twenty sentences of each new language (one less of Upper Sorbian), and three of each known
        one, with their languages: the names of the new ones, and py3langid's codes.
    is_new : ndarray of bool
        Which of them are in a new language.
    reference, reference_labels : ndarrays of str
        Five other sentences of each known language.

    Examples
    --------
    >>> from rankshot.datasets import load_sentences
    >>> data = load_sentences()
    >>> len(data.texts), len(data.reference)
    (507, 580)
    """

    texts: Texts
    labels: Texts
    is_new: NDArray[np.bool_]
    reference: Texts
    reference_labels: Texts


def load_sentences() -> Sentences:
    """Return articles of the Universal Declaration of Human Rights in 124 languages.

    ``sentences.md``, in the folder of the data, describes their origin and the selection.

    Examples
    --------
    >>> from rankshot.datasets import load_sentences
    >>> data = load_sentences()
    >>> print(f"{data.labels[5]}: {data.texts[5]}")
    sw: Mbele ya sheria kila mtu ana haki ya kutambulika kama mtu.
    >>> int(data.is_new.sum()), len(set(data.labels[data.is_new])), len(set(data.reference_labels))
    (159, 8, 116)
    """
    with embedded_file("sentences.jsonl.xz") as path:
        lines = lzma.decompress(path.read_bytes()).decode().splitlines()
    records = [json.loads(line) for line in lines]
    texts, labels, reference, reference_labels = (
        read_only(np.array([each[field] for each in records if each["part"] == part]))
        for part in ("test", "reference")
        for field in ("text", "language")
    )
    is_new = read_only(~np.isin(labels, reference_labels))
    return Sentences(texts, labels, is_new, reference, reference_labels)


def join_intents(
    lines: Iterable[str],
    seen: tuple[str, ...],
    new: tuple[str, ...],
    panel: Rankings,
    held_out_panel: Rankings,
) -> TextData:
    """Sort requests, one JSON object per line, into the parts of `TextData`.

    Requests of new intents for training and validation are skipped: in zero-shot classification
    there are none. The intent of an out-of-scope request is null.
    """
    kinds: dict[str | None, str | None] = {None: None, **dict.fromkeys(seen, "seen")}
    kinds |= dict.fromkeys(new, "new")
    groups: dict[tuple[str | None, str], list[tuple[str, str]]] = {}
    for request in map(json.loads, lines):
        group = kinds[request["intent"]], request["split"]
        groups.setdefault(group, []).append((request["text"], request["intent"]))
    arrays: dict[str, NDArray[Any]] = {}
    for part, group in PARTS.items():
        texts, labels = zip(*groups[group], strict=True)
        arrays[part] = read_only(np.array(texts))
        if group[0] is not None:
            arrays[f"{part}_label"] = read_only(np.array(labels))
    return TextData(
        "intents",
        **arrays,
        seen_classes=seen,
        new_classes=new,
        held_out_classes=tuple(sorted(held_out_panel.target_names)),
        panel=panel,
        held_out_panel=held_out_panel,
    )
