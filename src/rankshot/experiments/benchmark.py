"""What an experiment needs: images of seen and unseen classes, and what semantics say of both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError
from rankshot.datasets.embedded import (
    load_class_vectors,
    load_held_out_panel,
    load_panel,
    load_similarities,
)
from rankshot.datasets.features import ImageData
from rankshot.ranking.rankings import Rankings
from rankshot.semantics.similarity import Similarity
from rankshot.semantics.vectors import ClassVectors

Labels = NDArray[np.str_]
Features = NDArray[np.float32]
LIST_LENGTH = 10
"""How many items of a source's ranking are merged: as many as a rater of the panel ordered."""
PANEL = "panel"


@dataclass(frozen=True, eq=False)
class Task:
    """Targets to tell apart by what a classifier of some classes says.

    The real task has the unseen classes for targets. In the rehearsal some *seen* classes play
    unseen ones, and the classifier is trained on the others: there settings are chosen.

    Attributes
    ----------
    name : str
    train, train_label : ndarrays
        Inputs of the classes that the classifier learns.
    validation, validation_label : ndarrays
        Other inputs of these classes.
    test, test_label : ndarrays
        Inputs of the targets.
    items, targets : tuples of str
        The classes that the classifier learns, and those that it does not.
    sources : dict of str to Similarity
        Of targets and items.
    panel : Rankings
        Of the items, for each target.
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
        """Return a source's rankings: its first items, or those of the panel."""
        return self.panel if source == PANEL else rank_items(self.sources[source])


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A data set with all its semantics, as two tasks: the rehearsal and the real one."""

    images: ImageData
    sources: dict[str, Similarity]
    panel: Rankings
    held_out_panel: Rankings
    vectors: ClassVectors

    @property
    def name(self) -> str:
        """The data set."""
        return self.images.name

    @cached_property
    def real(self) -> Task:
        """The unseen classes as targets: for figures, never to choose by."""
        data = self.images
        return Task(
            f"{data.name}-all",
            data.seen_train,
            data.seen_train_label,
            data.seen_validation,
            data.seen_validation_label,
            data.new,
            data.new_label,
            data.seen_classes,
            data.new_classes,
            self._selected(data.new_classes, data.seen_classes),
            self.panel,
        )

    @cached_property
    def rehearsal(self) -> Task:
        """The seen classes that the panel ranked as targets: to choose by.

        All their images are used: the classifier is trained on none of them.
        """
        data = self.images
        targets = tuple(self.held_out_panel.target_names)
        items = tuple(name for name in data.seen_classes if name not in targets)
        plays = np.isin(data.seen_train_label, targets)
        plays_too = np.isin(data.seen_validation_label, targets)
        return Task(
            f"{data.name}-others",
            data.seen_train[~plays],
            data.seen_train_label[~plays],
            data.seen_validation[~plays_too],
            data.seen_validation_label[~plays_too],
            np.concatenate([data.seen_train[plays], data.seen_validation[plays_too]]),
            np.concatenate([data.seen_train_label[plays], data.seen_validation_label[plays_too]]),
            items,
            targets,
            self._selected(targets, items),
            self.held_out_panel,
        )

    def _selected(self, targets: tuple[str, ...], items: tuple[str, ...]) -> dict[str, Similarity]:
        return {name: table.select(targets, items) for name, table in self.sources.items()}


def load_benchmark(images: ImageData) -> Benchmark:
    """Return a data set with the semantics of its classes, which are inside the package."""
    return Benchmark(
        images,
        load_similarities(images.name),
        load_panel(images.name),
        load_held_out_panel(images.name),
        load_class_vectors(images.name),
    )


def rank_items(table: Similarity) -> Rankings:
    """Rank the items of each target that a source tells apart, and keep the first.

    Of other targets there is no ranking: one that ties all items says nothing.
    """
    unknown = find_unranked_targets(table)
    told = [name for name in table.targets if name not in unknown]
    if not told:
        raise RankshotError(f"{table.source} tells the items of no target apart")
    listed = min(LIST_LENGTH, len(table.items))
    return fill_missing(table.select(told, table.items)).to_rankings(listed)


def find_unranked_targets(table: Similarity) -> tuple[str, ...]:
    """Return the targets of which a source knows nothing, or the same of all items."""
    flat = np.ptp(fill_missing(table).values, axis=1) == 0
    return tuple(name for name, same in zip(table.targets, flat, strict=True) if same)


def fill_missing(table: Similarity) -> Similarity:
    """Return a table without unknown cells: they count as the least similar."""
    there = table.values[np.isfinite(table.values)]
    values = np.nan_to_num(table.values, nan=float(there.min()) if there.size else 0.0)
    return Similarity(values, table.targets, table.items, table.source)
