"""Who may start and go on, and what the others read."""

import re
import time

import pytest

from asgi import Client
from asgi_client import begin, dump, finish, form_of, open_survey, says
from rankshot_survey.export import payment_records
from rankshot_survey.overview import read_overview
from rankshot_survey.store.people import release, set_state
from refusals import ANY, refuses
from small_studies import small_study

DONE = "https://app.prolific.com/submissions/complete?cc=C1A2B3"
FULL = "https://app.prolific.com/submissions/complete?cc=FULL&amp;a=1"
REFUSED = "https://app.prolific.com/submissions/complete?cc=N0&a=1"
STUDY = small_study(
    platform="prolific",
    completion_url=DONE,
    full_url=FULL.replace("&amp;", "&"),
    refusal_url=REFUSED,
)
BACK = f'href="{REFUSED.replace("&", "&amp;")}"'
ANN = "PROLIFIC_PID=ann&STUDY_ID=study&SESSION_ID=one"


@pytest.fixture
def opened(tmp_path):
    with open_survey(STUDY, tmp_path) as made:
        yield made


def people(database, **more):
    view = read_overview(STUDY, database, time.time(), **more)
    return [person.row for person in view.people.values()]


def count_answers(database):
    return sum(row["answer"] is not None for row in dump(database)["assignment"])


def rater_of(database, home):
    return database.identity.verify_link(home.removeprefix("/p/"))


# ---- Prolific


def test_the_ids_of_the_submission_are_kept_and_the_latest_counts(opened):
    client, database = opened
    assert client.get("/").status == 400, "who does not come from Prolific"
    home = begin(client, ANN)
    assert begin(client, ANN.replace("one", "two")) == home
    (ann,) = people(database)
    ids = (ann.platform_id, ann.platform_study, ann.platform_session)
    assert ids == ("ann", "study", "two")
    assert DONE not in client.get(home).text
    assert f'href="{DONE}"' in finish(client, home)
    # Who has finished reads that at once.
    reply = client.get(f"/?{ANN.replace('one', 'three')}")
    assert (reply.status, reply["location"]) == (303, home)
    assert people(database)[0].platform_session == "two"


def test_who_finds_no_question_returns_to_prolific(tmp_path):
    study = small_study(
        platform="prolific", full_url=STUDY.full_url, answers_per_question=1, spare_answers=0
    )
    with open_survey(study, tmp_path) as (client, database):
        begin(client, ANN)
        late = form_of(client.get("/?PROLIFIC_PID=ann").text)
        for page in (
            client.get("/?PROLIFIC_PID=bob"),
            client.post("/start", {**late.fields, "PROLIFIC_PID": "bob"}),
        ):
            assert page.status == 503
            assert f'href="{FULL}"' in page.text
            assert "Return to Prolific" in page.text
        assert len(people(database)) == 1


# ---- Nothing answered


def test_who_skips_everything_gets_no_code(opened):
    client, database = opened
    home = begin(client, ANN)
    page = finish(client, home, skip="yes")
    for code in ("C1A2B3", database.identity.code(rater_of(database, home))):
        assert code not in page
    assert BACK in page


# ---- Withdrawal


def test_withdrawal_is_asked_for_and_deletes_at_once(opened):
    client, database = opened
    home = begin(client, ANN)
    form = form_of(client.get(home).text)
    assert client.post(form.action, form.answer("1")).status == 303
    for page in (home, f"{home}/instructions"):
        assert f'href="{home}/withdraw"' in client.get(page).text
    open_page = form_of(client.get(home).text)
    asked = form_of(client.get(f"{home}/withdraw").text)
    assert len(dump(database)["assignment"]) == 4
    reply = client.post(asked.action, asked.fields)
    assert (reply.status, reply["location"]) == (303, home)
    mine = [a for a in dump(database)["assignment"] if a["rater"] == rater_of(database, home)]
    assert mine == []
    pages = (
        client.get(home),
        client.get(f"/?{ANN}"),
        client.post(open_page.action, open_page.answer("1")),
    )
    for page in pages:
        assert page.status == 410
        assert says(page.text, "stopped.withdrawn_heading")
        assert BACK in page.text
    # Once more changes nothing.
    assert client.post(asked.action, asked.fields).status == 303
    assert client.get(f"/p/{'0' * 48}/withdraw").status == 404


# ---- An id is not a secret


