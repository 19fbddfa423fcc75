"""Leaderboards from people's votes: intervals of worths and ranks, and groups of voters
=====================================================================================

Two sets of votes are real. People tasted two of six brands of chocolate pudding and said which they
preferred, or that they could not decide (Davidson 1970, example 2). Psychologists ranked up to five
candidates for president of their association (Diaconis 1989; see the file). The third is
simulated, in the size of a public leaderboard of language models: 100,000 votes between 100 models.
The example asks of each: is the first really better than the second? And do all voters agree?
"""

from pathlib import Path
from time import process_time

import numpy as np

import rankshot as rs

PUDDING = """
1 2 19 22 16, 1 3 16 19 12, 2 3 19 19 10, 1 4 18 23 13, 2 4 23 19 9, 3 4 19 20 15, 1 5 13 19 18,
2 5 16 20 12, 3 5 16 15 17, 4 5 17 14 16, 1 6 18 21 12, 2 6 22 20 12, 3 6 13 18 10, 4 6 14 19 18,
5 6 11 21 12"""
"""Two brands, how often the first was preferred, the second, and neither."""


def read_pudding() -> rs.Rankings:
    """Return the votes as weighted pairs."""
    wins, ties = np.zeros((2, 6, 6))
    for line in PUDDING.split(","):
        i, j, won, lost, tied = map(int, line.split())
        wins[i - 1, j - 1], wins[j - 1, i - 1] = won, lost
        ties[i - 1, j - 1] = ties[j - 1, i - 1] = tied
    brands = [f"brand {i}" for i in range(1, 7)]
    return rs.Rankings.from_pair_counts(wins, items=brands, ties=ties)


def show_comparison(board: rs.Leaderboard, first: str, second: str) -> None:
    """Print how sure it is that one item is better than another."""
    found = board.compare(first, second)
    low, high = found.interval
    print(
        f"{first} against {second}: difference {found.difference:.2f} ({low:.2f} to {high:.2f}), "
        f"better with probability {found.probability:.3f}"
    )


def show_pudding() -> None:
    """Print the leaderboard of six puddings; a tie is an outcome of its own."""
    board = rs.leaderboard(read_pudding(), rs.DavidsonLuce(regularization=0), random_state=0)
    print(board)
    show_comparison(board, board.items[0], board.items[1])
    show_comparison(board, board.items[0], board.items[-1])


def draw_votes(
    log_worths: np.ndarray, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw ``n`` votes between random pairs; return winners and losers."""
    C = len(log_worths)
    a = rng.integers(0, C, n)
    b = (a + rng.integers(1, C, n)) % C
    a_wins = rng.random(n) < 1 / (1 + np.exp(log_worths[b] - log_worths[a]))
    return np.where(a_wins, a, b), np.where(a_wins, b, a)


def show_large_leaderboard(n: int = 100_000, n_models: int = 100) -> None:
    """Rank many models from many votes, and compare with the truth."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=n_models)
    winners, losers = draw_votes(truth, n, rng)
    votes = rs.Rankings.from_pairs(winners, losers, items=range(n_models))
    begin = process_time()
    board = rs.leaderboard(votes, random_state=0)
    seconds = process_time() - begin
    print(f"{n:,} votes between {n_models} models: {seconds:.1f} seconds")
    print("\n".join(repr(board).splitlines()[1:7]))
    rank = np.argsort(np.argsort(-truth)) + 1
    true = rank[[int(item) for item in board.items]]
    best, worst = board.rank_intervals.T
    held = np.mean((best <= true) & (true <= worst))
    print(f"rank intervals that hold the true rank: {held:.0%}")


def show_election() -> None:
    """Print the leaderboard of the candidates, and what two groups of voters wanted."""
    ballots = rs.read_rankings(Path(__file__).parent / "apa_1980.soi")
    board = rs.leaderboard(ballots, random_state=0)
    print(board)
    show_comparison(board, board.items[0], board.items[1])
    one, two = (rs.RankingMixture(n_groups=n, random_state=0).fit(ballots) for n in (1, 2))
    print(f"two groups instead of one lower BIC by {one.bic_ - two.bic_:,.0f}")
    for share, model in zip(two.weights_, two.models_, strict=True):
        print(f"  {share:.0%} of the voters: {' > '.join(map(str, model.mode_))}")


if __name__ == "__main__":
    print("Chocolate pudding")
    show_pudding()
    print("\nAn election")
    show_election()
    print("\nA large leaderboard")
    show_large_leaderboard()
