"""Features of images: the value `ImageData`, files of features, and their reduction by PCA."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.linalg.blas import dsyrk

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.core.validation import as_names
from rankshot.sources.class_vectors import ClassVectors

Features = NDArray[np.float32]
Labels = NDArray[np.str_]
Array = TypeVar("Array", bound=NDArray[Any])
_BROKEN = (ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, KeyError)
"""What NumPy raises for a file that is not an .npz, is truncated, or contains a pickle."""


@dataclass(frozen=True, eq=False, repr=False)
class ImageData:
    """Images as features, with the names of their classes; all arrays are read-only.

    Attributes
    ----------
    name : str
        The data set, "cifar" or "animals", as for `load_panel`, `load_similarities` and
        `load_class_vectors`.
    seen_train, seen_train_label : ndarray of shape (n, d), ndarray of shape (n,)
        Images of the seen classes, for training.
    seen_validation, seen_validation_label : ndarrays
        Other images of the seen classes, for calibration and for the choice of settings.
    new, new_label : ndarrays
        Images of the new classes, to report results on; no setting may be chosen on them.
    seen_classes, new_classes : tuples of str
        The names of the classes, sorted.
    attributes : ClassVectors or None
        The attributes of all classes, if the data set has them; missing ones are NaN.

    Examples
    --------
    >>> from rankshot.datasets import load_cifar
    >>> data = load_cifar()
    >>> data.name, data.seen_train.shape, data.new_classes[:2]
    ('cifar', (8000, 256), ('airplane', 'automobile'))
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

    def require_complete(self) -> ImageData:
        """Return the data; raise an error if a class has no image in one of the parts."""
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
            f"{len(self.new_classes)} new ones, {self.new.shape[1]} features"
        )


# ---- Files of features


@dataclass(frozen=True, eq=False)
class FeatureFile:
    """The arrays of a file of features, ``features.npz``, with methods that validate them."""

    path: Path
    arrays: dict[str, NDArray[Any]]

    @classmethod
    def read(cls, path: Path, names: Iterable[str]) -> Self:
        """Read the named arrays of an .npz file.

        Raises
        ------
        RankshotError
            If the file is not a complete .npz, or an array is missing.
        FileNotFoundError
            If there is no such file.
        """
        names = list(names)
        with path.open("rb") as stream:
            try:
                found = np.load(stream, allow_pickle=False)
                available = found.files if isinstance(found, np.lib.npyio.NpzFile) else []
                arrays = {name: found[name] for name in names if name in available}
            except _BROKEN:
                # NumPy's own message advises to allow pickles, which is not safe.
                raise RankshotError(f"{path}: not a complete .npz file of plain arrays") from None
        if missing := [name for name in names if name not in arrays]:
            raise RankshotError(
                f"{path}: no array {quote_names(missing)}; a file of features has "
                f"{quote_names(names)}"
            )
        return cls(path, arrays)

    def error(self, name: str, problem: str) -> RankshotError:
        """Return an error that says what is wrong with an array."""
        return RankshotError(f"{self.path}: {name!r} {problem}")

    def classes(self, name: str, known: Iterable[str]) -> tuple[str, ...]:
        """Return an array of class names, which must be the known ones, in any order."""
        array = self.arrays[name]
        if array.ndim != 1 or array.dtype.kind != "U":
            raise self.error(name, f"is {_describe(array)}, not a list of names")
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
            raise self.error(name, f"is {_describe(array)}, not a table of numbers")
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
        """Return the class names of some images, read-only; the file has class numbers."""
        return read_only(np.array(classes)[self.class_numbers(name, len(classes), n_images)])

    def class_numbers(self, name: str, n_classes: int, n_images: int) -> NDArray[Any]:
        """Return the class numbers of some images."""
        array = self.arrays[name]
        if array.shape != (n_images,) or array.dtype.kind not in "iu":
            problem = f"is {_describe(array)}, not the class numbers of {n_images} images"
            raise self.error(name, problem)
        odd = np.flatnonzero((array < 0) | (array >= n_classes))
        if odd.size:
            problem = f"has class {array[odd[0]]} in row {odd[0]}, but there are {n_classes}"
            raise self.error(name, f"{problem}, counted from 0")
        return array


def read_only(array: Array) -> Array:
    """Make the array read-only and return it."""
    array.flags.writeable = False
    return array


def _describe(array: NDArray[Any]) -> str:
    return f"{array.dtype} of shape {array.shape}"


# ---- Reduction


class Pca(NamedTuple):
    """A principal component analysis, with one scale for all components.

    ``mean`` has shape (d,), ``components`` (k, d), in descending order of variance.
    """

    mean: NDArray[Any]
    components: NDArray[Any]
    scale: NDArray[Any]

    def transform(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the components of some rows."""
        reduced: NDArray[Any] = (rows - self.mean) @ self.components.T / self.scale
        return reduced


def fit_pca(blocks: Callable[[], Iterator[NDArray[Any]]], n_components: int) -> Pca:
    """Fit a PCA, exactly, with one block of rows in memory at a time.

    ``scale`` is the root mean square of the components of all rows. Dividing by it gives features
    of unit size on average, and leaves the proportions of the components as they are.

    Parameters
    ----------
    blocks : callable
        Returns an iterator over all rows, in blocks; it is called twice.
    n_components : int
        The most components to keep; there are fewer if the rows vary in fewer directions.

    Examples
    --------
    >>> rows = np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 1.0]])
    >>> pca = fit_pca(lambda: iter([rows[:2], rows[2:]]), 2)
    >>> pca.components, pca.transform(rows).round(3).ravel()
    (array([[1., 0.]]), array([-1.225,  0.   ,  1.225]))
    """
    sums = [(len(rows), rows.sum(axis=0, dtype=np.float64)) for rows in blocks()]
    n_rows = sum(n for n, _ in sums)
    mean = np.sum([total for _, total in sums], axis=0) / n_rows
    # One triangle of the scatter matrix, summed in place: a second matrix might not fit.
    scatter = np.zeros((mean.size, mean.size), order="F")
    for rows in blocks():
        scatter = dsyrk(1.0, (rows - mean).T, beta=1.0, c=scatter, lower=True, overwrite_c=True)
    n = min(n_components, mean.size, n_rows - 1)
    if n < 1:
        raise RankshotError("there is only one image to fit the PCA to; it needs several")
    last = [mean.size - n, mean.size - 1]
    variances, vectors = eigh(scatter, lower=True, overwrite_a=True, subset_by_index=last)
    # In the other directions the rows vary only by rounding.
    real = variances > variances.max() * mean.size * np.finfo(np.float64).eps
    if not real.any():
        raise RankshotError("all images that the PCA is fitted to have the same features")
    components = vectors[:, real][:, ::-1].T
    # The sign of a component is arbitrary; with a fixed one, every library gives the same result.
    largest = np.abs(components).argmax(axis=1, keepdims=True)
    components = components * np.sign(np.take_along_axis(components, largest, axis=1))
    return Pca(mean, components, np.sqrt(variances[real].mean() / n_rows))
