"""The full data sets: features of CIFAR and of Animals with Attributes, and all intents.

Sounds have scores instead of features: see `reproduction.scored_tasks`.

The package has a small part of CIFAR and of the intents; these functions read the whole from a
directory of the user. ``python -m reproduction.build_features`` makes the files of features.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from rankshot.core.errors import RankshotError
from rankshot.datasets import LabelledData, class_names
from rankshot.datasets.embedded import sort_requests
from reproduction.class_vectors import ClassVectors

VALIDATION_IMAGES, SEEN_IMAGES = 2_448, 24_295
"""As in the paper: the images for validation, out of all images of the seen animals."""
SPLIT_SEED = 20150701
MISSING_ATTRIBUTE = -1
MISSING = {
    "cifar": "python -m reproduction.build_features cifar DIRECTORY makes it from CIFAR's archives",
    "animals": "python -m reproduction.build_features animals DIRECTORY makes it from the data set",
    "intents": "the folder needs requests.jsonl",
    "sounds": "the folder needs the scores of networks: see the file reproduction/README.md",
}
"""What to do if there are no files of a data set."""


def load_data(name: str, directory: Path) -> LabelledData:
    """Load a data set from ``DIRECTORY/<name>`` or from the directory itself."""
    load = {"cifar": load_cifar, "animals": load_animals, "intents": load_intents}[name]
    try:
        return load(find_folder(name, directory))
    except FileNotFoundError as error:
        raise describe_missing(name, error) from None


def describe_missing(name: str, error: FileNotFoundError) -> RankshotError:
    """Return the error for a missing file of a data set, with what to do."""
    return RankshotError(
        f"{error.filename}: no such file; {MISSING.get(name, 'see reproduction/README.md')}"
    )


def find_folder(name: str, directory: Path) -> Path:
    """Return ``DIRECTORY/<name>`` if it exists, or else the directory itself."""
    return directory / name if (directory / name).is_dir() else directory


def load_cifar(folder: Path) -> LabelledData:
    """Return 50,000 + 10,000 images of CIFAR-100 and 10,000 of CIFAR-10, as features."""
    with np.load(folder / "features.npz", allow_pickle=False) as arrays:
        parts = [
            part
            for name, classes in (
                ("seen_train", "seen_classes"),
                ("seen_test", "seen_classes"),
                ("unseen_test", "unseen_classes"),
            )
            for part in (
                arrays[name].astype(np.float32),
                arrays[classes][arrays[f"{name}_label"]],
            )
        ]
    seen, new = class_names("cifar")
    return LabelledData("cifar", *parts, seen_classes=seen, new_classes=new)


@dataclass(frozen=True, eq=False, repr=False)
class AnimalData(LabelledData):
    """Images of animals, with the attributes of all classes, if they are known."""

    attributes: ClassVectors | None = None


def load_animals(folder: Path) -> AnimalData:
    """Return the images of Animals with Attributes, as features, and the attributes.

    The images of the 40 seen classes are split as in the paper: 21,847 for training and 2,448 for
    validation, about one in ten of every class, drawn with a fixed seed. Attributes are from 0 to
    100, and NaN where they are missing.
    """
    with np.load(folder / "features.npz", allow_pickle=False) as arrays:
        features = arrays["features"].astype(np.float32)
        number, names = arrays["label"], arrays["classes"]
        is_new, attributes = arrays["unseen"][number], arrays["attributes"].astype(np.float64)
    labels = names[number]
    rows = np.flatnonzero(~is_new)
    train, validation = train_test_split(
        rows,
        test_size=round(len(rows) * VALIDATION_IMAGES / SEEN_IMAGES),
        stratify=labels[rows],
        random_state=SPLIT_SEED,
    )
    attributes[attributes == MISSING_ATTRIBUTE] = np.nan
    seen, new = class_names("animals")
    return AnimalData(
        "animals",
        *(features[train], labels[train]),
        *(features[validation], labels[validation]),
        *(features[is_new], labels[is_new]),
        seen_classes=seen,
        new_classes=new,
        attributes=ClassVectors(tuple(names.tolist()), attributes, "attributes"),
    )


def load_intents(folder: Path) -> LabelledData:
    """Return all requests of CLINC150."""
    lines = (folder / "requests.jsonl").read_text("utf-8").splitlines()
    return sort_requests(lines, *class_names("intents"))
