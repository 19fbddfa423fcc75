"""A data set and the semantics of its classes, as two tasks: the rehearsal and the real one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, quote_names
from rankshot.datasets import LabelledData
from rankshot.datasets.demo import fill_missing
from rankshot.datasets.embedded import (
    QUESTIONS,
    load_held_out_panel,
    load_panel,
    load_similarities,
)
from rankshot.ranking.rankings import Rankings
from rankshot.sources.similarity import Similarity
from rankshot.zeroshot.evidence import make_tfidf
from reproduction.class_vectors import ClassVectors, load_class_vectors
from reproduction.paper_methods import find_unranked_targets, rank_items

Labels = NDArray[np.str_]
Texts = NDArray[np.str_]
Features = NDArray[np.float32] | Any
"""Of images a dense array, of texts a sparse one, which has no types."""
PANEL = "panel"
LabelledInputs = tuple[Any, Labels]


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """A zero-shot problem: training data of some classes, and test inputs of other classes.

    The targets of the real task are the new classes. In the rehearsal, some *seen* classes are held
    out as new ones, and the classifier is trained on the others. There, settings are chosen.

    Attributes
    ----------
    name : str
    train, train_label : ndarray or sparse array, ndarray
        Inputs of the classes that the classifier is trained on.
    validation, validation_label : ndarray or sparse array, ndarray
        Other inputs of these classes.
    test, test_label : ndarray or sparse array, ndarray
        Inputs of the targets.
    items, targets : tuples of str
        The classes that the classifier is trained on, and those that it has to recognise.
    sources : dict of str to Similarity
        The similarity of targets and items, by source.
    panels : dict of str to Rankings
        Rankings of the items for each target, by the question that the panel was asked; first the
        question that is nearest to the paper's.
    """

    name: str
    train: Features
    train_label: Labels
    validation: Features
    validation_label: Labels
    test: Features
    test_label: Labels
    items: tuple[str, ...]
    targets: tuple[str, ...]
    sources: dict[str, Similarity]
    panels: dict[str, Rankings]

    @property
    def panel(self) -> Rankings:
        """The panel that takes the place of the paper's crowd: the answers to its question."""
        return next(iter(self.panels.values()))

    def rankings(self, source: str) -> Rankings:
        """Return the top rankings of a source, or those of the panel for a question."""
        if source == PANEL:
            return self.panel
        return self.panels[source] if source in self.panels else rank_items(self.sources[source])


