"""The peers beside our heads: tuned on the rehearsal, judged on the unseen classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rankshot.core.errors import RankshotError
from rankshot.experiments.benchmark import Benchmark, Task
from rankshot.experiments.classifiers import Announce, LinearClassifier
from rankshot.experiments.peers.attributes import DAP, IAP
from rankshot.experiments.peers.base import Peer
from rankshot.experiments.peers.linear import DIRECTIONS, ESZSL, SAE, VectorRegression
from rankshot.experiments.tables import ResultTable, Value
from rankshot.semantics.vectors import ClassVectors, unit_vectors
from rankshot.zeroshot.bootstrap import Bootstrap, class_weights
from rankshot.zeroshot.heads.conse import ConSE
from rankshot.zeroshot.metrics import mean_class_accuracy
from rankshot.zeroshot.scores import Scores

Floats = NDArray[np.float64]
Labels = NDArray[np.str_]
Setting = dict[str, Any]
Grid = Mapping[str, tuple[Any, ...]]
UNCHANGED, UNIT = "as they are", "of length one"
FEATURES = (UNCHANGED, UNIT)
"""What is done to features before they are centred; a setting like others."""
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
"""Few: a fit takes half a minute."""
CONSE_GRID = {"n_classes": (1, 3, 10, 30)}
COLUMNS = (
    *("method", "class vectors", "what it trains", "settings"),
    *("rehearsal", "accuracy", "mean class accuracy"),
)


@dataclass(frozen=True, eq=False)
class PeerTask:
    """A task as the peers meet it.

    Attributes
    ----------
    task : Task
    features : dict of str to pair of ndarrays
        For each of `FEATURES`, those of the inputs to train on and to judge on.
    scores : Scores
        What a classifier, trained already, says of the inputs to judge on.
    """

    task: Task
    features: dict[str, tuple[Floats, Floats]]
    scores: Scores


class PeerMethod(NamedTuple):
    """A method with its class vectors, what it retrains, and the settings to choose from."""

    method: str
    vectors: str
    retrains: str
    settings: tuple[Setting, ...]
    predict: Callable[[PeerTask, Setting], Labels]


class Trial(NamedTuple):
    """A setting, and the mean class accuracy that it reached on the rehearsal."""

    setting: Setting
    accuracy: float


def peer_table(
    benchmark: Benchmark, rehearsed: LinearClassifier, trained: LinearClassifier, announce: Announce
) -> ResultTable:
    """Train, tune and judge the peers on the features that our heads' classifiers have.

    Parameters
    ----------
    benchmark : Benchmark
        With attributes, methods that need them take part, too.
    rehearsed, trained : LinearClassifier
        Multiclass classifiers of the rehearsal's items and of all seen classes, for the methods
        that retrain nothing.
    announce : callable
        Is told what comes next.
    """
    for what, classifier in (("rehearsed", rehearsed), ("trained", trained)):
        if classifier.kind != "multiclass":
            raise RankshotError(f"{what} must be a multiclass classifier, not {classifier.kind}")
    field = peer_methods(benchmark)
    trials = _tune(benchmark.rehearsal, rehearsed, field, announce)
    arena = prepare_task(benchmark.real, trained)
    bootstrap = Bootstrap(benchmark.real.test_label)
    weights = class_weights(benchmark.real.test_label)
    rows: list[tuple[Value, ...]] = []
    for one, trial in zip(field, trials, strict=True):
        announce(f"judging {one.method} with {one.vectors}")
        right = one.predict(arena, trial.setting) == benchmark.real.test_label
        rows.append(
            (
                one.method,
                one.vectors,
                one.retrains,
                format_setting(trial.setting),
                trial.accuracy,
                bootstrap.interval(right),
                bootstrap.interval(right, weights),
            )
        )
    return ResultTable(
        "peers",
        "Peers: methods that take vectors of the classes, on the same features",
        COLUMNS,
        tuple(rows),
        _notes(benchmark),
        n_labels=2,
    )


def peer_methods(benchmark: Benchmark) -> list[PeerMethod]:
    """Return the methods that the benchmark has the vectors for, in the order of the rows."""
    words, attributes = benchmark.vectors, benchmark.images.attributes
    field = [
        _feature_method(ESZSL(), words, ESZSL_GRID),
        _feature_method(SAE(), words, SAE_GRID),
        _feature_method(VectorRegression(), words, REGRESSION_GRID),
        _conse(words),
    ]
    if attributes is not None:
        field += [
            _feature_method(ESZSL(), attributes, ESZSL_GRID),
            _feature_method(SAE(), attributes, SAE_GRID),
            _feature_method(DAP(), attributes, DAP_GRID, "a classifier of each attribute"),
            _iap(attributes),
        ]
    return field


def _feature_method(
    peer: Peer, vectors: ClassVectors, grid: Grid, retrains: str = "a map of features and vectors"
) -> PeerMethod:
    def predict(arena: PeerTask, setting: Setting) -> Labels:
        task, parameters = arena.task, setting.copy()
        train, test = arena.features[parameters.pop("features")]
        fitted = clone(peer).set_params(**parameters).fit(train, task.train_label, vectors)
        return np.asarray(fitted.predict(test, vectors.select(task.targets)))

    name = type(peer).__name__
    return PeerMethod(name, vectors.source, retrains, expand_grid(grid), predict)


def _conse(vectors: ClassVectors) -> PeerMethod:
    def predict(arena: PeerTask, setting: Setting) -> Labels:
        cosines = vectors.cosines(arena.task.targets, arena.task.items)
        return ConSE(**setting).fit(cosines).predict(arena.scores)

    return PeerMethod("ConSE", vectors.source, "nothing", expand_grid(CONSE_GRID), predict)


def _iap(vectors: ClassVectors) -> PeerMethod:
    def predict(arena: PeerTask, _: Setting) -> Labels:
        fitted = IAP().fit(vectors.select(arena.task.items))
        return fitted.predict(arena.scores, vectors.select(arena.task.targets))

    return PeerMethod("IAP", vectors.source, "nothing", ({},), predict)


def expand_grid(grid: Grid) -> tuple[Setting, ...]:
    """Return all combinations of a grid.

    Examples
    --------
    >>> settings_of({"penalty": (1.0, 10.0), "direction": ("up",)})
    ({'penalty': 1.0, 'direction': 'up'}, {'penalty': 10.0, 'direction': 'up'})
    """
    return tuple(dict(zip(grid, values, strict=True)) for values in product(*grid.values()))


def format_setting(setting: Setting) -> str:
    """Return a setting for a reader.

    Examples
    --------
    >>> setting_text({"features": "of length one", "feature_penalty": 10.0})
    'features of length one, feature penalty 10'
    >>> setting_text({})
    'none'
    """
    parts = [
        f"{name.replace('_', ' ')} {value if isinstance(value, str) else f'{value:g}'}"
        for name, value in setting.items()
    ]
    return ", ".join(parts) or "none"


# -------------------------------------------------------------------- tuning


def _tune(
    task: Task, classifier: LinearClassifier, field: Iterable[PeerMethod], announce: Announce
) -> list[Trial]:
    arena, best = prepare_task(task, classifier), []
    for one in field:
        announce(f"tuning {one.method} with {one.vectors}, {len(one.settings)} to try")
        best.append(choose_best_trial(try_settings(one, arena)))
    return best


def try_settings(contestant: PeerMethod, arena: PeerTask) -> Iterator[Trial]:
    """Try every setting of a method on the rehearsal."""
    for setting in contestant.settings:
        found = contestant.predict(arena, setting)
        yield Trial(setting, mean_class_accuracy(arena.task.test_label, found))


def choose_best_trial(tried: Iterable[Trial]) -> Trial:
    """Return the trial of the highest accuracy; of equals, the first of the grid.

    Examples
    --------
    >>> best_trial([Trial({"T": 1}, 0.2), Trial({"T": 3}, 0.4), Trial({"T": 10}, 0.4)]).setting
    {'T': 3}
    """
    return max(tried, key=lambda trial: trial.accuracy)


def prepare_task(task: Task, classifier: LinearClassifier) -> PeerTask:
    """Prepare the features and the classifier's scores."""
    features = {}
    for kind in FEATURES:
        train, test = (X.astype(np.float64) for X in (task.train, task.test))
        if kind == UNIT:
            # A row of zeros has no direction, and stays.
            train, test = (np.nan_to_num(unit_vectors(X)) for X in (train, test))
        features[kind] = center_and_scale(train, test)
    return PeerTask(task, features, classifier.scores(task.test))


