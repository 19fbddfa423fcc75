"""What a researcher can do on the page: with participants, and with the whole survey."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from rankshot.core.errors import RankshotError, format_count
from rankshot.survey.overview import OverviewReader, Participant, find_id
from rankshot.survey.payment import decide_payments
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
from rankshot.survey.web.participant_table import ROWS, TableQuery

MOST_TEXT = 60_000
"""The most characters in a list of ids: a form has at most 64 KB."""
MOST_NAMED = 3_000
"""A form names at most so many raters; for more, it repeats how they were chosen."""


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
        "ids and records. Copies, such as backups and exported files, are not changed: the "
        "command “rankshot survey delete” with the option “--also” deletes from them as well.",
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


def _check_query(address: str) -> str:
    TableQuery.parse(address)
    return address


class ConfirmForm(SentForm):
    """What the page sends: an action, and to whom it applies."""

    form: FormNonce
    action: AnyAction
    rater: Annotated[list[Annotated[str, StringConstraints(max_length=100)]],
                     Field(max_length=ROWS)] = []  # noqa: RUF012 (a model copies its defaults)  # fmt: skip
    who: Names = ""
    everyone: Literal["yes", ""] = ""
    # What the table shows: whom "everyone" means, and where to go back to.
    query: Annotated[str, StringConstraints(max_length=2000), AfterValidator(_check_query)] = ""


class ActForm(ConfirmForm):
    """What the page that asks for a confirmation sends: the same, and who was shown on it."""

    why: Reason = ""
    seal: Annotated[str, StringConstraints(max_length=64)] = ""


@dataclass(frozen=True)
class Plan:
    """An action before it is confirmed.

    Attributes
    ----------
    name : str
    action : Action
    title, button : str
    people : list of Participant
        To whom it applies; empty if it concerns the whole survey.
    ids : list of str
        How the platform calls them.
    notes : list of str
        What else the researcher should know.
    fields : dict
        What the form repeats: to whom it applies.
    """

    name: str
    action: Action
    title: str
    button: str
    people: list[Participant]
    ids: list[str]
    notes: list[str]
    fields: dict[str, str]


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
            If nobody is chosen, somebody is unknown, or the action applies to nobody.
        """
        if form.action in STUDY_ACTIONS:
            if form.action == "reset" and not self._reader.read().n_pilot:
                raise RankshotError("There are no pilot participants")
            action = STUDY_ACTIONS[form.action]
            return Plan(form.action, action, f"{action.button}?", action.button, [], [], [], {})
        action = PARTICIPANT_ACTIONS[form.action]
        chosen = self._find_people(form)
        people = _select_applicable(form.action, chosen)
        button = f"{action.button} {format_count(len(people), 'participant')}"
        raters = [person.rater for person in people]
        fields = {"seal": _seal(raters)}
        if len(people) <= MOST_NAMED:
            fields["who"] = " ".join(raters)
        else:
            fields |= {"who": " ".join(_split_names(form.who)), "everyone": form.everyone}
        notes = self._describe_effects(form.action, chosen, people)
        ids = [find_id(person, self._database.identity) for person in people]
        return Plan(form.action, action, f"{button}?", button, people, ids, notes, fields)

    def _find_people(self, form: ConfirmForm) -> list[Participant]:
        names = [*form.rater, *_split_names(form.who)]
        if form.everyone:
            if form.who:
                raise RankshotError("Give either ids or all participants of the table, not both")
            query = TableQuery.parse(form.query)
            found = query.select(self._reader.read(pilot=query.pilot))
            if not found:
                raise RankshotError("The table is empty: change its filters")
            return found
        if not names:
            raise RankshotError(
                "No participant is chosen: mark rows of the table, or paste ids into the field"
            )
        with self._database.begin_read() as connection:
            raters = find_raters(connection, self._database.identity, self._study.platform, names)
        everybody = {**self._reader.read().people, **self._reader.read(pilot=True).people}
        return [everybody[rater] for rater in raters]

    def _describe_effects(
        self, action: str, chosen: Collection[Participant], people: Collection[Participant]
    ) -> list[str]:
        notes = []
        if others := len(chosen) - len(people):
            notes.append(f"{_count_people(others)} not excluded, and nothing changes for them.")
        if action not in {"exclude", "delete"}:
            return notes
        excluded = sum(person.excluded_at is not None for person in people)
        if action == "exclude" and excluded:
            notes.append(f"{_count_people(excluded)} excluded already: the reason is replaced.")
        # Who withdrew after the end is on the same list, excluded or not.
        moved = [one for one in people if action == "delete" or one.withdrawn_at is None]
        if unpaid := self._count_payable(person.rater for person in moved):
            who = "1 of them has" if unpaid == 1 else f"{unpaid:,} of them have"
            then = (
                "will be on the list of those to reject"
                if action == "exclude"
                else "will be on no list for payment any more: pay first, or note the ids below"
            )
            notes.append(f"{who} finished and would be paid, but {then}.")
        return notes

    def _count_payable(self, raters: Iterable[str]) -> int:
        payable: set[str] = set()
        for pilot in (False, True):
            found = decide_payments(self._reader.read(pilot=pilot))
            payable |= {pay.rater for pay in found if pay.decision in {"approve", "look at"}}
        return len(payable.intersection(raters))

    def run(self, form: ActForm) -> tuple[int, str | None]:
        """Do what was confirmed.

        Returns
        -------
        n : int
            How many participants it concerned.
        remains : str or None
            What could not be erased from the bytes of the database.

        Raises
        ------
        RankshotError
            If nothing could be done, or others would be meant now than when it was confirmed.
        """
        if form.action in STATE_AFTER:
            set_state(self._database, STATE_AFTER[form.action])  # type: ignore[arg-type]
            return 0, None
        if form.action == "reset":
            raters = list(self._reader.read(pilot=True).people)
        else:
            chosen = _select_applicable(form.action, self._find_people(form))
            raters = [person.rater for person in chosen]
            if _seal(raters) != form.seal:
                raise RankshotError(
                    "Other participants are meant now than when you were asked: choose them again"
                )
        done = self._do(form, raters)
        remains = self._database.remains if form.action in {"delete", "reset"} else None
        return len(done) if isinstance(done, list) else len(raters), remains

    def _do(self, form: ActForm, raters: list[str]) -> object:
        does: dict[str, Callable[[], object]] = {
            "exclude": lambda: exclude(self._database, raters, form.why),
            "restore": lambda: restore(self._database, raters),
            "reopen": lambda: reopen_participants(self._database, raters),
            "delete": lambda: delete_participants(self._database, raters),
            "reset": lambda: reset(self._database, pilot_only=True),
        }
        return does[form.action]()


def _split_names(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _select_applicable(action: str, people: list[Participant]) -> list[Participant]:
    """Return those to whom an action applies: nobody is restored who is not excluded."""
    if action != "restore":
        return people
    excluded = [person for person in people if person.excluded_at is not None]
    if not excluded:
        raise RankshotError("Nobody of them is excluded")
    return excluded


def _seal(raters: Iterable[str]) -> str:
    """Return a name of a set of raters, to see whether it is still the same."""
    return sha256(" ".join(sorted(raters)).encode()).hexdigest()


def _count_people(n: int) -> str:
    return "1 of them is" if n == 1 else f"{n:,} of them are"


def describe_done(action: str, n: int) -> str:
    """Return what is said after an action."""
    if action in STUDY_ACTIONS:
        return STUDY_ACTIONS[action].done
    if n == 0:
        return f"Nobody was {PARTICIPANT_ACTIONS[action].done}."
    verb = "was" if n == 1 else "were"
    return f"{format_count(n, 'participant')} {verb} {PARTICIPANT_ACTIONS[action].done}."
