"""A page that was left open until its question went to somebody else."""

import json

from asgi_client import Client, begin, finish, form_of, open_survey
from small_studies import small_study
from sqlalchemy import select

from rankshot.survey.store.database import ASSIGNMENT, PARTICIPANT
from rankshot.survey.study import Question

STUDY = small_study(
    items=("bus", "fox", "leopard", "rose", "tulip", "oak"),
    unshown="unknown",
    questions=(
        Question("cat", ("bus", "fox", "leopard")),
        Question("elm", ("rose", "tulip", "oak")),
    ),
    answers_per_question=1,
    questions_per_participant=1,
)


def test_what_was_wrong_with_one_question_is_not_said_of_another(tmp_path):
    with open_survey(STUDY, tmp_path) as (app, database):
        client = Client(app)
        late = begin(client, "participant=late")
        old = form_of(client.get(late).text)
        begin(client, "participant=other")
        raters = {name: database.identity.rater(f"none:id:{name}") for name in ("late", "other")}
        with database.begin_write() as connection:
            had = connection.execute(
                select(ASSIGNMENT.c.question).where(ASSIGNMENT.c.rater == raters["late"])
            ).scalar_one()
            # The other one has answered the question of the late one, who was away for long.
            connection.execute(
                ASSIGNMENT.update()
                .where(ASSIGNMENT.c.rater == raters["other"])
                .values(question=had, shown_at=1.0, answered_at=2.0, answer='["bus"]')
            )
            connection.execute(
                PARTICIPANT.update()
                .where(PARTICIPANT.c.rater == raters["late"])
                .values(seen_at=0.0)
            )
        reply = client.post(old.action, {**old.fields, "place": ["1", "1", ""]})
        assert reply.status == 422
        assert "used twice" in reply.text
        assert "This answer was not saved" in reply.text
        assert 'name="place"' not in reply.text
        # The question that is theirs now begins with nothing ranked.
        page = client.get(late).text
        assert page.count('name="place"') == 3
        assert "selected" not in page
        assert client.post(old.action, {**old.fields, "place": ["1", "2", ""]}).status == 403


def test_a_full_survey_says_so_before_it_asks_for_consent(tmp_path):
    with open_survey(STUDY, tmp_path) as (app, _):
        client = Client(app)
        homes = [begin(client, f"participant={name}") for name in ("ann", "bob")]
        late = client.get("/?participant=late")
        assert late.status == 503
        assert "<form" not in late.text
        assert client.get("/").status == 503
        # Who has begun goes on, and sees the end again.
        assert begin(client, "participant=ann") == homes[0]
        for home in homes:
            assert "completion code" in finish(client, home)
        assert client.get("/?participant=ann").status == 200


def test_a_page_with_another_order_of_the_same_items_is_refused(tmp_path):
    with open_survey(STUDY, tmp_path) as (app, database):
        client = Client(app)
        home = begin(client, "participant=ann")
        old = form_of(client.get(home).text)
        with database.begin_write() as connection:
            mine = ASSIGNMENT.c.rater == database.identity.rater("none:id:ann")
            shown = connection.execute(select(ASSIGNMENT.c.shown).where(mine)).scalar_one()
            items = json.dumps(json.loads(shown)[::-1])
            # As after a reset and a new start.
            connection.execute(ASSIGNMENT.update().where(mine).values(shown=items))
        assert client.post(old.action, {**old.fields, "place": ["1", "2", ""]}).status == 403
