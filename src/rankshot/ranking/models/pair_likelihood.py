r"""The log-likelihood of votes between two items, with ties and covariates of the match.

The log-odds that item a beats b are :math:`d = \theta_a - \theta_b + x^\top \beta`, with the
covariates x of the match (a minus b). Where a tie is an outcome, as in Davidson's model,

.. math:: P(a) : P(b) : P(\text{tie}) = e^{d/2} : e^{-d/2} : \delta .
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rankshot.core.newton import Point

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]


class PairLikelihood:
    """The log-likelihood in log-worths, coefficients and the logarithm of the tie parameter.

    Parameters
    ----------
    first, second : ndarray of int
        The numbers of the two items of each vote.
    sign : ndarray
        1 if the first one won, -1 if the second one did, 0 for a tie.
    weights : ndarray
    n_items : int
    X : ndarray of shape (votes, covariates), optional
    has_ties : bool
        Whether a tie is an outcome; otherwise it is half a win of each.
    """

    def __init__(
        self,
        first: Ints,
        second: Ints,
        sign: Floats,
        weights: Floats,
        n_items: int,
        X: Floats | None = None,
        *,
        has_ties: bool,
    ) -> None:
        self.n_items, self._weights, self._sign = n_items, weights, sign
        self._first, self._second = first.astype(np.intp), second.astype(np.intp)
        self._tied = (sign == 0).astype(float)
        self._X = np.empty((sign.size, 0)) if X is None else X
        self._of_X = slice(n_items, n_items + self._X.shape[1])
        self._has_ties = has_ties
        self.size = self._of_X.stop + has_ties
        self._last: tuple[Floats, tuple[Floats, ...]] | None = None

    def _predict(self, b: Floats) -> tuple[Floats, ...]:
        """Return d, P(a) - P(b), P(tie) and the logarithm of the sum that they are divided by."""
        if self._last is None or not np.array_equal(self._last[0], b):
            d = b[self._first] - b[self._second] + self._X @ b[self._of_X]
            small = np.exp(-np.abs(d) / 2)
            tie = np.exp(b[-1]) * small if self._has_ties else np.zeros(1)
            total = 1 + small**2 + tie
            lead = np.sign(d) * (1 - small**2) / total
            self._last = b.copy(), (d, lead, tie / total, np.abs(d) / 2 + np.log(total))
        return self._last[1]

    def _slopes(self, b: Floats) -> tuple[Floats, Floats]:
        """Return the derivatives of each vote in d, and in the log of the tie parameter."""
        _, lead, tie, _ = self._predict(b)
        return (self._sign - lead) / 2, self._tied - tie

    def evaluate(self, b: Floats) -> Point:
        """Return the log-likelihood and its gradient."""
        d, _, _, log_total = self._predict(b)
        own = self._sign * d / 2 + (self._tied * b[-1] if self._has_ties else 0.0)
        slope, of_tie = self._slopes(b)
        gradient = self._add_up(self._weights * slope)
        if self._has_ties:
            gradient = np.append(gradient, self._weights @ of_tie)
        size = float(self._weights @ (np.abs(own) + log_total))
        return Point(float(self._weights @ (own - log_total)), gradient, size)

    def information(self, b: Floats) -> Floats:
        """Return minus the matrix of second derivatives."""
        _, lead, tie, _ = self._predict(b)
        w = self._weights
        of_d, C, x = w * (1 - tie - lead**2) / 4, self.n_items, self._of_X
        both = np.bincount(self._first * C + self._second, of_d, C * C).reshape(C, C)
        both += both.T
        found = np.zeros((self.size, self.size))
        found[:C, :C] = np.diag(both.sum(axis=1)) - both
        found[x, x] = self._X.T @ (of_d[:, None] * self._X)
        for k, column in enumerate(self._X.T, C):
            found[:C, k] = found[k, :C] = self._add_up(of_d * column)[:C]
        if self._has_ties:
            found[:-1, -1] = found[-1, :-1] = self._add_up(-w * lead * tie / 2)
            found[-1, -1] = float(w @ (tie * (1 - tie)))
        return found

    def _add_up(self, values: Floats) -> Floats:
        """Return the derivatives in log-worths and coefficients, from those in d."""
        first, second = (np.bincount(x, values, self.n_items) for x in (self._first, self._second))
        return np.append(first - second, values @ self._X)

    def gradients(self, b: Floats) -> csr_array:
        """Return the derivatives of each vote, whatever its weight."""
        slope, of_tie = self._slopes(b)
        n = slope.size
        others = [slope * column for column in self._X.T] + [of_tie] * self._has_ties
        values = np.column_stack([slope, -slope, *others])
        columns = np.empty(values.shape, np.int32)
        columns[:, 0], columns[:, 1] = self._first, self._second
        columns[:, 2:] = self.n_items + np.arange(len(others))
        starts = np.arange(n + 1) * values.shape[1]
        return csr_array((values.ravel(), columns.ravel(), starts), shape=(n, self.size))
