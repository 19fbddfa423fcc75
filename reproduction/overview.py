"""The accuracies of the first page: four data sets, each method on the same inputs of new classes.

``python -m reproduction.overview DIRECTORY`` writes ``docs/results/overview.md``, and
``scripts/fill_accuracies.py`` puts its numbers into README and the pages.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from rankshot.core.errors import RankshotError
from rankshot.core.files import replace_file
from rankshot.zeroshot.batch_refinement import BatchRefinement
from rankshot.zeroshot.evidence import word_evidence
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.weighted_mean import WeightedMean
from reproduction.benchmark import TextTask, load_benchmark
from reproduction.classifiers import AnnounceStep
from reproduction.data import load_data
from reproduction.examples_table import Design, draw_inputs
from reproduction.paper_methods import paper_head
from reproduction.result_tables import ResultTable, Value, format_markdown
from reproduction.scored_tasks import HELD_OUT, TABLES, Labels, ScoredTask, load_scored_tasks
from reproduction.sounds import PUBLISHED

Rows = NDArray[np.intp]
PAGE = Path(__file__).parents[1] / "docs" / "results" / "overview.md"
CLASSIFIER = "multiclass"
TASKS = ("cifar", "animals", "intents", "sounds published")
"""Texts in the names of the tasks."""
N_DRAWS = 10
N_EXAMPLES = 5
STRENGTHS = (1.0, 10.0)
"""Of logistic regression on a few examples, scikit-learn's C."""
ZERO_SHOT, BOTH = "rankshot", "rankshot and 5 examples per class"
INTRODUCTION = """# Accuracies on the first page

These are the numbers behind the table on the first page: the accuracy on new classes of four data \
sets. `make overview FROM=DIRECTORY` writes them; [Results](../reproduction.md) explains the data.

"""


