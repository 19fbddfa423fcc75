"""Learning from labels: the head is fitted again, and what it predicts for all inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.knowledge import Knowledge
from rankshot.zeroshot.linear_head import Predictor
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.seen_and_new import NONE_OF_THESE
from rankshot.zeroshot.settings import Settings
from rankshot.zeroshot.suggestions import suggest

SOURCE = "review"
"""The source and the rater of rankings that people give on the page."""
MOST_SAMPLED = 20_000
"""The inputs that tell how much evidence counts, and that refine a batch; of more inputs, some are
taken evenly."""
MOST_COMPARED = 5_000
"""The inputs among which the most useful ones are searched."""


class Predicted(NamedTuple):
    """A fitted head, and for each input its two most probable classes, with probabilities.

    ``order`` has the rows by class, most certain first.
    """

    head: Predictor
    labels: NDArray[np.str_]
    proba: NDArray[np.floating]
    second: NDArray[np.str_]
    second_proba: NDArray[np.floating]
    order: NDArray[np.intp]


class Changes(NamedTuple):
    """How many predictions a fit changed, and the most frequent change, as two classes."""

    n: int = 0
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Learner:
    """What a head is fitted to, apart from the labels that people give on the page.

    Attributes
    ----------
    scores : Scores
        Of all inputs that are reviewed, with features if there are any.
    settings : Settings
    rankings : Rankings
        Of the new classes.
    reference : Scores, optional
        Scores of inputs of seen classes.
    as_batch : bool
        Whether the inputs are predicted as a batch, by a `BatchRefinement`.
    examples : scores and labels, optional
        Of other inputs.
    """

    scores: Scores
    settings: Settings
    rankings: Rankings
    reference: Scores | None = None
    as_batch: bool = False
    examples: tuple[Scores, NDArray[np.str_]] | None = None

    @property
    def items(self) -> tuple[str, ...]:
        """The seen classes."""
        return self.scores.items

    def fit(self, labels: Mapping[int, str], rankings: Mapping[str, Sequence[str]]) -> Predicted:
        """Return what is predicted with some labels, by row, and with rankings of added classes.

        Labels that are seen classes or "none of these" are not examples.
        """
        parts = [self.rankings]
        if ranked := {name: order for name, order in rankings.items() if order}:
            own: dict[str, Any] = {"targets": list(ranked), "sources": SOURCE, "raters": SOURCE}
            parts.append(Rankings.from_orders(ranked.values(), items=self.items, **own))
        known = {*self.items, NONE_OF_THESE}
        rows = [row for row, name in labels.items() if name not in known]
        examples = self.examples
        if rows:
            found, names = self.scores[rows], np.array([labels[row] for row in rows])
            if examples is not None:
                found = Scores.concatenate([found, examples[0]])
                names = np.concatenate([names, examples[1]])
            examples = found, names
        batch = self._sample() if self.as_batch or self.scores.evidence is not None else None
        known = Knowledge(Rankings.concatenate(parts), self.reference, examples, batch)
        head = known.fit(replace(self.settings, batch=self.as_batch))
        names, proba = head.top(self.scores, min(2, len(head.classes_)))
        order = np.lexsort((-proba[:, 0], names[:, 0]))
        return Predicted(head, names[:, 0], proba[:, 0], names[:, -1], proba[:, -1], order)

    def _sample(self) -> Scores:
        n = len(self.scores)
        return self.scores[np.linspace(0, n - 1, min(n, MOST_SAMPLED)).astype(int)]

    def find_useful(
        self, head: Predictor, unlabelled: NDArray[np.intp], n: int
    ) -> NDArray[np.intp]:
        """Return the rows without a label whose labels help most."""
        some = np.linspace(0, len(unlabelled) - 1, min(len(unlabelled), MOST_COMPARED)).astype(int)
        rows: NDArray[np.intp] = unlabelled[some]
        return rows[suggest(head, self.scores[rows], n).rows] if len(rows) else rows


def compare(before: Predicted, after: Predicted, labelled: Sequence[int]) -> Changes:
    """Return how two fits differ on inputs without a label."""
    is_changed = before.labels != after.labels
    is_changed[list(labelled)] = False
    pairs = zip(before.labels[is_changed].tolist(), after.labels[is_changed].tolist(), strict=True)
    counts = Counter(pairs)
    return Changes(counts.total(), *counts.most_common(1)[0][0]) if counts else Changes()
