"""The paper's Tables 1 and 2, our results beside the printed ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rankshot.datasets.demo import DR, DS, PR
from rankshot.zeroshot.scores import Scores
from reproduction.benchmark import Benchmark
from reproduction.bootstrap import Bootstrap
from reproduction.classifiers import AnnounceStep
from reproduction.paper_methods import ARITHMETIC, GEOMETRIC, Method, paper_methods
from reproduction.result_tables import OursAndPaper, ResultTable, Value

INDIVIDUAL = "individual sources, averaged"
LINGUISTIC_PL, LINGUISTIC_MALLOWS = "linguistic, Plackett-Luce", "linguistic, Mallows"
PANEL_PL, PANEL_MALLOWS = "panel, Plackett-Luce", "panel, Mallows"
TABLE_TWO: dict[str, dict[tuple[str, str], tuple[float | None, float | None, float | None]]] = {
    "animals": {
        (DS, INDIVIDUAL): (0.320, None, None),
        (DS, ARITHMETIC): (0.334, None, None),
        (DS, GEOMETRIC): (0.354, None, None),
        (DR, INDIVIDUAL): (0.329, 0.341, 0.331),
        (DR, ARITHMETIC): (0.330, 0.343, 0.345),
        (DR, GEOMETRIC): (0.347, 0.359, 0.355),
        (PR, LINGUISTIC_PL): (0.320, 0.358, 0.370),
        (PR, LINGUISTIC_MALLOWS): (0.312, 0.320, 0.345),
        (PR, PANEL_PL): (0.351, 0.374, 0.395),
        (PR, PANEL_MALLOWS): (0.351, 0.374, 0.392),
    },
    "cifar": {
        (DS, INDIVIDUAL): (0.273, None, None),
        (DS, ARITHMETIC): (0.300, None, None),
        (DS, GEOMETRIC): (0.316, None, None),
        (DR, INDIVIDUAL): (0.224, 0.244, 0.251),
        (DR, ARITHMETIC): (0.258, 0.281, 0.272),
        (DR, GEOMETRIC): (0.260, 0.278, 0.276),
        (PR, LINGUISTIC_PL): (0.314, 0.335, 0.339),
        (PR, LINGUISTIC_MALLOWS): (0.288, 0.297, 0.320),
        (PR, PANEL_PL): (0.258, 0.244, 0.260),
        (PR, PANEL_MALLOWS): (0.282, 0.261, 0.292),
    },
}
"""The printed accuracies by data set and row: one-vs-rest, one-vs-one, multiclass. The paper's
"crowd" is our "panel"."""
LINGUISTIC = {
    "cifar": ("WordNet", "word2vec", "GloVe 100d"),
    "animals": ("WordNet", "Wikipedia", "word2vec", "GloVe 100d"),
}
"""Our linguistic sources for each data set: the paper's where they are available."""
NO_CROWD = (
    "The paper's crowd (500 answers from people) was never published. It is replaced by eight "
    "runs of a language model, which were asked the paper's question: "
    "which seen classes are most similar?"
)
SOURCE_NOTES = {
    "cifar": (
        "Linguistic sources are the paper's: WordNet, word2vec and GloVe. Our word2vec is trained "
        "on a slice of Wikipedia of 9 million words, not on news; GloVe is 6B, 100 dimensions."
    ),
    "animals": (
        "Three of the paper's linguistic sources are no longer available: Yahoo web search, Yahoo "
        "image search and Flickr. Wikipedia is a slice in which four of the ten animals are rare "
        "or absent; it and word2vec, which was trained on it, are not used alone. GloVe (6B, 100 "
        "dimensions) and word2vec are added."
    ),
}
TABLE_ONE = {
    "cifar": (4000, "50,000 / 50,000 / 10,000", "100 / 10", "WordNet, word2vec, GloVe", 500),
    "animals": (
        8941,
        "21,847 / 2,448 / 6,180",
        "40 / 10",
        "WordNet, Wikipedia, Yahoo, YahooImage, Flicker",
        500,
    ),
}
"""Features, images to train/validate/test on, seen/new classes, sources, surveys."""
Correct = dict[str, NDArray[np.bool_] | None]
"""By classifier, which inputs a method predicts correctly; None where it cannot be used."""


