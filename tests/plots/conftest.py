"""No figure is left open."""

import pytest
from matplotlib import pyplot as plt


@pytest.fixture(autouse=True)
def _close_figures():
    plt.switch_backend("Agg")
    yield
    plt.close("all")
