"""`recognise`: from a model, inputs and names to new classes, using whatever data are passed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from math import ceil
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankshot import sources
from rankshot.core.errors import NO_VALUE, InputError, count_others, format_count, quote_names
from rankshot.core.files import read_names
from rankshot.core.tables import TABLE_ENDINGS, as_frame, make_frame
from rankshot.core.validation import as_names
from rankshot.ranking.ranking_files import read_rankings
from rankshot.ranking.rankings import Rankings
from rankshot.recognition.images import Preprocessing
from rankshot.recognition.inputs import Model
from rankshot.recognition.label_studio import make_tasks, match_ids, read_labels, write_tasks
from rankshot.recognition.run_folder import write_run
from rankshot.recognition.scoring import (
    Classes,
    ScoredInputs,
    check_scores,
    prepare_model,
    score_inputs,
)
from rankshot.sources.named_rankings import Source
from rankshot.sources.names import ClassLabels, read_class_labels
from rankshot.zeroshot.class_rankings import as_rankings, only_new, source_names, sources_of
from rankshot.zeroshot.decide import most_probable
from rankshot.zeroshot.forecast import Forecast
from rankshot.zeroshot.joint_head import JointHead
from rankshot.zeroshot.knowledge import Knowledge
from rankshot.zeroshot.linear_head import LinearHead
from rankshot.zeroshot.metrics import Interval
from rankshot.zeroshot.rehearsal import LEAST_CLASSES, USUAL_FOLDS
from rankshot.zeroshot.remarks import (
    describe_closed_set,
    describe_fit,
    describe_predictions,
)
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.settings import Settings
from rankshot.zeroshot.tables import AUTO, as_labels, open_predictions, read_scores
from rankshot.zeroshot.weighted_mean import LEAST_INPUTS

Labels = NDArray[np.str_]
MOST_HELD_OUT = 1 / 3
"""If possible, no larger share of the seen classes is held out together: all of them are there for
new classes."""
MOST_SHOWN = 20
"""The rows of a result that a notebook shows."""


@dataclass(frozen=True, eq=False, repr=False)
class Recognition:
    """The result of `recognise`.

    Attributes
    ----------
    ids : array of str
        The ids of the inputs: paths of images, ids of a table, or numbers.
    labels : array of str
        Their classes.
    proba : ndarray of shape (n, classes)
        The probabilities of all classes, in the order of ``head.classes_``.
    alone : array of str
        The class of each input, predicted without the other inputs of the batch.
    head : LinearHead or JointHead
        The fitted head, which can be saved.
    forecast : Forecast or None
        The rehearsal on labelled inputs of seen classes; its ``predicted`` is the mean accuracy on
        the new classes, for inputs classified independently.
    notes : tuple of str
        Sentences that describe what was done, and why.
    knowledge : Knowledge
        What was known: rankings, reference, examples, and the scores of the inputs.
    settings : Settings
        How the head was fitted.
    inputs : ScoredInputs
        The inputs with their scores, and those that were skipped.
    labelled : mapping
        The labels that some of the inputs had, by their ids.
    reader : Reader
        How further inputs become scores.

    Examples
    --------
    >>> import rankshot as rs
    >>> rankings = {"cat": ["leopard"], "truck": ["bus"]}
    >>> found = rs.recognise(rs.Scores([[4.0, 0.5]], ["bus", "leopard"]), rankings)
    >>> found
    Recognition: 1 input, 2 classes
    >>> found.ids.tolist(), found.head.classes_.tolist(), found.forecast
    (['0'], ['cat', 'truck'], None)
    """

    ids: NDArray[np.object_]
    labels: NDArray[np.str_]
    proba: NDArray[np.floating]
    alone: NDArray[np.str_]
    head: LinearHead | JointHead
    forecast: Forecast | None
    notes: tuple[str, ...]
    knowledge: Knowledge
    settings: Settings
    inputs: ScoredInputs
    labelled: Mapping[str, str]
    reader: Reader

    @property
    def predicted(self) -> Interval | None:
        """The mean accuracy on the new classes that is forecast, for inputs classified alone."""
        return None if self.forecast is None else self.forecast.predicted

    def __repr__(self) -> str:
        n, classes = format_count(len(self.ids), "input"), len(self.head.classes_)
        return f"Recognition: {n}, {format_count(classes, 'class')}"

    def _repr_html_(self) -> str:
        rows = zip(self.ids, self.labels, self.proba.max(axis=1), strict=True)
        cells = "".join(
            f"<tr><td>{escape(str(name))}</td><td>{escape(label)}</td><td>{p:.2f}</td></tr>"
            for name, label, p in list(rows)[:MOST_SHOWN]
        )
        more = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        head = "<tr><th>id</th><th>label</th><th>probability</th></tr>"
        return f"<p>{escape(repr(self))}</p><table>{head}{cells}</table><ul>{more}</ul>"

    def to_frame(self) -> Any:
        """A pandas, polars or PyArrow table, whichever is installed: id, label, probabilities.

        Examples
        --------
        >>> import rankshot as rs
        >>> rankings = {"cat": ["leopard"], "truck": ["bus"]}
        >>> found = rs.recognise(rs.Scores([[4.0, 0.5]], ["bus", "leopard"]), rankings)
        >>> list(found.to_frame().columns)
        ['id', 'label', 'probability', 'P(cat)', 'P(truck)']
        """
        columns = {
            "id": self.ids.tolist(),
            "label": self.labels.tolist(),
            "probability": self.proba.max(axis=1),
        }
        names = [f"P({name})" for name in self.head.classes_]
        return make_frame(columns | dict(zip(names, self.proba.T, strict=True)))

    def predict(self, inputs: object) -> NDArray[np.str_]:
        """The classes of other inputs, scored by the same model.

        Parameters
        ----------
        inputs
            As for `recognise`.
        """
        return self.head.predict(self.reader.read(inputs).scores)

    def to_label_studio(
        self, path: str | Path | None = None, *, prefix: str = "", overwrite: bool = False
    ) -> list[dict[str, Any]]:
        """Tasks for Label Studio, with the predictions.

        Parameters
        ----------
        path : str or Path, optional
            A .json file to write them to; the labelling configuration is written beside it (.xml).
        prefix : str
            What Label Studio puts before the id of an image to find it, such as
            ``"/data/local-files/?d=photos/"``.
        overwrite : bool
            Replace existing files.

        Returns
        -------
        list of dict
            One task per input. Labels given there are read as ``examples`` of `recognise`.
        """
        if path is not None:
            write_tasks(self, Path(path), prefix, overwrite=overwrite)
        return make_tasks(self, prefix)

    def write(self, path: str | Path) -> None:
        """Write the predictions as a table.

        Parameters
        ----------
        path : str or Path
            The table to write (.csv, .parquet).
        """
        with open_predictions(path, self.head.classes_) as writer:
            writer.write(self.ids, self.labels, self.proba)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write a run folder, which `open_run`, ``rankshot review`` and ``report`` open.

        A run in this folder is replaced when the new one is complete; labels given in a review
        stay.

        Parameters
        ----------
        folder : str or Path
            The folder to write.
        overwrite : bool
            Replace files that were changed since they were written.
        """
        write_run(self, Path(folder), overwrite=overwrite)


