"""Choose the default numbers of rankshot again, on held-out *seen* classes of four data sets.

``make defaults FROM=DIRECTORY`` measures each number of `NUMBERS` at several values and writes
``docs/results/defaults.md``. No label or input of a new class is read. A new number is one entry of
`NUMBERS`; numbers that decide no prediction are in `FIXED`, and those without a measurement yet in
`UNMEASURED`. A test compares these lists, the page and the code.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError
from rankshot.core.files import replace_file
from rankshot.zeroshot import Predictor
from rankshot.zeroshot.batch_refinement import BatchRefinement
from rankshot.zeroshot.forecast import (
    CONFIDENCE_ERROR,
    correlate_classes,
    find_strengths,
    predict_mean_accuracy,
)
from rankshot.zeroshot.metrics import Interval
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.seen_and_new import SeenAndNew
from rankshot.zeroshot.weighted_mean import WeightedMean
from reproduction.batches import draw_batches
from reproduction.classifiers import LEAST_SQUARES
from reproduction.scored_tasks import (
    HELD_OUT,
    MOST_MEASURED,
    TABLES,
    Labels,
    ScoredTask,
    load_scored_tasks,
    sample_rows,
)
from reproduction.together import draw_inputs

Floats = NDArray[np.float64]
PAGE = Path(__file__).parents[1] / "docs" / "results" / "defaults.md"
N_INPUTS = 30
"""Inputs of each held-out class."""
N_DRAWS = 1
"""Draws of examples and of batches: the classes vary much more than the draws."""
LEAST_GAIN = 0.005
"""Smaller losses do not matter."""
ENOUGH_BETTER = 2.0
"""Standard errors: with five to nine values, the best one is often better by one."""


# ---- Reading and replacing a number by its name

NAME = re.compile(r"([\w.]+?)(?:\[([\w-]+)\])?")


def _find(name: str) -> tuple[dict[str, Any], str, str | None]:
    """Return the dictionary that has a number, its name there, and its key if it is in a table."""
    path, key = NAME.fullmatch(name).groups()  # type: ignore[union-attr]
    *modules, last = f"rankshot.{path}".split(".")
    if modules[-1][0].isupper():
        owner = getattr(import_module(".".join(modules[:-1])), modules[-1])
        return owner.__init__.__kwdefaults__, last, key
    return vars(import_module(".".join(modules))), last, key


def read_number(name: str) -> Any:
    """Return a number of the code.

    Names are those of constants (``zeroshot.weighted_mean.UNCERTAINTY``), of entries of
    constants (``….SEEN_TEMPERATURES[multiclass]``) or of defaults of parameters
    (``….WeightedMean.decay``).
    """
    where, last, key = _find(name)
    value = where[last]
    if key is None:
        return value
    return value[key] if isinstance(value, Mapping) else value[int(key)]


@contextmanager
def number_set(name: str, value: Any) -> Iterator[None]:
    """Set a number of the code for a while, also where other modules have imported it."""
    where, last, key = _find(name)
    old = where[last]
    new = value
    if key is not None:
        new = list(old) if isinstance(old, tuple) else copy(old)
        new[key if isinstance(old, Mapping) else int(key)] = value
        new = tuple(new) if isinstance(old, tuple) else new
    loaded = [vars(module) for at, module in sys.modules.items() if at.startswith("rankshot.")]
    copies = [space for space in (where, *loaded) if space.get(last) is old]
    for space in copies:
        space[last] = new
    try:
        yield
    finally:
        for space in copies:
            space[last] = old


# ---- Measurements on one task: one number per held-out class, more is better

Measure = Callable[[ScoredTask], Floats]


def _by_class(labels: Labels, values: Any) -> Floats:
    """Return the mean of a value of each input, over the inputs of each class."""
    z = np.unique(labels, return_inverse=True)[1]
    return np.asarray(np.bincount(z, values) / np.bincount(z))


def _accuracy(head: Predictor, scores: Scores, labels: Labels) -> Floats:
    return _by_class(labels, head.predict(scores) == labels)


def _fit(task: ScoredTask, reference: Scores | None = None) -> WeightedMean:
    return WeightedMean().fit(task.rankings["panel"], reference=reference)


def with_reference(task: ScoredTask) -> Floats:
    """Measure the accuracy of the panel's rankings with a reference."""
    return _accuracy(_fit(task, task.reference), task.scores, task.labels)


