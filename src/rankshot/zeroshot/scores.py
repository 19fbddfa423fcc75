"""`Scores`: what a classifier says about inputs, with the names of the classes it knows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import log_softmax

from rankshot.core.errors import RankshotError, RowError, quote_names, short_repr, suggest_name
from rankshot.core.names import as_names

Floats = NDArray[np.floating]
Kind = Literal["multiclass", "one-vs-rest", "one-vs-one"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LEAST_PROBABILITY = 1e-6
"""What a probability of 0 counts as, or half of the smallest other one of its row if that is
less: a zero is a rounded or uncounted number, and its logarithm would veto."""
LARGEST_SCORE = 1e30
"""Beyond it sums of scores overflow in single precision; a logit it is not."""
SUM_TOLERANCE = 0.02
"""How far the probabilities of a row may be from adding up to one: tables are rounded."""


# -------------------- zeroshot.scores
# `Scores`: what a classifier says about inputs, with the names of the classes it knows.


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of n inputs, on the scale of logarithms: logits, decision values or log-odds.

    Parameters
    ----------
    values : array-like of shape (n, C) or (n, C (C - 1) / 2)
        One column a class; or, one-vs-one, one a pair, in the order (0, 1), (0, 2), …, (1, 2), …
        (that of ``numpy.triu_indices``), positive where the first of the pair is preferred.
        float32 stays float32, and is computed with as such.
    items : iterable of names
        The C classes.
    kind : {"multiclass", "one-vs-rest", "one-vs-one"}
        How the classifier was trained. The softmax of multiclass scores, and the sigmoid of
        one-vs-rest ones, are probabilities.

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

    def __init__(self, values: ArrayLike, items: Iterable[Any], kind: Kind = "multiclass") -> None:
        if kind not in KINDS:
            raise RankshotError(f"kind must be one of {', '.join(KINDS)}, not {short_repr(kind)}")
        names = as_names(items)
        table = _as_floats(values)
        wanted = n_columns(len(names), kind)
        if table.ndim != 2 or table.shape[1] != wanted:
            raise RankshotError(
                f"{kind} scores of {len(names)} classes need a table of {wanted} columns, not "
                f"one of shape {table.shape}"
            )
        object.__setattr__(self, "values", table)
        object.__setattr__(self, "items", names)
        object.__setattr__(self, "kind", kind)
        self._refuse_infinite()

    @classmethod
    def from_probabilities(
        cls, proba: ArrayLike, items: Iterable[Any], kind: Kind = "multiclass"
    ) -> Scores:
        """Take probabilities: their logarithms if multiclass, their log-odds otherwise.

        Multiclass probabilities add up to one in every row; the others are those of separate
        yes-or-no questions. A probability of 0 (or a 1, where the odds count) is taken as a
        millionth away from it, or less where the row has others as extreme.

        Examples
        --------
        >>> Scores.from_probabilities([[.5, .5, 0]], ["a", "b", "c"]).values.round(2)
        array([[ -0.69,  -0.69, -13.82]])
        >>> separate = Scores.from_probabilities([[.9, .1]], ["a", "b"], kind="one-vs-rest")
        >>> separate.values.round(2)
        array([[ 2.2, -2.2]])
        """
        scores = cls(proba, items, kind)
        p = scores.values
        outside = (p < 0) | (p > 1)
        if outside.any():
            row, column = np.argwhere(outside)[0]
            name = column_name(scores.items, kind, column)
            raise RowError(f", {name}: {p[row, column]} is no probability", int(row))
        if kind != "multiclass":
            return cls(_log_positive(p) - _log_positive(1 - p), scores.items, kind)
        total = p.sum(axis=1)
        off = np.abs(total - 1) > SUM_TOLERANCE
        if off.any():
            row = int(np.argmax(off))
            raise RowError(
                f": multiclass probabilities add up to one, these to {total[row]:.3g}",
                row,
                ". Say kind='one-vs-rest' if each answers a question of its own",
            )
        return cls(_log_positive(p), scores.items, kind)

    def _refuse_infinite(self) -> None:
        # The extremes are NaN if any score is, and need no array as large as the scores.
        if self.values.size == 0:
            return
        if self.values.max() < LARGEST_SCORE and self.values.min() > -LARGEST_SCORE:
            return
        row, column = np.argwhere(~(np.abs(self.values) < LARGEST_SCORE))[0]
        value = self.values[row, column]
        rule = f"less than {LARGEST_SCORE:g} in size" if np.isfinite(value) else "finite"
        where = f"row {row}, {column_name(self.items, self.kind, column)}"
        raise RankshotError(f"{where}: the score is {value}; scores must be {rule}")

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice | NDArray[Any]) -> Scores:
        """Select inputs by slice, index array or mask."""
        return Scores(self.values[rows], self.items, self.kind)

    def with_items(self, items: Iterable[Any]) -> Scores:
        """Return the same scores with the classes in another order."""
        names = as_names(items)
        if names == self.items:
            return self
        known = set(names)
        if extra := [name for name in self.items if name not in known]:
            raise RankshotError(
                f"the scores have classes that nobody ranks: {quote_names(extra)}"
                f"{suggest_name(extra[0], names)}"
            )
        return self.select(names)

    def select(self, items: Iterable[Any]) -> Scores:
        """Keep some classes, in the order given: what the classifier says of them alone."""
        names = as_names(items)
        code = {name: i for i, name in enumerate(self.items)}
        if missing := [name for name in names if name not in code]:
            raise RankshotError(
                f"there are no scores of {quote_names(missing)}{suggest_name(missing[0], self.items)}"
            )
        index = np.array([code[name] for name in names])
        if self.kind != "one-vs-one":
            return Scores(np.take(self.values, index, axis=1), names, self.kind)
        column, sign = pair_columns(len(self.items))
        first, second = (index[i] for i in np.triu_indices(len(names), 1))
        values = np.take(self.values, column[first, second], axis=1)
        values *= sign[first, second].astype(values.dtype)
        return Scores(values, names, self.kind)


def as_scores(scores: Scores | ArrayLike, items: tuple[str, ...]) -> Scores:
    """Return scores over ``items``, from what a caller of a head passes.

    A plain array has a column for each item, in their order, or one for each pair; a data
    frame is matched by the names of its columns.
    """
    if isinstance(scores, Scores):
        return scores.with_items(items)
    if hasattr(scores, "columns") and hasattr(scores, "to_numpy"):
        found = Scores(scores.to_numpy(), scores.columns)
    else:
        table = _as_floats(scores)
        C = len(items)
        # Three classes have three pairs: there an array is taken to have a column a class.
        paired = table.ndim == 2 and table.shape[1] == C * (C - 1) // 2 and table.shape[1] != C
        found = Scores(table, items, "one-vs-one" if paired else "multiclass")
    _warn_of_probabilities(found)
    return found.with_items(items)


def _warn_of_probabilities(scores: Scores) -> None:
    """Warn of logits that are all from 0 to 1 and add up to one: a look at a few will do."""
    few = scores.values[:100]
    if scores.kind != "multiclass" or few.size == 0 or few.shape[1] < 2 or few.min() < 0:
        return
    if (np.abs(few.sum(axis=1) - 1) < SUM_TOLERANCE).all() and (few % 1).any():
        warnings.warn(
            "the scores look like probabilities, but are taken as logits: pass "
            "Scores.from_probabilities(scores, items), or Scores(scores, items) if they are",
            stacklevel=4,
        )


def column_name(items: tuple[str, ...], kind: Kind, column: int) -> str:
    """Return what a column of scores is of, for a message."""
    if kind != "one-vs-one":
        return f"column {items[column]!r}"
    first, second = np.triu_indices(len(items), 1)
    return f"column {items[first[column]]!r} against {items[second[column]]!r}"


def n_columns(n_items: int, kind: Kind) -> int:
    """Return how many columns a table of scores has."""
    return n_items * (n_items - 1) // 2 if kind == "one-vs-one" else n_items


def pair_columns(n_items: int) -> tuple[NDArray[np.intp], NDArray[np.int8]]:
    """Return the column of every pair (i, j), and the sign with which it speaks for i."""
    first, second = np.triu_indices(n_items, 1)
    column = np.zeros((n_items, n_items), np.intp)
    sign = np.zeros((n_items, n_items), np.int8)
    column[first, second] = column[second, first] = np.arange(first.size)
    sign[first, second], sign[second, first] = 1, -1
    return column, sign


def _as_floats(values: ArrayLike) -> Floats:
    try:
        table = np.asarray(values)
        if table.dtype.kind in "cmM":
            raise TypeError(f"{table.dtype} is no real number")  # noqa: TRY301
        single = table.dtype.kind == "f" and table.dtype.itemsize <= 4
        return table.astype(np.float32 if single else np.float64, copy=False)
    except (TypeError, ValueError, RuntimeError) as error:
        # RuntimeError is what a tensor that still has a gradient, or lies on a GPU, raises.
        raise RankshotError(f"scores must be a table of numbers: {error}") from None


def _log_positive(p: Floats) -> Floats:
    """Return log p, with something smaller than all others of the row for a zero."""
    smallest = np.where(p > 0, p, np.inf).min(axis=1, keepdims=True)
    floor = np.clip(smallest / 2, np.finfo(p.dtype).smallest_subnormal, LEAST_PROBABILITY)
    return np.asarray(np.log(np.where(p > 0, p, floor)))


# -------------------- zeroshot.class_probabilities
# P(y|x): the probabilities of the seen classes, from scores of any kind that has them.


def log_class_probabilities(values: Floats, kind: Kind, asker: str) -> NDArray[np.float64]:
    """Return log P(y|x), a row an input: of the softmax, or of the sigmoid for one-vs-rest.

    Examples
    --------
    >>> log_class_probabilities(np.array([[0.0, -99.0]]), "one-vs-rest", "example").round(3)
    array([[ -0.693, -99.   ]])
    """
    if kind == "one-vs-one":
        raise RankshotError(
            f"{asker} needs a score for each class, not for each pair: one-vs-one scores are for "
            "ProbabilisticRanking and DeterministicRanking"
        )
    f = np.asarray(values, np.float64)
    # log σ(f) = -log(1 + e^-f)
    return -np.logaddexp(0, -f) if kind == "one-vs-rest" else np.asarray(log_softmax(f, axis=1))


# -------------------- zeroshot.pair_wins
# One-vs-one scores, class by class: the pairs that each wins, and the sum of its scores.


def count_pair_wins(values: Floats, n_items: int) -> NDArray[np.float64]:
    """Return numbers that order classes by the pairs they win, then by the sum of their scores.

    A pair of score 0 is half a win for each.
    """
    wins = pair_sums(np.sign(values), n_items) / 2
    # Rounded, so that the order in which they were added up decides nothing.
    sums = np.round(pair_sums(values, n_items), 9)
    # Wins differ by halves at least: sums squeezed into (-1/4, 1/4) only break ties.
    return np.asarray(wins + sums / (4 * (1 + np.abs(sums))))


def pair_sums(values: Floats, n_items: int) -> NDArray[np.float64]:
    """Return Σ_j f_ij for every class i, a row an input."""
    first, second = np.triu_indices(n_items, 1)
    ones, pair = np.ones(first.size), np.arange(first.size)
    cells = np.append(ones, -ones), (np.append(first, second), np.append(pair, pair))
    against_all = csr_array(cells, shape=(n_items, first.size))
    return np.asarray((against_all @ values.T.astype(np.float64)).T)
