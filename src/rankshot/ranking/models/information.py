"""What rankings tell of worths: whether an estimate exists, and how precise it is."""

from __future__ import annotations

from typing import NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from rankshot.core.errors import InputError, RankshotError, quote_names
from rankshot.core.newton import Optimum, Point, maximize
from rankshot.ranking.consensus.precedence import precedence
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
SMALLEST_PIVOT = 1e-10
"""An item whose share of information of its own is smaller has errors of few correct digits."""


# ---- Does an estimate exist?


def require_estimable(rankings: Rankings) -> None:
    """Raise unless the Plackett-Luce maximum-likelihood estimate exists.

    It exists if and only if the graph of "was placed before" is strongly connected: the items
    cannot be split into two parts such that no item of one is ever placed before an item of the
    other (Hunter 2004). A tie that K cuts says only that some of its items came before the rest.
    Such ties are left out, and an estimate that depends on them is refused. All rankings count,
    whatever their weight.
    """
    _, _, text = find_one_sided(precedence(without_cut_ties(rankings)), rankings.items)
    if text:
        refuse_groups(text)


def refuse_groups(text: str) -> NoReturn:
    """Raise for groups of items, described by the text, whose worths cannot be compared."""
    raise InputError(
        "regularization",
        0,
        "asks for the maximum-likelihood estimate, which does not exist: the items fall into "
        f"groups whose worths cannot be compared, ties that K cuts aside ({text})",
        hint="use regularization > 0, or add rankings that connect them",
    )


def find_one_sided(
    before: Floats, items: tuple[str, ...]
) -> tuple[NDArray[np.bool_], NDArray[np.int8], str]:
    """Items that do not both win and lose against the largest group of those that do.

    ``before[i, j]`` is positive where item i came before j. After a mask of these items, there are
    1 for items that lost to none of another group, -1 for those that beat none, and 0 for others.
    The text says which are never placed before, or never after, others; "" if there are none.
    """
    table = csr_array(before)
    count, label = connected_components(table, connection="strong")
    winner, loser = (label[ends] for ends in table.nonzero())
    apart, sizes = winner != loser, np.bincount(label)
    wins, loses = (np.bincount(x[apart], minlength=count)[label] > 0 for x in (winner, loser))
    is_apart = np.asarray(label != sizes.argmax())
    # The largest group is left out: most items are the ones that others are compared with.
    others = is_apart | ((sizes.max() == 1) & (count > 1))
    parts: list[str] = []
    for ends, text in (
        (others & wins & ~loses, "nothing else was placed before"),
        (others & loses & ~wins, "nothing else was placed after"),
        (others & ~(wins | loses), "nothing else was compared with"),
    ):
        if names := [items[i] for i in np.flatnonzero(ends)]:
            parts.append(f"{text} {quote_names(names)}")
    sides = np.where(others, wins.astype(np.int8) - loses, 0).astype(np.int8)
    return is_apart, sides, "; ".join(parts)


def without_cut_ties(rankings: Rankings) -> Rankings:
    """End rankings before a tie that K cuts: its items need not have come before the rest."""
    if not rankings.has_ties:
        return rankings
    groups = rankings.groups
    whole = np.where(groups.taken == groups.size, groups.size, 0)
    lengths = np.bincount(groups.row, whole, minlength=len(rankings)).astype(np.int64)
    kept = lengths > 0
    return rankings[kept].top(lengths[kept])


class WorthLikelihood(Protocol):
    """A log-likelihood of ``size`` parameters: the log-worths of ``n_items``, then others."""

    n_items: int
    size: int

    def evaluate(self, b: Floats, /) -> Point:
        """Log-likelihood and its gradient."""

    def information(self, b: Floats, /) -> Floats:
        """Minus the matrix of second derivatives."""

    def row_gradients(self, b: Floats, /) -> csr_array:
        """Derivatives of each row, whatever its weight."""


def maximize_worths(
    likelihood: WorthLikelihood,
    ridge: Floats,
    tol: float = 1e-10,
    max_iter: int = 1000,
) -> Optimum:
    """Maximise a log-likelihood minus 1/2 Σ ridge_i θ_i², from zeros."""
    return maximize(
        likelihood.evaluate,
        likelihood.information,
        np.zeros(likelihood.size),
        ridge=ridge,
        invariant=(np.arange(likelihood.size) < likelihood.n_items).astype(float),
        tol=tol,
        max_iter=max_iter,
    )


# ---- Covariances


