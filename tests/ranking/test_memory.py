"""Memory: answers plus fixed blocks, whatever the size of the input."""

import numpy as np
import pytest

import rankshot as rs
from peak_memory import peak_of
from rankshot.ranking.consensus.precedence import precedence

BLOCKS = 64e6
"""Bytes: a few dense arrays of `BLOCK_CELLS` numbers."""


def draw(rng, n, C, digits=None):
    """Rankings of random scores, which may tie."""
    scores = rng.random((n, C))
    scores = scores if digits is None else scores.round(digits)
    return rs.Rankings.from_scores(scores, items=range(C))


@pytest.mark.parametrize(
    ("n", "C", "digits", "distance", "k"),
    [
        # The signs of all pairs of items would have 87 MB.
        (100, 660, 1, rs.kendall_distance, None),
        (100, 660, None, rs.kendall_distance, 10),
        # 25 distances, 8 million pairs of items.
        (5, 4000, None, rs.kendall_distance, None),
        # A table of all pairs of items has 128 MB.
        (2, 4000, 2, rs.ranking.mean_kendall_distance, None),
        (2, 4000, 2, rs.ranking.mean_kendall_distance, 1000),
    ],
)
def test_distances_build_the_answer_and_a_block(rng, n, C, digits, distance, k):
    rankings = draw(rng, n, C, digits)
    peak, answer = peak_of(lambda: distance(rankings, k=k))
    assert peak < answer.nbytes + (1.5 if distance is not rs.kendall_distance else 1) * BLOCKS


def test_precedence_reads_rankings_in_blocks(rng):
    """200,000 lists: 320 MB as a dense table."""
    lists = np.argsort(rng.random((2000, 400)), axis=1)[:, :5]
    rankings = rs.Rankings.from_item_numbers(np.tile(lists, (100, 1)), items=range(400))
    peak, answer = peak_of(lambda: precedence(rankings))
    assert peak < answer.nbytes + BLOCKS
