"""`Rehearsal`: seen classes play new ones, to choose settings, to calibrate and to predict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.core.progress import ProgressLine
from rankshot.core.validation import Seed, require_choice
from rankshot.zeroshot.accuracy_prediction import find_strengths, predict_mean_accuracy
from rankshot.zeroshot.alignment import Semantics, align_to
from rankshot.zeroshot.bootstrap import class_interval, class_weights
from rankshot.zeroshot.classifier import require_same_length
from rankshot.zeroshot.estimator_scores import scores_of
from rankshot.zeroshot.heads.base import BaseHead
from rankshot.zeroshot.heads.reference import LEAST_INPUTS
from rankshot.zeroshot.heads.seen_and_new import Gate, SeenAndNew
from rankshot.zeroshot.heads.weighted_mean import WeightedMean
from rankshot.zeroshot.metrics import GeneralizedAccuracy, Interval, expected_calibration_error
from rankshot.zeroshot.rehearsal_folds import (
    Fold,
    choose_groups,
    make_fold,
    require_rehearsed,
    require_scores,
    select_sources,
    source_names,
)
from rankshot.zeroshot.rehearsal_of_gate import rehearse_gate
from rankshot.zeroshot.scores import Scores

Floats = NDArray[np.float64]
Labels = NDArray[np.str_]
Grid = Mapping[str, Sequence[Any]]
GRID: Grid = {"k": (5, 10, 15), "decay": (0.25, 0.5, 0.75)}
"""The settings that are tried by default, as far as the head has these parameters."""
TEMPERATURES = (1e-4, 1e4)
"""The range of temperatures."""
KEPT_FOR_REFERENCE = 0.25
"""The share of the inputs that a classifier is not trained on, if it is trained again."""


@dataclass(frozen=True, eq=False)
class Trial:
    """One way to recognise the rehearsed classes, and how accurate it was.

    Attributes
    ----------
    what : str
        What was tried: ``"as it comes"``, ``"k=5, decay=0.25"``, ``"without WordNet"``.
    params : dict
        The parameters of the head that differ from its own.
    reference : bool
        Whether the head was fitted with a reference.
    sources : tuple of str
        The sources of its rankings; rankings without a source have the name "".
    accuracy : Interval
        The mean accuracy of the classes, with a 95 % interval from resamples of classes.
    by_class : dict of str to float
        The accuracy of each class.
    """

    what: str
    params: dict[str, Any]
    reference: bool
    sources: tuple[str, ...]
    accuracy: Interval
    by_class: dict[str, float]

    def is_clearly_better(self, other: Trial) -> bool:
        """Return whether the gain is larger than its standard error over the classes.

        With few classes, the best of several trials is often best by chance.
        """
        gain = np.array([self.by_class[name] - other.by_class[name] for name in self.by_class])
        return bool(gain.mean() > gain.std(ddof=1) / np.sqrt(len(gain)))


class _Outcome(NamedTuple):
    """What a head says about the inputs of the held-out classes of a fold."""

    labels: Labels
    classes: Labels
    values: Floats
    correlations: Floats


class Rehearsal(BaseEstimator):
    """Let some seen classes play new ones, to see how new classes will be recognised.

    The scores of the held-out classes are left out, and the head has to recognise their inputs by
    their rankings, like inputs of new classes. So it needs labelled scores of seen inputs, and
    rankings of seen classes by the same sources that rank the new classes
    (``rankshot rank --rehearse 20``); nothing of the new classes. It

    - chooses sources, ``k``, ``decay`` and whether to use a reference. A change is made only if
      the accuracy gains more than its standard error over the classes;
    - finds the temperature with which the probabilities are calibrated;
    - predicts how accurate the new classes will be (`predict_accuracy`);
    - learns the gate that decides between seen and new classes, if both may be answered
      (`SeenAndNew`), and "none of these": half of the rehearsed classes play new ones, and the
      other half inputs that are of no class.

    Parameters
    ----------
    head : head, optional
        The head whose settings are chosen; by default `WeightedMean()`.
    grid : dict of str to list, optional
        The values of its parameters to try, all combinations. By default some values of ``k`` and
        ``decay``. Values of the parameters of ``estimator`` have names like ``estimator__C``.
    estimator : classifier, optional
        If given, `fit` takes inputs instead of scores, and the classifier is trained again without
        the held-out classes. That is more faithful: a trained classifier has learned from inputs
        of the held-out classes, too.
    n_folds : int
        If the rankings list classes that are themselves rehearsed, the rehearsed classes are
        divided at random into this number of groups, which are held out in turn. Otherwise all are
        held out together.
    held_out : list of lists of names, optional
        The groups, instead of random ones.
    random_state : int
        The seed of the groups.
    verbose : bool
        Show the progress on standard error.

    Attributes
    ----------
    head_ : head
        A copy of the head with the chosen settings and the temperature; not fitted.
    use_reference_ : bool
        Whether to fit it with a reference.
    sources_ : tuple of str
        The sources to use.
    trials_ : list of Trial
        All that was tried, in this order; the first is the head as it comes.
    accuracy_ : Interval
        The mean accuracy of the rehearsed classes with the chosen settings, and its 95 % interval
        from resamples of classes.
    calibration_error_ : tuple of float
        The expected calibration error on the rehearsed classes, before and after.
    gate_ : Gate or None
        The gate between seen and new classes. None without enough inputs of other seen classes.
    seen_temperature_ : float
        The temperature of the seen classes in `SeenAndNew`; not without a gate.
    together_ : GeneralizedAccuracy or None
        The accuracies of the rehearsed and of the other seen classes with this gate, where both
        may be answered, and their harmonic mean.
    classes_ : ndarray of str
        The rehearsed classes.
    estimator_ : classifier
        The classifier with the chosen settings, trained on all inputs; only with ``estimator``.

    Examples
    --------
    >>> import numpy as np, rankshot as rs
    >>> rng = np.random.default_rng(0)
    >>> places = np.arange(12)
    >>> names = np.array([f"class{i:02}" for i in places])
    >>> label = np.repeat(places, 30)                    # classes on a line, as a network sees them
    >>> scores = -abs(label[:, None] - places) + rng.normal(size=(360, 12))
    >>> near = rs.Similarity(-abs(places[:, None] - places).astype(float), names, names)
    >>> rehearsal = rs.Rehearsal(n_folds=3).fit(
    ...     rs.Scores(scores, names), names[label], near.to_rankings())
    >>> print(rehearsal.accuracy_)
    .953 [.911, .986]
    >>> new = rs.Similarity(-abs(np.array([[2.5], [7.5]]) - places), ["new1", "new2"], names)
    >>> print(rehearsal.predict_accuracy(new.to_rankings()))
    1.000 [.999, 1.000]
    >>> head = rehearsal.fit_head(new.to_rankings())
    >>> head.predict(-abs(2.5 - places)[None])
    array(['new1'], dtype='<U4')
    """

    def __init__(
        self,
        head: BaseHead | None = None,
        *,
        grid: Grid | None = None,
        estimator: Any = None,
        n_folds: int = 5,
        held_out: Sequence[Iterable[str]] | None = None,
        random_state: Seed = 0,
        verbose: bool = False,
    ) -> None:
        self.head = head
        self.grid = grid
        self.estimator = estimator
        self.n_folds = n_folds
        self.held_out = held_out
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, rankings: Semantics) -> Rehearsal:
        """Rehearse.

        Parameters
        ----------
        X : Scores, or inputs of the ``estimator``
            Scores of inputs of seen classes that the classifier was not trained on: of the
            rehearsed classes, and of others for the reference. The rehearsed classes need no
            columns.
        y : array-like of names
            Their classes.
        rankings : Rankings or Similarity
            Rankings of *seen* classes, by the sources that rank the new classes; similarities for
            a head that takes them.
        """
        head = WeightedMean() if self.head is None else self.head
        if not isinstance(head, BaseHead):
            raise RankshotError(
                f"head must be a head such as WeightedMean(), not {short_repr(head)}"
            )
        require_same_length(X, y)
        labels = np.asarray(y).astype(str)
        semantics = require_rehearsed(rankings, labels)
        groups = choose_groups(semantics, self.held_out, self.n_folds, self.random_state)
        self.classes_ = np.array(sorted(name for group in groups for name in group))
        of_head, of_estimator = self._split_grid(head)
        with ProgressLine("rehearsal", enabled=self.verbose) as line:
            stages = []
            for params in of_estimator:
                line.update("training" if self.estimator is not None else "scores")
                folds = [self._make_fold(X, labels, semantics, group, params) for group in groups]
                stages.append(_Stage(head, folds, line))
            best = max(stages, key=lambda stage: stage.first.accuracy.estimate)
            best.choose(of_head)
        self._finish(best, of_estimator[stages.index(best)], X, labels)
        return self

    def _split_grid(self, head: BaseHead) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the settings of the head and those of the estimator."""
        there = head.get_params()  # type: ignore[attr-defined]
        grid = self.grid
        if grid is None:
            grid = {name: values for name, values in GRID.items() if name in there}
        if not isinstance(grid, Mapping):
            raise RankshotError(f"grid must be a dict of lists, not {short_repr(grid)}")
        of_estimator = {
            name.removeprefix("estimator__"): values
            for name, values in grid.items()
            if name.startswith("estimator__")
        }
        of_head = {name: v for name, v in grid.items() if not name.startswith("estimator__")}
        if of_estimator and self.estimator is None:
            raise RankshotError(
                f"grid: {quote_names(f'estimator__{name}' for name in of_estimator)} needs an "
                "estimator"
            )
        for name in of_head:
            if name not in there or name == "temperature":
                advice = (
                    "; the temperature is found without a grid" if name == "temperature" else ""
                )
                raise RankshotError(
                    f"grid: {name!r} is no parameter of {type(head).__name__} that can be chosen"
                    f"{advice or suggest_name(name, there)}"
                )
        try:
            return list(ParameterGrid(of_head)), list(ParameterGrid(of_estimator))
        except (TypeError, ValueError) as error:
            raise RankshotError(f"grid: {error}") from None

    def _make_fold(
        self,
        X: Any,
        labels: Labels,
        semantics: Semantics,
        group: tuple[str, ...],
        params: dict[str, Any],
    ) -> Fold:
        """Hold out a group; train the classifier again without it, if there is one."""
        if self.estimator is None:
            scores = require_scores(X, labels, semantics)
            return make_fold(scores, labels, semantics, group)
        rng = np.random.default_rng(self.random_state)
        kept = np.isin(labels, group) | (rng.random(len(labels)) < KEPT_FOR_REFERENCE)
        train = np.flatnonzero(~kept)
        trained = clone(self.estimator).set_params(**params)
        trained.fit(_safe_indexing(X, train), labels[train])
        scores = scores_of(trained, _safe_indexing(X, np.flatnonzero(kept)))
        return make_fold(scores, labels[kept], semantics, group)

    def _finish(self, stage: _Stage, params: dict[str, Any], X: Any, labels: Labels) -> None:
        """Keep what was chosen, and calibrate it."""
        chosen, outcomes = stage.chosen, stage.outcomes[id(stage.chosen)]
        self.trials_ = stage.trials
        self.use_reference_, self.sources_ = chosen.reference, chosen.sources
        self.accuracy_ = chosen.accuracy
        temperature = fit_temperature(outcomes)
        before = stage.head_with(chosen.params)
        self.head_ = clone(before).set_params(temperature=temperature)
        first = stage.fit_head(chosen, stage.folds[0]).temperature_
        self.calibration_error_ = tuple(
            float(np.mean([_calibration_error(one, t) for one in outcomes]))
            for t in (first, temperature)
        )
        self.gate_: Gate | None = None
        self.together_: GeneralizedAccuracy | None = None
        if all(len(fold.seen) >= LEAST_INPUTS for fold in stage.folds):
            learned = rehearse_gate(stage.folds, partial(stage.fit_head, chosen), temperature)
            self.gate_, self.seen_temperature_, self.together_ = learned
        accuracies = chosen.by_class
        self._strengths = np.concatenate(
            [
                find_strengths(np.array([accuracies[z] for z in one.classes]), one.correlations)
                for one in outcomes
            ]
        )
        if self.estimator is None:
            self._reference = X
        else:
            self.estimator_ = clone(self.estimator).set_params(**params).fit(X, labels)
            self._reference = scores_of(self.estimator_, X)

    def fit_head(
        self,
        rankings: Semantics,
        reference: Scores | None = None,
        *,
        classes: Literal["new", "all"] = "new",
        none: bool = False,
    ) -> BaseHead:
        """Return the chosen head, fitted to the new classes: with sources, reference and all.

        Parameters
        ----------
        rankings : Rankings or Similarity
            Of the new classes, by the same sources.
        reference : Scores, optional
            Scores of seen inputs by the classifier that will be used. By default those of `fit`:
            all of them, with all columns.
        classes : {"new", "all"}
            Whether only new classes are answered, or seen classes, too, by a `SeenAndNew`.
        none : bool
            With ``classes="all"``: whether "none of these" is an answer, too.
        """
        check_is_fitted(self, "head_")
        require_choice("classes", classes, ("new", "all"))
        table = self._reference if reference is None else reference
        semantics = align_to(select_sources(rankings, self.sources_), table.items)
        head: BaseHead = clone(self.head_)
        head.fit(semantics, **({"reference": table} if self.use_reference_ else {}))
        if classes == "new":
            return head
        if self.gate_ is None:
            raise RankshotError(
                "there is no gate between seen and new classes: the rehearsal had fewer than "
                f"{LEAST_INPUTS} inputs of other seen classes"
            )
        both = SeenAndNew(head, gate=self.gate_, none=none, seen_temperature=self.seen_temperature_)
        return both.fit(table)

    def predict_accuracy(self, rankings: Semantics, reference: Scores | None = None) -> Interval:
        """Predict the mean accuracy of new classes, with a 95 % interval for these classes.

        It depends on how well the rehearsed classes were recognised, on the number of new classes,
        and on how similar their rankings are; see `accuracy_prediction`.

        Parameters
        ----------
        rankings, reference
            As for `fit_head`.
        """
        head = self.fit_head(rankings, reference)
        table = self._reference if reference is None else reference
        return predict_mean_accuracy(self._strengths, _correlations(head, table))


