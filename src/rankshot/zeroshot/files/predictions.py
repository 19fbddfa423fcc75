"""Predictions as CSV and Parquet, written in batches and read.

True labels, to evaluate predictions with, are read here as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.columns import name_row, open_table
from rankshot.core.errors import (
    NO_VALUE,
    InputError,
    prefix_errors,
    quote_names,
    suggest_name,
)
from rankshot.core.files import require_ending
from rankshot.core.tables import (
    ID,
    LABEL,
    TABLE_ENDINGS,
    PutRows,
    as_text_array,
    open_writer,
)
from rankshot.core.validation import as_names, require_whole_number
from rankshot.zeroshot.decide import REJECTED
from rankshot.zeroshot.metrics import PROBABILITIES

PROBABILITY = "probability"
DIGITS = 7
"""The significant digits of a probability in CSV: those of single precision, in which most models
compute."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """The content of a file of predictions: ids and labels (or `REJECTED`) of the inputs.

    ``targets`` are all L classes that could be predicted, in the order of the columns of ``proba``.
    """

    ids: NDArray[np.object_]
    labels: NDArray[np.object_]
    targets: tuple[str, ...]
    proba: NDArray[np.floating]

    def __len__(self) -> int:
        return len(self.ids)


@contextmanager
def open_predictions(
    path: str | Path,
    targets: Iterable[object],
    metadata: Mapping[str, str] | None = None,
    *,
    top: int | None = None,
) -> Iterator[PredictionWriter]:
    """Open a file of predictions, CSV or Parquet, for writing in batches.

    The columns are ``id``, ``label``, ``probability`` (of the label, or the largest one if the
    input was rejected) and one column ``P(class)`` per class. Probabilities have seven
    significant digits in CSV, and the precision of the first batch in Parquet.

    The file replaces an older one when the block ends. If an exception is raised in the block,
    the older file stays, and nothing else is left behind.

    Parameters
    ----------
    path : str or Path
        Ends in .csv or .parquet.
    targets : iterable of names
        The classes that may be predicted, in the order of the columns of probabilities.
    metadata : mapping of str to str, optional
        Metadata for the footer of a Parquet file. Entries may be added until the block ends.
    top : int, optional
        Write only this number of most probable classes per input: in place of the columns
        ``P(class)``, there are ``label_2``, …, and ``probability_2``, ….

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankshot.zeroshot import open_predictions, read_predictions
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_predictions(folder + "/predictions.csv", ["cat", "truck"]) as writer:
    ...         writer.write(["x1", "x2"], ["cat", "truck"], [[.75, .25], [.5, .5]])
    ...     print((Path(folder) / "predictions.csv").read_text())
    ...     read_predictions(folder + "/predictions.csv").labels
    id,label,probability,P(cat),P(truck)
    x1,cat,0.75,0.75,0.25
    x2,truck,0.5,0.5,0.5
    <BLANKLINE>
    array(['cat', 'truck'], dtype=object)
    """
    path = Path(path)
    require_ending(path, TABLE_ENDINGS)
    names = as_names(targets, "targets")
    columns = [ID, LABEL, PROBABILITY, *(f"P({name})" for name in names)]
    if top is not None:
        top = min(require_whole_number("top", top), len(names))
        more = range(2, top + 1)
        columns = [ID, LABEL, *(f"{LABEL}_{i}" for i in more)]
        columns += [PROBABILITY, *(f"{PROBABILITY}_{i}" for i in more)]
    with open_writer(path, columns, metadata, digits=DIGITS) as put:
        writer = PredictionWriter(names, put, top)
        yield writer
        if writer.n_rows == 0:
            # The columns of a Parquet file are known from its first rows, even if these are none.
            writer.write([], [], np.empty((0, len(names)), np.float32))


def read_predictions(path: str | Path) -> Predictions:
    r"""Read a file that `open_predictions` wrote; its columns may be in any order.

    Parameters
    ----------
    path : str or Path
        A CSV or Parquet file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankshot.zeroshot import read_predictions
    >>> text = "id,label,probability,P(cat),P(truck)\nx1,cat,0.75,0.75,0.25\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "predictions.csv")
    ...     _ = path.write_text(text)
    ...     found = read_predictions(path)
    >>> found.ids.tolist(), found.labels.tolist(), found.proba
    (['x1'], ['cat'], array([[0.75, 0.25]]))
    """
    path = Path(path)
    require_ending(path, TABLE_ENDINGS)
    table = open_table(path)
    found = [name for name in table.columns if name.startswith("P(") and name.endswith(")")]
    if not found:
        table.refuse(
            "columns", NO_VALUE, "must have one such as 'P(cat)' per class: write all "
            f"probabilities, not only the largest; the columns are {quote_names(table.columns)}",
        )  # fmt: skip
    with prefix_errors(path):
        targets = as_names([name[2:-1] for name in found], "the header")
    ids, labels = table.require_texts(ID), table.require_texts(LABEL)
    for row, label in enumerate(labels):
        if label not in {*targets, REJECTED}:
            hint = suggest_name(label, targets)
            table.refuse("label", label, f"has no column 'P({label})'{hint}", row)
    proba = table.read_numbers(found, PROBABILITIES)
    return Predictions(as_text_array(ids), as_text_array(labels), targets, proba)


# -------------------------------------------------------------------- writing


class PredictionWriter:
    """Validates predictions and writes them; `open_predictions` makes it."""

    def __init__(self, targets: tuple[str, ...], put: PutRows, top: int | None = None) -> None:
        self.targets = targets
        self._top = top
        self.n_rows = 0
        self._code = {name: j for j, name in enumerate(targets)}
        self._put = put

    def write(
        self, ids: Iterable[object] | None, labels: Iterable[object], proba: ArrayLike
    ) -> None:
        """Add some rows; without ids, the id of a row is its number in the file, from 0.

        The columns of ``proba`` are in the order that was given to `open_predictions`.
        """
        table = np.asarray(proba)
        if table.dtype != np.float32:
            table = table.astype(np.float64)
        names = range(self.n_rows, self.n_rows + len(table)) if ids is None else ids
        texts, chosen = list(map(str, names)), list(map(str, labels))
        if table.shape != (len(texts), len(self.targets)) or len(chosen) != len(texts):
            shape = (len(texts), len(self.targets))
            rule = f"must have the shape {shape}, with as many labels ({len(chosen)})"
            raise InputError("proba", table.shape, rule)
        where = partial(name_row, "predictions", self.n_rows)
        PROBABILITIES.refuse_first(table, where, self.targets.__getitem__)
        codes = np.array([self._code.get(label, -1) for label in chosen], np.intp)
        for row in np.flatnonzero(codes < 0).tolist():
            if chosen[row] != REJECTED:
                rule = f"is not one of the classes{suggest_name(chosen[row], self.targets)}"
                raise InputError("label", chosen[row], rule, where=where(row))
        rows, codes = np.arange(len(table)), np.where(codes < 0, table.argmax(axis=1), codes)
        if self._top is None:
            self._put([texts, chosen], np.column_stack([table[rows, codes], table]))
        else:
            ranked = table.copy()
            ranked[rows, codes] = np.inf
            best = np.argsort(-ranked, axis=1, kind="stable")[:, : self._top]
            others = np.array(self.targets, object)[best[:, 1:]].T.tolist()
            self._put([texts, chosen, *others], np.take_along_axis(table, best, axis=1))
        self.n_rows += len(table)


# -------------------------------------------------------------------- true labels


def read_truth(
    path: str | Path, ids: Sequence[str], *, partial: bool = False
) -> NDArray[np.object_]:
    r"""Read the true labels of some inputs.

    Parameters
    ----------
    path : str or Path
        CSV or Parquet with a column ``label`` and optionally a column ``id``. With ids, the rows
        may be in any order, and ids that are not among the inputs are ignored. Without ids,
        the rows must be those of the inputs, in the same order.
    ids : sequence of str
        The ids of the inputs, as `read_predictions` returns them. The result has their order.
    partial : bool
        Whether some inputs may have no label. The result for these is an empty string.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankshot.zeroshot import read_truth
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "truth.csv"
    ...     _ = path.write_text("id,label\nx2,truck\nx1,cat\n")
    ...     read_truth(path, ["x1", "x2"])
    array(['cat', 'truck'], dtype=object)
    """
    path = Path(path)
    require_ending(path, TABLE_ENDINGS)
    table = open_table(path)
    labels = [label if label.strip() else "" for label in table.read_texts(LABEL)[0]]
    if "" in labels and not partial:
        table.refuse("label", NO_VALUE, "is empty", labels.index(""))
    if ID in table.columns:
        row_of: dict[str, int] = {}
        for row, name in enumerate(table.require_texts(ID)):
            if (before := row_of.setdefault(name, row)) != row:
                table.refuse("id", name, f"is also in {table.where(before)}; remove one", row)
        labels = [labels[row_of[name]] if name in row_of else "" for name in ids]
    elif len(labels) != len(ids):
        rule = f"is the number of labels, but there are {len(ids)} inputs, and no column {ID!r}"
        table.refuse("labels", len(labels), rule)
    missing = [name for name, label in zip(ids, labels, strict=True) if not label]
    if missing and (not partial or len(missing) == len(ids)):
        rule = f"is an input without a label ({len(missing)} of {len(ids)} have none)"
        table.refuse("label", missing[0], rule)
    return as_text_array(labels)
