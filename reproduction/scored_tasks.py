"""Scores of trained classifiers for inputs of classes that they do not know, of four data sets.

Each task has what `WeightedMean` takes: rankings, a reference, and scores with features and labels.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.decomposition import TruncatedSVD

from rankshot.core.errors import RankshotError, quote_names
from rankshot.datasets import load_imagenet
from rankshot.ranking.ranking_files import read_rankings
from rankshot.ranking.rankings import Rankings
from rankshot.sources.look_alikes import LookAlikes
from rankshot.sources.wordnet import WordNet
from rankshot.zeroshot.scores import Scores
from reproduction.benchmark import Task, load_benchmark
from reproduction.classifiers import LEAST_SQUARES, AnnounceStep, ClassifierCache
from reproduction.data import describe_missing, find_folder, load_data
from reproduction.paper_methods import rank_items
from reproduction.result_tables import PAGE

Labels = NDArray[np.str_]
HELD_OUT = "held-out"
"""In the name of a task whose targets are seen classes: settings are chosen there."""
STRENGTH = {
    LEAST_SQUARES: {"cifar": 0.01, "animals": 0.0003, "intents": 0.1},
    "multiclass": {"cifar": 0.001, "animals": 0.03, "intents": 10.0},
}
"""C of least squares and of logistic regression, chosen on held-out seen classes by
`reproduction.ablation`."""
TABLES = {"cifar": "WordNet", "animals": "WordNet", "intents": "GloVe", "sounds": "WordNet"}
"""The source without raters of each data set."""
TEXT_FEATURES = 256
"""Texts have TF-IDF features, many and sparse; these are the first principal ones."""
MOST_PER_CLASS = 300
"""Inputs of each class that are kept, of targets and in the reference."""
SOUND_SPLITS = {
    "sounds held-out": ("held_out_seen.npz", "panel_held_out_seen.jsonl"),
    "sounds ESC-10": ("esc10_split.npz", "panel_esc10_split.jsonl"),
    **{
        f"sounds published {n}": (f"published_split_{n}.npz", "panel_published_split.jsonl")
        for n in (1, 2, 3)
    },
}
"""For each task of the sounds: the network's scores, and the rankings of a panel."""
NETWORKS: dict[str, dict[str, tuple[str, str]]] = {
    "imagenet": {"imagenet held-out": ("held_out_seen.npz", "panel_held_out_seen.jsonl")},
    "outside": {
        "languages": ("languages.npz", "languages.jsonl"),
        "programming languages": ("programming_languages.npz", "programming_languages.jsonl"),
        "letters": ("letters.npz", "letters.jsonl"),
    },
}
"""Tasks that have scores and one panel only. Those of “outside” are reported, never chosen on."""
N_DRAWS = 10
MOST_MEASURED = 200, 1_600
"""Inputs of each target, and of the reference, that tables of several draws use."""
FILES = {"sounds": SOUND_SPLITS, **NETWORKS}
DATA = (*TABLES, *NETWORKS)
"""All data sets."""


@dataclass(frozen=True, eq=False)
class ScoredTask:
    """What a classifier says about inputs of classes that it does not know.

    Attributes
    ----------
    name : str
        The data set and the split.
    scores, labels : Scores, ndarray of str
        Inputs of the targets, with features.
    reference, reference_labels : Scores, ndarray of str
        Inputs of the classes that the classifier was trained on, which it was not trained on.
    rankings : dict of str to Rankings
        Rankings of the classifier's classes for each target: of a language-model panel, and of a
        table without raters.
    """

    name: str
    scores: Scores
    labels: Labels
    reference: Scores
    reference_labels: Labels
    rankings: Mapping[str, Rankings]

    @property
    def is_held_out(self) -> bool:
        """Whether the targets are held-out seen classes, so that settings may be chosen here."""
        return HELD_OUT in self.name

    def limit(self, n: int, n_reference: int | None = None) -> ScoredTask:
        """Keep at most ``n`` inputs of each target, and ``n_reference`` of the reference."""
        rows = sample_rows(self.labels, n)
        usual = np.sort(np.random.default_rng(0).permutation(len(self.reference))[:n_reference])
        return replace(
            self,
            scores=self.scores[rows],
            labels=self.labels[rows],
            reference=self.reference[usual],
            # They may be unknown.
            reference_labels=self.reference_labels[usual[: len(self.reference_labels)]],
        )


