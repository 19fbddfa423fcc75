import gc
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from chromium import launch_chromium

# A busy machine is not a bug, and a run that counts should be the same every time.
settings.register_profile(
    "rankshot", deadline=None, max_examples=15, derandomize="CI" in os.environ
)
settings.load_profile("rankshot")

# They hold no doctests, and two of them cannot be modules of one name.
collect_ignore_glob = ["*conftest.py"]


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    """Take what all tests import out of every later search for garbage: it is never garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def rng():
    return np.random.default_rng(20150701)


@pytest.fixture(scope="module")
def browser():
    with launch_chromium() as found:
        yield found


@pytest.fixture
def shared_data():
    """The measurement data beside the project, or where RANKSHOT_DATA points."""
    default = Path(__file__).parents[2] / "shared" / "data"
    path = Path(os.environ.get("RANKSHOT_DATA", default))
    if not path.is_dir():
        pytest.skip("no measurement data here; set RANKSHOT_DATA to its directory")
    return path
