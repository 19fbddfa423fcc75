"""Extra questions after the last ranking: what is accepted, what is stored, when it is over."""

import pytest

from asgi_client import begin, dump, finish, form_of, open_survey, says
from rankshot_survey import ExtraQuestion
from rankshot_survey.answers import MOST_CHARACTERS, check_extra_answers
from small_studies import small_study

AGE = ExtraQuestion("age", "How old are you?", "number", least=18, most=120, required=True)
HEIGHT = ExtraQuestion("height", "How tall are you, in m?", "number", least=0.5, most=2.5)
PET = ExtraQuestion("form", "Which pet do you have?", "choice", choices=("cat", "no dog"))
NOTE = ExtraQuestion("note", "Anything else?", "text")
EXTRA = (AGE, HEIGHT, PET, NOTE)


@pytest.mark.parametrize(
    ("question", "sent", "value"),
    [
        (AGE, " 42 ", "42"),
        (AGE, "+018", "18"),
        (AGE, "٤٢", "42"),
        (HEIGHT, "1.75", "1.75"),
        (HEIGHT, "1,75", "1.75"),
        (HEIGHT, "١٫٥", "1.5"),
        (HEIGHT, "", ""),
        (ExtraQuestion("n", "n?", "number"), "\u22125", "-5"),
        (PET, "no dog", "no dog"),
        (NOTE, " two\r\nlines \x00", "two\nlines"),
        (NOTE, "x" * MOST_CHARACTERS, "x" * MOST_CHARACTERS),
    ],
)
def test_answers_that_are_accepted(question, sent, value):
    assert check_extra_answers({"x": question}, {"x": sent}) == ({question.name: value}, {})


@pytest.mark.parametrize(
    ("question", "sent", "key"),
    [
        (AGE, "", "missing"),
        (AGE, "17", "least"),
        (AGE, "121", "most"),
        *(
            (AGE, text, "whole")
            for text in ("old", "18.5", "1,000", "4_2", "1e2", "9" * 31, "20 30")
        ),
        *(
            (HEIGHT, text, "number")
            # 1,750 may be meant in two ways.
            for text in ("tall", "1,750", "1.7.5", "inf", "nan", "1e0", "1.")
        ),
        (HEIGHT, "3", "most"),
        (PET, "dog", "choice"),
        (NOTE, "x" * 2001, "long"),
    ],
)
def test_answers_that_are_refused(question, sent, key):
    values, errors = check_extra_answers({"x": question}, {"x": sent})
    assert (values, {name: error.key for name, error in errors.items()}) == (
        {},
        {"x": f"extra.{key}"},
    )


def test_the_page_asks_keeps_what_was_typed_and_leads_to_the_code(tmp_path):
    study = small_study(extra=EXTRA, completion_url="https://example.org/done")
    with open_survey(study, tmp_path) as (client, database):
        home = begin(client)
        # Not before the last ranking.
        assert client.get(f"{home}/extra")["location"] == home
        finish(client, home)
        assert client.get(home)["location"] == f"{home}/extra"
        page = client.get(f"{home}/extra")
        assert page.status == 200
        form = form_of(page.text)
        sent = {**form.fields, "extra-1": "17", "extra-3": "cat", "extra-4": "<b>&"}
        wrong = client.post(form.action, sent)
        assert wrong.status == 422
        assert "<title>Error: " in wrong.text
        assert says(wrong.text, "extra.least", least=18)
        assert 'value="17"' in wrong.text
        assert 'value="cat" checked' in wrong.text
        assert "&lt;b&gt;&amp;" in wrong.text
        assert dump(database)["extra_answer"] == []
        for fields, status in (
            ({**sent, "extra-1": "42", "form": "0" * len(sent["form"])}, 403),
            ({**sent, "extra-1": "42", "extra-5": "1"}, 422),
            ({**sent, "extra-1": "42", "extra-4": ["a", "b"]}, 422),
        ):
            assert client.post(form.action, fields).status == status, fields
            assert dump(database)["extra_answer"] == []
        assert client.post(form.action, {**sent, "extra-1": "42"})["location"] == home
        assert says(client.get(home).text, "finished.code")
        # Sent once more: the first answers stay.
        assert client.post(form.action, {**sent, "extra-1": "43"}).status == 303
        assert client.post(form.action, {**sent, "extra-1": "x"})["location"] == home
        stored = {row["name"]: row["value"] for row in dump(database)["extra_answer"]}
        assert stored == {"age": "42", "height": "", "form": "cat", "note": "<b>&"}
        assert 'href="https://example.org/done"' in client.get(home).text
