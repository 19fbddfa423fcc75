"""`Scores`: the scores of a classifier, with the names of its classes; and what follows from them.

Probabilities of the seen classes, and the order of the classes by one-vs-one scores.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse, vstack

from rankshot.core.arrays import (
    Array,
    Constants,
    Library,
    as_double,
    as_real_floats,
    largest,
    log_softmax,
    logaddexp,
    other_library,
    row_blocks,
    row_norm,
    to_library,
)
from rankshot.core.errors import RankshotError, RowError, quote_names, short_repr, suggest_name
from rankshot.core.tables import ID, as_frame, frame_to_matrix
from rankshot.core.validation import as_names, require_choice

Floats = NDArray[np.floating]
Kind = Literal["multiclass", "one-vs-rest", "one-vs-one"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LEAST_PROBABILITY = 1e-6
"""The value that replaces a probability of 0, or half of the smallest other probability of its
row if that is less. A zero is usually rounded, and its logarithm would exclude a class for good."""
ROUNDING_UNITS = 16
"""Numbers that differ by less than this number of units in the last place are equal."""
TIED_SCORES = 1e-5
"""Standardised scores that differ by less are equal: then both classes are predicted by half."""
LARGEST_SCORE = 1e30
"""Larger scores are refused: their sums overflow in single precision."""
SUM_TOLERANCE = 0.02
"""How far the sum of the probabilities of a row may be from one: tables are rounded, half precision
has three digits, and fastText returns probabilities such as 1.0001."""


class Columns(Protocol):
    """What a fitted head needs of each input besides its scores."""

    @property
    def n_features_(self) -> int: ...  # noqa: D102

    @property
    def n_extra_columns_(self) -> int: ...  # noqa: D102

    @property
    def evidence_classes_(self) -> tuple[str, ...]: ...  # noqa: D102


@dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """The scores of n inputs on a logarithmic scale: logits, decision values or log-odds.

    Parameters
    ----------
    values : array-like of shape (n, C) or (n, C (C - 1) / 2)
        One column per class. One-vs-one scores have one column per pair of classes, in the order
        (0, 1), (0, 2), …, (1, 2), … (that of ``numpy.triu_indices``); they are positive where the
        first class of the pair is preferred. float32 stays float32. A torch, CuPy or JAX array
        stays where it is, and its values are not checked. A Dask array stays lazy; its values
        are checked when a head computes them.
    items : iterable of names
        The C classes.
    kind : {"multiclass", "one-vs-rest", "one-vs-one"}
        How the classifier was trained. Probabilities are the softmax of multiclass scores, and the
        sigmoid of one-vs-rest scores.
    features : array-like or sparse matrix of shape (n, d), optional
        Features of each input, such as the last hidden layer of a network, by which labelled
        examples of new classes are compared (see `WeightedMean.fit`).
    evidence : Scores or data frame, optional
        Another model's scores for the new classes, with one column per new class:
        log-probabilities, cosines, or scores from a sentence encoder, CLIP or a language model.
        Only differences within a row matter.

    Examples
    --------
    >>> import rankshot as rs
    >>> scores = rs.Scores([[2.0, 0.5, -1.0]], ["leopard", "tiger", "bus"])
    >>> scores.with_items(["bus", "leopard", "tiger"]).values
    array([[-1. ,  2. ,  0.5]])
    """

    values: Floats
    items: tuple[str, ...]
    kind: Kind = "multiclass"
    features: Array = None
    evidence: Scores | None = None

    def __init__(
        self,
        values: ArrayLike,
        items: Iterable[object],
        kind: Kind = "multiclass",
        features: Array = None,
        evidence: object = None,
    ) -> None:
        require_choice("kind", kind, KINDS)
        names = as_names(items)
        table = as_floats(values)
        require_columns(tuple(table.shape), len(names), kind)
        self.__dict__.update(
            values=table,
            items=names,
            kind=kind,
            features=None if features is None else _as_features(features, len(table)),
            evidence=None if evidence is None else _as_evidence(evidence, len(table)),
        )
        if other_library(table) is None and not is_dask(table):
            refuse_infinite(table, names, kind)

    def __repr__(self) -> str:
        n, dtype = self.values.shape[0], self.values.dtype
        return f"Scores: {n} x {len(self.items)} classes, {self.kind}, {dtype}"

    @classmethod
    def from_validated(
        cls, values: Floats, items: tuple[str, ...], kind: Kind, features: Array = None
    ) -> Scores:
        """Take scores that the caller has validated, as readers of files do; check nothing."""
        scores = object.__new__(cls)
        given = {"values": values, "items": items, "kind": kind, "features": features}
        scores.__dict__.update(given, evidence=None)
        return scores

    @classmethod
    def concatenate(cls, parts: Sequence[Scores]) -> Scores:
        """Return the scores of ``parts``, which have the same classes, as one table.

        Features are kept, and so is evidence if all parts have it.

        Examples
        --------
        >>> from rankshot import Scores
        >>> Scores.concatenate([Scores([[2.0]], ["a"]), Scores([[3.0]], ["a"])]).values.tolist()
        [[2.0], [3.0]]
        """
        features = None
        if parts[0].features is not None:
            stack = vstack if issparse(parts[0].features) else np.concatenate
            features = stack([part.features for part in parts])
        values = np.concatenate([part.values for part in parts])
        whole = cls.from_validated(values, parts[0].items, parts[0].kind, features)
        evidence = [part.evidence for part in parts if part.evidence is not None]
        if len(evidence) < len(parts):
            return whole
        return replace(whole, evidence=cls.concatenate(evidence))

    @classmethod
    def from_probabilities(
        cls, proba: ArrayLike, items: Iterable[object], kind: Kind = "multiclass"
    ) -> Scores:
        """Make scores from probabilities ``proba``: logarithms if multiclass, log-odds otherwise.

        Multiclass probabilities add up to one in every row. One-vs-rest and one-vs-one
        probabilities come from separate binary classifiers. A probability of 0 is replaced by a
        millionth, or by less if the row has other values as small. For log-odds, a probability of
        1 is treated in the same way.

        Examples
        --------
        >>> from rankshot import Scores
        >>> Scores.from_probabilities([[.5, .5, 0]], ["a", "b", "c"]).values.round(2)
        array([[ -0.69,  -0.69, -13.82]])
        >>> separate = Scores.from_probabilities([[.9, .1]], ["a", "b"], kind="one-vs-rest")
        >>> separate.values.round(2)
        array([[ 2.2, -2.2]])
        """
        scores = cls(proba, items, kind)
        p = scores.values
        if is_dask(p):
            values = map_row_blocks(p, _log_of_probabilities, (scores.items, kind))
            return cls.from_validated(values, scores.items, kind)
        if (xp := other_library(p)) is None:
            _require_probabilities(p, scores.items, kind)
            xp = np
        values = _log_positive(p, xp)
        if kind != "multiclass":
            values = values - _log_positive(1 - p, xp)
        return cls.from_validated(values, scores.items, kind)

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def __getitem__(self, rows: slice | Sequence[int] | NDArray[np.integer | np.bool_]) -> Scores:
        """Select inputs by slice, row numbers or mask."""
        features, evidence = (
            None if part is None else part[rows] for part in (self.features, self.evidence)
        )
        return Scores(self.values[rows], self.items, self.kind, features, evidence)

    def with_items(self, items: Iterable[object]) -> Scores:
        """Return the same scores with the classes in another order."""
        if isinstance(items, tuple) and items == self.items:
            return self
        if (names := as_names(items)) == self.items:
            return self
        wanted = set(names)
        if extra := [name for name in self.items if name not in wanted]:
            raise RankshotError(
                f"the scores have classes that are not in the rankings: {quote_names(extra)}"
                f"{suggest_name(extra[0], names)}"
            )
        return self.select(names)

    def select(self, items: Iterable[object]) -> Scores:
        """Return the scores of some classes only, in the given order."""
        names = as_names(items)
        code = {name: i for i, name in enumerate(self.items)}
        if missing := [name for name in names if name not in code]:
            raise RankshotError(
                f"there are no scores for {quote_names(missing)}"
                f"{suggest_name(missing[0], self.items)}"
            )
        index = np.array([code[name] for name in names])
        signs: Array | None = None
        if self.kind == "one-vs-one":
            column, sign = pair_columns(len(self.items))
            first, second = (index[i] for i in np.triu_indices(len(names), 1))
            index, signs = column[first, second], sign[first, second].astype(np.float32)
        if (xp := other_library(self.values)) is None:
            values = np.take(self.values, index, axis=1)
        else:
            values = xp.take(self.values, to_library(index, xp, self.values), axis=1)
            signs = None if signs is None else to_library(signs, xp, values)
        values = values if signs is None else values * signs
        return Scores(values, names, self.kind, self.features, self.evidence)

    def _inputs(self, rows: slice, head: Columns) -> Array:
        """Return what ``head`` needs of some ``rows``: scores, features and evidence."""
        values = self.values[rows, :]
        if isinstance(values, np.ndarray):
            # Sums are rounded in the order of memory: a table has one result in any order.
            values = np.ascontiguousarray(values)
        if not head.n_extra_columns_:
            return values
        wanted = head.n_features_
        given = 0 if self.features is None else self.features.shape[1]
        if wanted and given != wanted:
            raise RankshotError(
                f"the head was fitted to examples with {wanted} features, but these inputs "
                f"have {given}: pass Scores(values, items, features=...)"
            )
        columns = [values]
        xp = other_library(values) or np
        if wanted:
            features = self.features[rows, :]
            dense = features.toarray() if issparse(features) else features
            columns.append(xp.astype(dense, values.dtype))
        if head.evidence_classes_:
            found = self._evidence_of(head.evidence_classes_)[rows, :]
            columns.append(xp.astype(found, values.dtype))
        return xp.concat(columns, axis=1)

    def _evidence_of(self, classes: tuple[str, ...]) -> Array:
        """Return the evidence of some new ``classes``, with one column for each."""
        if self.evidence is None:
            raise RankshotError(
                "the head was fitted with evidence from another model, but these inputs have none: "
                "pass Scores(values, items, evidence=...)"
            )
        if missing := [name for name in classes if name not in self.evidence.items]:
            raise RankshotError(
                f"evidence: there is no column for {quote_names(missing)}"
                f"{suggest_name(missing[0], self.evidence.items)}"
            )
        return self.evidence.select(classes).values

    def _with_columns(self, columns: Array, head: Columns) -> Scores:
        """Return these scores with ``columns`` after them, as `inputs` of ``head`` has them."""
        n, names = head.n_features_, head.evidence_classes_
        evidence = Scores(columns[:, n:], names) if names else None
        return Scores(self.values, self.items, self.kind, columns[:, :n] if n else None, evidence)


def _require_probabilities(p: Floats, items: tuple[str, ...], kind: Kind) -> None:
    """Raise a `RowError` for the first row that has no probabilities of this kind."""
    largest = 1 + SUM_TOLERANCE if kind == "multiclass" else 1
    outside = (p < 0) | (p > largest)
    if outside.any():
        row, column = np.argwhere(outside)[0]
        name = column_name(items, kind, column)
        raise RowError(f", {name}: {p[row, column]} is not a probability", int(row))
    total = p.sum(axis=1, dtype=np.float64) if kind == "multiclass" else np.ones(len(p))
    off = np.abs(total - 1) > SUM_TOLERANCE
    if off.any():
        row = int(np.argmax(off))
        raise RowError(
            f": multiclass probabilities must add up to one, not {total[row]:.3g}",
            row,
            ". Pass kind='one-vs-rest' if each class has its own binary classifier; if some "
            "classes were left out, divide each row by its sum",
        )


def _log_of_probabilities(block: Array, names: tuple[tuple[str, ...], Kind]) -> Array:
    return Scores.from_probabilities(block, *names).values


def as_scores(scores: Scores | ArrayLike, items: tuple[str, ...]) -> Scores:
    """Return `Scores` of ``items`` from what the caller of a head passes.

    A plain array has one column per item, in their order, or one per pair. The columns of a data
    frame are matched by name.
    """
    if is_lazy(scores):
        raise RankshotError(
            "only predict, predict_proba, predict_log_proba, top and decision_function of a head "
            "accept Dask arrays and data frames; pass scores in memory here, such as a sample: "
            "scores[:1000].compute()"
        )
    if isinstance(scores, Scores):
        return scores.with_items(items)
    found = name_columns(scores, items)
    warn_of_probabilities(found)
    return found.with_items(items)


def is_lazy(scores: object) -> bool:
    """Return whether scores are a table of Dask, or `Scores` of one."""
    return is_dask(scores.values if isinstance(scores, Scores) else scores)


def name_columns(scores: Any, items: tuple[str, ...]) -> Scores:
    """Return an array or a data frame as `Scores` of its columns, in their own order."""
    if other_library(scores) is None:
        if is_dask(scores) and hasattr(type(scores), "columns"):
            ids = [name for name in scores.columns if name == ID and ID not in items]
            scores = scores.drop(columns=ids)
            return Scores(scores, as_frame(scores._meta).columns)
        if (frame := as_frame(scores)) is not None:
            if ID in frame.columns and ID not in items:
                frame = frame.drop(ID)
            return Scores(frame_to_matrix(frame), frame.columns)
    table, C = as_floats(scores), len(items)
    # Three classes have three pairs; then an array is interpreted as one column per class.
    paired = table.ndim == 2 and table.shape[1] == C * (C - 1) // 2 and table.shape[1] != C
    return Scores(table, items, "one-vs-one" if paired else "multiclass")


def warn_of_probabilities(scores: Scores) -> None:
    """Warn if the first rows of scores in main memory look like probabilities."""
    if other_library(scores.values) is not None or scores.kind != "multiclass":
        return
    looks = (1, "probabilities", "scores"), (100, "percentages", "scores / 100")
    for total, what, values in looks:
        if are_probabilities(scores.values, total):
            warnings.warn(
                f"the scores look like {what}, but are interpreted as logits: pass "
                f"Scores.from_probabilities({values}, items), or Scores(scores, items) if they are "
                "logits",
                stacklevel=4,
            )


def are_probabilities(values: Floats, total: float = 1) -> bool:
    """Tell whether multiclass scores are probabilities; everything that has to guess it asks here.

    They are if there are two columns or more, and the first rows (at most a thousand) have only
    numbers of at least 0 that add up to one, give or take `SUM_TOLERANCE`. These are the rows that
    `Scores.from_probabilities` accepts, also those with a single 1, which decision trees return.
    A ``total`` of 100 tells percentages.
    """
    rows = values[:1000]
    if rows.size == 0 or rows.shape[1] < 2 or rows.min() < 0:
        return False
    sums = rows.sum(axis=1, dtype=np.float64)
    return bool((np.abs(sums - total) <= SUM_TOLERANCE * total).all())


def require_columns(shape: tuple[int, ...], n_items: int, kind: Kind) -> None:
    """Raise unless a table of this shape may have the scores of ``n_items`` classes."""
    wanted = n_columns(n_items, kind)
    if len(shape) != 2 or shape[1] != wanted:
        raise RankshotError(
            f"{kind} scores of {n_items} classes need a table of {wanted} columns, not one of "
            f"shape {shape}"
        )


def refuse_infinite(values: Floats, items: tuple[str, ...], kind: Kind) -> None:
    """Raise a `RowError` for the first score that is not finite, or too large to be added."""
    # The extremes are NaN if any score is NaN, and need no temporary array of the same size.
    if not values.size or (values.max() < LARGEST_SCORE and values.min() > -LARGEST_SCORE):
        return
    row, column = np.argwhere(~(np.abs(values) < LARGEST_SCORE))[0]
    value = values[row, column]
    rule = f"less than {LARGEST_SCORE:g} in absolute value" if np.isfinite(value) else "finite"
    where = column_name(items, kind, column)
    raise RowError(f", {where}: the score is {value}; scores must be {rule}", int(row))


def column_name(items: tuple[str, ...], kind: Kind, column: int) -> str:
    """Return a description of a column of scores, for error messages."""
    if kind != "one-vs-one":
        return f"column {items[column]!r}"
    first, second = np.triu_indices(len(items), 1)
    return f"column {items[first[column]]!r} against {items[second[column]]!r}"


def n_columns(n_items: int, kind: Kind) -> int:
    """Return the number of columns of a score table."""
    return n_items * (n_items - 1) // 2 if kind == "one-vs-one" else n_items


def pair_columns(n_items: int) -> tuple[NDArray[np.intp], NDArray[np.int8]]:
    """Return the column of every pair (i, j), and the sign that makes it a score for i."""
    first, second = np.triu_indices(n_items, 1)
    column = np.zeros((n_items, n_items), np.intp)
    sign = np.zeros((n_items, n_items), np.int8)
    column[first, second] = column[second, first] = np.arange(first.size)
    sign[first, second], sign[second, first] = 1, -1
    return column, sign


def as_floats(values: ArrayLike | Array) -> Array:
    """Return numbers as float32 if they have at most this precision, else as float64."""
    if is_dask(values):
        table = as_dask_array(values)
        return table.astype(as_floats(empty_block(table)).dtype)
    if (xp := other_library(values)) is not None:
        return as_real_floats(values, xp)
    try:
        table = np.asarray(values)
        single = table.dtype.kind == "f" and table.dtype.itemsize <= 4
        # Complex numbers and dates would be converted, but not safely.
        casting: Literal["safe", "unsafe"] = "safe" if table.dtype.kind in "cmM" else "unsafe"
        return table.astype(np.float32 if single else np.float64, casting=casting, copy=False)
    except (TypeError, ValueError, RuntimeError) as error:
        # A tensor that requires a gradient, or is on a GPU, raises RuntimeError.
        raise RankshotError(f"scores must be a table of numbers: {error}") from None


def _as_features(features: Array, n: int) -> Array:
    """Return features that are finite numbers, one row per input; sparse ones stay sparse."""
    if other_library(features) is None:
        features = features.tocsr() if issparse(features) else as_floats(features)
        values = features.data if issparse(features) else features
        if not np.isfinite(values).all():
            raise RankshotError("features must be finite numbers")
    if features.ndim != 2 or features.shape[0] != n:
        raise RankshotError(
            f"features need one row for each of {n} inputs, not the shape {tuple(features.shape)}"
        )
    return features


def _as_evidence(evidence: object, n: int) -> Scores:
    """Return evidence with named classes, one row per input."""
    if not isinstance(evidence, Scores):
        frame = as_frame(evidence)
        if frame is None:
            raise RankshotError(
                "evidence must name its classes: Scores(values, classes) or a data frame, not "
                f"{short_repr(evidence)}"
            )
        evidence = Scores(frame_to_matrix(frame), frame.columns)
    found: Scores = evidence
    if len(found) != n:
        raise RankshotError(f"evidence needs one row for each of {n} inputs, not {len(found)}")
    return found


def _log_positive(p: Array, xp: Library) -> Array:
    """Return log p; zeros are replaced by a value below all others of the row."""
    smallest = xp.min(xp.where(p > 0, p, 1.0), axis=1, keepdims=True)
    # The smallest number that there is has no half.
    half = xp.where(smallest / 2 > 0, smallest / 2, smallest)
    floor = xp.where(half < LEAST_PROBABILITY, half, LEAST_PROBABILITY)
    return xp.log(xp.where(p > 0, p, floor))


# -------------------------------------------------------------------- what follows from scores


def log_class_probabilities(values: Array, kind: Kind, asker: str, xp: Library = np) -> Array:
    """Return log P(y|x), one row per input: the log-softmax, or log-sigmoid for one-vs-rest."""
    if kind == "one-vs-one":
        raise RankshotError(
            f"{asker} needs one score per class, not one per pair; WeightedMean, "
            "ProbabilisticRanking and DeterministicRanking accept one-vs-one scores"
        )
    if kind == "multiclass":
        return log_softmax(values, xp, 1)
    # log σ(f) = -log(1 + e^-f)
    return -logaddexp(xp.zeros_like(values), -values, xp)


def class_scores(values: Array, kind: Kind, n_items: int, c: Constants, xp: Library) -> Array:
    """Return one score per seen class: of one-vs-one scores, the sum over its pairs.

    Columns after the scores, which are features, are left out. For other libraries than NumPy,
    ``c`` has the constants of `pair_constants`.
    """
    if kind != "one-vs-one":
        return values if values.shape[1] == n_items else values[:, :n_items]
    if xp is np:
        return sum_pair_scores(values, n_items)
    pairs = xp.reshape(xp.take(values, c["pair_columns"], axis=1), (-1, n_items, n_items))
    return xp.sum(pairs * c["pair_signs"], axis=2)


def pair_constants(n_items: int, kind: Kind, xp: Library) -> Constants:
    """Return what `class_scores` needs for scores of this kind; of NumPy, nothing."""
    if kind != "one-vs-one" or xp is np:
        return {}
    column, sign = pair_columns(n_items)
    return {"pair_columns": column.ravel(), "pair_signs": sign.astype(np.float64)}


def center_rows(f: Array, xp: Library = np) -> tuple[Array, Array]:
    """Return scores with mean 0 in each row, and their standard deviations.

    The scores of a row may have been divided by a number: only their ratio to the standard
    deviation counts. Where all scores are equal, the standard deviation is infinite.
    """
    mean = xp.mean(f, axis=1, keepdims=True)
    centered = f - mean
    limits = xp.finfo(f.dtype)
    is_safe = False
    if xp is np:
        # Mostly, squares neither underflow nor overflow.
        with np.errstate(over="ignore"):
            squares = np.vecdot(centered, centered)[:, None]
        is_safe = bool(((squares > limits.tiny / limits.eps) & (squares < np.inf)).all())
        norm = np.sqrt(squares)
    if not is_safe:
        top = largest(xp.abs(centered), xp, 1)
        scale = xp.where(top > 0, top, 1.0)
        centered, mean = centered / scale, mean / scale
        norm = row_norm(centered, xp)
    std = norm / sqrt(f.shape[1])
    is_rounding = std <= ROUNDING_UNITS * float(limits.eps) * xp.abs(mean)
    return centered, xp.where(is_rounding, np.inf, std)


def standardize_rows(
    values: Array, kind: Kind, n_items: int, c: Constants | None = None, xp: Library = np
) -> Array:
    """Return one score per seen class, with mean 0 and variance 1 in each row.

    NumPy arrays become float64. For other libraries, ``c`` has the constants of `pair_constants`.
    """
    f, std = center_rows(class_scores(values, kind, n_items, c or {}, xp), xp)
    return as_double(f / std, xp)


def standardize_blocks(table: Scores) -> Iterator[NDArray[np.float64]]:
    """Yield the standardised scores of some rows at a time, for tables in main memory."""
    for rows in row_blocks(len(table), table.values.shape[1]):
        yield standardize_rows(table.values[rows], table.kind, len(table.items))


def count_predictions(f: Floats) -> NDArray[np.float64]:
    """Return how often each class has the highest of standardised scores."""
    first = f >= f.max(axis=1, keepdims=True) - TIED_SCORES
    return np.asarray((first / first.sum(axis=1, keepdims=True)).sum(axis=0))


def count_effective(counts: Floats) -> float:
    """Return Simpson's effective number of classes, given how often each occurs."""
    return float(counts.sum() ** 2 / (counts @ counts))


