"""The files of a survey: rankings, raw data, and lists for payment.

JSON lines are for programs. CSV is for spreadsheets, and made safe for them: see `format_csv`.
"""

from __future__ import annotations

import io
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from rankshot.core.errors import NO_VALUE, InputError, suggest_name
from rankshot.core.files import replace_file, require_ending
from rankshot.core.tables import open_csv_writer
from rankshot_survey.answers import Answer, is_counted
from rankshot_survey.overview import Overview, Participant
from rankshot_survey.quality import Flag, is_correct
from rankshot_survey.study import Study

SOURCE = "survey"
TIMES = ("started_at", "seen_at", "finished_at", "withdrawn_at", "excluded_at")
Record = dict[str, object]
# Begins a CSV file: without it, spreadsheets do not read the text as UTF-8.
MARK = "\ufeff"
# A separator or an invisible character before the sign does not make it harmless.
_DANGEROUS = re.compile(r"[\s;,|\u200b-\u200f\u2060\ufeff]*[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"-?[0-9]+([.][0-9]+)?")
Decision = Literal["approve", "look at", "reject", "return", "wait"]


# ---- Rankings


def ranking_records(
    study: Study,
    answers: Sequence[Answer],
    flags: Mapping[str, Sequence[Flag]],
    *,
    exclude_flagged: bool = False,
) -> list[Record]:
    """Return the answers as records of a rankings file.

    A ranking is a top-K list of all the study's items if the question showed all of them, or if
    the items that were not shown come after those that were (``study.unshown`` is "after").
    Otherwise, and for a target whose questions show different items, it is a ranking of the subset
    shown, with the unranked items tied at its end, and ``k`` is the number of ranked items, if not
    all are. Skips, repeated answers and answers to gold questions are left out.

    Parameters
    ----------
    study : Study
    answers : sequence of Answer
        All answers.
    flags : mapping
        The flags of each participant, as in an `Overview`.
    exclude_flagged : bool
        Leave out the answers of participants with a flag.

    Examples
    --------
    >>> from rankshot_survey import Answer, Question, Study, ranking_records
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> study = Study("Animals", "Like {target}?", "Yes?", (*cat.items, "cup"), (cat,), "unknown")
    >>> said = Answer("a1", cat, 1, False, ("fox", "bus", "leopard"), ("leopard",), 7.25, 0.0)
    >>> for key, value in ranking_records(study, [said], {})[0].items():
    ...     print(key, value)
    target cat
    ranking ['leopard', ['bus', 'fox']]
    source survey
    rater a1
    kind subset
    k 1
    shown ('fox', 'bus', 'leopard')
    seconds 7.2
    """
    counted = [answer for answer in answers if is_counted(answer)]
    kept = [a for a in counted if not (exclude_flagged and flags.get(a.rater))]
    if not kept:
        rule = f"are none to export: {len(counted)} of {len(answers)} count"
        raise InputError("answers", NO_VALUE, rule)
    items = set(study.items)
    if odd := [(a, name) for a in kept for name in a.shown if name not in items]:
        answer, name = odd[0]
        where = f"an answer to {answer.question.target!r}"
        hint = suggest_name(name, study.items).strip(" ()")
        raise InputError("items.names", name, "is no longer in the study", where, hint)
    # Of all answers: leaving out flagged participants does not change what an answer means.
    sets: dict[str, set[frozenset[str]]] = defaultdict(set)
    for question in (*study.asked, *(answer.question for answer in counted)):
        sets[question.target].add(frozenset(question.items))
    records = []
    for answer in kept:
        target, theirs = answer.question.target, flags.get(answer.rater, ())
        after = study.unshown == "after" and len(sets[target]) == 1
        is_top = after or set(answer.shown) >= items
        last = len(answer.order)
        left = sorted(item for item, level in answer.levels.items() if level == last)
        tie = [left] if len(left) > 1 else left
        record: Record = {
            "target": target,
            "ranking": answer.order if is_top else [*answer.order, *tie],
            "source": SOURCE,
            "rater": answer.rater,
            **({} if set(answer.shown) >= items else {"kind": "top" if is_top else "subset"}),
            **({} if is_top or not left else {"k": len(answer.order)}),
            "shown": answer.shown,
            "seconds": _round(answer.seconds, 1),
            **({"flags": [flag.name for flag in theirs]} if theirs else {}),
        }
        records.append(record)
    return records


# ---- Raw data


def answer_records(view: Overview) -> Iterator[Record]:
    """Yield one record per answer, skips, repeats, gold questions and excluded raters included.

    ``correct`` is whether a gold question was answered correctly, and null for others.
    """
    answers = [*view.answers, *view.excluded_answers]
    for answer in sorted(answers, key=lambda answer: (answer.rater, answer.number)):
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
            "correct": is_correct(answer) if answer.question.is_gold and answer.order else None,
            "answered_at": _format_time(answer.answered_at),
            "seconds": _round(answer.seconds, 3),
            "pilot": bool(person.row.pilot),
            "excluded": person.row.excluded_at is not None,
            "flags": [flag.name for flag in person.flags],
            "language": person.row.language,
        }


