"""Samples against probabilities: Pearson's chi-square over all lists of five items."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chi2

import rankshot as rs

ITEMS = list("abcde")
F = np.subtract.outer([0.2, -0.1, 0.0, 0.3, -0.2], [0.2, -0.1, 0.0, 0.3, -0.2])
F[0, 1], F[1, 0] = -0.3, 0.3

MODELS = {
    "plackett-luce": rs.PlackettLuce.from_worths(
        dict(zip(ITEMS, [3, 1, 2, 0.7, 1.5], strict=True))
    ),
    "mallows": rs.Mallows.from_center(list("cabed"), 0.4),
    "mallows-uniform": rs.Mallows.from_center(list("cabed"), 0.0),
    "babington-smith": rs.BabingtonSmith.from_log_odds(2 * F, items=ITEMS),
}


@pytest.mark.parametrize("k", [1, 3, None])
@pytest.mark.parametrize("name", MODELS)
def test_samples_follow_the_probabilities(name, k):
    model, n = MODELS[name], 40_000
    sample = model.sample(n, k, random_state=11)
    lists = rs.Rankings.from_orders(list(permutations(model.items_, k or 5)), items=model.items_)
    digits = 5 ** np.arange(k or 5)
    counts, numbers = (r.codes.reshape(len(r), -1) @ digits for r in (sample, lists))
    observed = np.bincount(counts, minlength=5**5)[numbers]
    expected = np.exp(model.log_prob(lists)) * n
    assert observed.sum() == n
    assert expected.min() > 5
    statistic = np.sum((observed - expected) ** 2 / expected)
    assert chi2.sf(statistic, len(lists) - 1) > 1e-3


@pytest.mark.parametrize("name", MODELS)
def test_a_seed_repeats_the_sample_and_a_generator_goes_on(name):
    model = MODELS[name]
    assert model.sample().lengths.tolist() == [5]
    assert model.sample(50, 2, random_state=3) == model.sample(50, 2, random_state=3)
    rng = np.random.default_rng(3)
    first, second = model.sample(50, 2, random_state=rng), model.sample(50, 2, random_state=rng)
    assert first == model.sample(50, 2, random_state=3)
    assert first != second