def table_one(benchmark: Benchmark) -> ResultTable:
    """Return Table 1: the sizes of a data set, ours beside the paper's."""
    data, printed = benchmark.data, TABLE_ONE[benchmark.name]
    held_out = next(iter(benchmark.held_out_panels.values()))
    sizes = (len(data.seen_train), len(data.seen_validation), len(data.new))
    rows: Sequence[tuple[Value, ...]] = (
        ("features", f"{data.new.shape[1]:,}", f"{printed[0]:,}"),
        ("images to train / validate / test on", " / ".join(f"{n:,}" for n in sizes), printed[1]),
        (
            "seen / new classes",
            f"{len(data.seen_classes)} / {len(data.new_classes)}",
            printed[2],
        ),
        ("linguistic sources", ", ".join(LINGUISTIC[benchmark.name]), printed[3]),
        (
            "rankings by a panel (the paper: by people)",
            f"{len(benchmark.real.panel)}",
            f"{printed[4]}",
        ),
        (
            "rankings of held-out seen classes",
            f"{len(held_out)}",
            "none",
        ),
    )
    note = (
        "The numbers in the paper's appendix differ from its table: 10,000 validation images of "
        "CIFAR, and 10,942 features of Animals."
    )
    return ResultTable("table 1", "Table 1: the data", ("", "here", "paper"), tuple(rows), (note,))


def table_two(
    benchmark: Benchmark,
    scores: Mapping[str, Callable[[], Scores]],
    bootstrap: Bootstrap,
    announce: AnnounceStep,
) -> ResultTable:
    """Return Table 2: the accuracy of all methods, sources and classifiers on the new classes."""
    task = benchmark.real
    sources = {name: task.sources[name] for name in LINGUISTIC[benchmark.name]}
    methods = paper_methods(sources, task.panel)
    correct: dict[tuple[str, str], Correct] = {(one.method, one.source): {} for one in methods}
    for classifier, make in scores.items():
        announce(f"Table 2, {classifier}")
        table = make()
        for one in methods:
            correct[one.method, one.source][classifier] = one.mark_correct(table, task.test_label)
    alone = tuple(name for name in sources if (DS, name) in correct)
    rows = _collect_rows(methods, correct, alone, tuple(scores), bootstrap)
    printed = TABLE_TWO[benchmark.name]
    compared = [
        (*labels, *_add_printed(cells, printed.get(labels, (None,) * len(cells))))
        for labels, cells in rows
    ]
    return ResultTable(
        "table 2",
        "Table 2: accuracy on the new classes, K = 4",
        ("method", "semantics", *scores),
        tuple(compared),
        (
            SOURCE_NOTES[benchmark.name],
            NO_CROWD,
            (
                "Every number has a 95% bootstrap interval, followed by the paper's number if "
                "there is one. “Mean of rankings” is not in the paper: it averages log P(π|x) over "
                "the rankings and needs no consensus."
            ),
        ),
        n_labels=2,
    )


def _collect_rows(
    methods: Sequence[Method],
    correct: Mapping[tuple[str, str], Correct],
    alone: tuple[str, ...],
    classifiers: tuple[str, ...],
    bootstrap: Bootstrap,
) -> list[tuple[tuple[str, str], list[Value]]]:
    """Return one row per method and source, and the average of the single sources after them."""
    rows: list[tuple[tuple[str, str], list[Value]]] = []
    for one in methods:
        key = (one.method, one.source)
        cells = [_interval(bootstrap, [correct[key][name]]) for name in classifiers]
        rows.append((key, cells))
        if alone and one.source == alone[-1]:
            each = [correct[one.method, source] for source in alone]
            mean = [_interval(bootstrap, [found[name] for found in each]) for name in classifiers]
            rows.append(((one.method, INDIVIDUAL), mean))
    return rows


def _interval(bootstrap: Bootstrap, correct: Sequence[NDArray[np.bool_] | None]) -> Value:
    usable = [found for found in correct if found is not None]
    return bootstrap.interval(np.mean(usable, axis=0)) if usable else None


def _add_printed(cells: Sequence[Value], printed: Sequence[float | None]) -> list[Value]:
    return [
        None if ours is None and paper is None else OursAndPaper(ours, paper)  # type: ignore[arg-type]
        for ours, paper in zip(cells, printed, strict=True)
    ]
