"""Columns in another order, and new classes with other names, change nothing else.

Ties are where a head could depend on the order of columns: the rankings have ties, and some scores
of an input are equal. The first of equally probable classes by name is predicted, so seen classes
keep their names.
"""

import numpy as np
import pytest
from head_cases import ITEMS, TARGETS, permuted

import rankshot as rs
from rankshot.zeroshot import BatchRefinement, SeenAndNew, paper

ORDER = [3, 0, 4, 2, 1]
TARGET_NAMES = dict(zip(TARGETS, ("x", "w", "u", "v"), strict=True))
LISTS = [
    ("u", [["a"], ["b"], ["c"], ["d"]]),
    ("u", [["a"], ["b", "c"], ["d"]]),
    ("v", [["e"], ["d", "c", "a"]]),
    ("w", [["d"], ["e"], ["a"], ["b"], ["c"]]),
    ("x", [["b", "c"], ["e"], ["a"]]),
]


def tied_values(seed, n):
    return np.round(2 * np.random.default_rng(seed).normal(scale=3, size=(n, len(ITEMS)))) / 2


FEW, FEW_LABELS = tied_values(2, 8), np.array(TARGETS * 2)
SIMILARITY = np.round(np.random.default_rng(3).random((len(TARGETS), len(ITEMS))), 1)


class World:
    """The same knowledge, as it is, or with other names and other columns."""

    def __init__(self, *, is_changed):
        self.order = ORDER if is_changed else list(range(len(ITEMS)))
        self.target = TARGET_NAMES if is_changed else {name: name for name in TARGETS}
        self.items = [ITEMS[i] for i in self.order]
        self.labels = np.array([self.target[name] for name in FEW_LABELS])

    def rankings(self):
        return rs.Rankings.from_orders(
            [order for _, order in LISTS],
            items=self.items,
            targets=[self.target[target] for target, _ in LISTS],
        )

    def similarity(self):
        targets = [self.target[name] for name in TARGETS]
        return rs.Similarity(SIMILARITY[:, self.order], targets, self.items)

    def scores(self, values, kind="multiclass"):
        return rs.Scores(permuted(values, self.order, kind), self.items, kind)

    def columns(self, head):
        """The probabilities in the order of the first world's classes."""
        names = [*ITEMS, *TARGETS]
        mine = {name: name for name in ITEMS} | self.target
        index = {name: i for i, name in enumerate(head.classes_.tolist())}
        return [index[mine[name]] for name in names if mine[name] in index]


def fit_weighted_mean(world, *, reference=False, examples=False):
    return rs.WeightedMean().fit(
        world.rankings(),
        reference=world.scores(tied_values(1, 60)) if reference else None,
        examples=(world.scores(FEW), world.labels) if examples else None,
    )


def fit_together(world, **information):
    head = SeenAndNew(fit_weighted_mean(world, **information))
    reference = world.scores(tied_values(1, 60)) if information.get("reference") else None
    few = (world.scores(FEW), world.labels) if information.get("examples") else None
    return head.fit(reference, examples=few)


def fit_batch(world, **information):
    return BatchRefinement(fit_weighted_mean(world, **information)).fit(
        world.scores(tied_values(4, 60))
    )


HEADS = {
    f"{name}, {', '.join(information) or 'alone'}": (fit, information)
    for name, fit in (("mean", fit_weighted_mean), ("both", fit_together), ("batch", fit_batch))
    for information in ({}, {"reference": True}, {"reference": True, "examples": True})
}
PAPER = {
    "direct similarity": lambda world: paper.DirectSimilarity(n_similar=2).fit(world.similarity()),
    "ConSE": lambda world: paper.ConSE(n_classes=2).fit(world.similarity()),
    "deterministic": lambda world: paper.DeterministicRanking(k=3).fit(world.rankings()),
    "Plackett-Luce": lambda world: paper.ProbabilisticRanking(k=3).fit(world.rankings()),
    "Mallows": lambda world: paper.ProbabilisticRanking(
        k=3, prior=rs.Mallows(), posterior="consensus"
    ).fit(world.rankings()),
}


@pytest.mark.parametrize("name", [*HEADS, *PAPER])
def test_other_columns_and_other_names_permute_the_answer(name):
    results = []
    for world in (World(is_changed=False), World(is_changed=True)):
        if name in PAPER:
            head = PAPER[name](world)
        else:
            fit, information = HEADS[name]
            head = fit(world, **information)
        proba = head.predict_proba(world.scores(tied_values(0, 40)))
        results.append(np.asarray(proba)[:, world.columns(head)])
    np.testing.assert_allclose(results[1], results[0], rtol=0, atol=1e-9)
