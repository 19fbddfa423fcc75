"""Old and new classes together, within a budget, on all data sets.

``python -m reproduction.together DIRECTORY`` prints one line per task and number of examples as
soon as it is there, and writes ``docs/results/together.md`` at the end. ``--old FOLDER`` compares
with another version of the package, whose source is in this folder.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError
from rankshot.core.files import replace_file
from rankshot.ranking.ranking_files import write_rankings
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.seen_and_new import SeenAndNew
from rankshot.zeroshot.weighted_mean import WeightedMean
from reproduction.classifiers import LEAST_SQUARES
from reproduction.result_tables import ResultTable, format_markdown
from reproduction.scored_tasks import NETWORKS, TABLES, Labels, ScoredTask, load_scored_tasks

PAGE = Path(__file__).parents[1] / "docs" / "results" / "together.md"
Ints = NDArray[np.intp]
N_DRAWS = 10
N_EXAMPLES = (0, 1, 5)
BUDGETS = (0.02, 0.05)
MOST_INPUTS = 1_000
"""Inputs of seen classes, in the reference and among the tested ones."""
TESTED = 60
"""Tested inputs of each new class."""
POOL = max(N_EXAMPLES)


class Draw(NamedTuple):
    """The rows of one draw: reference, tested seen inputs, examples and tested new inputs."""

    reference: Ints
    seen: Ints
    pool: tuple[Ints, ...]
    new: Ints


def draw_inputs(task: ScoredTask, seed: int) -> Draw:
    """Draw inputs, so that none is used twice."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(task.reference))
    half = min(len(order) // 2, MOST_INPUTS)
    rows = rng.permutation(len(task.labels))
    by_class = [rows[task.labels[rows] == name] for name in np.unique(task.labels)]
    tested = np.concatenate([some[POOL : POOL + TESTED] for some in by_class])
    pool = tuple(some[:POOL] for some in by_class)
    return Draw(order[:half], order[half : half + MOST_INPUTS], pool, tested)


class Outcome(NamedTuple):
    """What one budget costs and gives in one draw."""

    loss: float
    found: float
    trivial: float
    """The same by the rule of one line, whose threshold is chosen on the tested inputs."""


def mean_accuracy(labels: Labels, is_correct: NDArray[np.bool_]) -> float:
    """Return the accuracy, as a mean over classes."""
    z = np.unique(labels, return_inverse=True)[1]
    return float((np.bincount(z, is_correct) / np.bincount(z)).mean())


def at_equal_loss(
    values: tuple[Any, Any], correct: tuple[Any, Any], labels: Labels, loss: float
) -> float:
    """Return the accuracy on new classes if a threshold of some values loses so much.

    Both pairs are of seen and of new inputs.
    """
    lost = np.sort(np.asarray(values[0])[correct[0]])[::-1]
    k = int(np.floor(loss * len(values[0]) + 1e-9))
    threshold = lost[k] if k < len(lost) else -np.inf
    return mean_accuracy(labels, (np.asarray(values[1]) > threshold) & correct[1])


def measure(task: ScoredTask, draw: Draw, n: int) -> tuple[Outcome, ...]:
    """Return the outcome of each budget."""
    usual, usual_labels = task.reference[draw.reference], task.reference_labels[draw.reference]
    seen, seen_labels = task.reference[draw.seen], task.reference_labels[draw.seen]
    new, labels = task.scores[draw.new], task.labels[draw.new]
    rows = np.concatenate([some[:n] for some in draw.pool])
    few = (task.scores[rows], task.labels[rows]) if n else None
    panel = task.rankings["panel"]
    fitted = WeightedMean().fit(panel, reference=usual, examples=few)
    first = np.array(seen.items)[seen.values.argmax(axis=1)]
    right = first == seen_labels
    # One line: an input is new if its highest score is low.
    highest = tuple(-_standardize(some).max(axis=1) for some in (seen, new))
    by_head = fitted.predict(new) == labels
    found = []
    for budget in BUDGETS:
        head = SeenAndNew(fitted, seen_loss=budget).fit(usual, usual_labels, few)
        loss = float(right.mean() - np.mean(head.predict(seen) == seen_labels))
        found.append(
            Outcome(
                loss,
                mean_accuracy(labels, head.predict(new) == labels),
                at_equal_loss(highest, (right, by_head), labels, loss),
            )
        )
    return tuple(found)


def _standardize(table: Scores) -> Any:
    f = np.asarray(table.values, np.float64)
    f = f - f.mean(axis=1, keepdims=True)
    return f / np.maximum(f.std(axis=1, keepdims=True), 1e-12)


def load_tasks(directory: Path, data: Sequence[str]) -> Iterator[ScoredTask]:
    """Yield all tasks whose reference has labels; without features, for plain comparisons."""
    for dataset in data:
        for task in load_scored_tasks(
            dataset,
            directory,
            lambda text: print(text, file=sys.stderr),
            settings=(LEAST_SQUARES, "multiclass"),
        ):
            if len(task.reference_labels):
                yield task


class Row(NamedTuple):
    """One task with a number of examples: means over draws for each budget."""

    task: str
    n_examples: int
    loss: tuple[float, ...]
    error: tuple[float, ...]
    found: tuple[float, ...]
    trivial: tuple[float, ...]
    old: tuple[float, ...] = ()

    @property
    def breaks(self) -> tuple[bool, ...]:
        """Whether the loss is above each budget by more than two standard errors."""
        both = zip(self.loss, self.error, BUDGETS, strict=True)
        return tuple(loss > budget + 2 * error for loss, error, budget in both)


def summarize(task: str, n: int, outcomes: list[tuple[Outcome, ...]]) -> Row:
    """Return the means over draws."""
    table = np.array(outcomes)
    error = table[:, :, 0].std(axis=0, ddof=1) / np.sqrt(len(table)) if len(table) > 1 else 0.0
    means = table.mean(axis=0).T
    spread = np.broadcast_to(error, len(BUDGETS))
    return Row(task, n, *(tuple(x.tolist()) for x in (means[0], spread, means[1], means[2])))


# ---- Another version of the package

OLD = """
import json, sys
import numpy as np
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.heads.weighted_mean import WeightedMean
from rankshot.zeroshot.heads.seen_and_new import SeenAndNew
from rankshot.ranking.ranking_files import read_rankings
with np.load(sys.argv[1]) as z:
    z = {name: z[name] for name in z.files}
items = tuple(z["items"].tolist())
kind = str(z["kind"])
take = lambda name: Scores(z[name], items, kind, features=z.get(name + "_features"))
few = (take("few"), z["few_labels"]) if len(z["few_labels"]) else None
rankings = read_rankings(sys.argv[2], items=items)
head = SeenAndNew(WeightedMean().fit(rankings, take("usual"), few)).fit(take("usual"))
found = {}
for name in ("seen", "new"):
    table = take(name)
    log_proba = np.asarray(head.predict_log_proba(table), np.float64)
    is_seen = np.asarray(head.seen_)
    new = np.where(is_seen, -np.inf, log_proba)
    odds = new.max(axis=1) - log_proba[:, is_seen].max(axis=1)
    found[name] = [odds.tolist(), np.asarray(head.classes_)[new.argmax(axis=1)].tolist()]
json.dump(found, sys.stdout)
"""


def measure_old(
    task: ScoredTask, draw: Draw, n: int, losses: tuple[float, ...], folder: Path, work: Path
) -> tuple[float, ...]:
    """Return the accuracy of another version at the same losses, by the best thresholds."""
    rows = np.concatenate([some[:n] for some in draw.pool]).astype(int)
    parts = {
        "usual": task.reference[draw.reference],
        "seen": task.reference[draw.seen],
        "new": task.scores[draw.new],
        "few": task.scores[rows],
    }
    arrays: dict[str, Any] = {name: part.values for name, part in parts.items()}
    if n and task.scores.features is not None:
        arrays |= {f"{name}_features": np.asarray(part.features) for name, part in parts.items()}
    arrays |= {
        "items": np.array(task.scores.items),
        "kind": task.scores.kind,
        "few_labels": task.labels[rows],
    }
    np.savez(work / "task.npz", **arrays)
    (work / "panel.jsonl").unlink(missing_ok=True)
    write_rankings(task.rankings["panel"], work / "panel.jsonl")
    done = subprocess.run(
        [sys.executable, "-c", OLD, work / "task.npz", work / "panel.jsonl"],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        check=True,
    )
    found = json.loads(done.stdout)
    seen_labels, labels = task.reference_labels[draw.seen], task.labels[draw.new]
    right = np.array(parts["seen"].items)[parts["seen"].values.argmax(axis=1)] == seen_labels
    correct = right, np.array(found["new"][1]) == labels
    values = np.array(found["seen"][0]), np.array(found["new"][0])
    return tuple(at_equal_loss(values, correct, labels, max(loss, 0.0)) for loss in losses)


# ---- The budget, by simulation

C = 8
SEEN_CENTERS = 3 * np.eye(C)
NEW_CENTERS = 2.0 * np.array([[1, 1, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 0, 1]])
N_SIMULATED = 100
DESIGNS: dict[str, dict[str, Any]] = {
    "300 inputs with labels": {},
    "300 inputs without labels": {"with_labels": False},
    "30 inputs": {"n": 30},
    "100 inputs": {"n": 100},
    "three examples of each new class": {"n_examples": 6},
    "examples of one of two new classes": {"n_examples": 6, "n_shown": 1},
    "the reference lacks two of eight classes": {"shares": [1 / 6] * 6 + [0.0, 0.0]},
    "frequencies change: two classes have half of the reference": {
        "shares": [0.25, 0.25, *[1 / 12] * 6]
    },
}


def simulate(
    *,
    n: int = 300,
    with_labels: bool = True,
    n_examples: int = 0,
    n_shown: int = 2,
    shares: Sequence[float] | None = None,
    budget: float = 0.05,
) -> tuple[float, float, float]:
    """Return the mean loss, its standard error, and the share of new inputs that are found."""
    items, names = [f"seen{i}" for i in range(C)], np.array(["u", "v"])
    rankings = {"u": ["seen0", "seen1"], "v": ["seen4", "seen5"]}
    losses, found = [], []
    for seed in range(N_SIMULATED):
        rng = np.random.default_rng(seed)

        def draw(centers: Any, size: int, p: Any = None, rng: Any = rng) -> tuple[Scores, Ints]:
            codes = rng.choice(len(centers), size, p=p)
            return Scores(centers[codes] + rng.normal(size=(size, C)), items), codes

        usual, codes = draw(SEEN_CENTERS, n, shares)
        few = None
        if n_examples:
            scores, z = draw(NEW_CENTERS[:n_shown], n_examples)
            few = scores, names[z]
        labels = np.array(items)[codes] if with_labels else None
        head = WeightedMean().fit(rankings, reference=usual, examples=few)
        both = SeenAndNew(head, seen_loss=budget).fit(usual, labels, few)
        tested, codes = draw(SEEN_CENTERS, 300)
        first = np.array(items)[tested.values.argmax(axis=1)]
        lost = both.predict(tested) != first
        losses.append(
            np.mean(lost & (first == np.array(items)[codes])) if with_labels else lost.mean()
        )
        new, z = draw(NEW_CENTERS, 100)
        found.append(np.mean(both.predict(new) == names[z]))
    error = np.std(losses, ddof=1) / np.sqrt(N_SIMULATED)
    return float(np.mean(losses)), float(error), float(np.mean(found))


def format_simulations() -> str:
    """Return the table of all designs."""
    cells = []
    for name, options in DESIGNS.items():
        loss, error, found = simulate(**options)
        cells.append((name, f"{loss:.3f} ± {error:.3f}", f"{found:.3f}"))
    note = (
        f"A budget of 5%, {N_SIMULATED} draws of eight normal seen classes and two new ones; the "
        "loss (and its standard error) is measured on 300 other inputs, of all seen classes "
        "equally. Without labels it is the share that is predicted as new. The last two designs "
        "are outside of what is promised: the inputs to come are not like the reference, and "
        "classes of real data that a reference lacks may lose more."
    )
    columns = ("reference", "loss", "new inputs found")
    table = ResultTable("budget", "The budget, by simulation", columns, tuple(cells), (note,))
    return format_markdown(table).removeprefix("#")


# ---- The page

INTRODUCTION = """# Old and new classes together

How much accuracy on seen classes is lost so that new classes can be predicted, and how many of \
their inputs are found? `make together FROM=DIRECTORY` writes this page.
"""


def format_page(rows: Sequence[Row], n_draws: int, simulations: str) -> str:
    """Return the page: one table for each number of examples."""
    columns = ("loss", "new", "one-line rule", *(["0.3"] if any(row.old for row in rows) else []))
    names = [f"{name}, {budget:.0%}" for budget in BUDGETS for name in columns]
    note = (
        f"Means over {n_draws} draws. Loss: of accuracy on tested inputs of seen classes, with "
        "labels in the reference; “!” if it is above the budget by more than two standard errors. "
        "New: accuracy on new classes, as a mean over classes, where all classes compete. One-line "
        "rule: an input is new if its highest standardised score is low. It, and version 0.3 where "
        "it is shown (three draws), lose the same, with thresholds that are chosen on the tested "
        "inputs."
    )
    texts = [INTRODUCTION]
    for n in N_EXAMPLES:
        some = [row for row in rows if row.n_examples == n]
        cells = [(row.task, *_cells(row)) for row in [*some, _mean(some)] if some]
        title = f"{n} examples of each new class" if n != 1 else "One example of each new class"
        table = ResultTable(f"together-{n}", title, ("task", *names), tuple(cells), (note,))
        texts.append(format_markdown(table).removeprefix("#"))
    return "\n".join([*texts, simulations])


def _mean(rows: Sequence[Row]) -> Row:
    """Return the mean over tasks."""

    def mean(name: str) -> tuple[float, ...]:
        known = [getattr(row, name) for row in rows if getattr(row, name)]
        return tuple(np.mean(known, axis=0).tolist()) if known else ()

    numbers = (mean(name) for name in ("loss", "error", "found", "trivial", "old"))
    return Row("mean", rows[0].n_examples if rows else 0, *numbers)


def _cells(row: Row) -> list[str]:
    cells = []
    for b, breaks in enumerate(row.breaks):
        loss = f"{row.loss[b]:.3f}" + " !" * breaks
        old = [f"{row.old[b]:.3f}"] if row.old else []
        cells += [loss, f"{row.found[b]:.3f}", f"{row.trivial[b]:.3f}", *old]
    return cells


def main() -> None:
    """Measure all tasks, and write the page."""
    names = [*TABLES, "outside"]
    parser = argparse.ArgumentParser(prog="python -m reproduction.together", description=__doc__)
    parser.add_argument("directory", type=Path, help="has cifar/features.npz and so on")
    parser.add_argument("--data", nargs="+", choices=[*TABLES, *NETWORKS], default=names)
    parser.add_argument("--draws", type=int, default=N_DRAWS)
    parser.add_argument("--old", type=Path, help="the source of another version")
    parser.add_argument("-o", "--output", type=Path, default=PAGE)
    given = parser.parse_args()
    rows: list[Row] = []
    work = Path("reproduction-together")
    work.mkdir(exist_ok=True)
    simulations = format_simulations()
    try:
        for task in load_tasks(given.directory, given.data):
            draws = [draw_inputs(task, seed) for seed in range(given.draws)]
            for n in N_EXAMPLES:
                outcomes = [measure(task, draw, n) for draw in draws]
                row = summarize(task.name, n, outcomes)
                if given.old is not None:
                    # A process for each draw is slow: three draws show enough.
                    found = [
                        measure_old(task, draw, n, tuple(one.loss for one in some), given.old, work)
                        for draw, some in list(zip(draws, outcomes, strict=True))[:3]
                    ]
                    row = row._replace(old=tuple(np.mean(found, axis=0).tolist()))
                rows.append(row)
                print(row, flush=True)
            with replace_file(given.output) as stream:
                stream.write(format_page(rows, given.draws, simulations))
    except RankshotError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
