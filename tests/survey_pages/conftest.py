import pytest

from chromium import launch_chromium
from pages import Watch, serve_study, small_study

PHONE = {"width": 360, "height": 740}


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
    """Return a function that opens a page in a new context; nothing may go wrong in any."""
    contexts = []

    def open_new_page(**options):
        settings = {"viewport": PHONE, "reduced_motion": "reduce", **options}
        context = chromium.new_context(**settings)
        context.set_default_timeout(120_000)
        contexts.append((context, Watch(context)))
        return context.new_page()

    yield open_new_page
    wrong = [problem for _, watch in contexts for problem in watch.wrong]
    for context, _ in contexts:
        context.close()
    assert wrong == []
