"""`SeenAndNew`: a head over seen and new classes together, within a budget."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankshot.core.arrays import row_blocks
from rankshot.core.errors import NO_VALUE, InputError
from rankshot.core.validation import require_number
from rankshot.zeroshot.class_means import Examples, Inputs, LinearMap, Reference
from rankshot.zeroshot.decide import first_guesses
from rankshot.zeroshot.evidence import fit_temperature
from rankshot.zeroshot.examples import as_examples
from rankshot.zeroshot.files.score_tables import as_scores
from rankshot.zeroshot.head_files import HeadFile
from rankshot.zeroshot.linear_head import LinearHead, Predictor
from rankshot.zeroshot.scores import Floats, Scores
from rankshot.zeroshot.together import (
    Budget,
    Decision,
    DecisionData,
    Together,
    expect_together,
    fit_together,
)
from rankshot.zeroshot.weighted_mean import (
    WeightedMean,
    as_reference,
    describe_inputs,
    find_usual_features,
)

Doubles = NDArray[np.float64]
NONE_OF_THESE = "none of these"
"""The name of the class of inputs that are of no seen and of no new class."""
SEEN_LOSS = 0.02
"""The default budget, with a reference."""
SEEN_TEMPERATURES = {"multiclass": 0.45, "one-vs-rest": 0.75, "one-vs-one": 0.4}
"""The default temperatures of the seen classes. The best ones on held-out inputs are .38 to .60 for
logistic regression, .74 to 1.01 for least squares, and .36 to .38 for one-vs-one machines."""
TEMPERATURE_BOUNDS = (0.02, 50.0)


class SeenAndNew(Predictor, BaseEstimator):
    r"""A head over seen and new classes together (generalised zero-shot classification).

    The classifier's own prediction is kept unless the log-odds of a new class exceed a threshold,
    which a reference sets so that a budget is kept: at most ``seen_loss`` of the accuracy on seen
    classes is lost, in expectation. The log-odds compare each new class with the classifier's first
    guess, by rankings, by the means of the classes, and by examples, from the first one on (see
    `rankshot.zeroshot.together`).

    The threshold is found by folds of the reference, so that no input is judged by numbers that
    know it (cross-conformal prediction). With labels, the accuracy on seen classes falls by at most
    the budget. Without labels, at most this share of the inputs of seen classes is predicted as
    new. The reference must be like the inputs of seen classes to come, and must not be training
    data. It needs at least 1 / budget - 1 inputs; with fewer, no new class can be predicted. Seen
    classes that it lacks may lose more.

    Without a reference, the threshold is a default without any guarantee. On held-out seen classes
    it loses .05 in the mean. A batch of inputs of both groups can serve as the reference: new
    classes are then found better, also without a guarantee. With an explicit ``seen_loss``, at most
    this share of the batch is predicted as new.

    A batch beside a reference shows which scores inputs of the new classes have. An input is new
    with a probability that its log-odds are larger than those of the reference; with this weight it
    is an example (see `rankshot.zeroshot.together.Batch`). The budget is kept.

    Parameters
    ----------
    head : WeightedMean
        A fitted estimator of new classes.
    seen_loss : float, optional
        The budget: .02 stands for two points of accuracy. By default .02 with a reference.
    none : bool
        Whether "none of these" may be predicted, for inputs that belong to no seen and no new
        class. It gets half of the budget.
    seen : bool
        Whether seen classes may be predicted. If not, the choices are the new classes and "none of
        these", which takes the place of all seen classes.

    Attributes
    ----------
    classes_ : ndarray of str
        The seen and the new classes, and "none of these" if requested, sorted.
    seen_ : ndarray of bool
        Which of ``classes_`` are seen classes.
    budget_ : Budget or None
        The threshold, the loss that the folds of the reference show, and the number of inputs that
        this rests on; None without a reference.
    missing_ : list of str
        Seen classes that the reference lacks.
    reference_is_batch_ : bool
        Whether a batch serves as the reference.
    seen_temperature_ : float or None
        The temperature of the seen classes, fitted to the labels passed to `fit`. Without labels it
        is None, which stands for .45 for multiclass, .75 for one-vs-rest and .4 for one-vs-one
        scores.

    Examples
    --------
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard", "tiger", "fox"], ["bus", "tram"]],
    ...     items=["bus", "fox", "leopard", "tiger", "tram"], targets=["cat", "truck"])
    >>> head = rs.zeroshot.SeenAndNew(rs.WeightedMean().fit(rankings)).fit()
    >>> head.classes_.tolist()
    ['bus', 'cat', 'fox', 'leopard', 'tiger', 'tram', 'truck']
    >>> head.predict([[-1.0, -1.0, 5.0, -1.0, -1.0], [-1.0, 2.0, 3.0, 3.0, -1.0]])
    array(['leopard', 'cat'], dtype='<U7')
    """

    def __init__(
        self,
        head: WeightedMean,
        *,
        seen_loss: float | None = None,
        none: bool = False,
        seen: bool = True,
    ) -> None:
        self.head = head
        self.seen_loss = seen_loss
        self.none = none
        self.seen = seen

    def fit(
        self,
        reference: Scores | ArrayLike | None = None,
        labels: ArrayLike | None = None,
        examples: tuple[Scores | ArrayLike, ArrayLike] | None = None,
        batch: Scores | ArrayLike | None = None,
    ) -> Self:
        """Find the log-odds of new classes and their threshold.

        Parameters
        ----------
        reference : Scores or array-like, optional
            Scores of inputs of seen classes that the classifier was not trained on.
        labels : array-like of str, optional
            The classes of these inputs.
        examples : scores and labels, optional
            Inputs of new classes, and the class of each. If these are `Scores` with ``features``,
            so must be the reference and all scores to be classified.
        batch : Scores or array-like, optional
            Inputs to be classified, of seen and of new classes. Without a reference, they serve as
            the reference.
        """
        self.reference_is_batch_ = reference is None and batch is not None
        if self.reference_is_batch_:
            reference, batch = batch, None
        if not isinstance(self.head, WeightedMean):
            raise InputError("head", self.head, "must be a fitted WeightedMean")
        self._require(reference, labels)
        self.head_ = self.head.inner
        items = self.head_.seen
        table = None if reference is None else as_reference(reference, items)
        few = None if examples is None else as_examples(examples, items, self.head_.classes)
        self.seen_temperature_: float | None = None
        self._usual_features = np.zeros(0)
        if few is not None:
            self._usual_features = find_usual_features(table, *few)
        known = DecisionData(
            self.head.listed_,
            None if table is None else Reference(*self._describe(table)),
            None if few is None else Examples(self._describe(few[0])[0], self._codes(few[1])),
        )
        self._find_names()
        self.missing_: list[str] = []
        budget = SEEN_LOSS if self.seen_loss is None else self.seen_loss
        none = self.none and self.seen
        has_budget = self.seen_loss is not None or not self.reference_is_batch_
        if table is None or known.reference is None or not has_budget:
            self.decision_ = expect_together(known, budget, none=none)
        else:
            first = known.reference.predicted
            right, there = np.ones(len(first), bool), first
            if labels is not None:
                there = self._code_labels(labels, table)
                right = first == there
                equal = np.full(len(there), 1 / len(there))
                data = [(known.reference.inputs.f, there, equal)]
                self.seen_temperature_ = fit_temperature(data, TEMPERATURE_BOUNDS)
            lacking = np.setdiff1d(np.arange(len(items)), there)
            self.missing_ = [items[i] for i in lacking]
            if batch is not None:
                known = known.use_batch(*self._describe(as_scores(batch, items)))
            self.decision_ = fit_together(known, right, budget, none=none)
        # Where only some classes have examples, the head would prefer these.
        learned = self.head.has_examples and len(self.decision_.parts) == 1
        self._head_chooses = learned or table is None or bool(self.head_.evidence)
        return self

    def _require(self, reference: object, labels: object) -> None:
        """Raise for parameters with wrong values, or that need a reference."""
        if self.seen_loss is not None:
            require_number("seen_loss", self.seen_loss, above=0, below=1)
        if reference is not None:
            return
        if labels is not None:
            raise InputError("labels", labels, "need a reference")
        if self.seen_loss is not None:
            raise InputError("seen_loss", self.seen_loss, "needs a reference")
        if self.none and self.seen:
            rule = "is needed for 'none of these' beside seen classes"
            raise InputError("reference", NO_VALUE, rule)

    @property
    def budget_(self) -> Budget | None:
        """What the threshold costs, by the folds of the reference."""
        return self.decision_.budget

    def _codes(self, labels: NDArray[np.str_]) -> NDArray[np.intp]:
        for name in np.setdiff1d(labels, self.head_.classes_).tolist():
            raise InputError("examples", name, "is not a class of the head")
        return np.searchsorted(self.head_.classes_, labels)

    def _code_labels(self, labels: ArrayLike, table: Scores) -> NDArray[np.intp]:
        truth = np.asarray(labels).astype(str)
        own = truth[:, None] == np.array(table.items)
        if len(truth) != len(table) or not own.any(axis=1).all():
            raise InputError("labels", labels, f"must be a seen class for each of {len(table)}")
        return np.asarray(own.argmax(axis=1))

    def _describe(self, table: Scores) -> tuple[Inputs, NDArray[np.intp]]:
        """The columns of inputs, and the first guess for each."""
        first = first_guesses(table.values, table.items)
        return describe_inputs(table, self._usual_features), first

    def _find_names(self) -> None:
        """Set the classes, and where each column of the groups belongs."""
        none = [NONE_OF_THESE] if self.none or not self.seen else []
        # Without seen classes, "none of these" is in the place of their group.
        items = self.head_.seen
        first, last = (list(items), none) if self.seen else (none, [])
        names = np.array([*first, *self.head_.classes, *last])
        distinct, times = np.unique(names, return_counts=True)
        if (times > 1).any():
            raise InputError(
                "rankings",
                str(distinct[times > 1][0]),
                "would be both seen and new",
                hint="fit the head to rankings of new classes only",
            )
        self._columns = np.argsort(names, kind="stable")
        self.classes_ = names[self._columns]
        self.seen_ = (self._columns < len(items)) & self.seen

    def decision_terms(self, scores: Scores | ArrayLike) -> Doubles:
        """The log-odds of the best new class against the first guess, and less the threshold."""
        check_is_fitted(self, "decision_")
        inputs, first = self._describe(as_scores(scores, self.head_.seen))
        excess = self.decision_.excess(inputs, first)
        best = excess.argmax(axis=1)
        least = self.decision_.thresholds[best]
        return np.column_stack([excess.max(axis=1) + least, -least])

    @property
    def inner(self) -> LinearHead:
        """The fitted head over new classes, as a value."""
        check_is_fitted(self, "head_")
        return self.head_

    def log_proba(self, scores: Scores | ArrayLike) -> Floats:
        """Log-probabilities: one row per input, one column per class as in ``classes_``.

        Parameters
        ----------
        scores : Scores, data frame or array-like
            As for `LinearHead.log_proba`, as NumPy arrays.
        """
        check_is_fitted(self, "decision_")
        table = as_scores(scores, self.head_.seen)
        result = np.empty((len(table), len(self.classes_)), table.values.dtype)
        for block in row_blocks(len(table), 4 * len(self.head_.seen)):
            result[block] = self._log_proba(table[block])
        return result

    def _log_proba(self, table: Scores) -> Doubles:
        inputs, first = self._describe(table)
        temperature = self.seen_temperature_ or SEEN_TEMPERATURES[table.kind]
        # In all groups, the logit of the first guess is 0: a new class is predicted above it.
        seen = (inputs.f - inputs.f.max(axis=1, keepdims=True)) / temperature
        if not self.seen:
            seen = np.zeros((len(first), 1))
        excess = self.decision_.excess(inputs, first)
        best = excess.max(axis=1, keepdims=True)
        # The log-odds say whether an input is new; which new class, the head if it knows more.
        new = excess - best
        if self._head_chooses:
            new = np.asarray(self.head_.log_proba(table), np.float64)
        new = new - new.max(axis=1, keepdims=True) + np.clip(best, -LARGEST, LARGEST)
        groups = [seen, new]
        if self.none and self.seen:
            misfit = self.decision_.misfit(inputs, first)[:, None]
            groups.append(np.clip(misfit, -LARGEST, LARGEST))
        log_proba = log_softmax(np.concatenate(groups, axis=1), axis=1)
        return np.asarray(log_proba[:, self._columns])

    def rename_seen(self, names: Mapping[str, str]) -> SeenAndNew:
        """The same head with other ``names`` of some seen classes."""
        renamed = copy(self)
        renamed.head_ = self.head_.rename_seen(names)
        renamed._find_names()
        return renamed

    # ---- Files

    def to_file(self) -> HeadFile:
        """The content of a file."""
        check_is_fitted(self, "decision_")
        inner, together = self.head_.to_file(), self.decision_
        values = {
            "head": {name: value for name, value in inner.values.items() if name != "about"},
            "about": inner.values["about"],
            "none": self.none,
            "seen": self.seen,
            "seen_temperature": self.seen_temperature_,
            "missing": self.missing_,
            "budget": None if together.budget is None else list(together.budget[1:]),
            "head_chooses": self._head_chooses,
            "reference_is_batch": self.reference_is_batch_,
        }
        arrays = dict(inner.arrays)
        arrays["together_thresholds"] = np.append(together.thresholds, together.none)
        arrays["together_features"] = self._usual_features
        for number, (decision, classes) in enumerate(together.parts):
            arrays[f"{PARTS[number]}_classes"] = classes.astype(float)
            arrays[f"{PARTS[number]}_share"] = np.array([decision.ranking_share])
            for name in MAPS:
                for part, array in getattr(decision, name)._asdict().items():
                    arrays[f"{PARTS[number]}_{name}_{part}"] = array
        return HeadFile("seen and new", values, arrays)

    @classmethod
    def from_file(cls, file: HeadFile) -> SeenAndNew:
        """The head in a ``file``."""
        values, begin = file.values, "together_"
        arrays = {name: x for name, x in file.arrays.items() if not name.startswith(begin)}
        inner = {**values["head"], "about": values["about"]}
        result = cls(None, none=values["none"], seen=values["seen"])  # type: ignore[arg-type]
        result.head_ = LinearHead.from_file(HeadFile("linear", inner, arrays))
        result.seen_temperature_, result.missing_ = values["seen_temperature"], values["missing"]
        result._head_chooses = values["head_chooses"]
        result.reference_is_batch_ = values["reference_is_batch"]
        result._usual_features = file.arrays["together_features"]
        parts = []
        for at in PARTS:
            if f"{at}_classes" in file.arrays:
                new, seen, by_rankings, own = (
                    LinearMap(*(file.arrays[f"{at}_{name}_{part}"] for part in LinearMap._fields))
                    for name in MAPS
                )
                share = float(file.arrays[f"{at}_share"][0])
                decision = Decision(new, seen, by_rankings, own, share)
                parts.append((decision, file.arrays[f"{at}_classes"] > 0))
        *thresholds, none = file.arrays["together_thresholds"].tolist()
        spent = values["budget"]
        budget = None if spent is None else Budget(min(thresholds), *spent)
        result.decision_ = Together(tuple(parts), np.array(thresholds), none, budget)
        result._find_names()
        return result


PARTS = ("together_one", "together_other")
MAPS = ("new", "seen", "by_rankings", "own")
LARGEST = 700.0
"""Logits beyond this are as certain as numbers can say."""
