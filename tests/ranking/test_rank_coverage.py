"""How often intervals of ranks hold the true ranks of nearly equal items: the numbers of the docs.

docs/guide/leaderboards.md tells of this simulation.
"""

import numpy as np

import rankshot as rs

ITEMS = [f"{i:02}" for i in range(20)]
N_VOTES = 2000


def vote(log_worths, rng):
    """Return votes between two items that are drawn at random."""
    first, second = rng.permuted(np.tile(np.arange(20), (N_VOTES, 1)), axis=1)[:, :2].T
    wins = rng.random(N_VOTES) < 1 / (1 + np.exp(log_worths[second] - log_worths[first]))
    winners, losers = np.where(wins, [first, second], [second, first])
    names = np.array(ITEMS)
    return rs.Rankings.from_pairs(names[winners], names[losers], items=ITEMS)


def test_intervals_cover_the_true_ranks_where_drawn_ranks_do_not():
    coverage = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        log_worths = 0.01 * rng.standard_normal(20)
        true = dict(zip(ITEMS, 1 + np.argsort(np.argsort(-log_worths)), strict=True))
        board = rs.leaderboard(vote(log_worths, rng), random_state=seed)
        draws = rng.multivariate_normal(board.log_worths, board.covariance, 1000, method="eigh")
        ranks = 1 + np.argsort(np.argsort(-draws, axis=1), axis=1)
        ranges = np.quantile(ranks, [0.025, 0.975], axis=0).T
        wanted = np.array([true[item] for item in board.items])
        coverage.append(
            [
                ((low <= wanted) & (wanted <= high)).mean()
                for low, high in (board.rank_intervals.T, ranges.T)
            ]
        )
    by_intervals, by_draws = np.mean(coverage, axis=0)
    assert by_intervals > 0.99
    assert 0.8 < by_draws < 0.87
