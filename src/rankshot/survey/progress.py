"""The progress of a survey: answers per question, consensus per target, flags per rater."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, func, select

from rankshot.ranking.agreement import concordance
from rankshot.ranking.construction import encode_positions, validate_columns
from rankshot.ranking.matrices import ABSENT, NamedOrder, name_groups
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.rater_groups import RaterGroup, find_rater_groups
from rankshot.survey.answers import Answer, answer_levels, is_counted
from rankshot.survey.consensus import (
    Levels,
    consensus_places,
    leave_one_out_stability,
    pairwise_margins,
)
from rankshot.survey.quality import Flag
from rankshot.survey.store.assignment import (
    NO_ANSWER,
    question_from_row,
)
from rankshot.survey.store.database import ASSIGNMENT, PARTICIPANT, QUESTION
from rankshot.survey.study import Question, Study

FIRST_PLACES = 3
"""How many of the first places have a stability of their own."""


@dataclass(frozen=True)
class QuestionProgress:
    """The progress of one question.

    Attributes
    ----------
    question : Question
    answered : int
        Answers, without skips and repeats.
    planned : int
        The number of answers that the study plans.
    in_progress : int
        How many active participants have the question assigned and have not answered it yet.
    skipped : int
        How many participants skipped it.
    is_asked : bool
        False if the study no longer contains the question but the database has answers to it.
    """

    question: Question
    answered: int
    planned: int
    in_progress: int
    skipped: int
    is_asked: bool


@dataclass(frozen=True)
class TargetProgress:
    """The result for one target so far.

    Attributes
    ----------
    target : str
    n_answers : int
    planned, in_progress : int
        How many answers are planned, and how many active participants are still to answer:
        sums over the questions of the target that the study asks.
    consensus : tuple
        The Kemeny order of the items that somebody ranked. Neighbours are tied, as a tuple
        inside the tuple, if equally many answers prefer one and the other. Items that nobody
        ranked are tied at the end. Empty if there is no answer. If more than 15 items beat one
        another in a cycle, moving a single item does not improve their order, but another
        order may be better.
    stability : float or None
        The share of answers that can be left out, one at a time, with exactly the same
        consensus, ties included. At 1, no single answer changes anything. None if there are
        fewer than two answers.
    first_stability : float or None
        The same for the first three places, with every tie that begins in them.
    concordance : float or None
        Kendall's W within each set of shown items, averaged over the answers: 1 if all agree as
        far as they went, about 1/m if m answers are unrelated. None if no set has two answers.
    groups : tuple of RaterGroup
        The groups that the raters fall into; empty unless the evidence is clear. See
        `rankshot.ranking.rater_groups.find_rater_groups`.
    """

    target: str
    n_answers: int
    planned: int
    in_progress: int
    consensus: NamedOrder
    stability: float | None
    first_stability: float | None
    concordance: float | None
    groups: tuple[RaterGroup, ...]


@dataclass(frozen=True)
class RaterProgress:
    """The answers of one participant, in numbers.

    Attributes
    ----------
    rater : str
    n_answers : int
        Answers that count: no skips, gold questions and repeats.
    n_checks : int
        Answers to gold questions, and repeated answers.
    n_skipped : int
        Skips of any question.
    seconds : float or None
        The median of the known times per answer or skip.
    flags : tuple of Flag
    """

    rater: str
    n_answers: int
    n_checks: int
    n_skipped: int
    seconds: float | None
    flags: tuple[Flag, ...]


@dataclass(frozen=True)
class Progress:
    """The progress of a survey.

    Attributes
    ----------
    questions : tuple of QuestionProgress
        The questions of the study, in its order; after them those that it no longer contains.
    targets : tuple of TargetProgress
        In the same order.
    raters : tuple of RaterProgress
        Those with most flags first.
    """

    questions: tuple[QuestionProgress, ...]
    targets: tuple[TargetProgress, ...]
    raters: tuple[RaterProgress, ...]

    @property
    def n_answers(self) -> int:
        """The number of answers, without skips, repeats and gold questions."""
        return sum(question.answered for question in self.questions)

    @property
    def n_planned(self) -> int:
        """The number of answers that the study plans."""
        return sum(question.planned for question in self.questions)

    @property
    def flagged(self) -> tuple[RaterProgress, ...]:
        """The participants with a flag."""
        return tuple(rater for rater in self.raters if rater.flags)


def summarize_progress(
    study: Study,
    answers: Sequence[Answer],
    in_progress: Mapping[str, int],
    flags: Mapping[str, Sequence[Flag]],
    memo: TargetMemo | None = None,
) -> Progress:
    """Summarize a survey. Flagged participants count like all others.

    Parameters
    ----------
    study : Study
    answers : sequence of Answer
        All answers, skips included.
    in_progress : mapping
        For the key of a question: how many active participants are still to answer it.
    flags : mapping
        The flags of each participant; see `rankshot.survey.quality.find_flags`.
    memo : dict, optional
        Keeps the results of each target for the next call: a target whose answers are the same
        is not summarized again.

    Examples
    --------
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> study = Study("Animals", "Like {target}?", "Yes?", cat.items, "after", (cat,))
    >>> said = [Answer(rater, cat, 1, False, cat.items, ("fox", "leopard"), 7.0, 0.0)
    ...         for rater in ("a1", "a2")]
    >>> found = summarize_progress(study, said, {cat.key: 1}, {})
    >>> found.n_answers, found.n_planned, found.questions[0].in_progress
    (2, 20, 1)
    >>> found.targets[0].consensus, found.targets[0].stability, found.targets[0].concordance
    (('fox', 'leopard', 'bus'), 1.0, 1.0)
    """
    counted = [answer for answer in answers if is_counted(answer)]
    questions = _summarize_questions(study, answers, in_progress)
    rows: dict[str, list[QuestionProgress]] = defaultdict(list)
    for row in questions:
        rows[row.question.target].append(row)
    given: dict[str, list[Answer]] = defaultdict(list)
    for answer in counted:
        given[answer.question.target].append(answer)
    memo = {} if memo is None else memo
    return Progress(
        questions,
        tuple(
            _summarize_target(target, given[target], theirs, memo)
            for target, theirs in rows.items()
        ),
        summarize_raters(answers, flags),
    )


def _summarize_questions(
    study: Study, answers: Iterable[Answer], in_progress: Mapping[str, int]
) -> tuple[QuestionProgress, ...]:
    answered: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    asked = {question.key: question for question in study.questions}
    gone: dict[str, Question] = {}
    for answer in answers:
        question = answer.question
        if answer.repeat or question.is_gold:
            continue
        (answered if answer.order else skipped)[question.key] += 1
        if question.key not in asked:
            gone[question.key] = question
    old = sorted(gone.values(), key=lambda question: (question.target, sorted(question.items)))
    return tuple(
        QuestionProgress(
            question,
            answered[question.key],
            study.answers_per_question if question.key in asked else 0,
            in_progress.get(question.key, 0),
            skipped[question.key],
            is_asked=question.key in asked,
        )
        for question in (*study.questions, *old)
    )


def summarize_raters(
    answers: Iterable[Answer], flags: Mapping[str, Sequence[Flag]]
) -> tuple[RaterProgress, ...]:
    """Summarize the answers of each participant, those with most flags first."""
    theirs: dict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        theirs[answer.rater].append(answer)
    found = []
    for rater, given in theirs.items():
        n = sum(is_counted(answer) for answer in given)
        n_skipped = sum(not answer.order for answer in given)
        n_checks = len(given) - n - n_skipped
        times = [answer.seconds for answer in given if answer.seconds is not None]
        seconds = median(times) if times else None
        own = tuple(flags.get(rater, ()))
        found.append(RaterProgress(rater, n, n_checks, n_skipped, seconds, own))
    return tuple(sorted(found, key=lambda rater: (-len(rater.flags), rater.rater)))


# ---- One target


Results = tuple[NamedOrder, float | None, float | None, float | None, tuple[RaterGroup, ...]]
"""The consensus, its stability, that of the first places, Kendall's W, and groups of raters."""
TargetMemo = dict[str, tuple[tuple[object, ...], Results]]
"""For each target: what its results depend on, and these."""


