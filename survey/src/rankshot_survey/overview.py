"""What the researcher sees of a survey: answers, consensus and people, from one state of it."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, select

from rankshot.ranking import PlackettLuce, concordance
from rankshot.ranking.rater_agreement import merge_by_kemeny
from rankshot_survey.answers import Answer, as_rankings, group_by, is_counted
from rankshot_survey.quality import Flag, find_flags
from rankshot_survey.store.assignment import Load, count_answers, question_from_row
from rankshot_survey.store.database import ASSIGNMENT, PARTICIPANT, QUESTION, Database
from rankshot_survey.store.people import State, read_state
from rankshot_survey.study import Study


class TargetProgress(NamedTuple):
    """The result for one target so far.

    ``answered``, ``planned``, ``in_progress`` and ``skipped`` are of the questions of the study,
    without repeats. ``dropped`` counts the answers to questions that the study had before: they are
    part of the consensus.

    ``consensus`` has the items that somebody ranked, best first, and at the end those that nobody
    ranked, as a tie. If all answers show the same items, it is the Kemeny order, with ties of
    neighbours that equally many answers prefer; of more than 20 items, another order may be better.
    ``concordance`` is then Kendall's W; None if there is one answer.

    If answers show different items, it is the order of the worths of Plackett-Luce;
    `rankshot.leaderboard` of the exported rankings adds the intervals of the places.
    """

    target: str
    answered: int
    planned: int
    in_progress: int
    skipped: int
    dropped: int
    consensus: tuple[str | tuple[str, ...], ...] = ()
    concordance: float | None = None


class Participant(NamedTuple):
    """One participant: the row of the database, with times in Unix seconds, and what follows.

    ``state`` is "withdrawn", "excluded", "finished", "answered nothing" (came to the end without an
    answer that counts), "active" or "left": the first that is true. ``code`` is for completion.
    ``n_checks`` counts gold questions and repeats; ``seconds`` is the median per answer. Excluded
    participants have no flags.
    """

    row: Row[Any]
    code: str
    state: str
    n_answers: int
    n_checks: int
    n_skipped: int
    seconds: float | None
    flags: tuple[Flag, ...]

    @property
    def name(self) -> str:
        """The id by which the platform knows the participant, or the completion code."""
        return self.row.platform_id or self.code


@dataclass(frozen=True)
class Overview:
    """The progress and the answers of a survey, as the researcher sees them.

    Attributes
    ----------
    study : Study
    state : {"open", "pilot", "paused", "closed"}
    pilot, n_pilot : bool, int
        Whether this is about the pilot participants, or about all others; and how many pilot
        participants there are.
    people : dict
        All participants by rater, in the order in which they started.
    answers, excluded_answers : lists of Answer
        The answers of those who are not excluded, and of the others.
    flags : dict
        The flags of every rater who is not excluded.
    targets : tuple of TargetProgress
        In the order of the study; after them what it no longer contains. Excluded participants are
        not counted.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rankshot_survey import Database, Question, Study, read_overview
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> study = Study("Alike", "What is like {target}?", "Agreed?", cat.items, (cat,))
    >>> with TemporaryDirectory() as folder:
    ...     database = Database(Path(folder, "study.sqlite"), create=True)
    ...     view = read_overview(study, database, now=0.0)
    ...     database.close()
    >>> view.state, len(view.people), view.n_answers, view.n_planned
    ('open', 0, 0, 20)
    """

    study: Study
    state: State
    pilot: bool
    n_pilot: int
    people: dict[str, Participant]
    answers: list[Answer]
    excluded_answers: list[Answer]
    flags: dict[str, tuple[Flag, ...]]
    targets: tuple[TargetProgress, ...]

    @property
    def n_answers(self) -> int:
        """The number of answers, without skips, repeats and gold questions."""
        return sum(target.answered for target in self.targets)

    @property
    def n_planned(self) -> int:
        """The number of answers that the study plans."""
        return sum(target.planned for target in self.targets)

    @property
    def flagged(self) -> list[Participant]:
        """The participants with a flag who are not excluded, those with most flags first."""
        people = [person for rater, person in self.people.items() if self.flags.get(rater)]
        return sorted(people, key=lambda person: (-len(person.flags), person.row.rater))

    @property
    def counts(self) -> Counter[str]:
        """How many participants are in each state."""
        return Counter(person.state for person in self.people.values())


# ---- Reading


def read_overview(study: Study, database: Database, now: float, *, pilot: bool = False) -> Overview:
    """Read the database of a survey, and summarise it.

    Parameters
    ----------
    study : Study
    database : Database
    now : float
        The Unix time, which determines who is idle.
    pilot : bool
        Whether to read the participants of the pilot, in place of all others.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import time
    >>> from rankshot_survey import Database, Question, Study, read_overview
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> study = Study("Alike", "What is like {target}?", "Agreed?", cat.items, (cat,))
    >>> with TemporaryDirectory() as folder:
    ...     database = Database(Path(folder, "study.sqlite"), create=True)
    ...     view = read_overview(study, database, time.time())
    ...     database.close()
    >>> view.targets[0].target, view.targets[0].planned
    ('cat', 20)
    """
    with database.begin_read() as connection:
        in_order = select(PARTICIPANT).order_by(PARTICIPANT.c.started_at, PARTICIPANT.c.rater)
        rows: Sequence[Row[Any]] = connection.execute(in_order).all()
        n_pilot = sum(row.pilot for row in rows)
        rows = [row for row in rows if row.pilot == pilot]
        is_excluded = {row.rater: row.excluded_at is not None for row in rows}
        every_answer = read_answers(connection)
        answers = [answer for answer in every_answer if is_excluded.get(answer.rater) is False]
        excluded = [answer for answer in every_answer if is_excluded.get(answer.rater)]
        by_rater = group_by(every_answer, lambda answer: answer.rater)
        flags = find_flags(answers, study.quality)
        last_seen = now - 60 * study.return_after_minutes
        people = {
            row.rater: _describe_participant(
                row,
                by_rater[row.rater],
                is_active=row.seen_at >= last_seen,
                code=database.identity.code(row.rater),
                flags=flags.get(row.rater, ()),
            )
            for row in rows
        }
        loads = count_answers(connection, study, now, pilot=pilot)
        return Overview(
            study,
            read_state(connection),
            pilot,
            n_pilot,
            people,
            answers,
            excluded,
            flags,
            summarize_targets(study, answers, loads),
        )


def read_answers(connection: Connection) -> list[Answer]:
    """Return all answers, including skips, gold questions and repeats."""
    # Thousands of answers share few questions.
    asked = {row.key: question_from_row(row) for row in connection.execute(select(QUESTION))}
    names = ("rater", "question", "number", "repeat", "shown", "answer", "seconds", "answered_at")
    rows = connection.execute(
        select(*(ASSIGNMENT.c[name] for name in names))
        .where(ASSIGNMENT.c.answered_at.is_not(None))
        .order_by(ASSIGNMENT.c.rater, ASSIGNMENT.c.number)
    )
    return [
        Answer(rater, asked[key], number, bool(repeat), _parse(shown), _parse(order), *times)
        for rater, key, number, repeat, shown, order, *times in rows
    ]


def _parse(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


# ---- Summaries


def _describe_participant(
    row: Row[Any], answers: Sequence[Answer], *, is_active: bool, **more: Any
) -> Participant:
    n = sum(map(is_counted, answers))
    n_skipped = sum(not answer.order for answer in answers)
    times = [answer.seconds for answer in answers if answer.seconds is not None]
    ends = {
        "withdrawn": row.withdrawn_at,
        "excluded": row.excluded_at,
        "finished" if n else "answered nothing": row.finished_at,
    }
    ends_reached = [state for state, at in ends.items() if at is not None]
    return Participant(
        row,
        state=[*ends_reached, "active" if is_active else "left"][0],
        n_answers=n,
        n_checks=len(answers) - n - n_skipped,
        n_skipped=n_skipped,
        seconds=median(times) if times else None,
        **more,
    )


def summarize_targets(
    study: Study, answers: Iterable[Answer], loads: Mapping[str, Load]
) -> tuple[TargetProgress, ...]:
    """Summarise the answers to each target; ``loads`` says how many are to answer each question.

    Flagged participants count like all others.
    """
    counted = (answer for answer in answers if not (answer.repeat or answer.question.is_gold))
    said = group_by(counted, lambda answer: answer.question.target)
    asked = group_by(study.asked, lambda question: question.target)
    targets = []
    for target in dict.fromkeys([*asked, *sorted(said)]):
        parts, theirs = asked.get(target, []), said.get(target, [])
        ranked = [answer for answer in theirs if answer.order]
        keys = {part.key for part in parts}
        current = [answer for answer in theirs if answer.question.key in keys]
        answered = sum(bool(answer.order) for answer in current)
        questions = (*parts, *(answer.question for answer in ranked))
        items = sorted({item for question in questions for item in question.items})
        targets.append(
            TargetProgress(
                target,
                answered=answered,
                planned=study.answers_per_question * len(parts),
                in_progress=sum(loads[key].in_progress for key in keys if key in loads),
                skipped=len(current) - answered,
                dropped=len(ranked) - answered,
                **_merge_answers(ranked, items),
            )
        )
    return tuple(targets)


def _merge_answers(answers: Sequence[Answer], items: Sequence[str]) -> dict[str, Any]:
    """Return the consensus of the answers to one target, and their concordance."""
    if not answers:
        return {}
    rankings = as_rankings(answers, items)
    if len({frozenset(answer.shown) for answer in answers}) == 1:
        order: Sequence[Any] = merge_by_kemeny(rankings).orders()[0]
    else:
        with warnings.catch_warnings():
            # Of items that always won or lost.
            warnings.simplefilter("ignore")
            order = PlackettLuce().fit(rankings).mode_
    ranked = {item for answer in answers for item in answer.order}
    ties = [[tie] if isinstance(tie, str) else tie for tie in order]
    groups = [tuple(item for item in tie if item in ranked) for tie in ties]
    groups.append(tuple(item for item in items if item not in ranked))
    consensus = tuple(tie[0] if len(tie) == 1 else tie for tie in groups if tie)
    return {"consensus": consensus, "concordance": concordance(rankings)}
