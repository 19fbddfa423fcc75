"""The files of a survey: rankings, raw data, and lists for payment.

JSON lines are for programs. CSV is for spreadsheets, and made safe for them: see `format_csv`.
"""

from __future__ import annotations

import io
import json
import re
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from rankshot.core.errors import RankshotError, format_count, short_repr, suggest_name
from rankshot.core.files import replace_file, require_ending
from rankshot.core.tables import open_csv_writer
from rankshot.ranking.ranking_files import JSONL_ENDINGS
from rankshot.survey.answers import Answer, is_counted
from rankshot.survey.overview import Overview, Participant, read_overview
from rankshot.survey.quality import Flag, is_right
from rankshot.survey.store.database import Database
from rankshot.survey.study import Study

SOURCE = "survey"
Record = dict[str, Any]
ENDINGS = (".csv", ".jsonl")
# Begins a CSV file: without it, spreadsheets do not take the text for UTF-8.
MARK = "\ufeff"
LINES_PER_PART = 500
_DANGEROUS = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
# json.dumps would make an encoder for each value.
_ENCODE = json.JSONEncoder(ensure_ascii=False).encode
_NUMBER = re.compile(r"-?[0-9]+([.][0-9]+)?")
Decision = Literal["approve", "look at", "reject", "return", "wait"]
# What the id of a payment is, for each platform.
ID_NAMES = {"prolific": "participant id", "none": "completion code"}
PAYMENT_COLUMNS = ("id", "decision", "reason", "rater", "code", "session")


# ---- Rankings


@dataclass(frozen=True)
class Export:
    """The lines of a rankings file, and counts of what is not in it.

    Attributes
    ----------
    lines : tuple of str
        JSON, one ranking per line.
    n_answers : int
        The number of rankings.
    n_excluded, n_raters_excluded : int
        How many answers of how many flagged participants were left out.
    n_skips, n_repeats, n_gold : int
        Answers that are never exported: skips, repeated answers, and answers to gold questions.
        A skipped repeat or gold question counts as a skip.

    Examples
    --------
    >>> from rankshot.survey import Answer, Question, Study, export_lines
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> study = Study("Alike", "What is like {target}?", "Agreed?", cat.items, "after", (cat,))
    >>> said = Answer("a1", cat, 1, False, cat.items, ("leopard",), 7.25, 0.0)
    >>> found = export_lines(study, [said], {})
    >>> found.n_answers, found.n_skips, found.n_gold
    (1, 0, 0)
    """

    lines: tuple[str, ...]
    n_answers: int
    n_excluded: int
    n_raters_excluded: int
    n_skips: int
    n_repeats: int
    n_gold: int


def export_lines(
    study: Study,
    answers: Sequence[Answer],
    flags: Mapping[str, Sequence[Flag]],
    *,
    exclude_flagged: bool = False,
) -> Export:
    """Return the answers as lines of a rankings file.

    A ranking is a top-K list of all the study's items if the question showed all of them, or if
    the items that were not shown come after those that were (``study.unshown`` is "after").
    Otherwise it is a ranking of the subset shown, with the unranked items tied at its end, and
    ``k`` is the number of ranked items, if not all are. This is also the case for a target whose
    questions, current or earlier, show different items: an item that only another question shows
    need not come after. Each line also has the items in the order of the screen, the seconds that
    the answer took (null if unknown), and the names of the participant's flags, if any.

    Parameters
    ----------
    study : Study
    answers : sequence of Answer
        All answers.
    flags : mapping
        The flags of each participant; see `find_flags`.
    exclude_flagged : bool
        Leave out the answers of participants with a flag.

    Raises
    ------
    RankshotError
        If no answer is left to export, or if one ranks an item that the study no longer names.

    Examples
    --------
    >>> from rankshot.survey import Answer, Question, Study, export_lines
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> study = Study("Animals", "Like {target}?", "Yes?", (*cat.items, "cup"), "unknown", (cat,))
    >>> said = Answer("a1", cat, 1, False, ("fox", "bus", "leopard"), ("leopard",), 7.25, 0.0)
    >>> export_lines(study, [said], {}).lines[0]
    '{"target": "cat", "ranking": ["leopard", ["bus", "fox"]], "source": "survey", "rater": "a1",
    "kind": "subset", "k": 1, "shown": ["fox", "bus", "leopard"], "seconds": 7.2}'
    """
    given = [answer for answer in answers if answer.order]
    counted = [answer for answer in given if is_counted(answer)]
    kept = [a for a in counted if not (exclude_flagged and flags.get(a.rater))]
    if not kept:
        why = (
            f"all {len(counted)} answers are from flagged participants, and these are excluded"
            if counted
            else f"there are no answers to export yet, only {len(answers)} skips, repeats or gold "
            "answers"
        )
        raise RankshotError(f"{study.title}: {why}")
    known = set(study.items)
    if odd := [(a, name) for a in kept for name in a.shown if name not in known]:
        answer, name = odd[0]
        raise RankshotError(
            f"an answer to {short_repr(answer.question.target)} ranks {short_repr(name)}, "
            "which is no longer among the study's [items] names"
            f"{suggest_name(name, study.items)}: add it again"
        )
    n_gold = sum(answer.question.is_gold for answer in given)
    n_excluded, n_raters = count_left_out(answers, flags) if exclude_flagged else (0, 0)
    # Of all answers: leaving out flagged participants does not change what an answer means.
    several = _targets_with_several_sets(study, counted)
    return Export(
        lines=tuple(_format_line(study, a, flags.get(a.rater, ()), several) for a in kept),
        n_answers=len(kept),
        n_excluded=n_excluded,
        n_raters_excluded=n_raters,
        n_skips=len(answers) - len(given),
        n_repeats=len(given) - len(counted) - n_gold,
        n_gold=n_gold,
    )


