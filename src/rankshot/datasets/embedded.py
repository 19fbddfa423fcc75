"""The data that come with the package: names, panels, tables, images, texts and sounds."""

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

from rankshot.core.validation import require_choice
from rankshot.ranking.ranking_files import read_rankings
from rankshot.ranking.rankings import Rankings
from rankshot.sources.names import load_imagenet_labels
from rankshot.sources.similarity import Similarity
from rankshot.zeroshot.scores import Scores

Texts = NDArray[np.str_]
QUESTIONS = {
    "cifar": ("photographs", "contrast", "similar"),
    "animals": ("photographs", "contrast", "similar"),
    "intents": ("requests",),
}
"""For each data set: the questions that the panel was asked, the default first."""
SOURCES = ("WordNet", "GloVe", "Wikipedia", "word2vec", "GloVe 100d")
CIFAR_SENSES = {
    "boy": "male_child.n.01",
    "bridge": "bridge.n.01",
    "mushroom": "mushroom.n.05",
    "television": "television_receiver.n.01",
}
"""WordNet senses for CIFAR-10 and CIFAR-100; `WordNet` chooses the other 106 correctly."""
SENSES = {
    "cifar": CIFAR_SENSES,
    "animals": {"buffalo": "american_bison.n.01", "ox": "ox.n.01"},
}
"""The pinned senses of the tables of similarities. Those of animals are senses that an earlier
version chose; the published results rest on them."""


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


def embedded_lines(file: str) -> list[str]:
    """Return the lines of an .xz data file."""
    with embedded_file(file) as path:
        return lzma.decompress(path.read_bytes()).decode().splitlines()


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
    require_choice("dataset", dataset, QUESTIONS)
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
    asked = known[0] if question is None else require_choice("question", question, known)
    rankings = embedded_rankings(f"{dataset}_{which}.jsonl", items)
    return rankings.select(source=panel_source(asked))


def panel_source(question: str) -> str:
    """Return the source of the panel's rankings for a question."""
    return f"language-model panel: {question}"


# ---- Similarities


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


# ---- Scores of networks


class ScoredData(NamedTuple):
    """Scores of a network for inputs of classes that it does not know, and rankings of its classes.

    Attributes
    ----------
    ids : ndarray of str
        The names of the inputs, such as those of their files.
    scores : Scores
        The network's logits, with ``features`` if there are any.
    labels : ndarray of str
        The new class of each input.
    rankings : Rankings
        Rankings of the seen classes for each new class, by large language models.
    reference : Scores or None
        The logits of some inputs of seen classes.
    reference_labels : ndarray of str or None
        The seen class of each of these.

    Examples
    --------
    >>> from rankshot.datasets import load_imagenet
    >>> data = load_imagenet()
    >>> data.scores.values.shape, str(data.labels[0]), data.rankings.target_names[:2]
    ((280, 1000), 'ship', ('airplane', 'automobile'))
    """

    ids: Texts
    scores: Scores
    labels: Texts
    rankings: Rankings
    reference: Scores | None = None
    reference_labels: Texts | None = None


def load_photographs() -> ScoredData:
    """Return the scores of EfficientNet-Lite0 for twelve photographs, one per new class.

    They illustrate how rankshot works; they are too few to measure anything. The rankings list the
    first five seen classes, by one rater. `write_photographs` writes the photographs themselves.
    ``photographs.md``, in the folder of the data, has their origins and licences.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.datasets import load_photographs
    >>> photos = load_photographs()
    >>> photos.scores.values.shape, str(photos.ids[0])
    ((12, 1000), 'astronaut.jpg')
    >>> photos.rankings.select(target="temple")
    Rankings: 1 ranking of 1,000 items, 1 target, 1 source, 1 rater
      temple: palace > stupa > monastery > mosque > bell cote
    >>> head = rs.WeightedMean().fit(photos.rankings)
    >>> n_correct = (head.predict(photos.scores) == photos.labels).sum()
    >>> print(n_correct, "of", len(photos.labels))
    11 of 12
    """
    seen = load_imagenet_labels().names
    rankings = embedded_rankings("photographs.jsonl", seen)
    with embedded_arrays("photographs_scores.npz") as arrays:
        ids, logits = arrays["name"], arrays["logits"].astype(np.float32)
    labels = np.char.partition(ids, ".")[:, 0]
    return ScoredData(ids, Scores(logits, seen), labels, rankings)


