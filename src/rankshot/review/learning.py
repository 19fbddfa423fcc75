"""Learning from labels: the head is fitted again, and what it predicts for all inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import InputError
from rankshot.core.files import replace_file
from rankshot.core.tables import ID, LABEL, open_csv_writer
from rankshot.core.validation import require_whole_number
from rankshot.ranking.rankings import Rankings
from rankshot.recognition.run_folder import Run
from rankshot.zeroshot.joint_head import NONE_OF_THESE
from rankshot.zeroshot.knowledge import Knowledge
from rankshot.zeroshot.linear_head import Predictor
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.settings import Settings
from rankshot.zeroshot.suggestions import suggest

SOURCE = "review"
"""The source and the rater of rankings that people give on the page."""
MOST_SAMPLED = 20_000
"""The inputs that tell how much evidence counts, and that refine a batch; of more inputs, some are
taken evenly."""
SETTINGS = Settings(batch=False)
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
    known : Knowledge
        Its batch has the scores of all inputs that are reviewed, with features if there are any.
    settings : Settings
        Inputs are classified jointly only if ``batch`` is True.
    """

    known: Knowledge
    settings: Settings = SETTINGS

    @property
    def scores(self) -> Scores:
        """The scores of all inputs that are reviewed."""
        assert self.known.batch is not None  # noqa: S101 (a run always has scores)
        return self.known.batch

    @property
    def items(self) -> tuple[str, ...]:
        """The seen classes."""
        return self.known.seen

    def fit(self, labels: Mapping[int, str], rankings: Mapping[str, Sequence[str]]) -> Predicted:
        """Fit a head to some labels, by row, and to rankings of added classes, and predict all.

        Labels that are seen classes or "none of these" are not examples.
        """
        parts = [self.known.rankings]
        if ranked := {name: order for name, order in rankings.items() if order}:
            own: dict[str, Any] = {"targets": list(ranked), "sources": SOURCE, "raters": SOURCE}
            parts.append(Rankings.from_orders(ranked.values(), items=self.items, **own))
        others = {*self.items, NONE_OF_THESE}
        rows = [row for row, name in labels.items() if name not in others]
        examples = self.known.examples
        if rows:
            scores, names = self.scores[rows], np.array([labels[row] for row in rows])
            if examples is not None:
                scores = Scores.concatenate([scores, examples[0]])
                names = np.concatenate([names, examples[1]])
            examples = scores, names
        is_joint = self.settings.batch is True
        needs_batch = is_joint or self.scores.evidence is not None
        batch = self.scores[_spread(len(self.scores), MOST_SAMPLED)] if needs_batch else None
        known = Knowledge(Rankings.concatenate(parts), self.known.reference, examples, batch)
        head = known.fit(replace(self.settings, batch=is_joint))
        names, proba = head.top(self.scores, min(2, len(head.classes_)))
        order = np.lexsort((-proba[:, 0], names[:, 0]))
        return Predicted(head, names[:, 0], proba[:, 0], names[:, -1], proba[:, -1], order)

    def find_useful(self, unlabelled: NDArray[np.intp], n: int) -> NDArray[np.intp]:
        """Return the rows without a label whose labels help most."""
        rows = unlabelled[_spread(len(unlabelled), MOST_COMPARED)]
        return suggest(self.scores, n, among=rows) if len(rows) else rows


def _spread(n: int, most: int) -> NDArray[np.intp]:
    """Up to ``most`` row numbers, evenly spaced from 0 to n - 1."""
    return np.linspace(0, n - 1, min(n, most)).astype(int)


def compare(before: Predicted, after: Predicted, labelled: Sequence[int]) -> Changes:
    """Compare two fits on inputs without a label."""
    is_changed = before.labels != after.labels
    is_changed[list(labelled)] = False
    pairs = zip(before.labels[is_changed].tolist(), after.labels[is_changed].tolist(), strict=True)
    counts = Counter(pairs)
    return Changes(counts.total(), *counts.most_common(1)[0][0]) if counts else Changes()


# ---- A table to fill in, instead of the page


def suggest_for_run(run: Run, path: Path, number: int) -> int:
    """Write a table with the inputs of a run whose labels help most; return how many there are.

    Parameters
    ----------
    run : Run
        What `open_run` has read. Inputs that it has labels of are left out.
    path : Path
        A new CSV file, with an empty column of labels.
    number : int
        The number of rows, or fewer if there are fewer inputs.
    """
    require_whole_number("number", number)
    if path.exists():
        raise InputError("csv", str(path), "exists", hint="give another name")
    scores, ids = run.knowledge.batch, [str(name) for name in run.ids]
    assert scores is not None  # noqa: S101 (a run always has scores)
    left = np.array([row for row, name in enumerate(ids) if name not in run.labelled], int)
    if not left.size:
        raise InputError("csv", str(path), "would be empty: every input has a label")
    chosen = suggest(scores, number, among=left).tolist()
    rows = [(ids[row], str(run.labels[row]), f"{run.proba[row].max():.3f}", "") for row in chosen]
    with replace_file(path) as stream:
        open_csv_writer(stream).writerows([(ID, "guess", "probability", LABEL), *rows])
    return len(rows)