def load_scored_tasks(
    dataset: str,
    directory: Path,
    announce: AnnounceStep,
    parts: tuple[str, ...] = (),
    settings: tuple[str, ...] = (LEAST_SQUARES,),
    without: str | None = None,
) -> Iterator[ScoredTask]:
    """Yield the tasks of a data set; ``parts`` keeps those whose names contain one of them.

    Tasks whose names contain ``without`` are left out. The ``settings`` are the linear classifiers
    of features; sounds have networks.
    """
    is_wanted = partial(_is_wanted, parts=parts, without=without)
    if dataset in FILES:
        yield from _read_tasks(dataset, directory, is_wanted)
        return
    if dataset not in TABLES:
        raise RankshotError(f"no data set {dataset!r}; there are {quote_names(TABLES)}")
    if not any(is_wanted(name) for name in (dataset, f"{dataset} {HELD_OUT}")):
        return
    benchmark = load_benchmark(load_data(dataset, directory))
    for name, attribute in ((f"{dataset} {HELD_OUT}", "rehearsal"), (dataset, "real")):
        if is_wanted(name):
            task = getattr(benchmark, attribute)
            for setting in settings:
                full = name if setting == LEAST_SQUARES else f"{name}, {setting}"
                yield _score_task(full, setting, benchmark.name, task, announce)


Measurement = TypeVar("Measurement")


def measure_tasks(
    program: str,
    doc: str | None,
    measure: Callable[[ScoredTask, int, Path | None], Iterator[Measurement]],
    settings: tuple[str, ...] = (LEAST_SQUARES,),
) -> tuple[list[Measurement], Namespace]:
    """Measure all tasks, as the arguments of a program say; each measurement is printed.

    A task has at most `MOST_MEASURED` inputs of each target and of the reference. ``measure``
    takes a task, the number of draws, and the folder of the source of version 0.3, if there is one.
    """
    parser = ArgumentParser(prog=f"python -m reproduction.{program}", description=doc)
    parser.add_argument("directory", type=Path, help="has cifar/features.npz and so on")
    parser.add_argument("--data", nargs="+", choices=DATA, default=DATA)
    parser.add_argument("--part", nargs="+", default=[], help="texts in the names of tasks")
    parser.add_argument("--draws", type=int, default=N_DRAWS)
    parser.add_argument("--old", type=Path, help="the source of version 0.3")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    found = []
    announce = partial(print, file=sys.stderr)
    try:
        for dataset in options.data:
            for task in load_scored_tasks(
                dataset, options.directory, announce, tuple(options.part), settings
            ):
                for each in measure(task.limit(*MOST_MEASURED), options.draws, options.old):
                    found.append(each)
                    print(each, flush=True)
    except RankshotError as error:
        sys.exit(str(error))
    return found, options


def _read_tasks(
    dataset: str, directory: Path, is_wanted: Callable[[str], bool]
) -> Iterator[ScoredTask]:
    """Yield the tasks whose scores are in files."""
    folder = find_folder(dataset, directory)
    for name, files in FILES[dataset].items():
        if is_wanted(name):
            read = read_sounds if dataset == "sounds" else read_network
            try:
                yield read(name, *(folder / file for file in files))
            except FileNotFoundError as error:
                raise describe_missing(dataset, error) from None
    if dataset == "imagenet" and is_wanted("imagenet"):
        yield read_package_network()


