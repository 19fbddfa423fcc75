"""The formulas of fitted heads, for arrays of any library.

``c`` has the constants of a head by name. NumPy, torch, CuPy and JAX compute these functions, and
the export to ONNX records them, so no head has a second formula.
"""

from __future__ import annotations

from collections.abc import Callable

from rankshot.core.arrays import Array, Constants, Library, row_norm
from rankshot.zeroshot.default_head import rank_bonus
from rankshot.zeroshot.scores import inverse_std

Formula = Callable[[Array, Array | None, Array | None, Constants, Library], Array]
"""A function of scores, features, evidence, constants and a library of arrays."""
LARGEST = 700.0
"""Log-odds beyond this are as certain as numbers can say."""


def evaluate(
    f: Array, features: Array | None, evidence: Array | None, c: Constants, xp: Library
) -> Array:
    """The values of a `LinearHead`, before they are divided by its temperature."""
    product = f @ c["scores"]
    scale = inverse_std(f, product[:, -1:], xp)
    result = product[:, :-1] * scale + c["offsets"]
    if c["ranks"].shape[0]:
        result = result + rank_bonus(f, xp) @ c["ranks"]
    if features is not None:
        result = result + scale_features(features, c["usual_features"], xp) @ c["features"]
    return result if evidence is None else result + evidence @ c["evidence"]


def scale_features(features: Array, usual: Array, xp: Library) -> Array:
    """Features less their usual values, with length 1 in each row."""
    centered = features - usual
    length = row_norm(centered, xp)
    return centered / xp.where(length > 0, length, 1.0)


def linear_logits(
    f: Array, features: Array | None, evidence: Array | None, c: Constants, xp: Library
) -> Array:
    """The logits of a `LinearHead`: one column per new class.

    Parameters
    ----------
    f : array of shape (n, C)
        Scores of the seen classes.
    features, evidence : array, optional
        The features of the inputs, and another model's scores.
    c : dict of arrays
        The constants of the head.
    xp : module
        The library of the arrays.
    """
    return evaluate(f, features, evidence, c, xp) / c["temperature"]


def joint_terms(
    f: Array, features: Array | None, evidence: Array | None, c: Constants, xp: Library
) -> tuple[Array, Array, Array, Array]:
    """The terms of a `JointHead`, each with one row per input.

    These are the standardised scores; the log-odds of each new class against the first guess, less
    its threshold as far as this is above the smallest one; the values that choose among the new
    classes; and what the first guess has in each group of classes (a column for "none of these" is
    the last one).
    """
    L = c["groups"].shape[1]
    mean = xp.mean(f, axis=1, keepdims=True)
    x = (f - mean) * inverse_std(f, mean, xp)
    # Log-odds may have large slopes: nothing is left to cancel in single precision.
    values = evaluate(x, features, evidence, c, xp)
    # Among equal scores, the first guess is the first by name.
    is_largest = f == xp.max(f, axis=1, keepdims=True)
    first = xp.argmax(xp.where(is_largest, c["priority"], 0.0), axis=1)
    columns = x
    if features is not None:
        columns = xp.concat([x, scale_features(features, c["usual_features"], xp)], axis=1)
    slopes = xp.take(c["first_slopes"], first, axis=0)
    guess = xp.sum(xp.expand_dims(columns, axis=1) * slopes, axis=2)
    guess = guess + xp.take(c["first_offsets"], first, axis=0)
    by_rankings = values[:, L : 2 * L]
    shared = 0.5 * _logsumexp(by_rankings, xp) - _logsumexp(x * c["sharpness"], xp)
    excess = values[:, :L] - guess @ c["groups"] - shared * c["ranking_shares"] - c["further"]
    return x, excess, values[:, L:], guess


def joint_logits(
    f: Array, features: Array | None, evidence: Array | None, c: Constants, xp: Library
) -> Array:
    """The logits of a `JointHead`: one column per class, sorted by name.

    That of the first guess is 0, so a new class is predicted if its log-odds exceed the threshold.

    Parameters
    ----------
    f : array of shape (n, C)
        Scores of the seen classes.
    features, evidence : array, optional
        The features of the inputs, and another model's scores.
    c : dict of arrays
        The constants of the head.
    xp : module
        The library of the arrays.
    """
    L = c["groups"].shape[1]
    x, excess, values, guess = joint_terms(f, features, evidence, c, xp)
    best = xp.max(excess, axis=1, keepdims=True) - c["threshold"]
    # Large numbers are subtracted, not added, so that small ones keep their digits.
    for_new, for_seen = xp.clip(best, 0.0, LARGEST), xp.clip(best, -LARGEST, 0.0)
    # The log-odds say whether an input is new; which new class, the head if it knows more.
    new = values[:, L:] / c["temperature"] if c["scores"].shape[1] > 2 * L + 1 else excess
    new = new - xp.max(new, axis=1, keepdims=True) + for_seen
    # "None of these" may have the place of all seen classes.
    groups = [-for_new, new]
    if c["seen_temperature"].shape[0]:
        groups[0] = (x - xp.max(x, axis=1, keepdims=True)) / c["seen_temperature"] - for_new
    if c["misfit"].shape[0]:
        misfit = -xp.maximum(guess[:, -1:], xp.max(values[:, :L], axis=1, keepdims=True))
        groups.append(xp.clip(misfit - c["misfit"], -LARGEST, LARGEST) - for_new)
    return xp.take(xp.concat(groups, axis=1), c["columns"], axis=1)


def _logsumexp(x: Array, xp: Library) -> Array:
    largest = xp.max(x, axis=1, keepdims=True)
    return largest + xp.log(xp.sum(xp.exp(x - largest), axis=1, keepdims=True))
