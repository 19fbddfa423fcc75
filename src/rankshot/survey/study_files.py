"""Reading a study from study.toml and the files beside it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from rankshot.core.errors import RankshotError, short_repr, suggest_name
from rankshot.core.files import MARK, read_names
from rankshot.survey.presentation import (
    Example,
    ExtraQuestion,
    ExtraTranslation,
    Picture,
    Translation,
)
from rankshot.survey.study import DEFAULT_PROMPT, QualityRules, Question, Study, describe_table
from rankshot.survey.validation import NAME_LENGTH, URL_LENGTH, check_line, require_names

Value = TypeVar("Value")
# For each table ("" is the top of the file): its keys, and the field of `Study` for each key.
_STUDY_KEYS = {
    "": {name: name for name in ("title", "prompt", "consent", "contact", "instructions")},
    "plan": {
        "answers_per_question": "answers_per_question",
        "questions_per_participant": "questions_per_participant",
        "repeats": "repeats",
        "return_after_minutes": "return_after_minutes",
        "spare_answers": "spare_answers",
    },
    "items": {"names": "items", "unshown": "unshown"},
    "platform": {
        "name": "platform",
        "completion_url": "completion_url",
        "full_url": "full_url",
        "refusal_url": "refusal_url",
    },
    "access": {
        "invitations": "invitations",
        "allowed": "allowed",
        "starts_per_hour": "starts_per_hour",
    },
    "language": {"of_texts": "language", "offered": "languages", "catalogues": "catalogues"},
}
_QUALITY_KEYS = ("seconds", "repeat_distance", "consensus_distance", "gold_failures")
# For each list of tables: the keys that each table must have, and those that it may have.
_LIST_KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "questions": (("target", "items"), ()),
    "gold": (("target", "items", "first"), ()),
    "pictures": (("name", "file", "alt"), ()),
    "extra": (("name", "text", "type"), ("choices", "least", "most", "required")),
}
_EXAMPLE_KEYS = ("target", "items", "order")
_TRANSLATION_KEYS = tuple(field.name for field in fields(Translation))
_REQUIRED = {
    "title": 'title is missing: write one, such as title = "Which animals are alike?"',
    "consent": "consent is missing: write what participants agree to before they start",
    "items": "names of [items] is missing: list all items that questions may show",
    "unshown": "unshown of [items] is missing: write 'after' if the items that a question does "
    "not show are less alike than those that it shows, 'unknown' if nothing is known of them",
    "questions": "there is no [[questions]]: write at least one, with a target and items",
}


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
        return _make_study(document, path.parent)
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None


def _make_study(document: dict[str, Any], folder: Path) -> Study:
    """Make a study from a parsed file; the files that it names are in the same folder."""
    others = ("quality", "example", "translations", *_LIST_KEYS)
    _check_keys("", document, (*_STUDY_KEYS[""], *filter(None, _STUDY_KEYS), *others))
    given: dict[str, Any] = {"prompt": DEFAULT_PROMPT}
    for name, keys in _STUDY_KEYS.items():
        table = _read_table(document, name, tuple(keys)) if name else document
        given |= {field: table[key] for key, field in keys.items() if key in table}
    for field, message in _REQUIRED.items():
        value = document.get(field) if field == "questions" else given.get(field)
        if value is None or value == []:
            raise RankshotError(message)
    for field in ("questions", "gold"):
        given[field] = tuple(_make_each(document, field, _make_question))
    given["pictures"] = dict(
        _make_each(document, "pictures", lambda **keys: _make_picture(folder, **keys))
    )
    given["extra"] = tuple(_make_each(document, "extra", ExtraQuestion))
    given["quality"] = QualityRules(**_read_table(document, "quality", _QUALITY_KEYS))
    if "example" in document:
        keys = _read_table(document, "example", _EXAMPLE_KEYS)
        given["example"] = _make("[example]", Example, keys, _EXAMPLE_KEYS)
    given["translations"] = _read_translations(document)
    for field in ("languages", "catalogues"):
        given[field] = require_names(f"[language] {field}", given.get(field, ()))
    given["catalogues"] = tuple(
        _require_file(folder, "[language] catalogues", name) for name in given["catalogues"]
    )
    if "allowed" in given:
        given["allowed"] = frozenset(
            read_names(_require_file(folder, "[access] allowed", given["allowed"]))
        )
    return Study(**given)


def _make_question(target: Any, items: Any, first: Any = None) -> Question:
    if first is not None and not first:
        raise RankshotError("first is empty: name the items with which a correct answer begins")
    return Question(target, items, first or ())


def _make_picture(folder: Path, name: Any, file: Any, alt: Any) -> tuple[str, Picture]:
    check_line("name", name, NAME_LENGTH)
    return name, Picture(_require_file(folder, "file", file), alt)


def _read_translations(document: dict[str, Any]) -> dict[str, Translation]:
    tables = document.get("translations", {})
    if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
        raise RankshotError(
            f"translations is {short_repr(tables)}: write [translations.de] above the texts in "
            "German"
        )
    found = {}
    for tag, table in tables.items():
        place = f"[translations.{tag}]"
        _check_keys(place, table, _TRANSLATION_KEYS)
        extra = table.get("extra", {})
        if not isinstance(extra, dict) or not all(isinstance(q, dict) for q in extra.values()):
            raise RankshotError(
                f"{place}: extra is {short_repr(extra)}: write [translations.{tag}.extra.NAME] "
                "above the text and the choices of an extra question"
            )
        made = {}
        for name, keys in extra.items():
            where = f"[translations.{tag}.extra.{name}]"
            _check_keys(where, keys, ("text", "choices"))
            made[name] = _make(where, ExtraTranslation, keys, ("text",))
        found[tag] = _make(place, Translation, {**table, "extra": made})
    return found


def _require_file(folder: Path, what: str, name: Any) -> Path:
    check_line(what, name, URL_LENGTH)
    path = folder / str(name)
    if not path.is_file():
        raise RankshotError(f"{what} is {short_repr(name)}: there is no such file beside the study")
    return path


def _make(
    place: str, make: Callable[..., Value], keys: dict[str, Any], required: tuple[str, ...] = ()
) -> Value:
    """Make a value from a table; an error message names the table."""
    if absent := [key for key in required if key not in keys]:
        raise RankshotError(f"{place}: {absent[0]} is missing")
    try:
        return make(**keys)
    except RankshotError as error:
        raise RankshotError(f"{place}: {error}") from None


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
        if found:
            message = f"{path}:{found[2]}: not TOML: {found[1]} in column {found[3]}"
        elif str(error).endswith("(at end of document)"):
            message = f"{path}:{len(raw.splitlines())}: not TOML: {error}"
        else:
            message = f"{path}: not TOML: {error}"
        raise RankshotError(f"{message}; correct it there") from None


def _read_table(document: dict[str, Any], name: str, keys: tuple[str, ...]) -> dict[str, Any]:
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise RankshotError(
            f"{name} is {short_repr(table)}: it must be a table, [{name}] with its keys below"
        )
    _check_keys(f"[{name}]", table, keys)
    return table


def _make_each(document: dict[str, Any], name: str, make: Callable[..., Value]) -> Iterator[Value]:
    """Yield the value of each table of a list of tables."""
    tables = document.get(name, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise RankshotError(f"{name} is {short_repr(tables)}: write [[{name}]] above each of them")
    required, optional = _LIST_KEYS[name]
    for number, table in enumerate(tables, 1):
        place = describe_table(name, number, table.get("target", table.get("name")))
        _check_keys(place, table, (*required, *optional))
        yield _make(place, make, table, required)


def _check_keys(place: str, table: dict[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            where = f"{place}: " if place else ""
            hint = _suggest_table(key) or suggest_name(key, known)
            raise RankshotError(
                f"{where}unknown key {short_repr(key)}{hint}; the keys are {', '.join(known)}"
            )


def _suggest_table(key: str) -> str:
    """Say where a key belongs if it is in the wrong table."""
    if key in _STUDY_KEYS[""]:
        return " (it belongs at the top of the file, above the first [table])"
    homes = [f"[{name}]" for name, keys in _STUDY_KEYS.items() if key in keys and key != "name"]
    homes += ["[quality]"] if key in _QUALITY_KEYS else []
    homes += [f"[[{name}]]" for name in ("gold", "extra") if key in sum(_LIST_KEYS[name], ())]
    return f" (it belongs under {homes[0]})" if homes else ""