def with_examples(task: ScoredTask) -> Floats:
    """Measure the accuracy of the panel's rankings and of a table's, with 1, 2 and 5 examples.

    The examples are compared by their scores, and by their features if there are any.
    """
    found = []
    for draw in range(N_DRAWS):
        order = np.random.default_rng(draw).permutation(len(task.labels))
        by_class = [order[task.labels[order] == name] for name in np.unique(task.labels)]
        tested = np.concatenate([rows[5:] for rows in by_class])
        tables = [task.scores.with_blocks()]
        if task.scores.features is not None:
            tables.append(task.scores)
        for rankings, n, scores in product(task.rankings.values(), (1, 2, 5), tables):
            rows = np.concatenate([some[:n] for some in by_class])
            few = scores[rows], task.labels[rows]
            head = WeightedMean().fit(rankings, reference=task.reference, examples=few)
            found.append(_accuracy(head, scores[tested], task.labels[tested]))
    return np.mean(found, axis=0)


def in_batches(task: ScoredTask) -> Floats:
    """Measure the accuracy of batches of all classes, of some, and of unequal frequencies."""
    head = _fit(task, task.reference)
    names = np.unique(task.labels)
    correct, size = np.zeros(len(names)), np.zeros(len(names))
    for draw in range(N_DRAWS):
        for rows in draw_batches(task.labels, draw).values():
            if len(rows) < 2 * len(names):
                continue
            scores, labels = task.scores[rows].with_blocks(), task.labels[rows]
            refined = BatchRefinement(head).fit(scores)
            z = np.searchsorted(names, labels)
            # All batches count the same, whatever their size.
            correct += np.bincount(z, refined.predict(scores) == labels, len(names)) / len(rows)
            size += np.bincount(z, minlength=len(names)) / len(rows)
    return np.asarray(correct[size > 0] / size[size > 0])


def within_budget(task: ScoredTask) -> Floats:
    """Measure the accuracy on held-out classes where all compete, without and with examples.

    Half of the reference is the reference; a budget of 5% is kept on it.
    """
    draw = draw_inputs(task, 0)
    usual, known = task.reference[draw.reference], task.reference_labels[draw.reference]
    new, labels = task.scores[draw.new], task.labels[draw.new]
    found = []
    for n in (0, 5):
        rows = draw.pool[:, :n].ravel()
        few = (task.scores[rows], task.labels[rows]) if n else None
        fitted = WeightedMean().fit(task.rankings["panel"], reference=usual, examples=few)
        both = SeenAndNew(fitted, seen_loss=0.05).fit(usual, known, few)
        found.append(_by_class(labels, both.predict(new) == labels))
    return np.mean(found, axis=0)


def in_batches_and_budget(task: ScoredTask) -> Floats:
    """Measure the mean of both accuracies."""
    return (in_batches(task) + within_budget(task)) / 2


def by_seen_scores(kind: str) -> Measure:
    """Measure the log-probability of the class of seen inputs, among the seen classes."""

    def measure(task: ScoredTask) -> Floats:
        if task.reference.kind != kind:
            return np.zeros(0)
        head = SeenAndNew(_fit(task)).fit()
        log_proba = np.asarray(head.log_proba(task.reference.with_blocks()))
        log_proba = log_proba[:, head.seen_]
        log_proba = log_proba - np.logaddexp.reduce(log_proba, axis=1, keepdims=True)
        column = np.searchsorted(np.asarray(head.classes_)[head.seen_], task.reference_labels)
        own = log_proba[np.arange(len(column)), column]
        return _by_class(task.reference_labels, own)

    return measure


# ---- Thresholds without a guarantee: what they cost, and what they find

THRESHOLDS = {
    "zeroshot.together.THRESHOLD": (0.5, 1.0, 1.5, 1.6, 1.75, 2.0, 3.0),
    "zeroshot.together.THRESHOLD_BY_BATCH": (-0.5, 0.0, 0.25, 0.5, 0.75, 1.0),
}
"""Without a reference, and with a batch in its place: the values to try."""


class Cost(NamedTuple):
    """What a threshold costs and finds on one task."""

    dataset: str
    name: str
    value: float
    lost: float
    """The share of accuracy on seen classes."""
    found: float
    """The accuracy on held-out classes, where all compete."""


