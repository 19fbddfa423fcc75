"""Where participants come from: a plain link, Prolific or Mechanical Turk."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from rankshot.core.errors import short_repr
from rankshot.survey.languages import ParticipantError

ID_PARAMETER = {"none": "participant", "prolific": "PROLIFIC_PID", "mturk": "workerId"}
"""The query parameter with the participant's id, for each platform."""
TURK_HOSTS = ("https://www.mturk.com", "https://workersandbox.mturk.com")
"""The hosts to which a Mechanical Turk task may be submitted; forms go to no other host."""
TURK_FORM_ACTIONS = (*TURK_HOSTS, "https://worker.mturk.com")
"""The same for the content-security policy. Chromium also applies it to redirects."""
PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
"""The assignment id that Mechanical Turk sends before a worker accepts the task."""
ID_PATTERN = "^[A-Za-z0-9_.:@-]{1,100}$"
_ID = re.compile(ID_PATTERN)


class TurkTask(NamedTuple):
    """A Mechanical Turk task that is submitted at the end."""

    assignment: str
    host: str

    @property
    def action(self) -> str:
        """Return the URL to which the form that submits the task is sent."""
        return f"{self.host}/mturk/externalSubmit"

    def columns(self) -> dict[str, str | None]:
        """Return the columns of the participant in the database."""
        return {"turk_assignment": self.assignment, "turk_host": self.host}


class ProlificSession(NamedTuple):
    """Who takes part in which study of Prolific, and the submission that is paid."""

    participant: str
    study: str | None
    session: str | None

    def columns(self) -> dict[str, str | None]:
        """Return the columns of the participant in the database.

        What an address does not say is left out, so that it does not erase what an earlier one
        said.
        """
        given = {
            "platform_id": self.participant,
            "platform_study": self.study,
            "platform_session": self.session,
        }
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class Arrival:
    """What the address of a visit says, or the form that starts.

    Attributes
    ----------
    participant : str
        The platform's id.
    assignment, submit_to : str
        For Mechanical Turk: the task, and where it is submitted.
    study, session : str
        For Prolific: STUDY_ID and SESSION_ID.
    """

    participant: str = ""
    assignment: str = ""
    submit_to: str = ""
    study: str = ""
    session: str = ""


@dataclass(frozen=True)
class Visitor:
    """Who opened the survey, as far as the query parameters say.

    Attributes
    ----------
    participant : str or None
        The platform's id; None if a plain link has none.
    turk : TurkTask or None
    session : ProlificSession or None
    """

    participant: str | None
    turk: TurkTask | None = None
    session: ProlificSession | None = None


def read_visitor(platform: str, arrival: Arrival) -> Visitor:
    """Read the parameters that the platform has put into the URL.

    Raises
    ------
    ParticipantError
        If something is missing or malformed. It says how to open the survey.
    """
    given = arrival.participant
    if platform == "mturk":
        if arrival.assignment == PREVIEW:
            raise ParticipantError("refused.preview")
        host = _require_value("turkSubmitTo", arrival.submit_to).rstrip("/")
        if host not in TURK_HOSTS:
            value = short_repr(arrival.submit_to)
            raise ParticipantError("refused.bad_host", name="turkSubmitTo", value=value)
        return Visitor(
            _require_id(ID_PARAMETER["mturk"], given),
            TurkTask(_require_id("assignmentId", arrival.assignment), host),
        )
    if platform == "prolific":
        session = ProlificSession(
            _require_id(ID_PARAMETER["prolific"], given),
            _read_id("STUDY_ID", arrival.study),
            _read_id("SESSION_ID", arrival.session),
        )
        return Visitor(given, session=session)
    return Visitor(_read_id(ID_PARAMETER["none"], given))


def participant_name(platform: str, participant: str) -> str:
    """Return the name of a participant; the database stores a keyed hash of it."""
    return f"{platform}:id:{participant}"


def pilot_name(participant: str) -> str:
    """Return the name of a participant in a pilot, who is a new one in the study itself."""
    return f"pilot:{participant}"


def read_completion_code(completion_url: str | None) -> str | None:
    """Return the code that Prolific has put into a completion URL (cc); None without one.

    Examples
    --------
    >>> read_completion_code("https://app.prolific.com/submissions/complete?cc=C1A2B3")
    'C1A2B3'
    """
    query = urlsplit(completion_url or "").query
    return next(iter(parse_qs(query).get("cc", [])), None)


def _require_value(name: str, value: str) -> str:
    if not value:
        raise ParticipantError("refused.no_id", name=name)
    return value


def _require_id(name: str, value: str) -> str:
    _require_value(name, value)
    if not _ID.fullmatch(value):
        raise ParticipantError("refused.bad_id", name=name, value=short_repr(value))
    return value


def _read_id(name: str, value: str) -> str | None:
    return _require_id(name, value) if value else None