def center_and_scale(train: Floats, test: Floats) -> tuple[Floats, Floats]:
    """Return both less the mean to train on, over the root mean square length there.

    So the decades of a penalty mean the same whatever the scale of the features.

    Examples
    --------
    >>> train, test = centred(np.array([[1.0, 0.0], [5.0, 0.0]]), np.array([[3.0, 4.0]]))
    >>> train.tolist(), test.tolist()
    ([[-1.0, 0.0], [1.0, 0.0]], [[0.0, 2.0]])
    """
    mean = train.mean(axis=0)
    moved = train - mean
    length = float(np.sqrt((moved**2).sum(axis=1).mean()))
    if length == 0:
        raise RankshotError(f"all {len(train)} inputs to train on are the same")
    return moved / length, (test - mean) / length


def _notes(benchmark: Benchmark) -> tuple[str, ...]:
    n, play = len(benchmark.rehearsal.items), len(benchmark.rehearsal.targets)
    tuning = (
        f"Settings are those of the highest mean class accuracy on the rehearsal: of {n + play} "
        f"seen classes {n} to train on, and {play} that play unseen ones. Then a method was "
        "trained on all of them; nothing was chosen on unseen classes."
    )
    features = (
        "Features are centred by the mean to train on, and divided by their root mean square "
        "length, which penalties refer to. Intervals: 95 % of 1,000 resamples inside each class."
    )
    panel = (
        "The panel cannot serve these methods for class vectors: they need one of every seen "
        "class, too, and the panel ranked only some of those, against the others."
    )
    return tuning, features, panel