def measure_thresholds(task: ScoredTask) -> Iterator[Cost]:
    """Yield what each of the thresholds costs and finds.

    A batch has as many inputs of seen classes as of held-out ones.
    """
    draw = draw_inputs(task, 0)
    seen, known = task.reference[draw.seen], task.reference_labels[draw.seen]
    rows = draw.new[np.random.default_rng(0).permutation(len(draw.new))[: len(seen)]]
    new, labels = task.scores[rows].with_blocks(), task.labels[rows]
    seen = seen[: len(new)].with_blocks()
    known = known[: len(new)]
    right = np.array(seen.items)[seen.values.argmax(axis=1)] == known
    values = np.concatenate([seen.values, new.values])
    batch = Scores(values, seen.items, seen.kind)
    for (name, tried), given in zip(THRESHOLDS.items(), (None, batch), strict=True):
        fitted = WeightedMean().fit(task.rankings["panel"], reference=given)
        head = SeenAndNew(fitted).fit(batch=given).head_
        for value in tried:
            other = replace(head, thresholds=np.full(len(head.new.classes), value))
            lost = right.mean() - np.mean(other.predict(seen) == known)
            found = _by_class(labels, other.predict(new) == labels).mean()
            yield Cost(task.name.split()[0], name, value, float(lost), float(found))


