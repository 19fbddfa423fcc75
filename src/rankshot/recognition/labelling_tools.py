"""Results for tools that people label with, and the labels that come back from them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from xml.etree import ElementTree as ET
from xml.sax.saxutils import quoteattr

from rankshot import __version__
from rankshot.core.columns import open_table
from rankshot.core.errors import InputError, quote_names
from rankshot.core.files import replace_own, require_regular
from rankshot.core.tables import ID, LABEL
from rankshot.core.validation import require_module

TAGS = {"images": ("Image", "image"), "texts": ("Text", "text")}
"""The tag of Label Studio, and the field of its tasks, for what a model takes."""
CHOICE = "choice"
"""The column of labels in a table that Label Studio exports."""
KNOWN = {ID, LABEL, "guess", "probability"}
"""Columns of a table of labels; a table with more than one other column has scores."""
LARGEST = 2**28
"""The bytes of an export: larger ones are refused before they are read."""
FILES = ("image", "audio", "video", "filepath")
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


def make_dataset(found: Any, name: str | None) -> Any:
    """A dataset of FiftyOne with the predictions: see `Recognition.to_fiftyone`."""
    if _require_inputs(found) != "images":
        raise InputError("inputs", "texts", "must be images for FiftyOne")
    try:
        fo = require_module("fiftyone", "to_fiftyone", "cli")
    except ValueError:
        raise InputError(
            "fiftyone", None, "is not installed", hint="pip install fiftyone"
        ) from None
    samples = []
    for id_, value, label, row in zip(
        found.ids, found.inputs.values, found.labels, found.proba, strict=True
    ):
        known = fo.Classification(label=str(label), confidence=float(row.max()))
        path = str(Path(value).resolve())
        samples.append(fo.Sample(filepath=path, rankshot_id=str(id_), rankshot=known))
    dataset = fo.Dataset(name)
    dataset.add_samples(samples)
    return dataset


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

    The file is a table with the columns ``id`` and ``label`` (or ``choice``) and no scores, JSON of
    Label Studio or FiftyOne, or XML of CVAT. Inputs without a label are left out.
    """
    require_regular(path, "examples")
    if path.suffix in {".json", ".xml"} and path.is_file() and path.stat().st_size > LARGEST:
        raise InputError("examples", str(path), f"must have at most {LARGEST:,} bytes")
    if path.suffix == ".json":
        return _collect(_read_json(path), path)
    if path.suffix == ".xml":
        return _collect(_read_cvat(path), path)
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
    found = {}
    for name in names:
        same = ends[PurePosixPath(name).name]
        if name in known:
            found[name] = name
        elif len(same) == 1:
            found[name] = same[0]
    return found


def _collect(pairs: Iterator[tuple[Any, Any]], path: Path) -> dict[str, str]:
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


def _read_json(path: Path) -> Iterator[tuple[Any, Any]]:
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise InputError("examples", str(path), "is not JSON") from None
    if isinstance(content, list):
        for task in content:
            yield _read_task(task, path)
    elif isinstance(content, Mapping) and isinstance(content.get("labels"), Mapping):
        classes = content.get("classes")
        for name, label in content["labels"].items():
            value = label.get("label") if isinstance(label, Mapping) else label
            if isinstance(value, int) and isinstance(classes, list) and 0 <= value < len(classes):
                value = classes[value]
            yield name, value
    elif isinstance(content, Mapping) and isinstance(content.get("samples"), list):
        for sample in content["samples"]:
            found = sample.get("ground_truth") if isinstance(sample, Mapping) else None
            if isinstance(found, Mapping):
                yield sample.get("rankshot_id") or sample.get("filepath"), found.get("label")
    else:
        rule = "is not an export of Label Studio or FiftyOne"
        raise InputError("examples", str(path), rule)


def _read_task(task: Any, path: Path) -> tuple[Any, Any]:
    """A task of Label Studio, in its JSON or JSON-MIN format."""
    if not isinstance(task, Mapping):
        raise InputError("examples", task, "must be a task of Label Studio", str(path))
    data = task.get("data", task)
    if not isinstance(data, Mapping):
        raise InputError("examples", data, "must be the data of a task", str(path))
    name = data.get(ID) if isinstance(data.get(ID), str) else None
    name = name or next((data[field] for field in FILES if field in data), None)
    if "data" not in task:
        return name, task.get(CHOICE)
    for annotation in task.get("annotations") or []:
        if annotation.get("was_cancelled"):
            continue
        for result in annotation.get("result") or []:
            if choices := result.get("value", {}).get("choices"):
                return name, choices[0] if len(choices) == 1 else choices
    return name, None


def _read_cvat(path: Path) -> Iterator[tuple[Any, Any]]:
    """The tags of images in the XML of CVAT."""
    text = path.read_bytes()
    if b"<!" in text.replace(b"<!--", b""):
        # Entities can expand to any size.
        raise InputError("examples", str(path), "must be XML without a document type")
    try:
        root = ET.fromstring(text)  # noqa: S314 (without entities)
    except ET.ParseError as error:
        raise InputError("examples", str(path), f"is not XML ({error})") from None
    for image in root.iter("image"):
        for tag in image.findall("tag"):
            yield image.get("name"), tag.get("label")
