"""Where participants come from, a plain link or a platform, and how they return there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, NamedTuple
from urllib.parse import parse_qs, quote, urlsplit

from pydantic import BaseModel, ConfigDict, StringConstraints

from rankshot.core.errors import short_repr
from rankshot_survey.languages import ParticipantError
from rankshot_survey.study import Study

_ID = re.compile("[A-Za-z0-9_.:@-]{1,100}")
_FIELD = re.compile(r"\{(\w+)\}")
# The columns of the database with the ids of a study, in the order of their names.
ID_COLUMNS = ("platform_id", "platform_study", "platform_session")
ShortText = Annotated[str, StringConstraints(max_length=200)]


class Arrival(BaseModel):
    """What the address of a visit says, and the form that starts repeats: ids by their names."""

    model_config = ConfigDict(extra="allow")

    def find_ids(self, study: Study) -> dict[str, str]:
        """Return the ids that the study asks for."""
        sent = self.model_extra or {}
        return {name: sent[name] for name in study.id_names if sent.get(name)}


class Visitor(NamedTuple):
    """The platform's id of a visitor, if there is one, and the columns that are stored of it."""

    participant: str | None
    columns: dict[str, str]


def read_visitor(study: Study, arrival: Arrival) -> Visitor:
    """Read the ids that the platform has put into the URL."""
    ids = arrival.find_ids(study)
    for name, value in ids.items():
        if not _ID.fullmatch(value):
            raise ParticipantError("refused.bad_id", name=name, value=short_repr(value))
    person = study.id_names[0]
    if study.platform == "none":
        return Visitor(ids.get(person), {})
    if person not in ids:
        raise ParticipantError("refused.no_id", name=person)
    # What an address does not say does not erase what an earlier one said.
    columns = zip(ID_COLUMNS, study.id_names, strict=False)
    return Visitor(ids[person], {c: ids[name] for c, name in columns if name in ids})


def fill_url(url: str, values: Mapping[str, str]) -> str:
    """Return a URL with the values of the names in braces, empty where there is none."""
    return _FIELD.sub(lambda field: quote(values.get(field[1], ""), safe=""), url)


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
