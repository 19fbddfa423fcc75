"""New classes alone, on all data sets: rankshot against rules of one line and the paper's method.

``python -m reproduction.overview DIRECTORY`` writes two sections of ``docs/results/accuracies.md``:
the table of the first page, and one row per task. ``scripts/fill_accuracies.py`` puts the first one
into README and the first page.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import balanced_accuracy_score

from rankshot.core.errors import RankshotError
from rankshot.zeroshot.batch_refinement import BatchRefinement
from rankshot.zeroshot.default_head import (
    choose_share,
    fit_linear_part,
    measure_baseline,
    rank_bonus,
)
from rankshot.zeroshot.evidence import word_evidence
from rankshot.zeroshot.paper.ranking_methods import ProbabilisticRanking
from rankshot.zeroshot.scores import Scores, standardize_rows
from rankshot.zeroshot.weighted_mean import WeightedMean
from reproduction.benchmark import TextTask, load_benchmark
from reproduction.data import load_data
from reproduction.examples_table import Measurement
from reproduction.paper_methods import paper_head
from reproduction.result_tables import (
    FIRST_PAGE,
    PAGE,
    ResultTable,
    Value,
    average_by_domain,
    mark_largest,
    write_section,
)
from reproduction.scored_tasks import DATA, LEAST_SQUARES, Labels, ScoredTask, load_scored_tasks

Floats = NDArray[np.float64]
N_DRAWS = 10
N_EXAMPLES = "5"
RULES = ("first guess", "highest listed score")
PAPER = "Hamm and Belkin (2015)"
DEFAULT = "rankshot"
ALONE, BOTH = "5 examples per class, no rankings", "rankshot with 5 examples per class"


# ---- Methods: each returns log-posteriors, or any scores, of the new classes


def rank_by_first_guess(weights: Floats, f: Floats) -> Labels | Any:
    """Return the classes that list the first guess of the classifier first.

    If no class lists the first guess, the next one decides.
    """
    order = np.argsort(-f, axis=1, kind="stable")
    listed = weights.any(axis=0)
    first = order[np.arange(len(f)), listed[order].argmax(axis=1)]
    return weights[:, first].argmax(axis=0)


def rank_by_highest(weights: Floats, f: Floats) -> Labels | Any:
    """Return the classes with the highest score of a listed class; the next ones decide ties."""
    factors = 1e-4 ** np.arange(3)
    found = []
    for row in weights:
        highest = -np.sort(-f[:, row > 0], axis=1)[:, :3]
        found.append(highest @ factors[: highest.shape[1]])
    return np.argmax(found, axis=0)


def measure_alone(task: ScoredTask) -> dict[str, Labels]:
    """Return what each method predicts for all inputs, from the panel's rankings."""
    panel, scores = task.rankings["panel"], task.scores.with_blocks()
    plain = WeightedMean().fit(panel)
    fitted = WeightedMean().fit(panel, reference=task.reference.with_blocks())
    classes = np.asarray(plain.classes_)
    values = np.asarray(scores.values, np.float64)
    f, bonus = standardize_rows(values), rank_bonus(values)
    weights = plain.listed_
    baseline = measure_baseline(standardize_rows(task.reference.values))

    def by_part(share: float, *, ranks: bool = True) -> Labels:
        part = fit_linear_part(weights, baseline if share else None, share)
        return classes[part.evaluate(f, bonus if ranks else 0 * bonus).argmax(axis=1)]

    chosen = choose_share(f, bonus, weights, baseline)
    return {
        RULES[0]: classes[rank_by_first_guess(weights, f)],
        RULES[1]: classes[rank_by_highest(weights, f)],
        PAPER: np.asarray(paper_head().fit(panel).predict(scores)),
        "paper, mean over rankings": np.asarray(
            ProbabilisticRanking(k=15, decay=0.5).fit(panel).predict(scores)
        ),
        "weighted mean": by_part(0.0, ranks=False),
        "weighted mean, reference": by_part(1.0, ranks=False),
        "no reference": np.asarray(plain.predict(scores)),
        DEFAULT: np.asarray(fitted.predict(scores)),
        "whole reference": by_part(1.0),
        "by entropy": by_part(chosen),
    }


