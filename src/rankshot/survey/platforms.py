"""Where participants come from: a plain link or Prolific."""

from __future__ import annotations

import re
from typing import Annotated, NamedTuple
from urllib.parse import parse_qs, urlsplit

from pydantic import BaseModel, StringConstraints

from rankshot.core.errors import short_repr
from rankshot.survey.languages import ParticipantError

_ID = re.compile("[A-Za-z0-9_.:@-]{1,100}")
# How Prolific writes the ids of people, studies and submissions.
_PROLIFIC_ID = re.compile("[0-9a-f]{24}")
ShortText = Annotated[str, StringConstraints(max_length=200)]


class Arrival(BaseModel):
    """What the address of a visit says, and the form that starts repeats: names of platforms."""

    participant: ShortText = ""
    PROLIFIC_PID: ShortText = ""
    STUDY_ID: ShortText = ""
    SESSION_ID: ShortText = ""


class Visitor(NamedTuple):
    """The platform's id of a visitor, if there is one, and the columns that are stored of it."""

    participant: str | None
    columns: dict[str, str]

    @property
    def is_from_prolific(self) -> bool:
        """Whether the visit has all three ids of Prolific, in its format."""
        return len(self.columns) == 3 and all(map(_PROLIFIC_ID.fullmatch, self.columns.values()))


def read_visitor(platform: str, arrival: Arrival) -> Visitor:
    """Read the parameters that the platform has put into the URL."""
    if platform == "prolific":
        # What an address does not say does not erase what an earlier one said.
        given = {"platform_study": "STUDY_ID", "platform_session": "SESSION_ID"}
        columns = {
            column: _require_id(arrival, name)
            for column, name in given.items()
            if getattr(arrival, name)
        }
        participant = _require_id(arrival, "PROLIFIC_PID")
        return Visitor(participant, {"platform_id": participant, **columns})
    return Visitor(_require_id(arrival, "participant") if arrival.participant else None, {})


def _require_id(arrival: Arrival, name: str) -> str:
    value: str = getattr(arrival, name)
    if not value:
        raise ParticipantError("refused.no_id", name=name)
    if not _ID.fullmatch(value):
        raise ParticipantError("refused.bad_id", name=name, value=short_repr(value))
    return value


def participant_name(platform: str, participant: str) -> str:
    """Return the name of a participant; the database stores a keyed hash of it."""
    return f"{platform}:id:{participant}"


def pilot_name(participant: str) -> str:
    """Return the name of a participant in a pilot, who is a new one in the study itself."""
    return f"pilot:{participant}"


def read_completion_code(completion_url: str | None) -> str | None:
    """Return the code that Prolific has put into a completion URL (cc); None without one."""
    query = urlsplit(completion_url or "").query
    return next(iter(parse_qs(query).get("cc", [])), None)
