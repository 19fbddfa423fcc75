"""The intervals of audits hold, whenever one stops."""

from fractions import Fraction
from functools import cache
from itertools import product
from math import prod

import numpy as np
import pytest

from rankshot.review.audit import confidence_sequence


def chance(draws, n, correct):
    """The probability of a sequence of draws without replacement, as a fraction."""
    left = {1: correct, 0: n - correct}
    terms = []
    for i, draw in enumerate(draws):
        terms.append(Fraction(max(left[draw], 0), n - i))
        left[draw] -= 1
    return prod(terms, start=Fraction(1))


@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_the_interval_is_that_of_the_definition(n):
    """By enumeration: all numbers M whose ratio of mean to own probability is below 20."""
    for t in range(n + 1):
        for draws in product((0, 1), repeat=t):
            own = [chance(draws, n, correct) for correct in range(n + 1)]
            mean = sum(own) / (n + 1)
            inside = [m for m, p in enumerate(own) if p > 0 and mean / p < 20]
            found = confidence_sequence(sum(draws), t, n)
            assert found == (inside[0] / n, inside[-1] / n)


@pytest.mark.parametrize(("n", "share"), [(300, 0.9), (2000, 0.6), (100, 0.5)])
def test_audits_that_stop_at_will_hold(n, share):
    """200 audits, each stopped when its interval looks worst: at least 184 hold.

    The interval is looked at after each check, and an audit fails if any of them fails: nobody who
    stops at will can do worse. The expected number of failures is at most 10.
    """
    rng = np.random.default_rng(1)
    n_correct = round(share * n)
    n_held = 0

    @cache
    def holds(correct, t):
        low, high = confidence_sequence(correct, t, n)
        return low <= share <= high

    for _ in range(200):
        draws = np.cumsum(rng.permutation(n) < n_correct).tolist()
        n_held += all(holds(draws[t - 1], t) for t in range(1, n + 1, 1 if n <= 300 else 25))
    assert n_held >= 184
