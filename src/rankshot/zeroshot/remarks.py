"""What a fit did, in sentences: for the notes of `recognise`, the commands and the reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.metrics.pairwise import cosine_similarity

from rankshot.core.errors import format_count, quote_names
from rankshot.zeroshot.joint_head import JointHead, default_temperature
from rankshot.zeroshot.linear_head import LinearHead, Predictor
from rankshot.zeroshot.scores import Scores, standardize_rows
from rankshot.zeroshot.together import NEVER
from rankshot.zeroshot.weighted_mean import WeightedMean

SAME_SLOPES = 1e-9
"""Classes whose slopes have a correlation nearer to 1 are equal."""
SIMILAR_SLOPES = 0.98
"""Classes whose slopes have a larger correlation are hardly distinguished."""
MOST_PAIRS = 3
"""Of similar classes, this many pairs are named."""
CERTAIN = 0.99
"""An input looks like a seen class if this has a larger probability by the model itself: of inputs
of new classes 0 to .4 do on ten data sets, of inputs of seen classes .1 to .8."""
LEAST_WARNED = 20
"""With fewer inputs, odd predictions are not mentioned."""


def describe_fit(head: Predictor) -> list[str]:
    """What counts in a fitted head, and what it cannot distinguish."""
    inner, about = head.inner, head.inner.about
    lines, weights = [], about.get("source_weights", {})
    if len({*weights.values()}) > 1:
        texts = [f"{source or 'no source'!r} {weight:g}" for source, weight in weights.items()]
        fills = "; a source with weight 0 is used only for classes that no other ranks"
        lines.append(f"weights of the sources: {', '.join(texts)}{fills * (0 in weights.values())}")
    if isinstance(inner, JointHead):
        lines += _describe_budget(about)
    if "evidence_weight" in about:
        lines.append(
            f"evidence: weight {about['evidence_weight']:.2f} relative to the rankings (the "
            "setting evidence_weight changes it)"
        )
    # A single new class that competes with seen classes is not the only class.
    if inner.new is inner or len(inner.new.classes) > 1:
        lines += [f"warning: {remark}" for remark in describe_similar(inner.new)]
    if (batch := about.get("batch")) is None:
        return lines
    if "reason" in batch:
        return [*lines, f"batch: inputs are classified one at a time: {batch['reason']}"]
    n, changed, absent = batch["n"], format_count(batch["changed"], "label"), batch["absent"]
    none = f". No input seems to be of {quote_names(absent)}" * bool(absent)
    return [*lines, f"batch: the {n:,} inputs are classified jointly: this changes {changed}{none}"]


def _describe_budget(about: Mapping[str, Any]) -> list[str]:
    """What new classes cost on seen classes."""
    budget, missing = about["budget"], about["missing_seen"]
    whose = "of the batch, which serves as the reference" * about["reference_is_batch"]
    if budget is None:
        by = "the batch serves as the reference" if whose else "there is no reference"
        what = "on other data, 4 to 5% of the inputs of seen classes are lost to new classes"
        return [f"seen classes: no budget is kept, because {by} ({what}); pass reference="]
    loss, n = budget["loss"], f"{budget['n_inputs']:,} inputs {whose or 'of the reference'}"
    if budget["threshold"] >= NEVER:
        return [f"seen classes: {n} are too few for the budget: no new class can be predicted"]
    if whose:
        return [f"seen classes: {loss:.1%} of the {n}, may be predicted as new"]
    lost = f"seen classes: {loss:.1%} of {n} are lost to new classes, as measured by folds"
    lacks = f"seen classes: the reference lacks {quote_names(missing)}: these may lose more"
    return [lost, *([lacks] if missing else [])]


def describe_similar(head: LinearHead, least: float = SIMILAR_SLOPES) -> list[str]:
    """Classes that a fitted head cannot distinguish, and the most similar pairs of the others.

    The slopes of similar classes have a correlation above ``least``.
    """
    names = head.classes
    if len(names) == 1:
        return [f"{names[0]!r} is the only class: every input gets this class"]
    rows = np.hstack([head.slopes, head.rank_slopes])
    alike = cosine_similarity(rows - rows.mean(axis=1, keepdims=True))
    is_equal = alike > 1 - SAME_SLOPES
    groups = {tuple(np.flatnonzero(row).tolist()) for row in is_equal if row.sum() > 1}
    lines = [
        f"{quote_names(names[i] for i in group)} cannot be distinguished: their rankings are the "
        "same in all places that are used"
        for group in sorted(groups)
    ]
    close = np.triu(np.where((alike > least) & ~is_equal, alike, 0.0), 1)
    if n := int(np.count_nonzero(close)):
        most = np.argsort(-close, axis=None, kind="stable")[: min(n, MOST_PAIRS)]
        pairs = zip(*np.unravel_index(most, close.shape), strict=True)
        named = ", ".join(f"{names[i]!r} with {names[j]!r}" for i, j in pairs)
        more = f", and {format_count(n - MOST_PAIRS, 'other pair')}" if n > MOST_PAIRS else ""
        lines.append(f"nearly the same rankings, so they will be confused: {named}{more}")
    return lines


def describe_predictions(
    fitted: WeightedMean, labels: NDArray[np.str_], alone: NDArray[np.str_], inputs: Scores
) -> list[str]:
    """What is odd about predictions: one line each.

    Parameters
    ----------
    fitted : WeightedMean
    labels, alone : array of str
        The predictions, and those of each input by itself.
    inputs : Scores
    """
    n, lines = len(labels), list[str]()
    if n < LEAST_WARNED:
        return lines
    counts = Counter(labels.tolist())
    name, most = counts.most_common(1)[0]
    if len(fitted.classes_) > 3 and most >= n / 2:
        lines.append(f"{most:,} of {n:,} inputs are predicted as {name!r}: check its ranking")
    if 2 * (changed := int(np.sum(labels != alone))) > n:
        lines.append(
            f"the batch disagrees with the rankings: it changes {changed:,} of {n:,} labels; "
            "batch=False classifies each input by itself"
        )
    if fitted.has_examples:
        differ = int(np.sum(alone != fitted.by_rankings_.predict(inputs.with_blocks())))
        if 2 * differ > n:
            lines.append(
                f"the examples decide: they change {differ:,} of the {n:,} labels that the "
                "rankings give; check the labels of the examples, and the rankings"
            )
    return [f"warning: {line}" for line in lines]


def describe_closed_set(inputs: Scores) -> list[str]:
    """How many inputs the model is certain of, which will nevertheless get a new class."""
    f = standardize_rows(inputs.values) / default_temperature(inputs.kind)
    first = f.argmax(axis=1)
    certain = softmax(f, axis=1).max(axis=1) > CERTAIN
    if not certain.any():
        return []
    most = Counter(inputs.items[i] for i in first[certain]).most_common(3)
    like = quote_names(name for name, _ in most)
    count = f"{certain.sum():,} of {len(f):,} inputs look like a class that the model knows"
    allow = "classes='all' also allows the classes that it knows"
    return [f"closed set: {count}, such as {like}, and get a new class; {allow}"]
