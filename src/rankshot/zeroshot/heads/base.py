"""From log-posteriors to decisions: what all heads answer, once they can score targets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from rankshot.core.blocks import CACHED_CELLS, row_blocks
from rankshot.core.errors import RankshotError, short_repr, suggest_name
from rankshot.zeroshot.scores import Kind, Scores, as_scores

Floats = NDArray[np.floating]
Candidates = ArrayLike | Sequence[Iterable[str]] | None
REJECTED = "rejected"
"""The label of an input that no target is probable enough for."""
TIED = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-9}
"""Log-probabilities closer than this (than this part of them, beyond 1) are not told apart: the
order in which sums were taken must not decide. The first name in the alphabet does."""


class Top(NamedTuple):
    """The most probable targets of each input, best first, and their probabilities."""

    labels: NDArray[np.str_]
    proba: Floats


class BaseHead(ABC):
    """What a head answers: labels, probabilities, the first few.

    A head has ``items_`` (what its scores are of) and ``classes_`` (its targets, sorted), and
    says how probable each target is in `_log_posterior`, up to what depends on the input alone.
    """

    items_: tuple[str, ...]
    classes_: NDArray[np.str_]

    @abstractmethod
    def fit(self, semantics: Any) -> Any:
        """Learn what semantics say of the targets."""

    @abstractmethod
    def _log_posterior(self, values: Floats, kind: Kind) -> NDArray[np.float64]:
        """Return log P(z|x) plus anything that is the same for all z, a row a target."""

    def predict_log_proba(
        self, scores: Scores | ArrayLike, candidates: Candidates = None
    ) -> Floats:
        """Return log P(z|x), a row an input and a column a target, in the order of ``classes_``.

        Parameters
        ----------
        scores : Scores, data frame or array-like of shape (n, C) or (n, C (C - 1) / 2)
            What the classifier says; the columns of a plain array are in the order of
            ``items_``. float32 is computed with, and answered, as float32.
        candidates : list of lists of names, or bool array of shape (n, L), optional
            The targets that each input may be; by default all.
        """
        check_is_fitted(self, "classes_")
        table = as_scores(scores, self.items_)
        mask = candidate_mask(candidates, len(table), self.classes_)
        values = table.values
        result = np.empty((len(values), len(self.classes_)), values.dtype)
        for rows in row_blocks(len(values), self._cells_per_input(values), CACHED_CELLS):
            block = self._log_posterior(values[rows], table.kind)
            allowed = None if mask is None else mask[rows].T
            result[rows] = normalize_log_proba(block, allowed, values.dtype).T
        return result

    def _cells_per_input(self, values: Floats) -> int:
        return int(values.shape[1]) + len(self.classes_)

    def predict_proba(self, scores: Scores | ArrayLike, candidates: Candidates = None) -> Floats:
        """Return P(z|x), a row an input and a column a target, in the order of ``classes_``."""
        log_proba = self.predict_log_proba(scores, candidates)
        return np.exp(log_proba, out=log_proba)

    def predict(
        self, scores: Scores | ArrayLike, candidates: Candidates = None
    ) -> NDArray[np.str_]:
        """Return the most probable target of each input; of equals, the first by name."""
        best = most_probable(self.predict_log_proba(scores, candidates))
        return self.classes_[best]

    def top(self, scores: Scores | ArrayLike, k: int, candidates: Candidates = None) -> Top:
        """Return the ``k`` most probable targets of each input, and their probabilities."""
        log_proba = self.predict_log_proba(scores, candidates)
        return take_top(log_proba, self.classes_, k)


def normalize_log_proba(
    log_posterior: NDArray[np.float64],
    allowed: NDArray[np.bool_] | None,
    dtype: np.dtype[np.floating],
) -> Floats:
    """Return log-probabilities that add up to one in each column, over what is allowed.

    Only their differences from the largest are rounded to ``dtype``.
    """
    if allowed is not None:
        log_posterior[~allowed] = -np.inf
    largest = log_posterior.max(axis=0)
    hopeless = np.isneginf(largest)
    if hopeless.any():
        # Nothing speaks for any of them: all that are allowed are alike.
        log_posterior[:, hopeless] = 0.0
        if allowed is not None:
            log_posterior[~allowed] = -np.inf
        largest = log_posterior.max(axis=0)
    log_proba = (log_posterior - largest).astype(dtype)
    log_proba -= np.log(np.exp(log_proba).sum(axis=0))
    return np.asarray(log_proba)


def most_probable(log_proba: Floats) -> NDArray[np.intp]:
    """Return the column of the largest of each row; of those not told apart, the first."""
    largest = log_proba.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        tied = TIED[log_proba.dtype] * np.maximum(1, np.abs(largest))
        return np.asarray(np.argmax(log_proba >= largest - tied, axis=1))


def label_or_reject(
    log_proba: Floats, classes: NDArray[np.str_], reject_below: float | None, reject_label: str
) -> NDArray[np.str_]:
    """Return the most probable class of each row, or a label of rejection where it is not sure."""
    best = most_probable(log_proba)
    labels: NDArray[np.str_] = classes[best]
    if reject_below is None:
        return labels
    sure = np.exp(log_proba[np.arange(len(best)), best]) >= reject_below
    return np.where(sure, labels, reject_label)


def take_top(log_proba: Floats, classes: NDArray[np.str_], k: int) -> Top:
    """Return the k most probable of each row, taken out one after the other."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= len(classes):
        raise RankshotError(
            f"k must be between 1 and the {len(classes)} classes, not {short_repr(k)}"
        )
    left = log_proba.copy()
    labels = np.empty((len(left), k), classes.dtype)
    proba = np.empty((len(left), k), left.dtype)
    rows = np.arange(len(left))
    taken = np.zeros(left.shape, bool)
    for place in range(k):
        column = most_probable(np.where(taken, -np.inf, left))
        # Where nothing but impossible targets is left, any that is not taken will do.
        column = np.where(taken[rows, column], np.argmin(taken, axis=1), column)
        labels[:, place] = classes[column]
        proba[:, place] = np.exp(log_proba[rows, column])
        taken[rows, column] = True
    return Top(labels, proba)