def _summarize_target(
    target: str,
    answers: Sequence[Answer],
    questions: Iterable[QuestionProgress],
    memo: TargetMemo,
) -> TargetProgress:
    asked = [row for row in questions if row.is_asked]
    results = _merge_answers(target, answers, memo) if answers else ((), None, None, None, ())
    return TargetProgress(
        target,
        len(answers),
        sum(row.planned for row in asked),
        sum(row.in_progress for row in asked),
        *results,
    )


def _merge_answers(target: str, answers: Sequence[Answer], memo: TargetMemo) -> Results:
    # Questions may show different items. Shown items that an answer left unranked are tied after
    # its first K.
    questions = {answer.question.key: answer.question for answer in answers}
    items = tuple(sorted({item for question in questions.values() for item in question.items}))
    table = answer_levels(answers, items)
    n_ranked = np.array([len(answer.order) for answer in answers])
    raters = [answer.rater for answer in answers]
    key = (items, table.tobytes(), n_ranked.tobytes(), tuple(raters))
    if target not in memo or memo[target][0] != key:
        memo[target] = key, _merge_levels(table, n_ranked, items, raters)
    return memo[target][1]


def _merge_levels(
    table: Levels, n_ranked: NDArray[np.int64], items: tuple[str, ...], raters: list[str]
) -> Results:
    # Ranked items are not tied: an answer that ranks K items gives them the levels 0 to K - 1.
    is_ranked = (table != ABSENT) & (table < n_ranked[:, None])
    counts = is_ranked.sum(axis=0), (table != ABSENT).sum(axis=0)
    (places,) = consensus_places(pairwise_margins(table)[None], *(count[None] for count in counts))
    groups = [np.flatnonzero(places == place) for place in np.unique(places)]
    stability = leave_one_out_stability(table, is_ranked, places, FIRST_PLACES)
    # Without the checks of `Rankings.from_positions`: the levels are right.
    lists = encode_positions(table.astype(float), placed=table != ABSENT)
    columns = validate_columns(len(table), raters=raters, kind="subset")
    rankings = Rankings(items, *lists, lists.sizes, *columns).top(n_ranked)
    return (
        name_groups(groups, items),
        *(stability or (None, None)),
        concordance(rankings),
        find_rater_groups(rankings),
    )


