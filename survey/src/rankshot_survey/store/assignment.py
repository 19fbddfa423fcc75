"""The assignment of questions: each participant gets those with the fewest answers so far.

A question with more items than a page has is asked in parts: each participant gets other sets of
its items.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, Row, and_, case, func, select

from rankshot_survey.store.database import ASSIGNMENT, PARTICIPANT
from rankshot_survey.study import Question, Study

# How a skipped question is stored. A skip does not count as an answer.
NO_ANSWER = "[]"
# More than the cost of any item of a set.
NEVER = np.iinfo(np.int64).max


def assign_questions(counts: Mapping[str, int], n: int, rng: Random) -> list[str]:
    """Choose n questions for one participant, or fewer if no more are left.

    ``counts`` has the answers given and in progress for each open question. Taking the n smallest
    counts, each once, keeps all counts within one of each other: if they were m or m + 1 before,
    the questions with m are taken first, and none with m + 1 is taken while one with m is left.
    Equal counts are chosen from at random.
    """
    open_questions = list(counts)
    rng.shuffle(open_questions)
    return sorted(open_questions, key=counts.__getitem__)[:n]


def insert_questions(
    connection: Connection,
    study: Study,
    rater: str,
    questions: Sequence[str],
    now: float,
    rng: Random,
) -> None:
    """Assign questions to a participant who has none, with gold questions and repeats.

    Gold questions come at random places. Repeats come last. They repeat the earliest questions,
    at most half of them, so that other questions come in between.
    """
    asked = {question.key: question for question in study.asked}
    gold = {q.key: q.items for q in study.gold}
    chosen = [asked[key] for key in questions]
    items = draw_items(connection, study, rater, chosen, now, rng) | gold
    turns = [*questions, *gold]
    rng.shuffle(turns)
    again = [key for key in turns if key not in gold][: min(study.repeats, len(questions) // 2)]
    rows = [
        {
            "rater": rater,
            "number": number,
            "question": key,
            "repeat": int(number > len(turns)),
            # At random, so that the order on the screen suggests no answer.
            "shown": json.dumps(rng.sample(items[key], len(items[key]))),
        }
        for number, key in enumerate([*turns, *again], 1)
    ]
    connection.execute(ASSIGNMENT.insert(), rows)


def drop_closed(
    connection: Connection, study: Study, loads: Mapping[str, Load], rows: Sequence[Row[Any]]
) -> None:
    """Drop the open questions of a participant that others have completed, and their repeats.

    ``rows`` are all assignments of the participant; ``loads`` has the answers of each question,
    without those that this participant is still to give. A question that the study does not contain
    any more stays as it is.
    """
    closed = loads.keys() - find_open(loads, study).keys()
    dropped = {
        row.question
        for row in rows
        if row.answered_at is None and not row.repeat and row.question in closed
    }
    asked = {row.question for row in rows} - {question.key for question in study.gold}
    which = ASSIGNMENT.c.question.in_(dropped)
    if asked <= dropped:
        # Gold questions alone are not worth asking.
        which = ASSIGNMENT.c.answered_at.is_(None)
    connection.execute(ASSIGNMENT.delete().where(ASSIGNMENT.c.rater == rows[0].rater, which))


# ---- Which items of a question are shown


def draw_items(
    connection: Connection,
    study: Study,
    rater: str,
    questions: Sequence[Question],
    now: float,
    rng: Random,
) -> dict[str, Sequence[str]]:
    """Return the items that each question shows to a participant, by its key."""
    shown: dict[str, Sequence[str]] = {q.key: q.items for q in questions if not q.show}
    drawn = [question for question in questions if question.show]
    for whole in dict.fromkeys(question.whole_key for question in drawn):
        parts = [question for question in drawn if question.whole_key == whole]
        every = {question.key for question in study.asked if question.whole_key == whole}
        items, show = parts[0].items, parts[0].show
        code = {item: number for number, item in enumerate(items)}
        own = np.zeros(len(items), np.int64)
        together = np.zeros((len(items), len(items)), np.int64)
        for somebody, names in _select_shown(connection, study, rater, every, now):
            codes = [code[name] for name in names]
            together[np.ix_(codes, codes)] += 1
            own[codes] += somebody == rater
        for part, codes in zip(parts, draw_sets(together, own, len(parts), show, rng), strict=True):
            shown[part.key] = [items[i] for i in codes]
    return shown


def _select_shown(
    connection: Connection, study: Study, rater: str, questions: Collection[str], now: float
) -> Iterator[tuple[str, list[str]]]:
    """Yield who was shown what of some questions, and has answered it or is expected to."""
    own = PARTICIPANT.alias()
    pilot = select(own.c.pilot).where(own.c.rater == rater).scalar_subquery()
    rows = connection.execute(
        select(ASSIGNMENT.c.rater, ASSIGNMENT.c.shown)
        .join(PARTICIPANT)
        .where(ASSIGNMENT.c.question.in_(questions), ASSIGNMENT.c.repeat == 0)
        .where(PARTICIPANT.c.pilot == pilot, COUNTS, IS_GIVEN | _is_expected(study, now))
    )
    return ((row.rater, json.loads(row.shown)) for row in rows)


def draw_sets(
    together: NDArray[np.int64], own: NDArray[np.int64], n: int, show: int, rng: Random
) -> list[list[int]]:
    """Draw n sets of items for one participant, so that all pairs are shown about equally often.

    ``together`` says how often two items were shown together, and on its diagonal how often each
    was shown; ``own`` says how often this participant had each item. A set takes the items that
    the participant had least often. Of these, the first is the one that was shown least often to
    anybody, and each further one that which was shown least often together with those before it.
    What is equal is chosen at random. Both arrays are changed.
    """
    sets, size = [], len(own)
    # One number per item orders by its own count, then by how often it met the others.
    span = show * (int(together.max()) + n) + 1
    for _ in range(n):
        chance = np.array(rng.sample(range(size), size))
        met = together.diagonal().copy()
        chosen: list[int] = []
        for _ in range(show):
            cost = (own * span + met) * size + chance
            cost[chosen] = NEVER
            best = int(cost.argmin())
            met = together[best] + (met if chosen else 0)
            chosen.append(best)
        own[chosen] += 1
        together[np.ix_(chosen, chosen)] += 1
        sets.append(chosen)
    return sets


# ---- Answer counts

# Which answers count, and whose.
IS_GIVEN = and_(ASSIGNMENT.c.answered_at.is_not(None), ASSIGNMENT.c.answer != NO_ANSWER)
COUNTS = PARTICIPANT.c.excluded_at.is_(None) & PARTICIPANT.c.withdrawn_at.is_(None)


class Load(NamedTuple):
    """How many have answered a question, and how many active participants are still to do so."""

    given: int
    in_progress: int


def count_answers(
    connection: Connection, study: Study, now: float, *, pilot: bool = False
) -> dict[str, Load]:
    """Count the answers of each question, without skips, repeats and who is excluded.

    An assigned question is in progress while its participant is expected (`_is_expected`).
    After that, others may get the question. Pilot participants are counted, or all others.
    """
    counts = (
        select(
            ASSIGNMENT.c.question,
            func.sum(case((IS_GIVEN, 1), else_=0)),
            func.sum(case((_is_expected(study, now), 1), else_=0)),
        )
        .join(PARTICIPANT)
        .where(ASSIGNMENT.c.repeat == 0, PARTICIPANT.c.pilot == int(pilot), COUNTS)
        .group_by(ASSIGNMENT.c.question)
    )
    loads = {key: Load(*load) for key, *load in connection.execute(counts)}
    return {question.key: loads.get(question.key, Load(0, 0)) for question in study.asked}


def _is_expected(study: Study, now: float) -> ColumnElement[bool]:
    """Return whether a question is still to be answered, by somebody who is active."""
    last_seen = now - 60 * study.return_after_minutes
    return ASSIGNMENT.c.answered_at.is_(None) & (PARTICIPANT.c.seen_at >= last_seen)


def find_open(loads: Mapping[str, Load], study: Study) -> dict[str, int]:
    """Return the questions that may be assigned, with their answers given and in progress.

    A question is closed when it has all its answers. Until then it may be assigned to
    ``spare_answers`` more participants than planned, so that those who replace others find a
    place.
    """
    most = study.answers_per_question + study.n_spare
    return {
        key: sum(load)
        for key, load in loads.items()
        if load.given < study.answers_per_question and sum(load) < most
    }


def question_from_row(row: Row[Any]) -> Question:
    """Return the question of a row that has the columns of the table ``question``."""
    listed = (tuple(json.loads(row.items)), tuple(json.loads(row.first)))
    return Question(row.target, *listed, row.show, row.part)
