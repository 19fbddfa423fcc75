"""`Scores`: what a classifier says about some inputs, checked once.

Everything below this door sees one column per seen class, on a logarithmic scale.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse, vstack
from scipy.special import log_expit, log_softmax

from rankshot.core.arrays import (
    Array,
    Library,
    as_real_floats,
    other_library,
    row_blocks,
    to_library,
)
from rankshot.core.columns import NumberCheck
from rankshot.core.errors import NO_VALUE, InputError, quote_names, suggest_name
from rankshot.core.tables import as_frame, frame_to_matrix
from rankshot.core.validation import as_names, require_choice

Floats = NDArray[np.floating]
Doubles = NDArray[np.float64]
Kind = Literal["multiclass", "one-vs-rest", "one-vs-one"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LEAST_PROBABILITY = 1e-6
"""The value that replaces a probability of 0, or half of the smallest other probability of its
row if that is less. A zero is usually rounded, and its logarithm would exclude a class for good."""
ROUNDING_UNITS = 16
"""Numbers that differ by less than this number of units in the last place are equal."""
TIED_SCORES = 1e-5
"""Standardised scores that differ by less are equal: then both classes are predicted by half."""
LARGEST_SCORE = 1e15
"""Larger scores are refused: their squares overflow in single precision."""
SCORE_RULE = NumberCheck(
    "scores must be finite numbers (a column of names must be called id)", LARGEST_SCORE
)
PROBABILITY_ROUNDING = 1e-6
"""How far a probability may be outside [0, 1]: a softmax in single precision is, by 1e-7."""
PROBABILITY_RULE = NumberCheck(
    "probabilities must be numbers", 1 + PROBABILITY_ROUNDING, least=-PROBABILITY_ROUNDING
)
SUM_TOLERANCE = 0.02
"""How far the sum of the probabilities of a row may be from one: tables are rounded, half precision
has three digits, and fastText returns probabilities such as 1.0001."""


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Scores:
    """The scores of n inputs on a logarithmic scale: logits, decision values or log-odds.

    Parameters
    ----------
    values : array-like of shape (n, C) or (n, C (C - 1) / 2)
        One column per class. One-vs-one scores have one column per pair of classes, in the order
        (0, 1), (0, 2), …, (1, 2), … (that of ``numpy.triu_indices``); they are positive where the
        first class of the pair is preferred. They are summed to one score per class, and the pairs
        are kept in ``pairs``. float32 stays float32. A torch, CuPy or JAX array stays where it is,
        and its values are not checked.
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
    >>> rs.Scores([[1.0, 3.0, 2.0]], ["leopard", "tiger", "bus"], kind="one-vs-one").values
    array([[ 4.,  1., -5.]])
    """

    columns: Array
    items: tuple[str, ...]
    kind: Kind
    features: Array
    evidence: Scores | None

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
        if other_library(table) is None:
            SCORE_RULE.refuse_first(table, "row {}".format, lambda j: name_columns(names, kind)[j])
        blocks = _as_features(features, len(table)), _as_evidence(evidence, len(table))
        self.__dict__.update(vars(self.from_validated(table, names, kind, *blocks)))

    @cached_property
    def values(self) -> Array:
        """One column per class: one-vs-one scores are summed."""
        return self.columns if self.pairs is None else sum_pairs(self.pairs, len(self.items))

    @property
    def pairs(self) -> Array:
        """One-vs-one scores, with one column per pair of classes; None for others."""
        return self.columns if self.kind == "one-vs-one" else None

    def __repr__(self) -> str:
        n, dtype = len(self), self.columns.dtype
        return f"Scores: {n} x {len(self.items)} classes, {self.kind}, {dtype}"

    @classmethod
    def from_dicts(cls, rows: Iterable[Mapping[str, float]], kind: Kind = "multiclass") -> Scores:
        """Scores from one dict per input, which has the score of every class by its name.

        Parameters
        ----------
        rows : iterable of mappings
            All with the same classes, in any order.
        kind : {"multiclass", "one-vs-rest"}
            How the classifier was trained.

        Examples
        --------
        >>> import rankshot as rs
        >>> scores = rs.Scores.from_dicts([{"es": 2.0, "gl": 1.0}, {"gl": 3.0, "es": 0.5}])
        >>> scores.items, scores.values
        (('es', 'gl'), array([[2. , 1. ],
               [0.5, 3. ]]))
        """
        table = list(rows)
        items = list(table[0]) if table else []
        for number, row in enumerate(table):
            if row.keys() != table[0].keys():
                differing = sorted(row.keys() ^ table[0].keys(), key=str)
                rule = "must have the classes of the first row in every row"
                raise InputError("rows", differing, rule, where=f"row {number}")
        return cls([[row[item] for item in items] for row in table], items, kind)

    @classmethod
    def from_validated(
        cls,
        columns: Array,
        items: tuple[str, ...],
        kind: Kind,
        features: Array = None,
        evidence: Scores | None = None,
    ) -> Scores:
        """Scores with ``columns`` that the caller, such as a reader of files, has validated."""
        scores = object.__new__(cls)
        scores.__dict__.update(
            columns=columns, items=items, kind=kind, features=features, evidence=evidence
        )
        return scores

    @classmethod
    def concatenate(cls, parts: Sequence[Scores]) -> Scores:
        """The scores of ``parts``, which have the same classes, as one table.

        Features are kept, and so is evidence if all parts have it.

        Examples
        --------
        >>> from rankshot import Scores
        >>> Scores.concatenate([Scores([[2.0]], ["a"]), Scores([[3.0]], ["a"])]).values.tolist()
        [[2.0], [3.0]]
        """
        first, features = parts[0], None
        if first.features is not None:
            stack = vstack if issparse(first.features) else np.concatenate
            features = stack([part.features for part in parts])
        columns = np.concatenate([part.columns for part in parts])
        evidence = [part.evidence for part in parts if part.evidence is not None]
        whole = cls.concatenate(evidence) if len(evidence) == len(parts) else None
        return cls.from_validated(columns, first.items, first.kind, features, whole)

    @classmethod
    def from_probabilities(
        cls, proba: ArrayLike, items: Iterable[object], kind: Kind = "multiclass"
    ) -> Scores:
        """Scores from probabilities ``proba``: logarithms if multiclass, log-odds otherwise.

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
        p = scores.columns
        if (xp := other_library(p)) is None:
            require_probabilities(p, scores.items, kind)
            xp = np
        values = log_probabilities(p, kind, xp)
        return cls.from_validated(values, scores.items, kind)

    def __len__(self) -> int:
        return int(self.columns.shape[0])

    def __getitem__(self, rows: slice | Sequence[int] | NDArray[np.integer | np.bool_]) -> Scores:
        """Select inputs by slice, row numbers or mask."""
        features, evidence = (
            None if part is None else part[rows] for part in (self.features, self.evidence)
        )
        return self.from_validated(self.columns[rows], self.items, self.kind, features, evidence)

    def with_blocks(self, *, features: Array = None, evidence: object = None) -> Scores:
        """The same scores with these features and this evidence; without them by default."""
        more = _as_features(features, len(self)), _as_evidence(evidence, len(self))
        return self.from_validated(self.columns, self.items, self.kind, *more)

    def with_items(self, items: Iterable[object]) -> Scores:
        """The same scores with the classes in another order."""
        # Names are only checked if they differ: heads ask this for every batch.
        if items == self.items:
            return self
        names = as_names(items)
        rule = "is not one of the seen classes that the rankings or the head have"
        _require_among(self.items, names, "scores", rule)
        return self.select(names)

    def select(self, items: Iterable[object]) -> Scores:
        """The scores of some classes only, in the order of ``items``."""
        names = as_names(items)
        _require_among(names, self.items, "scores", "is not one of their classes")
        code = {name: i for i, name in enumerate(self.items)}
        index = np.array([code[name] for name in names])
        signs: Array = np.ones(1, np.float32)
        if self.kind == "one-vs-one":
            column, sign = pair_columns(len(self.items))
            first, second = (index[i] for i in np.triu_indices(len(names), 1))
            index, signs = column[first, second], sign[first, second].astype(np.float32)
        if (xp := other_library(self.columns)) is not None:
            index, signs = (to_library(one, xp, self.columns) for one in (index, signs))
        values = (xp or np).take(self.columns, index, axis=1) * signs
        return self.from_validated(values, names, self.kind, self.features, self.evidence)

    def evidence_of(self, classes: Sequence[str]) -> Array:
        """Another model's scores of some new ``classes``, with one column for each."""
        items = () if self.evidence is None else self.evidence.items
        rule = "has no column in Scores(values, items, evidence=...)"
        _require_among(classes, items, "evidence", rule)
        return None if self.evidence is None else self.evidence.select(classes).values


