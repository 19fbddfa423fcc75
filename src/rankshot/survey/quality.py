"""Flags: what speaks against a participant's answers, in words and figures.

A flag is a reason to look, not a verdict: nobody's answers are dropped for it unless the
researcher says so at the export.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rankshot.core.blocks import row_blocks
from rankshot.ranking.layouts import levels
from rankshot.ranking.rankings import Rankings
from rankshot.survey.answers import Answer, by_question, is_counted
from rankshot.survey.pairwise import Levels, margins_of, pair_signs
from rankshot.survey.study import QualityRules

Label = TypeVar("Label", bound=Hashable)
LEAST_SHARED = 3
"""Participants are compared where they answered at least so many of the same questions."""
LEAST_PLACES = 8
"""Equal answers that fill fewer places than this, in all, are not held against anybody."""
MOST_CHANCE = 0.01
Floats = NDArray[np.float64]
LEAST_OTHERS = 3
"""A question says how far somebody is from the others where at least so many answered it."""
LEAST_COMPARED = 3
"""Nobody is flagged for the distance to the others in fewer questions than this."""


# -------------------- survey.identical
# Participants who gave the same answers, more often than chance explains.
#
# Careful people agree, too, where a question is easy. So it is asked how likely it is that they
# would agree by chance, and the other answers to the same questions tell: if a and b answered
# independently, then b's answer is as likely to be any of those that others than a gave. With
# n answers in all, of which m are the order that a and b share, this is the chance
# (m - 1) / (n - 1); over several questions it is the product. Nothing is assumed of how people
# rank. The chance is multiplied by the number of participants that somebody is compared with, so
# that somebody who answers independently is flagged with a probability of at most
# `MOST_CHANCE`.


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


# -------------------- survey.quality
# Flags: what speaks against a participant's answers, in words and figures.
#
# A flag is a reason to look, not a verdict: nobody's answers are dropped for it unless the
# researcher says so at the export.


@dataclass(frozen=True)
class Flag:
    """One thing that speaks against a participant.

    Attributes
    ----------
    name : str
        "fast", "repeats", "gold", "distance", "identical" or "skips".
    text : str
        The same in words, with the figures.
    value : float
        The figure that was held against the rule.
    """

    name: str
    text: str
    value: float


def flags(answers: Sequence[Answer], rules: QualityRules) -> dict[str, tuple[Flag, ...]]:
    """Return the flags of every participant; most have none.

    ========= ===================================================================================
    fast      at least half of the answers took less than ``rules.seconds``
    repeats   the mean distance between first and repeated answers, of two items or more, is above
              ``rules.repeat_distance``; see `answer_distances`
    gold      more than ``rules.gold_failures`` gold questions are wrong: the answer puts another
              item before all of the known ones are placed. These may come in any order, and an
              answer that stops among them is not wrong: stopping early is invited
    distance  the mean distance to the others' majority is above ``rules.consensus_distance``; see
              `distances_to_others`. At least 3 questions count, which 3 others have answered
    identical the same orders as another participant, more often than by chance; see
              `identical_raters`
    skips     more than half of the questions were skipped
    ========= ===================================================================================

    A skipped question is no answer: it is neither fast nor wrong. Repeated answers and gold
    questions do not enter the last three but for the skips.

    Parameters
    ----------
    answers : sequence of Answer
        All that were given, skips included.
    rules : QualityRules

    Notes
    -----
    How often the flags are right was measured on simulated studies, by
    ``tests/survey/test_quality.py``: 20 targets with 10 items, 20 answers a question; 10 questions,
    1 repeat and 1 gold question a participant, who ranks from 2 to all 10 items. The opinion of a
    careful participant scatters around the truth by a Mallows model of spread 0.7 and the answers
    around the opinion by one of spread 1, so that Kendall's W within a question is 0.49. One in ten
    answers at random. One person in forty takes part twice and repeats what they said where both
    get the same question. The shares flagged with a ``repeat_distance`` of 0.5 and a
    ``consensus_distance`` of 0.4 are:

    ========= ======= ========= ==========
    flag      careful at random twice here
    ========= ======= ========= ==========
    fast      0.000   0.90      0.00
    repeats   0.001   0.42      0.00
    gold      0.019   0.79      0.00
    distance  0.000   0.97      0.00
    identical 0.000   0.00      0.92
    skips     0.000   0.00      0.00
    ========= ======= ========= ==========

    Those for fast and gold follow from what was assumed: a median of 12 seconds, or 2.5 at random,
    and gold questions that 1 in 50 gets wrong. One repeated answer says little: with a
    ``repeat_distance`` of 0.4, 0.71 of those at random are flagged, but also 0.03 of the careful.
    And where people agree less, the careful are farther from the majority, too: 0.006 of them are
    flagged for their distance at a W of 0.31, but 0.14 at a W of 0.21. A study of such questions
    needs a larger ``consensus_distance``.

    Examples
    --------
    >>> from rankshot.survey.study import Question
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> hasty = Answer("a1", cat, 1, False, cat.items, ("bus",), 0.8, 0.0)
    >>> flags([hasty], QualityRules())
    {'a1': (Flag(name='fast', text='1 of 1 answers within 3 seconds', value=1.0),)}
    """
    found: dict[str, list[Flag]] = {answer.rater: [] for answer in answers}
    for rule in (_fast, _repeats, _gold, _distance, _identical, _skips):
        for rater, flag in rule(answers, rules):
            found[rater].append(flag)
    return {rater: tuple(theirs) for rater, theirs in found.items()}


def answer_levels(answers: Sequence[Answer]) -> Levels:
    """Return the level of every item of one question in each answer; what is left out is last."""
    items = answers[0].question.items
    return levels(Rankings.from_orders([answer.order for answer in answers], items=items))


def answer_distances(first: Levels, second: Levels) -> Floats:
    """Return the normalised Kendall distance between each two answers to the same question.

    It is the mean over the pairs of items that at least one of the two puts in order: 0 where
    the other one has the same order, 1 where it has the opposite, 1/2 where it has none. Equal
    answers have 0, answers at random about 1/2. Answers that differ in nothing but their length
    stay below 1/2.

    Examples
    --------
    >>> answer_distances(np.array([[0, 1, 2]]), np.array([[1, 0, 2]]))
    array([0.33333333])
    >>> answer_distances(np.array([[0, 1, 2]]), np.array([[0, 1, 1]]))
    array([0.16666667])
    """
    a, b = pair_signs(first), pair_signs(second)
    either = np.count_nonzero(a | b, axis=(1, 2))
    return np.asarray(np.abs(a - b).sum(axis=(1, 2)) / 2 / either)


def distances_to_others(table: Levels) -> Floats:
    """Return how far each answer to a question is from the majority of the others.

    It is the mean over the pairs of items that the answer puts in order: 0 where more of the
    others agree than disagree, 1 where more disagree, 1/2 where neither are more. The others'
    majority is that of all answers less the answer's own share, so that leaving one out is
    exact. Whatever the others say, an answer at random has a mean of exactly 1/2.

    Examples
    --------
    >>> distances_to_others(np.array([[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 1], [2, 1, 0]]))
    array([0., 0., 0., 0., 1.])
    """
    margins = margins_of(table)
    distance = np.empty(len(table))
    for rows in row_blocks(len(table), margins.size):
        own = pair_signs(table[rows])
        agreed = (own * np.sign(margins - own)).sum(axis=(1, 2))
        distance[rows] = (1 - agreed / np.count_nonzero(own, axis=(1, 2))) / 2
    return distance


# -------------------------------------------------------------------- one rule each

Flagged = Iterator[tuple[str, Flag]]


def _fast(answers: Sequence[Answer], rules: QualityRules) -> Flagged:
    given = Counter(answer.rater for answer in answers if answer.order)
    fast = Counter(a.rater for a in answers if a.order and a.seconds < rules.seconds)
    for rater, n in fast.items():
        if 2 * n >= given[rater]:
            text = f"{n} of {given[rater]} answers within {rules.seconds:g} seconds"
            yield rater, Flag("fast", text, n / given[rater])


def _repeats(answers: Sequence[Answer], rules: QualityRules) -> Flagged:
    # Who names one item and then another one need not be careless: that says too little.
    telling = [answer for answer in answers if len(answer.order) > 1]
    first = {(a.rater, a.question.key): a for a in telling if is_counted(a)}
    distances: dict[str, list[float]] = defaultdict(list)
    again = (a for a in telling if a.repeat and (a.rater, a.question.key) in first)
    for group in by_question(again):
        before = [first[answer.rater, answer.question.key] for answer in group]
        apart = answer_distances(answer_levels(before), answer_levels(group)).tolist()
        for answer, distance in zip(group, apart, strict=True):
            distances[answer.rater].append(distance)
    for rater, theirs in distances.items():
        mean = float(np.mean(theirs))
        if mean > rules.repeat_distance:
            what = f"{len(theirs)} repeated answers" if len(theirs) > 1 else "the repeated answer"
            text = f"{what} at a distance of {mean:.2f} from the first (at random: 0.50)"
            yield rater, Flag("repeats", text, mean)


def _gold(answers: Sequence[Answer], rules: QualityRules) -> Flagged:
    gold = [answer for answer in answers if answer.question.is_gold and answer.order]
    asked = Counter(answer.rater for answer in gold)
    wrong = Counter(answer.rater for answer in gold if not _begins_right(answer))
    for rater, n in wrong.items():
        if n > rules.gold_failures:
            yield rater, Flag("gold", f"{n} of {asked[rater]} gold questions wrong", n)


def _begins_right(answer: Answer) -> bool:
    """Whether nothing else comes before all known items are placed, or the answer stops."""
    first = answer.question.first
    return set(answer.order[: len(first)]) <= set(first)


def _distance(answers: Sequence[Answer], rules: QualityRules) -> Flagged:
    distances: dict[str, list[float]] = defaultdict(list)
    for group in by_question(filter(is_counted, answers)):
        if len(group) > LEAST_OTHERS:
            apart = distances_to_others(answer_levels(group)).tolist()
            for answer, distance in zip(group, apart, strict=True):
                distances[answer.rater].append(distance)
    for rater, theirs in distances.items():
        mean = float(np.mean(theirs))
        if len(theirs) >= LEAST_COMPARED and mean > rules.consensus_distance:
            text = (
                f"at a distance of {mean:.2f} from the majority of the others, over "
                f"{len(theirs)} questions (at random: 0.50)"
            )
            yield rater, Flag("distance", text, mean)


def _identical(answers: Sequence[Answer], rules: QualityRules) -> Flagged:  # noqa: ARG001
    for rater, twins in identical_raters([a for a in answers if is_counted(a)]).items():
        twin = twins[0]
        more = f" (and as {len(twins) - 1} more)" if len(twins) > 1 else ""
        text = (
            f"the same answers as {twin.rater}{more} in all {twin.n_shared} shared questions, "
            f"{twin.n_places} places; by chance: {twin.chance:.1g}"
        )
        yield rater, Flag("identical", text, twin.chance)


def _skips(answers: Sequence[Answer], rules: QualityRules) -> Flagged:  # noqa: ARG001
    asked = Counter(answer.rater for answer in answers)
    skipped = Counter(answer.rater for answer in answers if not answer.order)
    for rater, n in skipped.items():
        if 2 * n > asked[rater]:
            text = f"{n} of {asked[rater]} questions skipped"
            yield rater, Flag("skips", text, n / asked[rater])
