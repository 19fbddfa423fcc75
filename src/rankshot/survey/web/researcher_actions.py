"""What a researcher can do on the page: with participants, and with the whole survey."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from rankshot.core.errors import RankshotError, format_count
from rankshot.survey.overview import OverviewReader, Participant
from rankshot.survey.store.database import Database
from rankshot.survey.store.people import (
    MOST_REASON,
    delete_participants,
    exclude,
    find_raters,
    reopen_participants,
    reset,
    restore,
    set_state,
)
from rankshot.survey.study import Study
from rankshot.survey.web.pages import FormNonce, SentForm
from rankshot.survey.web.participant_table import ROWS, FlagFilter, StateFilter, TableQuery

MOST_TEXT = 60_000
"""The most characters in a list of ids: a form has at most 64 KB."""


@dataclass(frozen=True)
class Action:
    """An action: its button, what it will do, and what is said when it is done."""

    button: str
    effect: str
    done: str


PARTICIPANT_ACTIONS = {
    "exclude": Action(
        "Exclude",
        "The answers are kept but do not count any more: figures, rankings and consensus leave "
        "them out, and their questions are assigned to others.",
        "excluded",
    ),
    "restore": Action("Restore", "The answers count again.", "restored"),
    "reopen": Action(
        "Reopen",
        "Skipped questions are asked again. Somebody who has finished can go on, and somebody who "
        "has withdrawn can start again.",
        "reopened",
    ),
    "delete": Action(
        "Delete",
        "Everything about them is deleted from the database, for ever: answers, extra answers, "
        "ids and records. Copies, such as backups and exported files, are not changed: "
        "`rankshot survey delete --also` deletes from them as well.",
        "deleted",
    ),
}
STUDY_ACTIONS = {
    "open": Action(
        "Open", "Participants can start, and their answers count.", "The survey is open."
    ),
    "pilot": Action(
        "Start a pilot",
        "Those who start from now on are pilot participants. Their answers are marked, and never "
        "mixed with others.",
        "The survey is a pilot now.",
    ),
    "pause": Action(
        "Pause",
        "Nobody starts or goes on. An answer that is sent is still saved.",
        "The survey is paused.",
    ),
    "close": Action(
        "Close",
        "Nobody new starts. Those who have started may finish.",
        "The survey is closed.",
    ),
    "reset": Action(
        "Delete the pilot",
        "All pilot participants and their answers are deleted, for ever.",
        "The pilot is deleted.",
    ),
}
STATE_AFTER = {"open": "open", "pilot": "pilot", "pause": "paused", "close": "closed"}
ParticipantAction = Literal["exclude", "restore", "reopen", "delete"]
AnyAction = Literal[
    "exclude", "restore", "reopen", "delete", "open", "pilot", "pause", "close", "reset"
]
Reason = Annotated[str, StringConstraints(max_length=MOST_REASON)]
Names = Annotated[str, StringConstraints(max_length=MOST_TEXT)]


class ConfirmForm(SentForm):
    """What the page sends: an action, and to whom it applies."""

    form: FormNonce
    action: AnyAction
    rater: Annotated[list[Annotated[str, StringConstraints(max_length=100)]],
                     Field(max_length=ROWS)] = []  # noqa: RUF012 (a model copies its defaults)  # fmt: skip
    who: Names = ""
    everyone: Literal["yes", ""] = ""
    # The filters of the table, for everyone in it.
    pilot: bool = False
    state: StateFilter = ""
    flag: FlagFilter = ""
    text: Annotated[str, StringConstraints(max_length=100)] = ""


class ActForm(SentForm):
    """What the page that asks for a confirmation sends."""

    form: FormNonce
    action: AnyAction
    who: Names = ""
    why: Reason = ""
    pilot: bool = False


@dataclass(frozen=True)
class Plan:
    """An action before it is confirmed.

    Attributes
    ----------
    name : str
    action : Action
    people : list of Participant
        To whom it applies; empty if it concerns the whole survey.
    codes : list of str
        Their completion codes.
    title, button : str
    """

    name: str
    action: Action
    people: list[Participant]
    codes: list[str]
    title: str
    button: str


class Actions:
    """Plans and does what a researcher wants.

    Parameters
    ----------
    study : Study
    database : Database
    reader : OverviewReader
    """

    def __init__(self, study: Study, database: Database, reader: OverviewReader) -> None:
        self._study = study
        self._database = database
        self._reader = reader

    def plan(self, form: ConfirmForm) -> Plan:
        """Return what an action would do; nothing is changed.

        Raises
        ------
        RankshotError
            If nobody is chosen, or somebody is unknown.
        """
        if form.action in STUDY_ACTIONS:
            action = STUDY_ACTIONS[form.action]
            return Plan(form.action, action, [], [], f"{action.button}?", action.button)
        action = PARTICIPANT_ACTIONS[form.action]
        people = self._find_people(form)
        button = f"{action.button} {format_count(len(people), 'participant')}"
        codes = [self._database.identity.code(person.rater) for person in people]
        return Plan(form.action, action, people, codes, f"{button}?", button)

    def _find_people(self, form: ConfirmForm) -> list[Participant]:
        if form.everyone:
            query = TableQuery(pilot=form.pilot, state=form.state, flag=form.flag, text=form.text)
            found = query.select(self._reader.read(pilot=form.pilot))
            if not found:
                raise RankshotError("The table is empty: change its filters")
            return found
        names = [*form.rater, *form.who.replace(",", " ").split()]
        if not names:
            raise RankshotError(
                "No participant is chosen: mark rows of the table, or paste ids into the field"
            )
        with self._database.begin_read() as connection:
            raters = find_raters(connection, self._database.identity, self._study.platform, names)
        everybody = {**self._reader.read().people, **self._reader.read(pilot=True).people}
        return [everybody[rater] for rater in raters]

    def run(self, form: ActForm) -> int:
        """Do what was confirmed; return how many participants it changed."""
        n = self._run(form)
        if form.action in ("delete", "reset") and self._database.remains is not None:
            logging.getLogger(__name__).warning(self._database.remains)
        return n

    def _run(self, form: ActForm) -> int:
        if form.action == "reset":
            return reset(self._database, pilot_only=True)
        if form.action in STATE_AFTER:
            set_state(self._database, STATE_AFTER[form.action])  # type: ignore[arg-type]
            return 0
        raters = form.who.split()
        if form.action == "exclude":
            return len(exclude(self._database, raters, form.why))
        if form.action == "delete":
            delete_participants(self._database, raters)
            return len(raters)
        return len(
            {"restore": restore, "reopen": reopen_participants}[form.action](self._database, raters)
        )


def describe_done(action: str, n: int) -> str:
    """Return what is said after an action."""
    if action in STUDY_ACTIONS:
        return STUDY_ACTIONS[action].done
    if n == 0:
        return f"Nobody was {PARTICIPANT_ACTIONS[action].done}."
    verb = "was" if n == 1 else "were"
    return f"{format_count(n, 'participant')} {verb} {PARTICIPANT_ACTIONS[action].done}."
