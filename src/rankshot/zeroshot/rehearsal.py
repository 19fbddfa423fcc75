"""`Rehearsal`: a rehearsal in scikit-learn's manner, which may train the classifier again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from rankshot.core.errors import InputError
from rankshot.ranking.matrices import restrict_items
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.class_rankings import as_rankings
from rankshot.zeroshot.estimator_scores import scores_of
from rankshot.zeroshot.forecast import (
    Fold,
    Grid,
    choose_groups,
    hold_out,
    rehearse,
    require_rehearsed,
)
from rankshot.zeroshot.knowledge import Knowledge
from rankshot.zeroshot.linear_head import LinearHead
from rankshot.zeroshot.metrics import Interval
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.seen_and_new import SeenAndNew
from rankshot.zeroshot.settings import Settings
from rankshot.zeroshot.weighted_mean import Examples

REFERENCE_SHARE = 0.25
"""The share of the inputs that a classifier is not trained on, if it is trained again."""


class Rehearsal(BaseEstimator):
    """Hold out some seen classes to estimate how well new classes will be recognised.

    The scores of the held-out classes are removed, and their inputs have to be recognised by their
    rankings, as if they were new classes. This requires labelled scores of inputs of seen
    classes, and rankings of seen classes by the same sources that rank the new classes (command:
    ``rankshot rank --rehearse labels.csv``). It requires no data of the new classes. A rehearsal

    - chooses the weights of the sources, ``k``, ``decay`` and whether to use a reference. A change
      is made only if the accuracy increases by more than its standard error over the classes
      (twice the standard error for source weights, because more of them are tried);
    - finds the temperature that calibrates the probabilities;
    - predicts the accuracy on the new classes (`predict_accuracy`).

    `Knowledge.rehearse` does the same with what is known of some new classes.

    Parameters
    ----------
    settings : Settings, optional
        Where the choice begins.
    grid : dict of str to list, optional
        The values of settings to try, in all combinations. By default some values of ``k`` and
        ``decay``.
    estimator : classifier, optional
        If given, `fit` takes inputs instead of scores, and the classifier is retrained without the
        held-out classes. This is more realistic, because a trained classifier has already learned
        from inputs of the held-out classes.
    n_folds : int, optional
        If the rankings list rehearsed classes, these are divided at random into this number of
        groups, which are held out in turn. Otherwise, all are held out together. A group has at
        least two classes: the default is 5, and half the number of classes if there are fewer than
        10.

    Attributes
    ----------
    forecast_ : Forecast
        Everything that was found: the trials, the accuracy, and the calibration error.
    settings_ : Settings
        What was chosen.
    accuracy_ : Interval
        The mean accuracy of the rehearsed classes with the chosen settings, and its 95% interval
        from resamples of classes.
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
    .950 [.903, .983]
    >>> new = rs.Similarity(-abs(np.array([[2.5], [7.5]]) - places), ["new1", "new2"], names)
    >>> head = rehearsal.fit_head(new.to_rankings())
    >>> head.predict(-abs(2.5 - places)[None])
    array(['new1'], dtype='<U4')
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        grid: Grid | None = None,
        estimator: BaseEstimator | None = None,
        n_folds: int | None = None,
    ) -> None:
        self.settings = settings
        self.grid = grid
        self.estimator = estimator
        self.n_folds = n_folds

    def fit(self, X: object, y: object, rankings: Rankings) -> Rehearsal:
        """Hold out classes, choose the settings, and measure the accuracy.

        Parameters
        ----------
        X : Scores, or inputs of the ``estimator``
            Scores of inputs of seen classes that the classifier was not trained on: of the
            rehearsed classes, and of others for the reference. The scores need no columns for the
            rehearsed classes. With an ``estimator``: its
            training inputs. It is trained on a part of them, and never evaluated on inputs that it
            was trained on.
        y : array-like of names
            Their classes.
        rankings : Rankings
            Rankings of *seen* classes, by the sources that rank the new classes.
        """
        settings = Settings() if self.settings is None else self.settings
        labels = np.asarray(y).astype(str)
        folds, scores = None, X
        if self.estimator is not None:
            rankings = as_rankings(rankings, sorted({*rankings.items, *labels.tolist()}))
            folds = self._train_folds(X, labels, rankings)
            self.estimator_ = clone(self.estimator).fit(X, labels)
            scores = scores_of(self.estimator_, X)
        elif not isinstance(scores, Scores):
            raise InputError("X", X, "must be Scores; inputs need estimator=")
        known = Knowledge(_drop_columnless(rankings, labels, scores.items), (scores, labels))
        self.forecast_ = rehearse(known, settings, self.grid, self.n_folds, folds)
        self.settings_, self.accuracy_ = self.forecast_.settings, self.forecast_.accuracy
        return self

    def _train_folds(self, X: object, labels: NDArray[np.str_], rankings: Rankings) -> list[Fold]:
        """Train the classifier again without each group of classes, and hold the group out."""
        folds, rehearsed = [], require_rehearsed(rankings, labels)
        for group in choose_groups(rehearsed, self.n_folds):
            rng = np.random.default_rng(0)
            kept = np.isin(labels, group) | (rng.random(len(labels)) < REFERENCE_SHARE)
            train = np.flatnonzero(~kept)
            trained = clone(self.estimator).fit(_safe_indexing(X, train), labels[train])
            scores = scores_of(trained, _safe_indexing(X, np.flatnonzero(kept)))
            folds.append(hold_out(scores, labels[kept], rehearsed, group))
        return folds

    def fit_head(
        self,
        rankings: Rankings,
        *,
        reference: Scores | None = None,
        examples: Examples | None = None,
        batch: Scores | None = None,
    ) -> LinearHead | SeenAndNew:
        """A head with the chosen settings, fitted to the new classes.

        Parameters
        ----------
        rankings : Rankings
            Rankings of the new classes by the same sources. Rankings of seen classes are ignored.
        reference : Scores, optional
            Scores of inputs of seen classes by the classifier that will be used. By default the
            scores passed to `fit`. With an ``estimator``, these are scores of training inputs, and
            scores of held-out inputs are better.
        examples, batch : optional
            As for `Knowledge`.
        """
        check_is_fitted(self, "forecast_")
        table: Any = self.forecast_.known.reference if reference is None else reference
        return Knowledge(rankings, table, examples, batch).fit(
            replace(self.settings_, batch="auto")
        )

    def predict_accuracy(
        self, rankings: Rankings, reference: Scores | None = None
    ) -> Interval | None:
        """The mean accuracy on new classes: see `Forecast.predict_accuracy`."""
        check_is_fitted(self, "forecast_")
        return self.forecast_.predict_accuracy(rankings, reference)


def _drop_columnless(
    rankings: object, labels: NDArray[np.str_], items: tuple[str, ...]
) -> Rankings:
    """The rankings without rehearsed classes that the scores have no column for."""
    lists = as_rankings(rankings)
    gone = {*labels.tolist()} - {*items}
    return restrict_items(lists, [name for name in lists.items if name not in gone])
