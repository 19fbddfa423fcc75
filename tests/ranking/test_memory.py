"""Memory: answers plus fixed blocks, whatever the size of the input."""

import numpy as np
import pytest

import rankshot as rs
from peak_memory import peak_of
from rankshot.ranking.consensus.precedence import precedence

BLOCKS = 64e6
"""Bytes: a few dense arrays of `BLOCK_CELLS` numbers."""


@pytest.mark.parametrize(("k", "ties"), [(None, True), (10, False)])
def test_all_pairs_of_distances_build_the_answer_and_a_block(rng, k, ties):
    """The signs of all pairs of items would have 87 MB."""
    scores = rng.random((100, 660))
    scores = scores.round(1) if ties else scores
    rankings = rs.Rankings.from_scores(scores, items=range(660))
    peak, answer = peak_of(lambda: rs.kendall_distance(rankings, k=k))
    assert peak < answer.nbytes + BLOCKS


def test_few_rankings_of_many_items(rng):
    """5 rankings of 4,000 items: 25 distances, 8 million pairs of items."""
    rankings = rs.Rankings.from_item_numbers(
        np.argsort(rng.random((5, 4000)), axis=1), items=range(4000)
    )
    peak, _ = peak_of(lambda: rs.kendall_distance(rankings))
    assert peak < BLOCKS


def test_precedence_reads_rankings_in_blocks(rng):
    """200,000 lists: 320 MB as a dense table."""
    lists = np.argsort(rng.random((2000, 400)), axis=1)[:, :5]
    rankings = rs.Rankings.from_item_numbers(np.tile(lists, (100, 1)), items=range(400))
    peak, answer = peak_of(lambda: precedence(rankings))
    assert peak < answer.nbytes + BLOCKS


@pytest.mark.parametrize("k", [None, 1000])
def test_mean_distances_of_few_rankings_of_many_items(rng, k):
    """A table of all pairs of 4,000 items has 128 MB."""
    rankings = rs.Rankings.from_scores(rng.random((2, 4000)).round(2), items=range(4000))
    peak, _ = peak_of(lambda: rs.ranking.mean_kendall_distance(rankings, k=k))
    assert peak < 1.5 * BLOCKS
