"""`ImageData`: images of seen and unseen classes, as features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.errors import RankshotError, listed
from rankshot.semantics.class_vectors import ClassVectors

Features = NDArray[np.float32]
Labels = NDArray[np.str_]


@dataclass(frozen=True, eq=False, repr=False)
class ImageData:
    """Images as features, with the names of their classes; all arrays are read-only.

    Attributes
    ----------
    name : str
        The data set, "cifar" or "animals": what `load_panel`, `load_similarities` and
        `load_class_vectors` call it, too.
    seen_train, seen_train_label : ndarray of shape (n, d), ndarray of shape (n,)
        To train on: images of the seen classes.
    seen_validation, seen_validation_label : ndarrays
        To calibrate and to choose on: other images of the seen classes.
    unseen, unseen_label : ndarrays
        To report on, and never to choose on: images of the unseen classes.
    seen_classes, unseen_classes : tuples of str
        The names of the classes, sorted.
    attributes : ClassVectors or None
        Of all classes, where the data set has them; NaN is missing.
    """

    name: str
    seen_train: Features
    seen_train_label: Labels
    seen_validation: Features
    seen_validation_label: Labels
    unseen: Features
    unseen_label: Labels
    seen_classes: tuple[str, ...]
    unseen_classes: tuple[str, ...]
    attributes: ClassVectors | None = None

    def complete(self) -> ImageData:
        """Return it, or say which class has no image in one of its parts."""
        for what, labels, classes in (
            ("to train on", self.seen_train_label, self.seen_classes),
            ("to validate on", self.seen_validation_label, self.seen_classes),
            ("to test on", self.unseen_label, self.unseen_classes),
        ):
            if missing := sorted(set(classes) - set(labels.tolist())):
                raise RankshotError(f"{self.name}: there is no image of {listed(missing)} {what}")
        return self

    def __repr__(self) -> str:
        return (
            f"{self.name}: {len(self.seen_train)} + {len(self.seen_validation)} images of "
            f"{len(self.seen_classes)} seen classes, {len(self.unseen)} of "
            f"{len(self.unseen_classes)} unseen ones, {self.unseen.shape[1]} features"
        )