def main() -> None:
    """Measure all rows, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m reproduction.overview", description=__doc__)
    parser.add_argument("directory", type=Path, help="has cifar/features.npz and so on")
    parser.add_argument("--draws", type=int, default=N_DRAWS)
    parser.add_argument("-o", "--output", type=Path, default=PAGE)
    given = parser.parse_args()
    try:
        means = measure_overview(
            given.directory, given.draws, lambda text: print(text, file=sys.stderr, flush=True)
        )
    except RankshotError as error:
        sys.exit(str(error))
    tables = (measured_table(means, given.draws), published_table())
    with replace_file(given.output) as stream:
        # The page has the largest heading.
        stream.write(INTRODUCTION + "\n".join(format_markdown(table)[1:] for table in tables))


def measure_overview(
    directory: Path, n_draws: int, announce: AnnounceStep
) -> dict[str, dict[str, float]]:
    """Return the accuracy of each method, for each data set; sounds have several networks."""
    means = {}
    for dataset in TABLES:
        opinions = list_evidence(dataset, directory)
        found: dict[str, list[float]] = {}
        for task in load_scored_tasks(dataset, directory, announce, TASKS, (CLASSIFIER,), HELD_OUT):
            announce(f"measuring {task.name}")
            for seed in range(n_draws):
                for method, accuracy in measure_draw(task, opinions, seed).items():
                    found.setdefault(method, []).append(accuracy)
        means[dataset] = {method: float(np.mean(shares)) for method, shares in found.items()}
    return means


def list_evidence(dataset: str, directory: Path) -> dict[str, Scores]:
    """Return what other models predict for the requests of the new intents, in their order."""
    if dataset != "intents":
        return {}
    task = load_benchmark(load_data(dataset, directory)).real
    assert isinstance(task, TextTask)
    return dict(list_opinions(task, directory))


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
        wanted = [place.get(number[text]) for text in texts]
        if None in wanted:
            return
        cosines = Scores(arrays["cosine"][wanted].astype(np.float64), arrays["names"].astype(str))
    yield "sentence encoder", cosines.select(task.targets)


def measure_draw(task: ScoredTask, opinions: Mapping[str, Scores], seed: int) -> dict[str, float]:
    """Return the accuracy of each method on the inputs of one draw, which are not examples."""
    draw = draw_inputs(task.labels, seed)
    rows, examples = draw.tested, draw.examples(Design(N_EXAMPLES, N_EXAMPLES))
    unequal = draw_unequal(task.labels, rows, seed)
    panel, table = task.rankings.values()
    reference, labels = task.reference, task.labels
    head = WeightedMean().fit(panel, reference=reference)
    learnt = WeightedMean().fit(
        panel, reference=reference, examples=(task.scores[examples], labels[examples])
    )
    alone = learn_examples(task, examples)

    def accuracy(predict: Callable[[Any], Any], tested: Rows = rows) -> float:
        return balanced_accuracy_score(labels[tested], predict(task.scores[tested]))

    def predict_jointly(scores: Scores) -> Labels:
        return np.asarray(BatchRefinement(head).fit(scores).predict(scores))

    found = {
        "chance": 1 / len(head.classes_),
        "Hamm and Belkin (2015)": accuracy(paper_head().fit(panel).predict),
        ZERO_SHOT: accuracy(head.predict),
        "rankshot, rankings by WordNet or GloVe": accuracy(
            WeightedMean().fit(table, reference=reference).predict
        ),
        "rankshot, inputs classified jointly, equal frequencies": accuracy(predict_jointly),
        "rankshot, unequal frequencies": accuracy(head.predict, unequal),
        "rankshot, inputs classified jointly, unequal frequencies": accuracy(
            predict_jointly, unequal
        ),
        # The better of them, chosen on the test inputs.
        "5 examples per class, no rankings": max(accuracy(predict) for predict in alone),
        BOTH: accuracy(learnt.predict),
    }
    for name, evidence in opinions.items():
        fitted = WeightedMean().fit(
            panel, reference, evidence=replace(task.scores, evidence=evidence)
        )
        both = fitted.predict(replace(task.scores, evidence=evidence)[rows])
        said = np.array(evidence.items)[np.asarray(evidence.values)[rows].argmax(axis=1)]
        found[f"{name}, no rankings"] = balanced_accuracy_score(labels[rows], said)
        found[f"rankshot and {name}"] = balanced_accuracy_score(labels[rows], both)
    return found


def draw_unequal(labels: Labels, rows: Rows, seed: int) -> Rows:
    """Keep 1, 1/2, 1/3, ... of the inputs of the classes, which come in a random order."""
    rng = np.random.default_rng(seed)
    kept = []
    for place, name in enumerate(rng.permutation(np.unique(labels)), 1):
        ours = rows[labels[rows] == name]
        kept.append(ours[: max(len(ours) // place, 1)])
    return np.sort(np.concatenate(kept))


def learn_examples(task: ScoredTask, examples: Rows) -> list[Callable[[Scores], Labels]]:
    """Return classifiers of the features that know only the examples."""
    usual = np.asarray(task.reference.features, np.float64).mean(axis=0)
    labels = task.labels[examples]
    classes = np.unique(labels)

    def centre(scores: Scores) -> NDArray[np.float64]:
        x = np.asarray(scores.features, np.float64) - usual
        return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))

    x = centre(task.scores[examples])
    means = np.array([x[labels == name].mean(axis=0) for name in classes])
    with warnings.catch_warnings():
        # Few examples of many classes look like a regression.
        warnings.filterwarnings("ignore", "The number of unique classes")
        models = [
            LogisticRegression(C=C, max_iter=1000).fit(task.scores[examples].features, labels)
            for C in STRENGTHS
        ]
    return [
        lambda scores: classes[cdist(centre(scores), means).argmin(axis=1)],
        *(lambda scores, m=model: np.asarray(m.predict(scores.features)) for model in models),
    ]


# ---- Tables


def measured_table(means: Mapping[str, Mapping[str, float]], n_draws: int) -> ResultTable:
    """Return the accuracies, one column per data set."""
    methods = dict.fromkeys(method for found in means.values() for method in found)
    rows = tuple((method, *(found.get(method) for found in means.values())) for method in methods)
    return ResultTable(
        "overview",
        "Mean class accuracy on new classes",
        ("method", *means),
        rows,
        (
            (
                f"Means over {n_draws} draws; all rows of a column use the same test inputs, at "
                "most 1,500 per draw. Inputs of CIFAR-10 (10 classes; 100 seen), Animals with "
                "Attributes (10; 40 seen), CLINC150 (30 intents; 120 seen) and ESC-50 (10; 40 "
                "seen; the published split, three networks)."
            ),
            (
                "Classifier: logistic regression, with C chosen on held-out seen classes, on "
                "features of EfficientNet-Lite0 (CIFAR), the histograms of the data set (Animals) "
                "and TF-IDF (intents); for sounds, residual networks on spectrograms."
            ),
            (
                "Rankings: a language-model panel, all questions, for rankshot and for Hamm and "
                "Belkin's method (K = 4, consensus). rankshot also has a reference: inputs of "
                "seen classes, without labels. Rankings without a panel are those of WordNet, and "
                "for intents those of GloVe."
            ),
            (
                "5 examples per class: the best of logistic regression (C = 1, C = 10) and the "
                "nearest class mean on the features, chosen on the test inputs."
            ),
            (
                "Unequal frequencies: in random order, the classes keep 1, 1/2, 1/3, ... of their "
                "inputs."
            ),
        ),
    )


def published_table() -> ResultTable:
    """Return numbers of others, which are not measured here."""
    rows: tuple[tuple[Value, ...], ...] = (
        (
            "Hamm and Belkin (2015), best result",
            "CIFAR",
            0.339,
            "features from 2012, word similarities",
        ),
        ("Hamm and Belkin (2015), best result", "Animals", 0.395, "features from 2009, people"),
        (
            "CLIP ViT-B/16",
            "CIFAR",
            0.916,
            "zero-shot accuracy on CIFAR-10, Radford et al. (2021), Table 11",
        ),
        *(
            (name, "sounds", share, "the same ten classes; their own networks, word vectors")
            for name, share in PUBLISHED.items()
        ),
        ("CLAP, lowest", "sounds", 0.826, "all 50 classes, Elizalde et al. (2023)"),
        ("CLAP, highest", "sounds", 0.939, "all 50 classes, Elizalde et al. (2023b)"),
    )
    return ResultTable(
        "published",
        "Published by others",
        ("method", "data", "accuracy", "details"),
        rows,
        (
            "Inputs, features or classes differ from those above: the rows compare whole systems.",
            "CLAP was trained on pairs of sounds and captions.",
        ),
        n_labels=2,
    )


if __name__ == "__main__":
    main()
