"""The file study.toml: reading it with the files beside it, and writing a new one."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rankshot.core.errors import RankshotError, short_repr, suggest_name
from rankshot.core.files import MARK
from rankshot.survey.study import DEFAULT_PROMPT, TABLES, Study, describe_error

# A list that is longer than this is written on several lines.
LIST_WIDTH = 100
# The tables that are values of fields of the same name.
_OWN_TABLES = (
    *("quality", "example", "translations"),
    *("questions", "gold", "pictures", "extra"),
)


# ---- Reading


def read_study(path: str | Path) -> Study:
    """Read a study from a file such as study.toml.

    Raises
    ------
    RankshotError
        The message names the file, the key and the wrong value, and says what to do.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rankshot.survey import format_study, new_study, read_study
    >>> study = new_study(["tiger", "dolphin"], ["leopard", "whale", "mole", "wolf"], show=2)
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text(format_study(study))
    ...     found = read_study(path)
    >>> [question.target for question in found.questions]
    ['tiger', 'dolphin']
    """
    path = Path(path)
    document = parse_toml(path)
    try:
        given = _find_fields(document)
        return TypeAdapter(Study).validate_python(given, context={"folder": path.parent})
    except ValidationError as error:
        raise RankshotError(f"{path}: {describe_error(error, document)}") from None
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None


def _find_fields(document: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a study from its tables, after a check of the keys."""
    top = (*TABLES[""], *filter(None, TABLES), *_OWN_TABLES)
    given: dict[str, Any] = {"prompt": DEFAULT_PROMPT}
    for key, value in document.items():
        if key not in top:
            raise RankshotError(_describe_unknown("", key, top))
        if key in TABLES:
            if not isinstance(value, dict):
                raise RankshotError(
                    f"{key} is {short_repr(value)}: it must be a table, [{key}] with its keys below"
                )
            for inner, content in value.items():
                if inner not in TABLES[key]:
                    raise RankshotError(_describe_unknown(f"[{key}] ", inner, TABLES[key]))
                given[TABLES[key][inner]] = content
        else:
            given[key] = value
    for key in ("questions", "gold", "pictures", "extra"):
        tables = given.get(key, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise RankshotError(f"{key} is {short_repr(tables)}: write [[{key}]] above each")
    return given


def _describe_unknown(where: str, key: str, known: Sequence[str] | Mapping[str, str]) -> str:
    homes = [f"[{name}]" for name, keys in TABLES.items() if name and key in keys and key != "name"]
    if key in TABLES[""]:
        hint = " (it belongs at the top of the file, above the first [table])"
    else:
        hint = f" (it belongs under {homes[0]})" if homes else suggest_name(key, known)
    return f"{where}unknown key {short_repr(key)}{hint}; the keys are {', '.join(known)}"


def parse_toml(path: Path) -> dict[str, Any]:
    """Parse a TOML file; an error message names the line."""
    raw = path.read_bytes().removeprefix(MARK)
    try:
        return tomllib.loads(raw.decode())
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise RankshotError(f"{path}:{line}: not UTF-8 text ({error.reason})") from None
    except (ValueError, RecursionError) as error:
        found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", str(error), re.DOTALL)
        line = int(found[2]) if found else len(raw.splitlines())
        problem = f"{found[1]} in column {found[3]}" if found else str(error)
        raise RankshotError(f"{path}:{line}: not TOML: {problem}; correct it there") from None


# ---- Writing

_HEAD = """\
# A survey: participants order items by their similarity to a target.
# Read and edit this file. Then start the survey with `rankshot survey serve`, and write its
# answers to a rankings file with `rankshot survey export`. Do not change a question that already
# has answers: a changed question is a new question without answers.

# Participants see the title on every page.
title = {title}

# The question; {{target}} is replaced by the name of the target.
prompt = {prompt}

# What participants agree to before they start: Markdown with paragraphs, lists and links. Replace
# the text in [brackets], and add what your ethics board requires.
consent = \"""
{consent}\"""

# Whom participants can ask; on the consent page and on error pages.
{contact}
# Markdown that is shown above the fixed instructions.
{instructions}
"""
_PLAN = """\
[plan]
# How many participants answer each question.
answers_per_question = {answers}
# How many different questions each participant answers. Gold questions and repeats are added.
questions_per_participant = {questions}
# How many of them are asked a second time at the end, to check whether the answers agree.
repeats = {repeats}
# After this idle time, in minutes, the open questions of a participant are assigned to others.
return_after_minutes = {minutes}
# While some participants have not answered a question yet, it may be assigned to this many more
# than planned. So the person whom a platform sends in place of another finds a question. By
# default, it is half of answers_per_question, at least 2, and 0 without a platform.
{spare}
"""
_ITEMS = """\
[items]
# All items, whether or not a question shows them: the seen classes of the classifier.
{names}
# What is known about the items that a question does not show.
# "after": they are less similar to the target than the items shown, which are the nearest.
# "unknown": nothing. Use it if several questions with the same target show different items.
unshown = {unshown}
"""
_PLATFORM = """\
[platform]
# Where participants come from: "none" (anybody with the link) or "prolific".
name = {name}
# For Prolific: its completion URL, to which participants return at the end; and where they go if
# no question is left, and if they do not agree, withdraw or answer nothing.
{completion_url}
{full_url}
{refusal_url}
"""
_URL = "https://app.prolific.com/submissions/complete?cc=..."
_ACCESS = """\
[access]
# How many participants may start from one address per hour. Raise it for a lecture hall.
starts_per_hour = {starts}
# A file beside this one with the ids of those who may start, one per line.
# allowed = "ids.txt"
"""
_LANGUAGE = """\
[language]
# The language of the title, the prompt, the consent and the names.
of_texts = {language}
# The languages of all other texts that participants may get; an empty list offers all. The
# browser's language, or ?lang=de in the link, chooses.
{offered}
"""
_EXTRA = """\
# Questions that are asked once, after all others. The type is "choice", "number" or "text". For
# example:
# [[extra]]
# name = "age"
# text = "How old are you?"
# type = "number"
# least = 18
# most = 120
# required = false
"""
_QUALITY = """\
# When a participant is flagged. Answers of flagged participants are kept, and exported unless
# you export with --exclude-flagged.
[quality]
# Answers that take fewer seconds are too fast.
seconds = {seconds}
# Largest distance of repeated answers from the first ones: 0 is the same order, 0.5 is chance.
repeat_distance = {repeat_distance}
# Largest distance of the answers from the consensus of the others, in the same measure.
consensus_distance = {consensus_distance}
# Number of wrong answers to gold questions that are allowed.
gold_failures = {gold_failures}
"""
_GOLD = """\
# Gold questions have a known answer, which begins with the items in `first`, in any order. Every
# participant gets all gold questions. Their items may be any names. For example:
# [[gold]]
# target = "wolf"
# items = ["dog", "bus", "rose"]
# first = ["dog"]
"""
_QUESTIONS = """\
# The questions: a target, and the items that are shown with it, in a random order.
"""


def format_study(study: Study) -> str:
    """Return a study as the text of study.toml, with comments for the researcher.

    `read_study` of a file with this text returns an equal study, but for files beside it:
    pictures, catalogues and the list of allowed ids are not written.

    Examples
    --------
    >>> from rankshot.survey import format_study, new_study
    >>> study = new_study(["tiger"], ["leopard", "whale", "wolf"], show=2)
    >>> print(format_study(study)[-61:])
    [[questions]]
    target = "tiger"
    items = ["leopard", "wolf"]
    <BLANKLINE>
    """
    spare = f"spare_answers = {study.n_spare}"
    parts = [
        _HEAD.format(
            title=_quote(study.title),
            prompt=_quote(study.prompt),
            # Of two adjacent quotes, or a quote at the end, the first is escaped.
            consent=re.sub(r'"(?="|\Z)', r"\"", study.consent.replace("\\", "\\\\")),
            contact=_format_key("contact", study.contact, "name, e-mail address"),
            instructions=_format_key("instructions", study.instructions, "..."),
        ),
        _PLAN.format(
            answers=study.answers_per_question,
            questions=study.questions_per_participant,
            repeats=study.repeats,
            minutes=study.return_after_minutes,
            spare=f"# {spare}" if study.spare_answers is None else spare,
        ),
        _ITEMS.format(names=_format_list("names", study.items), unshown=_quote(study.unshown)),
        _PLATFORM.format(
            name=_quote(study.platform),
            completion_url=_format_key("completion_url", study.completion_url, _URL),
            full_url=_format_key("full_url", study.full_url, _URL),
            refusal_url=_format_key("refusal_url", study.refusal_url, _URL),
        ),
        _ACCESS.format(starts=study.starts_per_hour),
        _LANGUAGE.format(
            language=_quote(study.language), offered=_format_list("offered", study.languages)
        ),
    ]
    for tag, texts in study.translations.items():
        parts += _format_table(f"[translations.{tag}]", texts)
    if study.example is not None:
        parts += _format_table("[example]", study.example)
    parts.append(_QUALITY.format(**vars(study.quality)))
    for comment, name, values in (
        (_GOLD, "gold", study.gold),
        (_EXTRA, "extra", study.extra),
        (_QUESTIONS, "questions", study.questions),
    ):
        parts.append(comment)
        for value in values:
            parts += _format_table(f"[[{name}]]", value)
    return "\n".join(parts)


def _format_table(heading: str, value: Any) -> Iterator[str]:
    """Yield a part of a study as a table, with the fields that are not at their defaults."""
    lines = [heading]
    tables: dict[str, Any] = {}
    for field in fields(value):
        content = getattr(value, field.name)
        default = {} if field.default_factory is not MISSING else field.default
        if content == default:
            continue
        if field.name == "extra":
            tables = content
        elif isinstance(content, dict):
            pairs = (f"{_quote(key)} = {_quote(text)}" for key, text in content.items())
            lines.append(f"{field.name} = {{ {', '.join(pairs)} }}")
        elif isinstance(content, tuple):
            lines.append(_format_list(field.name, content))
        else:
            lines.append(f"{field.name} = {_quote(content)}")
    yield "\n".join([*lines, ""])
    for name, table in tables.items():
        yield from _format_table(f"{heading[:-1]}.extra.{_quote(name)}]", table)


def _format_key(key: str, value: str | None, example: str) -> str:
    """Return a key with its value; without a value, a comment with an example."""
    return f"# {key} = {_quote(example)}" if value is None else f"{key} = {_quote(value)}"


def _quote(value: object) -> str:
    """Return a value as TOML, which writes texts, numbers and truth values as JSON does."""
    return json.dumps(value, ensure_ascii=False)


def _format_list(key: str, names: Sequence[str]) -> str:
    """Return a key with a list of names, on several lines if it is long."""
    quoted = [_quote(name) for name in names]
    line = f"{key} = [{', '.join(quoted)}]"
    if len(line) <= LIST_WIDTH:
        return line
    rows = [""]
    for name in quoted:
        if rows[-1] and len(rows[-1]) + len(name) + 6 > LIST_WIDTH:
            rows.append("")
        rows[-1] += f" {name}," if rows[-1] else f"    {name},"
    return "\n".join([f"{key} = [", *rows, "]"])
