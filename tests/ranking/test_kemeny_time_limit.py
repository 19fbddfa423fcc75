"""`kemeny(time_limit=)` with a clock of the test's own: no test here depends on real time."""

from itertools import count

import numpy as np
import pytest

import rankshot as rs
from rankshot.ranking.consensus import kemeny_solvers


@pytest.fixture
def cyclic(rng):
    """Random rankings: nearly all majorities are in cycles."""
    return rs.Rankings.from_item_numbers(
        np.array([rng.permutation(40) for _ in range(15)]), items=range(40)
    )


def test_the_answer_is_never_worse_than_a_search_that_fits(cyclic, monkeypatch):
    """The limit is reached as soon as the proof begins, in the program's own clock."""
    search = rs.kemeny(cyclic, "insertion")
    best = rs.kemeny(cyclic, "exact")
    times = count(0.0, 1e6)
    monkeypatch.setattr("rankshot.ranking.consensus.kemeny.monotonic", lambda: next(times))
    monkeypatch.setattr(kemeny_solvers, "monotonic", lambda: next(times))
    hasty = rs.kemeny(cyclic, "exact", time_limit=1000)
    assert hasty.order == search.order
    assert hasty.score == search.score
    assert hasty.bound <= best.score <= hasty.score
    assert hasty.optimal == (hasty.bound == hasty.score)


def test_a_relaxation_without_an_answer_gives_no_bound(cyclic, monkeypatch):
    """A linear program that is stopped has no valid bound: the best so far is returned."""
    milp = kemeny_solvers.milp

    def stopped(*args, options, **others):
        return milp(*args, options=options | {"time_limit": 0.0}, **others)

    best = rs.kemeny(cyclic, "exact")
    monkeypatch.setattr(kemeny_solvers, "milp", stopped)
    found = rs.kemeny(cyclic, "exact", time_limit=1000)
    assert not found.optimal
    assert found.bound <= best.score <= found.score
