"""Rankings and labelled examples together, against each of them alone, on four data sets.

``python -m reproduction.examples_table DIRECTORY`` prints one line per cell as soon as it is there,
and writes ``examples.json`` and ``examples.md`` to ``reproduction-examples``. ``--data sounds``
measures one data set, ``--part held-out`` the tasks with this text in their names; ``--draws 3`` is
quicker. Settings may be chosen on the held-out seen classes only.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from rankshot.core.errors import RankshotError, format_share
from rankshot.core.files import replace_file
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.metrics import expected_calibration_error
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.weighted_mean import WeightedMean
from reproduction.result_tables import ResultTable, Value, write_markdown
from reproduction.scored_tasks import TABLES, Labels, ScoredTask, load_scored_tasks

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
N_DRAWS = 10
MOST_TESTED = 1_500
"""Test inputs of a task in each draw."""
MOST_LOST = 0.01
"""How far rankings and examples together may be below the better of the two."""
MOST_CALIBRATION_ERROR = 0.08
SHUFFLED = "shuffled panel"
NUMBERS = ("scores", "features")
"""What examples are compared by."""
AND = " and "


class Design(NamedTuple):
    """How many examples one half of the classes has, and the other half."""

    more: int
    fewer: int

    def __str__(self) -> str:
        return str(self.more) if self.more == self.fewer else f"{self.more}{AND}{self.fewer}"


DESIGNS = tuple(
    Design(*pair) for pair in ((0, 0), (1, 1), (2, 2), (5, 5), (10, 10), (5, 0), (10, 1))
)
POOL = max(design.more for design in DESIGNS)
"""Inputs of each class that are not tested in a draw: examples are among them."""
CALIBRATED = (Design(1, 1), Design(5, 5))
"""The designs with a limit of the calibration error."""


@dataclass(frozen=True, eq=False)
class Draw:
    """The inputs of one draw: those that may become examples, and those that are tested."""

    pool: Ints
    """Row numbers, one row per class."""
    tested: Ints
    has_more: NDArray[np.bool_]
    """Whether each class belongs to the half with more examples."""
    shift: Ints
    """For each class another one, whose rankings it has in the shuffled panel."""

    def examples(self, design: Design) -> Ints:
        """Return the rows of the examples of a design."""
        n = np.where(self.has_more, design.more, design.fewer)
        return self.pool[np.arange(POOL) < n[:, None]]


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


class Outcome(NamedTuple):
    """What a method says about the tested inputs of a draw."""

    correct: NDArray[np.bool_]
    proba: Floats | None = None


@dataclass(frozen=True)
class Cell:
    """Accuracies of one cell of the table: means over classes and draws."""

    task: str
    rankings: str
    numbers: str
    examples: str
    both: float
    rankings_alone: float
    examples_alone: float
    both_fewer: float
    """The same for the classes with fewer examples."""
    rankings_alone_fewer: float
    examples_alone_fewer: float
    calibration_error: float
    seconds: float

    @property
    def gain(self) -> float:
        """The accuracy of both together, minus that of the better of the two."""
        return self.both - max(self.rankings_alone, self.examples_alone)

    @property
    def gain_fewer(self) -> float:
        """The same for the classes with fewer examples."""
        return self.both_fewer - max(self.rankings_alone_fewer, self.examples_alone_fewer)

    @property
    def is_lost(self) -> bool:
        """Whether both together are clearly below the better of the two."""
        return self.gain < -MOST_LOST

    @property
    def is_fewer_lost(self) -> bool:
        """Whether they are so for the classes with fewer examples, if there are such classes."""
        return AND in self.examples and self.gain_fewer < -MOST_LOST

    @property
    def flags(self) -> str:
        """What is worse than it should be."""
        found = ["LOST"] * self.is_lost + ["LOST FEWER"] * self.is_fewer_lost
        limited = self.examples in map(str, CALIBRATED)
        if limited and self.calibration_error > MOST_CALIBRATION_ERROR:
            found.append("CALIBRATION")
        return ", ".join(found)

    def __str__(self) -> str:
        accuracies = " ".join(
            f"{format_share(share):>5}"
            for share in (self.both, self.rankings_alone, self.examples_alone)
        )
        return (
            f"{self.task:<20} {self.rankings:<15} {self.numbers:<9} {self.examples:<9} "
            f"{accuracies}  {self.gain:+.3f} {self.gain_fewer:+.3f}  "
            f"{self.calibration_error:.3f} {self.seconds:5.1f} s  {self.flags}"
        )


HEADER = (
    f"{'task':<20} {'rankings':<15} {'numbers':<9} {'examples':<9} {'both':>5} {'rank.':>5} "
    f"{'exam.':>5}  {'gain':<6} {'fewer':<6}  ECE"
)


@dataclass(frozen=True, eq=False)
class Measurement:
    """All cells of one task."""

    task: ScoredTask
    n_draws: int
    with_reference: bool = True

    @cached_property
    def draws(self) -> list[Draw]:
        """The draws, the same for all cells."""
        return [draw_inputs(self.task.labels, seed) for seed in range(self.n_draws)]

    def cells(self) -> Iterator[Cell]:
        """Measure all cells, one after the other."""
        for rankings in (*self.task.rankings, SHUFFLED):
            alone = [self._by_head(rankings, draw) for draw in self.draws]
            for numbers in NUMBERS:
                for design in DESIGNS:
                    yield self._measure(rankings, numbers, design, alone)

    def _measure(
        self, rankings: str, numbers: str, design: Design, alone: Sequence[Outcome]
    ) -> Cell:
        start = perf_counter()
        both, examples = list(alone), [self._nothing(draw) for draw in self.draws]
        if design.more:
            both = [self._by_head(rankings, draw, design, numbers) for draw in self.draws]
            examples = [self._by_means(draw, design, numbers) for draw in self.draws]
        shares = [self._accuracies(outcomes) for outcomes in (both, alone, examples)]
        fewer = np.array([~draw.has_more | (design.more == design.fewer) for draw in self.draws])
        return Cell(
            self.task.name,
            rankings,
            numbers,
            str(design),
            *(float(share.mean()) for share in shares),
            *(
                float(np.mean([row[few].mean() for row, few in zip(share, fewer, strict=True)]))
                for share in shares
            ),
            self._calibration_error(both),
            perf_counter() - start,
        )

    def _by_head(
        self, rankings: str, draw: Draw, design: Design = DESIGNS[0], numbers: str = "scores"
    ) -> Outcome:
        """Fit the head to rankings, and to examples if the design has any."""
        rows = draw.examples(design)
        scores, reference = self._scores(numbers)
        head = WeightedMean().fit(
            self._rankings(rankings, draw),
            reference=reference,
            examples=(scores[rows], self.task.labels[rows]) if rows.size else None,
        )
        proba = np.asarray(head.predict_proba(scores[draw.tested]))
        found = np.asarray(head.classes_)[proba.argmax(axis=1)]
        return Outcome(found == self.task.labels[draw.tested], proba)

    def _rankings(self, name: str, draw: Draw) -> Rankings:
        if name != SHUFFLED:
            return self.task.rankings[name]
        panel = self.task.rankings["panel"]
        other = dict(zip(self.classes.tolist(), self.classes[draw.shift].tolist(), strict=True))
        targets = np.array([other[target] for target in panel.targets], object)
        return replace(panel, targets=targets)

    @cached_property
    def classes(self) -> Labels:
        """The targets, sorted."""
        return np.unique(self.task.labels)

    def _scores(self, numbers: str) -> tuple[Scores, Scores | None]:
        """Return the scores of the inputs and of the reference, with or without features."""
        scores, reference = self.task.scores, self.task.reference
        if numbers == "scores":
            scores, reference = (replace(one, features=None) for one in (scores, reference))
        return scores, reference if self.with_reference else None

    def _by_means(self, draw: Draw, design: Design, numbers: str) -> Outcome:
        """Classify by the nearest class mean of the examples."""
        rows = draw.examples(design)
        x, tested = self._vectors(numbers, rows), draw.tested
        there, labels = np.unique(self.task.labels[rows], return_inverse=True)
        means = np.array([x[rows[labels == z]].mean(axis=0) for z in range(len(there))])
        found = there[cdist(x[tested], means).argmin(axis=1)]
        return Outcome(found == self.task.labels[tested])

    def _vectors(self, numbers: str, rows: Ints) -> Floats:
        """Return the numbers of all inputs that the class means of examples are found in.

        Features are centred by the reference, or else by the examples themselves.
        """
        if numbers == "scores":
            return self._standardized
        usual = self.task.reference if self.with_reference else self.task.scores[rows]
        x = np.asarray(self.task.scores.features, np.float64)
        x = x - np.asarray(usual.features, np.float64).mean(axis=0)
        return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))

    @cached_property
    def _standardized(self) -> Floats:
        f, usual = (
            _standardize_rows(one.values) for one in (self.task.scores, self.task.reference)
        )
        return (f - usual.mean(axis=0)) / usual.std(axis=0) if self.with_reference else f

    def _nothing(self, draw: Draw) -> Outcome:
        """Return what examples alone are worth without any: chance, which is counted as 0."""
        return Outcome(np.zeros(len(draw.tested), bool))

    def _accuracies(self, outcomes: Sequence[Outcome]) -> Floats:
        """Return the accuracy for each draw and class."""
        found = np.empty((len(outcomes), len(self.classes)))
        for row, (draw, outcome) in enumerate(zip(self.draws, outcomes, strict=True)):
            z = np.searchsorted(self.classes, self.task.labels[draw.tested])
            found[row] = np.bincount(z, outcome.correct) / np.bincount(z)
        return found

    def _calibration_error(self, outcomes: Sequence[Outcome]) -> float:
        """Return the calibration error over the inputs of all draws: few inputs overstate it."""
        labels = np.concatenate([self.task.labels[draw.tested] for draw in self.draws])
        proba = np.concatenate([np.asarray(outcome.proba) for outcome in outcomes])
        return expected_calibration_error(labels, proba, self.classes)


def _standardize_rows(values: Any) -> Floats:
    f = np.asarray(values, np.float64)
    f = f - f.mean(axis=1, keepdims=True)
    return np.asarray(f / f.std(axis=1, keepdims=True))


# ---- Tables


def format_cells(cells: Sequence[Cell]) -> tuple[ResultTable, ...]:
    """Return the accuracies and the calibration errors, one row per task, rankings and numbers."""
    rows = dict.fromkeys((cell.task, cell.rankings, cell.numbers) for cell in cells)
    by_key = {(cell.task, cell.rankings, cell.numbers, cell.examples): cell for cell in cells}

    def table(
        name: str, title: str, write: Callable[[Cell], Value], notes: tuple[str, ...]
    ) -> ResultTable:
        return ResultTable(
            name,
            title,
            ("task", "rankings", "examples by", *map(str, DESIGNS)),
            tuple((*row, *(write(by_key[(*row, str(one))]) for one in DESIGNS)) for row in rows),
            notes,
            n_labels=3,
        )

    return (
        table(
            "examples",
            "Rankings and examples together, and each of them alone",
            _write_accuracy,
            (
                (
                    "Accuracy of both together (rankings alone / examples alone): means over "
                    "classes and over draws of examples. The columns are the labelled examples per "
                    "class; “5 and 0”: one half of the classes has 5, the other half none."
                ),
                (
                    "Examples alone: the nearest class mean of the standardised scores, or of the "
                    "centred features of length 1."
                ),
                (
                    f"“!”: more than {MOST_LOST:g} below the better of the two; “!f”: the same for "
                    "the classes with fewer examples."
                ),
            ),
        ),
        table(
            "calibration with examples",
            "Calibration error with labelled examples",
            lambda cell: cell.calibration_error,
            ("Expected calibration error, 15 bins, over the tested inputs of all draws.",),
        ),
    )


def _write_accuracy(cell: Cell) -> str:
    flags = ["!"] * cell.is_lost + ["!f"] * cell.is_fewer_lost
    if cell.examples == str(DESIGNS[0]):
        return format_share(cell.both)
    alone = (format_share(share) for share in (cell.rankings_alone, cell.examples_alone))
    return " ".join([f"{format_share(cell.both)} ({' / '.join(alone)})", *flags])


def write_cells(cells: Sequence[Cell], folder: Path) -> None:
    """Write all cells to ``examples.json``, and the tables to ``examples.md``."""
    folder.mkdir(parents=True, exist_ok=True)
    with replace_file(folder / "examples.json") as stream:
        json.dump([asdict(cell) for cell in cells], stream, indent=1)
    write_markdown(format_cells(cells), folder / "examples.md")


def main() -> None:
    """Measure all cells."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduction.examples_table", description=__doc__
    )
    parser.add_argument("directory", type=Path, help="has cifar/features.npz and so on")
    parser.add_argument("--data", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--part", nargs="+", default=[], help="texts in the names of tasks")
    parser.add_argument("--draws", type=int, default=N_DRAWS)
    parser.add_argument("--no-reference", action="store_true")
    parser.add_argument("-o", "--output", type=Path, default=Path("reproduction-examples"))
    given = parser.parse_args()
    cells: list[Cell] = []
    print(HEADER)
    try:
        for dataset in given.data:
            tasks = load_scored_tasks(
                dataset,
                given.directory,
                lambda text: print(text, file=sys.stderr),
                tuple(given.part),
            )
            for task in tasks:
                for cell in Measurement(task, given.draws, not given.no_reference).cells():
                    print(cell, flush=True)
                    cells.append(cell)
                write_cells(cells, given.output)
    except RankshotError as error:
        sys.exit(str(error))
    flagged = sum(bool(cell.flags) for cell in cells)
    print(f"{flagged} of {len(cells)} cells flagged; tables are in {given.output}")


if __name__ == "__main__":
    main()
