"""Participants who gave the same answers, more often than chance explains.

Careful people agree, too, where a question is easy. So it is asked how likely it is that they
would agree by chance, and the other answers to the same questions tell: if a and b answered
independently, then b's answer is as likely to be any of those that others than a gave. With
n answers in all, of which m are the order that a and b share, this is the chance
(m - 1) / (n - 1); over several questions it is the product. Nothing is assumed of how people
rank. The chance is multiplied by the number of participants that somebody is compared with, so
that somebody who answers independently is flagged with a probability of at most
`MOST_CHANCE`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rankshot.ranking.blocks import row_blocks
from rankshot.survey.answers import Answer

Label = TypeVar("Label", bound=Hashable)

LEAST_SHARED = 3
"""Participants are compared where they answered at least so many of the same questions."""

LEAST_PLACES = 8
"""Equal answers that fill fewer places than this, in all, are not held against anybody."""

MOST_CHANCE = 0.01


@dataclass(frozen=True)
class Twin:
    """Another participant with the same answers.

    Attributes
    ----------
    rater : str
    n_shared : int
        How many questions both have answered, all with the same orders.
    n_places : int
        How many places these orders fill.
    chance : float
        How likely it is at most to meet such a twin by chance.
    """

    rater: str
    n_shared: int
    n_places: int
    chance: float


def identical_raters(answers: Sequence[Answer]) -> dict[str, tuple[Twin, ...]]:
    """Return the participants who have twins, and these, the least likely first.

    A twin gave the same orders in all questions that both have answered, at least 3, filling at
    least 8 places; the module says how likely this may be by chance.

    Parameters
    ----------
    answers : sequence of Answer
        At most one by each participant to each question, and no skips.

    Examples
    --------
    >>> from itertools import permutations
    >>> from rankshot.survey.study import Question
    >>> asked = [Question(name, ("a", "b", "c", "d")) for name in ("cat", "dog", "owl", "elk")]
    >>> orders = [*permutations("abcd")][:20]
    >>> raters = {f"r{i}": order for i, order in enumerate([*orders, orders[7]])}
    >>> said = [Answer(rater, question, 1, False, question.items, order, 9.0, 0.0)
    ...         for rater, order in raters.items() for question in asked]
    >>> twin = identical_raters(said)["r20"][0]
    >>> twin.rater, twin.n_shared, twin.n_places, round(twin.chance * 20**3, 9)
    ('r7', 4, 16, 1.0)
    """
    if not answers:
        return {}
    raters, one, other, shared, places, chance = _candidates(answers)
    twins: dict[str, list[Twin]] = defaultdict(list)
    for row in np.flatnonzero(chance <= MOST_CHANCE).tolist():
        twin = Twin(raters[other[row]], int(shared[row]), int(places[row]), float(chance[row]))
        twins[raters[one[row]]].append(twin)
    return {
        rater: tuple(sorted(theirs, key=lambda twin: (twin.chance, twin.rater)))
        for rater, theirs in twins.items()
    }


def _candidates(answers: Sequence[Answer]) -> tuple[Any, ...]:
    """Return the raters, and pairs of them with the same answers to all that both answered.

    Of each pair: the numbers of the two, of shared questions, of places, and the chance.
    """
    raters, rater = _numbered(answer.rater for answer in answers)
    _, question = _numbered(answer.question.key for answer in answers)
    _, order = _numbered((answer.question.key, answer.order) for answer in answers)
    sharing = np.bincount(order)[order] - 1
    others = np.bincount(question)[question] - 1
    # An order that nobody else gave makes no pair: its chance is never looked at.
    log_chance = np.log(np.maximum(sharing, 1) / np.maximum(others, 1))
    length = np.array([len(answer.order) for answer in answers])
    ones = np.ones(len(answers), np.int64)
    answered = csr_array((ones, (rater, question)))
    gave, gave_length, gave_chance = (
        csr_array((values, (rater, order))) for values in (ones, length, log_chance)
    )
    n_compared = np.zeros(len(raters), np.int64)
    found = []
    # All pairs at once would be a table as large as the square of the number of raters.
    for rows in row_blocks(len(raters), 4 * len(raters)):
        shared = (answered[rows] @ answered.T).toarray()
        shared[np.arange(len(shared)), np.arange(rows.start, rows.stop)] = 0
        compared = shared >= LEAST_SHARED
        n_compared[rows] = compared.sum(axis=1)
        same, places, together = (
            (some[rows] @ gave.T).toarray() for some in (gave, gave_length, gave_chance)
        )
        pair = np.nonzero(
            compared
            & (same == shared)
            & (places >= LEAST_PLACES)
            & (together <= np.log(MOST_CHANCE))
        )
        found.append((pair[0] + rows.start, pair[1], shared[pair], places[pair], together[pair]))
    one, other, n_shared, n_places, log_p = (
        np.concatenate(part) for part in zip(*found, strict=True)
    )
    # The larger number of comparisons for both, so that twins are flagged together.
    chance = np.exp(log_p) * np.maximum(n_compared[one], n_compared[other])
    return raters, one, other, n_shared, n_places, chance


def _numbered(labels: Iterable[Label]) -> tuple[list[Label], NDArray[np.int64]]:
    """Return the different labels, and the number of each one's label among them."""
    code: dict[Label, int] = {}
    numbers = [code.setdefault(label, len(code)) for label in labels]
    return list(code), np.array(numbers, np.int64)
