"""Leaderboards with covariates of the match: length of the answers, position, home advantage."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.columns import ColumnReader
from rankshot.core.errors import RankshotError, quote_names
from rankshot.core.newton import maximize
from rankshot.ranking.models.information import invert_information
from rankshot.ranking.models.pair_likelihood import PairLikelihood
from rankshot.ranking.models.plackett_luce_stages import Gradients
from rankshot.ranking.models.robust_errors import Units, find_units, sandwich, sum_squares
from rankshot.ranking.votes import TIE, Votes

Floats = NDArray[np.float64]
POSITION = "position"
"""The covariate 1 of every match: what it is worth to be the first of the two."""


def read_covariates(table: ColumnReader, names: tuple[str, ...], rows: NDArray[np.int64]) -> Floats:
    """Return one column per covariate, for some rows of the table.

    It is the column of this name, that of ``name_a`` minus ``name_b``, or 1 for the position.
    """
    columns, wanted = table.columns, []
    for name in names:
        pair = [f"{name}_a", f"{name}_b"]
        if name in columns:
            wanted.append([name])
        elif {*pair} <= {*columns}:
            wanted.append(pair)
        elif name == POSITION:
            wanted.append([])
        else:
            raise RankshotError(
                f"{table}: no column {name!r} for a covariate, nor {quote_names(pair)}; the "
                f"columns are {quote_names(columns)}"
            )
    flat = [name for each in wanted for name in each]
    numbers = table.read_numbers(flat)[rows] if flat else np.ones((1, 0))
    X, at = np.ones((len(numbers), len(names))), 0
    for k, each in enumerate(wanted):
        if each:
            X[:, k] = numbers[:, at] - (numbers[:, at + 1] if len(each) > 1 else 0.0)
        at += len(each)
    return X


def fit_matches(
    votes: Votes, X: Floats, names: tuple[str, ...], *, ties: str, regularization: float
) -> tuple[Floats, Floats, Units]:
    """Return the parameters, their covariance, clustered by rater, and who voted.

    They are the log-worths, the coefficients and, where ``ties`` is "outcome", the logarithm of the
    tie parameter.
    """
    X = np.broadcast_to(X, (votes.outcome.size, X.shape[1]))
    kept = votes.weights > 0
    if ties == "ignore":
        kept &= votes.outcome != TIE
    if not kept.all():
        columns: Iterable[Any] = (column[kept] for column in votes[1:])
        votes, X = Votes(votes.items, *columns), X[kept]
    scale = np.sqrt((X**2).mean(axis=0))
    if (flat := ~(scale > 0)).any():
        raise RankshotError(f"covariate {names[int(np.argmax(flat))]!r} is 0 in all votes")
    sign = np.array([1.0, -1.0, 0.0])[votes.outcome]
    C, is_outcome = len(votes.items), ties == "outcome"
    likelihood = PairLikelihood(
        votes.first, votes.second, sign, votes.weights, C, X / scale, has_ties=is_outcome
    )
    is_worth = (np.arange(likelihood.size) < C).astype(float)
    b = maximize(
        likelihood.evaluate,
        likelihood.information,
        np.zeros(likelihood.size),
        ridge=regularization * is_worth,
        invariant=is_worth,
    ).parameters
    labels = (*votes.items, *names)
    inverse = invert_information(likelihood.information(b), votes.items, regularization, labels)
    units = find_units(votes.raters, votes.weights, np.arange(sign.size))
    if units.n_raters:
        zeros = np.zeros(sign.size), np.zeros(likelihood.size)
        squares = sum_squares(units, Gradients(likelihood.gradients(b), *zeros))
    else:
        squares = likelihood.squares(b, units.weights**2)
    unit = np.concatenate([np.ones(C), 1 / scale, np.ones(int(is_outcome))])
    b = unit * (b - is_worth * b[:C].mean())
    return b, sandwich(inverse, squares, units.n) * np.outer(unit, unit), units