def recognise(
    inputs: object,
    new: Rankings | Mapping[str, Any] | Iterable[str] | str | Path,
    *,
    model: object = None,
    seen: Classes | None = None,
    source: Source | str | Sequence[Source | str] | None = None,
    reference: object = None,
    examples: object = None,
    classes: Literal["new", "all"] = "new",
    seen_loss: float | None = None,
    none: bool = False,
    batch: bool | Literal["auto"] = "auto",
    rehearse: bool = True,
    raters: Sequence[str] | None = None,
    preprocessing: Preprocessing | str | Path | Mapping[str, object] | None = None,
    features: bool = True,
    on_error: Literal["stop", "skip"] = "stop",
    settings: Settings | None = None,
    score_type: str = AUTO,
) -> Recognition:
    """Predict new classes, using whatever data are passed.

    If the inputs of the reference have labels, their classes are held out as if they were new, to
    choose settings, to calibrate, and to predict the accuracy. Labelled examples of new classes are
    used. If there are at least five inputs per class, they are classified jointly. The ``notes`` of
    the result describe what was done.

    Parameters
    ----------
    inputs : object
        Scores of a classifier: `Scores`, a file (.csv, .parquet), a data frame, or an array with
        ``seen``. Or, with a model, inputs: a folder of images, a file of paths or texts (.txt,
        .csv, .jsonl), a list, an array, or a ``datasets.Dataset``.
    new : rankings or names
        Rankings of the seen classes for each new class: a dict with one list of seen classes per
        new class, most similar first; `Rankings`; a data frame or a file. For a rehearsal, of the
        labelled seen classes as well. Or the names of the new classes, which the source ranks: a
        list, or a .txt file.
    model : str, Path or object, optional
        What scores the inputs: see `open_model`.
    seen : sequence, mapping, str or Path, optional
        The names of the model's classes (or of the columns of an array), in their order; needed
        unless the model has them.
    source : source, str or list of these, optional
        What ranks names: an object such as `LanguageModel`, or a text as in the command, such as
        ``"llm:gpt-4o"``. By default the dictionary of look-alikes or sound-alikes, or WordNet if
        the seen classes are not in it.
    reference : inputs, or inputs and labels, optional
        Varied inputs of seen classes that the model was not trained on, in any form of ``inputs``,
        and their classes if they are known. A table may have a column ``label``, and a folder one
        subfolder per class. Fewer than ten inputs are not used.
    examples : inputs and labels, optional
        Inputs of new classes, and their classes. Or the labels of some of the inputs: a dict by
        ids, a table with the columns ``id`` and ``label``, or an export of Label Studio (.json,
        .csv).
    classes : {"new", "all"}
        Whether only new classes may be predicted, or seen classes as well.
    seen_loss : float, optional
        With ``classes="all"``, the share of the accuracy on seen classes that may be lost.
    none : bool
        Whether "none of these" may be predicted.
    batch : bool or "auto"
        Whether all inputs are classified jointly. Most new classes should occur among them, several
        times each. With "auto", this is done if there are at least five inputs per class; with
        ``classes="all"``, the inputs only serve as the reference, if there is none.
    rehearse : bool
        Whether classes of a reference with labels are held out.
    raters : sequence of str, optional
        The raters of a dict, which then has one list for each of them per new class.
    preprocessing : Preprocessing, str, Path or mapping, optional
        How images become the model's input; needed unless the model has its own.
    features : bool
        Whether examples are compared by features of the model, if it has some.
    on_error : {"stop", "skip"}
        What to do with inputs that the model cannot use: raise an error, or leave them out. The
        notes name those that were left out.
    settings : Settings, optional
        Where a rehearsal begins, or what is used without one.
    score_type : str
        What the numbers in files of scores are: "logits", "probabilities", "one-vs-rest-logits",
        "one-vs-rest-probabilities" or "one-vs-one". By default inferred from the first rows.

    Returns
    -------
    Recognition
        Its ``labels``, ``proba``, ``head`` and ``notes``. Labels are text: compare them with
        ``y.astype(str)`` if your labels are numbers.

    Examples
    --------
    >>> import rankshot as rs
    >>> count = lambda texts: [[text.count(word) for word in ("wing", "wheel")] for text in texts]
    >>> found = rs.recognise(
    ...     ["two wings", "two wheels"], ["eagle", "bicycle"], model=count, seen=["bird", "car"])
    >>> found.labels
    array(['eagle', 'bicycle'], dtype='<U7')
    """
    given, ready = read_new(new), None
    own: dict[str, Any] = {"classes": classes, "none": none, "batch": batch}
    if seen_loss is not None:
        own["seen_loss"] = seen_loss
    wanted = replace(settings or Settings(), **own)
    _require_baseline(wanted, reference)
    if model is not None:
        ready = prepare_model(model, seen, preprocessing, features=features)
    names = None if seen is None else read_class_labels(seen).names
    if names is None and isinstance(given, Rankings):
        names = given.items
    reader = Reader(ready, names, score_type, on_error)
    scored = reader.read(inputs)
    notes = [f"skipped: {one.id} ({one.reason})" for one in scored.skipped if one.is_input]
    notes += [] if ready is None else [*ready.classes.changes]
    known = None if reference is None else reader.read_labelled(reference, scored, "reference")
    few = None if examples is None else reader.read_labelled(examples, scored, "examples")
    if few is not None and few.labels is None:
        raise InputError("examples", NO_VALUE, "must have labels", hint="pass (inputs, labels)")
    shown: Any = None if few is None else (few.scores, few.labels)
    labels = None if known is None else known.labels
    if not isinstance(given, Rankings | Mapping):
        taught = () if shown is None else shown[1].tolist()
        given, more = rank_new(source, given, labels, scored.classes, taught)
        notes += more
    elif source is not None:
        raise InputError("source", source, "cannot be combined with rankings")
    rankings = as_rankings(given, scored.scores.items, raters)
    notes += _list_unused(rankings, labels)
    knowledge = Knowledge(rankings, _as_reference(known, wanted, notes), shown, scored.scores)
    return _predict(knowledge, wanted, notes, scored, few, reader, rehearse=rehearse)


