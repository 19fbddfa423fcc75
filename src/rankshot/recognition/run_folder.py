"""A run folder: what was known and what was predicted, on disk.

``run.json`` has the hash of every file that was written, so that a file which a person has changed
is noticed, and never replaced. All paths are relative: a run can be moved with its inputs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot import __version__
from rankshot.core.columns import open_table
from rankshot.core.errors import InputError, quote_names
from rankshot.core.files import (
    TEMPORARY,
    hash_file,
    lock_folder,
    parse_json,
    read_hashes,
    read_json_lines,
    replace_file,
    require_own,
)
from rankshot.core.tables import ID, LABEL, open_csv_writer
from rankshot.ranking.ranking_files import read_rankings, write_rankings
from rankshot.zeroshot.joint_head import load_head
from rankshot.zeroshot.knowledge import Knowledge
from rankshot.zeroshot.linear_head import Predictor
from rankshot.zeroshot.metrics import Interval
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.settings import Settings
from rankshot.zeroshot.tables import LOGITS, open_scores, read_predictions, write_score_table

FORMAT = "rankshot run 4"
MANIFEST = "run.json"
RANKINGS, INPUTS = "rankings.jsonl", "inputs.jsonl"
PREDICTIONS, HEAD = "predictions.csv", "head.rankshot"
SCORES, EVIDENCE, REFERENCE, EXAMPLES = "scores", "evidence", "reference", "examples"
LABELS = "-labels.csv"
PREDICTED = "predicted mean accuracy of the new classes, with 95% interval"
"""The note of a saved head that has the forecast."""
SCORE_TYPES = {
    "multiclass": "logits",
    "one-vs-rest": "one-vs-rest-logits",
    "one-vs-one": "one-vs-one",
}
"""What scores are in a file, by their kind: probabilities have become logarithms."""
AGAIN = "run `rankshot recognise` again, or recognise(...).save(folder)"


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A run folder that `open_run` has read.

    Attributes
    ----------
    folder : Path
        The folder.
    ids, labels, proba : ndarray
        The inputs, their predicted classes, and the probabilities of ``head.classes_``.
    knowledge : Knowledge
        What was known; its ``batch`` has the scores of the inputs.
    settings : Settings
        How the head was fitted.
    head : LinearHead or JointHead
        The fitted head.
    notes : tuple of str
        Sentences that describe what was done, and why.
    predicted : Interval or None
        The mean accuracy on the new classes that a rehearsal predicted.
    model : mapping
        What the model takes, its name, and its preprocessing.
    inputs : Path or None
        The table of the texts, or of the paths, of the inputs.
    labelled : mapping
        The labels that some of the inputs had, by their ids; they are examples as well.

    Examples
    --------
    >>> import tempfile
    >>> import rankshot as rs
    >>> found = rs.recognise(
    ...     rs.Scores([[4.0, 0.5]], ["bus", "leopard"]), {"cat": ["leopard"], "truck": ["bus"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found.save(folder + "/run")
    ...     run = rs.recognition.open_run(folder + "/run")
    >>> run, run.labels.tolist(), run.knowledge.seen
    (Run: 1 input, 2 classes, ['truck'], ('bus', 'leopard'))
    """

    folder: Path
    ids: NDArray[np.object_]
    labels: NDArray[np.str_]
    proba: NDArray[np.floating]
    knowledge: Knowledge
    settings: Settings
    head: Predictor
    notes: tuple[str, ...]
    predicted: Interval | None
    model: Mapping[str, Any]
    inputs: Path | None
    labelled: Mapping[str, str]

    def read_inputs(self) -> dict[str, Path | str]:
        """The file or the text of each input, by its id."""
        read: dict[str, Path | str] = {}
        for number, row in () if self.inputs is None else read_json_lines(self.inputs):
            name, value = row.get(ID), row.get("path", row.get("text"))
            if not (isinstance(name, str) and isinstance(value, str)) or "\0" in value:
                rule = "must have the id, and the path or text, of an input"
                raise InputError("line", str(row), rule, f"{self.inputs}:{number}")
            read[name] = (self.folder / value).resolve() if "path" in row else value
        return read

    def __repr__(self) -> str:
        n = len(self.ids)
        return f"Run: {n:,} input{'s' * (n != 1)}, {len(self.head.classes_)} classes"


