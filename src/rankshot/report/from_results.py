"""The sections of a report, from what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sklearn.manifold import ClassicalMDS

from rankshot.ranking.concordance import TargetSummary, disagreement, summarize
from rankshot.ranking.distances import mean_kendall_distance
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.restriction import only_complete
from rankshot.report.contents import ClassMap, ConsensusCard, Evaluation, ExplanationCard
from rankshot.zeroshot.explanation import Explanation
from rankshot.zeroshot.metrics import (
    negative_log_likelihood,
    pairwise_accuracy,
    per_class_accuracy,
    reliability,
    top_k_accuracy,
    wilson_interval,
)

MAX_POINTS = 1000
"""A map shows so many rankings at most: distances are taken between all pairs."""


def evaluation_of(
    truth: NDArray[np.str_],
    predicted: NDArray[np.str_],
    proba: NDArray[np.floating],
    classes: Sequence[str],
) -> Evaluation:
    """Judge predictions against the truth."""
    names = tuple(map(str, classes))
    by_class = per_class_accuracy(truth, predicted)
    bins = reliability(truth, proba, names)
    filled = bins.count > 0
    with np.errstate(divide="ignore"):
        log_proba = np.minimum(np.log(proba), 0)
    ks = [k for k in (2, 3, 5, 10) if k < len(names)]
    return Evaluation(
        classes=names,
        accuracy=wilson_interval(int((predicted == truth).sum()), len(truth)),
        per_class=tuple(by_class.get(name, float("nan")) for name in names),
        n_inputs=tuple(int((truth == name).sum()) for name in names),
        confusion=_confusion(truth, predicted, names),
        pairwise=pairwise_accuracy(truth, proba, names),
        reliability=tuple(
            zip(
                bins.confidence[filled].tolist(),
                bins.accuracy[filled].tolist(),
                bins.count[filled].tolist(),
                strict=True,
            )
        ),
        expected_calibration_error=bins.expected_calibration_error,
        log_loss=negative_log_likelihood(truth, log_proba, names),
        top_k=tuple((k, top_k_accuracy(truth, proba, names, k)) for k in ks),
    )


def _confusion(
    truth: NDArray[np.str_], predicted: NDArray[np.str_], names: tuple[str, ...]
) -> NDArray[np.int64]:
    """Count what was taken for what, a row a true class; rejected inputs are in no column."""
    code = {name: i for i, name in enumerate(names)}
    cells = [(code[a], code[b]) for a, b in zip(truth, predicted, strict=True) if b in code]
    counts = np.zeros((len(names), len(names)), np.int64)
    np.add.at(counts, tuple(np.array(cells, np.intp).reshape(-1, 2).T), 1)
    return counts


def consensus_cards(
    summaries: Iterable[TargetSummary], others: Rankings | None = None
) -> tuple[ConsensusCard, ...]:
    """Show the consensus of each target, and how far raters are from it.

    Where there are ``others``, it is shown how far their sources agree, and are from it, instead.
    """
    cards = []
    for brief in summaries:
        distances = brief.disagreement
        concordance, mean_distance = brief.concordance, brief.mean_distance
        if others is not None:
            consensus = Rankings.from_orders([brief.order], items=others.items).top(brief.k)
            theirs = others.select(target=brief.target)
            nobody = np.full(len(theirs), None, object)
            distances = disagreement(replace(theirs, raters=nobody), consensus)
            # Every source counts alike, however many raters it has.
            sizes = np.array([(theirs.sources == source).sum() for source in theirs.sources])
            alike = summarize(replace(theirs, weights=1 / sizes), k=brief.k)[0]
            concordance, mean_distance = alike.concordance, alike.mean_distance
        cards.append(
            ConsensusCard(
                brief.target or "(all)",
                brief.order,
                concordance,
                mean_distance,
                distances,
            )
        )
    return tuple(cards)


def class_map(rankings: Rankings, k: int) -> ClassMap | None:
    """Place every ranking on a map by Kendall's distance of the first k, grouped by target.

    There is none where fewer than three rankings can be compared.
    """
    whole = only_complete(rankings)[:MAX_POINTS]
    if len(whole) < 3 or not whole.target_names:
        return None
    k = min(k, int(whole.lengths.min()))
    distance = mean_kendall_distance(whole, k=k)
    # A ranking with ties is at some distance of itself, on average; a point is not.
    np.fill_diagonal(distance, 0)
    # An axis that the distances do not need has the root of a negative eigenvalue: it is 0.
    with np.errstate(invalid="ignore"):
        places = np.nan_to_num(ClassicalMDS(metric="precomputed").fit_transform(distance))
    origin = [
        rater or source or "" for rater, source in zip(whole.raters, whole.sources, strict=True)
    ]
    return ClassMap(
        tuple(map(str, origin)),
        tuple(map(str, whole.targets)),
        tuple(places[:, 0].tolist()),
        tuple(places[:, 1].tolist()),
        f"Each mark is one ranking; Kendall's distance of the first {k}, classical scaling.",
    )


def explanation_card(title: str, why: Explanation, truth: str | None) -> ExplanationCard:
    """Show why one input got its class."""
    others = tuple(pair for pair in why.alternatives if pair[0] != why.target)
    return ExplanationCard(
        title, why.target, truth, why.probability, why.items, why.sources, others
    )


def example_rows(
    predicted: NDArray[np.str_], truth: NDArray[np.str_], targets: Sequence[str]
) -> list[int]:
    """Return examples: for each target its first input, right ones and wrong ones in turn."""
    chosen = []
    for place, target in enumerate(targets):
        theirs = np.flatnonzero(truth == target)
        right = predicted[theirs] == target
        wanted = right if place % 2 == 0 else ~right
        if wanted.any():
            chosen.append(int(theirs[np.argmax(wanted)]))
    return chosen