def find_covariance(
    likelihood: WorthLikelihood, parameters: Floats, ridge: Floats, labels: tuple[str, ...]
) -> Floats:
    """Covariance of all parameters, and 0 for those that no row tells anything about.

    Log-worths add up to zero. ``labels`` name the items and covariates, for messages; a parameter
    without a name is the tie parameter.

    Only differences of log-worths are known, so the information has no inverse. One item is taken
    as the reference: the errors of the differences from it give all others.
    """
    C, information = likelihood.n_items, likelihood.information(parameters) + np.diag(ridge)
    # In differences of log-worths, the prior is the information of η/C comparisons of each pair.
    information[:C, :C] -= ridge[0] / C
    own = np.diag(information)
    used = (np.arange(own.size) < C) | (own > 0)
    used[own[:C].argmax()] = False
    others = np.flatnonzero(used)
    names = [*labels, "the tie parameter"]
    covariance = np.zeros_like(information)
    covariance[np.ix_(others, others)] = invert_curvature(
        information[np.ix_(others, others)], [names[i] for i in others]
    )
    covariance[:C] -= covariance[:C].mean(axis=0)
    covariance[:, :C] -= covariance[:, :C].mean(axis=1, keepdims=True)
    return (covariance + covariance.T) / 2


def invert_curvature(curvature: Floats, names: list[str]) -> Floats:
    """Inverse of a positive definite matrix, with rows of any scale."""
    if not names:
        return curvature
    own = np.diag(curvature)
    scale = 1 / np.sqrt(np.where(own > 0, own, 1.0))
    scaled = scale[:, None] * curvature * scale
    # The pivots of a matrix of diagonal 1 are the shares that no other parameter explains. LAPACK
    # stops at the first one that is not positive.
    factor, failed = dpotrf(scaled)
    pivots = np.diag(factor) ** 2
    worst = failed - 1 if failed else int(pivots.argmin())
    if failed or pivots[worst] < SMALLEST_PIVOT:
        raise RankshotError(
            f"the standard error of {names[worst]!r} cannot be computed: the rankings do not "
            "compare it with the others, or only those whose weight is less than 1e-10 of the "
            "weight of others, or the model was fitted to other rankings. Use "
            "regularization > 0, or weights that are more similar"
        )
    inverse = np.triu(dpotri(factor)[0])
    inverse += np.triu(inverse, 1).T
    return np.asarray(scale[:, None] * inverse * scale)


def variances_of_differences(covariance: Floats) -> Floats:
    """Variance of the difference of each two log-worths."""
    variances = np.diag(covariance)
    return np.asarray(variances[:, None] + variances - 2 * covariance)


def find_quasi_variances(covariance: Floats) -> Floats:
    r"""Quasi-variances of Firth and de Menezes: one number per item.

    The variance of a difference of two log-worths is about the sum of theirs. They minimise, over
    the pairs of items, the squares of

    .. math:: \log(q_i + q_j) - \log \operatorname{Var}(\theta_i - \theta_j)

    by Newton's method. A quasi-variance can be negative; a sum of two is not.
    """
    C = len(covariance)
    wanted = variances_of_differences(covariance)
    # The scale keeps sums of squares of variances of any size within the range of numbers.
    unit = max(wanted.max(initial=0.0), np.finfo(float).tiny)
    # Items that have the same error do not count as a pair: their difference has none.
    pairs = wanted > 1e-14 * unit
    wanted = np.where(pairs, wanted / unit, 1.0)
    q = np.where(pairs, wanted, 0.0).sum(axis=1) / (2 * max(C - 1, 1))

    def add_up(q: Floats) -> tuple[Floats, Floats]:
        """Log-ratios, and 1 / (q_i + q_j)."""
        sums = np.where(pairs, q[:, None] + q, 1.0)
        return np.log(sums / wanted), np.where(pairs, 1 / sums, 0.0)

    def evaluate(q: Floats) -> Point:
        if np.any((q[:, None] + q)[pairs] <= 0):
            return Point(-np.inf, np.zeros(C))
        residuals, weights = add_up(q)
        slopes = weights * residuals
        return Point(
            -float((residuals**2).sum()) / 4,
            -slopes.sum(axis=1),
            gradient_size=np.abs(slopes).sum(axis=1),
        )

    def curvature(q: Floats) -> Floats:
        residuals, weights = add_up(q)
        # Made positive where a sum is far too large.
        squares = weights**2 * np.maximum(1 - residuals, 0.1)
        # Two items, for example, determine only the sum of theirs: the lift decides for equal ones.
        own = (1 + 1e-12) * squares.sum(axis=1) + np.finfo(float).tiny
        return np.asarray(squares + np.diag(own))

    return np.asarray(maximize(evaluate, curvature, q, tol=1e-24).parameters * unit)