def _predict(
    knowledge: Knowledge,
    settings: Settings,
    notes: list[str],
    inputs: ScoredInputs,
    few: ScoredInputs | None,
    reader: Reader,
    *,
    rehearse: bool,
) -> Recognition:
    scores, (_, labels) = inputs.scores, knowledge.reference or (None, None)
    forecast = None
    if rehearse and labels is not None:
        forecast = rehearse_known(knowledge, settings, notes)
    if forecast is not None:
        settings = forecast.settings
        notes += forecast.describe()
    fitted = knowledge.fit_alone(settings)
    head = knowledge.complete(fitted, settings)
    notes += [f"warning: {doubt}" for doubt in check_scores(scores).doubts]
    notes += describe_fit(head)
    log_proba = np.asarray(head.log_proba(scores))
    predicted = alone = head.classes_[most_probable(log_proba)]
    if not settings.has_gate:
        alone = fitted.predict(scores)
        notes += describe_predictions(fitted, predicted, alone, scores)
        notes += describe_closed_set(scores)
    labelled: dict[str, str] = {}
    if few is not None and few.labels is not None and few.is_part:
        labelled = dict(zip(few.ids, few.labels.tolist(), strict=True))
    return Recognition(
        inputs.ids,
        predicted,
        np.exp(log_proba),
        alone,
        head,
        forecast,
        tuple(notes),
        knowledge,
        settings,
        inputs,
        labelled,
        reader,
    )


