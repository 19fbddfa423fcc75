"""A data set and the semantics of its classes, as two tasks: the rehearsal and the real one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, quote_names
from rankshot.datasets.embedded import (
    load_class_vectors,
    load_held_out_panel,
    load_panel,
    load_similarities,
)
from rankshot.datasets.features import ImageData
from rankshot.ranking.rankings import Rankings
from rankshot.semantics.class_vectors import ClassVectors
from rankshot.semantics.similarity import Similarity

Labels = NDArray[np.str_]
Features = NDArray[np.float32]
LIST_LENGTH = 10
"""How many items of a source's ranking are used: as many as each rater of the panel ordered."""
PANEL = "panel"


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """A zero-shot problem: training data of some classes, and test inputs of other classes.

    The targets of the real task are the new classes. In the rehearsal some *seen* classes play
    new ones, and the classifier is trained on the others. Settings are chosen in the rehearsal.

    Attributes
    ----------
    name : str
    train, train_label : ndarrays
        Inputs of the classes that the classifier is trained on.
    validation, validation_label : ndarrays
        Other inputs of these classes.
    test, test_label : ndarrays
        Inputs of the targets.
    items, targets : tuples of str
        The classes that the classifier is trained on, and those that it has to recognise.
    sources : dict of str to Similarity
        The similarity of targets and items, by source.
    panel : Rankings
        Rankings of the items for each target, by the panel.
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
    panel: Rankings

    def rankings(self, source: str) -> Rankings:
        """Return the top rankings of a source, or the rankings of the panel."""
        return self.panel if source == PANEL else rank_items(self.sources[source])


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A data set with all its semantics; its two tasks are the rehearsal and the real one."""

    images: ImageData
    sources: dict[str, Similarity]
    panel: Rankings
    held_out_panel: Rankings
    vectors: ClassVectors

    @property
    def name(self) -> str:
        """The name of the data set."""
        return self.images.name

    @cached_property
    def real(self) -> Task:
        """The task with the new classes as targets: to report results, never to choose settings."""
        data = self.images
        return Task(
            name=f"{data.name}-all",
            train=data.seen_train,
            train_label=data.seen_train_label,
            validation=data.seen_validation,
            validation_label=data.seen_validation_label,
            test=data.new,
            test_label=data.new_label,
            items=data.seen_classes,
            targets=data.new_classes,
            sources=self._select_sources(data.new_classes, data.seen_classes),
            panel=self.panel,
        )

    @cached_property
    def rehearsal(self) -> Task:
        """The task with the seen classes that the panel ranked as targets: to choose settings.

        All images of these classes are test inputs, because the classifier is trained on none of
        them.
        """
        data = self.images
        targets = tuple(self.held_out_panel.target_names)
        items = tuple(name for name in data.seen_classes if name not in targets)
        in_train = np.isin(data.seen_train_label, targets)
        in_validation = np.isin(data.seen_validation_label, targets)
        return Task(
            name=f"{data.name}-others",
            train=data.seen_train[~in_train],
            train_label=data.seen_train_label[~in_train],
            validation=data.seen_validation[~in_validation],
            validation_label=data.seen_validation_label[~in_validation],
            test=np.concatenate([data.seen_train[in_train], data.seen_validation[in_validation]]),
            test_label=np.concatenate(
                [data.seen_train_label[in_train], data.seen_validation_label[in_validation]]
            ),
            items=items,
            targets=targets,
            sources=self._select_sources(targets, items),
            panel=self.held_out_panel,
        )

    def _select_sources(
        self, targets: tuple[str, ...], items: tuple[str, ...]
    ) -> dict[str, Similarity]:
        return {name: table.select(targets, items) for name, table in self.sources.items()}


def load_benchmark(images: ImageData) -> Benchmark:
    """Return a data set with the semantics of its classes, which the package contains."""
    return Benchmark(
        images=images,
        sources=load_similarities(images.name),
        panel=load_panel(images.name, "similar"),
        held_out_panel=load_held_out_panel(images.name, "similar"),
        vectors=load_class_vectors(images.name),
    )


def rank_items(table: Similarity) -> Rankings:
    """Rank the items for each target by a source, and keep the first `LIST_LENGTH` of them.

    Targets for which the source ties all items have no ranking.
    """
    unranked = find_unranked_targets(table)
    ranked = [name for name in table.targets if name not in unranked]
    if not ranked:
        raise RankshotError(f"{table.source} ranks the items of no target: it ties all of them")
    length = min(LIST_LENGTH, len(table.items))
    return fill_missing(table.select(ranked, table.items)).to_rankings(length)


def find_unranked_targets(table: Similarity) -> tuple[str, ...]:
    """Return the targets without similarities, or with the same similarity to all items."""
    missing = np.isnan(table.values)
    highest = np.where(missing, -np.inf, table.values).max(axis=1)
    lowest = np.where(missing, np.inf, table.values).min(axis=1)
    # A row without a number is not above itself either.
    ranked = highest > lowest
    return tuple(name for name, known in zip(table.targets, ranked, strict=True) if not known)


def fill_missing(table: Similarity) -> Similarity:
    """Return a table with its missing cells filled with the smallest similarity of the table."""
    present = table.values[np.isfinite(table.values)]
    values = np.nan_to_num(table.values, nan=float(present.min()) if present.size else 0.0)
    return Similarity(values, table.targets, table.items, table.source)


@dataclass(frozen=True, eq=False)
class SourcePoints:
    """The similarities of all sources, one point per source and target.

    Points are compared in Result 1 and drawn in Figure 3.

    Attributes
    ----------
    values : ndarray of shape (points, items)
        Similarities; a missing one is the smallest of its source.
    rankings : Rankings
        The same as rankings of the first `LIST_LENGTH` items.
    sources, targets : ndarrays of shape (points,)
    left_out : dict of str to tuple of str
        For each source that lacks any, the targets for which it ranks no items.
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