# ---- From the database


def read_answers(connection: Connection) -> list[Answer]:
    """Return all answers, including skips, gold questions and repeats."""
    # Thousands of answers share few questions.
    asked = {row.key: question_from_row(row) for row in connection.execute(select(QUESTION))}
    names = ("rater", "question", "number", "repeat", "seconds", "answered_at", "shown_at")
    rows = connection.execute(
        select(ASSIGNMENT.c.shown, ASSIGNMENT.c.answer, *(ASSIGNMENT.c[name] for name in names))
        .where(ASSIGNMENT.c.answered_at.is_not(None))
        .order_by(ASSIGNMENT.c.rater, ASSIGNMENT.c.number)
    ).all()
    shown = _parse_lists(row[0] for row in rows)
    orders = _parse_lists(row[1] for row in rows)
    return [
        Answer(rater, asked[key], number, bool(repeat), tuple(items), tuple(order), *times)
        for (_, _, rater, key, number, repeat, *times), items, order in zip(
            rows, shown, orders, strict=True
        )
    ]


def _parse_lists(texts: Iterable[str]) -> list[list[str]]:
    """Parse many JSON lists; one call takes a third of the time of many."""
    parsed: list[list[str]] = json.loads(f"[{','.join(texts)}]")
    return parsed


def count_other_answers(connection: Connection, study: Study) -> int:
    """Count the answers that count, to questions that the study does not contain."""
    keys = {question.key for question in (*study.questions, *study.gold)}
    rows = connection.execute(
        select(ASSIGNMENT.c.question, func.count().label("n"))
        .join(PARTICIPANT)
        .where(ASSIGNMENT.c.answer != NO_ANSWER, ASSIGNMENT.c.repeat == 0)
        .where(PARTICIPANT.c.pilot == 0, PARTICIPANT.c.excluded_at.is_(None))
        .group_by(ASSIGNMENT.c.question)
    )
    return sum(row.n for row in rows if row.question not in keys)
