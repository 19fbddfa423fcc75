"""`recognise`: from a model, inputs and names to new classes, using whatever data are passed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.errors import RankshotError, format_count, quote_names
from rankshot.core.validation import as_names
from rankshot.ranking.rankings import Rankings
from rankshot.recognition.images import Preprocessing
from rankshot.recognition.scoring import Classes, ScoredInputs, check_scores, score
from rankshot.sources.names import ClassLabels, describe_unknown
from rankshot.sources.registry import RankingSource, Source, compare_classes
from rankshot.sources.wordnet import WordNet
from rankshot.zeroshot.class_rankings import as_rankings, only_new
from rankshot.zeroshot.forecast import LEAST_CLASSES, USUAL_FOLDS, Forecast
from rankshot.zeroshot.knowledge import Knowledge
from rankshot.zeroshot.linear_head import LinearHead
from rankshot.zeroshot.metrics import Interval
from rankshot.zeroshot.remarks import describe_fit, describe_origin
from rankshot.zeroshot.scores import Scores, as_scores
from rankshot.zeroshot.seen_and_new import SeenAndNew
from rankshot.zeroshot.settings import Settings
from rankshot.zeroshot.weighted_mean import LEAST_INPUTS

MOST_HELD_OUT = 1 / 3
"""If possible, no larger share of the seen classes is held out together: all of them are there for
new classes."""


@dataclass(frozen=True, eq=False, repr=False)
class Recognition:
    """The result of `recognise`.

    Attributes
    ----------
    ids : array of str
        The ids of the inputs: paths of images, ids of a table, or numbers.
    labels : array of str
        Their classes.
    proba : ndarray of shape (n, classes)
        The probabilities of all classes, in the order of ``head.classes_``.
    alone : array of str
        The class of each input, predicted without the other inputs of the batch.
    head : LinearHead or SeenAndNew
        The fitted head, which can be saved.
    forecast : Forecast or None
        What a rehearsal on labelled inputs of seen classes found.
    notes : tuple of str
        Sentences that describe what was done, and why.

    Examples
    --------
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard"], ["bus"]], items=["bus", "leopard"], targets=["cat", "truck"])
    >>> found = rs.recognise(rs.Scores([[4.0, 0.5]], ["bus", "leopard"]), rankings)
    >>> found
    Recognition: 1 input, 2 classes
    >>> found.ids.tolist(), found.head.classes_.tolist(), found.forecast
    (['0'], ['cat', 'truck'], None)
    """

    ids: NDArray[np.object_]
    labels: NDArray[np.str_]
    proba: NDArray[np.floating]
    alone: NDArray[np.str_]
    head: LinearHead | SeenAndNew
    forecast: Forecast | None
    notes: tuple[str, ...]

    @property
    def predicted(self) -> Interval | None:
        """The mean accuracy on the new classes that is forecast, for inputs classified alone."""
        return None if self.forecast is None else self.forecast.predicted

    def __repr__(self) -> str:
        n, classes = format_count(len(self.ids), "input"), len(self.head.classes_)
        return f"Recognition: {n}, {format_count(classes, 'class')}"


def recognise(
    inputs: object,
    new: Rankings | Mapping[str, Sequence[str]] | Iterable[str],
    *,
    model: object = None,
    seen: Classes | None = None,
    preprocessing: Preprocessing | str | Path | Mapping[str, object] | None = None,
    features: bool = True,
    source: Source | Sequence[Source] | None = None,
    rehearse: tuple[object, ArrayLike] | None = None,
    examples: tuple[object, ArrayLike] | None = None,
    classes: Literal["new", "all"] = "new",
    none: bool = False,
    batch: bool | Literal["auto"] = "auto",
) -> Recognition:
    """Predict new classes, using whatever data are passed.

    If there are labelled inputs of seen classes, these classes are held out as if they were new,
    to choose settings, to calibrate, and to predict the accuracy; their scores are also the
    reference. Labelled examples of new classes are used. If there are at least five inputs per
    class, they are classified jointly (see `BatchRefinement`). The ``notes`` of the result
    describe what was done.

    Parameters
    ----------
    inputs : Scores, ScoredInputs, or inputs of the model
        The scores of a classifier, or what `rankshot.recognition.score` takes: a folder of images,
        a file, a list or an array. With `Rankings` and without a model, also a table of scores
        with one column per item, as a data frame or an array.
    new : Rankings, dict or iterable of names
        The rankings of the new classes; for a rehearsal, of the labelled seen classes as well. A
        dict has one list of seen classes, most similar first, per class. Or the names of the new
        classes, which the source ranks.
    model, seen, preprocessing, features
        As ``model``, ``classes``, ``preprocessing`` and ``features`` of
        `rankshot.recognition.score`. Examples are compared by features if there are any, and by
        scores otherwise.
    source : source or list of sources, optional
        What ranks names: objects with a method ``similarity`` or ``rankings``, such as
        `LanguageModel`. By default `WordNet`.
    rehearse : inputs and labels, optional
        Inputs of seen classes that the model was not trained on, and their classes: at least five
        classes, preferably 20 or more.
    examples : inputs and labels, optional
        Inputs of new classes, and their classes.
    classes : {"new", "all"}
        Whether only new classes may be predicted, or seen classes as well.
    none : bool
        Whether "none of these" may be predicted. Some inputs of new classes are then rejected as
        well: on photographs, 77% of the inputs of other classes were rejected, and 30% of those
        of new classes. The mean AUROC on three data sets is .75.
    batch : {"auto", True, False}
        Whether all inputs are classified jointly. Most new classes should occur among them, several
        times each. With "auto", this is done if there are at least five inputs per class.

    Returns
    -------
    Recognition
        Its ``labels``, ``proba``, ``head`` and ``notes``. Labels are text: compare them with
        ``y.astype(str)`` if your labels are numbers.

    Examples
    --------
    >>> import rankshot as rs
    >>> count = lambda texts: [[text.count(word) for word in ("wing", "wheel")] for text in texts]
    >>> found = rs.recognise(
    ...     ["two wings", "two wheels"], ["eagle", "bicycle"], model=count, seen=["bird", "car"])
    >>> found.labels
    array(['eagle', 'bicycle'], dtype='<U7')
    """

    def read(given: Any) -> ScoredInputs:
        if isinstance(given, ScoredInputs):
            return given
        if isinstance(given, Scores):
            ids = np.arange(len(given)).astype(str).astype(object)
            return ScoredInputs(given, ids, (), ClassLabels.from_names(given.items))
        if model is not None:
            return score(model, given, seen, preprocessing=preprocessing, features=features)
        if isinstance(new, Rankings):
            return read(as_scores(given, new.items))
        raise RankshotError(
            "without a model, inputs must be Scores, as in Scores(values, names of the seen "
            f"classes), not {type(given).__name__}"
        )

    scored = read(inputs)
    scores, reference, labels = scored.scores, None, np.array([], str)
    if rehearse is not None:
        reference, labels = read(rehearse[0]).scores, np.asarray(rehearse[1]).astype(str)
    few = None if examples is None else (read(examples[0]).scores, examples[1])
    if not isinstance(new, Rankings | Mapping):
        new = _rank(source, as_names(new, "new"), labels, scored.classes, few)
    rankings = as_rankings(new, scores.items)
    new_rankings = only_new(rankings)
    notes = [describe_origin(new_rankings), *_list_unused(rankings, labels)]
    forecast = _rehearse(rankings, new_rankings, reference, labels, notes)
    if reference is not None and len(reference) < LEAST_INPUTS:
        reference = None
    settings = Settings() if forecast is None else forecast.settings
    settings = replace(settings, classes=classes, none=none, batch=batch)
    known = Knowledge(new_rankings, reference, few, scores)
    fitted = known.fit_alone(settings)
    head = known.complete(fitted, settings)
    notes += [f"warning: {doubt}" for doubt in check_scores([(None, scores)]).doubts]
    notes += describe_fit(head, reference)
    labels = head.predict(scores)
    alone = labels if settings.has_gate else fitted.predict(scores)
    proba = head.predict_proba(scores)
    return Recognition(scored.ids, labels, proba, alone, head, forecast, tuple(notes))


def _list_unused(rankings: Any, labels: NDArray[np.str_]) -> list[str]:
    """Return a sentence if seen classes are ranked that have no labelled inputs."""
    seen = set(rankings.items).intersection(rankings.targets.tolist())
    if not (unused := sorted(seen.difference(labels.tolist()))):
        return []
    why = "they are seen classes, whose rankings are only used in a rehearsal, with labelled inputs"
    return [f"rankings of {quote_names(unused)} are left out: {why}"]


def _rehearse(
    rankings: Any, new: Any, reference: Scores | None, labels: NDArray[np.str_], notes: list[str]
) -> Forecast | None:
    """Rehearse, if that is possible, and predict the accuracy; write down what was done."""
    if reference is None:
        return None
    held_out = _select_rehearsed(rankings, new, labels)
    n = len(held_out.target_names)
    if n < LEAST_CLASSES:
        notes.append(
            f"rehearsal: none. It needs rankings of at least {LEAST_CLASSES} labelled classes by "
            f"the sources that rank the new classes, and {n} are ranked by these; the labelled "
            "inputs are only used as the reference"
        )
        return None
    least = ceil(n / (MOST_HELD_OUT * len(reference.items)))
    n_folds = min(max(n // (2 * LEAST_CLASSES), least, 2), USUAL_FOLDS)
    known = Knowledge(Rankings.concatenate([held_out, new]), (reference, labels))
    forecast = known.rehearse(n_folds=n_folds)
    notes += forecast.describe(new)
    return forecast


def _rank(
    source: Source | Sequence[Source] | None,
    new: tuple[str, ...],
    labels: NDArray[np.str_],
    seen: ClassLabels,
    examples: tuple[object, ArrayLike] | None,
) -> Rankings:
    """Return the rankings of new classes, and of labelled seen classes, by all sources.

    A new class without a ranking and without an example may be misspelt.
    """
    targets = (*new, *(name for name in np.unique(labels).tolist() if name in seen.names))
    if source is None:
        source = WordNet(senses=seen.senses)
    rankings = Rankings.concatenate(
        [
            each.rankings(targets, seen.names)
            if isinstance(each, RankingSource)
            else compare_classes(each, targets, seen.names, seen.words).to_rankings()
            for each in (source if isinstance(source, Sequence) else [source])
        ]
    )
    shown = () if examples is None else np.asarray(examples[1]).astype(str).tolist()
    if unknown := [name for name in new if name not in {*rankings.target_names, *shown}]:
        described = describe_unknown(unknown, targets + seen.names, seen.words)
        raise RankshotError(
            f"{described}. Correct the name, rank the class in another way, or leave it out"
        )
    return rankings


def _select_rehearsed(rankings: Any, new: Rankings, labels: NDArray[np.str_]) -> Any:
    """Return the rankings of labelled classes that those sources rank which count for new ones."""
    counts = np.full(len(rankings), not new.rater_names)
    counts |= np.array([bool(rater) for rater in rankings.raters])
    ranked = np.intersect1d(labels, rankings.targets[counts].astype(str))
    return rankings[np.isin(rankings.targets.astype(str), ranked)]
