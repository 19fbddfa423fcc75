"""`Method`: what the methods of the paper have in common: from log-posteriors to predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankshot.core.arrays import row_blocks
from rankshot.core.validation import require_number
from rankshot.zeroshot.decide import most_probable
from rankshot.zeroshot.files.score_tables import as_scores
from rankshot.zeroshot.scores import Doubles, Scores


class Method(BaseEstimator, ABC):
    """A method of the paper. Log-posteriors are divided by the temperature, and normalised."""

    temperature: float | None
    items_: tuple[str, ...]
    classes_: NDArray[np.str_]

    @property
    def temperature_(self) -> float:
        """The number by which log-posteriors are divided before they are normalised."""
        return self._default_temperature() if self.temperature is None else float(self.temperature)

    def _default_temperature(self) -> float:
        return 1.0

    def _require_temperature(self) -> None:
        if self.temperature is not None:
            require_number("temperature", self.temperature, above=0, below=np.inf)

    @abstractmethod
    def _log_posterior(self, table: Scores) -> Doubles:
        """Log P(z|x) plus a constant per input; -inf for impossible classes."""

    def _cells_per_input(self) -> int:
        return len(self.items_) + len(self.classes_)

    def log_posterior(self, scores: Scores | ArrayLike) -> Doubles:
        """Log-posteriors of ``scores``, not divided by the temperature and not normalised."""
        check_is_fitted(self, "classes_")
        table = as_scores(scores, self.items_)
        result = np.empty((len(table), len(self.classes_)))
        for rows in row_blocks(len(table), self._cells_per_input()):
            result[rows] = self._log_posterior(table[rows])
        return result

    def log_proba(self, scores: Scores | ArrayLike) -> Doubles:
        """Log-probabilities of ``scores``: one row per input, one column per class."""
        values = self.log_posterior(scores) / self.temperature_
        # If all classes are impossible, all are equally probable.
        values[np.isneginf(values).all(axis=1)] = 0.0
        return np.asarray(log_softmax(values, axis=1))

    def predict_proba(self, scores: Scores | ArrayLike) -> Doubles:
        """Probabilities of ``scores``: one row per input, one column per class in ``classes_``."""
        return np.asarray(np.exp(self.log_proba(scores)))

    def predict(self, scores: Scores | ArrayLike) -> NDArray[np.str_]:
        """The most probable class for each row of ``scores``; among equals, the first by name."""
        return self.classes_[most_probable(self.log_proba(scores))]
