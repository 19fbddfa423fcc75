"""Zero-shot methods of others: tuned in the rehearsal, tested on the new classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score

from rankshot.core.errors import RankshotError
from rankshot.sources.vectors import unit_vectors
from rankshot.zeroshot.metrics import class_weights
from rankshot.zeroshot.paper.similarity_methods import ConSE
from rankshot.zeroshot.scores import Scores
from reproduction.benchmark import Benchmark, Task
from reproduction.bootstrap import Bootstrap
from reproduction.class_vectors import ClassVectors
from reproduction.classifiers import AnnounceStep, LinearClassifier
from reproduction.peers.attributes import DAP, IAP
from reproduction.peers.base import Peer
from reproduction.peers.linear import DIRECTIONS, ESZSL, SAE, VectorRegression
from reproduction.result_tables import ResultTable, Value

Floats = NDArray[np.float64]
Labels = NDArray[np.str_]
Setting = dict[str, Any]
Grid = Mapping[str, tuple[Any, ...]]
UNCHANGED, UNIT = "as they are", "of length one"
FEATURES = (UNCHANGED, UNIT)
"""The scaling of features before they are centred; tuned like other settings."""
ESZSL_GRID = {
    "features": FEATURES,
    "feature_penalty": (1.0, 10.0, 100.0, 1000.0),
    "vector_penalty": (0.1, 1.0, 10.0, 100.0),
}
SAE_GRID = {
    "features": FEATURES,
    "encoder_weight": (0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0),
    "direction": DIRECTIONS,
}
REGRESSION_GRID = {"features": FEATURES, "penalty": (0.01, 0.1, 1.0, 10.0, 100.0)}
DAP_GRID = {"features": (UNCHANGED,), "penalty": (0.1, 1.0, 10.0)}
"""Few values, because one fit takes half a minute."""
CONSE_GRID = {"n_classes": (1, 3, 10, 30)}
FEATURE_NOTES = (
    (
        "Features are centred by the training mean and divided by their root mean square length; "
        "penalties refer to this scale."
    ),
    (
        "The panel's rankings cannot replace class vectors: these methods need a vector of every "
        "seen class, and the panel ranked only some seen classes, against the others."
    ),
)
COLUMNS = (
    *("method", "class vectors", "what it trains", "settings"),
    *("rehearsal", "accuracy", "mean class accuracy"),
)


@dataclass(frozen=True, eq=False)
class PeerTask:
    """A task with the inputs of the peers."""

    task: Task
    features: dict[str, tuple[Floats, Floats]]
    scores: Scores


class PeerMethod(NamedTuple):
    """A method with its class vectors, what it trains, and the settings to choose from.

    A method that cannot be used here has no settings, and ``missing`` says what to install.
    """

    method: str
    vectors: str
    trains: str
    settings: tuple[Setting, ...]
    predict: Callable[[PeerTask, Setting], Labels]
    missing: str = ""


def peer_table(
    benchmark: Benchmark,
    rehearsal_classifier: LinearClassifier,
    real_classifier: LinearClassifier,
    announce: AnnounceStep,
    methods: Sequence[PeerMethod] | None = None,
    notes: Sequence[str] = FEATURE_NOTES,
) -> ResultTable:
    """Tune, train and test the peers on the features that our classifiers use."""
    for name, classifier in (
        ("rehearsal_classifier", rehearsal_classifier),
        ("real_classifier", real_classifier),
    ):
        if classifier.kind != "multiclass":
            raise RankshotError(f"{name} must be a multiclass classifier, not {classifier.kind}")
    methods = peer_methods(benchmark) if methods is None else methods
    trials = _tune(benchmark.rehearsal, rehearsal_classifier, methods, announce)
    real = prepare_task(benchmark.real, real_classifier)
    bootstrap = Bootstrap(benchmark.real.test_label)
    weights = class_weights(benchmark.real.test_label)
    rows: list[tuple[Value, ...]] = []
    for one, trial in zip(methods, trials, strict=True):
        if trial is None:
            rows.append((one.method, one.vectors, one.trains, one.missing, None, None, None))
            continue
        announce(f"testing {one.method} with {one.vectors}")
        correct = one.predict(real, trial[0]) == benchmark.real.test_label
        rows.append(
            (
                one.method,
                one.vectors,
                one.trains,
                format_setting(trial[0]),
                trial[1],
                bootstrap.interval(correct),
                bootstrap.interval(correct, weights),
            )
        )
    return ResultTable(
        "peers",
        "Other methods, which use class vectors or class names, on the same inputs",
        COLUMNS,
        tuple(rows),
        (_describe_tuning(benchmark), *notes),
        n_labels=2,
    )


def peer_methods(benchmark: Benchmark) -> list[PeerMethod]:
    """Return the methods for whose class vectors the benchmark has data, in the order of rows."""
    words, attributes = benchmark.vectors, benchmark.attributes
    methods = [
        _feature_method(ESZSL(), words, ESZSL_GRID),
        _feature_method(SAE(), words, SAE_GRID),
        _feature_method(VectorRegression(), words, REGRESSION_GRID),
        conse_method(words),
    ]
    if attributes is not None:
        methods += [
            _feature_method(ESZSL(), attributes, ESZSL_GRID),
            _feature_method(SAE(), attributes, SAE_GRID),
            _feature_method(DAP(), attributes, DAP_GRID, "a classifier of each attribute"),
            _iap(attributes),
        ]
    return methods


def _feature_method(
    peer: Peer, vectors: ClassVectors, grid: Grid, trains: str = "a map of features and vectors"
) -> PeerMethod:
    def predict(given: PeerTask, setting: Setting) -> Labels:
        task, parameters = given.task, setting.copy()
        train, test = given.features[parameters.pop("features")]
        fitted = clone(peer).set_params(**parameters).fit(train, task.train_label, vectors)
        return np.asarray(fitted.predict(test, vectors.select(task.targets)))

    name = type(peer).__name__
    return PeerMethod(name, vectors.source, trains, expand_grid(grid), predict)


def conse_method(vectors: ClassVectors) -> PeerMethod:
    """Return ConSE with these class vectors."""

    def predict(given: PeerTask, setting: Setting) -> Labels:
        cosines = vectors.cosines(given.task.targets, given.task.items)
        return ConSE(**setting).fit(cosines).predict(given.scores)

    return PeerMethod("ConSE", vectors.source, "nothing", expand_grid(CONSE_GRID), predict)


def _iap(vectors: ClassVectors) -> PeerMethod:
    def predict(given: PeerTask, _: Setting) -> Labels:
        fitted = IAP().fit(vectors.select(given.task.items))
        return fitted.predict(given.scores, vectors.select(given.task.targets))

    return PeerMethod("IAP", vectors.source, "nothing", ({},), predict)


def expand_grid(grid: Grid) -> tuple[Setting, ...]:
    """Return all combinations of the values of a grid."""
    return tuple(dict(zip(grid, values, strict=True)) for values in product(*grid.values()))


def format_setting(setting: Setting) -> str:
    """Return a setting as text."""
    parts = [
        f"{name.replace('_', ' ')} {value if isinstance(value, str) else f'{value:g}'}"
        for name, value in setting.items()
    ]
    return ", ".join(parts) or "none"


# ---- Tuning


def _tune(
    task: Task, classifier: LinearClassifier, methods: Iterable[PeerMethod], announce: AnnounceStep
) -> list[tuple[Setting, float] | None]:
    """Return the best setting of each method and its mean class accuracy; None without any."""
    rehearsal = prepare_task(task, classifier)
    best: list[tuple[Setting, float] | None] = []
    for one in methods:
        if not one.missing:
            announce(f"tuning {one.method} with {one.vectors}, {len(one.settings)} settings")
        found = [
            (setting, balanced_accuracy_score(task.test_label, one.predict(rehearsal, setting)))
            for setting in ([] if one.missing else one.settings)
        ]
        # The first one of a tie.
        best.append(max(found, key=lambda trial: trial[1], default=None))
    return best


def prepare_task(task: Task, classifier: LinearClassifier) -> PeerTask:
    """Compute the features and the classifier's scores of a task; texts have no dense features."""
    features = {}
    for kind in FEATURES if isinstance(task.train, np.ndarray) else ():
        train, test = (X.astype(np.float64) for X in (task.train, task.test))
        if kind == UNIT:
            # A row of zeros has no direction; it stays zero.
            train, test = (np.nan_to_num(unit_vectors(X)) for X in (train, test))
        features[kind] = center_and_scale(train, test)
    return PeerTask(task, features, classifier.scores(task.test))


def center_and_scale(train: Floats, test: Floats) -> tuple[Floats, Floats]:
    """Center both by the training mean, and divide them by the root mean square training length.

    A penalty then has the same meaning whatever the scale of the features.
    """
    mean = train.mean(axis=0)
    centered = train - mean
    length = float(np.sqrt((centered**2).sum(axis=1).mean()))
    if length == 0:
        raise RankshotError(f"all {len(train)} training inputs are the same")
    return centered / length, (test - mean) / length


def _describe_tuning(benchmark: Benchmark) -> str:
    n, held_out = len(benchmark.rehearsal.items), len(benchmark.rehearsal.targets)
    return (
        "Settings are those with the highest mean class accuracy in the rehearsal, which trains on "
        f"{n} of the {n + held_out} seen classes and holds out {held_out}. Then each method was "
        "trained on all seen classes. Nothing was chosen on new classes. Intervals are 95% "
        "intervals from 1,000 resamples within each class."
    )
