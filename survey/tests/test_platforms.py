"""Ids of platforms: in by name, stored, out by name in the URLs, and in the export."""

from contextlib import closing

import pytest

from asgi_client import begin, finish, form_of, open_survey
from rankshot.core.errors import RankshotError
from rankshot_survey.export import format_csv, participant_records, wide_records
from rankshot_survey.overview import read_overview
from rankshot_survey.store.database import Database
from rankshot_survey.study import PLATFORM_IDS, Question
from rankshot_survey.study_files import format_study
from small_studies import Visitors, small_study
from survey_command import run_command

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
        code = read_overview(study, database, 0.0).codes[home[3:19]]
        assert f'href="https://x.example/credit?a=1&amp;survey_code=a%40b.1&amp;c={code}"' in last
        view = read_overview(study, database, 0.0)
    (row,) = participant_records(view, with_ids=True)
    assert row["survey_code"] == "a@b.1"
    (row,) = participant_records(view)
    assert "survey_code" not in row


def test_who_has_no_id_is_told_its_name(tmp_path):
    with open_survey(small_study(**SONA), tmp_path) as (client, _):
        assert "The address does not contain survey_code" in client.get("/?participant=x").text
        assert client.get("/?survey_code=a%20b").status == 400


@pytest.mark.parametrize("platform", sorted(PLATFORM_IDS.keys() - {"none", "other"}))
def test_every_platform_has_its_ids(tmp_path, platform):
    names = PLATFORM_IDS[platform]
    study = small_study(platform=platform)
    with open_survey(study, tmp_path) as (client, database):
        begin(client, "&".join(f"{name}=value{i}" for i, name in enumerate(names)))
        view = read_overview(study, database, 0.0)
    (rater,) = view.people
    assert view.find_ids(rater) == {name: f"value{i}" for i, name in enumerate(names)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"platform": "other"}, r"\[platform\] ids is missing"),
        ({"platform": "other", "ids": ("lang",)}, "ids has 'lang', which the survey uses"),
        ({"ids": ("a", "a")}, "it has 'a' more than once"),
        (
            {"platform": "sona", "completion_url": "https://x.example/{survey_cod}"},
            r"completion_url has 'survey_cod', which is not one of .*did you mean 'survey_code'",
        ),
    ],
)
def test_ids_that_cannot_work_are_refused(change, message):
    with pytest.raises(RankshotError, match=message):
        small_study(**change)


def test_the_export_says_which_ids_it_has(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(format_study(small_study(platform="cloudresearch")), encoding="utf-8")
    with closing(Database(tmp_path / "study.sqlite", create=True)) as database:
        people = Visitors(small_study(platform="cloudresearch"), database)
        people.start("p1", ids={"platform_id": "p1", "platform_session": "s1"})
        people.start("p2", ids={"platform_id": "p2"})
    words = f"export {path} --participants --with-ids -o {tmp_path}/people.csv"
    out = run_command(words).out
    assert "participantId: known for 2 of 2 participants" in out
    assert "projectId: known for 0 of 2 participants" in out
    assert "assignmentId: known for 1 of 2 participants" in out
    path.write_text(format_study(small_study()), encoding="utf-8")
    assert "no ids: without a [platform], none are stored" in run_command(words).out


def test_a_wide_table_has_the_place_of_each_item_and_a_codebook(tmp_path):
    items = ("=1+1", "a sentence about a cat", "fox", "wolf")
    asked = (Question("cat", items[:3]), Question("dog", items[1:]))
    study = small_study(items=items, questions=asked, unshown="unknown")
    path = tmp_path / "study.toml"
    path.write_text(format_study(study), encoding="utf-8")
    with closing(Database(tmp_path / "study.sqlite", create=True)) as database:
        people = Visitors(study, database)
        rater = people.start("a")
        people.answer(rater, rank=lambda question, _shown: question.items[:1])
        rows, book = wide_records(people.view())
    by_target = {row["target"]: row for row in rows}
    columns = ("item_1", "item_2", "item_3", "item_4")
    assert [by_target["cat"][name] for name in columns] == [1, 2, 2, None]
    assert [by_target["dog"][name] for name in columns] == [None, 1, 2, 2]
    assert (by_target["cat"]["n_shown"], by_target["cat"]["n_ranked"]) == (3, 1)
    assert {row["column"]: row["item"] for row in book[-4:]} == dict(
        zip(columns, items, strict=True)
    )
    assert [row["column"] for row in book] == list(rows[0])
    out = tmp_path / "wide.csv"
    assert "2 answers written" in run_command(f"export {path} --wide -o {out}").out
    assert out.read_text(encoding="utf-8") == format_csv(rows)
    book_text = (tmp_path / "wide_codebook.csv").read_text(encoding="utf-8")
    assert book_text == format_csv(book)
    assert "item_1,'=1+1," in book_text
