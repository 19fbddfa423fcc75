"""The table of participants on the researcher's page: filtered, sorted and cut into pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, get_args
from urllib.parse import parse_qsl, urlencode

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from rankshot.survey.overview import Overview, Participant

ROWS = 50
"""Rows per page: a form that selects all of them has fewer fields than the guard allows."""
StateFilter = Literal[
    "", "active", "finished", "answered nothing", "left", "withdrawn", "excluded"
]  # fmt: skip
FlagFilter = Literal["", "any", "none", "fast", "repeats", "gold", "distance", "identical", "skips"]
Column = Literal["rater", "id", "state", "start", "answers", "skipped", "seconds", "time", "flags"]
HEADINGS: dict[Column, str] = {
    "rater": "Rater",
    "id": "Id",
    "state": "State",
    "start": "Started (UTC)",
    "answers": "Answers",
    "skipped": "Skips",
    "seconds": "Median seconds",
    "time": "Total time",
    "flags": "Flags",
}
ID_HEADINGS = {"prolific": "Prolific id", "mturk": "Worker id", "none": "Code"}
"""What the id of a participant is, for each platform."""
NUMBERS = ("answers", "skipped", "seconds", "time")
"""Columns that are aligned at the end."""
Sort = Literal[
    "rater", "id", "state", "start", "answers", "skipped", "seconds", "time", "flags",
    "-rater", "-id", "-state", "-start", "-answers", "-skipped", "-seconds", "-time", "-flags",
]  # fmt: skip
DEFAULT_SORT: Sort = "-flags"


def format_time(at: float | None) -> str:
    """Return a Unix time for people, in UTC; a dash if there is none."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M") if at else "–"


def format_duration(seconds: float | None) -> str:
    """Return a duration in seconds as minutes and seconds, or hours and minutes.

    Examples
    --------
    >>> format_duration(67.2), format_duration(3 * 3600 + 120)
    ('1:07 min', '3:02 h')
    """
    if seconds is None:
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02} h"


FORMATS: dict[str, Any] = {"format_time": format_time, "format_duration": format_duration}
"""For templates."""


class TableQuery(BaseModel):
    """Which participants are shown, and in which order: the query of the page's address."""

    model_config = ConfigDict(extra="forbid")
    pilot: bool = False
    state: StateFilter = ""
    flag: FlagFilter = ""
    text: Annotated[str, StringConstraints(max_length=100)] = ""
    sort: Sort = DEFAULT_SORT
    page: Annotated[int, Field(ge=1, le=1_000_000)] = 1

    def address(self, **changes: object) -> str:
        """Return the query of an address, with some changes; defaults are left out."""
        usual = TableQuery().model_dump()
        # Fields of subclasses, such as what was done last, are of no use in another address.
        given = {name: getattr(self, name) for name in usual} | changes
        named = {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in given.items()
            if value != usual.get(name)
        }
        return f"?{urlencode(named)}" if named else "?"

    @classmethod
    def parse(cls, address: str) -> TableQuery:
        """Return the query that an address has after its question mark."""
        return cls.model_validate(dict(parse_qsl(address.removeprefix("?"))))

    def select(self, view: Overview) -> list[Participant]:
        """Return the participants that the filters keep, in the order of the table."""
        text = self.text.strip().lower()
        kept = [
            person
            for person in view.people.values()
            if self.state in {"", person.state}
            and _has_flag(person, self.flag)
            and (not text or _has_text(view, person, text))
        ]
        key = _sort_key(view, self.sort.removeprefix("-"))
        # What is unknown comes last, whichever way the table is sorted.
        known = [person for person in kept if key(person) is not None]
        unknown = [person for person in kept if key(person) is None]
        # Sorting is stable: equal rows stay in the order of their start.
        return sorted(known, key=key, reverse=self.sort.startswith("-")) + unknown


@dataclass(frozen=True)
class Heading:
    """One column's heading: what it says, how it is sorted now, and the address that sorts it."""

    text: str
    is_number: bool
    sorted: Literal["ascending", "descending"] | None
    address: str


@dataclass(frozen=True)
class ParticipantTable:
    """One page of the table.

    Attributes
    ----------
    query : TableQuery
    headings : list of Heading
    rows : list of Participant
    n_found : int
        How many participants the filters keep.
    page, n_pages : int
    """

    query: TableQuery
    headings: list[Heading]
    rows: list[Participant]
    n_found: int
    page: int
    n_pages: int

    @classmethod
    def make(cls, view: Overview, query: TableQuery) -> ParticipantTable:
        """Return the page of the table that a query names; the last one, if there are fewer."""
        found = query.select(view)
        n_pages = max(1, -(-len(found) // ROWS))
        page = min(query.page, n_pages)
        rows = found[(page - 1) * ROWS : page * ROWS]
        names = HEADINGS | {"id": ID_HEADINGS[view.study.platform]}
        headings = [_describe_heading(column, names[column], query) for column in HEADINGS]
        return cls(query, headings, rows, len(found), page, n_pages)


def _describe_heading(column: Column, name: str, query: TableQuery) -> Heading:
    # A column of numbers is sorted with the largest first, since these stand out.
    first, second = str(column), f"-{column}"
    if column in (*NUMBERS, "flags"):
        first, second = second, first
    address = query.address(sort=second if query.sort == first else first, page=1)
    direction: Literal["ascending", "descending"] | None = None
    if query.sort.removeprefix("-") == column:
        direction = "descending" if query.sort.startswith("-") else "ascending"
    return Heading(name, column in NUMBERS, direction, address)


def _has_flag(person: Participant, flag: str) -> bool:
    if flag in {"any", "none"}:
        return bool(person.flags) == (flag == "any")
    return not flag or any(found.name == flag for found in person.flags)


def _has_text(view: Overview, person: Participant, text: str) -> bool:
    """Return whether a participant's names, ids, reasons or extra answers contain a text."""
    texts = (
        person.rater,
        view.codes[person.rater],
        person.excluded_why,
        *person.ids.values(),
        *person.extra.values(),
        *(flag.text for flag in person.flags),
    )
    return any(text in found.lower() for found in texts if found)


def _sort_key(view: Overview, column: str) -> Callable[[Participant], Any]:
    keys: dict[str, Callable[[Participant], Any]] = {
        "rater": lambda person: person.rater,
        "id": lambda person: view.ids[person.rater],
        "state": lambda person: get_args(StateFilter).index(person.state),
        "start": lambda person: person.started_at,
        "answers": lambda person: person.n_answers,
        "skipped": lambda person: person.n_skipped,
        "seconds": lambda person: person.seconds,
        "time": lambda person: person.duration,
        "flags": lambda person: len(person.flags),
    }
    return keys[column]
