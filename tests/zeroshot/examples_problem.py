"""Four new classes with rankings, scores and features, for tests of examples and of evidence."""

import numpy as np

import rankshot as rs

ITEMS = [f"seen{i}" for i in range(12)]
CLASSES = ["a", "b", "c", "d"]


def draw_problem(rng):
    """Return rankings, values whose rankings say something, features that say more, and classes."""
    y = np.repeat(np.arange(4), 40)
    centers = rng.normal(size=(4, 12))
    values = centers[y] + 1.5 * rng.normal(size=(160, 12))
    guess = centers + 1.5 * rng.normal(size=centers.shape)
    rankings = rs.Rankings.from_scores(guess, items=ITEMS, targets=CLASSES).top(5)
    features = 2 * rng.normal(size=(4, 20))[y] + 2 * rng.normal(size=(160, 20))
    return rankings, values, features, y
