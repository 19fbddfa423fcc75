"""All that a survey's researcher looks at, from one state of the database."""

from __future__ import annotations

from dataclasses import dataclass

from rankshot.survey.answers import Answer
from rankshot.survey.export import Export, export_lines
from rankshot.survey.quality import Flag, flags
from rankshot.survey.standing import Standing, standing
from rankshot.survey.store.collected import Participants, participants, read_answers
from rankshot.survey.store.database import Database
from rankshot.survey.store.loads import under_way
from rankshot.survey.study import Study


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
