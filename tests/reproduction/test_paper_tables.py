"""Table 2: its figures by the heads, one by one."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from reproduction.benchmark import Benchmark
from reproduction.bootstrap import Bootstrap
from reproduction.class_vectors import ClassVectors
from reproduction.paper_tables import LINGUISTIC, table_two

import rankshot as rs
from rankshot.datasets import LabelledData
from rankshot.zeroshot.scores import Scores

pytestmark = pytest.mark.slow

DS, DR, PR = "Direct Similarity", "Deterministic Ranking", "Probabilistic Ranking"
INDIVIDUAL = "individual sources, averaged"

# ---- What the paper printed

# As printed: one line per classifier, one column per method and its semantics.
# ---- A made benchmark

ITEMS = tuple("abcdefghijkl")
TARGETS = ("cow", "elk", "yak")
N = 90


def make_benchmark(rng):
    """Three sources that see the same likeness, each with an error of its own; two raters."""
    likeness = rng.normal(size=(3, 12))

    def seen_by(source, error):
        noise = rng.normal(scale=error, size=likeness.shape)
        return rs.Similarity(likeness + noise, TARGETS, ITEMS, source)

    errors = (0.4, 1.2, 2.0)
    tables = map(seen_by, LINGUISTIC["cifar"], errors)
    panel = rs.Rankings.concatenate(
        replace(seen_by("panel", 0.3).to_rankings(5), raters=np.array([rater] * 3))
        for rater in ("ann", "bob")
    )
    truth = np.repeat(TARGETS, (20, 30, 40))
    images = LabelledData(
        "cifar",
        *(np.zeros((24, 4), np.float32), np.repeat(ITEMS, 2)),
        *(np.zeros((12, 4), np.float32), np.array(ITEMS)),
        *(np.zeros((N, 4), np.float32), truth),
        seen_classes=ITEMS,
        new_classes=TARGETS,
    )
    sources = dict(zip(LINGUISTIC["cifar"], tables, strict=True))
    held_out = rs.Rankings.from_orders([["a", "b"]], items=ITEMS[:11], targets=["l"])
    benchmark = Benchmark(
        images,
        sources,
        {"similar": panel},
        {"similar": held_out},
        ClassVectors(ITEMS, np.eye(12), "made"),
    )
    means = likeness[np.searchsorted(TARGETS, truth)]
    values = 1.5 * means + rng.normal(scale=1.5, size=(N, 12))
    return benchmark, values


def scores_of(values):
    i, j = np.triu_indices(12, 1)
    return {
        "one-vs-rest": Scores(values - 1, ITEMS, "one-vs-rest"),
        "one-vs-one": Scores(values[:, i] - values[:, j], ITEMS, "one-vs-one"),
        "multiclass": Scores(values, ITEMS),
    }


# ---- Table 2


def expected_heads(sources, panel):
    """The heads of all rows but the averages, each written out."""
    tables = list(sources.values())
    means = {"arithmetic mean": rs.sources.arithmetic_mean(tables)}
    means["geometric mean"] = rs.sources.geometric_mean(tables)
    merged = rs.Rankings.concatenate([table.to_rankings(10) for table in tables])
    heads = {}
    for name, table in (sources | means).items():
        heads[DS, name] = rs.zeroshot.paper.DirectSimilarity().fit(table.rescale())
        heads[DR, name] = rs.zeroshot.paper.DeterministicRanking(k=4).fit(table.to_rankings(10))
    paper = {"k": 4, "decay": 0, "posterior": "consensus"}
    for name, table in sources.items():
        heads[PR, name] = rs.ProbabilisticRanking(**paper).fit(table.to_rankings(10))
    for what, rankings in (("linguistic", merged), ("panel", panel)):
        for name, prior in (("Plackett-Luce", rs.PlackettLuce()), ("Mallows", rs.Mallows())):
            head = rs.ProbabilisticRanking(**paper, prior=prior)
            heads[PR, f"{what}, {name}"] = head.fit(rankings)
        mean = rs.ProbabilisticRanking(k=4, decay=0, posterior="mean")
        heads[PR, f"{what}, mean of rankings"] = mean.fit(rankings)
    return heads


def test_every_cell_is_its_heads_accuracy(rng):
    benchmark, values = make_benchmark(rng)
    truth = benchmark.data.new_label
    makers = {
        name: partial(Scores.__getitem__, s, slice(None)) for name, s in scores_of(values).items()
    }
    table = table_two(benchmark, makers, Bootstrap(truth), str)
    heads = expected_heads(benchmark.sources, benchmark.real.panel)
    rows = {row[:2]: row[2:] for row in table.rows}
    assert set(rows) == set(heads) | {(method, INDIVIDUAL) for method in (DS, DR, PR)}
    assert len(table.rows) == len(rows)
    for key, head in heads.items():
        for (name, scores), cell in zip(scores_of(values).items(), rows[key], strict=True):
            if key[0] == DS and name == "one-vs-one":
                assert cell is None
            else:
                right = np.mean(head.predict(scores) == truth)
                assert cell.ours.estimate == pytest.approx(right), (key, name)
    # Methods differ, so rows that were mixed up would not go unnoticed.
    assert len({row[-1].ours.estimate for row in rows.values()}) > 6
