"""The file study.toml: reading it with the files beside it, and writing a new one."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from dataclasses import MISSING, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from pydantic import TypeAdapter, ValidationError

from rankshot.core.errors import NO_VALUE, InputError, prefix_errors, suggest_name
from rankshot.core.files import decode_lines
from rankshot_survey.study import DEFAULT_PROMPT, Study
from rankshot_survey.study_values import LISTED, TABLES, find_problem

# A list that is longer than this is written on several lines.
LIST_WIDTH = 100
# The tables that are values of fields of the same name.
_OWN_TABLES = ("quality", "translations", *LISTED)


# ---- Reading


def read_study(path: str | Path) -> Study:
    """Read a study from a file such as study.toml.

    If something is wrong, the error names the file, the key, the value and the remedy.

    Parameters
    ----------
    path : str or Path
        A TOML file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rankshot_survey import format_study, new_study, read_study
    >>> study = new_study(["tiger", "dolphin"], ["leopard", "whale", "mole", "wolf"])
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text(format_study(study))
    ...     study_again = read_study(path)
    >>> [question.target for question in study_again.questions]
    ['tiger', 'dolphin']
    """
    path = Path(path)
    document = parse_toml(path)
    with prefix_errors(path):
        values = _find_fields(document)
        try:
            return TypeAdapter(Study).validate_python(values, context={"folder": path.parent})
        except ValidationError as error:
            raise find_problem(error) from None


def _find_fields(document: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a study from its tables, after a check of the keys."""
    values: dict[str, Any] = {"prompt": DEFAULT_PROMPT}
    for key, value in document.items():
        if key not in TABLES:
            _require_key("", key, (*TABLES[""], *filter(None, TABLES), *_OWN_TABLES))
            values[key] = value
        elif isinstance(value, dict):
            for inner, content in value.items():
                _require_key(f"{key}.", inner, TABLES[key])
                values[TABLES[key][inner]] = content
        else:
            raise InputError(key, value, f"must be a table, [{key}] with its keys below")
    for key in LISTED:
        tables = values.get(key, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise InputError(key, tables, f"must be tables, with [[{key}]] above each")
    return values


def _require_key(table: str, key: str, names: Iterable[str]) -> None:
    if key in names:
        return
    homes = [f"[{name}]" for name, keys in TABLES.items() if name and key in keys and key != "name"]
    if key in TABLES[""]:
        hint = "it belongs at the top of the file, above the first [table]"
    else:
        hint = f"it belongs under {homes[0]}" if homes else suggest_name(key, names).strip(" ()")
    rule = "is not a key of a study"
    if key == "conditions":
        rule, hint = "is not supported: only rankshot 0.3 has experiments", ""
    raise InputError(f"{table}{key}", NO_VALUE, rule, hint=hint or f"the keys: {', '.join(names)}")


def parse_toml(path: Path) -> dict[str, Any]:
    """Parse a TOML file; an error message names the line."""
    with path.open("rb") as stream:
        lines = [line for _, line in decode_lines(stream, path)]
    try:
        return tomllib.loads("".join(lines))
    except (ValueError, RecursionError) as error:
        place = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", str(error), re.DOTALL)
        line = int(place[2]) if place else len(lines)
        problem = f"{place[1]} in column {place[3]}" if place else str(error)
        where = f"{path}, line {line}"
        raise InputError("study", NO_VALUE, f"is not TOML: {problem}", where) from None


# ---- Writing


def format_study(study: Study) -> str:
    """Return a study as the text of study.toml, with comments for the researcher.

    `read_study` of a file with this text returns an equal study, except for files next to it:
    images, catalogues and the list of allowed ids are not written.

    Parameters
    ----------
    study : Study

    Examples
    --------
    >>> from rankshot_survey import format_study, new_study
    >>> study = new_study(["tiger"], ["leopard", "wolf"])
    >>> print(format_study(study)[-61:])
    [[questions]]
    target = "tiger"
    items = ["leopard", "wolf"]
    <BLANKLINE>
    """
    environment = Environment(  # noqa: S701 (it writes TOML, and `_quote` escapes)
        trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    environment.filters |= {
        "toml": _quote,
        "key": _format_key,
        "table": _format_table,
        # Of two adjacent quotes, or a quote at the end, the first is escaped.
        "paragraphs": lambda text: re.sub(r'"(?="|\Z)', r"\"", text.replace("\\", "\\\\")),
    }
    template = (files("rankshot_survey") / "study_template.toml").read_text(encoding="utf-8")
    return environment.from_string(template).render(study=study)


def _format_table(value: Any, heading: str) -> str:
    """Return a part of a study as a table, with the fields that are not at their defaults."""
    lines = [heading]
    for field in fields(value):
        content = getattr(value, field.name)
        default = {} if field.default_factory is not MISSING else field.default
        # The extra questions of a translation are tables of their own.
        if content != default and field.name != "extra":
            lines.append(_format_key(content, field.name))
    return "\n".join([*lines, ""])


def _format_key(value: object, key: str, example: object = None) -> str:
    """Return a key with its value; without a value, a comment with an example."""
    if value is None:
        return f"# {key} = {_quote(example)}"
    if isinstance(value, dict):
        pairs = (f"{_quote(name)} = {_quote(text)}" for name, text in value.items())
        return f"{key} = {{ {', '.join(pairs)} }}"
    line = f"{key} = {_quote(value)}"
    if not isinstance(value, tuple) or len(line) <= LIST_WIDTH:
        return line
    rows = [""]
    for name in map(_quote, value):
        if rows[-1] and len(rows[-1]) + len(name) + 6 > LIST_WIDTH:
            rows.append("")
        rows[-1] += f" {name}," if rows[-1] else f"    {name},"
    return "\n".join([f"{key} = [", *rows, "]"])


def _quote(value: object) -> str:
    """Return a value as TOML, which writes lists, texts, numbers and truth values as JSON does."""
    return json.dumps(value, ensure_ascii=False)
