"""What several tests of the reproduction measure."""

from pathlib import Path

import numpy as np
import pytest
from reproduction.scored_tasks import ScoredTask

from rankshot.datasets import load_sounds


def pytest_collection_modifyitems(items):
    """Experiments are tested at night (``make test-slow``), the page of defaults always."""
    for item in items:
        if Path(__file__).parent in item.path.parents and item.path.name != "test_defaults.py":
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="module")
def task():
    """The sounds of the package, with some of their own clips as a reference."""
    data = load_sounds()
    rows = np.arange(0, 400, 4)
    other = np.setdiff1d(np.arange(400), rows)
    return ScoredTask(
        "sounds held-out",
        *(data.scores[other], data.labels[other]),
        *(data.scores[rows], data.labels[rows]),
        {"panel": data.rankings},
    )
