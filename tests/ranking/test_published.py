"""Values found by others, on real data: every printed digit."""

import numpy as np
import pytest

import rankshot as rs
from rankshot.datasets import load_election


@pytest.fixture
def ballots():
    return load_election()


@pytest.fixture
def complete(ballots):
    complete = ballots[ballots.lengths >= 4]
    assert complete.weights.sum() == 5738
    return complete


PUBLISHED = {
    "ballots": (
        [0.231651, 0.175863, 0.207065, 0.187648, 0.197773], -51598.30636,
        (3, 1, 5, 4, 2), 0.0768543, -51602.60105,
    ),
    "complete": (
        [0.232326, 0.187687, 0.199640, 0.181741, 0.198605], -27402.29389,
        (1, 3, 5, 4, 2), 0.0721887, -27408.48954,
    ),
}  # fmt: skip


@pytest.mark.parametrize("which", PUBLISHED)
def test_plackett_luce_and_mallows_of_the_ballots(request, which):
    votes = request.getfixturevalue(which)
    worths, by_worths, center, spread, by_center = PUBLISHED[which]
    model = rs.PlackettLuce(regularization=0, tol=1e-12).fit(votes)
    assert model.worths_.round(6).tolist() == worths
    assert round(model.log_likelihood_, 5) == by_worths
    model = rs.Mallows(method="exact").fit(votes)
    assert model.center_ == tuple(f"candidate {i}" for i in center)
    assert (round(model.spread_, 7), round(model.log_likelihood_, 5)) == (spread, by_center)
    if which == "complete":
        assert rs.kemeny(votes, "exact").score == 26_967


@pytest.mark.slow
def test_two_mallows_groups_of_the_complete_ballots(complete):
    """The best found by separate EM code from all 7,260 pairs of centres.

    Every 50 steps that code drops the worse half of the pairs.
    """
    mixture = rs.RankingMixture(rs.Mallows(method="exact"), tol=1e-6, random_state=0).fit(complete)
    centers = [[int(name[-1]) for name in model.center_] for model in mixture.models_]
    assert centers == [[4, 5, 2, 1, 3], [3, 1, 2, 5, 4]]
    assert mixture.log_likelihood_ == pytest.approx(-26906.14426, abs=1e-3)
    assert mixture.weights_ == pytest.approx([0.5831, 0.4169], abs=1e-3)
    spreads = [model.spread_ for model in mixture.models_]
    assert spreads == pytest.approx([0.3152, 0.6267], abs=1e-3)


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "optimum"), [("C10_N50", 952), ("C10_N500", 10_945), ("C40_N500", 166_178)]
)
def test_known_kemeny_optima_are_proven(shared_data, name, optimum):
    with np.load(shared_data / "rankings" / "kemeny.npz") as data:
        orders = data[name]
    rankings = rs.Rankings.from_item_numbers(orders, items=range(orders.shape[1]))
    found = rs.kemeny(rankings, "exact")
    assert (found.score, found.bound, found.optimal) == (optimum, optimum, True)
    assert rs.kemeny(rankings, "insertion").score == optimum
