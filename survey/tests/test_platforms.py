"""Ids of platforms: in by name, stored, out by name in the URLs, and in the export."""

import pytest

from asgi_client import begin, finish, form_of, open_survey, says
from rankshot_survey.export import payment_records
from rankshot_survey.overview import read_overview
from rankshot_survey.study import PLATFORM_IDS
from refusals import ANY, refuses
from small_studies import small_study

BACK = "https://x.example/credit?a=1"
SONA = {
    "platform": "sona",
    "completion_url": f"{BACK}&survey_code={{survey_code}}&c={{code}}",
    "refusal_url": f"{BACK}&refused={{survey_code}}",
    "full_url": f"{BACK}&full={{survey_code}}",
}


def test_an_id_goes_out_by_its_name_as_it_came_in(tmp_path):
    study = small_study(**SONA)
    with open_survey(study, tmp_path) as (client, database):
        page = client.get("/?survey_code=a@b.1&other=x").text
        assert form_of(page).fields["survey_code"] == "a@b.1"
        assert "other" not in form_of(page).fields
        # Nothing is stored of who declines, and the id is in the way back.
        declined = client.get("/declined?survey_code=a@b.1").text
        assert 'href="https://x.example/credit?a=1&amp;refused=a%40b.1"' in declined
        home = begin(client, "survey_code=a@b.1")
        last = finish(client, home)
        view = read_overview(study, database, 0.0)
    (row,) = payment_records(view)
    assert row["id"] == "a@b.1"
    code = row["code"]
    assert f'href="https://x.example/credit?a=1&amp;survey_code=a%40b.1&amp;c={code}"' in last


def test_who_has_no_id_is_told_its_name(tmp_path):
    with open_survey(small_study(**SONA), tmp_path) as (client, _):
        page = client.get("/?participant=x").text
        assert says(page, "refused.no_id", name="survey_code")
        assert client.get("/?survey_code=a%20b").status == 400


@pytest.mark.parametrize("platform", sorted(PLATFORM_IDS.keys() - {"none", "other"}))
def test_every_platform_has_its_ids(tmp_path, platform):
    names = PLATFORM_IDS[platform]
    study = small_study(platform=platform)
    with open_survey(study, tmp_path) as (client, database):
        begin(client, "&".join(f"{name}=value{i}" for i, name in enumerate(names)))
        view = read_overview(study, database, 0.0)
    (person,) = view.people.values()
    stored = (person.row.platform_id, person.row.platform_study, person.row.platform_session)
    assert stored[: len(names)] == tuple(f"value{i}" for i in range(len(names)))


@pytest.mark.parametrize(
    ("change", "key", "value"),
    [
        ({"platform": "other"}, "ids", ANY),
        ({"platform": "other", "ids": ("lang",)}, "ids", "lang"),
        ({"ids": ("a", "a")}, "ids", ("a", "a")),
        (
            {"platform": "sona", "completion_url": "https://x.example/{survey_cod}"},
            "completion_url",
            "survey_cod",
        ),
    ],
)
def test_ids_that_cannot_work_are_refused(change, key, value):
    with refuses(key, value):
        small_study(**change)
