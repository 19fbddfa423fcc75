"""Quality checks: flags for participants whose answers look careless or copied.

A flag is a reason to look, not a verdict. No answer is dropped because of a flag unless the
researcher asks for it at the export.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from math import isnan
from statistics import fmean
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rankshot.core.arrays import row_blocks
from rankshot.ranking.distances import distances_to_majority, paired_distances
from rankshot_survey.answers import Answer, as_rankings, group_by, is_counted
from rankshot_survey.study import QualityRules

Label = TypeVar("Label", bound=Hashable)
Floats = NDArray[np.float64]
# The rule ``seconds`` holds for questions with at most this number of items.
USUAL_ITEMS = 10
# The distance to the others uses pairs of items that at least this many other answers compare.
LEAST_OTHERS = 3
# The flag "distance" needs at least this many such questions.
LEAST_COMPARED = 3
# Two participants are compared if they answered at least this many of the same questions.
LEAST_SHARED = 3
# The flag "identical" needs equal answers that fill at least this many places in total.
LEAST_PLACES = 8
# The largest probability with which an independent participant gets the flag "identical".
MOST_CHANCE = 0.01


class Flag(NamedTuple):
    """One reason to look at a participant's answers, in words, and the figure that was compared."""

    name: str
    text: str
    value: float


def find_flags(answers: Sequence[Answer], rules: QualityRules) -> dict[str, tuple[Flag, ...]]:
    """Return the flags of every participant; most have none.

    ========= ===================================================================================
    fast      at least half of the answers took less than ``rules.seconds``, which are for up to 10
              items; of 20 items, reading takes twice as long. An answer whose time is unknown
              does not count as fast
    repeats   the mean distance between first and repeated answers, of two items or more, is above
              ``rules.repeat_distance``
    gold      more than ``rules.gold_failures`` gold questions are wrong: the answer puts another
              item before one of the known items. The known items may come in any order, and an
              answer that stops among them is not wrong, because participants may stop early
    distance  the mean distance to the majority of the others is above
              ``rules.consensus_distance``. This needs at least 3 answers, and counts the pairs
              of items that at least 3 answers of others compare
    identical the same orders as another participant, more often than by chance
    skips     more than half of the questions were skipped
    ========= ===================================================================================

    A skipped question is not an answer: it is neither fast nor wrong. "distance" and "identical"
    use neither repeated answers nor gold questions; "skips" counts both.

    The guide on surveys reports how often the flags are correct in simulated studies, which
    ``survey/tests/test_quality.py`` repeats.
    """
    flags: dict[str, list[Flag]] = {answer.rater: [] for answer in answers}
    for rule in (
        _flag_fast,
        _flag_repeats,
        _flag_gold,
        _flag_distance,
        _flag_identical,
        _flag_skips,
    ):
        for rater, flag in rule(answers, rules):
            flags[rater].append(flag)
    return {rater: tuple(theirs) for rater, theirs in flags.items()}


# ---- One rule each

RaterFlags = Iterator[tuple[str, Flag]]


def _flag_fast(answers: Sequence[Answer], rules: QualityRules) -> RaterFlags:
    ranked = [answer for answer in answers if answer.order]
    least = {len(a.shown): rules.seconds * max(1.0, len(a.shown) / USUAL_ITEMS) for a in ranked}
    fast = [a for a in ranked if a.seconds is not None and a.seconds < least[len(a.shown)]]
    for rater, n, n_ranked in _count_by_rater(fast, ranked):
        if 2 * n >= n_ranked:
            most = max(least[len(answer.shown)] for answer in fast if answer.rater == rater)
            text = f"{n} of {n_ranked} answers within {most:g} seconds"
            yield rater, Flag("fast", text, n / n_ranked)


def _count_by_rater(
    some: Iterable[Answer], answers: Iterable[Answer]
) -> Iterator[tuple[str, int, int]]:
    """Yield each rater who has some of the answers with the number of these, and of all."""
    total = Counter(answer.rater for answer in answers)
    for rater, n in Counter(answer.rater for answer in some).items():
        yield rater, n, total[rater]


def _flag_repeats(answers: Sequence[Answer], rules: QualityRules) -> RaterFlags:
    # Two answers of one item each say too little: somebody careful may choose another item.
    telling = [answer for answer in answers if len(answer.order) > 1]
    first = {(a.rater, a.question.key): a for a in telling if is_counted(a)}
    again = [a for a in telling if a.repeat and (a.rater, a.question.key) in first]

    def compare(group: Sequence[Answer]) -> Floats:
        before = [first[answer.rater, answer.question.key] for answer in group]
        items = group[0].question.items
        return paired_distances(as_rankings(before, items), as_rankings(group, items))

    for rater, mean, n in _average_distances(again, compare):
        if mean > rules.repeat_distance:
            what = f"{n} repeated answers" if n > 1 else "the repeated answer"
            text = f"{what} at a distance of {mean:.2f} from the first (at random: 0.50)"
            yield rater, Flag("repeats", text, mean)


