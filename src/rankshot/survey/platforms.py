"""Where participants come from, and go back to: a plain link, Prolific, Mechanical Turk."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from rankshot.core.errors import RankshotError, short_repr

ID_PARAMETER = {"none": "participant", "prolific": "PROLIFIC_PID", "mturk": "workerId"}
"""How each platform spells a participant's id in the address of the survey."""
TURK_HOSTS = ("https://www.mturk.com", "https://workersandbox.mturk.com")
"""Where Mechanical Turk takes tasks back; no form of ours goes anywhere else."""
TURK_FORM_ACTIONS = (*TURK_HOSTS, "https://worker.mturk.com")
"""The same for the content-security policy, to which Chromium holds redirects as well."""
PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
ID_PATTERN = "^[A-Za-z0-9_.:@-]{1,100}$"
_ID = re.compile(ID_PATTERN)


class TurkTask(NamedTuple):
    """A task of Mechanical Turk that is handed in at the end."""

    assignment: str
    host: str

    @property
    def action(self) -> str:
        """Return the address of the form that hands it in."""
        return f"{self.host}/mturk/externalSubmit"


@dataclass(frozen=True)
class Visitor:
    """Who opened the survey's address, as far as the platform tells.

    Attributes
    ----------
    participant : str or None
        The platform's id; None for a visitor of a plain link who has none.
    turk : TurkTask or None
    preview : bool
        Whether a worker only looks at the task, and has not taken it yet.
    """

    participant: str | None
    turk: TurkTask | None = None
    preview: bool = False


def read_visitor(platform: str, participant: str, assignment: str = "", submit_to: str = "") -> Visitor:
    """Read what the platform has put into the address.

    Raises
    ------
    RankshotError
        If something is missing or malformed: says how to open the survey.
    """
    if platform == "mturk":
        if assignment == PREVIEW:
            return Visitor(None, preview=True)
        host = _require_value("turkSubmitTo", submit_to).rstrip("/")
        if host not in TURK_HOSTS:
            raise RankshotError(
                f"turkSubmitTo is {short_repr(submit_to)}, not Mechanical Turk: "
                "open the survey from Mechanical Turk"
            )
        return Visitor(
            _require_id(ID_PARAMETER["mturk"], participant),
            TurkTask(_require_id("assignmentId", assignment), host),
        )
    if not participant and platform == "none":
        return Visitor(None)
    return Visitor(_require_id(ID_PARAMETER[platform], participant))


def participant_name(platform: str, participant: str) -> str:
    """Return the name whose hash stands for a platform's participant in the database."""
    return f"{platform}:id:{participant}"


def _require_value(name: str, value: str) -> str:
    if not value:
        raise RankshotError(f"the address lacks {name}: open the survey by the link you were given")
    return value


def _require_id(name: str, value: str) -> str:
    _require_value(name, value)
    if not _ID.fullmatch(value):
        raise RankshotError(
            f"{name} is {short_repr(value)}: letters, digits and . _ - : @, 100 at most"
        )
    return value