def summarize_costs(costs: Sequence[Cost]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table: means over data sets, and the largest loss."""
    for name, tried in THRESHOLDS.items():
        for value in tried:
            by_dataset: dict[str, list[tuple[float, float]]] = {}
            for one in costs:
                if (one.name, one.value) == (name, value):
                    by_dataset.setdefault(one.dataset, []).append((one.lost, one.found))
            means = np.array([np.mean(some, axis=0) for some in by_dataset.values()])
            (lost, found), most = means.mean(axis=0), means[:, 0].max()
            text = format_number(value)
            text = f"**{text}**" if value == read_number(name) else text
            yield f"`{name}`", text, f"{lost:.3f}", f"{most:.3f}", f"{found:.3f}"


# ---- Predicted accuracies: intervals for some held-out classes, from others

DESIGNS = {
    "random": "a random quarter",
    "kind": "a quarter of one kind",
    "unlike": "the half most different from one class",
}
"""Which of the held-out classes are predicted from all others; kinds are similar in rankings."""
N_SPLITS = 20
"""Splits of the classes of a task, for each of the `DESIGNS`."""


KINDS = ("raters", "raters, and a batch", "tables")
"""What is known of the predicted classes; nothing is predicted for tables otherwise."""
CONFIDENCE_ERRORS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
"""The values of `CONFIDENCE_ERROR` to try."""


class Prediction(NamedTuple):
    """An interval for the accuracy of some classes, and what it was."""

    dataset: str
    known: str
    design: str
    expected: Interval
    found: float
    error: float = CONFIDENCE_ERROR
    """The `CONFIDENCE_ERROR`, where a batch is known."""


def split_classes(design: str, K: Floats, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the classes to predict from, and those to predict, given their correlations."""
    rng = np.random.default_rng(seed)
    n, near = len(K), K[rng.integers(len(K))]
    by = {"random": rng.random(n), "kind": -near, "unlike": near}[design]
    n_new = n // 2 if design == "unlike" else max(3, n // 4)
    new, known = np.split(np.argsort(by + 1e-6 * rng.random(n)), [n_new])
    return np.sort(known), np.sort(new)


def predict_accuracies(task: ScoredTask) -> Iterator[Prediction]:
    """Yield intervals for held-out classes from others, by rankings of raters and of a table."""
    rows = sample_rows(task.reference_labels, 10)
    reference, scores = task.reference[rows].with_blocks(), task.scores.with_blocks()
    names = np.unique(task.labels)
    for rankings in task.rankings.values():
        K = correlate_classes(WeightedMean().fit(rankings, reference=reference), reference)
        for design, seed in product(DESIGNS, range(N_SPLITS)):
            found = []
            known, new = split_classes(design, K, seed)
            for group in (names[known], names[new]):
                tested = np.isin(task.labels, group)
                about = rankings[np.isin(rankings.targets.astype(str), group)]
                head = WeightedMean().fit(about, reference=reference)
                by_class = _accuracy(head, scores[tested], task.labels[tested])
                sure = head.predict_proba(scores[tested]).max(axis=1)
                sure = _by_class(task.labels[tested], sure).mean()
                found.append((by_class, sure, correlate_classes(head, reference)))
            (of_known, sure, correlations), (of_new, sure_of_new, among_new) = found
            both = np.concatenate([known, new])
            strengths, similarity = find_strengths(of_known, correlations), K[np.ix_(both, both)]
            center = float(of_known.mean() + sure_of_new - sure)
            ways: list[tuple[str, float | None]] = [("tables", None)]
            if rankings.rater_names:
                ways = [(KINDS[0], None), *((KINDS[1], error) for error in CONFIDENCE_ERRORS)]
            for kind, error in ways:
                measured = None if error is None else (center, error)
                expected = predict_mean_accuracy(strengths, similarity, among_new, measured)
                dataset, right = task.name.split()[0], float(of_new.mean())
                yield Prediction(dataset, kind, design, expected, right, error or CONFIDENCE_ERROR)


def summarize_predictions(predictions: Sequence[Prediction]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table: how often intervals contain the accuracy, and their widths."""
    for kind, design in product(KINDS, DESIGNS):
        chosen = [
            one
            for one in predictions
            if (one.known, one.design, one.error) == (kind, design, CONFIDENCE_ERROR)
        ]
        yield kind, DESIGNS[design], *_summarize(chosen)


def summarize_errors(predictions: Sequence[Prediction]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table of all `CONFIDENCE_ERRORS`, over all designs."""
    for error in CONFIDENCE_ERRORS:
        text = format_number(error)
        chosen = [one for one in predictions if (one.known, one.error) == (KINDS[1], error)]
        yield f"**{text}**" if error == CONFIDENCE_ERROR else text, *_summarize(chosen)


def _summarize(chosen: Sequence[Prediction]) -> tuple[str, ...]:
    values = np.array(
        [
            (
                one.expected.low <= one.found <= one.expected.high,
                one.expected.high - one.expected.low,
                one.expected.estimate - one.found,
                abs(one.expected.estimate - one.found),
            )
            for one in chosen
        ]
    )
    datasets = np.array([one.dataset for one in chosen])
    by_dataset = np.array([values[datasets == name].mean(axis=0) for name in sorted({*datasets})])
    inside, width, bias, error = by_dataset.mean(axis=0)
    shares = (f"{share:.3f}" for share in (inside, by_dataset[:, 0].min(), width))
    return str(len(chosen)), *shares, f"{bias:+.3f}", f"{error:.3f}"


# ---- The numbers


class Number(NamedTuple):
    """A number to choose, the values to try, and what is measured with each of them."""

    name: str
    values: tuple[Any, ...]
    measure: Measure
    what: str


PAPER = "zeroshot.paper"
WEIGHTED = "zeroshot.weighted_mean"
LIKELIHOOD = f"{PAPER}.ranking_methods"
BATCH = "zeroshot.batch_refinement"
MEANS = "zeroshot.class_means"
GATE = "zeroshot.seen_and_new"


@cache
def list_numbers() -> tuple[Number, ...]:
    """Return all numbers that are measured."""
    accuracy = "accuracy, panel and reference"
    examples = "accuracy, panel and table with 1, 2 and 5 examples"
    budget = "accuracy within a budget of 5%, without and with examples"
    batches = "accuracy, batches of all classes, of some, of unequal frequencies"
    seen = "log-loss of seen classes"

    def tried(name: str, measure: Measure, what: str, values: tuple[Any, ...] = ()) -> Number:
        """Return a number with the values to try, by default multiples of its own."""
        if not values:
            own = read_number(name)
            others = {type(own)(round(own * factor, 3)) for factor in (0.5, 0.7, 1.4, 2.0)}
            values = tuple(sorted({own, *others}))
        return Number(name, values, measure, what)

    return (
        tried(f"{WEIGHTED}.WeightedMean.k", with_reference, accuracy, (3, 5, 8, 10, 12, 15, 20)),
        tried(
            f"{WEIGHTED}.WeightedMean.decay",
            with_reference,
            accuracy,
            (0.0, 0.25, 0.5, 0.75, 1.0, 1.5),
        ),
        tried("zeroshot.default_head.UNCERTAINTY", with_reference, accuracy),
        tried("zeroshot.default_head.SHARE", with_reference, accuracy, (0.25, 0.5, 0.75, 1.0)),
        tried(
            "zeroshot.default_head.PLACE_BONUS",
            with_reference,
            accuracy,
            tuple(tuple(g / place for place in range(1, 6)) for g in (1.0, 1.5, 2.0, 3.0)),
        ),
        tried(f"{MEANS}.EXPLAINED", with_examples, examples),
        tried(f"{MEANS}.RANKING_EXAMPLES", with_examples, examples),
        tried(f"{MEANS}.ISOTROPIC", with_examples, examples, (0.25, 0.5, 0.65, 0.75, 0.85)),
        tried(
            "zeroshot.together.FEATURE_WEIGHT", within_budget, budget, (1 / 20, 1 / 6, 1 / 3, 1 / 2)
        ),
        tried(f"{MEANS}.DENSITY_WEIGHT", in_batches_and_budget, f"mean of {batches}, and {budget}"),
        tried(f"{BATCH}.EQUALITY_POWER", in_batches, batches, (2, 4, 6, 8, 12, 16)),
        tried(f"{BATCH}.N_ITERATIONS", in_batches, batches),
        tried("zeroshot.together.SEEN_TEMPERATURE", by_seen_scores("multiclass"), seen),
        tried("zeroshot.joint_head.ONE_VS_REST_TEMPERATURE", by_seen_scores("one-vs-rest"), seen),
    )


UNMEASURED = {
    f"{MEANS}.SIGNAL": "examples without a reference; all other numbers have one here",
    f"{BATCH}.LEAST_PER_CLASS": "when a batch is used by default",
    "sources.wordnet.WEAK_POWER": "which senses of a name WordNet chooses",
}
"""Numbers that may change predictions and have no measurement here, with what they do."""

WITHOUT_PREDICTIONS = (
    *("files", "head_files", "onnx_export", "torch_head", "metrics"),
    *("explanation", "remarks"),
)
"""Modules of `zeroshot` that read, write, convert or describe; they change no prediction."""
FIXED = {
    **dict.fromkeys(
        (
            "zeroshot.scores.TIED_SCORES",
            f"{WEIGHTED}.ROUNDING",
            "zeroshot.default_head.ROUNDING",
            f"{MEANS}.TINY",
            "zeroshot.together.NEVER",
            "zeroshot.formula.LARGEST",
            "zeroshot.scores.ROUNDING_UNITS",
            f"{BATCH}.LEAST_SPREAD",
            f"{BATCH}.CONCENTRATIONS",
            f"{BATCH}.LARGEST_SHARE_ERROR",
            f"{BATCH}.MOST_SCALINGS",
            f"{GATE}.TEMPERATURE_BOUNDS",
            "zeroshot.decide.EQUAL_LOG_PROBA",
            "zeroshot.scores.LEAST_PROBABILITY",
            "zeroshot.scores.LARGEST_SCORE",
            "zeroshot.scores.PROBABILITY_ROUNDING",
            "zeroshot.scores.SUM_TOLERANCE",
            "zeroshot.paper.likelihoods.LEAST_TOTAL",
            "zeroshot.evidence.LOG_WEIGHTS",
            "zeroshot.rehearsal.TEMPERATURES",
        ),
        "a tolerance or a bound",
    ),
    **dict.fromkeys(
        (
            f"{WEIGHTED}.LEAST_INPUTS",
            f"{MEANS}.N_FOLDS",
            f"{BATCH}.MOST_DIRECTIONS",
            f"{PAPER}.likelihoods.MAX_RANKINGS",
            f"{LIKELIHOOD}.ProbabilisticRanking.n_samples",
            f"{LIKELIHOOD}.ProbabilisticRanking.random_state",
            "zeroshot.forecast.N_INPUTS",
            "zeroshot.forecast.N_DRAWS",
            "zeroshot.forecast.STRENGTHS",
            "zeroshot.forecast.SHARES",
            "zeroshot.forecast.MOST_CLASSES",
        ),
        "a size of blocks or of simulations, or a seed",
    ),
    **dict.fromkeys(
        (
            "zeroshot.together.N_FOLDS",
            "zeroshot.rehearsal.USUAL_FOLDS",
            "zeroshot.classifier.REFERENCE_SHARE",
        ),
        "a size of hold-outs",
    ),
    "zeroshot.tables.DIGITS": "the digits that are written",
    f"{GATE}.SEEN_LOSS": "a choice of the user",
    **dict.fromkeys(
        (
            "zeroshot.rehearsal.ENOUGH_TO_JUDGE",
            "zeroshot.rehearsal.LEAST_CLASSES",
            "zeroshot.forecast.ENOUGH_CLASSES",
        ),
        "decides when a rehearsal is refused, or warns",
    ),
    **dict.fromkeys(
        ("zeroshot.class_rankings.LEAST_COHERENCE", "zeroshot.evidence.LOWER_LIMIT"),
        "a quantile of the normal distribution",
    ),
    **dict.fromkeys(
        ("zeroshot.rehearsal.GRID",),
        "values that a rehearsal tries",
    ),
    **dict.fromkeys(
        (
            f"{PAPER}.ranking_methods.DeterministicRanking.k",
            f"{PAPER}.similarity_methods.DirectSimilarity.n_similar",
            f"{PAPER}.similarity_methods.ConSE.n_classes",
        ),
        "a value of the method's own paper",
    ),
    **dict.fromkeys(
        (f"{LIKELIHOOD}.ProbabilisticRanking.k", f"{LIKELIHOOD}.ProbabilisticRanking.decay"),
        "the number of WeightedMean",
    ),
    "zeroshot.class_rankings.DECAY": "the default of WeightedMean.decay",
}
"""Numbers of `zeroshot` that are not tuned, with what they are."""


def count_numbers() -> dict[str, int]:
    """Return how many numbers were chosen by hand, and how many of each group."""
    groups = {
        "n_measured": len(list_numbers()),
        "n_thresholds": len(THRESHOLDS),
        "n_others": len(UNMEASURED),
    }
    # The last one is CONFIDENCE_ERROR.
    return {"n_numbers": sum(groups.values()) + 1, **groups}


# ---- Choosing


@dataclass(frozen=True)
class Choice:
    """What was found for a number: the gain of each value over the worst, and what follows."""

    name: str
    value: str
    """The chosen value: that of the code, unless another one is clearly better."""
    tried: tuple[str, ...]
    equal: tuple[str, ...]
    """The values that are not clearly worse than the best."""
    best: str
    lost: float
    """How far the value of the code is below the best."""
    standard_error: float
    what: str
    elsewhere: float | None = None
    """How far the chosen value is below the best on tasks that it was not chosen on."""


def choose(
    number: Number,
    current: Any,
    found: Sequence[Mapping[str, Floats]],
    elsewhere: Sequence[Mapping[str, Floats]] = (),
) -> Choice:
    """Choose a value from what was measured: one table per value, with classes by data set.

    All data sets count the same. A value is changed only if another one is better by more than two
    standard errors: the best of many values is often best by chance. What was measured elsewhere
    is reported.
    """
    mean = _mean_over_data(found)
    best = int(mean.argmax())
    lost = mean[best] - mean
    errors = np.array([_standard_error(found[best], table) for table in found])
    equal = lost <= np.maximum(ENOUGH_BETTER * errors, LEAST_GAIN)
    texts = [format_number(value) for value in number.values]
    at = texts.index(format_number(current))
    chosen = at if equal[at] else best
    other = _mean_over_data(elsewhere) if elsewhere and elsewhere[0] else None
    return Choice(
        number.name,
        texts[chosen],
        tuple(texts),
        tuple(text for text, is_equal in zip(texts, equal, strict=True) if is_equal),
        texts[best],
        float(lost[at]),
        float(errors[at]),
        number.what,
        None if other is None else float(other.max() - other[chosen]),
    )


def _mean_over_data(found: Sequence[Mapping[str, Floats]]) -> Floats:
    return np.array([np.mean([one.mean() for one in table.values()]) for table in found])


def _standard_error(one: Mapping[str, Floats], other: Mapping[str, Floats]) -> float:
    """Return the standard error of a mean difference, over classes or over data sets.

    The larger of both: what helps on one data set and hurts on another is no clear gain.
    """
    gains = [one[name] - other[name] for name in one]
    over_classes = np.sqrt(sum(gain.var(ddof=1) / len(gain) for gain in gains)) / len(gains)
    if len(gains) == 1:
        return float(over_classes)
    means = np.array([gain.mean() for gain in gains])
    return float(max(over_classes, means.std(ddof=1) / np.sqrt(len(gains))))


def measure_at(number: Number, value: Any, task: ScoredTask) -> Floats:
    """Measure one value of a number on one task."""
    with number_set(number.name, value):
        return number.measure(task)


def measure_number(
    number: Number,
    tasks: Sequence[ScoredTask],
    others: Sequence[ScoredTask] = (),
    measure: Callable[[Number, Any, ScoredTask], Floats] = measure_at,
) -> Choice:
    """Measure a number at all values, choose on some tasks, and report on others."""

    def collect(tasks: Sequence[ScoredTask]) -> list[dict[str, Floats]]:
        found = []
        for value in number.values:
            tables: dict[str, list[Floats]] = {}
            for task in tasks:
                if len(by_class := measure(number, value, task)):
                    tables.setdefault(task.name.split(maxsplit=1)[0], []).append(by_class)
            found.append({name: np.mean(parts, axis=0) for name, parts in tables.items()})
        return found

    return choose(number, read_number(number.name), collect(tasks), collect(others))


def format_number(value: Any) -> str:
    """Return a number as it is on the page."""
    if isinstance(value, tuple | list):
        return "(" + ", ".join(map(format_number, value)) + ")"
    return f"{value:g}"


# ---- The page

INTRODUCTION = """# Default numbers

This page shows how the default numbers in the code were chosen. There are {n_numbers}: \
{n_measured} in the first table, the error of a predicted accuracy, {n_thresholds} thresholds, and \
{n_others} that are not measured. Each of the first was tried at several \
values on held-out *seen* classes of four data sets (CIFAR, Animals and intents with two \
classifiers each, sounds with a network): {classes} classes that the language-model panel ranked. \
No label or input of a new class is used. The value in the code is kept unless another value is \
better by more than two standard errors (over classes or over data sets, whichever is larger) and \
by .005; all data sets have the same weight. Elsewhere: how far the value in the code is below the \
best of those tried on languages, programming languages and letters, on which nothing was chosen. \
`make defaults FROM=DIRECTORY` writes this page, and a test compares it with the code.

| number | value | tried | not clearly worse than the best | loss against the best | elsewhere | \
criterion |
|---|---|---|---|---|---|---|
"""
PREDICTIONS = """
## Predicted accuracy

From some held-out classes, `Forecast.predicted` predicts the accuracy of others, in many \
splits of the same classes. The others are a random quarter of all, a quarter whose rankings are \
similar, or the half whose rankings differ most from those of one class. All data sets have the \
same weight. The width follows from the data; with a batch, it also follows from \
`CONFIDENCE_ERROR`. Nothing is predicted for \
tables, whose intervals contain the accuracy less often than they claim.

| rankings | predicted classes | intervals | inside (95% claimed) | inside, lowest data set | \
mean width | predicted - measured | mean error |
|---|---|---|---|---|---|---|---|
"""
ERRORS = """
With a batch and other values of `zeroshot.forecast.CONFIDENCE_ERROR`, over all of these designs:

| value of `CONFIDENCE_ERROR` | intervals | inside (95% claimed) | inside, lowest data \
set | mean width | predicted - measured | mean error |
|---|---|---|---|---|---|---|
"""
COSTS = """
## Thresholds without a guarantee

A new class is predicted if its log-odds exceed a threshold. Without inputs of seen classes no \
budget is kept: these defaults are the smallest of those tried that lose at most .05 of the \
accuracy on seen classes in the mean over data sets, and .1 on each. In the batch, half of the \
inputs are of held-out classes.

| number | value | accuracy on seen classes that is lost | on the worst data set | accuracy on \
held-out classes |
|---|---|---|---|---|
"""
WITHOUT = """
## Not measured

These numbers can change predictions, but are not measured here.

| number | what it does, or why it is not measured |
|---|---|
"""


def write_page(
    choices: Sequence[Choice],
    predictions: Sequence[Prediction],
    costs: Sequence[Cost],
    n_classes: int,
    path: Path,
) -> None:
    """Write the page of all numbers."""
    with replace_file(path) as stream:
        stream.write(INTRODUCTION.format(classes=n_classes, **count_numbers()))
        for one in choices:
            lost = f"{one.lost:.4f} ± {one.standard_error:.4f}" if one.lost else "0"
            elsewhere = "–" if one.elsewhere is None else f"{one.elsewhere:.4f}"
            tried, equal = ", ".join(one.tried), ", ".join(one.equal)
            cells = (f"`{one.name}`", one.value, tried, equal, lost, elsewhere)
            stream.write(f"| {' | '.join(cells)} | {one.what} |\n")
        stream.write(PREDICTIONS)
        for row in summarize_predictions(predictions):
            stream.write(f"| {' | '.join(row)} |\n")
        stream.write(ERRORS)
        for row in summarize_errors(predictions):
            stream.write(f"| {' | '.join(row)} |\n")
        stream.write(COSTS)
        for row in summarize_costs(costs):
            stream.write(f"| {' | '.join(row)} |\n")
        stream.write(WITHOUT)
        stream.writelines(f"| `{name}` | {what} |\n" for name, what in UNMEASURED.items())


def read_page(path: Path = PAGE) -> dict[str, str]:
    """Return the numbers on the page, and their values."""
    rows = re.findall(
        r"^\| `([\w.\[\]-]+)` \| ([^|]+) \|(?:[^|]*\|){5}$", path.read_text("utf-8"), re.MULTILINE
    )
    return dict(rows)


def main() -> None:
    """Measure all numbers, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m reproduction.defaults", description=__doc__)
    parser.add_argument("directory", type=Path, help="has cifar/features.npz and so on")
    parser.add_argument("--only", default="", help="a text in the names of the numbers to measure")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path, default=PAGE)
    given = parser.parse_args()
    start = perf_counter()

    def announce(text: str) -> None:
        print(f"{perf_counter() - start:6.0f} s  {text}", file=sys.stderr, flush=True)

    try:
        tasks = [
            task
            for dataset in TABLES
            for task in load_scored_tasks(
                dataset, given.directory, announce, (HELD_OUT,), (LEAST_SQUARES, "multiclass")
            )
        ]
        others = list(load_scored_tasks("outside", given.directory, announce))
    except RankshotError as error:
        sys.exit(str(error))
    announce("the tasks are loaded")
    measure_all(tasks, others, given.jobs, given.output, given.only, announce)


def measure_all(
    tasks: Sequence[ScoredTask],
    others: Sequence[ScoredTask],
    n_jobs: int,
    page: Path,
    only: str = "",
    announce: Callable[[str], None] = print,
) -> None:
    """Measure all numbers whose names contain a text in several processes, and write the page."""
    numbers = [number for number in list_numbers() if only in number.name]
    # Processes that are forked have the tasks already; most measurements are of few inputs.
    _large[:] = [task.limit(*MOST_MEASURED) for task in (*tasks, *others)]
    _small[:] = [task.limit(N_INPUTS) for task in _large]
    own, elsewhere = _small[: len(tasks)], _small[len(tasks) :]
    jobs = [
        (number.name, value, place)
        for number in numbers
        for value in range(len(number.values))
        for place in range(len(_small))
    ]
    choices = []
    with ProcessPoolExecutor(n_jobs, get_context("fork")) as pool:
        found = pool.map(_measure_job, jobs)
        costs = pool.map(_measure_costs, range(len(tasks)))
        predictions = pool.map(_predict_task, range(len(tasks)))
        for number in numbers:
            measured = {
                (repr(value), task.name): next(found) for value in number.values for task in _small
            }
            choice = measure_number(
                number,
                own,
                elsewhere,
                # This is called before the next number is measured.
                lambda _, value, task: measured[repr(value), task.name],  # noqa: B023
            )
            announce(
                f"{choice.name}: {choice.value} (best {choice.best}, not clearly worse: "
                f"{', '.join(choice.equal)}; lost {choice.lost:.4f})"
            )
            choices.append(choice)
        parts = [[one for some in each for one in some] for each in (predictions, costs)]
    classes = {task.name.split()[0]: len(set(task.labels)) for task in tasks}
    write_page(choices, *parts, sum(classes.values()), page)
    announce(f"{page} written")


_large: list[ScoredTask] = []
_small: list[ScoredTask] = []


def _measure_job(job: tuple[str, int, int]) -> Floats:
    name, value, place = job
    number = next(one for one in list_numbers() if one.name == name)
    return measure_at(number, number.values[value], _small[place])


def _predict_task(place: int) -> list[Prediction]:
    return list(predict_accuracies(_small[place]))


def _measure_costs(place: int) -> list[Cost]:
    return list(measure_thresholds(_large[place]))


if __name__ == "__main__":
    main()
