"""Inputs predicted as a batch, against the same inputs one at a time, on four data sets.

``python -m reproduction.batches DIRECTORY`` prints one line per row as soon as it is there, and
writes ``docs/results/batches.md`` after each task. All kinds of batch are compared on the same
draws. Settings may be chosen on the held-out seen classes only.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss

from rankshot.core.errors import RankshotError, format_share
from rankshot.core.files import replace_file
from rankshot.zeroshot import Predictor
from rankshot.zeroshot.batch_refinement import BatchRefinement
from rankshot.zeroshot.metrics import expected_calibration_error
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.weighted_mean import WeightedMean
from reproduction.classifiers import LEAST_SQUARES
from reproduction.result_tables import ResultTable, Value, format_markdown
from reproduction.scored_tasks import TABLES, Labels, ScoredTask, load_scored_tasks

PAGE = Path(__file__).parents[1] / "docs" / "results" / "batches.md"
Ints = NDArray[np.intp]
N_DRAWS = 10
N_INPUTS = 30
"""Inputs of each class that occurs; twice as many of the most frequent class at most."""
PRESENT = {"all": 1.0, "three quarters": 0.75, "half": 0.5, "a quarter": 0.25}
"""The share of the classes that occur, each with the same number of inputs."""
UNEQUAL = "unequal"
KINDS = (*PRESENT, UNEQUAL)
OTHERS = ("other new", "seen")
"""Whose inputs are added to those of one half of the classes: as many as those have."""
LABELLED = 12
"""One in this many inputs of a batch is labelled."""
LABELS = ("all, batch", "all, labels", "unequal, batch", "unequal, labels")
"""What is added to inputs one at a time with labels, and to a batch without labels: the other."""


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
    return found


class Outcome(NamedTuple):
    """What one at a time and a batch have: accuracy, calibration error and log-loss of each."""

    accuracy: tuple[float, float]
    calibration: tuple[float, float]
    log_loss: tuple[float, float]


def compare(
    head: Predictor, scores: Scores, labels: Labels, others: Scores | None = None
) -> Outcome:
    """Predict inputs one at a time and as a batch, to which other inputs may belong as well."""
    batch = (
        scores
        if others is None
        else Scores(np.concatenate([scores.values, others.values]), scores.items, scores.kind)
    )
    refined = BatchRefinement(head).fit(batch)
    return pair_outcomes(measure(head, scores, labels), measure(refined, scores, labels))


def measure(head: Predictor, scores: Scores, labels: Labels) -> tuple[float, float, float]:
    """Return the accuracy, the calibration error and the log-loss of a head."""
    proba = np.asarray(head.predict_proba(scores))
    return (
        float(np.mean(head.predict(scores) == labels)),
        expected_calibration_error(labels, proba, head.classes_),
        float(log_loss(labels, proba, labels=head.classes_)),
    )


def pair_outcomes(*found: tuple[float, float, float]) -> Outcome:
    """Return what two heads have."""
    return Outcome(*zip(*found, strict=True))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Measurement:
    """All kinds of batch of one task, with or without a reference."""

    task: ScoredTask
    with_reference: bool
    n_draws: int

    def measure(self) -> dict[str, list[Outcome]]:
        """Return the outcomes of all draws for each kind."""
        found: dict[str, list[Outcome]] = {}
        scores = _without_features(self.task.scores)
        head = self._fit(np.unique(self.task.labels))
        for seed in range(self.n_draws):
            for kind, rows in draw_batches(self.task.labels, seed).items():
                if len(rows) >= 2 * len(head.classes_):
                    one = compare(head, scores[rows], self.task.labels[rows])
                    found.setdefault(kind, []).append(one)
            for kind, one in (*self._with_others(seed), *self._with_labels(seed)):
                found.setdefault(kind, []).append(one)
        return found

    def _with_others(self, seed: int) -> Iterator[tuple[str, Outcome]]:
        """Compare one half of the classes, with as many inputs of other classes in the batch."""
        rng = np.random.default_rng(seed)
        labels, names = self.task.labels, np.unique(self.task.labels)
        known = np.sort(rng.permutation(names)[: len(names) // 2])
        rows = draw_batches(labels, seed)["all"]
        own = rows[np.isin(labels[rows], known)]
        scores, head = _without_features(self.task.scores), self._fit(known)
        pools = (
            scores[np.setdiff1d(rows, own)],
            _without_features(self.task.reference[rng.permutation(len(self.task.reference))]),
        )
        for kind, pool in zip(OTHERS, pools, strict=True):
            yield kind, compare(head, scores[own], labels[own], pool[: len(own)])

    def _with_labels(self, seed: int) -> Iterator[tuple[str, Outcome]]:
        """Compare batches of which some inputs, drawn at random, are labelled."""
        rng = np.random.default_rng(seed)
        names = np.unique(self.task.labels)
        for kind in ("all", UNEQUAL):
            rows = rng.permutation(draw_batches(self.task.labels, seed)[kind])
            scores, labels = _without_features(self.task.scores[rows]), self.task.labels[rows]
            n = len(rows) // LABELLED
            if len(rows) < 2 * len(names) or len(np.unique(labels[:n])) < 2:
                continue
            examples = scores[:n], labels[:n]
            plain, head = self._fit(names), self._fit(names, examples)
            tested = scores[n:], labels[n:]
            alone = measure(head, *tested)
            without = measure(BatchRefinement(plain).fit(scores), *tested)
            both = measure(BatchRefinement(head).fit(scores, examples), *tested)
            yield f"{kind}, batch", pair_outcomes(alone, both)
            yield f"{kind}, labels", pair_outcomes(without, both)

    def _fit(self, names: Labels, examples: tuple[Scores, Labels] | None = None) -> Predictor:
        panel = self.task.rankings["panel"]
        rankings = panel[[z for z, target in enumerate(panel.targets) if target in names]]
        reference = _without_features(self.task.reference) if self.with_reference else None
        return WeightedMean().fit(rankings, reference=reference, examples=examples)


def _without_features(scores: Scores) -> Scores:
    return Scores(scores.values, scores.items, scores.kind)


# ---- The page

INTRODUCTION = """# Batches

