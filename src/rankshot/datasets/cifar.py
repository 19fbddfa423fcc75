"""CIFAR: features of images of a hundred seen classes and of ten unseen ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import Any

import numpy as np
from numpy.typing import NDArray

Features = NDArray[np.float32]
Labels = NDArray[np.str_]


@dataclass(frozen=True, eq=False, repr=False)
class CifarData:
    """Images as features, with the names of their classes; all arrays are read-only.

    Attributes
    ----------
    seen_train, seen_train_label : ndarray of shape (8000, 256), ndarray of shape (8000,)
        To train on: 80 images of each seen class, of CIFAR-100's training images.
    seen_validation, seen_validation_label : ndarrays of 3000 rows
        To calibrate and to choose on: 30 images of each seen class, of CIFAR-100's test images.
    unseen, unseen_label : ndarrays of 4000 rows
        To report on, and never to choose on: 400 images of each unseen class, of CIFAR-10's
        test images.
    seen_classes : tuple of str
        The 100 classes of CIFAR-100, sorted.
    unseen_classes : tuple of str
        The 10 classes of CIFAR-10, sorted.
    """

    seen_train: Features
    seen_train_label: Labels
    seen_validation: Features
    seen_validation_label: Labels
    unseen: Features
    unseen_label: Labels
    seen_classes: tuple[str, ...]
    unseen_classes: tuple[str, ...]

    def __repr__(self) -> str:
        return (
            f"CifarData: {len(self.seen_train)} + {len(self.seen_validation)} images of "
            f"{len(self.seen_classes)} seen classes, {len(self.unseen)} of "
            f"{len(self.unseen_classes)} unseen ones, {self.unseen.shape[1]} features"
        )


def load_cifar() -> CifarData:
    """Return features of 11,000 images of CIFAR-100 (seen) and 4,000 of CIFAR-10 (unseen).

    The features are those of a network trained on ImageNet, reduced by PCA and rounded to
    multiples of a quarter; ``cifar_features.md`` beside the data says how, and what they are not
    good for.

    Examples
    --------
    >>> from rankshot.datasets.cifar import load_cifar
    >>> data = load_cifar()
    >>> data
    CifarData: 8000 + 3000 images of 100 seen classes, 4000 of 10 unseen ones, 256 features
    >>> data.seen_train.shape, data.seen_validation.shape, data.unseen.shape
    ((8000, 256), (3000, 256), (4000, 256))
    >>> print(data.seen_train_label[:3], data.unseen_classes[:3])
    ['oak_tree' 'lobster' 'girl'] ('airplane', 'automobile', 'bird')
    """
    seen, unseen = cifar100_classes(), cifar10_classes()
    with (
        as_file(files("rankshot.datasets") / "data" / "cifar_features.npz") as path,
        np.load(path, allow_pickle=False) as arrays,
    ):
        return CifarData(
            *_part(arrays, "seen_train", seen),
            *_part(arrays, "seen_validation", seen),
            *_part(arrays, "unseen", unseen),
            seen_classes=seen,
            unseen_classes=unseen,
        )


def _part(
    arrays: Mapping[str, NDArray[Any]], part: str, classes: tuple[str, ...]
) -> tuple[Features, Labels]:
    """Return features and labels, read-only; stored are whole steps, a row a dimension."""
    features = np.multiply(arrays[part].T, arrays["step"], order="C")
    labels = np.array(classes)[arrays[f"{part}_label"]]
    features.flags.writeable = labels.flags.writeable = False
    return features, labels


def cifar100_classes() -> tuple[str, ...]:
    """Return the names of CIFAR-100's classes, the seen ones, sorted."""
    return _names("cifar100_classes.txt")


def cifar10_classes() -> tuple[str, ...]:
    """Return the names of CIFAR-10's classes, the unseen ones, sorted."""
    return _names("cifar10_classes.txt")


def _names(file: str) -> tuple[str, ...]:
    return tuple((files("rankshot.datasets") / "data" / file).read_text(encoding="utf-8").split())
