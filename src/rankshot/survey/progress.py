"""How a survey stands: what there is of each question, and what the answers say so far."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from rankshot.ranking.concordance import concordance
from rankshot.ranking.layouts import ABSENT, NamedOrder, levels, name_groups
from rankshot.ranking.rankings import Rankings
from rankshot.survey.answers import Answer, by_question, is_counted
from rankshot.survey.export import Export, export_lines, ranking_of_shown
from rankshot.survey.pairwise import margins_of
from rankshot.survey.quality import Flag, flags
from rankshot.survey.stability import shares_that_stay, shown_places
from rankshot.survey.store.assignment import under_way
from rankshot.survey.store.collected import Participants, participants, read_answers
from rankshot.survey.store.database import Database
from rankshot.survey.study import Question, Study

FIRST_PLACES = 3
"""How many of the first places are watched by themselves."""


# -------------------- survey.standing
# How a survey stands: what there is of each question, and what the answers say so far.


@dataclass(frozen=True)
class QuestionStanding:
    """What there is of one question.

    Attributes
    ----------
    question : Question
    answered : int
        Answers, without skips and repeats.
    planned : int
        How many are wanted.
    live : int
        How many people have the question before them or ahead of them.
    skipped : int
        How many could not say.
    is_asked : bool
        False where the study no longer has the question, but answers to it.
    """

    question: Question
    answered: int
    planned: int
    live: int
    skipped: int
    is_asked: bool


@dataclass(frozen=True)
class TargetStanding:
    """What the answers say of one target so far.

    Attributes
    ----------
    target : str
    n_answers : int
    planned, live : int
        How many answers are wanted, and how many people are about to give one: summed over its
        questions that are asked.
    consensus : tuple
        Kemeny's order of the items that somebody ranked. Neighbours that as many answers put
        one way as the other are tied, and so are, at the end, the items that nobody ranked: a
        tuple inside the tuple. Empty where there is no answer. Where more than 15 items beat one
        another in a circle, their order is one that moving a single item does not improve; it
        need not be the best.
    stability : float or None
        Of all answers, the share without which exactly this consensus would be shown, ties
        included. At 1, no single answer decides anything. None below two answers.
    first_stability : float or None
        The same for the first three places, with every tie that begins in them.
    concordance : float or None
        Kendall's W within each question, averaged over the answers: 1 is agreement, 0 is none.
        None where no question has two answers.
    """

    target: str
    n_answers: int
    planned: int
    live: int
    consensus: NamedOrder
    stability: float | None
    first_stability: float | None
    concordance: float | None


@dataclass(frozen=True)
class RaterStanding:
    """What one participant has done.

    Attributes
    ----------
    rater : str
    n_answers, n_skipped : int
        Repeats and gold questions included.
    seconds : float
        The median time of an answer or skip.
    flags : tuple of Flag
    """

    rater: str
    n_answers: int
    n_skipped: int
    seconds: float
    flags: tuple[Flag, ...]


@dataclass(frozen=True)
class Standing:
    """How a survey stands.

    Attributes
    ----------
    questions : tuple of QuestionStanding
        Those of the study, in its order; after them those that it no longer has.
    targets : tuple of TargetStanding
        In the same order.
    raters : tuple of RaterStanding
        Those with most flags first.
    """

    questions: tuple[QuestionStanding, ...]
    targets: tuple[TargetStanding, ...]
    raters: tuple[RaterStanding, ...]

    @property
    def n_answers(self) -> int:
        """How many answers there are, without skips, repeats and gold questions."""
        return sum(question.answered for question in self.questions)

    @property
    def n_planned(self) -> int:
        """How many are wanted in all."""
        return sum(question.planned for question in self.questions)

    @property
    def flagged(self) -> tuple[RaterStanding, ...]:
        """The participants with a flag."""
        return tuple(rater for rater in self.raters if rater.flags)


def standing(
    study: Study,
    answers: Sequence[Answer],
    live: Mapping[str, int],
    flags: Mapping[str, Sequence[Flag]],
) -> Standing:
    """Sum up a survey. Flagged participants count as all others do.

    Parameters
    ----------
    study : Study
    answers : sequence of Answer
        All that were given, skips included.
    live : mapping
        By the key of a question: how many people are about to answer it.
    flags : mapping
        The flags of each participant; see `rankshot.survey.quality.flags`.

    Examples
    --------
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> study = Study("Animals", "Like {target}?", "Yes?", cat.items, "after", (cat,))
    >>> said = [Answer(rater, cat, 1, False, cat.items, ("fox", "leopard"), 7.0, 0.0)
    ...         for rater in ("a1", "a2")]
    >>> found = standing(study, said, {cat.key: 1}, {})
    >>> found.n_answers, found.n_planned, found.questions[0].live
    (2, 20, 1)
    >>> found.targets[0].consensus, found.targets[0].stability, found.targets[0].concordance
    (('fox', 'leopard', 'bus'), 1.0, 1.0)
    """
    counted = [answer for answer in answers if is_counted(answer)]
    questions = _questions(study, answers, live)
    rows: dict[str, list[QuestionStanding]] = defaultdict(list)
    for row in questions:
        rows[row.question.target].append(row)
    given: dict[str, list[Answer]] = defaultdict(list)
    for answer in counted:
        given[answer.question.target].append(answer)
    return Standing(
        questions,
        tuple(_target(target, given[target], theirs) for target, theirs in rows.items()),
        _raters(answers, flags),
    )


def _questions(
    study: Study, answers: Iterable[Answer], live: Mapping[str, int]
) -> tuple[QuestionStanding, ...]:
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
        QuestionStanding(
            question,
            answered[question.key],
            study.answers_per_question if question.key in asked else 0,
            live.get(question.key, 0),
            skipped[question.key],
            is_asked=question.key in asked,
        )
        for question in (*study.questions, *old)
    )


def _raters(
    answers: Iterable[Answer], flags: Mapping[str, Sequence[Flag]]
) -> tuple[RaterStanding, ...]:
    theirs: dict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        theirs[answer.rater].append(answer)
    found = []
    for rater, given in theirs.items():
        n = sum(bool(answer.order) for answer in given)
        seconds = median(answer.seconds for answer in given)
        found.append(RaterStanding(rater, n, len(given) - n, seconds, tuple(flags.get(rater, ()))))
    return tuple(sorted(found, key=lambda rater: (-len(rater.flags), rater.rater)))


# -------------------------------------------------------------------- a target


def _target(
    target: str, answers: Sequence[Answer], questions: Iterable[QuestionStanding]
) -> TargetStanding:
    asked = [row for row in questions if row.is_asked]
    consensus, stability, first_stability = _consensus(answers) if answers else ((), None, None)
    return TargetStanding(
        target,
        len(answers),
        sum(row.planned for row in asked),
        sum(row.live for row in asked),
        consensus,
        stability,
        first_stability,
        _concordance(answers),
    )


def _consensus(answers: Sequence[Answer]) -> tuple[NamedOrder, float | None, float | None]:
    """Return the consensus, its stability and that of the first places."""
    # Sets of items may differ. What was shown and not ranked comes last among what was shown.
    items = tuple(sorted({item for answer in answers for item in answer.question.items}))
    rankings = Rankings.from_orders(map(ranking_of_shown, answers), items=items, kind="subset")
    table = levels(rankings)
    # What is ranked has a place of its own: the K-th of an answer that ranks K has K - 1.
    n_ranked = np.array([len(answer.order) for answer in answers])
    is_ranked = (table != ABSENT) & (table < n_ranked[:, None])
    counts = is_ranked.sum(axis=0), (table != ABSENT).sum(axis=0)
    (places,) = shown_places(margins_of(table)[None], *(count[None] for count in counts))
    groups = [np.flatnonzero(places == place) for place in np.unique(places)]
    stays = shares_that_stay(table, is_ranked, places, FIRST_PLACES)
    return (name_groups(groups, items), *(stays or (None, None)))


def _concordance(answers: Iterable[Answer]) -> float | None:
    groups = [group for group in by_question(answers) if len(group) > 1]
    if not groups:
        return None
    within = [
        concordance(Rankings.from_orders([a.order for a in group], items=group[0].question.items))
        for group in groups
    ]
    return float(np.average(within, weights=[len(group) for group in groups]))


# -------------------- survey.overview
# All that a survey's researcher looks at, from one state of the database.


@dataclass(frozen=True)
class Overview:
    """How a survey stands.

    Attributes
    ----------
    study : Study
    answers : list of Answer
    participants : Participants
    flags : dict
        The flags of every rater.
    codes : dict
        The completion code of every rater, by which a platform knows them.
    standing : Standing
    """

    study: Study
    answers: list[Answer]
    participants: Participants
    flags: dict[str, tuple[Flag, ...]]
    codes: dict[str, str]
    standing: Standing

    def export(self, *, exclude_flagged: bool = False) -> Export:
        """Return the answers as lines of a rankings file."""
        return export_lines(self.study, self.answers, self.flags, exclude_flagged=exclude_flagged)


def overview(study: Study, database: Database, now: float) -> Overview:
    """Read and sum up what there is."""
    with database.reading() as connection:
        answers = read_answers(connection)
        people = participants(connection, study, now)
        live = under_way(connection, study, now)
    found = flags(answers, study.quality)
    return Overview(
        study,
        answers,
        people,
        found,
        {rater: database.identity.code(rater) for rater in found},
        standing(study, answers, live, found),
    )
