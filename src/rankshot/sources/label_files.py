"""Files and objects that list the labels of a classifier: text, JSON, ``id2label``."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.core.files import decode_lines, iterate_names

ID2LABEL, LABEL2ID = "id2label", "label2id"
CONFIG = "config.json"


def read_label_list(source: Any, built_in: Sequence[str]) -> tuple[list[Any], str]:
    """Return the labels of a file or an object, in order, and what to call it in messages.

    Examples
    --------
    >>> read_label_list({"tench": 0, "goldfish": 1}, ())
    (['tench', 'goldfish'], 'class labels')
    """
    if isinstance(source, (str, Path)):
        return _read_file(source, built_in), str(source)
    where = "class labels"
    if isinstance(source, Mapping):
        return _list_mapping(source, where), where
    if not isinstance(source, Iterable) or isinstance(source, (bytes, set, frozenset)):
        raise RankshotError(
            f"class labels must be a file, a sequence or a mapping, not {short_repr(source)}"
        )
    return _require_labels(list(source), where), where


def _read_file(source: str | Path, built_in: Sequence[str]) -> list[Any]:
    path = Path(source)
    if path.is_dir():
        path /= CONFIG
    if isinstance(source, str) and not path.exists() and path.name == source and not path.suffix:
        raise RankshotError(
            f"{source!r} is neither a file nor a list that is built in"
            f"{suggest_name(source, built_in)}; built in: {quote_names(built_in)}"
        )
    content = _read_structure(path)
    if isinstance(content, dict):
        return _list_mapping(content, str(path))
    return _require_labels(content, str(path))


def _read_structure(path: Path) -> Any:
    """Return the list or the object in a file; a text file is a list of its lines."""
    with path.open("rb") as stream:
        text = "".join(line for _, line in decode_lines(stream, path))
    is_json = path.suffix.lower() == ".json"
    if is_json or text.lstrip()[:1] in {"[", "{"}:
        try:
            return json.loads(text, object_pairs_hook=_refuse_repeated_keys)
        except (ValueError, RecursionError) as error:
            if isinstance(error, RankshotError):
                raise RankshotError(f"{path}: {error}") from None
            problem = error
        try:
            # The list of ImageNet's classes that is copied most is a dictionary of Python.
            return ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            if is_json:
                raise RankshotError(f"{path}: not JSON: {problem}") from None
    return [name for _, name in iterate_names(path)]


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise RankshotError(f"{repeated!r} occurs more than once")
    return found


def _list_mapping(mapping: Mapping[Any, Any], where: str) -> list[Any]:
    """Return the labels of a mapping from index to label or from label to index, by index."""
    for field in (ID2LABEL, LABEL2ID):
        if isinstance(mapping.get(field), Mapping):
            return _list_mapping(mapping[field], f"{where}: {field}")
    if "model_type" in mapping or "architectures" in mapping:
        raise RankshotError(
            f"{where}: has no {ID2LABEL}, so the model has no class names: give a list of them"
        )
    keys, values = _require_labels(mapping, where), list(mapping.values())
    if all(map(_is_index, values)) and not all(type(key) is int for key in keys):
        keys, values = values, keys
    elif odd := [key for key in keys if not _is_index(key)]:
        raise RankshotError(
            f"{where}: {short_repr(odd[0])} is no index; expected an object from index to label, "
            "from label to index, or a list"
        )
    label_of: dict[int, Any] = {}
    for key, value in zip(keys, values, strict=True):
        if int(key) in label_of:
            raise RankshotError(f"{where}: two labels have the index {int(key)}")
        label_of[int(key)] = value
    wanted = range(len(label_of))
    if missing := [index for index in wanted if index not in label_of]:
        beyond = sorted(label_of.keys() - set(wanted))
        raise RankshotError(
            f"{where}: {len(label_of)} labels must have the indices 0 to {len(label_of) - 1}; "
            f"missing: {quote_names(missing, 4)}; found instead: {quote_names(beyond, 4)}"
        )
    return [label_of[index] for index in wanted]


def _is_index(value: Any) -> bool:
    if isinstance(value, str):
        return value.isascii() and value.isdecimal()
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _require_labels(labels: Any, where: str) -> list[Any]:
    """Return the labels, or the keys of a mapping; there must be one."""
    if not isinstance(labels, (list, tuple, Mapping)):
        raise RankshotError(f"{where}: expected a list or an object, not {short_repr(labels)}")
    if not labels:
        raise RankshotError(f"{where}: no names in it")
    return list(labels)
