r"""Joint classification: all inputs of a batch, without labels, help to classify each of them.

The rankings predict roughly where the inputs of a new class lie; the batch shows where they lie. In
each *view* of the inputs (their scores with another model's scores, or their features), the points
of class z are normal with the mean μ_z and one covariance Σ, and

.. math:: \log P(z|x) = \log P_{head}(z|x)
          + \tfrac{1}{2V} \sum_{v=1}^V E \log N(x_v; \mu_{vz}, \Sigma_v) + E \log P(z) + c

- The means have a normal prior with the covariance between classes, and the frequencies P(z) a
  Dirichlet prior; the expectations are over both. A class that does not occur has an uncertain
  mean and so a low density: it gets hardly any inputs. The variational EM algorithm finds all of it
  for each view, from the probabilities of the head.
- Normal densities of many columns are far too confident: half of them counts (1/2).
- The head may prefer classes without reason, or they may be frequent. So there are two solutions,
  with equal frequencies and with estimated ones. The first has the weight v^6, where v is the
  variety of the classes that are found with equal frequencies: 1 / (L Σ share²).

All of it is linear in the points, so the result is a `LinearMap`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.special import digamma, log_softmax

Floats = NDArray[np.float64]
DENSITY_WEIGHT = 0.5
EQUALITY_POWER = 6
N_ITERATIONS = 10
"""With poor rankings, more iterations lead away from the head."""
MOST_DIRECTIONS = 200
FEATURE_DIRECTIONS = 64
"""Of more columns, this many principal components are used, of scores and of features."""
MOST_SCALINGS = 200
LARGEST_SHARE_ERROR = 1e-3
"""Iterative scaling stops after so many steps, or as soon as the shares have such errors."""
CONCENTRATIONS = 1e-3, 1e4
TINY = 1e-9


class View(NamedTuple):
    """Points of the same inputs in one space: (x - center) @ axes.

    Attributes
    ----------
    points : ndarray of shape (n, k)
        Of the batch, and of examples after them.
    center : ndarray of shape (d,)
    axes : ndarray of shape (d, k)
    """

    points: Floats
    center: Floats
    axes: Floats


class Solution(NamedTuple):
    """Log-probabilities of the batch, and the linear densities that they are due to."""

    log_share: Floats
    slopes: Floats
    offsets: Floats


class Refined(NamedTuple):
    """What a batch adds to the log-probabilities of a head.

    Attributes
    ----------
    log_share : ndarray of shape (n, L)
        The refined log-probabilities of the batch.
    slopes : tuple of ndarray of shape (L, d)
        One for each view.
    offsets : ndarray of shape (L,)
    equality : float
        The weight of the solution with equal frequencies.
    """

    log_share: Floats
    slopes: tuple[Floats, ...]
    offsets: Floats
    equality: float


def view_columns(blocks: list[Floats], n: int) -> View:
    """Return the principal components of some blocks of columns.

    Each column is standardised over the first ``n`` rows, which are the batch; each block has the
    same variance in all.
    """
    x = np.hstack(blocks)
    center, std = x[:n].mean(axis=0), x[:n].std(axis=0)
    sizes = np.repeat([block.shape[1] for block in blocks], [block.shape[1] for block in blocks])
    scale = np.where(std > TINY, std, np.inf) * np.sqrt(sizes / blocks[0].shape[1])
    return _project((x - center) / scale, center, 1 / scale, n, MOST_DIRECTIONS)


def view_features(features: Floats, n: int) -> View:
    """Return the principal components of features of length 1."""
    center = features[:n].mean(axis=0)
    scale = np.full(features.shape[1], 1.0)
    return _project(features - center, center, scale, n, FEATURE_DIRECTIONS)


def _project(x: Floats, center: Floats, factors: Floats, n: int, most: int) -> View:
    d = x.shape[1]
    k = min(d, most)
    axes = eigh(x[:n].T @ x[:n] / n, subset_by_index=[d - k, d - 1])[1]
    return View(x @ axes, center, factors[:, None] * axes)


def refine(head: Floats, views: list[View], examples: NDArray[np.intp] | None = None) -> Refined:
    """Return the log-probabilities of a batch, given those of a head.

    Parameters
    ----------
    head : ndarray of shape (n, L)
        Log-probabilities.
    views : list of View
    examples : ndarray of int, optional
        The classes of the examples, whose points follow those of the batch.
    """
    L = head.shape[1]
    known = np.zeros((0, L)) if examples is None else np.eye(L)[examples]
    solutions, equal_shares = [], []
    for view in views:
        share = np.exp(_mix(head, view.points, known, "equal").log_share).mean(axis=0)
        equal_shares.append(1 / (L * (share**2).sum()))
    equality = float(np.mean(equal_shares)) ** EQUALITY_POWER
    for view in views:
        start = _mix(head, view.points, known, "balanced").log_share
        solutions.append(
            (
                _mix(head, view.points, known, "equal", start),
                _mix(head, view.points, known, "estimated"),
            )
        )
    weights = np.array([equality, 1 - equality])
    slopes, offsets = [], np.zeros(L)
    for view, both in zip(views, solutions, strict=True):
        total = sum(w * one.slopes for w, one in zip(weights, both, strict=True)) / len(views)
        slopes.append(total @ view.axes.T)
        offsets -= slopes[-1] @ view.center
        offsets += sum(w * one.offsets for w, one in zip(weights, both, strict=True)) / len(views)
    log_share = sum(
        w * one.log_share
        for both in solutions
        for w, one in zip(weights / len(views), both, strict=True)
    )
    return Refined(log_softmax(log_share, axis=1), tuple(slopes), offsets, equality)


def _mix(
    head: Floats, points: Floats, known: Floats, prior: str, start: Floats | None = None
) -> Solution:
    """Run the variational EM algorithm in one view.

    Rows of ``points`` after those of the head are examples, whose classes are ``known``.
    """
    n, L = len(points), head.shape[1]
    m = len(head)
    total = points.T @ points / n
    log_share = head if start is None else start
    share = np.concatenate([np.exp(log_share), known])
    within, concentration, log_prior = None, 1.0, np.full(L, -np.log(L))
    for _ in range(N_ITERATIONS):
        size, sums = share.sum(axis=0), share.T @ points
        if within is None:
            means = sums / np.maximum(size, TINY)[:, None]
            within = total - means.T @ sums / n
        within = shrink(within, n)
        # Along these axes, the covariance within classes is the identity.
        variances, axes = eigh(total, within)
        uncertainty = 1 / (size[:, None] + 1 / np.maximum(variances - 1, TINY))
        means = sums @ axes * uncertainty
        length = (means**2 + uncertainty).sum(axis=1)
        density = points[:m] @ (axes @ means.T) - 0.5 * length
        if prior == "estimated":
            concentration = improve_concentration(concentration, size)
            log_prior = digamma(size + concentration) - digamma(n + L * concentration)
        joint = head + DENSITY_WEIGHT * density
        if prior == "balanced":
            log_prior = balance(joint, log_prior)
        log_share = log_softmax(joint + log_prior, axis=1)
        share = np.concatenate([np.exp(log_share), known])
        inverse = within @ axes
        back = means @ inverse.T
        within = total - (back.T @ sums + sums.T @ back - (back.T * size) @ back) / n
        within += (inverse * (size @ uncertainty / n)) @ inverse.T
    slopes = DENSITY_WEIGHT * means @ axes.T
    return Solution(log_share, slopes, log_prior - 0.5 * DENSITY_WEIGHT * length)


def balance(joint: Floats, log_prior: Floats) -> Floats:
    """Return constants that give all columns nearly the same share of the rows (Sinkhorn)."""
    L = joint.shape[1]
    for _ in range(MOST_SCALINGS):
        share = np.exp(log_softmax(joint + log_prior, axis=1)).mean(axis=0)
        if np.abs(share * L - 1).max() < LARGEST_SHARE_ERROR:
            break
        log_prior = log_prior - np.log(np.maximum(share * L, TINY))
    return log_prior


def shrink(covariance: Floats, n: int) -> Floats:
    """Return an estimated covariance shrunk to a multiple of the identity.

    The weight is that of the oracle approximating shrinkage (Chen, Wiesel, Eldar and Hero 2010).
    """
    d = len(covariance)
    mean = np.trace(covariance) / d
    squares = (covariance**2).mean()
    excess = (n + 1) * (squares - mean**2 / d)
    weight = min(1.0, (squares + mean**2) / excess) if excess > 0 else 1.0
    # Directions without any variance also need a little.
    return np.asarray((1 - weight) * covariance + weight * max(mean, 1e-12) * np.eye(d))


def improve_concentration(concentration: float, size: Floats) -> float:
    """Return a Dirichlet concentration under which the sizes are more likely (Minka 2000)."""
    L, n = len(size), size.sum()
    ratio = (digamma(size + concentration) - digamma(concentration)).mean() / (
        digamma(n + L * concentration) - digamma(L * concentration)
    )
    return float(np.clip(concentration * ratio, *CONCENTRATIONS))