def _require_among(names: Iterable[str], known: Sequence[str], parameter: str, rule: str) -> None:
    """Raise for the first of the names that is not known, and list all others."""
    known_names = {*known}
    if others := [name for name in names if name not in known_names]:
        hint = f"so are {quote_names(others[1:])}" if len(others) > 1 else ""
        raise InputError(parameter, others[0], f"{rule}{suggest_name(others[0], known)}", hint=hint)


def require_probabilities(
    p: Floats, items: Sequence[str], kind: Kind, where: Callable[[int], str] = "row {}".format
) -> None:
    """Raise for the first row that has no probabilities of this kind; ``where`` describes it."""
    largest = 1 + SUM_TOLERANCE if kind == "multiclass" else 1
    if (outside := (p < 0) | (p > largest)).any():
        row, column = np.argwhere(outside)[0].tolist()
        name = repr(name_columns(items, kind)[column])
        raise InputError(name, float(p[row, column]), "is not a probability", where=where(row))
    if kind != "multiclass":
        return
    total = p.sum(axis=1, dtype=np.float64)
    if (off := np.abs(total - 1) > SUM_TOLERANCE).any():
        row = int(np.argmax(off))
        hint = "divide each row by its sum; with a binary classifier per class, use one-vs-rest"
        value = round(float(total[row]), 3)
        raise InputError("probabilities", value, "must add up to one", where(row), hint)


