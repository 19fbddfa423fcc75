"""What a peer is trained on: features, labels and the vectors of the labels' classes, checked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from rankshot.experiments.peers.complete_vectors import CompleteVectors
from rankshot.ranking.errors import RankshotError
from rankshot.zeroshot.labelled import label_names

Floats = NDArray[np.float64]


class Training(NamedTuple):
    """Features (n, d), the place of each input's class, and the vectors of the classes."""

    X: Floats
    codes: NDArray[np.intp]
    classes: CompleteVectors

    @property
    def counts(self) -> NDArray[np.intp]:
        """The number of inputs of each class."""
        return np.bincount(self.codes, minlength=len(self.classes.names))

    def class_sums(self) -> Floats:
        """Return the sum of the features of each class, a row a class.

        With Y of a one for the class of each input and zeros, this is YᵀX; and where S has a
        vector a class, and so Y S one an input, XᵀY S is the product of the sums and S.
        """
        n = len(self.codes)
        one = csr_array((np.ones(n), self.codes, np.arange(n + 1)), (n, len(self.classes.names)))
        return np.asarray(one.T @ self.X)


def as_features(X: ArrayLike, n_features: int | None = None) -> Floats:
    """Return features as a table of finite numbers in double precision.

    Examples
    --------
    >>> as_features([[1, float("nan")]])
    Traceback (most recent call last):
        ...
    rankshot.ranking.errors.RankshotError: X: row 0, column 1 is nan; features must be finite
    """
    try:
        table = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RankshotError(f"X must be a table of numbers: {error}") from None
    if table.ndim != 2 or (n_features is not None and table.shape[1] != n_features):
        wanted = "d" if n_features is None else n_features
        raise RankshotError(f"X must have the shape (n, {wanted}), not {table.shape}")
    finite = np.isfinite(table)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise RankshotError(
            f"X: row {row}, column {column} is {table[row, column]}; features must be finite"
        )
    return table


def class_codes_of(y: ArrayLike, n: int) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """Return the classes among n labels, sorted, and the place of each label among them."""
    labels = label_names(y, "y")
    if len(labels) != n:
        raise RankshotError(f"X has {n} rows, but y has {len(labels)} labels")
    names, codes = np.unique(np.array(labels), return_inverse=True)
    return tuple(names.tolist()), codes
