"""Rebuild the miniature of 1,000 classes inside the package: scores of an ImageNet network.

    python scripts/build_imagenet.py CIFAR_DIRECTORY TIMM_DIRECTORY RATER_JSONL

CIFAR_DIRECTORY contains ``images.npz`` (some test images of CIFAR-10 and CIFAR-100, with their row
numbers) and ``features.npz`` (the labels of these rows). TIMM_DIRECTORY is the folder
``timm/data/_info`` of the package timm, with ``imagenet_synsets.txt`` and
``imagenet_synset_to_lemma.txt``. RATER_JSONL has one line per new class:
``{"target": "cat", "ranking": ["n02124075", …]}``. The network comes with ``rankshot[onnx]``.
The same input gives the same output, up to the rounding of the network.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from reproduction.efficientnet import EfficientNetFeatures

from rankshot.core.files import replace_file
from rankshot.ranking.ranking_files import write_rankings
from rankshot.ranking.rankings import Rankings
from rankshot.recognition.models import BUILT_IN_FILE
from rankshot.sources.spelling import reduce_name

PACKAGE = Path(__file__).parents[1] / "src" / "rankshot"
CLASSES_FILE = PACKAGE / "sources" / "data" / "imagenet_classes.tsv"
DATA = PACKAGE / "datasets" / "data"
SEED = 20150701
PER_NEW_CLASS, PER_SEEN_CLASS = 14, 4
SHARED_NAMES = {
    "n02012849": "crane (bird)",
    "n03126707": "crane (machine)",
    "n02113186": "Cardigan Welsh corgi",
    "n03710637": "maillot (tights)",
    "n03710721": "maillot (swimsuit)",
}
"""Three pairs of classes have the same first synonym, up to case: here are other names. The
cardigan keeps its own."""


def main(cifar: Path, timm: Path, rater: Path) -> None:
    """Write the classes, the rater's lists and the scores."""
    synsets = (timm / "imagenet_synsets.txt").read_text(encoding="utf-8").split()
    lines = (timm / "imagenet_synset_to_lemma.txt").read_text(encoding="utf-8").splitlines()
    synonyms = dict(line.split("\t") for line in lines)
    names = {id_: SHARED_NAMES.get(id_, synonyms[id_].split(", ")[0]) for id_ in synsets}
    letters = Counter(map(reduce_name, names.values()))
    if repeated := [name for name in names.values() if letters[reduce_name(name)] > 1]:
        raise ValueError(f"two classes have the name {repeated[0]!r}")
    with replace_file(CLASSES_FILE) as stream:
        stream.write("id\tname\tsynonyms\n")
        stream.writelines(f"{id_}\t{names[id_]}\t{synonyms[id_]}\n" for id_ in synsets)

    answers = [json.loads(line) for line in rater.read_text(encoding="utf-8").splitlines()]
    rankings = Rankings.from_orders(
        [[names[id_] for id_ in answer["ranking"]] for answer in answers],
        items=list(names.values()),
        targets=[answer["target"] for answer in answers],
        sources="language model",
        raters="lm1",
    )
    write_rankings(rankings, DATA / "imagenet_rater.jsonl")
    write_scores(cifar, rankings.target_names, tuple(names.values()), DATA / "imagenet_scores.npz")


def write_scores(
    cifar: Path, new: tuple[str, ...], seen: tuple[str, ...], destination: Path
) -> None:
    """Draw images of new classes and of seen ones, and write the network's scores of them."""
    with np.load(cifar / "images.npz", allow_pickle=False) as arrays:
        small = {key: arrays[key] for key in arrays}
    with np.load(cifar / "features.npz", allow_pickle=False) as arrays:
        labels = np.concatenate(
            [
                arrays[f"{part}_classes"][arrays[f"{part}_test_label"][small[f"{part}_test_index"]]]
                for part in ("unseen", "seen")
            ]
        )
    images = np.concatenate([small["unseen_test_image"], small["seen_test_image"]])
    both = [name for name in seen if name.replace(" ", "_") in labels]
    rng = np.random.default_rng(SEED)
    found: dict[str, NDArray[Any]] = {}
    for part, names, count in (
        ("new", new, PER_NEW_CLASS),
        ("reference", both, PER_SEEN_CLASS),
    ):
        rows = np.concatenate(
            [
                rng.permutation(np.flatnonzero(labels == name.replace(" ", "_")))[:count]
                for name in names
            ]
        )
        rows = rng.permutation(rows)
        found[part] = scores(images[rows]).astype(np.float16)
        found[f"{part}_label"] = np.char.replace(labels[rows].astype(str), "_", " ")
        print(part, found[part].shape, f"{len(names)} classes")
    with replace_file(destination) as stream:
        np.savez_compressed(stream.buffer, allow_pickle=False, **found)
    print(f"{destination.name}: {destination.stat().st_size / 1e6:.2f} MB")


def scores(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the network's 1,000 scores (logits) of each image."""
    graph = onnx.load(BUILT_IN_FILE).graph
    weights, bias = (
        np.float32(onnx.numpy_helper.to_array(tensor))
        for name in ("_fc.weight.half", "_fc.bias.half")
        for tensor in graph.initializer
        if tensor.name == name
    )
    logits: NDArray[np.float32] = EfficientNetFeatures()(images) @ weights.T + bias
    return logits


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
