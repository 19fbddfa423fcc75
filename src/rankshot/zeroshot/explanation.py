"""Explain predictions: what each seen class, the features and another model contributed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.errors import InputError, quote_names, suggest_name
from rankshot.zeroshot.decide import take_top
from rankshot.zeroshot.joint_head import JointHead
from rankshot.zeroshot.linear_head import Predictor
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.tables import as_scores

Floats = NDArray[np.float64]
Contributions = tuple[tuple[str, float], ...]
N_ALTERNATIVES = 5
"""How many of the most probable classes an explanation names."""
GATE_TERMS = ("the best new class against the first guess", "threshold")
MAX_SHOWN = 5
"""How many of the largest contributions of a group are shown; the others are added up."""


@dataclass(frozen=True)
class Explanation:
    """The evidence for and against one class, usually a new class.

    A contribution is a difference of log-probabilities: how much a seen class raises the explained
    class above the average class, or above ``against``. A contribution of 0.7 doubles the odds. All
    contributions, with ``others``, add up to the whole difference.

    Attributes
    ----------
    target, probability : str, float
        The class that is explained, by default the most probable one, and its probability.
    against : str or None
        The class that it is compared with; None is the average over all classes of the head.
    items : tuple of (str, float)
        Seen classes and their contributions, the strongest first. Contributions of 0 are left out.
    others : tuple of (str, float)
        What else contributes: features, another model's scores, and a constant.
    alternatives : tuple of (str, float)
        The most probable classes, with their probabilities.
    listed : tuple of str
        The seen classes in the rankings of the explained class, up to the number of places that
        the head uses.
    gate : tuple of (str, float)
        Only for a `JointHead`: the terms of the log-odds of new versus seen classes, which decide
        between the two groups. ``items`` and ``others`` compare new classes, so they are empty if
        the explained class is not one of these.

    Examples
    --------
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["bus", "tram"]],
    ...     items=["bus", "leopard", "tiger", "tram"], targets=["cat", "truck"])
    >>> head = rs.WeightedMean().fit(rankings)
    >>> explanation = rs.explain(head, [[0.1, 3.0, 1.5, -1.0]])[0]
    >>> explanation.target, round(explanation.probability, 2), explanation.items[0][0]
    ('cat', 0.99, 'leopard')
    """

    target: str
    probability: float
    against: str | None = None
    items: Contributions = ()
    others: Contributions = ()
    alternatives: Contributions = ()
    listed: tuple[str, ...] = ()
    gate: Contributions = ()

    @property
    def rival(self) -> str:
        """What the explained class is compared with, as text."""
        return self.against or ("the average new class" if self.gate else "the average class")

    def __str__(self) -> str:
        lines = [", ".join(f"{name} {p:.1%}" for name, p in self.alternatives)]
        if self.gate:
            total = sum(term for _, term in self.gate)
            lines += [f"why a new class rather than a seen one: {total:+.2f}", *_print(self.gate)]
        if self.items or not self.gate:
            lines += [f"why {self.target} rather than {self.rival}:"]
        for heading, pairs in self.group_items():
            lines.append(f"  {heading}, together {sum(c for _, c in pairs):+.2f}:")
            lines += _print(pairs[:MAX_SHOWN])
            if rest := pairs[MAX_SHOWN:]:
                lines.append(f"    {len(rest):,} others, together {sum(c for _, c in rest):+.2f}")
        lines += [f"  {what}: {added:+.2f}" for what, added in self.others]
        return "\n".join(lines)

    def group_items(self) -> list[tuple[str, Contributions]]:
        """The contributions in groups: classes in the rankings of the target, and others.

        A class of the second group is in the rankings of other classes, such as the one that the
        target is compared with. A low score for it usually supports the target. Without rankings
        there is one group.
        """
        items = sorted(self.items, key=lambda pair: (-abs(pair[1]), pair[0]))
        groups = []
        for is_listed, where in (True, "in"), (False, "not in"):
            of = f" {where} the rankings of {self.target}" if self.listed else ""
            pairs = tuple(pair for pair in items if (pair[0] in self.listed) == is_listed)
            groups.append((f"seen classes{of}", pairs))
        return [group for group in groups if group[1]]


def _print(contributions: Contributions) -> list[str]:
    width = max((len(name) for name, _ in contributions), default=0)
    return [f"    {name:<{width}}  {contribution:+.2f}" for name, contribution in contributions]


def explain(
    head: Predictor,
    scores: Scores | ArrayLike,
    *,
    target: str | None = None,
    against: str | None = None,
) -> list[Explanation]:
    """Explain the predictions of a fitted head, with one explanation per input.

    Parameters
    ----------
    head : LinearHead, JointHead, or an estimator such as WeightedMean
        A fitted head.
    scores : Scores or array-like
        Scores of a few inputs.
    target : str, optional
        The class to explain; by default the most probable class of each input.
    against : str, optional
        The class to compare it with; by default the mean over all classes of the head.

    Examples
    --------
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["tiger", "leopard"], ["bus", "tram"], ["tram", "bus"]],
    ...     items=["bus", "fox", "leopard", "tiger", "tram"],
    ...     targets=["cat", "cat", "truck", "truck"], raters=["me", "you", "me", "you"])
    >>> head = rs.WeightedMean().fit(rankings)
    >>> print(rs.explain(head, [[0.1, 1.2, 3.0, 1.5, -1.0]], against="truck")[0])
    cat 99.4%, truck 0.6%
    why cat rather than truck:
      seen classes in the rankings of cat, together +3.80:
        leopard  +2.75
        tiger    +1.05
      seen classes not in the rankings of cat, together +1.29:
        tram  +1.05
        bus   +0.24
    """
    if not isinstance(head, Predictor):
        raise InputError("head", head, "must be a fitted head")
    # New classes are compared among themselves; the gate is between them and seen classes.
    value, inner = head.inner, head.inner.new
    table = as_scores(scores, value.seen)
    log_proba = head.log_proba(table)
    best = take_top(log_proba, head.classes_, min(N_ALTERNATIVES, len(head.classes_)))
    base = None if against is None else _column(inner, against)
    parts = inner.contributions(table)
    total = inner.decision_function(table) / inner.temperature
    sums = {what: part.sum(axis=2) for what, part in parts.items()}
    others = {**sums, "constant": total - sum(sums.values())}
    del others["scores"]
    gate = value.decision_terms(table) if isinstance(value, JointHead) else None
    explanations = []
    for row in range(len(table)):
        name = str(best.labels[row, 0] if target is None else target)
        about: dict[str, Any] = {}
        if gate is not None:
            about["gate"] = _pair(GATE_TERMS, gate[row])
        if name in inner.classes:
            column = _column(inner, name)
            items = _compare(parts["scores"][row], column, base)
            order = np.lexsort((np.array(inner.seen), -np.abs(items)))
            more = [(what, float(_compare(x[row], column, base))) for what, x in others.items()]
            about |= {
                "against": against,
                "items": tuple((inner.seen[i], float(items[i])) for i in order if items[i] != 0),
                # Rounding is not worth a line.
                "others": tuple(pair for pair in more if abs(pair[1]) > 5e-7),
                "listed": tuple(inner.about.get("listed", {}).get(name, ())),
            }
        probability = float(np.exp(log_proba[row, _column(head, name)]))
        alternatives = _pair(best.labels[row], best.proba[row])
        explanations.append(Explanation(name, probability, alternatives=alternatives, **about))
    return explanations


def _compare(contributions: Floats, column: int, base: int | None) -> Floats:
    """Contributions to a class, minus those to another class or to the average class."""
    rival = contributions.mean(axis=0) if base is None else contributions[base]
    return np.asarray(contributions[column] - rival)


def _pair(names: Iterable[object], values: Iterable[SupportsFloat]) -> Contributions:
    return tuple((str(name), float(x)) for name, x in zip(names, values, strict=True))


def _column(head: Predictor, name: str) -> int:
    there = np.flatnonzero(head.classes_ == str(name))
    if there.size == 0:
        close = suggest_name(name, head.classes_)
        hint = "" if close else f"the classes are {quote_names(map(str, head.classes_))}"
        raise InputError("target", str(name), f"is not one of the classes{close}", hint=hint)
    return int(there[0])
