"""Rankings and labelled examples together, against each of them alone, on all data sets.

``python -m reproduction.examples_table DIRECTORY`` prints each cell as soon as it is there, and
writes a section of ``docs/results/accuracies.md``. ``--data sounds`` measures one data set,
``--part held-out`` the tasks with this text in their names; ``--draws 3`` is quicker. ``--old
FOLDER`` compares with version 0.3, whose source is in this folder. Settings may be chosen on the
held-out seen classes only.

The rule: rankings and examples together are never more than .01 and two standard errors below the
best of rankings alone, nearest class mean and logistic regression.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.linear_model import LogisticRegression

from rankshot.core.errors import format_share
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.scores import Scores, standardize_rows
from rankshot.zeroshot.weighted_mean import WeightedMean
from reproduction.earlier_version import Job, predict_earlier
from reproduction.result_tables import ResultTable, write_section
from reproduction.scored_tasks import Labels, ScoredTask, measure_tasks

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
MOST_TESTED = 1_500
"""Test inputs of a task in each draw."""
MOST_LOST = 0.01
ENOUGH_ERRORS = 2.0
"""A cell breaks the rule if it is below the best by both: so much, and so many standard errors."""
SHUFFLED = "shuffled panel"
NUMBERS = ("scores", "features")
"""What examples are compared by."""
N_EXAMPLES = (1, 2, 5, 10)
POOL = max(N_EXAMPLES)
"""Inputs of each class that are not tested in a draw: examples are among them."""
HALF = "5 and 0"
"""One half of the classes has five examples, the other half none; the other half is measured."""
DESIGNS = (*map(str, N_EXAMPLES), HALF)
STRENGTHS = (1.0, 10.0)
"""Of logistic regression on a few examples, scikit-learn's C."""


@dataclass(frozen=True, eq=False)
class Draw:
    """The inputs of one draw: those that may become examples, and those that are tested."""

    pool: Ints
    """Row numbers, one row per class."""
    tested: Ints
    has_examples: NDArray[np.bool_]
    """With `HALF`, whether a class has examples."""
    shift: Ints
    """For each class another one, whose rankings it has in the shuffled panel."""

    def examples(self, design: str) -> Ints:
        """Return the rows of the examples of a design."""
        if design == HALF:
            return self.pool[self.has_examples, :5].ravel()
        return self.pool[:, : int(design)].ravel()