def measure_task(task: ScoredTask, n_draws: int, *, examples: bool) -> dict[str, float]:
    """Return the mean class accuracy of each method, on the same inputs."""
    measured = Measurement(task, n_draws)
    found = {
        name: float(np.mean(measured._measure([labels[d.tested] for d in measured.draws], "")))
        for name, labels in measure_alone(task).items()
    }
    found["chance"] = 1 / len(measured.classes)
    if examples:
        numbers = "scores" if task.scores.features is None else "features"
        alone = measured._by_examples(numbers, N_EXAMPLES)
        found[ALONE] = max(float(np.mean(measured._measure(p, ""))) for p in alone.values())
        both = [measured._by_head("panel", draw, N_EXAMPLES, numbers) for draw in measured.draws]
        found[BOTH] = float(np.mean(measured._measure(both, "")))
    return found


# ---- Another model's scores, on the intents


def measure_evidence(directory: Path) -> dict[str, float]:
    """Return the accuracy of other models' scores of requests, with and without rankings."""
    (task,) = load_scored_tasks("intents", directory, print, ("intents",), ("multiclass",), "held")
    text = load_benchmark(load_data("intents", directory)).real
    assert isinstance(text, TextTask)
    panel, reference = task.rankings["panel"], task.reference.with_blocks()
    found = {}
    for name, evidence in list_opinions(text, directory):
        scores = task.scores.with_blocks(evidence=evidence)
        head = WeightedMean().fit(panel, reference=reference, evidence=scores)
        said = np.array(evidence.items)[np.asarray(evidence.values).argmax(axis=1)]
        by_each = {
            name: said,
            f"rankings and {name}": head.predict(scores),
            f"rankings and {name}, jointly": BatchRefinement(head).fit(scores).predict(scores),
        }
        for key, labels in by_each.items():
            found[key] = float(balanced_accuracy_score(task.labels, labels))
    return found


def list_opinions(task: TextTask, directory: Path) -> Iterator[tuple[str, Scores]]:
    """Yield the evidence that there is, with one column per target."""
    texts = list(task.test_text)
    words = word_evidence(texts, task.targets, list(task.train_text))
    yield "words of request and name", words
    path = directory / "intents" / "encoder_cosines.npz"
    if not path.is_file():
        return
    lines = (directory / "intents" / "requests.jsonl").read_text("utf-8").splitlines()
    number = {json.loads(line)["text"]: row for row, line in enumerate(lines)}
    with np.load(path, allow_pickle=False) as arrays:
        place = {row: i for i, row in enumerate(arrays["row"].tolist())}
        wanted = [place[number[text]] for text in texts]
        cosines = Scores(arrays["cosine"][wanted].astype(np.float64), arrays["names"].astype(str))
    yield "sentence encoder", cosines.select(task.targets)


# ---- Tables


def first_page_table(means: Mapping[str, Mapping[str, float]], n_draws: int) -> ResultTable:
    """Return the table of the first page, one column per domain."""
    by_column = average_by_domain({task: found for task, found in means.items() if BOTH in found})

    def row(label: str, *names: str) -> tuple[Value, ...]:
        return (label, *(max(found[name] for name in names) for found in by_column.values()))

    rows = [
        row("chance", "chance"),
        row("best one-line rule", *RULES),
        row(PAPER, PAPER),
        row(DEFAULT, DEFAULT),
        row(ALONE, ALONE),
        row(BOTH, BOTH),
    ]
    return ResultTable(
        "overview",
        "Mean class accuracy on new classes",
        ("method", *by_column),
        tuple(mark_largest(rows, 4)),
        (
            (
                f"Means over {n_draws} draws of examples and test inputs; all rows of a column use "
                "the same inputs. The largest of the four rows without examples is bold, and the "
                "larger of the two with examples."
            ),
            (
                "One-line rules: the class that lists the classifier's first guess first, and the "
                "class with the highest listed score; the better one is shown, chosen on the test "
                "inputs."
            ),
            (
                "Rankings: a language-model panel; for languages, programming languages and "
                "letters, one list per class, written from names alone. Hamm and Belkin: K = 4, "
                "consensus. rankshot also has a reference: inputs of seen classes, without labels; "
                "their method cannot use one. The next table has rankshot without it."
            ),
            (
                "5 examples per class, no rankings: the best of logistic regression (C = 1, C = "
                "10) and the nearest class mean, chosen on the test inputs."
            ),
            (
                "Classifiers: logistic regression on features of EfficientNet-Lite0 (CIFAR-10, 100 "
                "seen classes), on the histograms of Animals with Attributes (40) and on TF-IDF "
                "(CLINC150, 120); networks on spectrograms of ESC-50 (40, the published split, "
                "three networks); py3langid (123); TF-IDF and logistic regression (40 programming "
                "languages); a random forest (17 letters)."
            ),
        ),
    )


