"""What a network itself predicts, and whether its scores look like those of a trained one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankshot.core.arrays import row_blocks
from rankshot.core.errors import format_count, format_share
from rankshot.zeroshot.decide import most_probable
from rankshot.zeroshot.metrics import Interval, wilson_interval
from rankshot.zeroshot.scores import Scores, log_class_probabilities

CLASSES_SHOWN = 5
LARGEST_CORRELATION = 0.65
"""Of 4,000 batches of 30 inputs of two classes or more, with the scores of six trained classifiers,
none was above it; of 1,000 batches of a single class, 9% were. All batches with raw pixels, pixels
divided twice by 255, or channels in the wrong place were. Exchanged colours and another mean, which
change the scores little, are not noticed."""
LOWEST_ACCURACY = 0.1
"""On images of 32 x 32 pixels, which are hard for it, a network for 1,000 classes recognises 13%
of 100 inputs of its own classes, and 0% to 4% with raw pixels, pixels from 0 to 1 or exchanged
axes."""
LEAST_INPUTS, LEAST_CLASSES = 10, 10
"""With fewer inputs or classes, high correlations are usual."""


class NetworkCheck(NamedTuple):
    """What a network itself predicts for some inputs.

    Attributes
    ----------
    n_inputs, n_classes : int
        The numbers of inputs and of seen classes.
    most_frequent : tuple of (str, int)
        The seen classes that are predicted most often, with the number of inputs.
    mean_probability : float
        The mean probability of the class with the highest score; NaN for one-vs-one scores.
    mean_correlation : float
        The mean correlation between the scores of two inputs. It is near 1 if the scores hardly
        depend on the inputs, as with wrong preprocessing.
    accuracy : Interval or None
        The accuracy of the network on labelled inputs of seen classes.
    n_labelled : int
        The number of labelled inputs of seen classes.
    n_constant : int
        The number of inputs that have the same score for all classes.

    Examples
    --------
    >>> import numpy as np, rankshot as rs
    >>> usual = np.arange(10) + 0.1 * np.random.default_rng(0).normal(size=(20, 10))
    >>> found = rs.recognition.check_scores(rs.Scores(usual, [*"abcdefghij"]))
    >>> found.most_frequent, round(found.mean_correlation, 2), len(found.doubts)
    ((('j', 20),), 1.0, 1)
    """

    n_inputs: int
    n_classes: int
    most_frequent: tuple[tuple[str, int], ...]
    mean_probability: float
    mean_correlation: float
    accuracy: Interval | None
    n_labelled: int
    n_constant: int = 0

    @property
    def doubts(self) -> tuple[str, ...]:
        """Findings that would be unusual for a trained network with correct preprocessing."""
        found = []
        enough = self.n_inputs >= LEAST_INPUTS and self.n_classes >= LEAST_CLASSES
        if enough and self.mean_correlation > LARGEST_CORRELATION:
            found.append(
                "the scores of different inputs are almost the same (mean correlation "
                f"{format_share(self.mean_correlation)}): unless all inputs are of one kind, check "
                "the preprocessing"
            )
        if self.n_constant:
            found.append(
                f"{self.n_constant:,} of {format_count(self.n_inputs, 'input')} have the same "
                "score for all seen classes, so that their class cannot be determined"
            )
        lowest = max(LOWEST_ACCURACY, 2 / max(self.n_classes, 1))
        if enough and self.accuracy is not None and self.accuracy.high < lowest:
            found.append(
                "the model recognises hardly any inputs of its own classes: check the "
                "preprocessing, and the order of the seen classes"
            )
        return tuple(found)

    def describe(self) -> list[str]:
        """Return a description, as lines to print."""
        shares = [f"{name} {n / self.n_inputs:.0%}" for name, n in self.most_frequent]
        is_known = not np.isnan(self.mean_probability)
        probability = f"; mean top probability {format_share(self.mean_probability)}" * is_known
        inputs = format_count(self.n_inputs, "input")
        lines = [
            f"top predictions of the model itself ({inputs}): {', '.join(shares)}{probability}"
        ]
        if self.accuracy is not None:
            labelled = format_count(self.n_labelled, "labelled input")
            lines.append(f"the model's own accuracy on {labelled} of seen classes: {self.accuracy}")
        return lines + [f"warning: {doubt}" for doubt in self.doubts]


def check_scores(scores: Scores, labels: ArrayLike | None = None) -> NetworkCheck:
    r"""Return what a network itself predicts, to detect wrong preprocessing.

    Parameters
    ----------
    scores : Scores
        The scores of some inputs, such as ``found.scores`` for a result ``found`` of `score`.
    labels : sequence of str, optional
        The class of each input, or an empty text. Labels of seen classes give the network's own
        accuracy.

    Examples
    --------
    >>> import rankshot as rs
    >>> scores = rs.Scores([[3, 1, 0], [0, 2, 1], [1, 4, 0]], ["cat", "dog", "fox"])
    >>> found = rs.recognition.check_scores(scores, ["cat", "fox", ""])
    >>> print("\n".join(found.describe()))
    top predictions of the model itself (3 inputs): dog 67%, cat 33%; mean top probability .815
    the model's own accuracy on 2 labelled inputs of seen classes: .500 [.095, .905]
    """
    n, items = len(scores), scores.items
    first = np.empty(n, np.intp)
    total = np.zeros(len(items))
    probability, n_unequal = 0.0, 0
    # In blocks: each needs several arrays of its size.
    for rows in row_blocks(n, len(items)):
        batch = scores[rows]
        values = np.asarray(batch.values, float)
        first[rows] = most_probable(values)
        if batch.kind == "one-vs-one":
            probability = np.nan
        else:
            probability += float(np.exp(log_class_probabilities(batch).max(axis=1)).sum())
        # Rows of equal scores have no direction.
        unequal = values[np.ptp(values, axis=1) > 0]
        unequal -= unequal.mean(axis=1, keepdims=True)
        total += (unequal / np.linalg.norm(unequal, axis=1, keepdims=True)).sum(axis=0)
        n_unequal += len(unequal)
    names = np.array(items)
    known = np.full(n, "") if labels is None else np.asarray(labels).astype(str)
    labelled = np.isin(known, names)
    n_right, n_labelled = int((names[first] == known)[labelled].sum()), int(labelled.sum())
    # |Σ u|² has each pair of inputs twice, and each input with itself.
    pairs = n_unequal * (n_unequal - 1)
    counts = np.bincount(first, minlength=len(items))
    order = np.argsort(-counts, kind="stable")[:CLASSES_SHOWN]
    return NetworkCheck(
        n,
        len(items),
        tuple((items[i], int(counts[i])) for i in order if counts[i]),
        probability / n,
        float(total @ total - n_unequal) / pairs if pairs else np.nan,
        wilson_interval(n_right, n_labelled) if n_labelled else None,
        n_labelled,
        n - n_unequal,
    )
