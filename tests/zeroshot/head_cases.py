"""Every head with something to fit it to, and scores of every kind that it reads."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone

import rankshot as rs
from rankshot.zeroshot.scores import KINDS

ITEMS = ("a", "b", "c", "d", "e")
TARGETS = ("u", "v", "w", "x")
PAIRS = len(ITEMS) * (len(ITEMS) - 1) // 2

PR = rs.ProbabilisticRanking
RANKING_HEADS = {
    "default": PR(),
    "consensus": PR(k=3, posterior="consensus", decay=0),
    "consensus-mallows": PR(k=2, posterior="consensus", decay=0, prior=rs.Mallows()),
    "mean": PR(k=3, decay=0),
    "mean-decay": PR(k=3),
    "sum": PR(k=2, posterior="sum"),
    "sum-mallows": PR(k=3, posterior="sum", prior=rs.Mallows()),
    "weighted": rs.WeightedMean(),
    "deterministic": rs.zeroshot.paper.DeterministicRanking(k=3),
}
SIMILARITY_HEADS = {
    "direct": rs.zeroshot.paper.DirectSimilarity(
        n_similar=3, class_prior={"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.15, "e": 0.25}
    ),
    "conse": rs.zeroshot.paper.ConSE(n_classes=3),
}
HEADS = RANKING_HEADS | SIMILARITY_HEADS
ONE_A_CLASS = {"default", *SIMILARITY_HEADS}
"""Heads that take no one-vs-one scores: those compare lists of one length, and ours are short."""


def kinds_of(name):
    return KINDS[: 2 if name in ONE_A_CLASS else 3]


CASES = [(name, kind) for kind in KINDS for name in HEADS if kind in kinds_of(name)]

RANKINGS = rs.Rankings.from_orders(
    [
        ["a", "b", "c", "d"],
        ["b", "a", "c"],
        ["a", ["b", "c"], "d"],
        ["e", ["d", "c", "a"]],
        ["d", "e", "a", "b", "c"],
        ["d", "a", "e"],
        [["b", "c"], "e", "a"],
    ],
    items=ITEMS,
    targets=["u", "u", "u", "v", "w", "w", "x"],
    weights=[1, 2, 1, 1, 3, 1, 1],
)
PEOPLE = np.array(["me", "you", "you", "me", "me", "you", "me"], object)
VOTES = replace(RANKINGS, sources=PEOPLE, raters=PEOPLE)
"""The same rankings by two sources."""
SIMILARITY = rs.Similarity(
    [
        [0.9, 0.7, 0.7, 0.1, 0.0],
        [0.2, 0.3, 0.2, 0.2, 0.8],
        [0.1, 0.0, 0.4, 0.9, 0.5],
        [0.5, 0.6, 0.6, 0.5, 0.2],
    ],
    TARGETS,
    ITEMS,
)

each_case = pytest.mark.parametrize(("name", "kind"), CASES)
few_cases = pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("mean-decay", "multiclass"),
        ("mean", "one-vs-one"),
        ("weighted", "one-vs-rest"),
        ("deterministic", "one-vs-one"),
        ("sum", "multiclass"),
        ("conse", "multiclass"),
    ],
)
"""One case for each way to compute; what all heads share is tested with them."""
few_heads = pytest.mark.parametrize("name", ["mean-decay", "weighted", "deterministic", "conse"])


def semantics_of(name):
    return SIMILARITY if name in SIMILARITY_HEADS else RANKINGS


@cache
def fitted(name):
    """The head of this name, fitted once."""
    return clone(HEADS[name]).fit(semantics_of(name))


def random_scores(rng, kind, n=6, scale=3.0, dtype=np.float64):
    columns = PAIRS if kind == "one-vs-one" else len(ITEMS)
    return rs.Scores(rng.normal(scale=scale, size=(n, columns)).astype(dtype), ITEMS, kind)


def permuted(values, order, kind):
    """The same scores with column ``order[i]`` in place of i; of pairs, with their signs."""
    if kind != "one-vs-one":
        return np.ascontiguousarray(values[:, order])
    C = len(order)
    square = np.zeros((len(values), C, C), values.dtype)
    first, second = np.triu_indices(C, 1)
    square[:, first, second] = values
    square[:, second, first] = -values
    return square[:, order][:, :, order][:, first, second]
