"""`ZeroShotClassifier`: a trained classifier and rankings of new classes, in one estimator."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from sklearn.utils import Tags, _safe_indexing, get_tags
from sklearn.utils.validation import check_is_fitted

from rankshot.core.errors import NO_VALUE, InputError
from rankshot.core.validation import as_names
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.class_rankings import Orders, as_rankings
from rankshot.zeroshot.decide import most_probable
from rankshot.zeroshot.estimator_scores import scores_of
from rankshot.zeroshot.explanation import Explanation, explain
from rankshot.zeroshot.forecast import Forecast
from rankshot.zeroshot.knowledge import Knowledge
from rankshot.zeroshot.linear_head import Predictor
from rankshot.zeroshot.rehearsal import Grid, choose_groups, hold_out, rehearse, require_rehearsed
from rankshot.zeroshot.remarks import describe_similar
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.settings import Settings
from rankshot.zeroshot.weighted_mean import LEAST_INPUTS

Floats = NDArray[np.floating]
REFERENCE_SHARE = 0.25
"""The share of the inputs that an estimator is not trained on, so that they are a reference."""


class ZeroShotClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Predict new classes from the scores of a classifier that was not trained on them.

    Parameters
    ----------
    estimator : classifier
        Trained by `fit` if it gets labels. One that is trained already is used as it is if `fit`
        gets no labels, or if it is wrapped in scikit-learn's `FrozenEstimator`. Its scores are read
        by `scores_of`.
    rankings : Rankings or dict
        For each new class, rankings of the classes of the estimator. A dict has one list per new
        class, most similar first, or several. Rankings that list only some of these classes, as
        read from a file, are treated as top-K rankings of all of them.
    classes : {"new", "all"}
        The classes that `predict` may return: the new classes only, or the new and the seen
        classes (generalised zero-shot classification). In the second case, a `SeenAndNew` decides
        between the two. Rankings of seen classes are not used.
    seen_loss : float, optional
        With ``classes="all"``: how much accuracy on seen classes may be lost, as a share of all
        their inputs. By default .02 with a reference. It is measured on inputs that the estimator
        was not trained on. If `fit` trains the estimator, another one is trained on three quarters
        of the inputs for this, and the last quarter is the reference.
    none : bool
        Whether "none of these" may be predicted. With new classes only, inputs of seen classes and
        of unknown classes then get this label.
    batch : bool
        Whether all inputs of a call to `predict` are classified jointly, by a `BatchRefinement`.
        Only available for new classes.
    settings : Settings, optional
        More settings, such as those that a rehearsal chose.

    Attributes
    ----------
    estimator_ : classifier
        The fitted estimator.
    head_ : LinearHead or JointHead
        The fitted head.
    classes_ : ndarray of str
        The classes that may be predicted, sorted. They are always text, even where the labels
        in `fit` are numbers.
    seen_ : ndarray of bool
        Which of ``classes_`` are seen classes.

    Examples
    --------
    >>> import numpy as np, rankshot as rs
    >>> from sklearn.linear_model import LogisticRegression
    >>> places = {"leopard": (0, 0), "tiger": (1, 0), "bus": (9, 9), "tram": (9, 8)}
    >>> X = np.repeat(list(places.values()), 10, axis=0) + np.linspace(0, .5, 40)[:, None]
    >>> y = np.repeat(list(places), 10)
    >>> rankings = {"cat": ["tiger", "leopard"], "truck": ["bus", "tram"]}
    >>> zs = rs.ZeroShotClassifier(LogisticRegression(), rankings=rankings)
    >>> zs.fit(X, y).predict([[1, 1], [8, 9]])
    array(['cat', 'truck'], dtype='<U5')
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        *,
        rankings: Rankings | Orders | None = None,
        classes: Literal["new", "all"] = "new",
        seen_loss: float | None = None,
        none: bool = False,
        batch: bool = False,
        settings: Settings | None = None,
    ) -> None:
        self.estimator = estimator
        self.rankings = rankings
        self.classes = classes
        self.seen_loss = seen_loss
        self.none = none
        self.batch = batch
        self.settings = settings

    def fit(
        self,
        X: object = None,
        y: object = None,
        *,
        examples: tuple[object, ArrayLike] | None = None,
    ) -> ZeroShotClassifier:
        """Train the estimator, unless it is trained already, and fit the head.

        Parameters
        ----------
        X, y
            Inputs and their classes, to train the estimator. With ``classes="all"`` or ``none``,
            a quarter of them is also the reference. For an estimator that is trained already, X are
            the inputs of the reference, and it should not be trained on them; X can be left out.
        examples : inputs and labels, optional
            Some inputs of new classes, and their classes. Inputs are compared with them by the
            input of the last step of a pipeline, or by the inputs themselves if these are numbers,
            and otherwise by their scores.
        """
        settings = self._read_settings()
        if not (examples is None or (isinstance(examples, tuple) and len(examples) == 2)):
            raise InputError("examples", examples, "must be a pair: inputs, and their classes")
        is_trained = isinstance(self.estimator, FrozenEstimator) or (
            y is None and hasattr(self.estimator, "classes_")
        )
        if y is None and not is_trained:
            raise InputError(
                "y", NO_VALUE, "should be a 1d array: the classes of X, to train the estimator"
            )
        trained = self.estimator if is_trained else clone(self.estimator).fit(X, y)
        items = as_names(trained.classes_, "the estimator's classes_")
        self._has_features = examples is not None
        reference: Any = None
        if is_trained and X is not None:
            labels = None if y is None else np.asarray(y).astype(str)
            reference = self._score(trained, X), labels
        elif settings.has_gate:
            reference = self._hold_out(X, y, features=self._has_features)
        few = examples and (self._score(trained, examples[0]), examples[1])
        self._known = Knowledge(as_rankings(self.rankings, items), reference, few)
        self._settings = settings
        self._alone = self._known.fit_alone(settings)
        self.head_ = self._known.complete(self._alone, settings)
        self.estimator_ = trained
        self.classes_ = self.head_.classes_
        self.seen_ = np.isin(self.classes_, items)
        # A single new class beside seen classes is not the only class.
        if not (settings.has_gate and len(self._alone.classes_) == 1):
            for remark in describe_similar(self._alone.head_, least=1.0):
                warnings.warn(remark, stacklevel=2)
        return self

    def _hold_out(
        self, X: object, y: object, *, features: bool = False
    ) -> tuple[Scores, NDArray[np.str_]] | None:
        """Scores of a quarter of the inputs by an estimator that was not trained on them.

        None if there are too few inputs for this.
        """
        labels = np.asarray(y)
        _, counts = np.unique(labels, return_counts=True)
        if counts.min() < 2 or len(labels) < 4 * max(LEAST_INPUTS, len(counts)):
            return None
        train, rest = train_test_split(
            np.arange(len(labels)), test_size=REFERENCE_SHARE, random_state=0, stratify=labels
        )
        other = clone(self.estimator).fit(_safe_indexing(X, train), labels[train])
        scores = scores_of(other, _safe_indexing(X, rest), features=features)
        return scores, labels[rest].astype(str)

    def rehearse(
        self, X: object, y: object, *, grid: Grid | None = None, n_folds: int | None = None
    ) -> Forecast:
        """Hold out seen classes to choose settings, and to forecast the accuracy on new classes.

        The ``rankings`` must also rank seen classes, by the sources that rank the new ones. The
        estimator is trained again without the held-out classes. An estimator inside a
        `FrozenEstimator` is not: the columns of these classes are removed from its scores. The
        ``settings`` of the forecast are a parameter of this class.

        Parameters
        ----------
        X, y
            Inputs of seen classes, and their classes: training data, or for a `FrozenEstimator`
            inputs that it was not trained on.
        grid, n_folds
            As for `Knowledge.rehearse`.
        """
        settings, labels = self._read_settings(), np.asarray(y).astype(str)
        rankings: Any = self.rankings
        if isinstance(self.estimator, FrozenEstimator):
            known = Knowledge(rankings, (scores_of(self.estimator, X), labels))
            return known.rehearse(settings, grid=grid, n_folds=n_folds)
        reference = self._hold_out(X, y)
        if reference is None:
            rule = "must be at least two inputs of each class, and four on average"
            raise InputError("X", len(labels), rule)
        known, folds = Knowledge(rankings, reference), []
        about = require_rehearsed(known.rankings, labels)
        for group in choose_groups(about, n_folds):
            share = np.random.default_rng(0).random(len(labels))
            kept = np.isin(labels, group) | (share < REFERENCE_SHARE)
            inputs = _safe_indexing(X, np.flatnonzero(~kept))
            trained = clone(self.estimator).fit(inputs, np.asarray(y)[~kept])
            scores = scores_of(trained, _safe_indexing(X, np.flatnonzero(kept)))
            folds.append(hold_out(scores, labels[kept], about, group))
        return rehearse(known.rankings, known.reference, settings, None, grid, n_folds, folds)

    def _read_settings(self) -> Settings:
        """The settings, after a check of all parameters, before anything is trained."""
        if not (isinstance(self.estimator, BaseEstimator) and is_classifier(self.estimator)):
            raise InputError("estimator", self.estimator, "must be a classifier")
        if self.rankings is None:
            raise InputError("rankings", NO_VALUE, "are missing")
        # Inputs are classified jointly when they are there, not by what is known before.
        own: dict[str, Any] = {
            name: getattr(self, name) for name in ("classes", "none", "batch", "seen_loss")
        }
        settings = Settings() if self.settings is None else self.settings
        replace(settings, **own)
        return replace(settings, **own | {"batch": False})

    def _score(self, estimator: BaseEstimator, X: object) -> Scores:
        """The scores of inputs, with features if examples have any."""
        return scores_of(estimator, X, features=self._has_features)

    def _head_for(self, scores: Scores) -> Predictor:
        """The head, refined by the inputs if these are classified jointly."""
        if not self.batch:
            return self.head_
        known = replace(self._known, batch=scores)
        return known.complete(self._alone, replace(self._settings, batch=True))

    def predict_log_proba(self, X: object) -> Floats:
        """Log P(class|x), in the order of ``classes_``.

        Parameters
        ----------
        X
            Inputs for the estimator.
        """
        check_is_fitted(self)
        scores = self._score(self.estimator_, X)
        return np.asarray(self._head_for(scores).log_proba(scores))

    def predict_proba(self, X: object) -> Floats:
        """P(class|x), in the order of ``classes_``."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: object) -> NDArray[np.str_]:
        """The most probable class of each input."""
        best = most_probable(self.predict_log_proba(X))
        return self.classes_[best]

    def score(self, X: object, y: object, sample_weight: Any = None) -> float:
        """The share of inputs ``X`` whose class is ``y``, weighted by ``sample_weight``."""
        right = self.predict(X) == np.asarray(y).astype(str)
        return float(np.average(right, weights=sample_weight))

    def explain(
        self, X: object, *, target: str | None = None, against: str | None = None
    ) -> list[Explanation]:
        """Explain the prediction for each input, as `rankshot.explain` does.

        Parameters
        ----------
        X
            A few inputs.
        target, against
            As for `rankshot.explain`.
        """
        check_is_fitted(self)
        scores = self._score(self.estimator_, X)
        return explain(self._head_for(scores), scores, target=target, against=against)

    @property
    def n_features_in_(self) -> int:
        """The number of features that the estimator was trained on."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """The names of these features, where the estimator was trained on a data frame."""
        return np.asarray(self.estimator_.feature_names_in_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags
