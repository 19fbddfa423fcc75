"""Where participants come from: a plain link, Prolific or Mechanical Turk."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

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


@dataclass(frozen=True)
class Visitor:
    """Who opened the survey, as far as the query parameters say.

    Attributes
    ----------
    participant : str or None
        The platform's id; None if a plain link has none.
    turk : TurkTask or None
    preview : bool
        Whether a worker looks at a preview of the task and has not accepted it yet.
    """

    participant: str | None
    turk: TurkTask | None = None
    preview: bool = False


def read_visitor(
    platform: str, participant: str, assignment: str = "", submit_to: str = ""
) -> Visitor:
    """Read the parameters that the platform has put into the URL.

    Raises
    ------
    ParticipantError
        If something is missing or malformed. It says how to open the survey.
    """
    if platform == "mturk":
        if assignment == PREVIEW:
            return Visitor(None, preview=True)
        host = _require_value("turkSubmitTo", submit_to).rstrip("/")
        if host not in TURK_HOSTS:
            value = short_repr(submit_to)
            raise ParticipantError("refused.bad_host", name="turkSubmitTo", value=value)
        return Visitor(
            _require_id(ID_PARAMETER["mturk"], participant),
            TurkTask(_require_id("assignmentId", assignment), host),
        )
    if not participant and platform == "none":
        return Visitor(None)
    return Visitor(_require_id(ID_PARAMETER[platform], participant))


def participant_name(platform: str, participant: str) -> str:
    """Return the name of a participant; the database stores a keyed hash of it."""
    return f"{platform}:id:{participant}"


def _require_value(name: str, value: str) -> str:
    if not value:
        raise ParticipantError("refused.no_id", name=name)
    return value


def _require_id(name: str, value: str) -> str:
    _require_value(name, value)
    if not _ID.fullmatch(value):
        raise ParticipantError("refused.bad_id", name=name, value=short_repr(value))
    return value
