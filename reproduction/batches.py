"""Inputs predicted as a batch, against the same inputs one at a time, on all data sets.

``python -m reproduction.batches DIRECTORY`` prints one line per task as soon as it is there, and
writes a section of ``docs/results/accuracies.md``. All kinds of batch are compared on the same
draws. ``--old FOLDER`` compares with version 0.3, whose source is in this folder. Settings may be
chosen on the held-out seen classes only.

The rule: a batch is never more than .01 and two standard errors below one input at a time, in the
mean over draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import format_share
from rankshot.zeroshot.batch_refinement import BatchRefinement
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.weighted_mean import WeightedMean
from reproduction.earlier_version import Job, predict_earlier
from reproduction.examples_table import ENOUGH_ERRORS, MOST_LOST
from reproduction.result_tables import ResultTable, write_section
from reproduction.scored_tasks import Labels, ScoredTask, measure_tasks

Ints = NDArray[np.intp]
N_INPUTS = 30
"""Inputs of each class that occurs; twice as many of the most frequent class at most."""
PRESENT = {"all": 1.0, "half": 0.5, "a quarter": 0.25}
"""The share of the classes that occur, each with the same number of inputs."""
UNEQUAL = "unequal"
FEW, MANY = "5 per class", "200 per class"
KINDS = (*PRESENT, UNEQUAL, FEW, MANY)


def draw_batches(labels: Labels, seed: int) -> dict[str, Ints]:
    """Draw the rows of one batch of each kind; unequal frequencies are those of Dirichlet(.5)."""
    rng = np.random.default_rng(seed)
    names = np.unique(labels)
    rows = [rng.permutation(np.flatnonzero(labels == name)) for name in names]
    found = {}
    for kind, share in PRESENT.items():
        there = rng.permutation(len(names))[: max(2, round(share * len(names)))]
        found[kind] = np.concatenate([rows[z][:N_INPUTS] for z in there])
    frequencies = rng.dirichlet(np.full(len(names), 0.5))
    sizes = np.round(2 * N_INPUTS * frequencies / frequencies.max()).astype(int)
    found[UNEQUAL] = np.concatenate([some[:n] for some, n in zip(rows, sizes, strict=True)])
    found[FEW] = np.concatenate([some[:5] for some in rows])
    if min(map(len, rows)) >= 2 * N_INPUTS:
        found[MANY] = np.concatenate([some[:200] for some in rows])
    return {kind: some for kind, some in found.items() if len(some) >= 2 * len(names)}


class Cell(NamedTuple):
    """One kind of batch of one task: accuracies of all draws, alone, as a batch and by 0.3."""

    task: str
    rankings: str
    kind: str
    alone: list[float]
    batch: list[float]
    by_class: list[float]
    """What a batch adds to the mean accuracy over classes."""
    old: list[float]

    @property
    def gain(self) -> float:
        """What a batch adds to the accuracy."""
        return float(np.mean(self.batch) - np.mean(self.alone))

    @property
    def gain_over_old(self) -> float:
        """The same over a batch of version 0.3, in the draws in which it was measured."""
        return float(np.mean(self.batch[: len(self.old)]) - np.mean(self.old))

    @property
    def error(self) -> float:
        """The standard error of the gain."""
        if len(self.alone) < 2:
            return 0.0
        return float(np.subtract(self.batch, self.alone).std(ddof=1) / np.sqrt(len(self.alone)))

    @property
    def breaks(self) -> bool:
        """Whether a batch is clearly worse."""
        return self.gain < -MOST_LOST - ENOUGH_ERRORS * self.error

    def __str__(self) -> str:
        alone = format_share(float(np.mean(self.alone)))
        name = f"{self.task}, {self.rankings}, {self.kind}"
        return f"{name}: {alone} ({self.gain:+.3f} ± {self.error:.3f})"


def measure(task: ScoredTask, n_draws: int, old: Path | None = None) -> Iterator[Cell]:
    """Yield the cells of a task: with the rankings of the panel, and with those of a table.

    If the task has features, they are in the batch as well ("panel, features").
    """
    variants = {key: (key, False) for key in task.rankings}
    if task.scores.features is not None:
        variants["panel, features"] = ("panel", True)
    batches = [draw_batches(task.labels, seed) for seed in range(n_draws)]
    for name, (key, with_features) in variants.items():
        scores, reference = task.scores, task.reference
        if not with_features:
            scores, reference = scores.with_blocks(), reference.with_blocks()
        head = WeightedMean().fit(task.rankings[key], reference=reference)
        keys = [(kind, seed) for seed, some in enumerate(batches) for kind in some]
        earlier: Mapping[tuple[str, int], list[str]] = {}
        if old is not None and not with_features:
            jobs = [Job(batches[seed][kind], "batch", key) for kind, seed in keys]
            predicted = predict_earlier(task, jobs, old, {key: task.rankings[key]})
            earlier = dict(zip(keys, predicted, strict=True))
        for kind in KINDS:
            cell = Cell(task.name, name, kind, [], [], [], [])
            for seed, some in enumerate(batches):
                if kind not in some:
                    continue
                rows = some[kind]
                labels, table = task.labels[rows], scores[rows]
                refined = BatchRefinement(head).fit(table)
                correct = [one.predict(table) == labels for one in (head, refined)]
                cell.alone.append(float(correct[0].mean()))
                cell.batch.append(float(correct[1].mean()))
                z = np.unique(labels, return_inverse=True)[1]
                means = [float((np.bincount(z, x) / np.bincount(z)).mean()) for x in correct]
                cell.by_class.append(means[1] - means[0])
                if (kind, seed) in earlier:
                    cell.old.append(float(np.mean(np.array(earlier[kind, seed]) == labels)))
            if cell.alone:
                yield cell


def time_large_batch(n: int = 100_000, n_classes: int = 40, n_seen: int = 100) -> float:
    """Return the seconds that a batch of random inputs takes."""
    rng = np.random.default_rng(0)
    items = [f"seen{i:03}" for i in range(n_seen)]
    orders = {f"new{z:02}": rng.permutation(items)[:10].tolist() for z in range(n_classes)}
    scores = Scores(rng.normal(size=(n, n_seen)).astype(np.float32), items)
    head = WeightedMean().fit(orders, reference=scores[:1000])
    start = perf_counter()
    BatchRefinement(head).fit(scores).predict(scores)
    return perf_counter() - start


# ---- The section of the page


def format_tables(cells: Sequence[Cell], n_draws: int, seconds: float) -> tuple[ResultTable, ...]:
    """Return the accuracies, the mean gains and the cells that break the rule."""
    by_key = {(cell.task, cell.rankings, cell.kind): cell for cell in cells}
    tasks = list(dict.fromkeys(cell.task for cell in cells))

    def write(task: str, kind: str) -> str:
        cell = by_key.get((task, "panel", kind))
        if cell is None:
            return "–"
        return f"{format_share(float(np.mean(cell.alone)))} {cell.gain:+.3f}" + " !" * cell.breaks

    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        name = cell.rankings if cell.rankings.startswith("panel") else "table"
        groups.setdefault(name, []).append(cell)
    rows = []
    for name, some in groups.items():
        row = [name]
        for kind in KINDS:
            part = [cell for cell in some if cell.kind == kind]
            text = f"{np.mean([cell.gain for cell in part]):+.3f}" if part else "–"
            measured = [cell for cell in part if cell.old]
            if measured:
                gain = np.mean([cell.gain_over_old for cell in measured])
                text += f", {gain:+.3f}"
            row.append(text)
        rows.append((*row, f"{sum(cell.breaks for cell in some)} of {len(some)}"))
    unequal = [cell for cell in groups["panel"] if cell.kind == UNEQUAL]
    by_class = np.mean([np.mean(cell.by_class) for cell in unequal])
    broken = "; ".join(str(cell) for cell in cells if cell.breaks)
    return (
        ResultTable(
            "batches",
            "Batches",
            ("task", *KINDS),
            tuple((task, *(write(task, kind) for kind in KINDS)) for task in tasks),
            (
                (
                    "Accuracy of inputs predicted one at a time, and the change if they are "
                    "predicted as a batch, without labels: means over the same "
                    f"{n_draws} draws. Panel and reference. Each class that occurs has "
                    f"{N_INPUTS} inputs, or 5, or up to 200; “half” and “a quarter” are shares "
                    "of the classes that occur. Unequal: frequencies of a Dirichlet "
                    "distribution with concentration .5."
                ),
                "“!” breaks the rule: more than .01 and two standard errors below one at a time.",
            ),
        ),
        ResultTable(
            "batches-gain",
            "What a batch gains over one input at a time",
            ("rankings", *KINDS, "cells that break the rule"),
            tuple(rows),
            (
                (
                    "Means over tasks; after the comma, the gain over version 0.3. With unequal "
                    "frequencies, the mean accuracy over classes changes by "
                    f"{by_class:+.3f} (panel)."
                ),
                f"A batch of 100,000 inputs and 40 classes takes {seconds:.0f} s on one core.",
                *([f"Cells that break the rule: {broken}."] if broken else []),
            ),
        ),
    )


def main() -> None:
    """Measure all tasks, and write the section."""
    cells, options = measure_tasks("batches", __doc__, measure)
    tables = format_tables(cells, options.draws, time_large_batch())
    write_section(options.page, "batches", tables)


if __name__ == "__main__":
    main()
