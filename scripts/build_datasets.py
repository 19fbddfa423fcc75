"""Rebuild the data inside the package from the measurement data.

    python scripts/build_datasets.py DIRECTORY

DIRECTORY holds ``cifar/features.npz``, ``raters/language_model.jsonl``,
``raters/held_out_seen.jsonl`` and ``wikipedia/articles.txt.xz``. GloVe's vectors come from the
extra ``rankshot[glove]``, WordNet from inside the package. The same input gives the same rows.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.datasets.senses import CIFAR_SENSES
from rankshot.ranking.files import replacing, write_rankings
from rankshot.ranking.rankings import Rankings
from rankshot.semantics.corpus import Corpus
from rankshot.semantics.similarity import Similarity
from rankshot.semantics.word_vectors import WordVectors
from rankshot.semantics.wordnet import WordNet

DATA = Path(__file__).parents[1] / "src" / "rankshot" / "datasets" / "data"

SEED = 20150701
STEP = 0.25
"""The quantisation step of all features: they keep their common scale, and so their distances."""

PARTS = {
    "seen_train": ("seen_train", 80),
    "seen_validation": ("seen_test", 30),
    "unseen": ("unseen_test", 400),
}
"""What each part is taken from, and how many images a class."""


def main(directory: Path) -> None:
    """Write all data files, and print what they hold."""
    with np.load(directory / "cifar" / "features.npz", allow_pickle=False) as arrays:
        seen, unseen = arrays["seen_classes"].tolist(), arrays["unseen_classes"].tolist()
        write_arrays(features(arrays), DATA / "cifar_features.npz")
    write_names(seen, DATA / "cifar100_classes.txt")
    write_names(unseen, DATA / "cifar10_classes.txt")

    raters = directory / "raters"
    write_panel(raters / "language_model.jsonl", seen, DATA / "language_model_panel.jsonl")
    # A class that plays an unseen one is no item: the raters ordered the other classes.
    held_out = {record["target"] for record in cifar_records(raters / "held_out_seen.jsonl")}
    others = [name for name in seen if name not in held_out]
    write_panel(raters / "held_out_seen.jsonl", others, DATA / "held_out_panel.jsonl")

    tables = similarities(unseen, seen, directory / "wikipedia" / "articles.txt.xz")
    write_arrays(as_arrays(tables), DATA / "similarities.npz")


# -------------------------------------------------------------------- features


def features(arrays: Any) -> dict[str, NDArray[Any]]:
    """Return the chosen rows of each part: features, labels and row numbers."""
    rng = np.random.default_rng(SEED)
    found: dict[str, NDArray[Any]] = {"step": np.float32(STEP)}
    for part, (origin, per_class) in PARTS.items():
        labels = arrays[f"{origin}_label"]
        rows = balanced_rows(labels, per_class, rng)
        # One dimension after the other: numbers of one distribution compress better together.
        found[part] = quantised(arrays[origin][rows]).T.copy()
        found[f"{part}_label"] = labels[rows].astype(np.uint8)
        found[f"{part}_row"] = rows.astype(np.uint16)
    return found


def balanced_rows(
    labels: NDArray[Any], per_class: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw as many rows of every class, and shuffle them: test images come a class at a time."""
    drawn = [
        rng.permutation(np.flatnonzero(labels == label))[:per_class] for label in np.unique(labels)
    ]
    return rng.permutation(np.concatenate(drawn))


def quantised(values: NDArray[Any]) -> NDArray[np.int8]:
    """Return how many steps each value is from zero; all must fit."""
    steps = np.rint(values.astype(np.float64) / STEP)
    limit = np.iinfo(np.int8).max
    if np.abs(steps).max() > limit:
        raise ValueError(f"a feature is more than {limit} steps of {STEP} from zero")
    return steps.astype(np.int8)


# -------------------------------------------------------------------- the panel


def cifar_records(path: Path) -> list[dict[str, Any]]:
    """Return the raters' answers about CIFAR's classes, by target and rater."""
    lines = path.read_text(encoding="utf-8").splitlines()
    records = [record for line in lines if (record := json.loads(line))["dataset"] == "cifar"]
    return sorted(records, key=lambda record: (record["target"], record["rater"]))


def write_panel(path: Path, items: list[str], destination: Path) -> None:
    """Write the panel's rankings of some items."""
    records = cifar_records(path)
    panel = Rankings.from_orders(
        [record["ranking"] for record in records],
        items=items,
        targets=[record["target"] for record in records],
        raters=[record["rater"] for record in records],
        sources="language-model panel",
    )
    write_rankings(panel, destination)
    print(f"{destination.name}: {panel}")


# -------------------------------------------------------------------- similarities


def similarities(unseen: list[str], seen: list[str], articles: Path) -> dict[str, Similarity]:
    """Return the tables of all sources: all classes against the seen ones."""
    sources = {
        "WordNet": WordNet("path", senses=CIFAR_SENSES),
        "GloVe": WordVectors.glove(),
        "Wikipedia": Corpus(articles, measure="cosine"),
    }
    return {name: source.similarity(unseen + seen, seen) for name, source in sources.items()}


def as_arrays(tables: dict[str, Similarity]) -> dict[str, NDArray[Any]]:
    """Return the values and notes of all tables, by name."""
    arrays: dict[str, NDArray[Any]] = {}
    for name, table in tables.items():
        print(f"{name}: {table.coverage:.1%} known, unknown: {table.unknown_items}")
        arrays[name] = table.values
        arrays[f"{name}_notes"] = np.array(table.notes, dtype=np.str_)
    return arrays


# -------------------------------------------------------------------- files


def write_arrays(arrays: dict[str, NDArray[Any]], path: Path) -> None:
    """Write a compressed .npz."""
    with replacing(path) as stream:
        np.savez_compressed(stream.buffer, allow_pickle=False, **arrays)
    print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB")


def write_names(names: list[str], path: Path) -> None:
    """Write one name a line."""
    with replacing(path) as stream:
        stream.write("\n".join(names) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
