"""Results for Label Studio, and the labels that come back from it or from a table."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from xml.sax.saxutils import quoteattr

from rankshot import __version__
from rankshot.core.columns import open_table
from rankshot.core.errors import InputError, quote_names
from rankshot.core.files import parse_json, replace_own, require_regular
from rankshot.core.tables import ID, LABEL

TAGS = {"images": ("Image", "image"), "texts": ("Text", "text")}
"""The tag of Label Studio, and the field of its tasks, for what a model takes."""
CHOICE = "choice"
"""The column of labels in a table that Label Studio exports."""
KNOWN = {ID, LABEL, "guess", "probability"}
"""Columns of a table of labels; a table with more than one other column has scores."""
FILES = ("image", "audio", "video")
"""The fields of an exported task that have the path of its file."""


# ---- Results


def make_tasks(found: Any, prefix: str) -> list[dict[str, Any]]:
    """The tasks of Label Studio for a `Recognition`: see `Recognition.to_label_studio`."""
    field = TAGS[_require_inputs(found)][1]
    tasks = []
    for name, value, label, row in zip(
        found.ids, found.inputs.values, found.labels, found.proba, strict=True
    ):
        shown = f"{prefix}{name}" if isinstance(value, Path) else value
        choice = {
            "from_name": "choice",
            "to_name": "input",
            "type": "choices",
            "value": {"choices": [str(label)]},
        }
        prediction = {
            "model_version": f"rankshot {__version__}",
            "score": float(row.max()),
            "result": [choice],
        }
        tasks.append({"data": {"id": str(name), field: shown}, "predictions": [prediction]})
    return tasks


def write_tasks(found: Any, path: Path, prefix: str, *, overwrite: bool) -> None:
    """Write tasks as JSON, and the labelling configuration beside them as XML."""
    config = path.with_suffix(".xml")
    with replace_own(path, overwrite=overwrite) as first:
        with replace_own(config, overwrite=overwrite) as second:
            second.write_text(make_config(found), encoding="utf-8")
        first.write_text(json.dumps(make_tasks(found, prefix), indent=1), encoding="utf-8")


def make_config(found: Any) -> str:
    """The labelling configuration: the input, and one choice per class."""
    tag, field = TAGS[_require_inputs(found)]
    choices = "".join(f"\n    <Choice value={quoteattr(name)}/>" for name in found.head.classes_)
    return (
        f'<View>\n  <{tag} name="input" value="${field}"/>\n'
        f'  <Choices name="choice" toName="input" showInline="true">{choices}\n  </Choices>\n'
        "</View>\n"
    )


def _require_inputs(found: Any) -> str:
    """What the inputs are, images or texts; refuse scores alone."""
    takes = found.inputs.about.get("takes")
    if found.inputs.values is None or takes not in TAGS:
        rule = "must be images in files, or texts: scores cannot be shown"
        raise InputError("inputs", None, rule)
    return str(takes)


# ---- Labels


def read_labels(path: Path) -> dict[str, str] | None:
    """The class of each labelled input, by its id; None for a file that has other things.

    The file is a table with the columns ``id`` and ``label`` (or ``choice``) and no scores, or
    JSON of Label Studio. Inputs without a label are left out.
    """
    require_regular(path, "examples")
    if path.suffix == ".json":
        return _collect(map(_read_task, _read_tasks(path)), path)
    if path.suffix not in {".csv", ".parquet"} or not path.is_file():
        return None
    table = open_table(path)
    columns = table.columns
    label = next((name for name in (LABEL, CHOICE) if name in columns), None)
    name = next((name for name in (ID, *FILES) if name in columns), None)
    is_scores = label == LABEL and len([x for x in columns if x not in KNOWN]) > 1
    if label is None or name is None or is_scores:
        return None
    ids, labels = table.read_texts(name, label)
    return _collect(zip(ids, labels, strict=True), path)


def match_ids(names: Sequence[str], ids: Sequence[str]) -> dict[str, str]:
    """The id that each exported name means: the same text, or the only path that ends with it."""
    known, ends = {*ids}, defaultdict(list)
    for name in ids:
        ends[PurePosixPath(name).name].append(name)
    meant = {name: [name] if name in known else ends[PurePosixPath(name).name] for name in names}
    return {name: same[0] for name, same in meant.items() if len(same) == 1}


def _collect(pairs: Iterable[tuple[Any, Any]], path: Path) -> dict[str, str]:
    labels: dict[str, str] = {}
    for name, label in pairs:
        if not isinstance(name, str) or not isinstance(label, str | None):
            raise InputError("examples", name, "must be an id with one label", str(path))
        if not label or not label.strip():
            continue
        if labels.setdefault(name, label.strip()) != label.strip():
            two = quote_names([labels[name], label])
            raise InputError("examples", name, f"has two labels, {two}", str(path))
    if not labels:
        raise InputError("examples", str(path), "has no labels")
    return labels


def _read_tasks(path: Path) -> list[Mapping[str, Any]]:
    """The tasks that Label Studio exports as JSON."""
    tasks: list[Mapping[str, Any]] = parse_json(path.read_bytes())
    is_export = isinstance(tasks, list) and all(
        isinstance(task, Mapping) and isinstance(task.get("data"), Mapping) for task in tasks
    )
    if not is_export:
        hint = "export JSON, or CSV; other tools: a table with the columns id and label"
        raise InputError("examples", str(path), "is not a JSON export of Label Studio", hint=hint)
    return tasks


def _read_task(task: Mapping[str, Any]) -> tuple[Any, Any]:
    """The id of a task, and its label: several choices, which are refused, or None."""
    data = task["data"]
    name = data.get(ID) or next((data[field] for field in FILES if field in data), None)
    for annotation in task.get("annotations") or []:
        if annotation.get("was_cancelled"):
            continue
        for result in annotation.get("result") or []:
            if choices := result.get("value", {}).get("choices"):
                return name, choices[0] if len(choices) == 1 else choices
    return name, None
