import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "build_datasets.py"


@pytest.fixture(scope="session")
def build():
    """The script that builds the embedded data, as a module."""
    spec = importlib.util.spec_from_file_location("build_datasets", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
