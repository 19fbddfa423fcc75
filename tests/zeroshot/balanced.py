"""What makes targets equally frequent, found another way."""

import numpy as np
from scipy.optimize import root
from scipy.special import softmax


def equally_frequent(joint):
    """What makes all columns equally frequent, by a solver of equations; the first is 0."""
    L = joint.shape[1]

    def excess(added):
        return softmax(joint + np.append(0, added), axis=1).mean(axis=0)[1:] - 1 / L

    found = root(excess, np.zeros(L - 1), tol=1e-13)
    assert np.abs(found.fun).max() < 1e-10
    return np.append(0, found.x)