Does joint classification help? This page compares inputs predicted as a batch by \
`BatchRefinement` with the same inputs predicted one at a time. `make batches FROM=DIRECTORY` \
writes it.
"""
Row = tuple[str, str, dict[str, list[Outcome]]]


def write_page(rows: list[Row], n_draws: int, path: Path) -> None:
    """Write the gains in accuracy, and how well the probabilities are calibrated."""

    def table(name: str, title: str, kinds: tuple[str, ...], field: str, note: str) -> ResultTable:
        def write(outcomes: list[Outcome]) -> Value:
            alone, batch = np.mean([getattr(one, field) for one in outcomes], axis=0)
            return f"{format_share(alone)} {batch - alone:+.3f}"

        cells = tuple(
            (task, given, *(write(found[kind]) if kind in found else "" for kind in kinds))
            for task, given, found in rows
        )
        return ResultTable(name, title, ("task", "reference", *kinds), cells, (note,), n_labels=2)

    protocol = (
        "Each cell is the value for inputs predicted one at a time, and the change if they are "
        f"predicted as a batch; means over the same {n_draws} draws. The rankings are those of the "
        f"panel. Each class that occurs has {N_INPUTS} inputs."
    )
    tables = (
        table(
            "batches",
            "Accuracy of inputs predicted as a batch",
            KINDS,
            "accuracy",
            (
                f"{protocol} The columns are the share of the classes that occur. Unequal: the "
                "frequencies are drawn from a Dirichlet distribution with concentration .5."
            ),
        ),
        table(
            "others",
            "Half of the batch belongs to other classes",
            OTHERS,
            "accuracy",
            (
                f"{protocol} The head knows one half of the classes; the batch also has as many "
                "inputs of the other half, or of seen classes. The accuracy is that of the inputs "
                "of the first half."
            ),
        ),
        table(
            "labels",
            "Some inputs of the batch are labelled",
            LABELS,
            "accuracy",
            (
                f"One in {LABELLED} inputs is labelled, at random; the accuracy is that of the "
                "others. Columns with “batch”: inputs predicted one at a time by a head that has "
                "learned from the labels, and the change if they are predicted as a batch. Columns "
                "with “labels”: a batch without labels, and the change if the labels are used."
            ),
        ),
        table("calibration", "Calibration error of a batch", KINDS, "calibration", protocol),
        table("log-loss", "Log-loss of a batch", KINDS, "log_loss", protocol),
    )
    with replace_file(path) as stream:
        stream.write(INTRODUCTION)
        for one in tables:
            stream.write("\n" + format_markdown(one).removeprefix("#"))


def main() -> None:
    """Measure all tasks, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m reproduction.batches", description=__doc__)
    parser.add_argument("directory", type=Path, help="has cifar/features.npz and so on")
    parser.add_argument("--data", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--part", nargs="+", default=[], help="texts in the names of tasks")
    parser.add_argument("--draws", type=int, default=N_DRAWS)
    parser.add_argument("-o", "--output", type=Path, default=PAGE)
    given = parser.parse_args()
    rows: list[Row] = []
    try:
        for dataset in given.data:
            for task in load_scored_tasks(
                dataset,
                given.directory,
                lambda text: print(text, file=sys.stderr),
                tuple(given.part),
                (LEAST_SQUARES, "multiclass"),
            ):
                for has in (True, False):
                    found = Measurement(task, has, given.draws).measure()
                    rows.append((task.name, "yes" if has else "no", found))
                    means = {k: np.mean([o.accuracy for o in v], axis=0) for k, v in found.items()}
                    gains = " ".join(f"{k} {m[0]:.3f} {m[1] - m[0]:+.3f}" for k, m in means.items())
                    print(f"{task.name}, reference {rows[-1][1]}: {gains}", flush=True)
                write_page(rows, given.draws, given.output)
    except RankshotError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
