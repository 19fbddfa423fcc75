"""CIFAR: features of images of a hundred seen classes and of ten unseen ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.datasets.embedded import class_names, embedded_file
from rankshot.datasets.features import FeatureFile, Features, ImageData, Labels, read_only

PARTS = {"seen_train": "seen", "seen_test": "seen", "unseen_test": "unseen"}
"""Of a full file: its parts, and whose images they hold."""


def load_cifar(path: str | Path | None = None) -> ImageData:
    """Return features of images of CIFAR-100 (seen) and of CIFAR-10 (unseen).

    Without a path, what comes with the package: 8,000 images to train on, 3,000 to choose on
    and 4,000 of unseen classes. The features are those of a network trained on ImageNet, reduced
    by PCA and rounded to multiples of a quarter; ``cifar_features.md`` beside the data says how,
    and what they are not good for.

    Parameters
    ----------
    path : str or Path, optional
        A file of features of all images (``features.npz``): 50,000 to train on (CIFAR-100's
        training images), 10,000 to choose on (its test images) and 10,000 of unseen classes
        (CIFAR-10's test images). It has the arrays ``seen_train``, ``seen_test``,
        ``unseen_test`` (images by features), for each of them ``_label`` (numbers of classes) and
        the names, ``seen_classes`` and ``unseen_classes``.

    Raises
    ------
    RankshotError
        Names the file and the array that is missing or wrong.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> from rankshot.datasets.cifar import load_cifar
    >>> data = load_cifar()
    >>> data
    cifar: 8000 + 3000 images of 100 seen classes, 4000 of 10 unseen ones, 256 features
    >>> data.seen_train.shape, data.seen_validation.shape, data.new.shape
    ((8000, 256), (3000, 256), (4000, 256))
    >>> print(data.seen_train_label[:3], data.new_classes[:3])
    ['oak_tree' 'lobster' 'girl'] ('airplane', 'automobile', 'bird')
    """
    return _load_embedded() if path is None else _load_file(Path(path))


def _load_embedded() -> ImageData:
    seen, unseen = class_names("cifar")
    with (
        embedded_file("cifar_features.npz") as path,
        np.load(path, allow_pickle=False) as arrays,
    ):
        return ImageData(
            "cifar",
            *_embedded_part(arrays, "seen_train", seen),
            *_embedded_part(arrays, "seen_validation", seen),
            *_embedded_part(arrays, "unseen", unseen),
            seen_classes=seen,
            new_classes=unseen,
        )


def _embedded_part(
    arrays: Mapping[str, NDArray[Any]], part: str, classes: tuple[str, ...]
) -> tuple[Features, Labels]:
    """Return features and labels, read-only; stored are whole steps, a row a dimension."""
    features = np.multiply(arrays[part].T, arrays["step"], order="C")
    return read_only(features), read_only(np.array(classes)[arrays[f"{part}_label"]])


def _load_file(path: Path) -> ImageData:
    seen, unseen = class_names("cifar")
    names = [*PARTS, *(f"{part}_label" for part in PARTS), "seen_classes", "unseen_classes"]
    file = FeatureFile.read(path, names)
    # Labels number the names as the file lists them, in whatever order.
    known = {
        "seen": file.classes("seen_classes", seen),
        "unseen": file.classes("unseen_classes", unseen),
    }
    train, validation, test = (_part(file, part, known[kind]) for part, kind in PARTS.items())
    for part, (features, _) in zip(PARTS, (train, validation, test), strict=True):
        if features.shape[1] != train[0].shape[1]:
            trouble = f"has {features.shape[1]} features, but 'seen_train' has {train[0].shape[1]}"
            raise file.error(part, trouble)
    data = ImageData("cifar", *train, *validation, *test, seen_classes=seen, new_classes=unseen)
    return data.complete()


def _part(file: FeatureFile, part: str, classes: tuple[str, ...]) -> tuple[Features, Labels]:
    features = file.features(part)
    return features, file.labels(f"{part}_label", classes, len(features))


def cifar100_classes() -> tuple[str, ...]:
    """Return the names of CIFAR-100's classes, the seen ones, sorted."""
    return class_names("cifar").seen


def cifar10_classes() -> tuple[str, ...]:
    """Return the names of CIFAR-10's classes, the unseen ones, sorted."""
    return class_names("cifar").new
