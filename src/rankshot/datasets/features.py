"""`ImageData`: images of seen and unseen classes, as features."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.core.names import as_names
from rankshot.semantics.vectors import ClassVectors

Features = NDArray[np.float32]
Labels = NDArray[np.str_]
Array = TypeVar("Array", bound=NDArray[Any])
_BROKEN = (ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, KeyError)
"""What NumPy raises on a file that is none of its archives, or half of one, or has a pickle."""


# -------------------- datasets.images
# `ImageData`: images of seen and unseen classes, as features.


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
    new, new_label : ndarrays
        To report on, and never to choose on: images of the unseen classes.
    seen_classes, new_classes : tuples of str
        The names of the classes, sorted.
    attributes : ClassVectors or None
        Of all classes, where the data set has them; NaN is missing.
    """

    name: str
    seen_train: Features
    seen_train_label: Labels
    seen_validation: Features
    seen_validation_label: Labels
    new: Features
    new_label: Labels
    seen_classes: tuple[str, ...]
    new_classes: tuple[str, ...]
    attributes: ClassVectors | None = None

    def complete(self) -> ImageData:
        """Return it, or say which class has no image in one of its parts."""
        for what, labels, classes in (
            ("to train on", self.seen_train_label, self.seen_classes),
            ("to validate on", self.seen_validation_label, self.seen_classes),
            ("to test on", self.new_label, self.new_classes),
        ):
            if missing := sorted(set(classes) - set(labels.tolist())):
                raise RankshotError(
                    f"{self.name}: there is no image of {quote_names(missing)} {what}"
                )
        return self

    def __repr__(self) -> str:
        return (
            f"{self.name}: {len(self.seen_train)} + {len(self.seen_validation)} images of "
            f"{len(self.seen_classes)} seen classes, {len(self.new)} of "
            f"{len(self.new_classes)} unseen ones, {self.new.shape[1]} features"
        )


# -------------------- datasets.feature_files
# Files of features, ``features.npz``: read whole, and checked array by array.


@dataclass(frozen=True, eq=False)
class FeatureFile:
    """The arrays of a file of features, by name; what is asked of them is checked."""

    path: Path
    arrays: dict[str, NDArray[Any]]

    @classmethod
    def read(cls, path: Path, names: Iterable[str]) -> Self:
        """Read the named arrays of an .npz file.

        Raises
        ------
        RankshotError
            If the file is no whole .npz, or lacks an array.
        FileNotFoundError
            If there is no such file.
        """
        names = list(names)
        with path.open("rb") as stream:
            try:
                found = np.load(stream, allow_pickle=False)
                there = found.files if isinstance(found, np.lib.npyio.NpzFile) else []
                arrays = {name: found[name] for name in names if name in there}
            except _BROKEN:
                # NumPy's own advice, to allow pickles, would be bad advice.
                raise RankshotError(f"{path}: not a whole .npz file of plain arrays") from None
        if missing := [name for name in names if name not in arrays]:
            raise RankshotError(
                f"{path}: no array {quote_names(missing)}; a file of features has {quote_names(names)}"
            )
        return cls(path, arrays)

    def error(self, name: str, trouble: str) -> RankshotError:
        """Return the error that says what is wrong with an array."""
        return RankshotError(f"{self.path}: {name!r} {trouble}")

    def classes(self, name: str, known: Iterable[str]) -> tuple[str, ...]:
        """Return the names of classes, which must be the known ones, in any order."""
        array = self.arrays[name]
        if array.ndim != 1 or array.dtype.kind != "U":
            raise self.error(name, f"holds {_kind(array)}, not a row of names")
        found = as_names(array.tolist(), f"{self.path}: {name!r}")
        known = list(known)
        if odd := [one for one in found if one not in known]:
            hint = suggest_name(odd[0], known)
            raise self.error(name, f"has the unknown class {short_repr(odd[0])}{hint}")
        if missing := [one for one in known if one not in found]:
            raise self.error(name, f"lacks {quote_names(missing)}")
        return found

    def numbers(self, name: str) -> NDArray[Any]:
        """Return a table of finite numbers."""
        array = self.arrays[name]
        if array.ndim != 2 or array.dtype.kind not in "fiu" or 0 in array.shape:
            raise self.error(name, f"holds {_kind(array)}, not a table of numbers")
        finite = np.isfinite(array)
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            value = array[row, column]
            raise self.error(name, f"has {value} in row {row}, column {column}")
        return array

    def features(self, name: str) -> Features:
        """Return a table of finite numbers as read-only float32."""
        return read_only(self.numbers(name).astype(np.float32))

    def labels(self, name: str, classes: tuple[str, ...], n_images: int) -> Labels:
        """Return the names of the classes of so many images, read-only; stored are numbers."""
        return read_only(np.array(classes)[self.class_numbers(name, len(classes), n_images)])

    def class_numbers(self, name: str, n_classes: int, n_images: int) -> NDArray[Any]:
        """Return the numbers of the classes of so many images."""
        array = self.arrays[name]
        if array.shape != (n_images,) or array.dtype.kind not in "iu":
            trouble = f"holds {_kind(array)}, not the numbers of the classes of {n_images} images"
            raise self.error(name, trouble)
        odd = np.flatnonzero((array < 0) | (array >= n_classes))
        if odd.size:
            trouble = f"has class {array[odd[0]]} in row {odd[0]}, but there are {n_classes}"
            raise self.error(name, f"{trouble}, counted from 0")
        return array


def read_only(array: Array) -> Array:
    """Return the array, protected against writing."""
    array.flags.writeable = False
    return array


def _kind(array: NDArray[Any]) -> str:
    return f"{array.dtype} of shape {array.shape}"