def write_photographs(folder: str | Path) -> None:
    """Write the twelve photographs to a folder, as JPEG files of 224 x 224 pixels.

    Parameters
    ----------
    folder : str or Path
        The folder to write to; it is created if needed. Files with the same names are replaced.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rankshot.datasets import write_photographs
    >>> with TemporaryDirectory() as folder:
    ...     write_photographs(folder)
    ...     sorted(path.name for path in Path(folder).iterdir())[:2]
    ['astronaut.jpg', 'brick_wall.jpg']
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in load_photographs().ids.tolist():
        with embedded_file(f"photographs/{name}") as path:
            Path(folder, name).write_bytes(path.read_bytes())


def load_imagenet() -> ScoredData:
    """Return the scores of EfficientNet-Lite0 for small images, and rankings of their classes.

    The images, 14 of each of 20 new classes, are CIFAR's, enlarged; the reference has 96 images of
    24 seen classes, and the rankings the first ten seen classes, by one rater. They show how
    rankshot works with 1,000 seen classes; they are too few to compare methods.
    ``imagenet_scores.md``, in the folder of the data, describes them.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.datasets import load_imagenet
    >>> data = load_imagenet()
    >>> data.scores.values.shape
    (280, 1000)
    >>> head = rs.WeightedMean().fit(data.rankings)
    >>> accuracy = (head.predict(data.scores) == data.labels).mean()
    >>> print(f"{accuracy:.2f}, where chance is {1 / len(head.classes_):.2f}")
    0.57, where chance is 0.05
    """
    seen = load_imagenet_labels().names
    rankings = embedded_rankings("imagenet_rater.jsonl", seen)
    with embedded_arrays("imagenet_scores.npz") as arrays:
        new, reference = (
            Scores(arrays[part].astype(np.float32), seen) for part in ("new", "reference")
        )
        labels, reference_labels = arrays["new_label"], arrays["reference_label"]
    ids = np.arange(len(labels)).astype(str)
    return ScoredData(ids, new, labels, rankings, reference, reference_labels)


def load_sounds() -> ScoredData:
    """Return the scores of a network for recordings of ten sounds, and rankings of their classes.

    The recordings are those of ESC-10, a part of ESC-50 (Piczak 2015). The network was trained on
    the other 40 classes of ESC-50. There is no reference: the recordings of these classes may not
    be used commercially, so their scores are not included. The ids are the files of ESC-50; the
    second number in a name is the clip's number at freesound.org, where its author is named. The
    features are the 256 inputs of the last layer. ``sounds.md``, in the folder of the
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
    with embedded_arrays("sounds_scores.npz") as arrays:
        seen = tuple(arrays["classes"].tolist())
        values = arrays["logits"].astype(np.float32)
        # The file has whole steps, one row per dimension.
        features = np.multiply(arrays["features"].T, arrays["step"], order="C")
        labels, ids = arrays["label"], arrays["clip"]
    rankings = embedded_rankings("sounds_panel.jsonl", seen)
    return ScoredData(ids, Scores(values, seen, features=features), labels, rankings)


# ---- Inputs for a classifier of your own


@dataclass(frozen=True, eq=False, repr=False)
class LabelledData:
    """Images as features, or texts, with the names of their classes.

    Attributes
    ----------
    name : str
        The data set, as for `load_panel` and `load_similarities`.
    seen_train, seen_train_label : ndarrays
        Inputs of the seen classes, for training.
    seen_validation, seen_validation_label : ndarrays
        Other inputs of the seen classes, for calibration and for the choice of settings.
    new, new_label : ndarrays
        Inputs of the new classes, for reporting results; no setting may be chosen on them.
    seen_classes, new_classes : tuples of str
        The names of the classes, sorted.
    seen_test, seen_test_label : ndarrays, optional
        Inputs of the seen classes to report results on.
    out_of_scope_validation, out_of_scope_test : ndarrays, optional
        Inputs that belong to no class.

    Examples
    --------
    >>> from rankshot.datasets import load_cifar
    >>> data = load_cifar()
    >>> data.name, data.seen_train.shape, data.new_classes[:2]
    ('cifar', (8000, 256), ('airplane', 'automobile'))
    """

    name: str
    seen_train: NDArray[Any]
    seen_train_label: Texts
    seen_validation: NDArray[Any]
    seen_validation_label: Texts
    new: NDArray[Any]
    new_label: Texts
    seen_classes: tuple[str, ...]
    new_classes: tuple[str, ...]
    seen_test: Any = None
    seen_test_label: Any = None
    out_of_scope_validation: Any = None
    out_of_scope_test: Any = None

    def __repr__(self) -> str:
        parts = (self.seen_train, self.seen_validation, self.seen_test)
        sizes = " + ".join(str(len(part)) for part in parts if part is not None)
        return (
            f"{self.name}: {sizes} inputs of {len(self.seen_classes)} seen classes, "
            f"{len(self.new)} of {len(self.new_classes)} new ones"
        )


