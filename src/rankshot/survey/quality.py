"""Quality checks: flags for participants whose answers look careless or copied.

A flag is a reason to look, not a verdict. No answer is dropped because of a flag unless the
researcher asks for it at the export.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rankshot.core.arrays import row_blocks
from rankshot.survey.answers import ABSENT, Answer, answer_levels, group_by_question, is_counted
from rankshot.survey.study import QualityRules

Label = TypeVar("Label", bound=Hashable)
Floats = NDArray[np.float64]
Levels = NDArray[np.int32]
# The distance to the others needs at least this many other answers to the question.
LEAST_OTHERS = 3
# The flag "distance" needs at least this many such questions.
LEAST_COMPARED = 3
# Two participants are compared if they answered at least this many of the same questions.
LEAST_SHARED = 3
# The flag "identical" needs equal answers that fill at least this many places in total.
LEAST_PLACES = 8
# The largest probability with which an independent participant gets the flag "identical".
MOST_CHANCE = 0.01


@dataclass(frozen=True)
class Flag:
    """One reason to look at a participant's answers.

    Attributes
    ----------
    name : str
        "fast", "repeats", "gold", "distance", "identical" or "skips"; see `find_flags`.
    text : str
        The reason in words, with the figures.
    value : float
        The figure that was compared with the rule.

    Examples
    --------
    >>> from rankshot.survey import Answer, QualityRules, Question, find_flags
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> hasty = Answer("a1", cat, 1, False, cat.items, ("bus",), 0.8, 0.0)
    >>> flag = find_flags([hasty], QualityRules(seconds=3))["a1"][0]
    >>> flag.name, flag.text
    ('fast', '1 of 1 answers within 3 seconds')
    """

    name: str
    text: str
    value: float


def find_flags(answers: Sequence[Answer], rules: QualityRules) -> dict[str, tuple[Flag, ...]]:
    """Return the flags of every participant; most have none.

    ========= ===================================================================================
    fast      at least half of the answers took less than ``rules.seconds``; an answer whose time
              is unknown does not count as fast
    repeats   the mean distance between first and repeated answers, of two items or more, is above
              ``rules.repeat_distance``
    gold      more than ``rules.gold_failures`` gold questions are wrong: the answer puts another
              item before one of the known items. The known items may come in any order, and an
              answer that stops among them is not wrong, because participants may stop early
    distance  the mean distance to the majority of the others is above
              ``rules.consensus_distance``. This needs at least 3
              questions that at least 3 others have answered
    identical the same orders as another participant, more often than by chance
    skips     more than half of the questions were skipped
    ========= ===================================================================================

    A skipped question is not an answer: it is neither fast nor wrong. "distance" and "identical"
    use neither repeated answers nor gold questions; "skips" counts both.

    Parameters
    ----------
    answers : sequence of Answer
        All answers, skips included.
    rules : QualityRules

    Notes
    -----
    How often the flags are right was measured on simulated studies, by
    ``tests/survey/test_quality.py``. A study has 20 targets with 10 items, and 20 answers per
    question. Each participant gets 10 questions, 1 repeat and 1 gold question, and ranks from 2
    to all 10 items. The opinion of a careful participant follows a Mallows model of spread 0.7
    around the truth, and the answers follow one of spread 1 around the opinion, so that Kendall's
    W within a question is 0.55. One participant in ten answers at random. One person in forty
    takes part twice, and repeats the first answers to questions that come again. The shares of
    participants with each flag, for a ``repeat_distance`` of 0.5 and a ``consensus_distance`` of
    0.4, are:

    ========= ======= ========= ===============
    flag      careful at random took part twice
    ========= ======= ========= ===============
    fast      0.000   0.90      0.00
    repeats   0.001   0.42      0.00
    gold      0.019   0.79      0.00
    distance  0.000   0.97      0.00
    identical 0.000   0.00      0.92
    skips     0.000   0.00      0.00
    ========= ======= ========= ===============

    The shares for fast and gold follow from the assumptions: a median time of 12 seconds, or 2.5
    for random answers, and gold questions that 1 in 50 careful participants gets wrong. One
    repeated answer says little: a ``repeat_distance`` of 0.4 flags 0.71 of the random
    participants, but also 0.03 of the careful ones. If people agree less, careful participants
    are also farther from the majority: 0.006 of them get the flag "distance" at a W of 0.34, and
    0.14 at a W of 0.24. A study of such questions needs a larger ``consensus_distance``.

    Examples
    --------
    >>> from rankshot.survey import Answer, QualityRules, Question, find_flags
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> hasty = Answer("a1", cat, 1, False, cat.items, ("bus",), 0.8, 0.0)
    >>> find_flags([hasty], QualityRules())
    {'a1': (Flag(name='fast', text='1 of 1 answers within 3 seconds', value=1.0),)}
    """
    found: dict[str, list[Flag]] = {answer.rater: [] for answer in answers}
    for rule in (
        _flag_fast,
        _flag_repeats,
        _flag_gold,
        _flag_distance,
        _flag_identical,
        _flag_skips,
    ):
        for rater, flag in rule(answers, rules):
            found[rater].append(flag)
    return {rater: tuple(theirs) for rater, theirs in found.items()}


def pair_signs(table: Levels) -> NDArray[np.int8]:
    """Return s: ``s[r, i, j]`` is 1 if answer r has i before j, -1 if after, 0 if neither.

    ``table`` has the level of each item in each answer; an item that is `ABSENT` is neither before
    nor after any item.

    Examples
    --------
    >>> pair_signs(np.array([[0, 1, ABSENT]]))[0].tolist()
    [[0, 1, 0], [-1, 0, 0], [0, 0, 0]]
    """
    before = (table[:, :, None] < table[:, None, :]) & (table != ABSENT)[:, :, None]
    signs: NDArray[np.int8] = before.astype(np.int8) - before.transpose(0, 2, 1)
    return signs


def pairwise_margins(table: Levels) -> NDArray[np.int64]:
    """Return how many more answers have item i before j than after it.

    Examples
    --------
    >>> pairwise_margins(np.array([[0, 1, 1], [0, 1, 2], [1, 0, 2]])).tolist()
    [[0, 1, 3], [-1, 0, 2], [-3, -2, 0]]
    """
    n = table.shape[1]
    margins = np.zeros((n, n), np.int64)
    for rows in row_blocks(len(table), n * n):
        margins += pair_signs(table[rows]).sum(axis=0, dtype=np.int64)
    return margins


def answer_distances(first: Levels, second: Levels) -> Floats:
    """Return the normalised Kendall distance between each two answers to the same question.

    It is the mean over the pairs of items that at least one of the two answers orders: 0 if both
    have the same order, 1 if they have opposite orders, 1/2 if only one of them orders the pair.
    Equal answers have distance 0, random answers about 1/2. Answers that differ only in their
    length stay below 1/2.

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

    It is the mean over the pairs of items that the answer orders: 0 if more of the others agree
    than disagree, 1 if more disagree, 1/2 if equally many do. Whatever the others say, the mean
    distance of a random answer is exactly 1/2.

    Examples
    --------
    >>> distances_to_others(np.array([[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 1], [2, 1, 0]]))
    array([0., 0., 0., 0., 1.])
    """
    margins = pairwise_margins(table)
    distance = np.empty(len(table))
    for rows in row_blocks(len(table), margins.size):
        own = pair_signs(table[rows])
        agreed = (own * np.sign(margins - own)).sum(axis=(1, 2))
        distance[rows] = (1 - agreed / np.count_nonzero(own, axis=(1, 2))) / 2
    return distance


# ---- One rule each

RaterFlags = Iterator[tuple[str, Flag]]


def _flag_fast(answers: Sequence[Answer], rules: QualityRules) -> RaterFlags:
    given = Counter(answer.rater for answer in answers if answer.order)
    fast = Counter(
        answer.rater
        for answer in answers
        if answer.order and answer.seconds is not None and answer.seconds < rules.seconds
    )
    for rater, n in fast.items():
        if 2 * n >= given[rater]:
            text = f"{n} of {given[rater]} answers within {rules.seconds:g} seconds"
            yield rater, Flag("fast", text, n / given[rater])


def _flag_repeats(answers: Sequence[Answer], rules: QualityRules) -> RaterFlags:
    # Two answers of one item each say too little: somebody careful may choose another item.
    telling = [answer for answer in answers if len(answer.order) > 1]
    first = {(a.rater, a.question.key): a for a in telling if is_counted(a)}
    distances: dict[str, list[float]] = defaultdict(list)
    again = (a for a in telling if a.repeat and (a.rater, a.question.key) in first)
    for group in group_by_question(again):
        before = [first[answer.rater, answer.question.key] for answer in group]
        items = group[0].question.items
        apart = answer_distances(answer_levels(before, items), answer_levels(group, items)).tolist()
        for answer, distance in zip(group, apart, strict=True):
            distances[answer.rater].append(distance)
    for rater, theirs in distances.items():
        mean = fmean(theirs)
        if mean > rules.repeat_distance:
            what = f"{len(theirs)} repeated answers" if len(theirs) > 1 else "the repeated answer"
            text = f"{what} at a distance of {mean:.2f} from the first (at random: 0.50)"
            yield rater, Flag("repeats", text, mean)


def _flag_gold(answers: Sequence[Answer], rules: QualityRules) -> RaterFlags:
    gold = [answer for answer in answers if answer.question.is_gold and answer.order]
    asked = Counter(answer.rater for answer in gold)
    wrong = Counter(answer.rater for answer in gold if not is_right(answer))
    for rater, n in wrong.items():
        if n > rules.gold_failures:
            yield rater, Flag("gold", f"{n} of {asked[rater]} gold questions wrong", n)


def is_right(answer: Answer) -> bool:
    """Return whether no other item comes before one of the known items."""
    first = answer.question.first
    return set(answer.order[: len(first)]) <= set(first)


def _flag_distance(answers: Sequence[Answer], rules: QualityRules) -> RaterFlags:
    distances: dict[str, list[float]] = defaultdict(list)
    for group in group_by_question(filter(is_counted, answers)):
        if len(group) > LEAST_OTHERS:
            table = answer_levels(group, group[0].question.items)
            apart = distances_to_others(table).tolist()
            for answer, distance in zip(group, apart, strict=True):
                distances[answer.rater].append(distance)
    for rater, theirs in distances.items():
        mean = fmean(theirs)
        if len(theirs) >= LEAST_COMPARED and mean > rules.consensus_distance:
            text = (
                f"at a distance of {mean:.2f} from the majority of the others, over "
                f"{len(theirs)} questions (at random: 0.50)"
            )
            yield rater, Flag("distance", text, mean)


def _flag_identical(answers: Sequence[Answer], rules: QualityRules) -> RaterFlags:  # noqa: ARG001
    for rater, others in find_identical_raters([a for a in answers if is_counted(a)]).items():
        same = others[0]
        more = f" (and as {len(others) - 1} more)" if len(others) > 1 else ""
        text = (
            f"the same answers as {same.rater}{more} in all {same.n_shared} shared questions, "
            f"{same.n_places} places; by chance: {same.chance:.1g}"
        )
        yield rater, Flag("identical", text, same.chance)


def _flag_skips(answers: Sequence[Answer], rules: QualityRules) -> RaterFlags:  # noqa: ARG001
    asked = Counter(answer.rater for answer in answers)
    skipped = Counter(answer.rater for answer in answers if not answer.order)
    for rater, n in skipped.items():
        if 2 * n > asked[rater]:
            text = f"{n} of {asked[rater]} questions skipped"
            yield rater, Flag("skips", text, n / asked[rater])


# ---- Identical answers


class IdenticalRater(NamedTuple):
    """Another participant with the same answers to all shared questions.

    ``chance`` is an upper bound of the probability that this happens by chance.
    """

    chance: float
    rater: str
    n_shared: int
    n_places: int


def find_identical_raters(answers: Sequence[Answer]) -> dict[str, tuple[IdenticalRater, ...]]:
    """Return the participants who gave the same answers as others, and who these others are.

    Two participants are identical if they gave the same orders to all questions that both have
    answered, at least 3 questions and at least 8 places in total, and if this is unlikely to
    happen by chance. The least likely of the others comes first. ``answers`` has at most one by
    each participant to each question, and no skips.

    Careful people also agree if a question is easy. The other answers to the same question say
    how likely that is: if a and b answered independently, then b's answer is equally likely to be
    any of the answers that participants other than a gave. Of n answers in total, let m have the
    order that a and b share. Then the chance is (m - 1) / (n - 1), and for several questions it
    is the product. This assumes nothing about how people rank. The chance is multiplied by the
    number of participants that somebody is compared with. So somebody who answers independently
    is flagged with a probability of at most `MOST_CHANCE`.

    Examples
    --------
    >>> from itertools import permutations
    >>> from rankshot.survey import Question
    >>> asked = [Question(name, ("a", "b", "c", "d")) for name in ("cat", "dog", "owl", "elk")]
    >>> orders = [*permutations("abcd")][:20]
    >>> raters = {f"r{i}": order for i, order in enumerate([*orders, orders[7]])}
    >>> said = [Answer(rater, question, 1, False, question.items, order, 9.0, 0.0)
    ...         for rater, order in raters.items() for question in asked]
    >>> same = find_identical_raters(said)["r20"][0]
    >>> same.rater, same.n_shared, same.n_places, round(same.chance * 20**3, 9)
    ('r7', 4, 16, 1.0)
    """
    if not answers:
        return {}
    raters, one, other, shared, places, chance = _find_pairs(answers)
    found: dict[str, list[IdenticalRater]] = defaultdict(list)
    for row in np.flatnonzero(chance <= MOST_CHANCE).tolist():
        same = (float(chance[row]), raters[other[row]], int(shared[row]), int(places[row]))
        found[raters[one[row]]].append(IdenticalRater(*same))
    return {rater: tuple(sorted(theirs)) for rater, theirs in found.items()}


def _find_pairs(answers: Sequence[Answer]) -> tuple[Any, ...]:
    """Return the raters, and the pairs who gave the same answers to all shared questions.

    For each pair: the indices of the two, the number of shared questions, the number of places,
    and the chance.
    """
    raters, rater = _encode_labels(answer.rater for answer in answers)
    _, question = _encode_labels(answer.question.key for answer in answers)
    _, order = _encode_labels((answer.question.key, answer.order) for answer in answers)
    sharing = np.bincount(order)[order] - 1
    others = np.bincount(question)[question] - 1
    # An order that nobody else gave is in no pair, so that its chance is never used.
    log_chance = np.log(np.maximum(sharing, 1) / np.maximum(others, 1))
    length = np.array([len(answer.order) for answer in answers])
    ones = np.ones(len(answers), np.int64)
    answered = csr_array((ones, (rater, question)))
    gave, gave_length, gave_chance = (
        csr_array((values, (rater, order))) for values in (ones, length, log_chance)
    )
    n_compared = np.zeros(len(raters), np.int64)
    found = []
    # In blocks: one table of all pairs would grow with the square of the number of raters.
    for block in row_blocks(len(raters), 4 * len(raters)):
        # Few raters have several orders in common with somebody else: only these are compared.
        rows = np.unique(_find_common(gave, block))
        shared = (answered[rows] @ answered.T).toarray()
        shared[np.arange(len(rows)), rows] = 0
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
        found.append((rows[pair[0]], pair[1], shared[pair], places[pair], together[pair]))
    one, other, n_shared, n_places, log_p = (
        np.concatenate(part) for part in zip(*found, strict=True)
    )
    # Both get the larger number of comparisons, so that they are flagged together.
    chance = np.exp(log_p) * np.maximum(n_compared[one], n_compared[other])
    return raters, one, other, n_shared, n_places, chance


def _find_common(gave: csr_array, block: slice) -> NDArray[np.int64]:
    """Return the raters of a block who gave `LEAST_SHARED` of the orders of somebody else."""
    common = (gave[block] @ gave.T).tocoo()
    one, other = common.coords
    one = one + block.start
    return np.asarray(one[(common.data >= LEAST_SHARED) & (one != other)])


def _encode_labels(labels: Iterable[Label]) -> tuple[list[Label], NDArray[np.int64]]:
    """Return the different labels, and the index of each label among them."""
    code: dict[Label, int] = {}
    numbers = [code.setdefault(label, len(code)) for label in labels]
    return list(code), np.array(numbers, np.int64)
