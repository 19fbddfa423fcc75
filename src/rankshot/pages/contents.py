"""The contents of a report: plain values. Every section is optional.

Shares, accuracies and probabilities are numbers from 0 to 1. Names may be any text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.pages.images import ShownInput, Thumbnail
from rankshot.ranking.rater_agreement import TargetSummary
from rankshot.zeroshot.explanation import Explanation
from rankshot.zeroshot.metrics import Interval, Reliability

LEAD = (
    "The classifier has no training example of the new classes. It knows them only by rankings of "
    "the classes that it was trained on, the seen classes."
)
LEAD_WITH_MORE = (
    "The classifier was not trained on the new classes. It knows them by rankings of the classes "
    "that it was trained on, the seen classes, and by {}."
)
EXAMPLES, EVIDENCE = "a few labelled examples", "the scores of another model"


class Card(NamedTuple):
    """A fact at the top of a page.

    Attributes
    ----------
    label, value : str
        What it is about, and the fact.
    detail : str
        What is behind it, or follows from it.

    Examples
    --------
    >>> from rankshot.pages import Card, Report
    >>> Report("t", cards=(Card("Rejected", "12", "no class was probable enough"),)).cards[0].value
    '12'
    """

    label: str
    value: str
    detail: str = ""


class MethodRow(NamedTuple):
    """The accuracy of one method with one source."""

    method: str
    source: str
    accuracy: Interval


class MethodComparison(NamedTuple):
    """The accuracies of methods and sources, and what they are of."""

    rows: tuple[MethodRow, ...]
    caption: str = ""

    def by_method(self) -> dict[str, list[MethodRow]]:
        """Return rows of each method."""
        methods: dict[str, list[MethodRow]] = {}
        for row in self.rows:
            methods.setdefault(row.method, []).append(row)
        return methods


# eq=False: comparing arrays does not give a single truth value.
@dataclass(frozen=True, eq=False)
class Evaluation:
    """How well the new classes were recognised; see `evaluate_predictions`.

    Attributes
    ----------
    classes : tuple of str
        The L classes.
    accuracy, mean_class_accuracy : Interval
        Over all inputs, and the mean over the classes that have inputs.
    per_class : tuple of float
        The accuracy over the inputs of each class; NaN for a class without inputs.
    n_inputs : tuple of int
        The number of inputs of each class. A row of ``confusion`` may have a smaller sum, because
        it leaves out rejected inputs.
    confusion : ndarray of int, shape (L, L)
        Counts, one row per true class and one column per predicted class.
    calibration : Reliability
        How well probabilities fit the share of correct predictions.
    """

    classes: tuple[str, ...]
    accuracy: Interval
    mean_class_accuracy: Interval
    per_class: tuple[float, ...]
    n_inputs: tuple[int, ...]
    confusion: NDArray[np.int64]
    calibration: Reliability


class PredictionOverview(NamedTuple):
    """Predictions without true classes: how many inputs got each class; see `count_predictions`.

    The confidence of a prediction is the largest probability of its input. ``confidences`` has the
    lower end, the upper end and the number of inputs of each bin. ``audited`` is the accuracy that
    an audit of randomly drawn inputs has estimated, if there was one.
    """

    classes: tuple[str, ...]
    counts: tuple[int, ...]
    n_inputs: int
    median_confidence: float
    confidences: tuple[tuple[float, float, int], ...]
    audited: Interval | None = None


class SimilarClasses(NamedTuple):
    """The most similar new classes: two names and the distance of their ``k`` places.

    ``n_compared`` of ``n_classes`` classes were compared.
    """

    pairs: tuple[tuple[str, str, float], ...]
    n_compared: int
    n_classes: int
    k: int


class ExplainedInput(NamedTuple):
    """One input, why it got its class, its true class and its image, if they are known."""

    name: str
    explanation: Explanation
    truth: str | None = None
    thumbnail: Thumbnail | None = None


@dataclass(frozen=True)
class Report:
    """Everything that a page shows. Sections that are None or empty are left out.

    Attributes
    ----------
    title, lead : str
        The heading, and one or two sentences about the subject of the page.
    kind : str
        Which classes could be predicted: ``"new"``, ``"seen and new"``.
    forecast : Interval, optional
        The accuracy that a rehearsal predicted.
    cards : tuple of Card
        Facts at the top, before those that follow from the predictions.
    comparison : MethodComparison, optional
    evaluation : Evaluation, optional
    overview : PredictionOverview, optional
        Instead of an evaluation, if the true classes are not known.
    gallery : tuple of ShownInput
        Some inputs with their images.
    gallery_choice : str
        How these inputs were chosen; see `read_images`.
    consensuses : tuple of TargetSummary
    similar : SimilarClasses, optional
    explanations : tuple of ExplainedInput
    settings : tuple of (str, str)
        Names and values at the end: files, the network, the date.
    notes : tuple of str
        Remarks at the end.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.pages import Report
    >>> votes = rs.Rankings.from_orders(
    ...     [["lion", "fox"], ["lion", "bus"]], items=["bus", "fox", "lion"], targets="cat")
    >>> Report("My classes", consensuses=tuple(rs.ranking.summarize(votes))).consensuses[0].target
    'cat'
    """

    title: str
    lead: str = LEAD
    kind: str = "new"
    forecast: Interval | None = None
    cards: tuple[Card, ...] = ()
    comparison: MethodComparison | None = None
    evaluation: Evaluation | None = None
    overview: PredictionOverview | None = None
    gallery: tuple[ShownInput, ...] = ()
    gallery_choice: str = ""
    consensuses: tuple[TargetSummary, ...] = ()
    similar: SimilarClasses | None = None
    explanations: tuple[ExplainedInput, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
