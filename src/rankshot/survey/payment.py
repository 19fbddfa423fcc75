"""Who is paid: the lists by which a platform approves and rejects, in its own ids."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from rankshot.core.errors import RankshotError, format_count
from rankshot.survey.overview import Overview, Participant, read_overview
from rankshot.survey.raw_data import escape_formula
from rankshot.survey.store.database import Database
from rankshot.survey.study import Study

Decision = Literal["approve", "look at", "reject", "return", "wait"]
ID_NAME = {
    "prolific": "participant id",
    "mturk": "assignment id",
    "none": "completion code",
}
"""What the id of a payment is, for each platform."""
COLUMNS = ("id", "decision", "reason", "rater", "code", "session")


@dataclass(frozen=True)
class Payment:
    """Whether one participant is to be paid.

    Attributes
    ----------
    id : str or None
        By which the platform pays; see `ID_NAME`. None if the ids were forgotten.
    decision : {"approve", "look at", "reject", "return", "wait"}
        Approve: finished. Look at: finished, but flagged, or withdrew afterwards; the researcher
        decides. Reject: finished, but excluded. Return: withdrew or was excluded before the end,
        or answered nothing. Wait: has not finished; the platform ends such submissions itself.
    reason : str
        Why it is not simply approved.
    rater, code : str
    session : str or None
        The platform's id of the submission.
    """

    id: str | None
    decision: Decision
    reason: str
    rater: str
    code: str
    session: str | None


def decide_payments(view: Overview) -> list[Payment]:
    """Decide who is to be paid, in the order of the participants."""
    found = []
    for rater, person in view.people.items():
        code = view.codes[rater]
        ids = {
            "prolific": person.ids["platform_id"],
            "mturk": person.ids["turk_assignment"],
            "none": code,
        }
        decision, reason = _decide(person)
        session = person.ids["platform_session"]
        found.append(Payment(ids[view.study.platform], decision, reason, rater, code, session))
    return found


def _decide(person: Participant) -> tuple[Decision, str]:
    if person.finished_at is None:
        return _decide_before_the_end(person)
    if person.withdrawn_at is not None:
        # They had the code already, and may have sent it.
        return "look at", "withdrew after the end"
    if person.excluded_at is not None:
        return "reject", person.excluded_why
    if person.n_answers == 0:
        return "return", "answered nothing"
    if person.flags:
        return "look at", "; ".join(f"{flag.name}: {flag.text}" for flag in person.flags)
    return "approve", ""


def _decide_before_the_end(person: Participant) -> tuple[Decision, str]:
    if person.withdrawn_at is not None:
        return "return", "withdrew"
    if person.excluded_at is not None:
        return "return", f"excluded before the end: {person.excluded_why}"
    return "wait", "has not finished"


def read_payments(study: Study, database: Database, *, pilot: bool = False) -> list[Payment]:
    """Read the database of a survey, and decide who is to be paid.

    Parameters
    ----------
    study : Study
    database : Database
    pilot : bool
        Whether pilot participants are listed, or the others.
    """
    return decide_payments(read_overview(study, database, time.time(), pilot=pilot))


def format_payments(
    payments: Iterable[Payment], decisions: Collection[Decision], *, plain: bool = False
) -> str:
    """Return a list of participants as CSV, or as plain ids for a platform's bulk approval.

    Parameters
    ----------
    payments : iterable of Payment
    decisions : collection of str
        Which decisions are listed.
    plain : bool
        Whether only ids are listed, one per line.

    Raises
    ------
    RankshotError
        If the ids of the platform were forgotten.
    """
    chosen = [payment for payment in payments if payment.decision in decisions]
    lost = [payment for payment in chosen if payment.id is None]
    if lost:
        raise RankshotError(
            f"the ids of {format_count(len(lost), 'participant')} were erased "
            "(`rankshot survey forget-ids`): the platform cannot pay by this list"
        )
    if plain:
        return "".join(f"{payment.id}\n" for payment in chosen)
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(
        [escape_formula(getattr(payment, name) or "") for name in COLUMNS] for payment in chosen
    )
    return table.getvalue()