def warn_of_probabilities(scores: Scores) -> None:
    """Warn if the first rows of scores in main memory look like probabilities."""
    if other_library(scores.values) is not None or scores.kind != "multiclass":
        return
    for total, values in ((1, "scores"), (100, "scores / 100")):
        if are_probabilities(scores.values, total):
            warnings.warn(
                f"the scores of each input add up to {total}, but are interpreted as logits: pass "
                f"Scores.from_probabilities({values}, items), or Scores(scores, items) if they are "
                "logits",
                stacklevel=4,
            )


def are_probabilities(values: Floats, total: float = 1) -> bool:
    """Whether multiclass scores are probabilities; everything that has to guess it asks here.

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
        rule = f"must be a table of {wanted} columns: {kind}, {n_items} classes"
        raise InputError("scores", shape, rule)


def name_columns(items: Sequence[str], kind: Kind) -> Sequence[str]:
    """The names of the columns of scores: classes, or pairs of them."""
    return [" | ".join(pair) for pair in combinations(items, 2)] if kind == "one-vs-one" else items


def n_columns(n_items: int, kind: Kind) -> int:
    """The number of columns of a score table."""
    return n_items * (n_items - 1) // 2 if kind == "one-vs-one" else n_items


def as_floats(values: ArrayLike | Array) -> Array:
    """Numbers as float32 if they have at most this precision, else as float64."""
    if (xp := other_library(values)) is not None:
        return as_real_floats(values, xp)
    try:
        table = np.asarray(values)
        single = table.dtype.kind == "f" and table.dtype.itemsize <= 4
        return table.astype(np.float32 if single else np.float64, copy=False)
    except (TypeError, ValueError, RuntimeError) as error:
        # A tensor that requires a gradient, or is on a GPU, raises RuntimeError.
        rule = "must be a table of numbers"
        raise InputError("scores", NO_VALUE, rule, hint=str(error)) from None


def _as_features(features: Array, n: int) -> Array:
    """Features that are finite numbers, one row per input; sparse ones stay sparse."""
    if features is None:
        return None
    if other_library(features) is None:
        features = features.tocsr() if issparse(features) else as_floats(features)
        values = features.data if issparse(features) else features
        if not np.isfinite(values).all():
            raise InputError("features", NO_VALUE, "must be finite numbers")
    if features.ndim != 2 or features.shape[0] != n:
        rule = f"must have one row for each of {n} inputs"
        raise InputError("features", tuple(features.shape), rule)
    return features


def _as_evidence(evidence: object, n: int) -> Scores | None:
    """Another model's scores with named classes, one row per input."""
    if evidence is None:
        return None
    if not isinstance(evidence, Scores):
        if (frame := as_frame(evidence)) is None:
            rule = "must name its classes: Scores(values, classes) or a data frame"
            raise InputError("evidence", evidence, rule)
        evidence = Scores(frame_to_matrix(frame), frame.columns)
    if len(evidence) != n:
        raise InputError("evidence", len(evidence), f"must have one row for each of {n} inputs")
    return evidence


