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
from rankshot.ranking.models.plackett_luce_stages import Gradients
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
SMALLEST_PIVOT = 1e-10
"""An item whose share of information of its own is smaller has errors of few correct digits."""
FLAT = 1e-14
"""A direction with less than this part of the curvature at equal worths has no maximum: the solver
ends at 1e-15, and one ranking that contradicts a million others leaves 1e-7."""


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
        refuse_groups(text, has_cuts=bool(np.any(rankings.lengths < rankings.n_listed)))


def refuse_groups(text: str, *, has_cuts: bool = False) -> NoReturn:
    """Raise for groups of items, described by the text, whose worths cannot be compared."""
    verdict = "may not exist (ties that K cuts are ignored)" if has_cuts else "does not exist"
    raise InputError(
        "regularization",
        0,
        f"asks for the maximum-likelihood estimate, which {verdict}: the items fall into groups "
        f"whose worths cannot be compared ({text})",
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
    count, label = connected_components(csr_array(before), connection="strong")
    wins, loses, _ = _find_ends(csr_array(before), label)
    text = _describe_groups(csr_array(before), label, items) if count > 1 else ""
    is_apart = np.asarray(label != np.argmax(np.bincount(label)))
    return is_apart, wins.astype(np.int8) - loses, text


def without_cut_ties(rankings: Rankings) -> Rankings:
    """End rankings before a tie that K cuts: its items need not have come before the rest."""
    if not rankings.has_ties:
        return rankings
    groups = rankings.groups
    whole = np.where(groups.taken == groups.size, groups.size, 0)
    lengths = np.bincount(groups.row, whole, minlength=len(rankings)).astype(np.int64)
    kept = lengths > 0
    return rankings[kept].top(lengths[kept])


def _find_ends(
    before: csr_array, label: NDArray[np.int32]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Items of groups that came before others, or after others; and of those compared with none.

    The largest group is left out: most items are the ones that others are compared with.
    """
    winner, loser = (label[ends] for ends in before.nonzero())
    apart, sizes = winner != loser, np.bincount(label)
    wins, loses = (np.bincount(x[apart], minlength=sizes.size) > 0 for x in (winner, loser))
    others = (label != np.argmax(sizes)) | (sizes.max() == 1)
    return wins[label] & others, loses[label] & others, ~(wins | loses)[label] & others


def _describe_groups(before: csr_array, label: NDArray[np.int32], items: tuple[str, ...]) -> str:
    """Groups of items at the ends, or compared with no others, in words."""
    wins, loses, alone = _find_ends(before, label)
    parts: list[str] = []
    for ends, text in (
        (wins & ~loses, "nothing else was placed before"),
        (loses & ~wins, "nothing else was placed after"),
        (alone, "nothing else was compared with"),
    ):
        if names := [items[i] for i in np.flatnonzero(ends)]:
            parts.append(f"{text} {quote_names(names)}")
    return "; ".join(parts)


class WorthLikelihood(Protocol):
    """A log-likelihood of ``size`` parameters: the log-worths of ``n_items``, then others."""

    n_items: int
    size: int

    def evaluate(self, b: Floats, /) -> Point:
        """Log-likelihood and its gradient."""

    def information(self, b: Floats, /) -> Floats:
        """Minus the matrix of second derivatives."""

    def row_gradients(self, b: Floats, /) -> Gradients:
        """Derivatives of each row, whatever its weight."""


def maximize_worths(
    likelihood: WorthLikelihood,
    ridge: Floats | float,
    tol: float = 1e-10,
    max_iter: int = 1000,
) -> Optimum:
    """Maximise a penalised log-likelihood, from zeros."""
    return maximize(
        likelihood.evaluate,
        likelihood.information,
        np.zeros(likelihood.size),
        ridge=ridge,
        invariant=(np.arange(likelihood.size) < likelihood.n_items).astype(float),
        tol=tol,
        max_iter=max_iter,
    )


def find_flat(likelihood: WorthLikelihood, values: Floats) -> Floats:
    """Directions in which a log-likelihood has no curvature left, as columns."""
    least = FLAT * likelihood.information(np.zeros_like(values)).trace()
    curvatures, directions = np.linalg.eigh(likelihood.information(values))
    return np.asarray(directions[:, curvatures < least])


# ---- Covariances


def find_covariance(
    likelihood: WorthLikelihood, parameters: Floats, ridge: Floats, labels: tuple[str, ...]
) -> Floats:
    """Covariance of all parameters, and 0 for those that no row tells anything about.

    Log-worths add up to zero. ``labels`` name the items and covariates, for messages.
    """
    C, information = likelihood.n_items, likelihood.information(parameters)
    information[np.diag_indices(likelihood.size)] += np.where(
        np.arange(likelihood.size) < C, 0.0, ridge
    )
    kept = np.flatnonzero((np.arange(likelihood.size) < C) | (np.diag(information) > 0))
    found = np.zeros_like(information)
    found[np.ix_(kept, kept)] = invert_information(
        information[np.ix_(kept, kept)], labels[:C], float(ridge[0]), labels
    )
    return found


def invert_information(
    information: Floats, items: tuple[str, ...], penalty: float, labels: tuple[str, ...]
) -> Floats:
    """Covariance of log-worths that add up to zero, and of other parameters.

    ``labels`` name the parameters in messages; those without a name are tie parameters.

    Only differences of log-worths are known, so the information has no inverse. One item is taken
    as the reference: the errors of the differences from it give all others. Each row is scaled,
    so that information of any size can be inverted.
    """
    C, information = len(items), information.copy()
    # In differences of log-worths, the prior is the information of η/C comparisons of each pair.
    information[:C, :C] += penalty * (np.eye(C) - 1 / C)
    if not penalty:
        _require_connected(information[:C, :C], items)
    reference = int(np.argmax(np.diag(information)[:C]))
    others = np.delete(np.arange(len(information)), reference)
    names = [labels[i] if i < len(labels) else "a tie parameter" for i in others]
    covariance = np.zeros_like(information)
    covariance[np.ix_(others, others)] = invert_curvature(
        information[np.ix_(others, others)], names
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
    # The pivots of a matrix of diagonal 1 are the shares that no other parameter explains.
    factor, failed = dpotrf(scaled)
    if failed and np.linalg.eigvalsh(scaled)[0] < -SMALLEST_PIVOT:
        # Only ties that K cuts can have such information.
        raise RankshotError(
            "standard errors do not exist at these log-worths: they are not a maximum of the "
            "likelihood. Fit the model to the same rankings"
        )
    # LAPACK stops at the first pivot that is not positive.
    pivots = np.diag(factor) ** 2 if not failed else np.arange(len(scaled)) != failed - 1
    if pivots.min() < SMALLEST_PIVOT:
        raise RankshotError(
            f"the standard error of {names[int(pivots.argmin())]!r} cannot be computed: it "
            "depends on rankings whose weight is less than 1e-10 of the weight of others. Make "
            "the weights more similar, or use regularization > 0"
        )
    inverse = np.triu(dpotri(factor)[0])
    inverse += np.triu(inverse, 1).T
    return np.asarray(scale[:, None] * inverse * scale)


def _require_connected(information: Floats, items: tuple[str, ...]) -> None:
    count, label = connected_components(csr_array(information != 0), directed=False)
    if count > 1:
        sizes = np.bincount(label)
        apart = [items[i] for i in np.flatnonzero(label != np.argmax(sizes))]
        raise RankshotError(
            f"standard errors are infinite: the items fall into {count} groups that the rankings "
            f"do not compare with each other ({quote_names(apart)} apart from the others). "
            "Use regularization > 0, or add rankings that connect them"
        )


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