def candidate_mask(
    candidates: Candidates, n: int, classes: NDArray[Any]
) -> NDArray[np.bool_] | None:
    """Return which targets each input may be, or None if all may be all."""
    if candidates is None:
        return None
    if isinstance(candidates, np.ndarray) and candidates.dtype == bool:
        mask = candidates
        if mask.shape != (n, len(classes)):
            raise RankshotError(
                f"candidates must have the shape ({n}, {len(classes)}), not {mask.shape}"
            )
    else:
        mask = _mask_of_names(candidates, n, classes)
    nothing = np.flatnonzero(~mask.any(axis=1))
    if nothing.size:
        raise RankshotError(f"candidates: input {nothing[0]} has none")
    return mask


def _mask_of_names(candidates: Any, n: int, classes: NDArray[Any]) -> NDArray[np.bool_]:
    try:
        lists = list(candidates)
    except TypeError:
        raise RankshotError(
            f"candidates must be a list of names for each input, not {short_repr(candidates)}"
        ) from None
    if len(lists) != n:
        raise RankshotError(f"candidates: {n} inputs need {n} lists of names, not {len(lists)}")
    code = {name: i for i, name in enumerate(classes)}
    mask = np.zeros((n, len(classes)), bool)
    for row, names in enumerate(lists):
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise RankshotError(
                f"candidates: input {row} needs a list of names, not {short_repr(names)}"
            )
        for name in names:
            if not isinstance(name, str) or name not in code:
                raise RankshotError(
                    f"candidates: input {row}: no target {short_repr(name)}{suggest_name(name, classes)}"
                )
            mask[row, code[name]] = True
    return mask
