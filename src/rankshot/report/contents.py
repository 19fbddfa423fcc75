"""The contents of a report: plain values. Every section is optional.

Shares, accuracies and probabilities are numbers from 0 to 1. Names may be any text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, short_repr
from rankshot.plots.map import MapDisplay
from rankshot.ranking.rater_agreement import TargetSummary
from rankshot.report.pictures import ShownInput, Thumbnail
from rankshot.zeroshot.explanation import Explanation
from rankshot.zeroshot.metrics import Interval, Reliability

LEAD = (
    "This page shows how well a zero-shot classifier recognises new classes: classes without a "
    "single training example, which it knows only by rankings of the classes that it was trained "
    "on (the seen classes)."
)


class MethodRow(NamedTuple):
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


@dataclass(frozen=True)
class MethodComparison:
    """Accuracies of methods and sources (rows) with classifiers (columns)."""

    classifiers: tuple[str, ...]
    rows: tuple[MethodRow, ...]
    caption: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) != len(self.classifiers):
                raise RankshotError(
                    f"the row {short_repr(row.method)}, {short_repr(row.source)} has "
                    f"{len(row.cells)} cells, but there are {len(self.classifiers)} classifiers"
                )


class Calibration(NamedTuple):
    """How well probabilities fit the share of right predictions.

    The log loss is infinite if a true class got probability 0.
    """

    reliability: Reliability
    log_loss: float


# eq=False: comparing arrays does not give a single truth value.
@dataclass(frozen=True, eq=False)
class Evaluation:
    """How well the new classes were recognised; see `evaluate_predictions`.

    Attributes
    ----------
    classes : tuple of str
        The L classes.
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
    """

    classes: tuple[str, ...]
    accuracy: Interval
    mean_class_accuracy: Interval
    per_class: tuple[float, ...]
    n_inputs: tuple[int, ...]
    confusion: NDArray[np.int64]
    pairwise: NDArray[np.float64]
    calibration: Calibration
    top_k: tuple[tuple[int, float], ...] = ()
    uncalibrated: Calibration | None = None


class PredictionOverview(NamedTuple):
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
    """

    classes: tuple[str, ...]
    counts: tuple[int, ...]
    n_inputs: int
    median_confidence: float
    confidences: tuple[tuple[float, float, int], ...]


class SourceLine(NamedTuple):
    """A source of rankings, and how far it is from the consensus and from the other sources.

    Attributes
    ----------
    name : str
        The source.
    n_rankings : int
        How many rankings it has.
    known : int
        How many seen classes all its rankings compare.
    to_consensus : float
        Its mean distance to the consensus: 0 is the same order, 1 the opposite order, and NaN
        where there is nothing to compare.
    to_others : tuple of float
        Its mean distance to each source, in the order of the table.
    """

    name: str
    n_rankings: int
    known: int
    to_consensus: float
    to_others: tuple[float, ...]


class SourceTable(NamedTuple):
    """The sources of rankings; see `compare_sources`.

    Attributes
    ----------
    lines : tuple of SourceLine
        One per source.
    n_items : int
        The number of all seen classes.
    k : int
        How many places of each ranking were compared.
    """

    lines: tuple[SourceLine, ...]
    n_items: int
    k: int


class ExplainedInput(NamedTuple):
    """One input and why it got its class.

    Attributes
    ----------
    name : str
        The input, for example its id.
    explanation : Explanation
        Of the class that it got.
    truth : str, optional
        Its true class, if it is known.
    picture : Thumbnail, optional
    """

    name: str
    explanation: Explanation
    truth: str | None = None
    picture: Thumbnail | None = None


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
    overview : PredictionOverview, optional
        Instead of an evaluation, if the true classes are not known.
    gallery : tuple of ShownInput
        Some inputs with their pictures.
    gallery_choice : str
        How these inputs were chosen; see `describe_choice`.
    consensuses : tuple of TargetSummary
    sources : SourceTable, optional
    map : MapDisplay, optional
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
    overview: PredictionOverview | None = None
    gallery: tuple[ShownInput, ...] = ()
    gallery_choice: str = ""
    consensuses: tuple[TargetSummary, ...] = ()
    sources: SourceTable | None = None
    map: MapDisplay | None = None
    explanations: tuple[ExplainedInput, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