def draw_inputs(labels: Labels, seed: int) -> Draw:
    """Draw the examples and the tested inputs of each class."""
    rng = np.random.default_rng(seed)
    classes = np.unique(labels)
    L = len(classes)
    order = rng.permutation(len(labels))
    rows = [order[labels[order] == name] for name in classes]
    cycle = rng.permutation(L)
    shift = np.empty(L, np.intp)
    shift[cycle] = np.roll(cycle, 1)
    return Draw(
        np.array([some[:POOL] for some in rows]),
        np.concatenate([some[POOL : POOL + MOST_TESTED // L] for some in rows]),
        rng.permutation(L) < L / 2,
        shift,
    )


@dataclass(frozen=True)
class Cell:
    """The accuracy of each method in each draw: means over classes."""

    task: str
    rankings: str
    numbers: str
    design: str
    both: list[float]
    alone: dict[str, list[float]]
    old: list[float] = field(default_factory=list)

    @property
    def best(self) -> str:
        """The best method that knows only rankings or only examples."""
        return max(self.alone, key=lambda name: float(np.mean(self.alone[name])))

    @property
    def gain(self) -> float:
        """The accuracy of both together, minus that of the best alone."""
        return float(np.mean(self.both) - np.mean(self.alone[self.best]))

    @property
    def error(self) -> float:
        """The standard error of the gain."""
        if len(self.both) < 2:
            return 0.0
        gains = np.subtract(self.both, self.alone[self.best])
        return float(gains.std(ddof=1) / np.sqrt(len(gains)))

    @property
    def breaks(self) -> bool:
        """Whether both together are clearly below the best alone."""
        return self.gain < -MOST_LOST - ENOUGH_ERRORS * self.error

    def __str__(self) -> str:
        return (
            f"{self.task}, {self.rankings}, {self.numbers}, {self.design} examples: "
            f"{format_share(float(np.mean(self.both)))}, {self.best} "
            f"{format_share(float(np.mean(self.alone[self.best])))} "
            f"({self.gain:+.3f} ± {self.error:.3f})"
        )


@dataclass(frozen=True, eq=False)
class Measurement:
    """All cells of one task."""

    task: ScoredTask
    n_draws: int
    old: Path | None = None

    @cached_property
    def draws(self) -> list[Draw]:
        """The draws, the same for all cells."""
        return [draw_inputs(self.task.labels, seed) for seed in range(self.n_draws)]

    @cached_property
    def classes(self) -> Labels:
        """The targets, sorted."""
        return np.unique(self.task.labels)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names of all rankings."""
        return (*self.task.rankings, SHUFFLED)

    def cells(self) -> Iterator[Cell]:
        """Measure all cells, one after the other."""
        all_numbers = NUMBERS if self.task.scores.features is not None else NUMBERS[:1]
        alone = {kind: [self._by_head(kind, draw) for draw in self.draws] for kind in self.kinds}
        earlier = self._predict_earlier(all_numbers)
        for numbers in all_numbers:
            for design in DESIGNS:
                by_examples = self._by_examples(numbers, design)
                for kind in self.kinds:
                    both = [self._by_head(kind, draw, design, numbers) for draw in self.draws]
                    by_each = {"rankings alone": alone[kind], **by_examples}
                    old = earlier.get((kind, numbers, design), [])
                    yield Cell(
                        self.task.name,
                        kind,
                        numbers,
                        design,
                        self._measure(both, design),
                        {name: self._measure(some, design) for name, some in by_each.items()},
                        self._measure(old, design),
                    )

    def _measure(self, predicted: Sequence[Any], design: str) -> list[float]:
        """Return the accuracy of each draw; with `HALF`, of the classes without examples."""
        found = []
        for draw, names in zip(self.draws, predicted, strict=False):
            labels = self.task.labels[draw.tested]
            z = np.searchsorted(self.classes, labels)
            by_class = np.bincount(z, np.asarray(names) == labels) / np.bincount(z)
            found.append(float(by_class[~draw.has_examples | (design != HALF)].mean()))
        return found

    def _by_head(
        self, kind: str, draw: Draw, design: str | None = None, numbers: str = "scores"
    ) -> Labels:
        """Predict by rankings, and by examples if there is a design."""
        scores, reference = self._scores(numbers)
        examples = None
        if design is not None:
            rows = draw.examples(design)
            examples = scores[rows], self.task.labels[rows]
        rankings = self._rankings(kind, draw)
        head = WeightedMean().fit(rankings, reference=reference, examples=examples)
        return np.asarray(head.predict(scores[draw.tested]))

    def _rankings(self, name: str, draw: Draw) -> Rankings:
        if name != SHUFFLED:
            return self.task.rankings[name]
        panel = self.task.rankings["panel"]
        other = dict(zip(self.classes.tolist(), self.classes[draw.shift].tolist(), strict=True))
        return replace(panel, targets=np.array([other[name] for name in panel.targets], object))

    def _scores(self, numbers: str) -> tuple[Scores, Scores]:
        """Return the scores of the inputs and of the reference, with or without features."""
        scores, reference = self.task.scores, self.task.reference
        if numbers == "scores":
            scores, reference = scores.with_blocks(), reference.with_blocks()
        return scores, reference

    def _by_examples(self, numbers: str, design: str) -> dict[str, list[Labels]]:
        """Predict by examples alone; with `HALF` there is nothing to compare with."""
        if design == HALF:
            return {}
        found: dict[str, list[Labels]] = {}
        x = self._vectors(numbers)
        for draw in self.draws:
            rows, tested = draw.examples(design), draw.tested
            labels = self.task.labels[rows]
            means = np.array([x[rows[labels == name]].mean(axis=0) for name in self.classes])
            nearest = self.classes[cdist(x[tested], means).argmin(axis=1)]
            found.setdefault("nearest class mean", []).append(nearest)
            for C in STRENGTHS:
                with warnings.catch_warnings():
                    # Few examples of many classes look like a regression.
                    warnings.filterwarnings("ignore", "The number of unique classes")
                    model = LogisticRegression(C=C, max_iter=1000).fit(x[rows], labels)
                found.setdefault(f"logistic regression, C = {C:g}", []).append(
                    model.predict(x[tested])
                )
        return found

    def _vectors(self, numbers: str) -> Floats:
        """Return the numbers of all inputs that examples are compared by.

        Scores are standardised, features are centred by the reference and have length 1.
        """
        if numbers == "features":
            x, usual = (
                np.asarray(one.features, np.float64)
                for one in (self.task.scores, self.task.reference)
            )
            x = x - usual.mean(axis=0)
            return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))
        f, usual = (standardize_rows(one.values) for one in (self.task.scores, self.task.reference))
        return np.asarray((f - usual.mean(axis=0)) / usual.std(axis=0))

    def _predict_earlier(
        self, all_numbers: Sequence[str]
    ) -> dict[tuple[str, str, str], list[Labels]]:
        """Return what version 0.3 predicts, with the rankings of the task."""
        if self.old is None:
            return {}
        keys = [
            (kind, numbers, design)
            for kind in self.task.rankings
            for numbers in all_numbers
            for design in DESIGNS
        ]
        jobs = [
            Job(
                draw.tested,
                rankings=kind,
                examples=draw.examples(design),
                with_features=numbers == "features",
            )
            for kind, numbers, design in keys
            for draw in self.draws
        ]
        names = predict_earlier(self.task, jobs, self.old, self.task.rankings)
        n = len(self.draws)
        return {key: names[i * n : (i + 1) * n] for i, key in enumerate(keys)}


# ---- The section of the page


class Means(NamedTuple):
    """Means over draws of one cell."""

    both: float
    best: float
    gain: float
    """Over version 0.3, in the draws in which it was measured."""

    @classmethod
    def of(cls, cell: Cell) -> Means:
        """Return the means; the gain is NaN where version 0.3 was not measured."""
        best, n = cell.alone[cell.best], len(cell.old)
        gain = float(np.mean(cell.both[:n]) - np.mean(cell.old)) if n else np.nan
        return cls(float(np.mean(cell.both)), float(np.mean(best)), gain)


def format_tables(cells: Sequence[Cell], n_draws: int) -> tuple[ResultTable, ...]:
    """Return the panel's accuracies by task, means, and the cells that break the rule."""
    by_key = {(cell.task, cell.rankings, cell.numbers, cell.design): cell for cell in cells}
    tasks = list(dict.fromkeys(cell.task for cell in cells))

    def write(task: str, design: str) -> str:
        cell = by_key.get((task, "panel", "features", design))
        cell = cell or by_key[(task, "panel", "scores", design)]
        both, best, _ = Means.of(cell)
        return f"{format_share(both)} ({format_share(best)})" + " !" * cell.breaks

    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        name = "table" if cell.rankings not in ("panel", SHUFFLED) else cell.rankings
        groups.setdefault((name, cell.numbers), []).append(cell)
    rows = []
    for (name, numbers), some in groups.items():
        row = [name, numbers]
        for design in DESIGNS:
            part = [Means.of(cell) for cell in some if cell.design == design]
            both, best, gain = np.mean(part, axis=0)
            row.append(f"{both - best:+.3f}" + ("" if np.isnan(gain) else f", {gain:+.3f}"))
        broken = sum(cell.breaks for cell in some)
        rows.append((*row, f"{broken} of {len(some)}"))
    broken = [cell for cell in cells if cell.breaks]
    return (
        ResultTable(
            "examples",
            "Labelled examples of new classes",
            ("task", *(f"{n} per class" for n in N_EXAMPLES), "5 for half, the other half"),
            tuple((task, *(write(task, design) for design in DESIGNS)) for task in tasks),
            (
                (
                    "Mean class accuracy with the panel's rankings, a reference and examples, "
                    f"by features where there are any; means over {n_draws} draws. In "
                    "parentheses: the best of rankings alone, nearest class mean and logistic "
                    "regression (C = 1, C = 10), chosen on the tested inputs. In the last "
                    "column, half of the classes has five examples; the accuracy is that of the "
                    "other half, beside rankings alone."
                ),
                "“!” breaks the rule: more than .01 and two standard errors below the best.",
            ),
        ),
        ResultTable(
            "examples-gain",
            "What rankings and examples gain over the best of either",
            ("rankings", "examples by", *DESIGNS, "cells that break the rule"),
            tuple(rows),
            (
                (
                    "Means over tasks; after the comma, the gain over version 0.3. In the shuffled "
                    "panel, each class has the rankings of another one."
                ),
                *([f"Cells that break the rule: {'; '.join(map(str, broken))}."] if broken else []),
            ),
            n_labels=2,
        ),
    )


def main() -> None:
    """Measure all cells, and write the section."""
    cells, options = measure_tasks(
        "examples_table",
        __doc__,
        lambda task, n_draws, old: Measurement(task, n_draws, old).cells(),
    )
    write_section(options.page, "examples", format_tables(cells, options.draws))


if __name__ == "__main__":
    main()
