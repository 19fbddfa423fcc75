"""`ZeroShotClassifier`: a trained classifier and rankings of new classes, in one estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.validation import as_names, require_choice, require_number
from rankshot.zeroshot.decide import (
    REJECTED,
    Candidates,
    Top,
    label_or_reject,
    normalize_log_proba,
    take_top,
)
from rankshot.zeroshot.estimator_scores import scores_of
from rankshot.zeroshot.explanation import Explanation, explain_decisions
from rankshot.zeroshot.heads.base import (
    Orders,
    Semantics,
    align_to,
    only_new,
    require_semantics,
)
from rankshot.zeroshot.heads.batch_refinement import BatchRefinement
from rankshot.zeroshot.heads.seen_and_new import Gate
from rankshot.zeroshot.heads.semantic_head import SemanticHead
from rankshot.zeroshot.heads.weighted_mean import WeightedMean
from rankshot.zeroshot.plan import Plan
from rankshot.zeroshot.remarks import describe_indistinguishable
from rankshot.zeroshot.scores import Scores

Floats = NDArray[np.floating]
Opinion = Callable[[object], Any]
"""Returns another model's scores for inputs: `Scores` or a data frame of the new classes."""


class ZeroShotClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Predict new classes from the scores of a classifier that was not trained on them.

    Parameters
    ----------
    estimator : classifier
        Trained by `fit`. Wrap a classifier that is already trained in scikit-learn's
        `FrozenEstimator`. Its scores are read by `scores_of`.
    head : head, optional
        Turns scores into a decision over the classes; by default a `WeightedMean`. A copy is
        fitted.
    rankings : Rankings, dict or Similarity
        The rankings that the head is fitted to: for each new class, rankings of (or similarities
        to) the classes of the estimator. A dict has one list per new class, most similar first.
        Rankings that list only some of these classes, as read from a file, are treated as top-K
        rankings of all of them.
    classes : {"new", "all"}
        The classes that `predict` may return: the new classes only, or the new and the seen
        classes (generalised zero-shot classification). In the second case, the head is wrapped in
        a `SeenAndNew`: seen classes compete by the scores of the estimator, new classes by the
        head, and a gate decides between the two. Rankings of seen classes are not used.
    gate, seen_temperature, none
        Parameters of this `SeenAndNew`. With ``none=True`` and new classes only, inputs of seen
        classes and of unknown classes are labelled "none of these".
    calibration : float
        Subtracted from the log-probability of every seen class before normalising, to shift the
        balance between seen and new classes. Used with ``classes="all"`` only.
    batch : bool
        Whether all inputs of a call to `predict` are classified jointly, by a `BatchRefinement`.
        Only available with ``classes="new"``.
    reject_below : float, optional
        `predict` returns "rejected" where no class has at least this probability.

    Attributes
    ----------
    estimator_ : classifier
        The fitted estimator.
    head_ : head
        The fitted head; with ``classes="all"`` a `SeenAndNew`.
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
        head: SemanticHead | None = None,
        rankings: Semantics | Orders | None = None,
        classes: Literal["new", "all"] = "new",
        gate: Gate | None = None,
        seen_temperature: float | None = None,
        none: bool = False,
        calibration: float = 0.0,
        batch: bool = False,
        reject_below: float | None = None,
    ) -> None:
        self.estimator = estimator
        self.head = head
        self.rankings = rankings
        self.classes = classes
        self.gate = gate
        self.seen_temperature = seen_temperature
        self.none = none
        self.calibration = calibration
        self.batch = batch
        self.reject_below = reject_below

    def set_params(self, **params: object) -> ZeroShotClassifier:
        """Set ``params``; ``head__…`` sets parameters of the head, including the default head."""
        if self.head is None and any(name.startswith("head__") for name in params):
            self.head = WeightedMean()
        super().set_params(**params)
        return self

    def fit(
        self,
        X: object = None,
        y: object = None,
        *,
        examples: tuple[object, object] | None = None,
        evidence: tuple[object, Opinion] | None = None,
    ) -> ZeroShotClassifier:
        """Train the estimator, unless it is frozen, and fit the head.

        Parameters
        ----------
        X, y
            Inputs and their classes, to train the estimator. They are not needed for a frozen
            estimator. With ``classes="all"``, the scores of X are the reference of the gate, and
            of the head if it can use one. For a frozen estimator, X should therefore be held-out
            data. For an estimator that is trained here, X are training inputs, which were as
            good in experiments.
        examples : inputs and labels, optional
            Some inputs of new classes, and their classes, for a `WeightedMean`. Inputs are
            compared with them by the input of the last step of a pipeline, or by the inputs
            themselves if these are numbers, and otherwise by their scores.
        evidence : inputs and function, optional
            Unlabelled inputs like those to be classified, and a function from inputs to another
            model's scores for the new classes, as `Scores` or a data frame; for a `WeightedMean`.
            `predict` also calls this function, and so does `fit` for X with ``classes="all"``.
        """
        self._check_parameters()
        _check_more(examples, evidence)
        require_same_length(X, y)
        trained = clone(self.estimator).fit(X, y)
        items = as_names(trained.classes_, "the estimator's classes_")
        new = only_new(align_to(self.rankings, items))
        self._opinion = None if evidence is None else evidence[1]
        self._has_features = examples is not None
        more: dict[str, Any] = {}
        if evidence is not None:
            more["evidence"] = self._describe(trained, evidence[0])
        if examples is not None:
            more["examples"] = self._describe(trained, examples[0]), examples[1]
        self._examples = more.get("examples")
        plan = Plan(
            head=WeightedMean() if self.head is None else self.head,
            classes=self.classes,
            none=self.none,
            gate=self.gate,
            seen_temperature=self.seen_temperature,
        )
        if X is not None and plan.has_gate:
            more["reference"] = self._describe(trained, X)
        head = plan.fit(new, **more)
        # A single new class beside seen classes is not the only class.
        is_only = plan.has_gate and len(head.innermost.classes_) == 1
        remarks = [] if is_only else describe_indistinguishable(head.innermost)
        if self.reject_below is not None and REJECTED in head.classes_:
            raise RankshotError(f"reject_below: {REJECTED!r} is one of the classes to predict")
        self.head_ = head
        self.estimator_ = trained
        self.classes_ = self.head_.classes_
        self.seen_ = np.isin(self.classes_, items)
        for remark in remarks:
            warnings.warn(remark, stacklevel=2)
        return self

    def _check_parameters(self) -> None:
        """Raise for wrong parameters before anything is trained."""
        is_estimator = isinstance(self.estimator, BaseEstimator) and is_classifier(self.estimator)
        if not is_estimator or not isinstance(self.head, SemanticHead | None):
            raise RankshotError(
                "a ZeroShotClassifier needs a classifier and a head such as WeightedMean(), not "
                f"{short_repr(self.estimator)} and {short_repr(self.head)}"
            )
        if self.head is not None and self.head.reference_ is not None:
            raise RankshotError(
                "the head was fitted with a reference, which is lost when the head is fitted "
                "again here: use the head directly, head.predict(scores_of(estimator, X))"
            )
        if not isinstance(self.rankings, Mapping):
            require_semantics(self.rankings)
        require_choice("classes", self.classes, ("new", "all"))
        if self.batch and (self.classes == "all" or self.none):
            raise RankshotError("batch=True needs classes='new' and none=False")
        require_number("calibration", self.calibration, below=np.inf)
        if self.reject_below is not None:
            require_number("reject_below", self.reject_below, least=0, most=1)

    def predict_log_proba(self, X: object, candidates: Candidates = None) -> Floats:
        """Return log P(class|x), in the order of ``classes_``.

        Parameters
        ----------
        X
            Inputs for the estimator.
        candidates : list of lists of names, or bool array of shape (n, classes), optional
            The classes that each input may be assigned; by default all.
        """
        check_is_fitted(self)
        return self._log_proba(self._describe(self.estimator_, X), candidates)

    def _describe(self, estimator: BaseEstimator, X: object) -> Scores:
        """Return the scores of inputs, with features if examples have any, and with evidence."""
        scores = scores_of(estimator, X, features=self._has_features)
        return scores if self._opinion is None else replace(scores, evidence=self._opinion(X))

    def _log_proba(self, scores: Scores, candidates: Candidates) -> Floats:
        head = self.head_
        if self.batch:
            head = BatchRefinement(head).fit(scores, self._examples)
        log_proba: Floats = head.predict_log_proba(scores, candidates)
        if self.calibration and self.seen_.any():
            shifted = log_proba - self.calibration * self.seen_
            log_proba = normalize_log_proba(shifted.T.astype(np.float64), log_proba.dtype).T
        return log_proba

    def predict_proba(self, X: object, candidates: Candidates = None) -> Floats:
        """Return P(class|x), in the order of ``classes_``."""
        return np.asarray(np.exp(self.predict_log_proba(X, candidates)))

    def predict(self, X: object, candidates: Candidates = None) -> NDArray[np.str_]:
        """Return the most probable class of each input, or "rejected"."""
        log_proba = self.predict_log_proba(X, candidates)
        return label_or_reject(log_proba, self.classes_, self.reject_below)

    def top(self, X: object, k: int, candidates: Candidates = None) -> Top:
        """Return the ``k`` most probable classes of each input, and their probabilities."""
        return take_top(self.predict_log_proba(X, candidates), self.classes_, k)

    def score(self, X: object, y: object, sample_weight: Any = None) -> float:
        """Return the share of inputs ``X`` whose class is ``y``, weighted by ``sample_weight``."""
        right = self.predict(X) == np.asarray(y).astype(str)
        return float(np.average(right, weights=sample_weight))

    def explain(
        self,
        X: object,
        *,
        target: str | None = None,
        against: str | None = None,
        candidates: Candidates = None,
    ) -> list[Explanation]:
        """Explain the prediction for each input by seen classes and by sources.

        Parameters
        ----------
        X
            A few inputs.
        target, against, candidates
            As for `rankshot.explain`. The calibration constant is not part of any contribution.
        """
        check_is_fitted(self)
        scores = self._describe(self.estimator_, X)
        log_proba = self._log_proba(scores, candidates)
        return explain_decisions(self.head_, scores, log_proba, target, against)

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


def _check_more(examples: object, evidence: object) -> None:
    """Raise unless examples and evidence are pairs."""
    for name, given, what in (
        ("examples", examples, "labels"),
        ("evidence", evidence, "a function of inputs"),
    ):
        second = given[1] if isinstance(given, tuple) and len(given) == 2 else None
        if given is not None and (second is None or (name == "evidence" and not callable(second))):
            raise RankshotError(
                f"{name} must be a pair, inputs and {what}, not {short_repr(given)}"
            )


def require_same_length(X: object, y: object) -> None:
    """Raise unless X and y have the same length, or one of them is missing."""
    if X is not None and y is not None and _num_samples(X) != _num_samples(y):
        raise RankshotError(f"X has {_num_samples(X)} inputs, but y has {_num_samples(y)} labels")