@dataclass(frozen=True, eq=False, kw_only=True)
class TextTask(Task):
    """A task whose inputs are texts; ``train``, ``validation`` and ``test`` are their features."""

    train_text: Texts
    test_text: Texts


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A data set with all its semantics; its two tasks are the rehearsal and the real one.

    Attributes
    ----------
    data : LabelledData
        The inputs and their classes.
    sources : dict of str to Similarity
        The similarity tables, by source.
    panels, held_out_panels : dict of str to Rankings
        The rankings by a language-model panel, by the question that it was asked: of the new
        classes, and of the held-out seen classes.
    vectors : ClassVectors
        The word vectors of all classes.

    Examples
    --------
    >>> from rankshot.datasets import load_cifar
    >>> from reproduction.benchmark import load_benchmark
    >>> benchmark = load_benchmark(load_cifar())
    >>> list(benchmark.sources)
    ['WordNet', 'GloVe', 'Wikipedia', 'word2vec', 'GloVe 100d']
    >>> len(benchmark.real.items), benchmark.real.targets[:2]
    (100, ('airplane', 'automobile'))
    """

    data: LabelledData
    sources: dict[str, Similarity]
    panels: dict[str, Rankings]
    held_out_panels: dict[str, Rankings]
    vectors: ClassVectors

    @property
    def name(self) -> str:
        """The name of the data set."""
        return self.data.name

    @property
    def attributes(self) -> ClassVectors | None:
        """The attributes of all classes, if the data set has them."""
        return getattr(self.data, "attributes", None)

    @cached_property
    def real(self) -> Task:
        """The task with the new classes as targets: to report results, never to choose settings."""
        data = self.data
        return self._make_task(
            "all",
            (data.seen_train, data.seen_train_label),
            (data.seen_validation, data.seen_validation_label),
            (data.new, data.new_label),
            data.seen_classes,
            data.new_classes,
            self.panels,
        )

    @cached_property
    def rehearsal(self) -> Task:
        """The task with the seen classes that the panel ranked as targets: to choose settings.

        All inputs of these classes are test inputs, because the classifier is trained on none of
        them.
        """
        data = self.data
        targets = tuple(next(iter(self.held_out_panels.values())).target_names)
        in_train = np.isin(data.seen_train_label, targets)
        in_validation = np.isin(data.seen_validation_label, targets)
        return self._make_task(
            "others",
            (data.seen_train[~in_train], data.seen_train_label[~in_train]),
            (data.seen_validation[~in_validation], data.seen_validation_label[~in_validation]),
            (
                np.concatenate([data.seen_train[in_train], data.seen_validation[in_validation]]),
                np.concatenate(
                    [data.seen_train_label[in_train], data.seen_validation_label[in_validation]]
                ),
            ),
            tuple(name for name in data.seen_classes if name not in targets),
            targets,
            self.held_out_panels,
        )

    def _make_task(
        self,
        name: str,
        train: LabelledInputs,
        validation: LabelledInputs,
        test: LabelledInputs,
        items: tuple[str, ...],
        targets: tuple[str, ...],
        panels: dict[str, Rankings],
    ) -> Task:
        values: dict[str, Any] = {
            "name": f"{self.name}-{name}",
            "train": train[0],
            "train_label": train[1],
            "validation": validation[0],
            "validation_label": validation[1],
            "test": test[0],
            "test_label": test[1],
            "items": items,
            "targets": targets,
            "sources": {name: table.select(targets, items) for name, table in self.sources.items()},
            "panels": panels,
        }
        if train[0].dtype.kind != "U":
            return Task(**values)
        # The features are those of the texts that the classifier is trained on.
        tfidf = make_tfidf().fit(train[0])
        features = {part: tfidf.transform(values[part]) for part in ("train", "validation", "test")}
        return TextTask(**values | features, train_text=train[0], test_text=test[0])


def load_benchmark(data: LabelledData) -> Benchmark:
    """Return a data set with the semantics of its classes."""
    # The question that is nearest to the paper's is the last of those that the panel was asked.
    questions = QUESTIONS[data.name][::-1]
    panels = {one: load_panel(data.name, one) for one in questions}
    held_out = {one: load_held_out_panel(data.name, one) for one in questions}
    return Benchmark(
        data, load_similarities(data.name), panels, held_out, load_class_vectors(data.name)
    )


@dataclass(frozen=True, eq=False)
class SourcePoints:
    """The similarities of all sources, one point per source and target.

    Points are compared in Result 1 and drawn in Figure 3.
    """

    values: NDArray[np.float64]
    rankings: Rankings
    sources: Labels
    targets: Labels
    left_out: dict[str, tuple[str, ...]]


def collect_points(tables: Mapping[str, Similarity]) -> SourcePoints:
    """Collect the points of all sources; targets for which a source ranks no items have none."""
    values, rankings, left_out = [], [], {}
    sources: list[str] = []
    targets: list[str] = []
    for name, table in tables.items():
        unranked = find_unranked_targets(table)
        if unranked:
            left_out[name] = unranked
        ranked = [target for target in table.targets if target not in unranked]
        if ranked:
            values.append(fill_missing(table.select(ranked, table.items)).values)
            rankings.append(rank_items(table))
            sources += [name] * len(ranked)
            targets += ranked
    if not targets:
        raise RankshotError(f"none of the sources {quote_names(tables)} ranks any items")
    return SourcePoints(
        np.concatenate(values),
        Rankings.concatenate(rankings),
        np.array(sources),
        np.array(targets),
        left_out,
    )