def _is_wanted(name: str, parts: tuple[str, ...], without: str | None) -> bool:
    is_part = not parts or any(part in name for part in parts)
    return is_part and (without is None or without not in name)


# ---- Features with a linear classifier


def _score_task(
    name: str, setting: str, dataset: str, task: Task, announce: AnnounceStep
) -> ScoredTask:
    folder = Path(f"reproduction-{dataset}") / "classifiers"
    cache = ClassifierCache(task.name, task.train, task.train_label, folder, announce)
    model = cache.load_or_train(setting, STRENGTH[setting][dataset])
    svd = TruncatedSVD(TEXT_FEATURES, random_state=0) if issparse(task.train) else None
    if svd is not None:
        svd.fit(task.train)
    parts = []
    for X, labels in ((task.test, task.test_label), (task.validation, task.validation_label)):
        rows = sample_rows(labels, MOST_PER_CLASS)
        features = X[rows] if svd is None else svd.transform(X[rows])
        parts += [model.scores(X[rows]).with_blocks(features=features), labels[rows]]
    table = TABLES[dataset]
    rankings = {
        "panel": Rankings.concatenate(task.panels.values()),
        table: rank_items(task.sources[table]),
    }
    return ScoredTask(name, *parts, rankings)


def sample_rows(labels: Labels, most: int) -> NDArray[np.intp]:
    """Draw at most so many rows of each class, with a fixed seed."""
    order = np.random.default_rng(0).permutation(len(labels))
    drawn = [order[labels[order] == name][:most] for name in np.unique(labels)]
    return np.sort(np.concatenate(drawn))


# ---- Sounds, which have scores of networks


def read_sounds(name: str, path: Path, panel: Path) -> ScoredTask:
    """Read the scores of a network for clips of ESC-50, and a panel's rankings of its classes."""
    with np.load(path, allow_pickle=False) as arrays:
        classes = tuple(arrays["classes"].tolist())
        labels = arrays["label"]
        scores = Scores(arrays["logits"], classes, features=arrays["features"].astype(np.float32))
    is_new = ~np.isin(labels, classes)
    rankings = read_rankings(panel, items=classes)
    table = TABLES["sounds"]
    tree = WordNet("path").similarity(rankings.target_names, classes)
    return ScoredTask(
        name,
        *(scores[is_new], labels[is_new]),
        *(scores[~is_new], labels[~is_new]),
        {"panel": rankings, table: rank_items(tree)},
    )


def read_network(name: str, path: Path, panel: Path) -> ScoredTask:
    """Read scores with a reference, which may have no labels, and the rankings of one panel."""
    with np.load(path, allow_pickle=False) as arrays:
        found = {key: arrays[key] for key in arrays.files}
    classes = tuple(map(str, found["classes"]))
    if "logits" in found:
        is_new = found["label"] != "reference"
        every = Scores(
            found["logits"].astype(np.float32),
            classes,
            features=found["features"].astype(np.float32),
        )
        parts = (every[is_new], every[~is_new])
        labels, known = found["label"][is_new].astype(str), np.array([], str)
    else:
        parts = tuple(Scores(found[key], classes) for key in ("scores", "reference"))
        labels, known = found["label"].astype(str), found["reference_label"].astype(str)
    rankings = {"panel": read_rankings(panel, items=classes)}
    return ScoredTask(name, parts[0], labels, parts[1], known, rankings)


def read_package_network() -> ScoredTask:
    """Return the scores of the network in the package: 1,000 outputs, ranked by the dictionary."""
    data = load_imagenet()
    targets, items = sorted(set(data.labels.tolist())), data.scores.items
    rankings = LookAlikes().rankings(targets, items)
    tree = rank_items(WordNet("path").similarity(targets, items))
    nothing = np.array([], str)
    by_source = {"panel": rankings, "WordNet": tree}
    return ScoredTask("imagenet", data.scores, data.labels, data.reference, nothing, by_source)