def _require_baseline(settings: Settings, reference: object) -> None:
    """Raise for a budget that nothing can measure."""
    if settings.seen_loss is not None and reference is None and settings.batch is not True:
        rule = "needs a reference (inputs of seen classes that the model was not trained on), or "
        rule += "inputs that are classified together"
        raise InputError("seen_loss", settings.seen_loss, rule, choices={"batch": True})


def _as_reference(known: ScoredInputs | None, settings: Settings, notes: list[str]) -> Any:
    """The scores of a reference with their labels, or None if there are too few."""
    if known is None:
        return None
    if len(known.scores) < LEAST_INPUTS:
        if settings.seen_loss is not None and settings.batch is not True:
            rule = f"is its number of inputs, and a budget needs at least {LEAST_INPUTS}"
            raise InputError("reference", len(known.scores), rule)
        n = format_count(len(known.scores), "input")
        notes.append(f"the reference of {n} is left out: {LEAST_INPUTS} or more are used")
        return None
    return known.scores if known.labels is None else (known.scores, known.labels)


def _list_unused(rankings: Rankings, labels: Labels | None) -> list[str]:
    """A sentence if seen classes are ranked that have no labelled inputs."""
    used = set() if labels is None else set(labels.tolist())
    seen = set(rankings.items).intersection(rankings.targets.tolist())
    if not (unused := sorted(seen - used)):
        return []
    why = "they are seen classes, whose rankings are only used in a rehearsal, with labelled inputs"
    return [f"rankings of {quote_names(unused)} are left out: {why}"]


