"""`Rehearsal`: seen classes play new ones, to choose settings, to calibrate and to predict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.core.progress import ProgressLine
from rankshot.core.validation import Seed, require_choice
from rankshot.zeroshot.alignment import Semantics, align_to, only_new
from rankshot.zeroshot.classifier import require_same_length
from rankshot.zeroshot.estimator_scores import scores_of
from rankshot.zeroshot.heads.base import BaseHead
from rankshot.zeroshot.heads.gate import Gate
from rankshot.zeroshot.heads.reference import LEAST_INPUTS
from rankshot.zeroshot.heads.seen_and_new import SeenAndNew
from rankshot.zeroshot.heads.weighted_mean import WeightedMean
from rankshot.zeroshot.metrics import GeneralizedAccuracy, Interval
from rankshot.zeroshot.rehearsal.accuracy_prediction import find_strengths, predict_mean_accuracy
from rankshot.zeroshot.rehearsal.folds import (
    Fold,
    choose_groups,
    make_fold,
    require_rehearsed,
    require_scores,
    select_sources,
)
from rankshot.zeroshot.rehearsal.gate import LEAST_HALVED, rehearse_gate
from rankshot.zeroshot.rehearsal.trials import (
    Trials,
    calibration_error,
    correlate_classes,
    fit_temperature,
)
from rankshot.zeroshot.scores import Scores

Floats = NDArray[np.float64]
Labels = NDArray[np.str_]
Grid = Mapping[str, Sequence[Any]]
GRID: Grid = {"k": (5, 10, 15), "decay": (0.25, 0.5, 0.75)}
"""The settings that are tried by default, as far as the head has these parameters."""
KEPT_FOR_REFERENCE = 0.25
"""The share of the inputs that a classifier is not trained on, if it is trained again."""


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
        The head whose settings are chosen; by default a `WeightedMean`.
    grid : dict of str to list, optional
        The values of its parameters to try, all combinations. By default some values of ``k`` and
        ``decay``. Values of the parameters of ``estimator`` have names like ``estimator__C``: the
        most accurate of them are taken, and ``trials_`` are those with them.
    estimator : classifier, optional
        If given, `fit` takes inputs instead of scores, and the classifier is trained again without
        the held-out classes. That is more faithful: a trained classifier has learned from inputs
        of the held-out classes, too.
    n_folds : int, optional
        If the rankings list classes that are themselves rehearsed, the rehearsed classes are
        divided at random into this number of groups, which are held out in turn. Otherwise all are
        held out together. A group has at least two classes: the default is 5, and half the number
        of classes if there are fewer than 10.
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
        All that was tried, in this order, each once; the first is the head with its own settings.
    accuracy_ : Interval
        The mean accuracy of the rehearsed classes with the chosen settings, and its 95 % interval
        from resamples of classes.
    default_temperature_ : float
        The temperature of the head before it was calibrated.
    calibration_error_ : tuple of float
        The expected calibration error on the rehearsed classes, with the default temperature and
        with the chosen one, which was fitted to the same inputs.
    gate_ : Gate or None
        The gate between seen and new classes. None without enough inputs of other seen classes.
    seen_temperature_ : float
        The temperature of the seen classes in `SeenAndNew`; not without a gate.
    together_ : GeneralizedAccuracy or None
        The accuracies of the rehearsed and of the other seen classes with this gate, where both
        may be answered, and their harmonic mean; on the inputs that the gate was fitted to.
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
        n_folds: int | None = None,
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
            columns. With an ``estimator``: its training inputs. It is trained here on a part of
            them, and never on the inputs that it is tried on.
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
        if "head" in head.get_params(deep=False):  # type: ignore[attr-defined]
            raise RankshotError(
                f"{type(head).__name__} is built on another head: rehearse that one"
            )
        require_same_length(X, y)
        labels = np.asarray(y).astype(str)
        if labels.ndim != 1:
            raise RankshotError(f"y must be one name per input, not of shape {labels.shape}")
        semantics = require_rehearsed(rankings, labels)
        groups = choose_groups(semantics, self.held_out, self.n_folds, self.random_state)
        self.classes_ = np.array(sorted(name for group in groups for name in group))
        of_head, of_estimator = self._split_grid(head)
        with ProgressLine("rehearsal", enabled=self.verbose) as line:
            stages = []
            for params in of_estimator:
                line.update("training" if self.estimator is not None else "scores")
                folds = [self._make_fold(X, labels, semantics, group, params) for group in groups]
                stages.append(Trials(head, folds, line))
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

    def _finish(self, stage: Trials, params: dict[str, Any], X: Any, labels: Labels) -> None:
        """Keep what was chosen, and calibrate it."""
        chosen, outcomes = stage.chosen, stage.chosen_outcomes
        self.trials_ = stage.trials
        self.use_reference_, self.sources_ = chosen.reference, chosen.sources
        self.accuracy_ = chosen.accuracy
        temperature = fit_temperature(outcomes)
        self.head_ = stage.head_with({**chosen.params, "temperature": temperature})
        self.default_temperature_ = stage.fit_chosen(stage.folds[0]).temperature_
        self.calibration_error_ = tuple(
            float(np.mean([calibration_error(one, t) for one in outcomes]))
            for t in (self.default_temperature_, temperature)
        )
        self.gate_: Gate | None = None
        self.together_: GeneralizedAccuracy | None = None
        if all(len(fold.seen) >= LEAST_INPUTS for fold in stage.folds):
            learned = rehearse_gate(stage.folds, stage.fit_chosen, temperature)
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
            Of the new classes, by the same sources. Those of seen classes are left out.
        reference : Scores, optional
            Scores of seen inputs by the classifier that will be used. By default those of `fit`:
            all of them, with all columns. With an
            ``estimator``, these are training inputs; held-out inputs are better.
        classes : {"new", "all"}
            Whether only new classes are answered, or seen classes, too, by a `SeenAndNew`.
        none : bool
            With ``classes="all"``: whether "none of these" is an answer, too.
        """
        check_is_fitted(self, "head_")
        require_choice("classes", classes, ("new", "all"))
        table = self._reference if reference is None else reference
        new = only_new(align_to(rankings, table.items))
        semantics = select_sources(new, self.sources_)
        head: BaseHead = clone(self.head_)
        head.fit(semantics, **({"reference": table} if self.use_reference_ else {}))
        if classes == "new":
            return head
        if self.gate_ is None:
            raise RankshotError(
                "there is no gate between seen and new classes: the rehearsal had fewer than "
                f"{LEAST_INPUTS} inputs of other seen classes"
            )
        if none and self.gate_.none is None:
            raise RankshotError(
                "'none of these' was not rehearsed: each group of held-out classes has fewer than "
                f"{LEAST_HALVED}, so rehearse more classes, or use a smaller n_folds"
            )
        both = SeenAndNew(head, gate=self.gate_, none=none, seen_temperature=self.seen_temperature_)
        return both.fit(table)

    def predict_accuracy(self, rankings: Semantics, reference: Scores | None = None) -> Interval:
        """Predict the mean accuracy of new classes, with a 95 % interval for these classes.

        It depends on how well the rehearsed classes were recognised, on the number of new classes,
        and on how similar their rankings are.

        Parameters
        ----------
        rankings, reference
            As for `fit_head`.
        """
        head = self.fit_head(rankings, reference)
        table = self._reference if reference is None else reference
        return predict_mean_accuracy(self._strengths, correlate_classes(head, table))
