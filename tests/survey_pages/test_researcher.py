"""The researcher's page in a browser: login, figures, their renewal, and downloads."""

import json

import pytest
from axe import check
from pages import serve_study, small_study

TOKEN = "0123456789abcdef0123"
STUDY = small_study()


@pytest.fixture
def served(tmp_path):
    with serve_study(STUDY, tmp_path, TOKEN) as running:
        yield running


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


def download_lines(page, name):
    """Follow a link to a file, and return its lines."""
    with page.expect_download() as download:
        page.get_by_role("link", name=name).click()
    assert download.value.suggested_filename == "rankings.jsonl"
    text = download.value.path().read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def renew(page):
    """Let the time pass until the page has renewed itself, and says so."""
    before = page.locator("#updated").inner_text()
    page.clock.run_for(10_000)
    page.wait_for_function(
        "before => document.getElementById('updated').innerText !== before", arg=before
    )
    assert "updated every 10 seconds" in page.locator("#updated").inner_text()


def test_login_and_a_survey_without_answers(open_page, served):
    page = open_page()
    page.goto(f"{served.url}/researcher")
    check(page)
    field = page.get_by_label("The token")
    field.fill(TOKEN[::-1])
    page.get_by_role("button", name="Log in").click()
    alert = page.get_by_role("alert")
    assert alert.inner_text() == "This is not the token with which the survey was started."
    assert page.title().startswith("Error: ")
    assert field.get_attribute("aria-describedby") == alert.get_attribute("id")
    assert field.input_value() == ""
    check(page)
    log_in(page, served.url)
    assert (figure(page, "Answers"), figure(page, "Flagged")) == ("0 of 40", "0 of 0")
    assert "No rater is flagged: both files are the same." in page.locator("main").inner_text()
    check(page)
    page.get_by_role("link", name="Download rankings").click()
    page.get_by_role("heading", name="Nothing to download").wait_for()
    page.get_by_role("link", name="Continue").click()
    page.get_by_role("button", name="Log out").click()
    page.get_by_label("The token").wait_for()


def test_answers_flagged_raters_and_downloads(open_page, served):
    served.take_part("careful", seconds=20)
    served.take_part("thorough", seconds=30)
    served.take_part("hasty", seconds=0.5)
    page = open_page()
    log_in(page, served.url)
    assert (figure(page, "Answers"), figure(page, "Flagged")) == ("6 of 40", "1 of 3")
    assert page.get_by_role("region").count() == 3
    flagged = page.get_by_role("region", name="Flagged raters").locator("tbody tr")
    (hasty,) = {answer.rater for answer in served.answers("hasty")}
    assert flagged.locator("th").all_inner_texts() == [hasty]
    assert "3 of 3 answers within 3 seconds" in flagged.inner_text()
    left_out = "Without flagged raters, 2 of 6 answers are left out. They are from 1 rater."
    assert page.get_by_text(left_out).is_visible()
    check(page)
    assert len(download_lines(page, "Download rankings")) == 6
    kept = download_lines(page, "Download without flagged raters")
    assert len(kept) == 4
    assert hasty not in {line["rater"] for line in kept}


def test_the_page_renews_itself_and_leaves_its_reader_alone(open_page, served):
    page = open_page()
    page.clock.install()
    log_in(page, served.url)
    region = page.get_by_role("region", name="Answers per question")
    region.focus()
    region.evaluate("region => { region.scrollLeft = 90; region.isTheSame = true; }")
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    before = page.evaluate("scrollY")
    served.take_part("hasty", seconds=0.5)
    renew(page)
    assert (figure(page, "Answers"), figure(page, "Flagged")) == ("2 of 40", "1 of 1")
    assert page.get_by_role("region", name="Flagged raters").locator("tbody tr").count() == 1
    assert region.evaluate("region => [region.isTheSame, region.scrollLeft]") == [True, 90]
    assert region.evaluate("region => region === document.activeElement")
    assert page.evaluate("scrollY") >= before > 0


def test_what_is_renewed_is_what_a_reload_shows(open_page, served):
    page = open_page()
    page.clock.install()
    log_in(page, served.url)
    for name, seconds in (("hasty", 0.5), ("careful", 20), ("fast", 0.5)):
        served.take_part(name, seconds)
        renew(page)
    assert figure(page, "Flagged") == "2 of 3"
    renewed = page.locator("#progress").inner_html()
    page.reload()
    assert page.locator("#progress").inner_html() == renewed


def test_a_slow_or_absent_server_and_an_ended_login(open_page, served):
    page = open_page()
    page.clock.install()
    log_in(page, served.url)
    waiting = []

    def hold(route):
        waiting.append(route)

    page.route("**/researcher/progress", hold)
    with page.expect_request("**/researcher/progress"):
        page.clock.run_for(10_000)
    page.clock.run_for(60_000)
    page.wait_for_timeout(100)
    # One at a time.
    assert len(waiting) == 1
    waiting[0].abort()
    page.get_by_text("The survey does not respond at the moment").wait_for()
    page.unroute("**/researcher/progress")
    renew(page)
    page.context.clear_cookies()
    page.clock.run_for(10_000)
    page.get_by_label("The token").wait_for()
