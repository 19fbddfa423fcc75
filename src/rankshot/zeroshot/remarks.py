"""What a fit did, in sentences: for the notes of `recognise`, the commands and the reports."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from rankshot.core.errors import format_count, quote_names
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.class_rankings import source_names
from rankshot.zeroshot.linear_head import LinearHead, Predictor
from rankshot.zeroshot.scores import Scores, count_predictions, standardize_rows
from rankshot.zeroshot.seen_and_new import SEEN_TEMPERATURES, SeenAndNew
from rankshot.zeroshot.together import NEVER
from rankshot.zeroshot.weighted_mean import WeightedMean

EXPECTED = (
    "expect a lower accuracy than with a language model's answers (in one example with 400 "
    "photographs of 16 new classes, .47 instead of .80)"
)
TABLES = ("wordnet", "glove", "vectors", "corpus")
"""How the names of sources begin that are neither people nor language models."""
SAME_SLOPES = 1e-9
"""Slopes of unit length that differ by less are equal."""
SIMILAR_SLOPES = 0.98
"""Classes whose slopes have a larger correlation are hardly distinguished."""
MOST_PAIRS = 3
"""Of similar classes, this many pairs are named."""
CERTAIN = 0.99
"""An input looks like a seen class if this has a larger probability by the model itself: of inputs
of new classes 0 to .4 do on ten data sets, of inputs of seen classes .1 to .8."""
LEAST_WARNED = 20
"""With fewer inputs, odd predictions are not mentioned."""


def describe_fit(head: Predictor, reference: Scores | None = None) -> list[str]:
    """What counts in a fitted head, what it lacks, and what it cannot distinguish.

    ``reference`` is the one that it was fitted with.
    """
    inner = head.inner
    about = inner.about
    lines = describe_sources(about.get("source_weights", {}))
    lines += [
        f"{f'the source {source!r}' if source else 'the part without a source'} has no ranking of "
        f"{quote_names(classes)}: for these, the other sources are used"
        for source, classes in about.get("missing", {}).items()
    ]
    if reference is not None and ("reference" in about or hasattr(head, "coverage_")):
        lines.append(f"reference: {describe_reference(reference)}")
    lines += describe_budget(head)
    facts = about.get("examples", {})
    if facts:
        n = inner.n_features
        by = f"compared by {n:,} features" if n else "compared by their scores"
        lines.append(f"examples: {describe_examples(facts)}, {by}")
    if "evidence_weight" in about:
        lines.append(
            f"evidence: weight {about['evidence_weight']:.2f} relative to the rankings (the "
            "setting evidence_weight changes it)"
        )
    # A single new class that competes with seen classes is not the only class.
    if len(head.classes_) == len(inner.classes) or len(inner.classes) > 1:
        doubts = describe_indistinguishable(inner) + describe_similar(inner)
        lines += [f"warning: {remark}" for remark in doubts]
    return lines + describe_batch(about.get("batch"))


def describe_budget(head: Predictor) -> list[str]:
    """What new classes cost on seen classes, if both may be predicted."""
    if not isinstance(head, SeenAndNew):
        return []
    budget, missing = head.budget_, head.missing_
    whose = "of the batch, which serves as the reference" * head.reference_is_batch_
    if budget is None:
        by = "the batch serves as the reference" if whose else "there is no reference"
        what = "about 5% of the inputs of seen classes are lost to new classes on other data"
        return [f"seen classes: no budget is kept, because {by} ({what}); pass reference="]
    n = f"{budget.n_inputs:,} inputs {whose or 'of the reference'}"
    if budget.threshold >= NEVER:
        return [f"seen classes: {n} are too few for the budget: no new class can be predicted"]
    if whose:
        return [f"seen classes: {budget.loss:.1%} of the {n}, may be predicted as new"]
    lost = f"seen classes: {budget.loss:.1%} of {n} are lost to new classes, as measured by folds"
    lacks = f"seen classes: the reference lacks {quote_names(missing)}: these may lose more"
    return [lost, *([lacks] if missing else [])]


def describe_batch(batch: Mapping[str, Any] | None) -> list[str]:
    """Whether the inputs of a batch were classified jointly, and what this changed."""
    if batch is None:
        return []
    if "reason" in batch:
        return [f"batch: inputs are classified one at a time: {batch['reason']}"]
    n, changed, absent = batch["n"], batch["changed"], batch["absent"]
    return [
        f"batch: the {n:,} inputs are classified jointly: this changes "
        f"{format_count(changed, 'label')} ({changed / n:.0%})"
        + f". No input seems to be of {quote_names(absent)}"
        * bool(absent)
    ]


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
    f = standardize_rows(inputs.values) / SEEN_TEMPERATURES[inputs.kind]
    first = f.argmax(axis=1)
    certain = softmax(f, axis=1).max(axis=1) > CERTAIN
    if not certain.any():
        return []
    most = Counter(inputs.items[i] for i in first[certain]).most_common(3)
    like = quote_names(name for name, _ in most)
    count = f"{certain.sum():,} of {len(f):,} inputs look like a class that the model knows"
    allow = "classes='all' also allows the classes that it knows"
    return [f"closed set: {count}, such as {like}, and get a new class; {allow}"]


# ---- Rankings


def describe_origin(rankings: Rankings) -> str:
    """Where rankings are from."""
    names = quote_names(filter(None, source_names(rankings)))
    if rankings.rater_names:
        raters = format_count(len(rankings.rater_names), "rater")
        return f"rankings: by {raters}" + (f", from {names}" if names else "")
    if not names:
        return "rankings: without the names of sources or raters"
    are_tables = all(str(name).startswith(TABLES) for name in source_names(rankings))
    return f"rankings: by {names}" + (
        f", without people or language models: {EXPECTED}" * are_tables
    )


def describe_sources(weights: Mapping[str, float]) -> list[str]:
    """How much each source counts, unless all count the same."""
    if len(set(weights.values())) <= 1:
        return []
    texts = [f"{source or 'no source'!r} {weight:g}" for source, weight in weights.items()]
    fills = "; a source with weight 0 is used only for classes that no other ranks"
    return [f"weights of the sources: {', '.join(texts)}{fills * (0 in weights.values())}"]


def describe_indistinguishable(head: LinearHead) -> list[str]:
    """One warning per group of classes that a fitted head cannot distinguish."""
    if len(head.classes) == 1:
        return [f"{head.classes[0]!r} is the only class: every input gets this class"]
    return [
        f"{quote_names(same)} cannot be distinguished: their rankings are the same in all places "
        "that are used"
        for same in group_equal_slopes(head)
    ]


def describe_similar(head: LinearHead) -> list[str]:
    """The most similar pairs of classes, if their rankings are nearly the same."""
    rows = np.hstack([head.slopes, head.rank_slopes])
    rows = rows - rows.mean(axis=1, keepdims=True)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows / np.where(length > 0, length, 1.0)
    close = np.triu(rows @ rows.T, 1)
    # Equal classes have a line of their own.
    close[close > 1 - SAME_SLOPES] = 0
    if (n := int((close > SIMILAR_SLOPES).sum())) == 0:
        return []
    most = np.argsort(-close, axis=None, kind="stable")[: min(n, MOST_PAIRS)]
    pairs = zip(*np.unravel_index(most, close.shape), strict=True)
    named = ", ".join(f"{head.classes[i]!r} with {head.classes[j]!r}" for i, j in pairs)
    more = f", and {format_count(n - MOST_PAIRS, 'other pair')}" if n > MOST_PAIRS else ""
    return [f"nearly the same rankings, so they will be confused: {named}{more}"]


def group_equal_slopes(head: LinearHead) -> list[list[str]]:
    """Groups of classes with the same slopes and offsets."""
    rows = np.column_stack([head.slopes, head.rank_slopes, head.offsets])
    scale = np.abs(rows).max() or 1.0
    groups: dict[bytes, list[str]] = defaultdict(list)
    for name, row in zip(head.classes, np.round(rows / scale / SAME_SLOPES), strict=True):
        groups[(row + 0.0).tobytes()].append(name)
    return [same for same in groups.values() if len(same) > 1]


def group_equal_classes(rankings: Rankings) -> list[list[str]]:
    """Groups of classes with the same rankings and the same shares of the weight."""
    numbers = rankings.lists.number_equal_rows([rankings.lengths, rankings.is_subset])
    shares: dict[str, Counter[int]] = defaultdict(Counter)
    for target, number, weight in zip(rankings.targets, numbers, rankings.weights, strict=True):
        shares[str(target)][int(number)] += weight
    groups: dict[frozenset[tuple[int, float]], list[str]] = defaultdict(list)
    for target, theirs in sorted(shares.items()):
        total = theirs.total()
        groups[frozenset((n, round(x / total, 9)) for n, x in theirs.items())].append(target)
    return [same for same in groups.values() if len(same) > 1]


# ---- What else is known


def describe_reference(reference: Scores) -> str:
    """How many inputs of how many seen classes a reference has, as the model sees them."""
    n, C = len(reference), len(reference.items)
    counts = count_predictions(standardize_rows(reference.values))
    n_classes = int((counts > 0).sum())
    return (
        f"{n:,} inputs, which the model assigns to {n_classes:,} of the {C:,} seen classes, "
        f"{n / n_classes:.0f} each on average; with fewer classes or inputs, scores are "
        "standardised less"
    )


def describe_examples(facts: Mapping[str, Any]) -> str:
    """How many examples there are, and of how many classes."""
    n_examples, n_classes = facts["n_examples"], facts["n_classes"]
    return f"{n_examples:,} of {format_count(n_classes, 'class')}"
