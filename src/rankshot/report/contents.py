"""What a report can show: plain values, checked where they are made.

Every section is optional. Shares, accuracies and probabilities are numbers from 0 to 1; names are
any text at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, short_repr
from rankshot.experiments.tables import Comparison
from rankshot.zeroshot.metrics import ROUNDING, Interval


@dataclass(frozen=True)
class ConsensusCard:
    """The order that sources agree on for one target, and how far they do.

    Attributes
    ----------
    target : str
        What the items are ranked for.
    order : tuple
        The items, best first; a tie is a tuple inside the tuple.
    concordance : float, optional
        Kendall's W.
    mean_distance : float, optional
        The mean distance between two of the sources.
    sources : tuple of (str, float)
        A source or rater, and its distance to the consensus: the larger the more it disagrees.
    """

    target: str
    order: tuple[str | tuple[str, ...], ...]
    concordance: float | None = None
    mean_distance: float | None = None
    sources: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        where = f"consensus for {short_repr(self.target)}"
        if self.concordance is not None:
            _check_shares([self.concordance], f"{where}: concordance")
        distances = [distance for _, distance in self.sources]
        if self.mean_distance is not None:
            distances.append(self.mean_distance)
        _check_finite(distances, f"{where}: distance")
        if min(distances, default=0) < 0:
            raise RankshotError(f"{where}: the distance {min(distances)} is negative")


@dataclass(frozen=True)
class ClassMap:
    """Points in the plane, each with a name and a group; points close together are alike."""

    names: tuple[str, ...]
    groups: tuple[str, ...]
    x: tuple[float, ...]
    y: tuple[float, ...]
    caption: str = ""

    def __post_init__(self) -> None:
        columns = {"names": self.names, "groups": self.groups, "x": self.x, "y": self.y}
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) != 1 or not self.names:
            raise RankshotError(f"a map needs columns of one length, at least 1, not {lengths}")
        _check_finite(self.x, "map: x")
        _check_finite(self.y, "map: y")


# eq=False: arrays have no single answer to whether they are equal.
@dataclass(frozen=True, eq=False)
class Evaluation:
    """How well the targets were told apart.

    Attributes
    ----------
    classes : tuple of str
        The L targets.
    accuracy : Interval
        Over all inputs.
    per_class : tuple of float
        The accuracy over the inputs of each class; NaN where it has none.
    n_inputs : tuple of int
        How many inputs each class has. A row of ``confusion`` may hold fewer: it leaves out
        those that were rejected.
    confusion : ndarray of int, shape (L, L)
        Counts; a row is the truth, a column what it was taken for.
    pairwise : ndarray of float, shape (L, L)
        Two-class accuracies, symmetric; NaN on the diagonal and where a pair has no inputs.
    reliability : tuple of (float, float, int)
        Mean confidence, accuracy and number of inputs of each bin.
    expected_calibration_error, log_loss : float
        The log loss is infinite where a true class got probability 0.
    top_k : tuple of (int, float)
        k, and the share of inputs whose class is among the k most probable.
    """

    classes: tuple[str, ...]
    accuracy: Interval
    per_class: tuple[float, ...]
    n_inputs: tuple[int, ...]
    confusion: NDArray[np.integer]
    pairwise: NDArray[np.floating]
    reliability: tuple[tuple[float, float, int], ...]
    expected_calibration_error: float
    log_loss: float
    top_k: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        L = len(self.classes)
        if L == 0 or len(self.per_class) != L:
            raise RankshotError(f"{len(self.per_class)} accuracies for {L} classes")
        if len(self.n_inputs) != L:
            raise RankshotError(f"{len(self.n_inputs)} numbers of inputs for {L} classes")
        for name in ("confusion", "pairwise"):
            shape = np.shape(getattr(self, name))
            if shape != (L, L):
                raise RankshotError(f"{name} has the shape {shape}, but there are {L} classes")
        _check_interval(self.accuracy, "accuracy")
        _check_shares(self.per_class, "per_class", missing=True)
        _check_shares(np.ravel(self.pairwise), "pairwise", missing=True)
        counts = np.asarray(self.confusion)
        if counts.dtype.kind not in "iu" or counts.min() < 0:
            raise RankshotError(
                f"confusion holds counts, not {counts.dtype} with a least value of {counts.min()}"
            )
        for place, (confidence, share, count) in enumerate(self.reliability):
            if count < 0:
                raise RankshotError(f"reliability: bin {place} holds {count} inputs")
            if count:
                _check_shares([confidence, share], f"reliability: bin {place}")
        _check_shares([self.expected_calibration_error], "expected_calibration_error")
        if np.isnan(self.log_loss):
            raise RankshotError("log_loss is not a number")
        _check_shares([share for _, share in self.top_k], "top_k")


@dataclass(frozen=True)
class ExplanationCard:
    """Why one input got its class.

    Attributes
    ----------
    title : str
        Which input.
    predicted : str
        The class it got.
    truth : str, optional
        Its true class, where known.
    probability : float
        Of the class it got.
    pushes : tuple of (str, float)
        How far each seen class pushed towards the class it got; negative is away from it.
    sources : tuple of (str, float)
        The same by source.
    alternatives : tuple of (str, float)
        Other targets and their probabilities.
    """

    title: str
    predicted: str
    truth: str | None
    probability: float
    pushes: tuple[tuple[str, float], ...] = ()
    sources: tuple[tuple[str, float], ...] = ()
    alternatives: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        where = f"explanation {short_repr(self.title)}"
        _check_shares([self.probability], f"{where}: probability")
        _check_shares([share for _, share in self.alternatives], f"{where}: alternative")
        _check_finite([push for _, push in self.pushes], f"{where}: push")
        _check_finite([push for _, push in self.sources], f"{where}: source")


@dataclass(frozen=True)
class Report:
    """All that a page shows; what is None or empty is left out.

    Attributes
    ----------
    title, lead : str
        The heading and one or two sentences under it.
    facts : tuple of (str, str)
        Short labels and values, shown as cards at the top.
    comparison, consensuses, map, evaluation, explanations
        The sections.
    notes : tuple of str
        Remarks at the end.

    Examples
    --------
    >>> from rankshot.report.contents import ConsensusCard, Report
    >>> card = ConsensusCard("cat", ("leopard", ("tiger", "lion"), "fox"), concordance=0.8)
    >>> Report("My classes", consensuses=(card,)).consensuses[0].target
    'cat'
    """

    title: str
    lead: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    comparison: Comparison | None = None
    consensuses: tuple[ConsensusCard, ...] = ()
    map: ClassMap | None = None
    evaluation: Evaluation | None = None
    explanations: tuple[ExplanationCard, ...] = ()
    notes: tuple[str, ...] = ()


def _check_finite(values: Sequence[float], where: str) -> None:
    odd = np.flatnonzero(~np.isfinite(np.asarray(values, dtype=float)))
    if odd.size:
        raise RankshotError(f"{where} {odd[0]} is {values[odd[0]]}, which is not finite")


def _check_shares(values: Iterable[float], where: str, *, missing: bool = False) -> None:
    shares = np.asarray(list(values), dtype=float)
    inside = (shares >= -ROUNDING) & (shares <= 1 + ROUNDING)
    odd = np.flatnonzero(~(inside | (np.isnan(shares) & missing)))
    if odd.size:
        raise RankshotError(f"{where}: {shares[odd[0]]} is not a share from 0 to 1")


def _check_interval(interval: Interval, where: str) -> None:
    _check_shares((interval.estimate, interval.low, interval.high), where)
    if interval.low > interval.high:
        raise RankshotError(f"{where}: the interval from {interval.low} to {interval.high} is void")