def test_who_only_knows_an_id_reads_nothing_about_it_and_gets_no_link(tmp_path):
    with open_survey(small_study(), tmp_path) as (client, database):
        gone = Client(client.app)
        homes = {"left": begin(client, "participant=left"), "gone": begin(gone, "participant=gone")}
        form = form_of(gone.get(f"{homes['gone']}/withdraw").text)
        gone.post(form.action, form.fields)
        stranger = Client(client.app, "192.0.2.9")
        pages = set()
        for name in ("new", *homes):
            page = stranger.get(f"/?participant={name}").text
            pages.add(re.sub(f'value="({name}|[0-9a-f]{{64}})"|={name}&', "", page))
        assert len(pages) == 1, "alike for all"
        before = dump(database)
        for name in homes:
            form = form_of(stranger.get(f"/?participant={name}").text)
            reply = stranger.post(form.action, form.fields)
            assert (reply.status, "started elsewhere" in reply.text) == (409, True)
            assert "set-cookie" not in dict(reply.headers)
        assert dump(database) == before
        # In the own browser, and by the link, everything goes on.
        assert begin(client, "participant=left") == homes["left"]
        assert stranger.get(homes["left"]).status == 200
        assert gone.get("/?participant=gone").status == 410
        release(database, [rater_of(database, homes["left"])])
        assert begin(stranger, "participant=left") == homes["left"]
        assert begin(stranger, "participant=left") == homes["left"], "it is their browser now"


def test_the_same_form_sent_twice_is_one_person_even_without_cookies(opened):
    client, database = opened
    form = form_of(client.get(f"/?{ANN}").text)
    replies = []
    for _ in range(2):
        client.cookies.clear()
        replies.append(client.post(form.action, form.fields))
    assert [reply["location"] for reply in replies] == [replies[0]["location"]] * 2
    assert len(people(database)) == 1


def test_who_has_no_id_gets_no_cookie(tmp_path):
    with open_survey(small_study(), tmp_path) as (client, _):
        homes = {begin(client, "lang=en") for _ in range(2)}
        assert (len(homes), client.cookies) == (2, {})
        begin(client, "participant=ann")
        assert list(client.cookies) == ["rankshot_participant"]


def test_a_parameter_that_is_there_twice_is_refused(opened):
    assert opened[0].get("/?PROLIFIC_PID=ann&PROLIFIC_PID=bob").status == 422


# ---- States


def test_a_paused_study_says_so_and_keeps_what_is_sent(opened):
    client, database = opened
    home = begin(client, ANN)
    form = form_of(client.get(home).text)
    fields = form_of(client.get("/?PROLIFIC_PID=bob").text).fields
    set_state(database, "paused")
    assert client.post(form.action, form.answer("1")).status == 303
    begun = client.get(home), client.get(f"/?{ANN}")
    new = client.get("/?PROLIFIC_PID=bob"), client.post("/start", fields)
    assert [page.status for page in (*begun, *new)] == [503] * 4
    # Who has begun goes on later: a code would end the submission.
    assert [f'href="{FULL}"' in page.text for page in (*begun, *new)] == [False] * 2 + [True] * 2
    assert count_answers(database) == 1
    set_state(database, "open")
    assert "C1A2B3" in finish(client, home)


def test_a_pilot_says_that_it_is_a_test_and_a_closed_study_takes_nobody_new(opened):
    client, database = opened
    text = "This is a test"
    assert text not in client.get(f"/?{ANN}").text
    set_state(database, "pilot")
    assert text in client.get(f"/?{ANN}").text
    home = begin(client, ANN)
    assert text in client.get(home).text
    assert text in finish(client, home)
    assert people(database) == []
    assert len(people(database, pilot=True)) == 1
    set_state(database, "open")
    home = begin(client, "PROLIFIC_PID=eve")
    set_state(database, "closed")
    page = client.get("/?PROLIFIC_PID=bob")
    assert page.status == 410
    assert f'href="{FULL}"' in page.text
    assert BACK not in page.text
    assert begin(client, "PROLIFIC_PID=eve") == home
    assert "C1A2B3" in finish(client, home)


# ---- Who may start


def test_only_ids_of_the_list_start_and_nothing_is_stored_of_others(tmp_path):
    study = small_study(platform="prolific", refusal_url=REFUSED, allowed=frozenset({"ann", "bob"}))
    with open_survey(study, tmp_path) as (client, database):
        fields = form_of(client.get(f"/?{ANN}").text).fields
        for name in ("eve", "ANN", "ann."):
            before = dump(database)
            reply = client.get(f"/?PROLIFIC_PID={name}")
            assert (reply.status, f"{BACK}>Return to Prolific<" in reply.text) == (403, True)
            assert client.post("/start", {**fields, "PROLIFIC_PID": name}).status == 403
            assert dump(database) == before
        assert begin(client, ANN)


# ---- Ids of platforms: in by name, stored, out by name in the URLs

CREDIT = "https://x.example/credit?a=1"
SONA = {
    "platform": "sona",
    "completion_url": f"{CREDIT}&survey_code={{survey_code}}&c={{code}}",
    "refusal_url": f"{CREDIT}&refused={{survey_code}}",
    "full_url": f"{CREDIT}&full={{survey_code}}",
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