def count_left_out(
    answers: Iterable[Answer], flags: Mapping[str, Sequence[Flag]]
) -> tuple[int, int]:
    """Return how many answers a file without flagged participants leaves out, and of how many.

    Flagged participants who skipped everything have no answers that could be left out.
    """
    raters = [answer.rater for answer in answers if flags.get(answer.rater) and is_counted(answer)]
    return len(raters), len(set(raters))


def write_export(
    path: str | Path,
    study: Study,
    answers: Sequence[Answer],
    flags: Mapping[str, Sequence[Flag]],
    *,
    exclude_flagged: bool = False,
) -> Export:
    """Write the answers as a rankings file (.jsonl), whole or not at all; see `export_lines`.

    `rankshot.read_rankings` reads it, with ``items=study.items``.

    Parameters
    ----------
    path : str or Path
        The file to write.
    study : Study
    answers : sequence of Answer
    flags : mapping of str to sequence of Flag
        The flags of the raters, from `find_flags`.
    exclude_flagged : bool
        Whether answers of flagged participants are left out.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import rankshot as rs
    >>> from rankshot.survey import Answer, Question, Study, write_export
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> study = Study("Alike", "What is like {target}?", "Agreed?", cat.items, "after", (cat,))
    >>> said = Answer("a1", cat, 1, False, cat.items, ("leopard", "fox", "bus"), 7.25, 0.0)
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "rankings.jsonl")
    ...     export = write_export(path, study, [said], {})
    ...     rs.read_rankings(path, items=study.items)
    Rankings: 1 ranking of 3 items, 1 target, 1 source, 1 rater
      cat: leopard > fox > bus
    """
    path = Path(path)
    require_ending(path, JSONL_ENDINGS)
    export = export_lines(study, answers, flags, exclude_flagged=exclude_flagged)
    with replace_file(path) as stream:
        stream.writelines(f"{line}\n" for line in export.lines)
    return export


def _targets_with_several_sets(study: Study, answers: Iterable[Answer]) -> set[str]:
    """Return the targets whose questions, asked or answered, do not all show the same items."""
    sets: dict[str, set[frozenset[str]]] = defaultdict(set)
    for question in (*study.questions, *(answer.question for answer in answers)):
        sets[question.target].add(frozenset(question.items))
    return {target for target, shown_sets in sets.items() if len(shown_sets) > 1}


def _format_line(study: Study, answer: Answer, flags: Sequence[Flag], several: set[str]) -> str:
    target = answer.question.target
    after = study.unshown == "after" and target not in several
    is_top = after or set(answer.shown) >= set(study.items)
    left = sorted(set(answer.shown) - set(answer.order))
    tie = [left] if len(left) > 1 else left
    record: Record = {
        "target": target,
        "ranking": answer.order if is_top else [*answer.order, *tie],
        "source": SOURCE,
        "rater": answer.rater,
    }
    if not is_top:
        record["kind"] = "subset"
        if len(answer.order) < len(answer.shown):
            record["k"] = len(answer.order)
    seconds = None if answer.seconds is None else round(answer.seconds, 1)
    record |= {"shown": answer.shown, "seconds": seconds}
    if flags:
        record["flags"] = [flag.name for flag in flags]
    return _ENCODE(record)