class _Stage:
    """All trials with the scores of one classifier, and what was chosen among them."""

    def __init__(self, head: BaseHead, folds: list[Fold], line: ProgressLine) -> None:
        self.head, self.folds, self._line = head, folds, line
        self.trials: list[Trial] = []
        self.outcomes: dict[int, list[_Outcome]] = {}
        takes_reference = "reference" in signature(head.fit).parameters
        enough = all(len(fold.seen) >= LEAST_INPUTS for fold in folds)
        self.first = self.chosen = self.evaluate(
            "as it comes",
            {},
            source_names(folds[0].semantics),
            reference=takes_reference and enough,
        )

    def choose(self, grid: list[dict[str, Any]]) -> None:
        """Try other sources, parameters and no reference; keep what is clearly better."""
        self._choose_sources()
        tried = [
            self.evaluate(
                _describe(params), params, self.chosen.sources, reference=self.chosen.reference
            )
            for params in grid
            if params
        ]
        self._keep_if_better(tried)
        if self.chosen.reference:
            params, sources = self.chosen.params, self.chosen.sources
            self._keep_if_better([self.evaluate("no reference", params, sources, reference=False)])

    def _choose_sources(self) -> None:
        """Leave out one source after the other, as long as that is clearly better."""
        names = self.chosen.sources
        if len(names) > 1:
            for name in names:
                self.evaluate(
                    f"{name or 'no source'} alone", {}, (name,), reference=self.chosen.reference
                )
        while len(names) > 1:
            without = [
                self.evaluate(
                    f"without {name or 'no source'}",
                    {},
                    tuple(other for other in names if other != name),
                    reference=self.chosen.reference,
                )
                for name in names
            ]
            self._keep_if_better(without)
            if self.chosen.sources == names:
                return
            names = self.chosen.sources

    def _keep_if_better(self, trials: list[Trial]) -> None:
        best = max(trials, key=lambda trial: trial.accuracy.estimate, default=self.chosen)
        if best.is_clearly_better(self.chosen):
            self.chosen = best

    def head_with(self, params: dict[str, Any]) -> Any:
        """Return a copy of the head with some parameters."""
        return clone(self.head).set_params(**params)

    def fit_head(self, trial: Trial, fold: Fold) -> Any:
        """Return the head of a trial, fitted to the held-out classes of a fold."""
        head = self.head_with(trial.params)
        semantics = select_sources(fold.semantics, trial.sources)
        return head.fit(semantics, fold.seen) if trial.reference else head.fit(semantics)

    def evaluate(
        self, what: str, params: dict[str, Any], sources: tuple[str, ...], *, reference: bool
    ) -> Trial:
        """Measure one way to recognise the held-out classes."""
        self._line.update(what)
        trial = Trial(what, params, reference, sources, Interval(0, 0, 0), {})
        outcomes = []
        for fold in self.folds:
            head = self.fit_head(trial, fold)
            values = np.asarray(head.decision_function(fold.new), np.float64)
            # Without a reference, correlations are those over the inputs themselves.
            correlations = _correlations(head, fold.seen if len(fold.seen) > 1 else fold.new)
            outcomes.append(_Outcome(fold.new_label, head.classes_, values, correlations))
        labels = np.concatenate([one.labels for one in outcomes])
        right = np.concatenate(
            [one.classes[one.values.argmax(axis=1)] == one.labels for one in outcomes]
        )
        by_class = {
            name: float(right[labels == name].mean()) for name in np.unique(labels).tolist()
        }
        trial = Trial(what, params, reference, sources, class_interval(labels, right), by_class)
        self.trials.append(trial)
        self.outcomes[id(trial)] = outcomes
        return trial


