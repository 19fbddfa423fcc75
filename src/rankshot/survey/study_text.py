"""The text of study.toml, with comments for the researcher."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import fields

from rankshot.survey.presentation import Example, ExtraQuestion, ExtraTranslation
from rankshot.survey.study import Question, Study, default_spare_answers

WIDTH = 100
"""A list that is longer than this is written on several lines."""
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
# Where participants come from: "none" (anybody with the link), "prolific" or "mturk"
# (Amazon Mechanical Turk, as an ExternalQuestion).
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
# Only links that `rankshot survey invite` has written may start.
invitations = {invitations}
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
    rules = study.quality
    parts = [
        _HEAD.format(
            title=_quote(study.title),
            prompt=_quote(study.prompt),
            consent=_escape_lines(study.consent),
            contact=_format_key("contact", study.contact, "name, e-mail address"),
            instructions=_format_key("instructions", study.instructions, "..."),
        ),
        _PLAN.format(
            answers=study.answers_per_question,
            questions=study.questions_per_participant,
            repeats=study.repeats,
            minutes=study.return_after_minutes,
            spare=_format_spare(study),
        ),
        _ITEMS.format(names=_format_list("names", study.items), unshown=_quote(study.unshown)),
        _PLATFORM.format(
            name=_quote(study.platform),
            completion_url=_format_key("completion_url", study.completion_url, _URL),
            full_url=_format_key("full_url", study.full_url, _URL),
            refusal_url=_format_key("refusal_url", study.refusal_url, _URL),
        ),
        _ACCESS.format(starts=study.starts_per_hour, invitations=_format(study.invitations)),
        _LANGUAGE.format(
            language=_quote(study.language), offered=_format_list("offered", study.languages)
        ),
        *_format_translations(study),
        *_format_tables("[example]", [study.example] if study.example else []),
        _QUALITY.format(
            seconds=rules.seconds,
            repeat_distance=rules.repeat_distance,
            consensus_distance=rules.consensus_distance,
            gold_failures=rules.gold_failures,
        ),
        _GOLD,
        *(_format_question("gold", question) for question in study.gold),
        _EXTRA,
        *_format_tables("[[extra]]", study.extra),
        _QUESTIONS,
        *(_format_question("questions", question) for question in study.questions),
    ]
    return "\n".join(parts)


def _format_tables(
    heading: str, values: Sequence[Example | ExtraQuestion | ExtraTranslation]
) -> Iterator[str]:
    """Yield one table per value, with the fields that are not at their defaults."""
    for value in values:
        given = {
            field.name: getattr(value, field.name)
            for field in fields(value)
            if getattr(value, field.name) != field.default
        }
        lines = (f"{key} = {_format(content)}\n" for key, content in given.items())
        yield f"{heading}\n{''.join(lines)}"


def _format_translations(study: Study) -> Iterator[str]:
    for tag, texts in study.translations.items():
        lines = [f"[translations.{tag}]"]
        keys = ("title", "prompt", "consent", "contact", "instructions")
        own = {key: getattr(texts, key) for key in keys}
        lines += [f"{key} = {_quote(text)}" for key, text in own.items() if text is not None]
        names = (f"{_quote(name)} = {_quote(shown)}" for name, shown in texts.names.items())
        yield "\n".join([*lines, f"names = {{ {', '.join(names)} }}", ""])
        for name, question in texts.extra.items():
            yield from _format_tables(f"[translations.{tag}.extra.{_quote(name)}]", [question])


def _format_spare(study: Study) -> str:
    """Return the key; a comment if it has its default, which follows the platform."""
    default = default_spare_answers(study.platform, study.answers_per_question)
    line = f"spare_answers = {study.spare_answers}"
    return f"# {line}" if study.spare_answers == default else line


def _format_key(key: str, value: str | None, example: str) -> str:
    """Return a key with its value; without a value, a comment with an example."""
    return f"# {key} = {_quote(example)}" if value is None else f"{key} = {_quote(value)}"


def _format(value: object) -> str:
    """Return a value as TOML, which writes texts, numbers, truth values and lists as JSON does."""
    return json.dumps(value, ensure_ascii=False)


def _format_question(table: str, question: Question) -> str:
    lines = [
        f"[[{table}]]",
        f"target = {_quote(question.target)}",
        _format_list("items", question.items),
    ]
    if question.first:
        lines.append(_format_list("first", question.first))
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    """Return one line of text as a TOML string; JSON's escapes are among TOML's."""
    return json.dumps(text, ensure_ascii=False)


def _escape_lines(text: str) -> str:
    """Escape text for a TOML string between triple quotes, which may have line breaks."""
    # Of two adjacent quotes, or a quote at the end, the first is escaped.
    return re.sub(r'"(?="|\Z)', r"\"", text.replace("\\", "\\\\"))


def _format_list(key: str, names: Sequence[str]) -> str:
    """Return a key with a list of names, on several lines if it is long."""
    quoted = [_quote(name) for name in names]
    line = f"{key} = [{', '.join(quoted)}]"
    if len(line) <= WIDTH:
        return line
    rows = [""]
    for name in quoted:
        if rows[-1] and len(rows[-1]) + len(name) + 6 > WIDTH:
            rows.append("")
        rows[-1] += f" {name}," if rows[-1] else f"    {name},"
    return "\n".join([f"{key} = [", *rows, "]"])
