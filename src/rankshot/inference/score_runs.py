"""Score inputs into a file: in parts, so that a run that was stopped goes on where it was.

While a run lasts, ``scores.parquet.parts/`` holds its parts and ``run.json``, which describes the
model, the preprocessing, the classes and the inputs. At the end the parts become one table, and
``scores.parquet.json`` keeps the description, so that the same run is not done twice.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, TextIO

import numpy as np

from rankshot.core.errors import RankshotError
from rankshot.core.files import replace_file
from rankshot.core.progress import Announce
from rankshot.core.tables import open_csv_writer
from rankshot.inference.inputs import Inputs, Skipped, open_inputs
from rankshot.inference.model_interface import fingerprint_files
from rankshot.inference.preprocessing import Preprocessing
from rankshot.inference.scoring import (
    BATCH,
    Classes,
    ScoredBatch,
    ScoringPlan,
    nothing_scored,
    plan_scoring,
    refuse_skipped,
)
from rankshot.zeroshot.files.score_tables import Block, require_score_file, write_score_table

PART_CELLS, PART_ROWS, PART_SECONDS = 2**20, 2**13, 20.0
"""A part is written when it has so many scores or inputs, or after so much time."""
VERSION = 1
_DESCRIPTION = "run.json"


@dataclass(frozen=True)
class ScoreRun:
    """What `score_to_file` did.

    Attributes
    ----------
    path : Path
        The table of scores.
    n_rows : int
        The inputs in it.
    n_skipped : int
        The inputs that have no scores; ``skipped_path`` has their ids and reasons.
    skipped_path : Path
        The list of all that was skipped, which exists only if something was.
    reasons : dict of str to int
        How often each reason occurs among them.
    others : dict of str to int
        The same for what is no input, such as hidden files, and is listed there as well.
    n_resumed : int
        The inputs whose scores came from the parts of an earlier run.
    was_finished : bool
        Whether the same run was finished earlier, so that nothing was done.
    had_probabilities : bool
        Whether the outputs of the model were probabilities, of which the table has the logarithms.
    seconds : float
        The time that the model and the decoding took.

    Examples
    --------
    >>> import tempfile
    >>> import rankshot as rs
    >>> count = lambda texts: [[text.count(letter) for letter in "ab"] for text in texts]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = folder + "/scores.csv"
    ...     run = rs.inference.score_to_file(count, ["banana", "bb"], path, ["a", "b"])
    >>> run.n_rows, run.n_skipped, run.path.name
    (2, 0, 'scores.csv')
    """

    path: Path
    n_rows: int
    n_skipped: int
    skipped_path: Path
    reasons: dict[str, int]
    others: dict[str, int]
    n_resumed: int = 0
    was_finished: bool = False
    had_probabilities: bool = False
    seconds: float = 0.0


def score_to_file(
    model: Any,
    inputs: Any,
    output: str | Path,
    classes: Classes | None = None,
    *,
    preprocessing: Preprocessing | str | Path | Mapping[str, Any] | None = None,
    batch_size: int = BATCH,
    on_error: str = "raise",
    column: str | None = None,
    id_column: str | None = None,
    again: bool = False,
    replace: bool = False,
    progress: Announce | None = None,
) -> ScoreRun:
    """Write the scores of a model for any number of inputs to a table, in bounded memory.

    A run that was stopped goes on where it was when it is started again with the same model,
    preprocessing, classes and inputs. A run that was finished is not done again, and the scores of
    another run are not replaced. (A function has no fingerprint by which it could be recognised: it
    is always run from the start.)

    Parameters
    ----------
    model, inputs, classes, preprocessing, batch_size, on_error, column, id_column, progress
        As for `score`. Inputs that are skipped are listed in a file beside the output, such as
        ``scores.skipped.csv``.
    output : str or Path
        Ends in .csv, .parquet or .npz.
    again : bool
        Start from the beginning, whatever earlier runs have left.
    replace : bool
        Replace the scores of another run that was finished.

    Returns
    -------
    ScoreRun

    Examples
    --------
    >>> import tempfile
    >>> from rankshot.inference import score_to_file
    >>> count = lambda texts: [[text.count(c) for c in "ab"] for text in texts]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = score_to_file(count, ["banana", "bb"], folder + "/scores.csv", ["a", "b"])
    ...     print(run.n_rows, run.path.read_text().split())
    2 ['id,a,b', '0,3.0,1.0', '1,0.0,2.0']
    """
    plan = model if isinstance(model, ScoringPlan) else plan_scoring(model, classes, preprocessing)
    found = open_inputs(inputs, plan.model.takes, column, id_column)
    path = Path(output)
    require_score_file(path, plan.classes.names, plan.model.kind)
    n_entries, inputs_fingerprint = found.scan()
    description = describe_run(plan, n_entries, inputs_fingerprint)
    parts = _Parts(_parts_path(path))
    if not again:
        finished, problem = _find_finished(path, description)
        # What that run skipped may be an error for this one, which then finds it again.
        if finished is not None and (on_error == "skip" or not finished.n_skipped):
            return finished
        if problem and not replace and not parts.folder.exists():
            raise RankshotError(
                f"{path}: is there, {problem}; --again (again=True) replaces it, or give another "
                "output"
            )
    done = parts.open(description, again=again)
    if on_error == "raise":
        refuse_skipped(parts.skipped())
    plan.has_probabilities = parts.had_probabilities
    begin = monotonic()
    entries = islice(iter(found), done, None)
    held = _HeldBatches(parts, plan, done)
    try:
        with closing(plan.run(entries, batch_size, on_error)) as batches:
            for batch in batches:
                held.add(batch)
                if progress is not None:
                    progress(held.n_entries, n_entries, "inputs")
    finally:
        # Also after an error or Ctrl-C: what is done need not be done again.
        held.write()
        parts.remove_if_empty()
    seconds = monotonic() - begin
    return _join(parts, path, plan, found, description, _Progress(done, seconds))


def describe_run(plan: ScoringPlan, n_entries: int, inputs: str) -> dict[str, Any]:
    """Return what a run depends on: two runs with the same description have the same result."""
    return {**describe_plan(plan), "inputs": inputs, "n_inputs": n_entries}


def describe_plan(plan: ScoringPlan) -> dict[str, Any]:
    """Return what the score of an input depends on."""
    model = plan.model
    return {
        "version": VERSION,
        "model": model.name,
        "model_fingerprint": model.fingerprint,
        # All digits; the text for people has four.
        "preprocessing": repr(model.preprocessing) if model.takes == "pictures" else None,
        "classes": sha256(json.dumps(plan.classes.names).encode()).hexdigest(),
        "n_classes": len(plan.classes.names),
    }


NAMES = {
    "version": "version of rankshot",
    "model_fingerprint": "model",
    "preprocessing": "preprocessing",
    "classes": "classes",
    "n_classes": "number of classes",
    "inputs": "inputs",
    "n_inputs": "number of inputs",
}
"""What is compared of two descriptions, in the words of messages."""


def find_change(kept: Mapping[str, Any], description: Mapping[str, Any]) -> str | None:
    """Return what differs between two descriptions, or None; a model's name does not count."""
    keys = (key for key in description if key in NAMES)
    return next((NAMES[key] for key in keys if kept[key] != description[key]), None)


