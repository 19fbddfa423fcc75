"""The researcher's pages in a browser; survey/tests/test_researcher_page.py says what they show."""

import pytest
from survey_pages import serve_study, small_study

from axe import check
from rankshot_survey.store.people import exclude
from rankshot_survey.study import Question

pytestmark = pytest.mark.slow

TOKEN = "0123456789abcdef0123"
STUDY = small_study(gold=(Question("dog", ("wolf", "bus", "cup"), ("wolf",)),))


def log_in(page, token):
    page.get_by_label("The token").fill(token)
    page.get_by_role("button", name="Log in").click()


def test_login_participants_answers_and_downloads(open_page, tmp_path):
    page = open_page()
    with serve_study(STUDY, tmp_path, TOKEN) as served:
        for name, seconds in (("careful", 20), ("thorough", 30), ("hasty", 0.5)):
            served.take_part(name, seconds)
        hasty, thorough = (
            served.database.identity.rater(f"none:id:{name}") for name in ("hasty", "thorough")
        )
        exclude(served.database, [thorough], "a <b>reason</b> & more")
        page.goto(f"{served.url}/researcher")
        log_in(page, TOKEN[::-1])
        assert page.get_by_role("alert").inner_text().startswith("This is not the token")
        check(page)
        log_in(page, TOKEN)
        page.get_by_role("heading", name="Progress of the survey").wait_for()
        # Those with flags come first.
        assert page.locator("#people tbody th").all_inner_texts()[0] == hasty
        assert "a <b>reason</b> & more" in page.locator("#people").inner_text()
        check(page)
        with page.expect_download() as download:
            page.get_by_role("link", name="Download without flagged raters", exact=True).click()
        assert len(download.value.path().read_text(encoding="utf-8").splitlines()) == 2
        assert page.get_by_text("4 of 4 answers within 3 seconds").is_visible()
