import pytest
from survey_pages import serve_study, small_study

from chromium import launch_chromium, opening_pages


# It ends with a file: another browser of the same process cannot start before.
@pytest.fixture(scope="module")
def chromium():
    with launch_chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def survey(tmp_path_factory):
    study = small_study(consent="You may take part, or not.\n\nAsk ada@example.org.")
    with serve_study(study, tmp_path_factory.mktemp("survey")) as running:
        yield running


@pytest.fixture
def open_page(chromium):
    with opening_pages(chromium) as open_new_page:
        yield open_new_page
