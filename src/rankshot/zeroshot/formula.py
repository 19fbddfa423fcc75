"""The formula of a `LinearHead`, for arrays of any library."""

from __future__ import annotations

from rankshot.core.arrays import Array, Constants, Library, row_norm
from rankshot.zeroshot.default_head import rank_bonus
from rankshot.zeroshot.scores import inverse_std


def evaluate(
    f: Array, features: Array | None, evidence: Array | None, c: Constants, xp: Library
) -> Array:
    """The formula of a `LinearHead` in any library, from its constants ``c``."""
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
