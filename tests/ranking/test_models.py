"""What all models share: scikit-learn's interface, and results that ignore the order of items."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import rankshot as rs

MODELS = [
    rs.PlackettLuce(regularization=0.5),
    rs.Mallows(method="exact"),
    rs.BabingtonSmith(regularization=0.2),
]
IDS = [type(model).__name__ for model in MODELS]


@pytest.fixture
def rankings(random_rankings, rng):
    return random_rankings(n_items=5, n=15, ties=False, weights=rng.integers(1, 4, size=15))


@pytest.mark.parametrize("model", MODELS, ids=IDS)
def test_clone_keeps_the_parameters_and_forgets_the_fit(model, rankings):
    fitted = clone(model).fit(rankings)
    fresh = clone(fitted)
    assert fresh.get_params() == model.get_params()
    with pytest.raises(NotFittedError, match=type(model).__name__):
        fresh.log_prob(rankings)
    with pytest.raises(NotFittedError, match=type(model).__name__):
        fresh.sample()
    with pytest.raises(AttributeError):
        _ = fresh.mode_


@pytest.mark.parametrize("model", MODELS, ids=IDS)
def test_permuting_the_items_changes_nothing_else(model, rankings, rng):
    shuffled = rankings.with_items([rankings.items[i] for i in rng.permutation(5)])
    one, two = clone(model).fit(rankings), clone(model).fit(shuffled)
    assert one.mode_ == two.mode_
    assert two.log_prob(rankings) == pytest.approx(one.log_prob(shuffled), abs=1e-6)
    assert two.log_prob(shuffled) == pytest.approx(two.log_prob(rankings), abs=1e-12)


# ---- Weights that differ by many orders of magnitude


def test_weights_may_differ_a_million_million_times():
    """The odds of a pair are those of its votes; 1/se² = w p (1 - p), with 1/w1 + 1/w2."""
    votes = rs.Rankings.from_orders([["a", "b"], ["b", "a"]], weights=[1e12, 1])
    found = rs.PlackettLuce(regularization=0).fit(votes)
    assert found.log_worths_ @ [1, -1] == pytest.approx(np.log(1e12), abs=1e-3)
    assert 2 * found.standard_errors(votes)[0] == pytest.approx(1, rel=1e-3)
    link = rs.Rankings.from_orders(
        [["a", "b"], ["b", "a"], ["b", "c"], ["c", "b"]], weights=[1e12, 1e12, 3, 1], kind="subset"
    )
    found = rs.PlackettLuce(regularization=0).fit(link)
    assert found.log_worths_ @ [0, 1, -1] == pytest.approx(np.log(3), abs=1e-3)


ITERATIVE = [model for model in MODELS if hasattr(model, "max_iter")]
ITERATIVE_IDS = [type(model).__name__ for model in ITERATIVE]


@pytest.mark.parametrize("model", ITERATIVE, ids=ITERATIVE_IDS)
def test_a_fit_ends_at_its_tolerance_or_with_a_warning(model, rankings):
    best = clone(model).fit(rankings).log_prob(rankings)
    with pytest.warns(UserWarning, match="converge"):
        clone(model).set_params(max_iter=1).fit(rankings)
    with pytest.raises(ValueError, match="toll"):
        clone(model).set_params(toll=1)
    rough = clone(model).set_params(tol=1e3).fit(rankings).log_prob(rankings)
    assert not np.array_equal(rough, best)
