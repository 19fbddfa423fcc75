import pytest
from small_review import open_review


@pytest.fixture
def review(tmp_path):
    """A review of 40 inputs that nobody has labelled."""
    with open_review(tmp_path) as found:
        yield found
