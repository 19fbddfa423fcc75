"""Explain the decisions of a head: what each seen class and each source contributed."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, NamedTuple, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from rankshot.core.arrays import log_softmax
from rankshot.core.errors import RankshotError, quote_names, suggest_name
from rankshot.ranking.matrices import find_ranked_items
from rankshot.zeroshot.decide import Candidates, take_top
from rankshot.zeroshot.heads.base import BaseHead, compared_rankings
from rankshot.zeroshot.heads.batch_refinement import BatchRefinement
from rankshot.zeroshot.heads.seen_and_new import SeenAndNew
from rankshot.zeroshot.heads.semantic_head import SemanticHead
from rankshot.zeroshot.scores import Scores, as_scores

Floats = NDArray[np.float64]
Contributions = tuple[tuple[str, float], ...]
N_ALTERNATIVES = 5
"""How many of the most probable classes an explanation names."""
GATE_TERMS = ("best new class", "best seen class", "constant")
MAX_SHOWN = 8
"""How many of the largest contributions are shown; the others are added up."""


@dataclass(frozen=True)
class Explanation:
    """The evidence for and against one class, usually a new class.

    A contribution is a difference of log-probabilities: how much a seen class or a source raises
    the explained class above the average class, or above ``against``. A contribution of 0.7 doubles
    the odds. The contributions of the seen classes add up to the whole difference. The contribution
    of a source is what this source alone would give. With ``posterior="sum"`` the contributions are
    those of the consensus, so they do not add up to the difference in the sum.

    Attributes
    ----------
    target, probability : str, float
        The class that is explained, by default the most probable one, and its probability.
    against : str or None
        The class that it is compared with; None is the average over all classes of the head.
    items : tuple of (str, float)
        Seen classes and their contributions, the strongest first. Contributions of 0 are left out.
    sources : tuple of (str, float)
        Sources and their contributions, by name. If there is only one source, its raters are
        listed instead.
    alternatives : tuple of (str, float)
        The most probable classes, with their probabilities.
    listed : tuple of str
        The seen classes in the rankings of the explained class, up to the number of places that
        the head uses. Empty for a head without rankings.
    gate : tuple of (str, float)
        Only for `SeenAndNew`: the terms of the log-odds of new versus seen classes, which decide
        between the two groups. ``items`` and ``sources`` compare new classes, so they are empty if
        the explained class is not one of these.
    examples : float or None
        The contribution of labelled examples, if the head was fitted to any.
    evidence : float or None
        The contribution of evidence from another model, if the head was fitted to any.
    by_rankings : tuple of str and float, or None
        With examples or evidence: the most probable class by the rankings alone, and its
        probability. With a batch: that of the head for this input alone.
    batch : float or None
        Only for `BatchRefinement`: the contribution of the other inputs of the batch.

    Examples
    --------
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["bus", "tram"]],
    ...     items=["bus", "leopard", "tiger", "tram"], targets=["cat", "truck"])
    >>> head = rs.WeightedMean().fit(rankings)
    >>> found = rs.explain(head, [[0.1, 3.0, 1.5, -1.0]])[0]
    >>> found.target, round(found.probability, 2), found.items[0][0]
    ('cat', 0.97, 'leopard')
    """

    target: str
    probability: float
    against: str | None = None
    items: Contributions = ()
    sources: Contributions = ()
    alternatives: Contributions = ()
    listed: tuple[str, ...] = ()
    gate: Contributions = ()
    examples: float | None = None
    evidence: float | None = None
    by_rankings: tuple[str, float] | None = None
    batch: float | None = None

    @property
    def rival(self) -> str:
        """What the explained class is compared with, as text."""
        return self.against or ("the average new class" if self.gate else "the average class")

    def __str__(self) -> str:
        lines = [", ".join(f"{name} {p:.1%}" for name, p in self.alternatives)]
        if self.without_additions:
            lines.append(self.without_additions)
        if self.gate:
            total = sum(term for _, term in self.gate)
            lines += [f"why a new class rather than a seen one: {total:+.2f}", *_print(self.gate)]
        if self.items or self.sources or not self.gate:
            lines += [f"why {self.target} rather than {self.rival}:"]
        for group in self.group_items():
            lines.append(f"  {group.heading}, together {group.total:+.2f}:")
            lines += _print(group.shown)
            if group.rest:
                lines.append(f"    {group.describe_rest()}")
        if self.sources:
            lines += ["  sources and raters:", *_print(self.sources[:MAX_SHOWN])]
            if (rest := len(self.sources) - MAX_SHOWN) > 0:
                lines.append(f"    and {rest} more")
        lines += [f"  {what}: {added:+.2f}" for what, added in self.additions]
        return "\n".join(lines)

    @property
    def additions(self) -> Contributions:
        """What contributes besides the rankings: examples, evidence, and the batch."""
        added = {
            "labelled examples": self.examples,
            "evidence": self.evidence,
            "other inputs of the batch": self.batch,
        }
        return tuple((what, value) for what, value in added.items() if value is not None)

    @property
    def without_additions(self) -> str:
        """The most probable class by the rankings, or by the input, alone; or an empty text."""
        if self.by_rankings is None:
            return ""
        what = "the rankings" if self.batch is None else "this input"
        return "by {} alone: {} {:.1%}".format(what, *self.by_rankings)

    def group_items(self) -> list[ContributionGroup]:
        """Return the contributions in groups: classes in the rankings of the target, and others.

        A class of the second group is in the rankings of other classes, such as the one that the
        target is compared with. A low score for it usually supports the target. Heads without
        rankings have one group.
        """
        groups = []
        items = sorted(self.items, key=lambda pair: (-abs(pair[1]), pair[0]))
        for is_listed in sorted({name in self.listed for name, _ in items}, reverse=True):
            shown, rest = (
                tuple(pair for pair in part if (pair[0] in self.listed) == is_listed)
                for part in (items[:MAX_SHOWN], items[MAX_SHOWN:])
            )
            where = "in" if is_listed else "not in"
            of = f" {where} the rankings of {self.target}" if self.listed else ""
            total = sum(value for _, value in shown + rest)
            groups.append(ContributionGroup(f"seen classes{of}", total, shown, rest))
        return groups


class ContributionGroup(NamedTuple):
    """Some of the contributions: those among the eight largest of all, and the rest."""

    heading: str
    total: float
    shown: Contributions
    rest: Contributions

    def describe_rest(self) -> str:
        """Return how many contributions are not shown, how large they are, and their sum."""
        total, largest = sum(c for _, c in self.rest), max(abs(c) for _, c in self.rest)
        number = f"{len(self.rest):,} other" + ("s" if len(self.rest) > 1 else "")
        return f"{number}, each at most {largest:.2g}, together {total:+.2f}"


def _print(contributions: Contributions) -> list[str]:
    width = max((len(name) for name, _ in contributions), default=0)
    return [f"    {name:<{width}}  {contribution:+.2f}" for name, contribution in contributions]


def explain(
    head: BaseHead,
    scores: Scores | ArrayLike,
    *,
    target: str | None = None,
    against: str | None = None,
    candidates: Candidates = None,
) -> list[Explanation]:
    """Explain the decisions of a fitted head, with one explanation per input.

    Parameters
    ----------
    head : WeightedMean, ProbabilisticRanking, DirectSimilarity, ConSE, SeenAndNew, BatchRefinement
        `DeterministicRanking` cannot be explained by seen classes, because distances compare
        pairs of them.
    scores : Scores or array-like
        Scores of a few inputs.
    target : str, optional
        The class to explain; by default the most probable class of each input.
    against : str, optional
        The class to compare it with; by default the mean over all classes of the head.
    candidates : optional
        As for `predict`.

    Examples
    --------
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["tiger", "leopard"], ["bus", "tram"], ["tram", "bus"]],
    ...     items=["bus", "fox", "leopard", "tiger", "tram"],
    ...     targets=["cat", "cat", "truck", "truck"], raters=["me", "you", "me", "you"])
    >>> head = rs.WeightedMean().fit(rankings)
    >>> print(rs.explain(head, [[0.1, 1.2, 3.0, 1.5, -1.0]], against="truck")[0])
    cat 98.3%, truck 1.7%
    why cat rather than truck:
      seen classes in the rankings of cat, together +1.93:
        leopard  +1.53
        tiger    +0.40
      seen classes not in the rankings of cat, together +2.11:
        tram  +1.47
        bus   +0.64
      sources and raters:
        me   +4.04
        you  +3.94
    """
    if not isinstance(head, BaseHead):
        raise RankshotError(
            f"expected a fitted head, not {type(head).__name__}; for a ZeroShotClassifier use its "
            "own method explain"
        )
    check_is_fitted(head, "classes_")
    table = as_scores(scores, head.items_)
    log_proba = head.predict_log_proba(table, candidates)
    return explain_decisions(head, table, log_proba, target, against)


def explain_decisions(
    head: BaseHead,
    table: Scores,
    log_proba: NDArray[np.floating],
    target: str | None,
    against: str | None,
) -> list[Explanation]:
    """Explain decisions that follow from ``log_proba``; see `explain`."""
    # New classes are compared among themselves; the gate is between them and seen classes.
    inner = head if head.head is None else head.head
    best = take_top(log_proba, head.classes_, min(N_ALTERNATIVES, len(head.classes_)))
    chosen = best.labels[:, 0] if target is None else np.full(len(table), target)
    base = None if against is None else _column(inner, against)
    is_new = np.isin(chosen, inner.classes_)
    columns = np.where(is_new, np.searchsorted(inner.classes_, chosen), 0)
    by_item = inner.item_contributions(table.values, table.kind) / inner.temperature_
    more = _explain_more(inner, table, by_item.sum(axis=2), columns, base)
    # A batch changes the temperature of all that its head says.
    softened = head.temperature_ if isinstance(head, BatchRefinement) else 1.0
    if isinstance(head, BatchRefinement):
        alone = np.asarray(inner.predict_log_proba(table), np.float64)
        by_batch = head.decision_function(table) - alone
        more["batch"] = _contributions(by_batch, columns, base)
        more["by_rankings"] = _most_probable(alone, inner)
    for added in {"examples", "evidence", "batch"} & {*more}:
        more[added] = (more[added] / softened).tolist()
    by_item = _contributions(by_item / softened, columns, base)
    names, by_source = inner.source_log_posteriors(table.values, table.kind)
    by_source = _contributions(by_source / (inner.temperature_ * softened), columns, base)
    gate = head.gate_terms(table) if isinstance(head, SeenAndNew) else None
    found = []
    for row, name in enumerate(map(str, chosen)):
        about: dict[str, Any] = {} if gate is None else {"gate": _pair(GATE_TERMS, gate[row])}
        if is_new[row]:
            about |= {
                "against": against,
                "items": _strongest(head.items_, by_item[row]),
                "sources": tuple(x for x in _pair(names, by_source[row]) if isfinite(x[1])),
                "listed": _list_items(inner, name),
                **{key: values[row] for key, values in more.items()},
            }
        probability = float(np.exp(log_proba[row, _column(head, name)]))
        alternatives = _pair(best.labels[row], best.proba[row])
        found.append(Explanation(name, probability, alternatives=alternatives, **about))
    return found


def _explain_more(
    head: BaseHead,
    table: Scores,
    by_rankings: Floats,
    columns: NDArray[np.intp],
    base: int | None,
) -> dict[str, Any]:
    """Return what examples and evidence add for each input, and the answer without them."""
    if not isinstance(head, SemanticHead) or head._added is None:
        return {}
    more: dict[str, Any] = {}
    by_head = total = head.decision_function(table) / head.temperature_
    if head.evidence_classes_:
        none = Scores(np.zeros((len(table), len(head.classes_))), head.evidence_classes_)
        by_head = head.decision_function(replace(table, evidence=none)) / head.temperature_
        more["evidence"] = _contributions(total - by_head, columns, base)
    if head.examples_ is not None and not head.examples_.only_class:
        more["examples"] = _contributions(by_head - by_rankings, columns, base)
    return more | {"by_rankings": _most_probable(log_softmax(by_rankings, np, 1), head)}


def _most_probable(log_proba: Floats, head: BaseHead) -> Contributions:
    """Return the most probable class of each input, and its probability."""
    top = take_top(log_proba, head.classes_, 1)
    return _pair(top.labels[:, 0], top.proba[:, 0])


def _pair(names: Iterable[object], values: Iterable[SupportsFloat]) -> Contributions:
    return tuple((str(name), float(x)) for name, x in zip(names, values, strict=True))


def _column(head: BaseHead, name: str) -> int:
    found = np.flatnonzero(head.classes_ == str(name))
    if found.size == 0:
        close = suggest_name(name, head.classes_)
        there = "" if close else f"; the classes are {quote_names(map(str, head.classes_))}"
        raise RankshotError(f"no class {str(name)!r}{close}{there}")
    return int(found[0])


def _contributions(contributions: Floats, columns: NDArray[np.intp], base: int | None) -> Floats:
    """Return the contributions to each row's class, minus those to what it is compared with."""
    with warnings.catch_warnings():
        # A source without any ranking has no mean.
        warnings.simplefilter("ignore", RuntimeWarning)
        compared = np.nanmean(contributions, axis=1) if base is None else contributions[:, base]
    return np.asarray(contributions[np.arange(len(contributions)), columns] - compared)


def _list_items(head: BaseHead, target: str) -> tuple[str, ...]:
    """Return the items in the rankings of a class that the head compares with the scores."""
    if (rankings := compared_rankings(head)) is None:
        return ()
    theirs = rankings.select(target=target)
    return tuple(head.items_[code] for code in np.flatnonzero(find_ranked_items(theirs)))


def _strongest(items: tuple[str, ...], contributions: Floats) -> Contributions:
    order = np.lexsort((np.array(items), -np.abs(contributions)))
    return tuple((items[i], float(contributions[i])) for i in order if contributions[i] != 0)
