"""Run a model over inputs, decoded in threads while it computes; and checks of its scores."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice, repeat
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import cpu_count
from numpy.typing import ArrayLike, NDArray

from rankshot.core.arrays import row_blocks
from rankshot.core.errors import (
    NO_VALUE,
    InputError,
    RankshotError,
    format_count,
    format_share,
    short_repr,
)
from rankshot.core.images import ignore_pillow_warnings, read_image, require_pillow
from rankshot.core.validation import require_choice, require_whole_number
from rankshot.recognition.images import (
    PRESETS,
    Preprocessing,
    fit_to_shape,
)
from rankshot.recognition.inputs import (
    Entries,
    Input,
    Model,
    Skipped,
    join_lines,
    open_inputs,
)
from rankshot.recognition.models import open_model
from rankshot.sources.names import ClassLabels, read_class_labels
from rankshot.zeroshot.decide import most_probable
from rankshot.zeroshot.metrics import Interval, wilson_interval
from rankshot.zeroshot.scores import (
    LARGEST_SCORE,
    Scores,
    are_probabilities,
    n_columns,
    name_columns,
)

BATCH = 16
"""Inputs per batch: on a CPU, larger batches do not fit its cache and are slower."""
AHEAD = 2
"""Batches that are decoded while the model computes."""
ON_ERROR = ("stop", "skip")
Classes = str | Path | Sequence[object] | Mapping[object, object]
Floats = NDArray[np.floating]
CLASSES_SHOWN = 5
LARGEST_CORRELATION = 0.65
"""Of 4,000 batches of 30 inputs of two classes or more, with the scores of six trained classifiers,
none was above it; of 1,000 batches of a single class, 9% were. All batches with raw pixels, pixels
divided twice by 255, or channels in the wrong place were. Exchanged colours and another mean, which
change the scores little, are not noticed."""
LOWEST_ACCURACY = 0.1
"""On images of 32 x 32 pixels, which are hard for it, a network for 1,000 classes recognises 13%
of 100 inputs of its own classes, and 0% to 4% with raw pixels, pixels from 0 to 1 or exchanged
axes."""
LEAST_INPUTS, LEAST_CLASSES = 10, 10
"""With fewer inputs or classes, high correlations are usual."""


@dataclass(frozen=True, eq=False, repr=False)
class ScoredInputs:
    """The scores of inputs, with their ids.

    Attributes
    ----------
    scores : Scores
        One row per input that was scored.
    ids : array of str
        Their ids: paths of images, ids of a table, or numbers.
    skipped : tuple of Skipped
        The inputs that were not scored, each with the reason.
    classes : ClassLabels
        The classes, with their synonyms and synsets if these are known.
    values : list or None
        The texts of the inputs, or the paths of their files.
    about : mapping
        What the model takes, its name, and the preprocessing of images.
    labels : array of str or None
        Their classes, if the table or the folder has them.
    is_part : bool
        Whether they are some of the inputs to classify.

    Examples
    --------
    >>> import rankshot as rs
    >>> count = lambda texts: [[text.count(letter) for letter in "ab"] for text in texts]
    >>> found = rs.recognition.score(count, ["banana", "bb"], seen=["a", "b"])
    >>> found.ids, found.scores.items, found.skipped
    (array(['0', '1'], dtype=object), ('a', 'b'), ())
    """

    scores: Scores
    ids: NDArray[np.object_]
    skipped: tuple[Skipped, ...]
    classes: ClassLabels
    values: list[Any] | None = None
    about: Mapping[str, str] = field(default_factory=dict)
    labels: NDArray[np.str_] | None = None
    is_part: bool = False

    def __repr__(self) -> str:
        return f"ScoredInputs: {self.scores!r}; {len(self.skipped)} skipped"


def score(
    model: object,
    inputs: object,
    seen: Classes | None = None,
    *,
    preprocessing: Preprocessing | str | Path | Mapping[str, object] | None = None,
    features: bool = True,
    batch_size: int = BATCH,
    on_error: str = "stop",
) -> ScoredInputs:
    """Return the scores of a model for images, texts or arrays, in memory.

    Parameters
    ----------
    model : str, Path, torch.nn.Module, estimator or callable
        The model, as for `open_model`. A function gets a list of inputs as they are or, with
        ``preprocessing``, an array of images; it returns one row of scores per input.
    inputs : str, Path, sequence or ndarray
        A folder of images, a file (.csv, .jsonl, .txt), a list, or an array with one row per
        input.
    seen : sequence, mapping, str or Path, optional
        The names of the seen classes in the order of the model's outputs: a list, a mapping from
        numbers, a file, or ``"imagenet-1k"``. Needed unless the model has them.
    preprocessing : Preprocessing, str, Path or mapping, optional
        The preprocessing of images: a preset such as ``"imagenet"``, a file
        ``preprocessor_config.json``, or a `Preprocessing`. Needed for images unless the model has
        its own.
    features : bool
        Whether to include features, by which labelled examples are compared: the input of the last
        linear layer of a network, or of the last step of a pipeline. There are none if that layer
        is not found, or if the model is a function.
    batch_size : int
        The number of inputs per call to the model.
    on_error : {"stop", "skip"}
        What to do with an input that cannot be read: raise an error, or skip and list it.

    Returns
    -------
    ScoredInputs
        Its ``scores`` can be passed to a head; probabilities are converted to logarithms.

    Examples
    --------
    >>> import rankshot as rs
    >>> count = lambda texts: [[text.count(c) for c in "ab"] for text in texts]
    >>> found = rs.recognition.score(count, ["banana", "bb"], seen=["a", "b"])
    >>> found.ids, found.scores.values.tolist()
    (array(['0', '1'], dtype=object), [[3.0, 1.0], [0.0, 2.0]])
    """
    ready = prepare_model(model, seen, preprocessing, features=features)
    return score_inputs(ready, inputs, batch_size, on_error)


def score_inputs(
    model: Model, inputs: object, batch_size: int = BATCH, on_error: str = "stop"
) -> ScoredInputs:
    """The scores of inputs by a model that `prepare_model` returned."""
    value_of: dict[str, Any] = {}

    def remember() -> Entries:
        for one in open_inputs(inputs, model.takes):
            if isinstance(one, Input) and isinstance(one.value, (str, Path)):
                value_of[one.id] = one.value
            yield one

    skipped: list[Skipped] = []
    blocks = list(run_model(model, remember(), batch_size, on_error, skipped))
    if not blocks:
        raise nothing_scored(inputs, skipped)
    [(ids, scores)] = blocks
    labels = None
    if isinstance(inputs, (str, Path)) and Path(inputs).is_dir():
        # A folder with one subfolder of images per class.
        folders = [Path(name).parent.name for name in ids]
        labels = np.array(folders) if all(folders) else None
    return ScoredInputs(
        scores,
        np.array(ids, dtype=object),
        tuple(skipped),
        model.classes,
        [value_of[name] for name in ids] if value_of.keys() >= {*ids} else None,
        model.about,
        labels,
    )


def nothing_scored(inputs: object, skipped: Sequence[Skipped]) -> InputError:
    """Return the error for inputs of which none could be scored."""
    name = str(inputs) if isinstance(inputs, (str, Path)) else type(inputs).__name__
    if not skipped:
        hint = "give images, or texts (.csv, .jsonl, .txt)"
        return InputError("inputs", name, "has no inputs", hint=hint)
    first = next((one for one in skipped if one.is_input), skipped[0])
    return InputError("inputs", first.id, f"and all others were skipped: {first.reason}", name)


# -------------------------------------------------------------------- the loop


def run_model(
    model: Model,
    entries: Entries,
    batch_size: int,
    on_error: str,
    skipped: list[Skipped],
    most_numbers: float = inf,
) -> Generator[tuple[list[str], Scores], None, None]:
    """Yield the ids and the scores of inputs, in blocks of about ``most_numbers`` numbers.

    What is not scored is added to ``skipped``.
    """
    require_whole_number("batch_size", batch_size)
    require_choice("on_error", on_error, ON_ERROR)
    ids: list[str] = []
    held: list[Scores] = []
    n_numbers = 0
    with closing(_prepare(model, entries, batch_size)) as groups:
        for group in groups:
            inputs = [one for one in group if isinstance(one, Input)]
            bad = [one for one in group if isinstance(one, Skipped)]
            if inputs:
                scored, scores, odd = _score(model, inputs)
                bad += odd
            if on_error == "stop" and (first := next((one for one in bad if one.is_input), None)):
                rule, hint = f"cannot be used: {first.reason}", "correct it, or leave it out"
                raise InputError("inputs", first.id, rule, hint=hint, choices={"on_error": "skip"})
            skipped += bad
            if not inputs or not scored:
                continue
            ids += scored
            held.append(scores)
            n_numbers += scores.values.size + getattr(scores.features, "size", 0)
            if n_numbers > most_numbers:
                yield ids, Scores.concatenate(held)
                ids, held, n_numbers = [], [], 0
    if ids:
        yield ids, Scores.concatenate(held)


def _prepare(
    model: Model, entries: Entries, size: int
) -> Generator[list[Input | Skipped], None, None]:
    """Yield inputs in groups of ``size``, skipped ones included; threads decode images.

    A group always begins at a multiple of ``size``: the scores of an input depend, in the last
    digit, on the others in its batch, and should be the same after a restart.
    """
    groups = iter(lambda: list(islice(entries, size)), [])
    if model.takes != "images":
        yield from groups
        return
    # A core is left to the model.
    n_threads = max(1, min(4 if model.device == "CPU" else 16, cpu_count() - 1))
    pending: deque[Iterator[Input | Skipped]] = deque()
    with ignore_pillow_warnings(), ThreadPoolExecutor(n_threads, "rankshot-decode") as pool:
        for group in chain(groups, repeat(None, AHEAD)):
            if group is not None:
                pending.append(pool.map(partial(_prepare_image, model), group))
            if pending and (group is None or len(pending) > AHEAD):
                yield list(pending.popleft())


def _prepare_image(model: Model, one: Input | Skipped) -> Input | Skipped:
    """The input of the model, or the reason why an image cannot be used."""
    if isinstance(one, Skipped):
        return one
    prepare: Any = model.prepare or model.preprocessing
    try:
        is_file = isinstance(one.value, (str, Path))
        return Input(one.id, prepare(read_image(one.value) if is_file else one.value))
    except RankshotError as error:
        return Skipped(one.id, str(error))
    except Exception as error:  # noqa: BLE001 - a processor may raise anything for an odd image
        reason = f"cannot be prepared ({type(error).__name__}: {short_repr(error)})"
        return Skipped(one.id, reason)


def _score(model: Model, inputs: Sequence[Input]) -> tuple[list[str], Scores, list[Skipped]]:
    """The ids and scores of a batch, and the inputs whose scores are not finite."""
    batch: Any = [one.value for one in inputs]
    output, features = _call(model, np.stack(batch) if isinstance(batch[0], np.ndarray) else batch)
    values = _require_table(model, output, len(inputs))
    names = model.classes.names
    is_finite = np.abs(values) < LARGEST_SCORE
    is_good = is_finite.all(axis=1)
    if features is None or features.ndim != 2 or len(values) != features.shape[0]:
        features = None
    else:
        with np.errstate(over="ignore"):
            features = features.astype(np.float32)
        is_good &= np.isfinite(np.asarray(features.sum(axis=1, dtype=np.float64)).ravel())
    odd = []
    for i in np.flatnonzero(~is_good).tolist():
        column = int(np.argmin(is_finite[i]))
        name = name_columns(names, model.kind)[column]
        reason = f"the model's score is {values[i, column]} (column {name!r})"
        if is_finite[i].all():
            reason = "a feature of the model is not finite"
        odd.append(Skipped(inputs[i].id, reason))
    values, features = values[is_good], None if features is None else features[is_good]
    if model.has_probabilities is None and len(values):
        model.has_probabilities = model.kind == "multiclass" and are_probabilities(values)
    if model.has_probabilities:
        try:
            values = Scores.from_probabilities(values, names).columns
        except InputError as error:
            problem = f"returns probabilities first, but not in a later row ({error})"
            hint = "let it return logits"
            raise InputError("model", model.name, problem, hint=hint) from None
    ids = [inputs[i].id for i in np.flatnonzero(is_good).tolist()]
    return ids, Scores.from_validated(values, names, model.kind, features), odd


def _call(model: Model, inputs: object) -> tuple[object, Any]:
    """The scores of some inputs, and their features if the model has some."""
    try:
        if model.run_with_features is not None:
            return model.run_with_features(inputs)
        return model.run(inputs), None
    except RankshotError:
        raise
    except Exception as error:
        raise InputError("model", model.name, f"failed on a batch ({join_lines(error)})") from error


def _require_table(model: Model, output: object, n: int) -> Floats:
    table: NDArray[Any] = np.asarray(output)
    if table.dtype.kind not in "fiu" or table.ndim != 2 or len(table) != n:
        problem = f"must return a table of numbers with {n} rows"
        what = f"{table.dtype} of shape {table.shape}"
        raise InputError("model", what, problem, where=model.name)
    _require_outputs(model, table.shape[1])
    single = table.dtype in (np.float16, np.float32)
    return table.astype(np.float32 if single else np.float64, copy=False)


# -------------------------------------------------------------------- the model


def prepare_model(
    model: object,
    seen: Classes | None = None,
    preprocessing: Preprocessing | str | Path | Mapping[str, object] | None = None,
    *,
    features: bool = True,
) -> Model:
    """A model with the names of its classes, and a preprocessing that fits; as for `score`."""
    opened = open_model(model)
    source = opened.classes if seen is None else seen
    if source is None:
        raise InputError(
            "seen",
            NO_VALUE,
            "is needed: the model does not contain the names of its classes" + opened.odd,
            where=opened.name,
            hint="give a list or a file with one name per line, in the order of its outputs, or "
            "imagenet-1k",
        )
    if preprocessing is not None:
        if opened.takes == "texts":
            raise InputError("preprocessing", preprocessing, "must be None for texts", opened.name)
        given = Preprocessing.read(preprocessing)
        opened = replace(opened, takes="images", preprocessing=given, prepare=None)
    if opened.takes == "images" and opened.prepare is None:
        opened = _fit_preprocessing(opened)
    run_with_features = opened.run_with_features if features else None
    ready = replace(opened, classes=read_class_labels(source), run_with_features=run_with_features)
    if ready.n_outputs is not None:
        _require_outputs(ready, ready.n_outputs)
    if seen is not None and opened.classes is not None:
        _require_order(ready.classes, opened)
    return ready


def _fit_preprocessing(opened: Model) -> Model:
    """A model for images whose preprocessing is known and fits its shape."""
    require_pillow()
    if opened.preprocessing is None:
        raise InputError(
            "preprocessing",
            NO_VALUE,
            "is needed: that of this network is unknown" + opened.odd,
            where=opened.name,
            hint=f"give a preset ({', '.join(PRESETS)}) or a file preprocessor_config.json "
            "(one beside the model is found)",
        )
    if opened.input_shape is None:
        return opened
    fitted = fit_to_shape(opened.preprocessing, opened.input_shape, opened.name)
    return replace(opened, preprocessing=fitted)


def _require_outputs(model: Model, n: int) -> None:
    """Refuse a number of outputs that is not that of the classes."""
    wanted = n_columns(len(model.classes), model.kind)
    if n == wanted:
        return
    background = "an extra output is often a background class, which comes first:"
    hint = f"{background} add a name for it" if n == wanted + 1 else ""
    raise InputError("seen", wanted, f"must be the names of {n} outputs", model.name, hint)


def _require_order(labels: ClassLabels, model: Model) -> None:
    """Refuse names that are those of the model in another order.

    A few names may seem to be at another place, because a word of one class is a synonym of
    another. So the order is another one if more names moved than stayed, or all names are there.
    """
    try:
        own = read_class_labels(model.classes)
    except RankshotError:
        return
    # Labels may be the same, such as the two cranes of ImageNet; names are not.
    names = labels.given if len(set(labels.given)) == len(labels) else labels.names
    meant = own.match_all(names)
    pairs = list(zip(names, own.given, strict=False))
    moved = [i for i, (name, known) in enumerate(pairs) if meant.get(name, known) != known]
    n_same = sum(meant.get(name) == known for name, known in pairs)
    if moved and (len(meant) == len(own) or len(moved) >= n_same):
        name, known = pairs[moved[0]]
        rule = f"is {known!r} in the model: the names are in another order"
        hint = "leave out the classes, or correct them"
        raise InputError("seen", name, rule, f"{model.name}, output {moved[0]}", hint)


# -------------------------------------------------------------------- checks of scores


class NetworkCheck(NamedTuple):
    """What a network itself predicts for some inputs.

    Attributes
    ----------
    n_inputs, n_classes : int
        The numbers of inputs and of seen classes.
    most_frequent : tuple of (str, int)
        The seen classes that are predicted most often, with the number of inputs.
    mean_correlation : float
        The mean correlation between the scores of two inputs. It is near 1 if the scores hardly
        depend on the inputs, as with wrong preprocessing.
    accuracy : Interval or None
        The accuracy of the network on labelled inputs of seen classes.
    n_labelled : int
        The number of labelled inputs of seen classes.
    n_constant : int
        The number of inputs that have the same score for all classes.

    Examples
    --------
    >>> import numpy as np, rankshot as rs
    >>> usual = np.arange(10) + 0.1 * np.random.default_rng(0).normal(size=(20, 10))
    >>> found = rs.recognition.check_scores(rs.Scores(usual, [*"abcdefghij"]))
    >>> found.most_frequent, round(found.mean_correlation, 2), len(found.doubts)
    ((('j', 20),), 1.0, 1)
    """

    n_inputs: int
    n_classes: int
    most_frequent: tuple[tuple[str, int], ...]
    mean_correlation: float
    accuracy: Interval | None
    n_labelled: int
    n_constant: int = 0

    @property
    def doubts(self) -> tuple[str, ...]:
        """Findings that would be unusual for a trained network with correct preprocessing."""
        found = []
        enough = self.n_inputs >= LEAST_INPUTS and self.n_classes >= LEAST_CLASSES
        if enough and self.mean_correlation > LARGEST_CORRELATION:
            found.append(
                "the scores of different inputs are almost the same (mean correlation "
                f"{format_share(self.mean_correlation)}): unless all inputs are of one kind, check "
                "the preprocessing"
            )
        if self.n_constant:
            found.append(
                f"{self.n_constant:,} of {format_count(self.n_inputs, 'input')} have the same "
                "score for all seen classes, so that their class cannot be determined"
            )
        lowest = max(LOWEST_ACCURACY, 2 / max(self.n_classes, 1))
        if enough and self.accuracy is not None and self.accuracy.high < lowest:
            found.append(
                "the model recognises hardly any inputs of its own classes: check the "
                "preprocessing, and the order of the seen classes"
            )
        return tuple(found)

    def describe(self) -> list[str]:
        """Return a description, as lines to print."""
        shares = ", ".join(f"{name} {n / self.n_inputs:.0%}" for name, n in self.most_frequent)
        inputs = format_count(self.n_inputs, "input")
        lines = [f"top predictions of the model itself ({inputs}): {shares}"]
        if self.accuracy is not None:
            labelled = format_count(self.n_labelled, "labelled input")
            lines.append(f"the model's own accuracy on {labelled} of seen classes: {self.accuracy}")
        return lines + [f"warning: {doubt}" for doubt in self.doubts]


def check_scores(scores: Scores, labels: ArrayLike | None = None) -> NetworkCheck:
    r"""Return what a network itself predicts, to detect wrong preprocessing.

    Parameters
    ----------
    scores : Scores
        The scores of some inputs, such as ``found.scores`` for a result ``found`` of `score`.
    labels : sequence of str, optional
        The class of each input, or an empty text. Labels of seen classes give the network's own
        accuracy.

    Examples
    --------
    >>> import rankshot as rs
    >>> scores = rs.Scores([[3, 1, 0], [0, 2, 1], [1, 4, 0]], ["cat", "dog", "fox"])
    >>> found = rs.recognition.check_scores(scores, ["cat", "fox", ""])
    >>> print("\n".join(found.describe()))
    top predictions of the model itself (3 inputs): dog 67%, cat 33%
    the model's own accuracy on 2 labelled inputs of seen classes: .500 [.095, .905]
    """
    n, items = len(scores), scores.items
    first = np.empty(n, np.intp)
    total = np.zeros(len(items))
    n_unequal = 0
    # In blocks: each needs several arrays of its size.
    for rows in row_blocks(n, len(items)):
        values = np.asarray(scores[rows].values, float)
        first[rows] = most_probable(values)
        # Rows of equal scores have no direction.
        unequal = values[np.ptp(values, axis=1) > 0]
        unequal -= unequal.mean(axis=1, keepdims=True)
        total += (unequal / np.linalg.norm(unequal, axis=1, keepdims=True)).sum(axis=0)
        n_unequal += len(unequal)
    names = np.array(items)
    known = np.full(n, "") if labels is None else np.asarray(labels).astype(str)
    labelled = np.isin(known, names)
    n_right, n_labelled = int((names[first] == known)[labelled].sum()), int(labelled.sum())
    # |Σ u|² has each pair of inputs twice, and each input with itself.
    pairs = n_unequal * (n_unequal - 1)
    counts = np.bincount(first, minlength=len(items))
    order = np.argsort(-counts, kind="stable")[:CLASSES_SHOWN]
    return NetworkCheck(
        n,
        len(items),
        tuple((items[i], int(counts[i])) for i in order if counts[i]),
        float(total @ total - n_unequal) / pairs if pairs else np.nan,
        wilson_interval(n_right, n_labelled) if n_labelled else None,
        n_labelled,
        n - n_unequal,
    )
