r"""Votes between two items, with ties and covariates of the match such as length and position.

The log-odds that item a beats b are :math:`d = \theta_a - \theta_b + x^\top \beta`, with the
covariates x of the match (a minus b). Where a tie is an outcome, as in Davidson's model (1970),

.. math:: P(a) : P(b) : P(\text{tie}) = e^{d/2} : e^{-d/2} : \delta .

References
----------
Davidson (1970), On extending the Bradley-Terry model to accommodate ties in paired comparison
experiments. Journal of the American Statistical Association 65.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rankshot.core.errors import InputError, quote_names
from rankshot.core.newton import Point
from rankshot.ranking.consensus.precedence import precedence
from rankshot.ranking.matrices import count_ties
from rankshot.ranking.models.information import (
    WorthLikelihood,
    find_one_sided,
    maximize_worths,
    refuse_groups,
)
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
FLAT = 1e-14
"""A direction with less than this part of the curvature at equal worths has no maximum: the solver
ends at 1e-15, and one vote that contradicts a million others leaves 1e-7."""
SHARE = 1e-3
"""A direction in which covariates have a smaller part is one of the items; rounding leaves 1e-8."""


class PairLikelihood:
    """The log-likelihood in log-worths, coefficients and the logarithm of the tie parameter.

    Parameters
    ----------
    votes : Rankings
        The winner first, or the two tied.
    X : ndarray of shape (votes, covariates), optional
    has_ties : bool
        Whether a tie is an outcome; otherwise it is half a win for each item.
    """

    def __init__(self, votes: Rankings, X: Floats | None = None, *, has_ties: bool) -> None:
        self._first, self._second = votes.codes.reshape(-1, 2).T.astype(np.intp)
        self.n_items, self._weights = votes.n_items, votes.weights
        # 1 if the first one won, 0 for a tie.
        self._sign = (~votes.rows_with_ties).astype(np.float64)
        self._X = np.empty((len(votes), 0)) if X is None else X
        self._of_X = slice(self.n_items, self.n_items + self._X.shape[1])
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
        return (self._sign - lead) / 2, 1 - self._sign - tie

    def evaluate(self, b: Floats) -> Point:
        """Return the log-likelihood and its gradient."""
        d, _, _, log_total = self._predict(b)
        own = self._sign * d / 2 + ((1 - self._sign) * b[-1] if self._has_ties else 0.0)
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

    def of_pairs(self, b: Floats) -> tuple[Ints, Floats, Floats, Floats]:
        """Return the pair, slope, information and weight of each vote.

        A pair is the number of its lower item times C, plus that of the other; slopes are those in
        the difference of the lower item to the other.
        """
        _, lead, tie, _ = self._predict(b)
        turned = np.where(self._first < self._second, 1.0, -1.0)
        low, high = np.minimum(self._first, self._second), np.maximum(self._first, self._second)
        information = (1 - tie - lead**2) / 4
        return (
            low * self.n_items + high, turned * self._slopes(b)[0],
            np.broadcast_to(information, low.shape), self._weights,
        )  # fmt: skip

    def _add_up(self, values: Floats) -> Floats:
        """Return the derivatives in log-worths and coefficients, from those in d."""
        first, second = (np.bincount(x, values, self.n_items) for x in (self._first, self._second))
        return np.append(first - second, values @ self._X)

    def row_gradients(self, b: Floats) -> csr_array:
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


class Fitted(NamedTuple):
    """The fit of worths, and for votes coefficients of covariates and a tie parameter.

    Attributes
    ----------
    likelihood : WorthLikelihood
        In units of the sizes of covariates.
    parameters, ridge, unit : ndarray
        Its maximum, the penalty of each parameter, and what it is multiplied by.
    endless : str
        Which covariates only the penalty holds; "" if there are none.
    """

    likelihood: WorthLikelihood
    parameters: Floats
    ridge: Floats
    unit: Floats
    endless: str


def fit_matches(
    votes: Rankings,
    X: Floats,
    names: tuple[str, ...],
    *,
    has_ties: bool,
    penalty: float,
) -> Fitted:
    """Fit votes; rows of ``X`` are of the first item in each vote minus the second.

    The ``penalty`` is η in η/2 Σ θ² on log-worths, and on coefficients in units of the size of
    their covariates. With covariates there is none if the maximum exists without: wins connect all
    items, in both directions. Ties as outcomes do not, because the tie parameter may grow as well.
    """
    before = precedence(votes) if has_ties else precedence(votes) + count_ties(votes)
    _, _, text = find_one_sided(before, votes.items)
    if text and not penalty:
        refuse_groups(text)
    scale = np.sqrt((X**2).mean(axis=0))
    if (flat := ~(scale > 0)).any():
        raise InputError("covariates", names[int(flat.argmax())], "is 0 in all votes")
    likelihood = PairLikelihood(votes, X / scale, has_ties=has_ties)
    if found := _find_flat_names(likelihood, np.zeros(likelihood.size), names):
        raise InputError(
            "covariates", ", ".join(found), "cannot be told from the items or each other",
            hint="one follows from the others: leave out one covariate",
        )  # fmt: skip
    # A tie parameter has no penalty.
    is_held = np.arange(likelihood.size) < likelihood.size - has_ties
    ridge = np.where(is_held, penalty if text or not names else 0.0, 0.0)
    b = maximize_worths(likelihood, ridge).parameters
    endless = [] if ridge.any() else _find_flat_names(likelihood, b, names)
    if endless:
        ridge = np.where(is_held, penalty, 0.0)
        b = maximize_worths(likelihood, ridge).parameters
    unit = np.concatenate([np.ones(votes.n_items), 1 / scale, np.ones(int(has_ties))])
    text = f"covariates explain votes completely: {quote_names(endless)}" if endless else ""
    return Fitted(likelihood, b, ridge, unit, text)


def _find_flat_names(likelihood: PairLikelihood, b: Floats, names: tuple[str, ...]) -> list[str]:
    """Covariates in directions without curvature: their effects have no limit."""
    if not names:
        return []
    of_names = slice(likelihood.n_items, likelihood.n_items + len(names))
    least = FLAT * likelihood.information(np.zeros_like(b)).trace()
    curvatures, directions = np.linalg.eigh(likelihood.information(b))
    parts = np.abs(directions[of_names, curvatures < least]).max(axis=1, initial=0.0)
    return [name for name, part in zip(names, parts, strict=True) if part > SHARE]
