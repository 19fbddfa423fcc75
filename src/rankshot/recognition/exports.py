"""Results for tools that people label with: Label Studio and FiftyOne."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from rankshot import __version__
from rankshot.core.errors import InputError
from rankshot.core.files import replace_own
from rankshot.core.validation import require_module

TAGS = {"images": ("Image", "image"), "texts": ("Text", "text")}
"""The tag of Label Studio, and the field of its tasks, for what a model takes."""


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