class _Progress(NamedTuple):
    n_resumed: int
    seconds: float


def _skipped_path(path: Path) -> Path:
    return path.with_suffix(".skipped.csv")


def _parts_path(path: Path) -> Path:
    return Path(f"{path}.parts")


def count_kept(output: Path) -> int:
    """Return how many inputs are in the parts of a run that was stopped."""
    return _Parts(_parts_path(output)).find()


def _result_path(path: Path) -> Path:
    return Path(f"{path}.json")


def _find_finished(path: Path, description: dict[str, Any]) -> tuple[ScoreRun | None, str]:
    """Return the result of the same run, if it was finished; or why the table is another one."""
    if not path.is_file():
        return None, ""
    try:
        kept = json.loads(_result_path(path).read_text(encoding="utf-8"))
        changed = find_change(kept["run"], description)
        is_as_written = kept["table"] == fingerprint_files([path])
        result = _as_result(path, kept["result"], was_finished=True)
    except (OSError, ValueError, KeyError, TypeError):
        return None, ""
    if changed is not None:
        return None, f"from another run (not with the same {changed})"
    if not is_as_written:
        return None, "but was changed after the run that wrote it"
    return (None if description["model_fingerprint"] is None else result), ""


def _as_result(path: Path, kept: Mapping[str, Any], **more: Any) -> ScoreRun:
    return ScoreRun(
        path,
        kept["n_rows"],
        kept["n_skipped"],
        _skipped_path(path),
        dict(kept["reasons"]),
        dict(kept["others"]),
        had_probabilities=kept["had_probabilities"],
        **more,
    )