# ---- Raw data


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
            "right": is_right(answer) if answer.question.is_gold and answer.order else None,
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
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> study = Study("Alike", "What is like {target}?", "Agreed?", cat.items, "after", (cat,))
    >>> with TemporaryDirectory() as folder:
    ...     database = Database(Path(folder, "study.sqlite"), create=True)
    ...     view = read_overview(study, database, time.time())
    ...     database.close()
    >>> list(participant_records(view))
    []
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
    for number, record in enumerate(records):
        if number == 0:
            yield MARK + format_row(map(escape_formula, record))
        yield format_row(map(escape_formula, record.values()))


def format_row(cells: Iterable[str]) -> str:
    """Return one line of CSV that ends with a line feed."""
    line = io.StringIO()
    open_csv_writer(line).writerow(cells)
    return line.getvalue()


def escape_formula(value: Any) -> str:
    """Return a value as a cell that no spreadsheet takes for a formula; see `format_csv`.

    Examples
    --------
    >>> escape_formula("=1+1"), escape_formula("-5")
    ("'=1+1", '-5')
    """
    if value is None:
        return ""
    text = value if isinstance(value, str) else _ENCODE(value)
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


# ---- Payment


@dataclass(frozen=True)
class Payment:
    """Whether one participant is to be paid.

    Attributes
    ----------
    id : str or None
        By which the platform pays; see `ID_NAMES`. None if the ids were forgotten.
    decision : {"approve", "look at", "reject", "return", "wait"}
        Approve: finished. Look at: finished, but flagged, or withdrew afterwards; the researcher
        decides. Reject: finished, but excluded. Return: withdrew or was excluded before the end,
        or answered nothing. Wait: has not finished; the platform ends such submissions itself.
    reason : str
        Why it is not simply approved.
    rater, code : str
    session : str or None
        The platform's id of the submission.
    """

    id: str | None
    decision: Decision
    reason: str
    rater: str
    code: str
    session: str | None


def decide_payments(view: Overview) -> list[Payment]:
    """Decide who is to be paid, in the order of the participants."""
    found = []
    for rater, person in view.people.items():
        code = view.codes[rater]
        own = code if view.study.platform == "none" else person.ids["platform_id"]
        session = person.ids["platform_session"]
        found.append(Payment(own, *_decide(person), rater, code, session))
    return found


def _decide(person: Participant) -> tuple[Decision, str]:
    has_ended = person.finished_at is not None
    if person.withdrawn_at is not None:
        # Who has ended had the code already, and may have sent it.
        return ("look at", "withdrew after the end") if has_ended else ("return", "withdrew")
    if person.excluded_at is not None:
        why = person.excluded_why
        return ("reject", why) if has_ended else ("return", f"excluded before the end: {why}")
    if not has_ended:
        return "wait", "has not finished"
    if person.n_answers == 0:
        return "return", "answered nothing"
    if person.flags:
        return "look at", "; ".join(f"{flag.name}: {flag.text}" for flag in person.flags)
    return "approve", ""


def read_payments(study: Study, database: Database, *, pilot: bool = False) -> list[Payment]:
    """Read the database of a survey, and decide who is to be paid: the pilot, or the others."""
    return decide_payments(read_overview(study, database, time.time(), pilot=pilot))


def format_payments(
    payments: Iterable[Payment], decisions: Collection[Decision], *, plain: bool = False
) -> str:
    """Return a list of participants as CSV, or as plain ids for a platform's bulk approval.

    Parameters
    ----------
    payments : iterable of Payment
    decisions : collection of str
        Which decisions are listed.
    plain : bool
        Whether only ids are listed, one per line.

    Raises
    ------
    RankshotError
        If the ids of the platform were forgotten.
    """
    chosen = [payment for payment in payments if payment.decision in decisions]
    lost = [payment for payment in chosen if payment.id is None]
    if lost:
        raise RankshotError(
            f"the ids of {format_count(len(lost), 'participant')} were erased "
            "(`rankshot survey forget-ids`): the platform cannot pay by this list"
        )
    if plain:
        return "".join(f"{payment.id}\n" for payment in chosen)
    rows = ([getattr(payment, name) for name in PAYMENT_COLUMNS] for payment in chosen)
    return "".join(format_row(map(escape_formula, row)) for row in (PAYMENT_COLUMNS, *rows))