def load_cifar() -> LabelledData:
    """Return features of images of CIFAR-100 (seen classes) and of CIFAR-10 (new classes).

    8,000 images are for training, 3,000 for validation and 4,000 are of new classes. The features
    are those of a network trained on ImageNet, reduced by PCA and rounded to multiples of a
    quarter; ``cifar_features.md``, in the folder of the data, describes how they were made, and
    their limits.

    Examples
    --------
    >>> from rankshot.datasets import load_cifar
    >>> data = load_cifar()
    >>> data
    cifar: 8000 + 3000 inputs of 100 seen classes, 4000 of 10 new ones
    >>> print(data.seen_train_label[:3], data.new_classes[:3])
    ['oak_tree' 'lobster' 'girl'] ('airplane', 'automobile', 'bird')
    """
    seen, new = class_names("cifar")
    parts: dict[str, Any] = {}
    with embedded_arrays("cifar_features.npz") as arrays:
        for part, stored, classes in (
            ("seen_train", "seen_train", seen),
            ("seen_validation", "seen_validation", seen),
            ("new", "unseen", new),
        ):
            # The file has whole steps, one row per dimension.
            parts[part] = np.multiply(arrays[stored].T, arrays["step"], order="C")
            parts[f"{part}_label"] = np.array(classes)[arrays[f"{stored}_label"]]
    return LabelledData("cifar", **parts, seen_classes=seen, new_classes=new)


class Thumbnails(NamedTuple):
    """Images of new classes, to show next to their predictions.

    Attributes
    ----------
    images : ndarray of uint8, shape (60, 32, 32, 3)
        Red, green and blue.
    labels : ndarray of str, shape (60,)
        The class of each image.
    rows : ndarray of int, shape (60,)
        The row of each image in ``load_cifar().new``.

    Examples
    --------
    >>> from rankshot.datasets import load_thumbnails
    >>> images = load_thumbnails()
    >>> images.images.shape, str(images.labels[0])
    ((60, 32, 32, 3), 'airplane')
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.str_]
    rows: NDArray[np.int64]


def load_thumbnails() -> Thumbnails:
    """Return 60 images of CIFAR-10, six of each class, whose features `load_cifar` returns.

    Examples
    --------
    >>> from rankshot.datasets import load_cifar, load_thumbnails
    >>> images, labels, rows = load_thumbnails()
    >>> images.shape, images.dtype
    ((60, 32, 32, 3), dtype('uint8'))
    >>> bool((load_cifar().new_label[rows] == labels).all())
    True
    """
    with embedded_arrays("cifar_thumbnails.npz") as arrays:
        labels = np.array(class_names("cifar").new)[arrays["label"]]
        rows = arrays["row"].astype(np.int64)
        return Thumbnails(arrays["image"], labels, rows)


PARTS = {
    "seen_train": ("seen", "train"),
    "seen_validation": ("seen", "val"),
    "seen_test": ("seen", "test"),
    "new": ("new", "test"),
    "out_of_scope_validation": (None, "val"),
    "out_of_scope_test": (None, "test"),
}
"""The kind of class, None for texts without labels, and the split of the parts of the intents."""


def load_intents() -> LabelledData:
    """Return requests to a virtual assistant, with their intents (CLINC150).

    These are some of the requests for all 150 intents; ``intents.md``, in the folder of the data,
    describes the selection, and its limits. ``load_panel("intents")`` has rankings of the intents.

    Examples
    --------
    >>> from rankshot.datasets import load_intents
    >>> data = load_intents()
    >>> data
    intents: 4800 + 1200 + 1200 inputs of 120 seen classes, 600 of 30 new ones
    >>> print(f"{data.new_label[0]}: {data.new[0]}")
    plug_type: will i need to have a plug converter when i visit madrid
    """
    return sort_requests(embedded_lines("intents_requests.jsonl.xz"), *class_names("intents"))


def sort_requests(
    lines: Iterable[str], seen: tuple[str, ...], new: tuple[str, ...]
) -> LabelledData:
    """Sort requests, one JSON object per line, into the parts of `LabelledData`.

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
        arrays[part] = np.array(texts)
        if group[0] is not None:
            arrays[f"{part}_label"] = np.array(labels)
    return LabelledData("intents", **arrays, seen_classes=seen, new_classes=new)


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
    records = [json.loads(line) for line in embedded_lines("sentences.jsonl.xz")]
    texts, labels, reference, reference_labels = (
        np.array([each[field] for each in records if each["part"] == part])
        for part in ("test", "reference")
        for field in ("text", "language")
    )
    is_new = ~np.isin(labels, reference_labels)
    return Sentences(texts, labels, is_new, reference, reference_labels)