def rehearse_known(knowledge: Knowledge, settings: Settings, notes: list[str]) -> Forecast | None:
    """Rehearse, if enough labelled classes are ranked by the sources that rank the new ones.

    Otherwise, the notes get the reason.
    """
    rankings, new = knowledge.rankings, only_new(knowledge.rankings)
    labels = None if knowledge.reference is None else knowledge.reference[1]
    is_alike = np.isin(sources_of(rankings), source_names(new))
    if new.rater_names:
        is_alike &= np.array([bool(rater) for rater in rankings.raters])
    targets = rankings.targets.astype(str)
    ranked = np.intersect1d([] if labels is None else labels, targets[is_alike])
    if len(ranked) < LEAST_CLASSES:
        notes.append(
            f"rehearsal: none. It needs rankings of at least {LEAST_CLASSES} labelled classes by "
            f"the sources that rank the new classes, and {len(ranked)} are ranked by these; the "
            "labelled inputs are only used as the reference"
        )
        return None
    is_rehearsed = is_alike & np.isin(targets, ranked)
    some = rankings[is_rehearsed | np.isin(targets, new.target_names)]
    least = ceil(len(ranked) / (MOST_HELD_OUT * len(rankings.items)))
    # Groups of enough classes for two halves, of which one stands for no class at all.
    n_folds = min(max(len(ranked) // (2 * LEAST_CLASSES), least, 2), len(ranked) // 2, USUAL_FOLDS)
    known = Knowledge(some, knowledge.reference, knowledge.examples, knowledge.batch)
    return known.rehearse(settings, n_folds=n_folds)


# ---- Inputs


@dataclass(frozen=True)
class Reader:
    """Reads inputs as scores, with a model or without one.

    Without a model, ``items`` are the names of the columns of an array.
    """

    model: Model | None
    items: Sequence[str] | None = None
    score_type: str = AUTO
    on_error: str = "stop"

    def read(self, given: Any) -> ScoredInputs:
        """Scores of what a caller passes, with the labels that are in the same table or folder."""
        if isinstance(given, ScoredInputs):
            return given
        if self.model is not None and not isinstance(given, Scores):
            return score_inputs(self.model, given, on_error=self.on_error)
        if isinstance(given, (str, Path)) and not _may_be_scores(Path(given)):
            rule = "must be given: without one, inputs are a table of scores"
            raise InputError("model", NO_VALUE, rule, where=str(given))
        scores, ids, labels = read_scores(given, self.items, self.score_type)
        if ids is None:
            ids = np.arange(len(scores)).astype(str).astype(object)
        return ScoredInputs(scores, ids, (), ClassLabels.from_names(scores.items), labels=labels)

    def read_labelled(self, given: Any, inputs: ScoredInputs, what: str) -> ScoredInputs:
        """Inputs and their classes: a pair, a table with labels, or labels of the inputs by id."""
        by_id = read_labels(Path(given)) if isinstance(given, (str, Path)) else given
        if isinstance(by_id, Mapping):
            return _look_up(by_id, inputs, what)
        is_pair = isinstance(given, tuple) and len(given) == 2
        table, labels = given if is_pair else (given, None)
        found = self.read(table)
        if labels is not None:
            return replace(found, labels=as_labels(labels, len(found.ids), what))
        if found.labels is None:
            return found
        # Rows of a table may lack a label.
        there = found.labels != ""
        scores, ids = found.scores[there], found.ids[there]
        return replace(found, scores=scores, ids=ids, labels=found.labels[there])


def _may_be_scores(path: Path) -> bool:
    """Whether this is a table, a folder of tables, or nothing."""
    if path.is_dir():
        return any(path.rglob("*.parquet"))
    return path.suffix in TABLE_ENDINGS or not path.exists()


def _look_up(by_id: Mapping[str, str], inputs: ScoredInputs, what: str) -> ScoredInputs:
    """The inputs that have labels, by their ids."""
    row_of = {str(name): row for row, name in enumerate(inputs.ids)}
    meant = match_ids(list(map(str, by_id)), list(row_of))
    if unknown := [name for name in by_id if str(name) not in meant]:
        hint = f"the first ids are {quote_names(inputs.ids[:3])}"
        rule = f"is not the id of an input{count_others(unknown)}"
        raise InputError(what, unknown[0], rule, hint=hint)
    rows = np.array([row_of[meant[str(name)]] for name in by_id], dtype=np.intp)
    labels = np.array(list(by_id.values()), dtype=str)
    ids, scores = inputs.ids[rows], inputs.scores[rows]
    return replace(inputs, scores=scores, ids=ids, values=None, labels=labels, is_part=True)


# ---- New classes


def read_new(new: Any) -> Any:
    """Rankings, or the names of new classes: whatever a caller passes."""
    if isinstance(new, Rankings | Mapping):
        return new
    is_path = isinstance(new, (str, Path))
    if is_path and not Path(new).is_file():
        raise InputError("new", str(new), "must be rankings, a list of names, or a file of either")
    if is_path and Path(new).suffix == ".txt":
        return read_names(Path(new))
    if is_path or as_frame(new) is not None:
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
        unknown = unknown or [*new]
        reasons = [note for note in found.notes if repr(unknown[0]) in note]
        hint = "; or ".join([*reasons[:1], "give rankings of the seen classes for it"])
        rule = f"is not known to the source{count_others(unknown)}"
        raise InputError(what, unknown[0], rule, hint=hint)
    return found.rankings, [*found.notes]
