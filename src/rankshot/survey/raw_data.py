"""The raw data of a survey: every answer and every participant, as CSV or JSON lines.

From it, flags and agreement can be computed again. JSON lines are for programs. CSV is for
spreadsheets, and made safe for them: see `format_csv`.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rankshot.core.files import replace_file, require_ending
from rankshot.survey.answers import Answer
from rankshot.survey.overview import Overview
from rankshot.survey.quality import is_right

Record = dict[str, Any]
ENDINGS = (".csv", ".jsonl")
MARK = "\ufeff"
"""Begins a CSV file: without it, spreadsheets do not take the text for UTF-8."""
LINES_PER_PART = 500
_DANGEROUS = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
# json.dumps would make an encoder for each value.
_ENCODE = json.JSONEncoder(ensure_ascii=False).encode
_NUMBER = re.compile(r"-?[0-9]+([.][0-9]+)?")


# ---- Records


def answer_records(view: Overview) -> Iterator[Record]:
    """Yield one record per answer, skips, repeats, gold questions and excluded raters included.

    ============ ================================================================================
    rater        who answered
    number       the number of the question in this rater's sequence, from 1
    question     the key of the question: the same for all raters
    target       what the items were compared with
    shown        all items, in the order of the screen
    order        the items that were ranked, best first
    skipped      whether the question was skipped; then the order is empty
    repeat       whether this is the second answer to a question that was asked twice
    gold         whether the right answer is known
    first        the items with which a right answer to a gold question begins
    right        whether a gold question was answered rightly; null for skips and other questions
    shown_at     when the question was first shown, as ISO 8601 in UTC
    answered_at  when the answer came
    seconds      the time in between, by a clock that is never set; null if it is unknown
    pilot        whether this is an answer of the pilot
    excluded     whether the rater is excluded
    flags        the names of the rater's flags; those who are excluded keep theirs
    language     the language of the pages
    ============ ================================================================================

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import time
    >>> from rankshot.survey import Database, Question, Study, answer_records, read_overview
    >>> from rankshot.survey.store.participation import Participation
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> study = Study("Alike", "What is like {target}?", "Agreed?", cat.items, "after", (cat,))
    >>> with TemporaryDirectory() as folder:
    ...     database = Database(Path(folder, "study.sqlite"), create=True)
    ...     visit = Participation(study, database)  # what the web pages call
    ...     rater = visit.start("none:id:ada")
    ...     asked = visit.current_question(rater)
    ...     places = ["1" if item == "leopard" else "" for item in asked.shown]
    ...     visit.submit(rater, asked.number, asked.form, places)
    ...     view = read_overview(study, database, time.time())
    ...     database.close()
    >>> for record in answer_records(view):
    ...     print(record["number"], record["target"], record["order"])
    1 cat ('leopard',)
    """
    for answer in sorted(
        [*view.answers, *view.excluded_answers], key=lambda answer: (answer.rater, answer.number)
    ):
        person = view.people[answer.rater]
        yield {
            "rater": answer.rater,
            "number": answer.number,
            "question": answer.question.key,
            "target": answer.question.target,
            "shown": answer.shown,
            "order": answer.order,
            "skipped": not answer.order,
            "repeat": answer.repeat,
            "gold": answer.question.is_gold,
            "first": answer.question.first,
            "right": _is_right_gold(answer),
            "shown_at": _format_time(answer.shown_at),
            "answered_at": _format_time(answer.answered_at),
            "seconds": None if answer.seconds is None else round(answer.seconds, 3),
            "pilot": person.pilot,
            "excluded": person.excluded_at is not None,
            "flags": [flag.name for flag in person.flags],
            "language": person.language,
        }


def participant_records(view: Overview, *, with_ids: bool = False) -> Iterator[Record]:
    """Yield one record per participant, in the order of their start.

    It has the rater, the completion code, the state, times as ISO 8601 in UTC, the reason of an
    exclusion, counts, the median seconds per answer, flags, and the answers to the extra
    questions: ``extra_age`` for a question with the name "age". ``answers`` counts neither gold
    questions nor repeats; ``gold_and_repeats`` counts these.

    Parameters
    ----------
    view : Overview
    with_ids : bool
        Whether the ids of the platform are included. They identify people.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import time
    >>> from rankshot.survey import Database, Question, Study, participant_records, read_overview
    >>> from rankshot.survey.store.participation import Participation
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> study = Study("Alike", "What is like {target}?", "Agreed?", cat.items, "after", (cat,))
    >>> with TemporaryDirectory() as folder:
    ...     database = Database(Path(folder, "study.sqlite"), create=True)
    ...     visit = Participation(study, database)  # what the web pages call
    ...     rater = visit.start("none:id:ada")
    ...     asked = visit.current_question(rater)
    ...     places = ["1" if item == "leopard" else "" for item in asked.shown]
    ...     visit.submit(rater, asked.number, asked.form, places)
    ...     view = read_overview(study, database, time.time())
    ...     database.close()
    >>> for record in participant_records(view):
    ...     print(record["state"], record["answers"])
    finished 1
    """
    names = [question.name for question in view.study.extra]
    others = {name for person in view.people.values() for name in person.extra} - set(names)
    for person in view.people.values():
        yield {
            "rater": person.rater,
            "code": view.codes[person.rater],
            **(person.ids if with_ids else {}),
            "state": person.state,
            "started_at": _format_time(person.started_at),
            "seen_at": _format_time(person.seen_at),
            "finished_at": _format_time(person.finished_at),
            "withdrawn_at": _format_time(person.withdrawn_at),
            "excluded_at": _format_time(person.excluded_at),
            "excluded_why": person.excluded_why or None,
            "pilot": person.pilot,
            "language": person.language,
            "answers": person.n_answers,
            "gold_and_repeats": person.n_checks,
            "skipped": person.n_skipped,
            "seconds": None if person.seconds is None else round(person.seconds, 3),
            "flags": [flag.name for flag in person.flags],
            **{f"extra_{name}": person.extra.get(name) for name in (*names, *sorted(others))},
        }


def _is_right_gold(answer: Answer) -> bool | None:
    return is_right(answer) if answer.question.is_gold and answer.order else None


def _format_time(at: float | None) -> str | None:
    """Return a Unix time as ISO 8601 in UTC, such as 2026-11-16T09:30:00.000Z.

    Examples
    --------
    >>> _format_time(1.5)
    '1970-01-01T00:00:01.500Z'
    """
    if not at:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


# ---- Text


def format_jsonl(records: Iterable[Record]) -> Iterator[str]:
    """Yield records as JSON, one per line, many lines at a time."""
    return _join_lines(_ENCODE(record) + "\n" for record in records)


def format_csv(records: Iterable[Record]) -> Iterator[str]:
    """Yield records as CSV, many lines at a time; the first line names the columns.

    The text begins with a byte-order mark. Lists are JSON, true and false are written so, and
    what is unknown is empty. A text that a spreadsheet could take for a formula (it begins with
    =, +, -, @, a tab or a line end, and is no number) gets an apostrophe before it.

    Examples
    --------
    >>> print("".join(format_csv([{"a": "=1+1", "b": ["x", "y"], "c": None}]))[1:])
    a,b,c
    '=1+1,"[""x"", ""y""]",
    <BLANKLINE>
    """
    return _join_lines(_csv_lines(records))


def _csv_lines(records: Iterable[Record]) -> Iterator[str]:
    line = io.StringIO()
    writer = csv.writer(line)
    for number, record in enumerate(records):
        if number == 0:
            line.write(MARK)
            writer.writerow(map(_safe_cell, record))
        writer.writerow(map(_safe_cell, record.values()))
        yield line.getvalue()
        line.seek(0)
        line.truncate()


def _safe_cell(value: Any) -> str:
    if value is None:
        return ""
    return escape_formula(value if isinstance(value, str) else _ENCODE(value))


def escape_formula(text: str) -> str:
    """Return the text of a cell that no spreadsheet takes for a formula; see `format_csv`.

    Examples
    --------
    >>> escape_formula("=1+1"), escape_formula("-5")
    ("'=1+1", '-5')
    """
    is_formula = _DANGEROUS.match(text) and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text


def _join_lines(lines: Iterable[str]) -> Iterator[str]:
    part: list[str] = []
    for line in lines:
        part.append(line)
        if len(part) == LINES_PER_PART:
            yield "".join(part)
            part.clear()
    yield "".join(part)


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write records to a .csv or .jsonl file, whole or not at all; only its owner may read it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rankshot.survey import write_records
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "answers.jsonl")
    ...     write_records(path, [{"rater": "a1", "target": "cat", "order": ["leopard", "fox"]}])
    ...     print(path.read_text().strip())
    {"rater": "a1", "target": "cat", "order": ["leopard", "fox"]}
    """
    format_records = format_csv if require_ending(path, ENDINGS) == ".csv" else format_jsonl
    with replace_file(path, private=True) as stream:
        stream.writelines(format_records(records))
