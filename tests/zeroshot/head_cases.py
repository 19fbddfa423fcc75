"""Rankings with everything that rankings can have, and scores of every kind."""

from dataclasses import replace

import numpy as np

import rankshot as rs

ITEMS = ("a", "b", "c", "d", "e")
TARGETS = ("u", "v", "w", "x")
PAIRS = len(ITEMS) * (len(ITEMS) - 1) // 2
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


def random_scores(rng, kind="multiclass", n=6, scale=3.0, dtype=np.float64):
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


def find_excess(together, inputs, first):
    """The log-odds less the thresholds, as the parts of a decision define them."""
    found = np.empty((len(first), len(together.thresholds)))
    for decision, classes in together.parts:
        found[:, classes] = decision.log_odds(inputs, first)[:, classes]
    return found - together.thresholds