def fit_temperature(outcomes: Sequence[_Outcome]) -> float:
    """Return the temperature with the smallest log-loss, where all classes weigh the same."""
    parts = [
        (one.values, np.searchsorted(one.classes, one.labels), class_weights(one.labels))
        for one in outcomes
    ]

    def loss(log_temperature: float) -> float:
        return -sum(
            float(
                weight @ log_softmax(values / np.exp(log_temperature), axis=1)[np.arange(len(y)), y]
            )
            for values, y, weight in parts
        )

    found = minimize_scalar(loss, bounds=np.log(TEMPERATURES), method="bounded")
    return float(np.exp(found.x))


def _calibration_error(outcome: _Outcome, temperature: float) -> float:
    proba = np.exp(log_softmax(outcome.values / temperature, axis=1))
    return expected_calibration_error(outcome.labels, proba, outcome.classes)


def _correlations(head: BaseHead, scores: Scores) -> Floats:
    """Return the correlations of the decision values of the classes; 0 for a constant one."""
    values = np.asarray(head.decision_function(scores), np.float64)
    values = values - values.mean(axis=0)
    size = np.sqrt((values**2).sum(axis=0))
    values /= np.where(size > 0, size, 1.0)
    correlations = values.T @ values
    np.fill_diagonal(correlations, 1.0)
    return np.asarray(correlations)


def _describe(params: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in params.items())
