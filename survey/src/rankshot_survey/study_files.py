"""The file study.toml: reading it with the files beside it, and writing a new one."""

from __future__ import annotations

import json
import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from rankshot.core.errors import NO_VALUE, InputError, prefix_errors, suggest_name
from rankshot.core.files import decode_lines, read_names
from rankshot_survey.study import DEFAULT_PROMPT, Study

# A list that is longer than this is written on several lines.
LIST_WIDTH = 100
# For each table of the file ("" is its top): its keys, and the field of each if it has another
# name.
_TABLES = {
    "": "title prompt consent contact instructions debriefing quality translations images gold "
    "questions",
    "plan": "answers_per_question questions_per_participant repeats rank return_after_minutes "
    "spare_answers",
    "items": "names:items unshown hide_names",
    "platform": "name:platform ids completion_url full_url refusal_url",
    "access": "allowed starts_per_hour",
    "language": "of_texts:language offered:languages",
}
# The field of each key, which has its table before it: "plan.rank".
_FIELDS = {
    f"{table}.{word.partition(':')[0]}".lstrip("."): word.rpartition(":")[2]
    for table, words in _TABLES.items()
    for word in words.split()
}
_KEYS = {field: key for key, field in _FIELDS.items()}
# What studies of rankshot 0.3 may have.
_DROPPED = ("conditions", "extra", "language.catalogues", "platform.screening_url")


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
        for image in values.get("images", ()):
            if isinstance(image, dict) and isinstance(image.get("file"), str):
                image["file"] = path.parent / image["file"]
        if isinstance(values.get("allowed"), str):
            values["allowed"] = read_names(path.parent / values["allowed"])
        try:
            return Study(**values)
        except InputError as error:
            if not error.where:
                field, *rest = re.split(r"(?=[\[.])", error.parameter, maxsplit=1)
                error.parameter = "".join([_KEYS.get(field, field), *rest])
            raise


def _find_fields(document: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a study from its tables, after a check of the keys."""
    values: dict[str, Any] = {"prompt": DEFAULT_PROMPT}
    for key, value in document.items():
        if key not in _TABLES:
            values[_find_field(key)] = value
        elif isinstance(value, dict):
            values |= {_find_field(f"{key}.{inner}"): content for inner, content in value.items()}
        else:
            raise InputError(key, value, f"must be a table, [{key}] with its keys below")
    return values


def _find_field(key: str) -> str:
    if key in _FIELDS:
        return _FIELDS[key]
    if key in _DROPPED:
        raise InputError(key, NO_VALUE, "is not supported: only rankshot 0.3 has it")
    homes = [home for home in _FIELDS if home.rpartition(".")[2] == key.rpartition(".")[2]]
    close = suggest_name(key, [*_FIELDS, *filter(None, _TABLES)]).strip(" ()")
    hint = f"its place is {homes[0]}" if homes else close
    raise InputError(key, NO_VALUE, "is not a key of a study", hint=hint)


def parse_toml(path: Path) -> dict[str, Any]:
    """Parse a TOML file; an error message names the line."""
    with path.open("rb") as stream:
        lines = [line for _, line in decode_lines(stream, path)]
    try:
        return tomllib.loads("".join(lines))
    except (ValueError, RecursionError) as error:
        raise InputError("study", NO_VALUE, f"is not TOML: {error}", str(path)) from None


# ---- Writing


def format_study(study: Study) -> str:
    """Return a study as the text of study.toml, with comments for the researcher.

    `read_study` of a file with this text returns an equal study, except for files next to it:
    images and the list of allowed ids are not written.

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
        # Of two adjacent quotes, or a quote at the end, the first is escaped.
        "paragraphs": lambda text: re.sub(r'"(?="|\Z)', r"\"", text.replace("\\", "\\\\")),
    }
    template = (files("rankshot_survey") / "study_template.toml").read_text(encoding="utf-8")
    return environment.from_string(template).render(study=study)


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
    rows = "".join(f"    {_quote(name)},\n" for name in value)
    return f"{key} = [\n{rows}]"


def _quote(value: object) -> str:
    """Return a value as TOML, which writes lists, texts, numbers and truth values as JSON does."""
    return json.dumps(value, ensure_ascii=False)
