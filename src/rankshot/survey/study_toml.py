"""The file study.toml: its syntax, which keys it may have, and what each of them becomes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from rankshot.ranking.errors import RankshotError, did_you_mean, shown
from rankshot.ranking.text_lines import MARK

# By table ("" is the top of the file): its keys, and the fields of `Study` that they become.
_FIELDS = {
    "": {"title": "title", "prompt": "prompt", "consent": "consent"},
    "plan": {
        "answers_per_question": "answers_per_question",
        "questions_per_participant": "questions_per_participant",
        "repeats": "repeats",
        "return_after_minutes": "return_after_minutes",
    },
    "items": {"names": "items", "unshown": "unshown"},
    "platform": {"name": "platform", "completion_url": "completion_url"},
}
_RULES = ("seconds", "repeat_distance", "consensus_distance", "gold_failures")
_ASKED = {"questions": ("target", "items"), "gold": ("target", "items", "first")}

_REQUIRED = {
    "title": 'title is missing: write one, such as title = "Which animals are alike?"',
    "consent": "consent is missing: write what participants agree to before they start",
    "items": "names of [items] is missing: list all items that questions may show",
    "unshown": "unshown of [items] is missing: write 'after' if the items that a question does "
    "not show are less alike than those that it shows, 'unknown' if nothing is known of them",
    "questions": "there is no [[questions]]: write at least one, with a target and items",
}


def parsed(path: Path) -> dict[str, Any]:
    """Return what a TOML file says; an error names its line."""
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
        raise RankshotError(f"{message}; mend it there") from None


def study_fields(document: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of `Study`; of the quality rules and of each question, its own fields.

    A question is a pair: what to call it in a message, and its fields.
    """
    _check_keys("", document, (*_FIELDS[""], "plan", "items", "platform", "quality", *_ASKED))
    given: dict[str, Any] = {}
    for name, keys in _FIELDS.items():
        table = _table(document, name, tuple(keys)) if name else document
        given |= {field: table[key] for key, field in keys.items() if key in table}
    given |= {name: _questions(document, name, keys) for name, keys in _ASKED.items()}
    for field, message in _REQUIRED.items():
        if field not in given or given[field] == []:
            raise RankshotError(message)
    given["quality"] = _table(document, "quality", _RULES)
    return given


def _table(document: dict[str, Any], name: str, keys: tuple[str, ...]) -> dict[str, Any]:
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise RankshotError(
            f"{name} is {shown(table)}: it must be a table, [{name}] with its keys below"
        )
    _check_keys(f"[{name}]", table, keys)
    return table


def _questions(
    document: dict[str, Any], name: str, keys: tuple[str, ...]
) -> list[tuple[str, dict[str, Any]]]:
    tables = document.get(name, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise RankshotError(f"{name} is {shown(tables)}: write [[{name}]] above each of them")
    found = []
    for number, table in enumerate(tables, 1):
        place = called(name, number, table.get("target"))
        _check_keys(place, table, keys)
        if absent := [key for key in keys if key not in table]:
            raise RankshotError(f"{place}: {absent[0]} is missing")
        found.append((place, table))
    return found


def called(table: str, number: int, target: Any) -> str:
    """Name a question in a message, by its number from 1 and its target."""
    whose = f" (target {shown(target)})" if target is not None else ""
    return f"[[{table}]] number {number}{whose}"


def _check_keys(place: str, table: dict[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            where = f"{place}: " if place else ""
            hint = _home(key) or did_you_mean(key, known)
            raise RankshotError(
                f"{where}unknown key {shown(key)}{hint}; known are {', '.join(known)}"
            )


def _home(key: str) -> str:
    """Say where a key belongs that stands in another place."""
    if key in _FIELDS[""]:
        return " (it belongs at the top of the file, above the first [table])"
    homes = [f"[{name}]" for name, keys in _FIELDS.items() if key in keys and key != "name"]
    homes += ["[quality]"] if key in _RULES else []
    homes += ["[[gold]]"] if key == "first" else []
    return f" (it belongs under {homes[0]})" if homes else ""