def score_by_pair_wins(values: Floats, n_items: int) -> NDArray[np.float64]:
    """Return one number per class that orders classes by the pairs they win.

    Classes that win the same number of pairs are ordered by the sum of their scores. A pair with
    score 0 is half a win for each class.
    """
    wins = sum_pair_scores(np.sign(values), n_items) / 2
    # Rounded, so that the order of the additions has no influence.
    sums = np.round(sum_pair_scores(values, n_items), 9)
    # Wins differ by at least 1/2, so sums that are scaled into (-1/4, 1/4) only break ties.
    return np.asarray(wins + sums / (4 * (1 + np.abs(sums))))


def sum_pair_scores(values: Floats, n_items: int) -> NDArray[np.float64]:
    """Return Σ_j f_ij for every class i, one row per input."""
    sums, begin = np.zeros((len(values), n_items)), 0
    for i in range(n_items - 1):
        # The pairs of class i with all classes after it are next to each other.
        against_later = values[:, begin : begin + n_items - 1 - i]
        sums[:, i] += against_later.sum(axis=1, dtype=np.float64)
        sums[:, i + 1 :] -= against_later
        begin += against_later.shape[1]
    return sums


# ---- Tables of Dask


def is_dask(data: object) -> bool:
    """Return whether data are a collection of Dask, such as an array or a data frame.

    Who has a collection of Dask has imported Dask, so it is not imported here.
    """
    dask = sys.modules.get("dask.base")
    return dask is not None and bool(dask.is_dask_collection(data))