def log_probabilities(p: Array, kind: Kind, xp: Library) -> Array:
    """Log p of multiclass probabilities, otherwise their log-odds, in any library."""
    log_p = _log_positive(p, xp)
    return log_p if kind == "multiclass" else log_p - _log_positive(1 - p, xp)


def _log_positive(p: Array, xp: Library) -> Array:
    """Log p; zeros are replaced by a value below all others of the row."""
    smallest = xp.min(xp.where(p > 0, p, 1.0), axis=1, keepdims=True)
    # The smallest number that there is has no half.
    half = xp.where(smallest / 2 > 0, smallest / 2, smallest)
    floor = xp.where(half < LEAST_PROBABILITY, half, LEAST_PROBABILITY)
    return xp.log(xp.where(p > 0, p, floor))


# ---- Pairs of classes


def pair_columns(n_items: int) -> tuple[NDArray[np.intp], NDArray[np.int8]]:
    """The column of every pair (i, j), and the sign that makes it a score for i."""
    first, second = np.triu_indices(n_items, 1)
    column = np.zeros((n_items, n_items), np.intp)
    sign = np.zeros((n_items, n_items), np.int8)
    column[first, second] = column[second, first] = np.arange(first.size)
    sign[first, second], sign[second, first] = 1, -1
    return column, sign


def sum_pairs(pairs: Array, n_items: int) -> Array:
    """Σ_j f_ij for every class i: one row per input, in the precision of the pairs."""
    column, sign = pair_columns(n_items)
    i, j = np.nonzero(sign)
    design = csr_array((sign[i, j].astype(float), (column[i, j], i)), (pairs.shape[1], n_items))
    if (xp := other_library(pairs)) is not None:
        return pairs @ to_library(design.toarray(), xp, pairs)
    return np.asarray(pairs @ design).astype(pairs.dtype, copy=False)


# ---- What follows from scores


def log_class_probabilities(table: Scores) -> Doubles:
    """Log P(y|x), one row per input: the log-softmax, or the log-sigmoid for one-vs-rest."""
    f = np.asarray(table.values, np.float64)
    return np.asarray(log_expit(f) if table.kind == "one-vs-rest" else log_softmax(f, axis=1))


def inverse_std(f: Array, mean: Array, xp: Library = np, dtype: Any = None) -> Array:
    """1 / standard deviation of each row, as a column; 0 where all scores are equal.

    ``dtype`` is the precision that the scores had before, if it was another one.
    """
    above = f - mean
    if xp is np:
        # In half the time of `np.var`.
        variance = np.vecdot(above, above)[:, None] / f.shape[1]
    else:
        variance = xp.mean(above * above, axis=1, keepdims=True)
    rounding = ROUNDING_UNITS * float(xp.finfo(dtype or f.dtype).eps) * mean
    is_equal = variance <= rounding * rounding
    # The root of 0 has no gradient.
    return xp.where(is_equal, 0.0, 1 / xp.sqrt(xp.where(is_equal, 1.0, variance)))


def standardize_rows(values: Floats) -> Doubles:
    """Scores with mean 0 and variance 1 in each row, in double precision."""
    f = np.asarray(values, np.float64)
    mean = f.mean(axis=1, keepdims=True)
    return np.asarray((f - mean) * inverse_std(f, mean, dtype=values.dtype))


def standardize_blocks(table: Scores) -> Iterator[Doubles]:
    """Standardised scores of some rows at a time, for tables in main memory."""
    for rows in row_blocks(len(table), table.values.shape[1]):
        yield standardize_rows(table.values[rows])


def count_predictions(f: Floats) -> Doubles:
    """How often each class has the highest of standardised scores."""
    first = f >= f.max(axis=1, keepdims=True) - TIED_SCORES
    return np.asarray((first / first.sum(axis=1, keepdims=True)).sum(axis=0))


def count_effective(counts: Floats) -> float:
    """Simpson's effective number of classes, from how often each occurs."""
    return float(counts.sum() ** 2 / (counts @ counts))
