"""`SeenAndNew`: fits a `JointHead` to a reference, examples and a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from rankshot.core.errors import NO_VALUE, InputError
from rankshot.core.validation import require_number
from rankshot.zeroshot.class_means import Examples, Inputs, Reference
from rankshot.zeroshot.decide import first_guesses
from rankshot.zeroshot.evidence import fit_temperature
from rankshot.zeroshot.examples import as_examples
from rankshot.zeroshot.joint_head import JointHead, take_features
from rankshot.zeroshot.linear_head import Predictor
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.tables import as_scores
from rankshot.zeroshot.together import DecisionData, expect_together, fit_together
from rankshot.zeroshot.weighted_mean import (
    WeightedMean,
    as_reference,
    describe_inputs,
    find_usual_features,
)

SEEN_LOSS = 0.02
"""The default budget, with a reference."""
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
    head_ : JointHead
        What was fitted, as a value.
    classes_ : ndarray of str
        The seen and the new classes, and "none of these" if requested, sorted.
    seen_ : ndarray of bool
        Which of ``classes_`` are seen classes.
    budget_ : Budget or None
        The threshold, the loss that the folds of the reference show, and the number of inputs that
        this rests on; None without a reference.
    missing_ : list of str
        Seen classes that the reference lacks.

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
        by_batch = reference is None and batch is not None
        if by_batch:
            reference, batch = batch, None
        if not isinstance(self.head, WeightedMean):
            raise InputError("head", self.head, "must be a fitted WeightedMean")
        self._require(reference, labels)
        new = self.head.inner
        items = new.seen
        table = None if reference is None else as_reference(reference, items)
        few = None if examples is None else as_examples(examples, items, new.classes)
        usual = np.zeros(0) if few is None else find_usual_features(table, *few)
        usual = new.usual_features if usual.size and new.n_features else usual

        def describe(table: Scores) -> tuple[Inputs, NDArray[np.intp]]:
            return describe_inputs(table, usual), first_guesses(table.values, items)

        known = DecisionData(
            self.head.listed_,
            None if table is None else Reference(*describe(table)),
            None if few is None else Examples(describe(few[0])[0], _codes(new.classes, *few)),
        )
        self.missing_: list[str] = []
        budget = SEEN_LOSS if self.seen_loss is None else self.seen_loss
        none, temperature = self.none and self.seen, None
        has_budget = self.seen_loss is not None or not by_batch
        if table is None or known.reference is None or not has_budget:
            together = expect_together(known, budget, none=none)
        else:
            first = known.reference.predicted
            right, there = np.ones(len(first), bool), first
            if labels is not None:
                there = _codes(items, table, labels)
                right = first == there
                equal = np.full(len(there), 1 / len(there))
                data = [(known.reference.inputs.f, there, equal)]
                temperature = fit_temperature(data, TEMPERATURE_BOUNDS)
            lacking = np.setdiff1d(np.arange(len(items)), there)
            self.missing_ = [items[i] for i in lacking]
            if batch is not None:
                known = known.use_batch(*describe(as_scores(batch, items)))
            together = fit_together(known, right, budget, none=none)
        self.budget_ = together.budget
        # Where only some classes have examples, the head would prefer these.
        learned = self.head.has_examples and len(together.parts) == 1
        new = new.with_about(
            budget=together.budget and together.budget._asdict(),
            missing_seen=self.missing_,
            reference_is_batch=by_batch,
        )
        self.head_ = JointHead.from_decision(
            take_features(new, usual),
            together,
            misfit=together.none if none else None,
            seen_temperature=temperature,
            predicts_seen=self.seen,
            new_by_head=learned or table is None or bool(new.evidence),
        )
        self.classes_, self.seen_ = self.head_.classes_, self.head_.is_seen
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


def _codes(classes: Sequence[str], table: Scores, labels: ArrayLike) -> NDArray[np.intp]:
    """The place of each label among the classes."""
    place = {label: i for i, label in enumerate(classes)}
    codes = [place.get(label, -1) for label in np.asarray(labels).astype(str).tolist()]
    if len(codes) != len(table) or -1 in codes:
        rule = f"must be one of {len(place)} classes for each of {len(table)} inputs"
        raise InputError("labels", labels, rule)
    return np.array(codes)