def participant_records(view: Overview) -> Iterator[Record]:
    """Yield one record per participant, in the order of their start.

    ``answers`` counts neither gold questions nor repeats; ``gold_and_repeats`` counts these.
    """
    for rater, person in view.people.items():
        yield {
            "rater": rater,
            "code": person.code,
            "state": person.state,
            **{name: _format_time(getattr(person.row, name)) for name in TIMES},
            "excluded_why": person.row.excluded_why,
            "pilot": bool(person.row.pilot),
            "language": person.row.language,
            "answers": person.n_answers,
            "gold_and_repeats": person.n_checks,
            "skipped": person.n_skipped,
            "seconds": _round(person.seconds, 3),
            "flags": [flag.name for flag in person.flags],
        }


def _format_time(at: float | None) -> str | None:
    """Return a Unix time as ISO 8601 in UTC, such as 2026-11-16T09:30:00.000Z."""
    if not at:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def _round(seconds: float | None, digits: int) -> float | None:
    return None if seconds is None else round(seconds, digits)


def make_records(view: Overview, kind: str, *, exclude_flagged: bool = False) -> list[Record]:
    """Return the records of a file: rankings, answers, participants or payments."""
    if not view.people:
        raise InputError("study", NO_VALUE, "has no participants yet")
    if kind == "rankings":
        return ranking_records(
            view.study, view.answers, view.flags, exclude_flagged=exclude_flagged
        )
    make = {"answers": answer_records, "participants": participant_records}
    left_out = {rater for rater, flags in view.flags.items() if flags and exclude_flagged}
    records = make.get(kind, payment_records)(view)
    return [record for record in records if record["rater"] not in left_out]


# ---- Payment


def payment_records(view: Overview) -> list[Record]:
    """Return whether each participant is to be paid, in the order of their start.

    A record has the id by which the platform pays (None if the ids were erased; without a platform
    the completion code), the decision, its reason, the rater, the code and the platform's ids of
    the study and of the submission. The guide on paid studies describes the decisions.
    """
    has_ids = view.study.platform != "none"
    return [
        {
            "id": person.row.platform_id if has_ids else person.code,
            **dict(zip(("decision", "reason"), _decide(person), strict=True)),
            "rater": rater,
            "code": person.code,
            "study": person.row.platform_study,
            "session": person.row.platform_session,
        }
        for rater, person in view.people.items()
    ]


def _decide(person: Participant) -> tuple[Decision, str]:
    has_ended, why = person.row.finished_at is not None, person.row.excluded_why
    if person.row.withdrawn_at is not None:
        # Who has ended had the code already, and may have sent it.
        return ("look at", "withdrew after the end") if has_ended else ("return", "withdrew")
    if person.row.excluded_at is not None:
        return ("reject", why) if has_ended else ("return", f"excluded before the end: {why}")
    if not has_ended:
        return "wait", "has not finished"
    if person.n_answers == 0:
        return "return", "answered nothing"
    if person.flags:
        return "look at", "; ".join(f"{flag.name}: {flag.text}" for flag in person.flags)
    return "approve", ""


# ---- Formats


def format_jsonl(records: Iterable[Record]) -> str:
    """Return records as JSON, one per line."""
    return "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)


def format_csv(records: Iterable[Record]) -> str:
    """Return records as CSV; the first line names the columns.

    The text begins with a byte-order mark. Lists are JSON, true and false are written so, and
    what is unknown is empty. A text that a spreadsheet could read as a formula (it begins with
    =, +, -, @, a tab or a line end, perhaps after spaces, separators or invisible characters, and
    is not a number) gets an apostrophe before it.
    """
    stream = io.StringIO()
    writer = open_csv_writer(stream)
    for number, record in enumerate(records):
        if number == 0:
            writer.writerow(map(_format_cell, record))
        writer.writerow(map(_format_cell, record.values()))
    return MARK + stream.getvalue()


def _format_cell(value: object) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    is_formula = _DANGEROUS.match(text) and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text


def write_records(path: Path, records: Iterable[Record], *, private: bool = True) -> None:
    """Write records to a file, completely or not at all.

    Parameters
    ----------
    path : Path
        Ends in .csv or .jsonl.
    records : iterable of mappings
        Such as `ranking_records` returns.
    private : bool
        Whether only the owner of the file may read it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rankshot_survey import write_records
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "answers.jsonl")
    ...     write_records(path, [{"rater": "a1", "target": "cat", "order": ["leopard", "fox"]}])
    ...     print(path.read_text().strip())
    {"rater": "a1", "target": "cat", "order": ["leopard", "fox"]}
    """
    is_csv = require_ending(path, (".csv", ".jsonl")) == ".csv"
    with replace_file(path, private=private) as stream:
        stream.write(format_csv(records) if is_csv else format_jsonl(records))