# -------------------------------------------------------------------- parts


class _Part(NamedTuple):
    """The content of one part: it ends before the input number ``end``."""

    ids: list[str]
    values: Any
    skipped: list[Skipped]
    end: int
    had_probabilities: bool


class _Parts:
    """The folder of parts: each is a file that is complete, or not there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: list[Path] = []
        self.had_probabilities: bool | None = None

    def open(self, description: dict[str, Any], *, again: bool) -> int:
        """Return the number of inputs that are done; start anew if there is nothing to go on."""
        place = self.folder / _DESCRIPTION
        if place.is_file() and not again and description["model_fingerprint"] is not None:
            self._require_same(place, description)
            return self.find()
        if self.folder.exists():
            self._refuse_foreign_files()
            shutil.rmtree(self.folder)
        try:
            self.folder.mkdir()
        except OSError as error:
            raise RankshotError(f"{self.folder}: cannot write there ({error.strerror})") from None
        with replace_file(place) as stream:
            json.dump(description, stream, indent=1)
        return 0

    def remove_if_empty(self) -> None:
        """Leave nothing behind if no input was done."""
        if not self.files:
            shutil.rmtree(self.folder)

    def _refuse_foreign_files(self) -> None:
        for file in self.folder.iterdir():
            if not file.name.startswith(("part-", ".part-", _DESCRIPTION, f".{_DESCRIPTION}")):
                raise RankshotError(
                    f"{self.folder}: {file.name!r} is no part of a run; give another output"
                )

    def _require_same(self, place: Path, description: dict[str, Any]) -> None:
        try:
            kept = json.loads(place.read_text(encoding="utf-8"))
            changed = find_change(kept, description)
        except (ValueError, KeyError, TypeError):
            changed = "description"
        if changed:
            raise RankshotError(
                f"{self.folder}: has parts of a run that was stopped, but not with the same "
                f"{changed}; start from the beginning (again=True, --again), or give another "
                "output"
            )

    def find(self) -> int:
        """Find the parts that are complete; return the number of inputs in them."""
        end = 0
        for file in sorted(self.folder.glob("part-*.npz")):
            # A part after a gap, or a damaged one, is done again.
            part = self._try_read(file) if file == self._file(end) else None
            if part is None:
                file.unlink()
                continue
            self.files.append(file)
            self.had_probabilities = part.had_probabilities if part.ids else self.had_probabilities
            end = part.end
        return end

    def _file(self, begin: int) -> Path:
        return self.folder / f"part-{begin:012d}.npz"

    def write(self, begin: int, part: _Part) -> None:
        """Write a part whose first input is number ``begin``."""
        file = self._file(begin)
        with replace_file(file) as stream:
            np.savez(
                stream.buffer,
                allow_pickle=False,
                ids=np.array(part.ids, dtype=str),
                values=part.values,
                skipped=np.array([one.id for one in part.skipped], dtype=str),
                reasons=np.array([one.reason for one in part.skipped], dtype=str),
                is_input=np.array([one.is_input for one in part.skipped], dtype=bool),
                end=np.array(part.end),
                had_probabilities=np.array(part.had_probabilities),
            )
        self.files.append(file)

    def _try_read(self, file: Path) -> _Part | None:
        try:
            return self._read(file)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def _read(self, file: Path) -> _Part:
        # NumPy would leave a damaged file open.
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            skipped = zip(arrays["skipped"], arrays["reasons"], arrays["is_input"], strict=True)
            return _Part(
                arrays["ids"].tolist(),
                arrays["values"],
                [Skipped(str(name), str(why), bool(is_input)) for name, why, is_input in skipped],
                int(arrays["end"]),
                bool(arrays["had_probabilities"]),
            )

    def blocks(self) -> Iterator[Block]:
        """Yield ids and scores, part by part."""
        for file in self.files:
            part = self._read(file)
            yield part.ids, part.values

    def skipped(self) -> Iterator[Skipped]:
        """Yield what was skipped."""
        for file in self.files:
            yield from self._read(file).skipped


class _HeldBatches:
    """Collects batches until they are worth a file."""

    def __init__(self, parts: _Parts, plan: ScoringPlan, begin: int) -> None:
        self._parts, self._plan = parts, plan
        self._begin = self.n_entries = begin
        self._held: list[ScoredBatch] = []
        self._since = monotonic()

    def add(self, batch: ScoredBatch) -> None:
        self._held.append(batch)
        self.n_entries += batch.n_entries
        rows = self.n_entries - self._begin
        is_full = rows >= PART_ROWS or rows * len(self._plan.classes.names) >= PART_CELLS
        if is_full or monotonic() - self._since >= PART_SECONDS:
            self.write()

    def write(self) -> None:
        if not self._held:
            return
        tables = [held.values for held in self._held if held.ids]
        part = _Part(
            [name for held in self._held for name in held.ids],
            np.concatenate(tables) if tables else np.empty((0, 0)),
            [one for held in self._held for one in held.skipped],
            self.n_entries,
            bool(self._plan.has_probabilities),
        )
        self._parts.write(self._begin, part)
        self._held.clear()
        self._begin, self._since = self.n_entries, monotonic()


def _join(
    parts: _Parts,
    path: Path,
    plan: ScoringPlan,
    inputs: Inputs,
    description: dict[str, Any],
    progress: _Progress,
) -> ScoreRun:
    """Make one table of the parts, and remove them."""
    if next(parts.skipped(), None) is None:
        _skipped_path(path).unlink(missing_ok=True)
        reasons, others = Counter[str](), Counter[str]()
    else:
        with replace_file(_skipped_path(path)) as stream:
            reasons, others = write_skipped(stream, parts.skipped())
    if not any(len(ids) for ids, _ in parts.blocks()):
        skipped = list(parts.skipped())
        shutil.rmtree(parts.folder, ignore_errors=True)
        raise nothing_scored(inputs, skipped)
    n_rows = write_score_table(path, plan.classes.names, parts.blocks, plan.model.kind)
    result = {
        "n_rows": n_rows,
        "n_skipped": reasons.total(),
        "reasons": dict(reasons.most_common()),
        "others": dict(others.most_common()),
        "had_probabilities": bool(plan.has_probabilities),
    }
    with replace_file(_result_path(path)) as stream:
        kept = {"run": description, "result": result, "table": fingerprint_files([path])}
        json.dump(kept, stream, indent=1)
    shutil.rmtree(parts.folder)
    return _as_result(path, result, n_resumed=progress.n_resumed, seconds=progress.seconds)


def write_skipped(stream: TextIO, skipped: Iterable[Skipped]) -> tuple[Counter[str], Counter[str]]:
    """Write what was skipped; return how often each reason occurs, for inputs and the rest."""
    reasons: Counter[str] = Counter()
    others: Counter[str] = Counter()
    rows = open_csv_writer(stream)
    rows.writerow(["id", "reason", "input"])
    for one in skipped:
        rows.writerow([one.id, one.reason, "yes" if one.is_input else "no"])
        # Some reasons name sizes and the like, and would all be different.
        (reasons if one.is_input else others)[one.reason.partition(" (")[0]] += 1
    return reasons, others
