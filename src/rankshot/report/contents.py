"""The contents of a report: plain values, validated when they are made.

Every section is optional. Shares, accuracies and probabilities are numbers from 0 to 1. Names may
be any text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, short_repr
from rankshot.ranking.agreement import TargetSummary
from rankshot.report.gallery import Gallery
from rankshot.report.pictures import Picture
from rankshot.zeroshot.explanation import Explanation
from rankshot.zeroshot.metrics import Interval
from rankshot.zeroshot.scored_tables import ROUNDING

LEAD = (
    "This page shows how well a zero-shot classifier recognises new classes: classes without a "
    "single training example, which it knows only by rankings of the classes that it was trained "
    "on (the seen classes)."
)


# ---- Values


@dataclass(frozen=True)
class MethodRow:
    """The accuracy of one method with one source, with every classifier.

    Attributes
    ----------
    method, source : str
        Rows of one method are shown together.
    cells : tuple of Interval or None
        One per classifier; None where the method cannot be used or was not.
    """

    method: str
    source: str
    cells: tuple[Interval | None, ...]

    def __post_init__(self) -> None:
        for place, cell in enumerate(self.cells):
            if cell is not None and not -ROUNDING <= cell.low <= cell.high <= 1 + ROUNDING:
                raise RankshotError(
                    f"{short_repr(self.method)}, {short_repr(self.source)}: cell {place}: "
                    f"{cell.estimate} from {cell.low} to {cell.high} is not an interval of shares "
                    "between 0 and 1"
                )


@dataclass(frozen=True)
class MethodComparison:
    """Accuracies of methods and sources (rows) with classifiers (columns)."""

    classifiers: tuple[str, ...]
    rows: tuple[MethodRow, ...]
    caption: str = ""

    def __post_init__(self) -> None:
        for place, row in enumerate(self.rows):
            if len(row.cells) != len(self.classifiers):
                raise RankshotError(
                    f"row {place} ({short_repr(row.method)}, {short_repr(row.source)}) has "
                    f"{len(row.cells)} cells, but there are {len(self.classifiers)} classifiers"
                )


@dataclass(frozen=True)
class ClassMap:
    """Points in the plane, each with a name and a group; points close together are similar.

    Attributes
    ----------
    names, groups : tuple of str
        The name and the group of each point.
    x, y : tuple of float
        The coordinates of each point.
    caption : str
        A sentence below the map.

    Examples
    --------
    >>> from rankshot.report import ClassMap
    >>> points = ClassMap(
    ...     names=("cat", "dog", "car"), groups=("animal", "animal", "vehicle"),
    ...     x=(0.0, 0.2, 3.0), y=(0.1, 0.0, 1.0))
    >>> dict(zip(points.names, points.groups))
    {'cat': 'animal', 'dog': 'animal', 'car': 'vehicle'}
    """

    names: tuple[str, ...]
    groups: tuple[str, ...]
    x: tuple[float, ...]
    y: tuple[float, ...]
    caption: str = ""

    def __post_init__(self) -> None:
        columns = {"names": self.names, "groups": self.groups, "x": self.x, "y": self.y}
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) != 1 or not self.names:
            raise RankshotError(
                f"the columns of a map must have the same length, at least 1, not {lengths}"
            )
        _check_finite(self.x, "map: x")
        _check_finite(self.y, "map: y")


@dataclass(frozen=True)
class Calibration:
    """How well probabilities fit the share of right predictions.

    Attributes
    ----------
    reliability : tuple of (float, float, int)
        Mean confidence, accuracy and number of inputs of each bin.
    expected_calibration_error, log_loss : float
        The log loss is infinite if a true class got probability 0.
    """

    reliability: tuple[tuple[float, float, int], ...]
    expected_calibration_error: float
    log_loss: float

    def __post_init__(self) -> None:
        for place, (confidence, share, count) in enumerate(self.reliability):
            if count < 0:
                raise RankshotError(f"reliability: bin {place} holds {count} inputs")
            if count:
                _check_shares([confidence, share], f"reliability: bin {place}")
        _check_shares([self.expected_calibration_error], "expected_calibration_error")
        if np.isnan(self.log_loss):
            raise RankshotError("log_loss is not a number")


# eq=False: comparing arrays does not give a single truth value.
@dataclass(frozen=True, eq=False)
class Evaluation:
    """How well the targets were recognised; see `evaluate_predictions`.

    Attributes
    ----------
    classes : tuple of str
        The L targets.
    accuracy : Interval
        Over all inputs.
    mean_class_accuracy : Interval
        The mean of the accuracies of the classes that have inputs.
    per_class : tuple of float
        The accuracy over the inputs of each class; NaN for a class without inputs.
    n_inputs : tuple of int
        The number of inputs of each class. A row of ``confusion`` may have a smaller sum, because
        it leaves out rejected inputs.
    confusion : ndarray of int, shape (L, L)
        Counts, one row per true class and one column per predicted class.
    pairwise : ndarray of float, shape (L, L)
        Two-class accuracies, symmetric; NaN on the diagonal and for pairs without inputs.
    calibration : Calibration
    top_k : tuple of (int, float)
        k, and the share of inputs whose class is among the k most probable.
    uncalibrated : Calibration, optional
        With the temperature that the head had before a rehearsal calibrated it.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.report import evaluate_predictions
    >>> found = evaluate_predictions(
    ...     np.array(["cat", "dog"]), np.array(["cat", "cat"]), np.array([[0.9, 0.1], [0.6, 0.4]]),
    ...     ["cat", "dog"])
    >>> found.per_class, found.n_inputs
    ((1.0, 0.0), (1, 1))
    """

    classes: tuple[str, ...]
    accuracy: Interval
    mean_class_accuracy: Interval
    per_class: tuple[float, ...]
    n_inputs: tuple[int, ...]
    confusion: NDArray[np.integer]
    pairwise: NDArray[np.floating]
    calibration: Calibration
    top_k: tuple[tuple[int, float], ...] = ()
    uncalibrated: Calibration | None = None

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
        _check_interval(self.mean_class_accuracy, "mean_class_accuracy")
        _check_shares(self.per_class, "per_class", missing=True)
        _check_shares(np.ravel(self.pairwise), "pairwise", missing=True)
        counts = np.asarray(self.confusion)
        if counts.dtype.kind not in "iu" or counts.min() < 0:
            raise RankshotError(
                f"confusion must hold counts, not {counts.dtype} with a minimum of {counts.min()}"
            )
        _check_shares([share for _, share in self.top_k], "top_k")


@dataclass(frozen=True)
class Overview:
    """Predictions without true classes; see `count_predictions`.

    Attributes
    ----------
    classes : tuple of str
        The L classes that could be predicted.
    counts : tuple of int
        How many inputs got each class.
    n_inputs : int
        All inputs, including rejected ones.
    median_confidence : float
        The confidence of a prediction is the largest probability of its input.
    confidences : tuple of (float, float, int)
        Lower end, upper end and number of inputs of each bin of confidence.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.report import count_predictions
    >>> found = count_predictions(
    ...     np.array(["cat", "cat"]), np.array([[0.9, 0.1], [0.6, 0.4]]), ["cat", "dog"])
    >>> found.counts, found.median_confidence
    ((2, 0), 0.75)
    """

    classes: tuple[str, ...]
    counts: tuple[int, ...]
    n_inputs: int
    median_confidence: float
    confidences: tuple[tuple[float, float, int], ...]

    def __post_init__(self) -> None:
        if len(self.classes) != len(self.counts):
            raise RankshotError(f"{len(self.counts)} counts for {len(self.classes)} classes")
        _check_shares([self.median_confidence], "median_confidence")


class SourceLine(NamedTuple):
    """A source of rankings, and how far it is from the consensus and from the other sources.

    ``known`` is the number of seen classes that all its rankings compare. Distances are from 0,
    the same order, to 1, the opposite order; NaN where there is nothing to compare.

    Attributes
    ----------
    name : str
        The source.
    n_rankings : int
        How many rankings it has.
    known : int
        How many seen classes all its rankings compare.
    to_consensus : float
        Its mean distance to the consensus.
    to_others : tuple of float
        Its mean distance to each source, in the order of the table.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.report import compare_sources
    >>> rankings = rs.Rankings.from_orders(
    ...     [["fox", "cat", "bus"], ["cat", "fox", "bus"], ["bus", "fox", "cat"], ["bus", "cat"]],
    ...     items=["bus", "cat", "fox"], targets=["dog", "dog", "car", "car"],
    ...     sources=["wordnet", "glove", "wordnet", "glove"])
    >>> head = rs.ProbabilisticRanking(posterior="consensus").fit(rankings)
    >>> table = compare_sources(rankings, head.consensus_, k=2)
    >>> line = table.lines[0]
    >>> line.name, line.n_rankings, line.known
    ('glove', 2, 3)
    """

    name: str
    n_rankings: int
    known: int
    to_consensus: float
    to_others: tuple[float, ...]


@dataclass(frozen=True)
class SourceTable:
    """The sources of rankings: one line per source, with its distances to all of them.

    Attributes
    ----------
    lines : tuple of SourceLine
        One per source.
    n_items : int
        The number of all seen classes.
    k : int
        How many places of each ranking were compared.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.report import compare_sources
    >>> rankings = rs.Rankings.from_orders(
    ...     [["fox", "cat", "bus"], ["cat", "fox", "bus"], ["bus", "fox", "cat"], ["bus", "cat"]],
    ...     items=["bus", "cat", "fox"], targets=["dog", "dog", "car", "car"],
    ...     sources=["wordnet", "glove", "wordnet", "glove"])
    >>> head = rs.ProbabilisticRanking(posterior="consensus").fit(rankings)
    >>> table = compare_sources(rankings, head.consensus_, k=2)
    >>> len(table.lines), table.n_items, table.k
    (2, 3, 2)
    """

    lines: tuple[SourceLine, ...]
    n_items: int
    k: int


@dataclass(frozen=True)
class ExplainedInput:
    """One input and why it got its class.

    Attributes
    ----------
    name : str
        The input, for example its id.
    explanation : Explanation
        Of the class that it got.
    truth : str, optional
        Its true class, if it is known.
    picture : Picture, optional

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.report import ExplainedInput
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["bus", "tram"]],
    ...     items=["bus", "leopard", "tiger", "tram"], targets=["cat", "truck"])
    >>> head = rs.WeightedMean().fit(rankings)
    >>> explanation = rs.explain(head, [[0.1, 3.0, 1.5, -1.0]])[0]
    >>> ExplainedInput("photo.jpg", explanation, truth="cat").explanation.target
    'cat'
    """

    name: str
    explanation: Explanation
    truth: str | None = None
    picture: Picture | None = None

    def __post_init__(self) -> None:
        where, why = f"explanation of {short_repr(self.name)}", self.explanation
        _check_shares([why.probability], f"{where}: probability")
        _check_shares([share for _, share in why.alternatives], f"{where}: alternatives")
        _check_finite([contribution for _, contribution in why.items], f"{where}: items")
        _check_finite([contribution for _, contribution in why.sources], f"{where}: sources")


@dataclass(frozen=True)
class Report:
    """All that a page shows. Sections that are None or empty are left out.

    Attributes
    ----------
    title, lead : str
        The heading, and one or two sentences that say what the page is for.
    facts : tuple of (str, str)
        Short labels and values, shown as cards at the top.
    comparison : MethodComparison, optional
    evaluation : Evaluation, optional
    overview : Overview, optional
        Instead of an evaluation, if the true classes are not known.
    gallery : Gallery, optional
        Some inputs with their pictures.
    consensuses : tuple of TargetSummary
    sources : SourceTable, optional
    map : ClassMap, optional
    explanations : tuple of ExplainedInput
    settings : tuple of (str, str)
        Names and values, near the end.
    notes : tuple of str
        Remarks at the end.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.report import Report
    >>> votes = rs.Rankings.from_orders(
    ...     [["lion", "fox"], ["lion", "bus"]], items=["bus", "fox", "lion"], targets="cat")
    >>> Report("My classes", consensuses=tuple(rs.summarize(votes))).consensuses[0].target
    'cat'
    """

    title: str
    lead: str = LEAD
    facts: tuple[tuple[str, str], ...] = ()
    comparison: MethodComparison | None = None
    evaluation: Evaluation | None = None
    overview: Overview | None = None
    gallery: Gallery | None = None
    consensuses: tuple[TargetSummary, ...] = ()
    sources: SourceTable | None = None
    map: ClassMap | None = None
    explanations: tuple[ExplainedInput, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for summary in self.consensuses:
            where = f"consensus for {short_repr(summary.target)}"
            if summary.concordance is not None:
                _check_shares([summary.concordance], f"{where}: concordance")
            distances = [distance for _, distance in summary.disagreement]
            if summary.mean_distance is not None:
                distances.append(summary.mean_distance)
            _check_finite(distances, f"{where}: distances")
            if min(distances, default=0) < 0:
                raise RankshotError(f"{where}: the distance {min(distances)} is negative")


# ---- Validation


def _check_finite(values: Sequence[float], where: str) -> None:
    odd = np.flatnonzero(~np.isfinite(np.asarray(values, dtype=float)))
    if odd.size:
        raise RankshotError(f"{where}[{odd[0]}] is {values[odd[0]]}; it must be finite")


def _check_shares(values: Iterable[float], where: str, *, missing: bool = False) -> None:
    shares = np.asarray(list(values), dtype=float)
    inside = (shares >= -ROUNDING) & (shares <= 1 + ROUNDING)
    odd = np.flatnonzero(~(inside | (np.isnan(shares) & missing)))
    if odd.size:
        raise RankshotError(f"{where}: {shares[odd[0]]} is not a share from 0 to 1")


def _check_interval(interval: Interval, where: str) -> None:
    _check_shares((interval.estimate, interval.low, interval.high), where)
    if interval.low > interval.high:
        raise RankshotError(
            f"{where}: the lower end {interval.low} of the interval is above its upper end "
            f"{interval.high}"
        )
