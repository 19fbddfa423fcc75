"""How often the claims of leaderboards hold, in the simulations of benchmarks/claims.py."""

from dataclasses import replace
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest

import rankshot as rs

CLAIMS = run_path(str(Path(__file__).parents[2] / "benchmarks" / "claims.py"))


@pytest.mark.slow
@pytest.mark.parametrize("design", CLAIMS["DESIGNS"])
def test_the_claims_of_boards_hold(design):
    """For 40 boards; docs/results/claims.md has the numbers of more."""
    n = 10 if design in CLAIMS["FEWER"] else 40
    found = [CLAIMS["simulate"](design, seed) for seed in range(n)]
    intervals, ranks, false = (
        np.mean([each[what] for each in found]) for what in ("intervals", "ranks", "false")
    )
    assert 0.9 < intervals < 0.99
    assert ranks > 0.98
    assert false <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n)


@pytest.mark.slow
def test_errors_by_raters_are_those_of_a_cluster_bootstrap():
    """Raters are drawn with replacement, each with all votes; the raters have unequal volumes."""
    drawn = CLAIMS["vote_by_raters"](np.random.default_rng(1), CLAIMS["share_out"](40, 2000))
    votes = drawn["votes"]
    number = np.array([int(name[1:]) for name in votes.raters])
    rng, found = np.random.default_rng(0), []
    for _ in range(400):
        times = np.bincount(rng.integers(0, 40, 40), minlength=40)
        model = rs.PlackettLuce().fit(replace(votes, weights=times[number].astype(float)))
        found.append(model.log_worths_)
    board = rs.leaderboard(votes)
    errors = [np.std([x[votes.items.index(item)] for x in found]) for item in board.items]
    # A bootstrap has no correction for few raters: it is a little lower.
    assert np.mean(board.standard_errors / errors) == pytest.approx(1.08, abs=0.12)