# ---- Writing


def write_run(found: Any, folder: Path, *, overwrite: bool) -> None:
    """Write a `Recognition`; a run that is there is replaced when the new one is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    manifest = folder / MANIFEST
    if not overwrite and not manifest.exists() and any(folder.iterdir()):
        rule = "has other files, and is not the folder of a run"
        raise InputError("folder", str(folder), rule, hint="give another folder")
    before = read_hashes(manifest)
    for left in folder.glob(f"{TEMPORARY}*"):
        rmtree(left)
    with (
        lock_folder(folder, "end it, or use another folder"),
        TemporaryDirectory(prefix=TEMPORARY, dir=folder) as place,
    ):
        work = Path(place)
        _write_files(found, work, folder)
        names = sorted(path.name for path in work.iterdir())
        for name in names:
            require_own(folder / name, manifest, overwrite=overwrite)
        content = {
            "format": FORMAT,
            "version": __version__,
            "seen": list(found.knowledge.seen),
            "kind": found.inputs.scores.kind,
            "settings": found.settings.to_json(),
            "model": dict(found.inputs.about),
            "labelled": dict(found.labelled),
            "predicted": found.predicted and [*map(float, found.predicted)],
            "notes": list(found.notes),
            "files": {name: hash_file(work / name) for name in names},
        }
        for name in names:
            (work / name).replace(folder / name)
        with replace_file(manifest) as stream:
            json.dump(content, stream, indent=1)
        for name in before.keys() - {*names}:
            old = folder / name
            # What a person has changed stays; nothing reads it.
            if Path(name).name == name and old.is_file() and hash_file(old) == before[name]:
                old.unlink()


def _write_files(found: Any, work: Path, folder: Path) -> None:
    known, ids = found.knowledge, [str(name) for name in found.ids]
    write_rankings(known.rankings, work / RANKINGS)
    _write_scores(work, SCORES, found.inputs.scores, ids)
    if found.inputs.scores.evidence is not None:
        _write_scores(work, EVIDENCE, found.inputs.scores.evidence, ids)
    for name, part in ((REFERENCE, known.reference), (EXAMPLES, known.examples)):
        if part is not None:
            scores, labels = part
            numbers = [str(row) for row in range(len(scores))]
            _write_scores(work, name, scores, numbers)
            if labels is not None:
                with replace_file(work / f"{name}{LABELS}") as stream:
                    rows = zip(numbers, labels.tolist(), strict=True)
                    open_csv_writer(stream).writerows([(ID, LABEL), *rows])
    if found.inputs.values is not None:
        _write_inputs(work / INPUTS, ids, found.inputs.values, folder)
    facts: dict[str, object] = {"score_type": SCORE_TYPES[found.inputs.scores.kind]}
    if found.predicted is not None:
        facts["notes"] = {PREDICTED: list(found.predicted)}
    found.head.save(work / HEAD, provenance=facts)
    found.write(work / PREDICTIONS)


def _write_scores(work: Path, name: str, scores: Scores, ids: list[str]) -> None:
    """Write scores as Parquet, which has their kind and features; without PyArrow as CSV."""
    ending = ".parquet" if find_spec("pyarrow") else ".csv"
    if ending == ".csv" and (scores.kind == "one-vs-one" or scores.features is not None):
        scores = Scores(scores.values, scores.items)
    write_score_table(work / f"{name}{ending}", scores.items, [(ids, scores)], scores.kind)


def _write_inputs(path: Path, ids: list[str], values: list[Any], folder: Path) -> None:
    """Write the text of each input, or the path of its file."""
    place = folder.resolve()
    with replace_file(path) as stream:
        for name, value in zip(ids, values, strict=True):
            about = {"text": value}
            if isinstance(value, Path):
                about = {"path": os.path.relpath(value.resolve(), place)}
            stream.write(f"{json.dumps({ID: name, **about})}\n")


# ---- Reading


def open_run(folder: str | Path) -> Run:
    """Read a run folder, which `Recognition.save` or ``rankshot recognise`` wrote.

    Parameters
    ----------
    folder : str or Path
        The folder.

    Raises
    ------
    InputError
        If this is not the folder of a run of this version, or if a file of it is missing.

    Examples
    --------
    >>> import tempfile
    >>> import rankshot as rs
    >>> scores = rs.Scores([[4.0, 0.5]], ["bus", "leopard"])
    >>> found = rs.recognise(scores, {"cat": ["leopard"], "truck": ["bus"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found.save(folder + "/run")
    ...     rs.recognition.open_run(folder + "/run").labels.tolist()
    ['truck']
    """
    folder = Path(folder)
    about = _read_manifest(folder / MANIFEST)
    hashes = read_hashes(folder / MANIFEST)
    if missing := [name for name in hashes if not (folder / name).is_file()]:
        raise InputError("folder", str(folder), f"lacks {quote_names(missing)}", hint=AGAIN)
    files = {Path(name).stem: folder / name for name in hashes if not name.endswith(LABELS)}
    score_type = "one-vs-rest-logits" if about["kind"] == "one-vs-rest" else LOGITS
    scores, ids, _ = open_scores(files[SCORES], score_type=score_type).read()
    if EVIDENCE in files:
        evidence = open_scores(files[EVIDENCE]).read().scores
        scores = scores.with_blocks(features=scores.features, evidence=evidence)
    pairs: dict[str, Any] = {
        name: (
            open_scores(files[name], score_type=score_type).read().scores,
            _read_labels(folder / f"{name}{LABELS}"),
        )
        for name in (REFERENCE, EXAMPLES)
        if name in files
    }
    seen = tuple(about["seen"])
    rankings = read_rankings(folder / RANKINGS, seen)
    found, head = read_predictions(folder / PREDICTIONS), load_head(folder / HEAD)
    if [*found.targets] != head.classes_.tolist() or len(found.ids) != len(scores):
        rule = "has other inputs or classes than the run"
        raise InputError("folder", str(folder / PREDICTIONS), rule, hint=AGAIN)
    return Run(
        folder,
        np.array(ids, object),
        found.labels.astype(str),
        found.proba,
        Knowledge(rankings, pairs.get(REFERENCE), pairs.get(EXAMPLES), scores),
        Settings.from_json(about["settings"]),
        head,
        tuple(about["notes"]),
        None if about["predicted"] is None else Interval(*about["predicted"]),
        about["model"],
        files.get("inputs"),
        about["labelled"],
    )


def _read_manifest(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError("folder", str(path.parent), "is not the folder of a run")
    content: dict[str, Any] = parse_json(path.read_bytes())
    found = content.get("format") if isinstance(content, dict) else None
    if found != FORMAT:
        rule = "is of another version" if str(found).startswith("rankshot run") else "is damaged"
        raise InputError("folder", str(path), rule, hint=AGAIN)
    wanted: dict[str, Any] = dict.fromkeys(("settings", "model", "files", "labelled"), dict)
    wanted |= {"seen": list, "notes": list, "kind": str, "predicted": list | None}
    for name, kind in wanted.items():
        if not isinstance(content.get(name), kind):
            raise InputError("folder", str(path), f"is damaged: {name!r} is missing", hint=AGAIN)
    return content


def _read_labels(path: Path) -> NDArray[np.str_] | None:
    if not path.is_file():
        return None
    return np.array(open_table(path).read_texts(LABEL)[0]).astype(str)
