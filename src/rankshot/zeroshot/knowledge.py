"""`Knowledge`: everything that is known of new classes, in one object; from it to a head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.batch_refinement import refine_batch
from rankshot.zeroshot.class_rankings import Orders, as_rankings, only_new
from rankshot.zeroshot.examples import as_examples
from rankshot.zeroshot.forecast import Forecast
from rankshot.zeroshot.joint_head import JointHead
from rankshot.zeroshot.linear_head import LinearHead
from rankshot.zeroshot.rehearsal import Grid, rehearse
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.seen_and_new import SeenAndNew
from rankshot.zeroshot.settings import Settings
from rankshot.zeroshot.tables import as_labels, as_scores, read_labelled
from rankshot.zeroshot.weighted_mean import LEAST_INPUTS, Examples, Labelled, WeightedMean

Labels = NDArray[np.str_]
DEFAULTS = Settings()


@dataclass(frozen=True, eq=False, repr=False)
class Knowledge:
    """What is known of some new classes: rankings, and optionally much more.

    Scores are `Scores`, a data frame, an array, or a file (CSV, Parquet). Their labels may also be
    a column ``label`` of the data frame or file.

    Parameters
    ----------
    rankings : Rankings, dict, data frame or file
        Rankings of the seen classes, for each new class; for a rehearsal, of the labelled seen
        classes as well. Or a dict with one list of seen classes, most similar first, per class, or
        several such lists. Rankings that name only some of the seen
        classes become top-K rankings of all of them.
    reference : scores, or scores and labels, optional
        Scores of varied inputs of seen classes that the classifier was not trained on, and their
        classes if they are known.
    examples : scores and labels, optional
        Scores of inputs of new classes, and the class of each.
    batch : Scores, optional
        Scores of the inputs themselves, without labels. They may be classified jointly (see
        `Settings`); and if they have evidence of another model, its weight is estimated on them.
    raters : str or sequence of str, optional
        The rater of all lists of a dict; or several, whose lists each class has in this order.

    Examples
    --------
    >>> import rankshot as rs
    >>> scores = rs.Scores([[4.0, 0.5, 0.0]], ["bus", "leopard", "tram"])
    >>> known = rs.Knowledge({"cat": ["leopard"], "truck": ["bus", "tram"]}, batch=scores)
    >>> known.fit().predict(scores)
    array(['truck'], dtype='<U5')
    """

    rankings: Rankings
    reference: tuple[Scores, Labels | None] | None = None
    examples: tuple[Scores, Labels] | None = None
    batch: Scores | None = None

    def __init__(
        self,
        rankings: Rankings | Orders | str | Path,
        reference: Scores | ArrayLike | Labelled | str | Path | None = None,
        examples: Examples | str | Path | None = None,
        batch: Scores | ArrayLike | str | Path | None = None,
        raters: str | Sequence[str] | None = None,
    ) -> None:
        (scores, labels), (few, few_labels) = read_labelled(reference), read_labelled(examples)
        inputs = read_labelled(batch)[0]
        tables = scores, inputs, few
        items = next((table.items for table in tables if isinstance(table, Scores)), None)
        named = as_rankings(rankings, items, raters)
        known = named.items, named.target_names
        checked: Any = None
        if reference is not None:
            table = as_scores(scores, named.items)
            checked = table, None if labels is None else as_labels(labels, len(table))
        self.__dict__.update(
            rankings=named,
            reference=checked,
            examples=None if examples is None else as_examples((few, few_labels), *known),
            batch=None if batch is None else as_scores(inputs, named.items),
        )

    @property
    def seen(self) -> tuple[str, ...]:
        """The seen classes, in the order of the columns of all scores."""
        return self.rankings.items

    def fit(self, settings: Settings = DEFAULTS) -> LinearHead | JointHead:
        """A head that predicts what the settings allow, from everything that is known.

        Parameters
        ----------
        settings : Settings, optional
            By default, new classes are predicted, and a batch is used if it is large enough.
        """
        return self.complete(self.fit_alone(settings), settings)

    def complete(
        self, fitted: WeightedMean, settings: Settings = DEFAULTS
    ) -> LinearHead | JointHead:
        """The head that `fit` returns, from ``fitted``, which `fit_alone` returned."""
        if settings.has_gate:
            # If seen classes may not be predicted, they are "none of these".
            both = SeenAndNew(
                fitted,
                seen_loss=settings.seen_loss,
                none=settings.none,
                seen=settings.classes == "all",
            )
            uses_batch = settings.batch is True or self._lacks_reference(settings)
            batch = self.batch if uses_batch else None
            reference, labels = self.reference or (None, None)
            return both.fit(reference, labels, self.examples, batch).head_
        if self.batch is None:
            return fitted.head_
        return refine_batch(fitted, self.batch, self.examples, settings.batch)

    def fit_alone(self, settings: Settings = DEFAULTS) -> WeightedMean:
        """The estimator of new classes for each input alone, with all that it has learned."""
        has_evidence = self.batch is not None and self.batch.evidence is not None
        evidence = self.batch if has_evidence else None
        reference: Any = self.reference if settings.use_reference else None
        if self._lacks_reference(settings):
            reference = self.batch
        fitted = settings.make_estimator().fit(
            only_new(self.rankings), reference=reference, examples=self.examples, evidence=evidence
        )
        fitted.head_ = fitted.head_.with_about(settings=settings.to_json())
        return fitted

    def _lacks_reference(self, settings: Settings) -> bool:
        """Whether the batch serves as the reference."""
        if self.reference is not None or self.batch is None or not settings.has_gate:
            return False
        if settings.batch != "auto":
            return settings.batch is True
        # A budget needs inputs of seen classes, or a decision of the user.
        enough = max(LEAST_INPUTS, len(self.seen))
        return settings.seen_loss is None and len(self.batch) >= enough

    def rehearse(
        self,
        settings: Settings = DEFAULTS,
        *,
        grid: Grid | None = None,
        n_folds: int | None = None,
    ) -> Forecast:
        """Hold out seen classes to choose settings, and to forecast the accuracy.

        This needs a reference with labels, and rankings of seen classes among the rankings, by the
        sources that rank the new classes.

        Parameters
        ----------
        settings : Settings
            Where the choice begins.
        grid : dict of str to list, optional
            The values of settings to try, in all combinations. By default some values of ``k`` and
            ``decay``.
        n_folds : int, optional
            If the rankings list rehearsed classes, these are divided at random into this number of
            groups, which are held out in turn. Otherwise, all are held out together. A group has at
            least two classes: the default is 5, and half the number of classes if there are fewer
            than 10.
        """
        return rehearse(self.rankings, self.reference, settings, self.batch, grid, n_folds)
