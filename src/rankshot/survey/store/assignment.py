"""The assignment of questions: each participant gets those with the fewest answers so far."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, and_, func, or_, select

from rankshot.survey.store.database import ASSIGNMENT, PARTICIPANT
from rankshot.survey.study import Question, Study

NO_ANSWER = "[]"
"""How a skipped question is stored. A skip does not count as an answer."""


class Turn(NamedTuple):
    """One question in the sequence of a participant."""

    question: str
    repeat: bool


def assign_questions(
    counts: Mapping[str, int], planned: int, n: int, seen: Collection[str], rng: Random
) -> list[str]:
    """Choose questions for one participant.

    Parameters
    ----------
    counts : mapping
        For the key of each question, the number of answers given and in progress.
    planned : int
        A question with this many answers is not assigned any more.
    n : int
        How many questions are wanted. Fewer are returned if no more are left.
    seen : collection of str
        Questions that this participant has had before.
    rng : Random
        Chooses among questions with equal counts.

    Notes
    -----
    Taking the n smallest counts, each once, keeps all counts within one of each other: if they
    were m or m + 1 before, the questions with m are taken first, and none with m + 1 is taken
    while one with m is left.

    Examples
    --------
    >>> assign_questions({"cat": 2, "dog": 1, "cow": 3}, planned=3, n=2, seen=[], rng=Random(0))
    ['dog', 'cat']
    """
    open_questions = [key for key, have in counts.items() if have < planned and key not in seen]
    rng.shuffle(open_questions)
    return sorted(open_questions, key=counts.__getitem__)[:n]


def arrange_turns(
    questions: Sequence[str], gold: Sequence[str], repeats: int, rng: Random
) -> list[Turn]:
    """Return the sequence of a participant's questions, gold questions and repeats.

    Gold questions come at random places. Repeats come last. They repeat the earliest questions,
    at most half of them, so that other questions come in between.
    """
    turns = [Turn(key, repeat=False) for key in (*questions, *gold)]
    rng.shuffle(turns)
    asked = set(questions)
    early = [turn.question for turn in turns if turn.question in asked]
    early = early[: min(repeats, len(early) // 2)]
    return turns + [Turn(key, repeat=True) for key in early]


def shuffle_items(items: Sequence[str], rng: Random) -> list[str]:
    """Return the items in a random order, so that the order on the screen suggests no answer."""
    return rng.sample(items, len(items))


# ---- Answer counts


def count_answers(connection: Connection, study: Study, now: float) -> dict[str, int]:
    """Return the number of answers given and in progress, for each question of the study.

    An assigned question is in progress while its participant is active. After an idle time of
    ``return_after_minutes`` it does not count any more, and others may get the question.
    """
    given = and_(ASSIGNMENT.c.answered_at.is_not(None), ASSIGNMENT.c.answer != NO_ANSWER)
    return _count_by_question(connection, study, or_(given, _is_in_progress(study, now)))


def count_in_progress(connection: Connection, study: Study, now: float) -> dict[str, int]:
    """Return how many active participants are still to answer each question of the study."""
    return _count_by_question(connection, study, _is_in_progress(study, now))


def idle_cutoff(study: Study, now: float, share: float = 1.0) -> float:
    """Return the time of the last activity before which a participant counts as having left.

    ``share`` is that of the idle time after which participants have left.
    """
    return now - share * 60 * study.return_after_minutes


def question_from_row(row: Row[tuple[object, ...]]) -> Question:
    """Return the question of a row that has the columns of the table ``question``."""
    return Question(row.target, tuple(json.loads(row.items)), tuple(json.loads(row.first)))


def _is_in_progress(study: Study, now: float) -> ColumnElement[bool]:
    is_active = PARTICIPANT.c.seen_at >= idle_cutoff(study, now)
    return and_(ASSIGNMENT.c.answered_at.is_(None), is_active)


def _count_by_question(
    connection: Connection, study: Study, condition: ColumnElement[bool]
) -> dict[str, int]:
    rows = connection.execute(
        select(ASSIGNMENT.c.question, func.count().label("n"))
        .join(PARTICIPANT)
        .where(ASSIGNMENT.c.repeat == 0, condition)
        .group_by(ASSIGNMENT.c.question)
    )
    found: dict[str, int] = {row.question: row.n for row in rows}
    return {question.key: found.get(question.key, 0) for question in study.questions}
