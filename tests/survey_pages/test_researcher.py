"""The researcher's page in a browser: figures, the table, its renewal, actions and downloads."""

import json

import pytest
from axe import check
from pages import serve_study, small_study

from rankshot.survey.store.people import exclude, reset, set_state
from rankshot.survey.study import Question

pytestmark = pytest.mark.slow

TOKEN = "0123456789abcdef0123"
STUDY = small_study(gold=(Question("dog", ("wolf", "bus", "cup"), ("wolf",)),))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serve_study(STUDY, tmp_path_factory.mktemp("researcher"), TOKEN) as running:
        yield running


@pytest.fixture
def served(server):
    """The survey as it was before anybody came."""
    database = server.database
    set_state(database, "closed")
    reset(database, pilot_only=False)
    set_state(database, "open")
    return server


def rater_of(served, name):
    return served.database.identity.rater(f"none:id:{name}")


def log_in(page, url):
    """Give the token, and wait for the page and its script."""
    page.goto(f"{url}/researcher")
    page.get_by_label("The token").fill(TOKEN)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("heading", name="Progress of the survey").wait_for()
    page.wait_for_load_state("load")


def figure(page, name):
    """Return one of the figures at the top."""
    return page.locator(".figures div").filter(has_text=name).locator("dd").inner_text()


def rows(page):
    """Return the raters in the table, from above."""
    return page.locator("#people tbody th").all_inner_texts()


def row(page, rater):
    return page.locator(f"#r-{rater}")


def download_lines(page, name):
    """Follow a link to a file, and return its lines."""
    with page.expect_download() as download:
        page.get_by_role("link", name=name, exact=True).click()
    text = download.value.path().read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_participants_answers_and_downloads(open_page, served):
    for name, seconds in (("careful", 20), ("thorough", 30), ("hasty", 0.5)):
        served.take_part(name, seconds)
    hasty = rater_of(served, "hasty")
    exclude(served.database, [rater_of(served, "thorough")], "a <b>reason</b> & more")
    page = open_page()
    page.goto(f"{served.url}/researcher")
    page.get_by_label("The token").fill(TOKEN[::-1])
    page.get_by_role("button", name="Log in").click()
    assert page.get_by_role("alert").inner_text().startswith("This is not the token")
    check(page)
    log_in(page, served.url)
    assert (figure(page, "Answers"), figure(page, "Flagged")) == ("4 of 40", "1 of 2")
    # Those with flags come first.
    assert rows(page)[0] == hasty
    assert len(rows(page)) == 3
    assert row(page, hasty).inner_text().split()[-1] == "fast"
    assert "a <b>reason</b> & more" in page.locator("#people").inner_text()
    check(page)
    assert len(download_lines(page, "Download rankings")) == 4
    assert len(download_lines(page, "Download without flagged raters")) == 2
    page.get_by_role("link", name=hasty).click()
    page.get_by_role("heading", name=f"Participant {hasty}").wait_for()
    assert page.locator("tbody tr").count() == 4
    assert page.get_by_text("gold: right").is_visible()
    assert page.get_by_text("4 of 4 answers within 3 seconds").is_visible()
    check(page)