SHOWN = (*RULES, PAPER, "paper, mean over rankings", "no reference", DEFAULT, "by entropy")


def alone_table(means: Mapping[str, Mapping[str, float]]) -> ResultTable:
    """Return one row per task, and how far each method is below the best of all."""
    names = [name for name in next(iter(means.values())) if name not in ("chance", ALONE, BOTH)]
    best = {task: max(found[name] for name in names) for task, found in means.items()}
    rows: list[tuple[Value, ...]] = [
        (task, *(found[name] for name in SHOWN), best[task]) for task, found in means.items()
    ]
    groups: dict[str, list[str]] = {}
    for task in means:
        groups.setdefault(task if task in ("languages", "letters") else task.split(",")[0], [])
        groups[task.split(",")[0]].append(task)

    def over_groups(name: str) -> float:
        shares = [[means[task].get(name, best[task]) for task in some] for some in groups.values()]
        return float(np.mean([np.mean(some) for some in shares]))

    worst = [max(best[task] - found[name] for task, found in means.items()) for name in SHOWN]
    rows.append(("mean", *(over_groups(name) for name in SHOWN), over_groups("best")))
    rows.append(("worst, below the best", *worst, 0.0))
    return ResultTable(
        "alone",
        "New classes alone, one input at a time",
        ("task", *SHOWN, f"best of {len(names)}"),
        tuple(rows),
        (
            (
                "Mean class accuracy, with the panel's rankings. “rankshot” has a reference, as "
                "has “by entropy”: what a batch chooses. The best of all methods is chosen with "
                "labels; it also counts the weighted mean without the bonus for ranks, with and "
                "without a reference, and the whole reference. Tasks whose names contain "
                "“held-out” have seen classes as targets. Mean: tasks of one data set count as "
                "one."
            ),
        ),
    )


def evidence_table(found: Mapping[str, float]) -> ResultTable:
    """Return the accuracies with another model's scores."""
    return ResultTable(
        "evidence",
        "Another model's scores, on 30 new intents",
        ("method", "accuracy"),
        tuple(found.items()),
        ("The weight of the other model is estimated without labels.",),
    )


def published_table() -> ResultTable:
    """Return numbers of others, which are not measured here."""
    split = "the same ten classes of ESC-50; their own networks, word vectors"
    authors = "(Sims, Mendes and Chalup 2024)"
    rows: tuple[tuple[Value, ...], ...] = (
        ("Hamm and Belkin (2015), best result", "CIFAR", 0.339, "features from 2012"),
        ("Hamm and Belkin (2015), best result", "Animals", 0.395, "features from 2009, people"),
        ("CLIP ViT-B/16", "CIFAR", 0.916, "zero-shot on CIFAR-10, Radford et al. (2021)"),
        (f"denoising autoencoder {authors}", "sounds", 0.274, split),
        (f"diffusion {authors}", "sounds", 0.224, split),
        ("CLAP", "sounds", 0.939, "all 50 classes, Elizalde et al. (2023b); .826 in 2023a"),
    )
    return ResultTable(
        "published",
        "Published by others",
        ("method", "data", "accuracy", "details"),
        rows,
        ("Inputs, features or classes differ from those above: the rows compare whole systems.",),
        n_labels=2,
    )


def main() -> None:
    """Measure all rows, and write the sections."""
    parser = argparse.ArgumentParser(prog="python -m reproduction.overview", description=__doc__)
    parser.add_argument("directory", type=Path, help="has cifar/features.npz and so on")
    parser.add_argument("--draws", type=int, default=N_DRAWS)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    means = {}
    try:
        for dataset in DATA:
            for task in load_scored_tasks(
                dataset,
                options.directory,
                lambda text: print(text, file=sys.stderr),
                settings=(LEAST_SQUARES, "multiclass"),
            ):
                first = any(map(task.name.startswith, FIRST_PAGE)) and not task.is_held_out
                means[task.name] = measure_task(task, options.draws, examples=first)
                print(task.name, means[task.name], flush=True)
        evidence = measure_evidence(options.directory)
    except RankshotError as error:
        sys.exit(str(error))
    write_section(options.page, "overview", [first_page_table(means, options.draws)])
    tables = (alone_table(means), evidence_table(evidence), published_table())
    write_section(options.page, "alone", tables)


if __name__ == "__main__":
    main()