def as_dask_array(data: Any) -> Array:
    """Return a table of Dask as an array in which each block has all columns of its rows.

    The numbers of a data frame become float32 if all columns are, else float64.
    """
    # A `dask.delayed` value has attributes of any name; its type has not.
    if hasattr(type(data), "columns"):
        return data.map_partitions(_to_matrix, meta=_to_matrix(data._meta))
    is_array = hasattr(type(data), "map_blocks")
    if not is_array or data.ndim != 2 or np.isnan(data.shape[1]):
        raise RankshotError(
            "a Dask array or data frame is needed, with one column per class, not "
            f"{short_repr(data)}"
        )
    return data if len(data.chunks[1]) == 1 else data.rechunk({1: -1})


def _to_matrix(frame: Any) -> Array:
    return frame_to_matrix(as_frame(frame))


def empty_block(table: Array) -> Array:
    """Return a block without rows, of the library and the type of the blocks of a table."""
    return np.empty_like(table._meta, shape=(0, table.shape[1]))


def map_row_blocks(table: Array, function: Callable[[Any, Any], Any], constant: Any) -> Array:
    """Return ``function(block, constant)`` for each block of rows, as a lazy array of Dask.

    The result has one row per row of the table. The function is called once at once, with a block
    without rows: this shows the type of the result, and whether it refuses the columns. The
    constant is in the graph once, as a copy, so that it may change afterwards.

    Examples
    --------
    >>> import dask.array as da
    >>> table = da.from_array(np.arange(6.0).reshape(3, 2), chunks=2)
    >>> map_row_blocks(table, lambda block, factor: factor * block.sum(axis=1), 10).compute()
    array([10., 50., 90.])
    """
    from dask.delayed import delayed  # noqa: PLC0415

    result = function(empty_block(table), constant)
    return table.map_blocks(
        _call_on_block,
        function,
        delayed(deepcopy(constant), pure=True, traverse=False),
        chunks=(table.chunks[0], *((size,) for size in result.shape[1:])),
        drop_axis=1 if result.ndim == 1 else [],
        meta=result,
    )


def _call_on_block(
    block: Array,
    function: Callable[[Any, Any], Any],
    constant: Any,
    block_id: tuple[int, ...] = (0,),
) -> Array:
    try:
        return function(block, constant)
    except RowError as error:
        raise RankshotError(f"block {block_id[0]}, {error}") from None
