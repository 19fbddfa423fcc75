"""`precedence` against a loop over its definition."""

import random
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from random_rankings import tied_groups
from rankshot import Rankings
from rankshot.core.arrays import row_blocks
from rankshot.ranking.consensus.precedence import precedence


def brute_force(items, rows):
    """Of g tied items that k cuts after m, each precedes the later ones with probability m/g."""
    number = {name: i for i, name in enumerate(items)}
    W = np.zeros((len(items), len(items)))
    for groups, k, kind, weight in rows:
        listed, later = 0, [name for group in groups for name in group]
        rest = [name for name in items if name not in later] if kind == "top" else []
        for group in groups:
            taken = min(max(k - listed, 0), len(group))
            listed += len(group)
            for i, j in product(group, later[listed:] + rest):
                W[number[i], number[j]] += weight * taken / len(group)
    return W


def built(items, rows):
    return Rankings.concatenate(
        Rankings.from_orders([groups], items=items, kind=kind, weights=[weight]).top(k)
        for groups, k, kind, weight in rows
    )


@st.composite
def row(draw, items, weights):
    groups = draw(tied_groups(items))
    k = draw(st.integers(1, len(items)))
    return groups, k, draw(st.sampled_from(["top", "subset"])), draw(weights)


@st.composite
def mixtures(draw, weights):
    items = list("abcdef"[: draw(st.integers(1, 6))])
    return items, draw(st.lists(row(items, weights), min_size=1, max_size=6))


@settings(max_examples=30, deadline=None)
@given(mixtures(st.integers(0, 9) | st.floats(0, 10)), st.integers(1, 20) | st.just(1000))
def test_agrees_with_its_definition_whatever_the_size_of_the_blocks(mixture, cells):
    items, rows = mixture
    with pytest.MonkeyPatch.context() as patch:
        small = partial(row_blocks, cells=cells)
        patch.setattr("rankshot.ranking.matrices.row_blocks", small)
        W = precedence(built(items, rows))
    np.testing.assert_allclose(W, brute_force(items, rows), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("n_items", [254, 255, 300])
def test_many_items(n_items):
    rng = random.Random(n_items)
    items = [f"i{number}" for number in range(n_items)]

    def shuffled(length=n_items):
        return [[name] for name in rng.sample(items, length)]

    tied = shuffled()
    tied = [tied[0] + tied[1], *tied[2:-3], tied[-3] + tied[-2] + tied[-1]]
    rows = [
        (shuffled(), n_items, "top", 1.5),
        (shuffled(n_items - 1), n_items, "top", 0.25),
        (shuffled(n_items - 1), n_items, "subset", 2),
        (shuffled(3), n_items, "subset", 8),
        (shuffled(), 1, "top", 16),
        (tied, n_items, "top", 32),
    ]
    assert np.array_equal(precedence(built(items, rows)), brute_force(items, rows))
    cut = [(tied, 1, "top", 1), (tied, 1, "subset", 0.5)]
    assert np.array_equal(precedence(built(items, cut)), brute_force(items, cut))
