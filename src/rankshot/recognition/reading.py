"""What a caller passes to `recognise`: inputs become scores; names become rankings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot import sources
from rankshot.core.columns import open_table
from rankshot.core.errors import InputError, format_count, quote_names
from rankshot.core.files import read_names
from rankshot.core.tables import ID, LABEL, as_frame
from rankshot.core.validation import as_names
from rankshot.ranking.ranking_files import read_rankings
from rankshot.ranking.rankings import Rankings
from rankshot.recognition.exported_labels import match_ids, read_labels
from rankshot.recognition.scoring import Classes, ScoredInputs, ScoringPlan, run_plan
from rankshot.sources.named_rankings import Source
from rankshot.sources.names import ClassLabels, read_class_labels
from rankshot.zeroshot.files.score_tables import AUTO, RULE, guess_score_type, open_scores
from rankshot.zeroshot.scores import Scores, are_probabilities, name_columns, warn_of_probabilities

Labels = NDArray[np.str_]


class Labelled(NamedTuple):
    """Scored inputs, and their classes if these are known."""

    inputs: ScoredInputs
    labels: Labels | None
    is_part: bool = False
    """Whether they are some of the inputs to classify."""


# ---- Inputs


@dataclass(frozen=True)
class Reader:
    """Reads inputs as scores, with a model or without one.

    Without a model, ``items`` are the names of the columns of an array.
    """

    plan: ScoringPlan | None
    items: Sequence[object] | None = None
    score_type: str = AUTO
    on_error: str = "stop"

    def read(self, given: Any, what: str = "inputs") -> Labelled:
        """Scores of what a caller passes, with the labels that are in the same table or folder."""
        if isinstance(given, ScoredInputs):
            return Labelled(given, None)
        if isinstance(given, Scores):
            return Labelled(_without_ids(given), None)
        if self.plan is not None:
            return _run_model(self.plan, given, self.on_error)
        if isinstance(given, (str, Path)):
            return _read_table(Path(given), self.score_type)
        if (frame := as_frame(given)) is not None:
            return _read_frame(frame)
        if self.items is None:
            raise InputError(
                what,
                type(given).__name__,
                "must be Scores, a table of scores, or inputs with model=",
                hint="rs.Scores(values, names of the seen classes), or seen=names",
            )
        scores = name_columns(given, as_names(self.items))
        warn_of_probabilities(scores)
        return Labelled(_without_ids(scores), None)

    def read_labelled(self, given: Any, inputs: ScoredInputs, what: str) -> Labelled:
        """Inputs and their classes: a pair, a table with labels, or labels of the inputs by id."""
        if isinstance(given, Mapping):
            return _look_up(given, inputs, what)
        if isinstance(given, (str, Path)) and (by_id := read_labels(Path(given))) is not None:
            return _look_up(by_id, inputs, what)
        if not (isinstance(given, tuple) and len(given) == 2):
            return self.read(given, what)
        found, labels = self.read(given[0], what), given[1]
        if labels is None:
            return found
        names = np.asarray(labels).astype(str)
        if names.shape != (len(found.inputs.ids),):
            rule = f"must be one label for each of {format_count(len(found.inputs.ids), 'input')}"
            raise InputError(what, names.shape, rule)
        return Labelled(found.inputs, names)


def _without_ids(scores: Scores) -> ScoredInputs:
    ids = np.arange(len(scores)).astype(str).astype(object)
    return ScoredInputs(scores, ids, (), ClassLabels.from_names(scores.items))


def _run_model(plan: ScoringPlan, given: Any, on_error: str) -> Labelled:
    found = run_plan(plan, given, on_error=on_error)
    if not isinstance(given, (str, Path)) or not Path(given).is_dir():
        return Labelled(found, None)
    # A folder with one subfolder of images per class.
    folders = [Path(str(name)).parent.name for name in found.ids]
    return Labelled(found, np.array(folders) if all(folders) else None)


def _read_table(path: Path, score_type: str = AUTO) -> Labelled:
    """A file of scores, perhaps with a column of labels."""
    if not path.is_dir() and LABEL in (file := open_table(path)).columns:
        items = [name for name in file.columns if name not in {LABEL, ID}]
        labels = np.array([name.strip() for name in file.read_texts(LABEL)[0]])
        rows = np.flatnonzero(labels != "")
        found = _without_ids(_as_log(file.read_numbers(items, RULE)[rows], items))
        if ID in file.columns:
            found = replace(found, ids=np.array(file.read_texts(ID)[0], object)[rows])
        return Labelled(found, labels[rows])
    table = open_scores(path)
    first = next(table.batches())[1]
    if score_type == AUTO:
        score_type = guess_score_type(first.columns, table)
    ids, scores = replace(table, score_type=score_type).read()
    return Labelled(replace(_without_ids(scores), ids=np.array(ids, object)), None)


def _as_log(values: NDArray[Any], items: Sequence[str]) -> Scores:
    if are_probabilities(values):
        return Scores.from_probabilities(values, items)
    return Scores(values, items)


def _read_frame(frame: Any) -> Labelled:
    labels = ids = None
    if LABEL in frame.columns:
        labels = np.array(list(map(str, frame[LABEL].to_list())))
        frame = frame.drop(LABEL)
    if ID in frame.columns:
        ids = np.array(list(map(str, frame[ID].to_list())), object)
    scores = name_columns(frame.to_native(), ())
    warn_of_probabilities(scores)
    found = _without_ids(scores)
    return Labelled(found if ids is None else replace(found, ids=ids), labels)


def _look_up(by_id: Mapping[str, str], inputs: ScoredInputs, what: str) -> Labelled:
    """The inputs that have labels, by their ids."""
    row_of = {str(name): row for row, name in enumerate(inputs.ids)}
    meant = match_ids(list(map(str, by_id)), list(row_of))
    if unknown := [name for name in by_id if str(name) not in meant]:
        hint = f"the first ids are {quote_names(inputs.ids[:3])}"
        raise InputError(what, unknown[0], "is not the id of an input", hint=hint)
    rows = np.array([row_of[meant[str(name)]] for name in by_id], dtype=np.intp)
    some = replace(inputs, scores=inputs.scores[rows], ids=inputs.ids[rows], values=None)
    return Labelled(some, np.array(list(by_id.values()), dtype=str), is_part=True)


# ---- New classes


def read_new(new: Any) -> Any:
    """Rankings, or the names of new classes: whatever a caller passes."""
    if isinstance(new, Rankings | Mapping):
        return new
    if isinstance(new, (str, Path)):
        path = Path(new)
        if not path.is_file():
            rule = "must be rankings, a list of names, or a file of either"
            raise InputError("new", str(new), rule)
        return read_names(path) if path.suffix == ".txt" else read_rankings(path)
    if as_frame(new) is not None:
        return read_rankings(new)
    return as_names(new, "new")


def rank_new(
    source: Source | str | Sequence[Source | str] | None,
    new: tuple[str, ...],
    labels: Labels | None,
    seen: ClassLabels,
    shown: Iterable[str] = (),
    what: str = "new",
) -> tuple[Rankings, list[str]]:
    """Rankings of new classes, and of labelled seen classes, by all sources; and notes.

    A new class that no source ranks, and that has no example, is left out and named.
    """
    held_out = [] if labels is None else np.unique(labels).tolist()
    targets = (*new, *(name for name in held_out if name in seen.names and name not in new))
    found = sources.rank_names(targets, seen, source, compare=bool(held_out))
    unknown = [name for name in found.unknown if name in new and name not in {*shown}]
    if found.rankings is None or (unknown and len(unknown) == len(new)):
        name = (unknown or new)[0]
        reasons = [note for note in found.notes if repr(name) in note]
        hint = "; or ".join([*reasons[:1], "give a ranking: {name: [seen classes]}"])
        raise InputError(what, name, "is not known to the source", hint=hint)
    return found.rankings, [*found.notes]


def read_seen(seen: Classes | None) -> Sequence[object] | None:
    """The names of the columns of an array."""
    if seen is None:
        return None
    try:
        return read_class_labels(seen).names
    except InputError as error:
        raise InputError("seen", error.value, error.rule, error.where, error.hint) from None
