"""What a fit did, in sentences: for the notes of `recognise`, the commands and the reports."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from rankshot.core.errors import format_count, quote_names
from rankshot.ranking.rankings import Rankings
from rankshot.sources.registry import TABLES
from rankshot.zeroshot.class_rankings import source_names
from rankshot.zeroshot.linear_head import LinearHead, Predictor
from rankshot.zeroshot.scores import Scores, count_predictions, standardize_rows
from rankshot.zeroshot.seen_and_new import SeenAndNew
from rankshot.zeroshot.together import NEVER

EXPECTED = (
    "expect a lower accuracy than with a language model's answers (in one example with 400 "
    "photographs of 16 new classes, .47 instead of .80)"
)
SAME_SLOPES = 1e-9
"""Slopes of unit length that differ by less are equal."""


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
        lines += [f"warning: {remark}" for remark in describe_indistinguishable(inner)]
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
