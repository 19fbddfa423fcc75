"""What a fit did, in sentences: for the notes of `recognise`, the commands and the reports."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import cast

from rankshot.core.errors import format_count, quote_names
from rankshot.ranking.rankings import Rankings
from rankshot.sources.registry import TABLES
from rankshot.zeroshot.examples import ExampleFacts
from rankshot.zeroshot.heads.base import (
    BaseHead,
    Semantics,
    compared_rankings,
    source_names,
    sources_of,
)
from rankshot.zeroshot.heads.semantic_head import SemanticHead
from rankshot.zeroshot.scores import Scores, count_predictions, standardize_rows

EXPECTED = (
    "expect a lower accuracy than with a language model's answers (in one example with 400 "
    "photographs of 16 new classes, .47 instead of .80)"
)


def describe_fit(head: BaseHead, reference: Scores | None = None) -> list[str]:
    """Return what counts in a fitted head, what it lacks, and what it cannot distinguish.

    ``reference`` is the one that it was fitted with.
    """
    inner = cast("SemanticHead", head.innermost)
    found = []
    if inner.source_weights_:
        found += describe_sources(inner.source_weights_, inner.rankings_)
    found += describe_missing(inner)
    if reference is not None and (head.reference_ is not None or inner.reference_ is not None):
        found.append(f"reference: {describe_reference(reference)}")
    facts = inner.examples_
    if facts is not None and facts.only_class:
        found.append(f"examples: {facts.n_examples:,}; {describe_examples(facts)}")
    elif facts is not None:
        n = inner.n_features_
        by = f"compared by {n:,} features" if n else "compared by their scores"
        found.append(f"examples: {facts.n_examples:,}, {by}; {describe_examples(facts)}")
    if inner.evidence_weight_ is not None:
        found.append(
            f"evidence: weight {inner.evidence_weight_:.2f} relative to the rankings (the setting "
            "evidence_weight changes it)"
        )
    # A single new class that competes with seen classes is not the only class.
    if (facts is None or facts.only_class) and (head is inner or len(inner.classes_) > 1):
        found += [f"warning: {remark}" for remark in describe_indistinguishable(inner)]
    return found


# ---- Rankings


def describe_origin(semantics: Semantics) -> str:
    """Return a sentence on where rankings are from."""
    names = quote_names(filter(None, source_names(semantics)))
    if isinstance(semantics, Rankings) and semantics.rater_names:
        raters = format_count(len(semantics.rater_names), "rater")
        return f"rankings: by {raters}" + (f", from {names}" if names else "")
    if not names:
        return "rankings: without the names of sources or raters"
    are_tables = all(str(name).startswith(TABLES) for name in source_names(semantics))
    return f"rankings: by {names}" + (
        f", without people or language models: {EXPECTED}" * are_tables
    )


def describe_sources(weights: Mapping[str, float], used: Rankings) -> list[str]:
    """Return a line that says how much each source counts, unless all count the same.

    ``used`` are the rankings that `weigh_sources` returned.
    """
    if len(set(weights.values())) == 1:
        return []
    filled = {source: used[sources_of(used) == source].target_names for source in weights}
    texts = [
        f"{source or 'no source'!r} {weight:g}"
        + (f" (only for {quote_names(filled[source])})" if not weight and filled[source] else "")
        for source, weight in weights.items()
    ]
    return [f"weights of the sources: {', '.join(texts)}"]


def describe_missing(head: BaseHead) -> list[str]:
    """Return one remark per source that does not rank all classes of a fitted head."""
    remarks = []
    for source, classes in head.missing_.items():
        ranked = head.rankings_[sources_of(head.rankings_) == source].target_names
        who = f"the source {source!r}" if source else "the part without a source"
        if source in head.unused_:
            remarks.append(f"{who} ranks only {ranked[0]!r}, so it is not used")
        else:
            remarks.append(
                f"{who} has no ranking of {quote_names(classes)}: for these, the other sources "
                "are used"
            )
    return remarks


def describe_indistinguishable(head: BaseHead) -> list[str]:
    """Return one warning per group of classes that a fitted head cannot distinguish."""
    names = [str(name) for name in head.classes_]
    if len(names) == 1:
        return [f"{names[0]!r} is the only class: every input gets this class"]
    used = compared_rankings(head)
    return [
        f"the rankings of {quote_names(same)} are the same in all places that are used: inputs of "
        "these classes cannot be distinguished"
        for same in ([] if used is None else group_equal_classes(used))
    ]


def group_equal_classes(rankings: Rankings) -> list[list[str]]:
    """Return groups of classes with the same rankings and the same shares of the weight."""
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
    """Return how many inputs of how many seen classes a reference has, as the model sees them."""
    n, C = len(reference), len(reference.items)
    counts = count_predictions(standardize_rows(reference.values, reference.kind, C))
    n_classes = int((counts > 0).sum())
    return (
        f"{n:,} inputs, which the model assigns to {n_classes:,} of the {C:,} seen classes, "
        f"{n / n_classes:.0f} each on average; with fewer classes or inputs, scores are "
        "standardised less"
    )


def describe_examples(facts: ExampleFacts) -> str:
    """Return how far rankings and examples agree, or why nothing was learned from examples."""
    if facts.only_class:
        return (
            f"nothing is learned from them, because all are of {facts.only_class!r} and do not "
            "show what distinguishes it from other classes; label an input of another class as well"
        )
    common = f"those of one class share {facts.signal:.2f} of their variation"
    if not facts.slope:
        return common
    slope = f"{facts.slope:.2f} (0: not at all)"
    return f"their scores follow the rankings with a slope of {slope}, and {common}"