def _flag_gold(answers: Sequence[Answer], rules: QualityRules) -> RaterFlags:
    gold = [answer for answer in answers if answer.question.is_gold and answer.order]
    wrong = [answer for answer in gold if not is_correct(answer)]
    for rater, n, n_gold in _count_by_rater(wrong, gold):
        if n > rules.gold_failures:
            yield rater, Flag("gold", f"{n} of {n_gold} gold questions wrong", n)


def is_correct(answer: Answer) -> bool:
    """Return whether no other item comes before one of the known items."""
    levels, first = answer.levels, answer.question.first
    others = [level for item, level in levels.items() if item not in first]
    return max(levels[item] for item in first) <= min(others)


def _flag_distance(answers: Sequence[Answer], rules: QualityRules) -> RaterFlags:
    def compare(group: Sequence[Answer]) -> Floats:
        raters = [answer.rater for answer in group]
        rankings = as_rankings(group, group[0].question.items, raters)
        return distances_to_majority(rankings, LEAST_OTHERS)

    counted = filter(is_counted, answers)
    for rater, mean, n in _average_distances(counted, compare):
        if n >= LEAST_COMPARED and mean > rules.consensus_distance:
            text = (
                f"at a distance of {mean:.2f} from the majority of the others, over "
                f"{n} questions (at random: 0.50)"
            )
            yield rater, Flag("distance", text, mean)


def _average_distances(
    answers: Iterable[Answer], compare: Callable[[Sequence[Answer]], Floats]
) -> Iterator[tuple[str, float, int]]:
    """Yield each rater with the mean distance of their answers, and the number of these.

    An answer that cannot be compared has the distance NaN, and is left out.
    """
    distances: dict[str, list[float]] = defaultdict(list)
    for group in group_by(answers, lambda answer: answer.question.whole_key).values():
        for answer, distance in zip(group, compare(group).tolist(), strict=True):
            if not isnan(distance):
                distances[answer.rater].append(distance)
    for rater, theirs in distances.items():
        yield rater, fmean(theirs), len(theirs)


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
    skipped = [answer for answer in answers if not answer.order]
    for rater, n, n_asked in _count_by_rater(skipped, answers):
        if 2 * n > n_asked:
            yield rater, Flag("skips", f"{n} of {n_asked} questions skipped", n / n_asked)


# ---- Identical answers


class IdenticalRater(NamedTuple):
    """Another participant with the same answers to all shared questions; the chance of this."""

    chance: float
    rater: str
    n_shared: int
    n_places: int


def find_identical_raters(answers: Sequence[Answer]) -> dict[str, tuple[IdenticalRater, ...]]:
    """Return the participants who gave the same answers as others, and who these others are.

    Two participants are identical if they gave the same orders to all questions that both have
    answered with the same items, at least 3 questions and at least 8 places in total, and if this
    is unlikely to happen by chance. The least likely of the others comes first. ``answers`` has at
    most one by each participant to each question, and no skips.

    If a and b answered independently, b's answer is equally likely to be any of the answers that
    others than a gave. Of n answers, let m have the order that a and b share: the chance is
    (m - 1) / (n - 1), and for several questions it is the product, times the number of participants
    that somebody is compared with. So somebody who answers independently is flagged with a
    probability of at most `MOST_CHANCE`, however people rank.
    """
    if not answers:
        return {}
    raters, rater = _encode_labels(answer.rater for answer in answers)
    asked = [(answer.question.whole_key, tuple(sorted(answer.shown))) for answer in answers]
    _, question = _encode_labels(asked)
    _, order = _encode_labels((q, answer.order) for q, answer in zip(asked, answers, strict=True))
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
    pairs = []
    # In blocks: one table of all pairs would grow with the square of the number of raters.
    for block in row_blocks(len(raters), 4 * len(raters)):
        # Few raters have several orders in common with somebody else: only these are compared.
        common = (gave[block] @ gave.T).tocoo()
        first, second = common.coords
        first = first + block.start
        rows = np.unique(first[(common.data >= LEAST_SHARED) & (first != second)])
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
        pairs.append((rows[pair[0]], pair[1], shared[pair], places[pair], together[pair]))
    one, other, n_shared, n_places, log_p = (
        np.concatenate(part) for part in zip(*pairs, strict=True)
    )
    # Both get the larger number of comparisons, so that they are flagged together.
    chance = np.exp(log_p) * np.maximum(n_compared[one], n_compared[other])
    twins: dict[str, list[IdenticalRater]] = defaultdict(list)
    for row in np.flatnonzero(chance <= MOST_CHANCE).tolist():
        same = (float(chance[row]), raters[other[row]], int(n_shared[row]), int(n_places[row]))
        twins[raters[one[row]]].append(IdenticalRater(*same))
    return {rater: tuple(sorted(theirs)) for rater, theirs in twins.items()}


def _encode_labels(labels: Iterable[Label]) -> tuple[list[Label], NDArray[np.int64]]:
    """Return the different labels, and the index of each label among them."""
    code: dict[Label, int] = {}
    numbers = [code.setdefault(label, len(code)) for label in labels]
    return list(code), np.array(numbers, np.int64)
