"""What a study may ask for: any, all or some of the items, the first and the last, conditions."""

from collections import Counter

import numpy as np
import pytest

import rankshot as rs
from asgi_client import begin, form_of, open_survey
from rankshot.core.errors import RankshotError
from rankshot_survey.export import participant_records, ranking_records, write_records
from rankshot_survey.languages import ParticipantError
from rankshot_survey.overview import read_answers
from rankshot_survey.quality import is_correct
from rankshot_survey.store.database import Database
from rankshot_survey.store.participation import Submission
from rankshot_survey.study import Question
from rankshot_survey.study_files import format_study, read_study
from small_studies import Visitors, small_study

ITEMS = ("bus", "cup", "fox", "leopard", "tram")
CAT, DOG = Question("cat", ITEMS), Question("dog", ITEMS)
GOLD = Question("wolf", ITEMS, ("fox", "leopard"))


def study_of(**changes):
    return small_study(items=ITEMS, questions=(CAT, DOG), **changes)


@pytest.fixture
def visit(tmp_path):
    """Return a function that opens a study for people without a server."""
    opened = []

    def start(study):
        opened.append(Database(tmp_path / f"{len(opened)}.sqlite", create=True))
        return Visitors(study, opened[-1])

    yield start
    for database in opened:
        database.close()


@pytest.mark.parametrize(("rank", "n"), [("all", 5), (3, 3)])
def test_as_many_items_are_ranked_as_the_study_says(visit, rank, n):
    people = visit(study_of(rank=rank))
    rater = people.start("a")
    asked = people.visits.current_question(rater)
    for some in {1, 2, 3, 4, 5} - {n}:
        with pytest.raises(ParticipantError, match=f"exactly {n}. Now ranked: {some}"):
            people.submit(rater, asked, asked.shown[:some])
    people.submit(rater, asked, asked.shown[:n])
    people.answer(rater, rank=lambda _question, _shown: [])
    assert sorted(len(answer.order) for answer in people.view().answers) == [0, n]


def test_a_study_cannot_ask_for_more_items_than_a_question_shows():
    with pytest.raises(RankshotError, match=r"rank is 6, but a question shows 5 items"):
        study_of(rank=6)
    with pytest.raises(RankshotError, match=r"\[plan\] rank is 'some': it must be"):
        study_of(rank="some")


@pytest.mark.parametrize(
    ("rank", "lead"), [(1, "Choose the one item that fits best."), (3, "Choose the 3 items that")]
)
def test_the_page_says_how_many_items_are_ranked(tmp_path, rank, lead):
    with open_survey(study_of(rank=rank), tmp_path) as (client, _):
        assert lead in client.get(begin(client)).text


def choose(people, rater, first, last):
    """Send the first and the last item of a best-worst question, by name."""
    asked = people.visits.current_question(rater)
    chosen = [str(asked.shown.index(name)) for name in (first, last)]
    people.now += 9
    (problem,) = people.visits.submit_all([Submission(rater, asked.number, asked.form, chosen)])
    if problem is not None:
        raise problem
    return asked


def test_first_and_last_are_a_ranking_with_the_others_tied(visit, tmp_path):
    people = visit(study_of(rank="best-worst", gold=(GOLD,), repeats=1))
    rater = people.start("a")
    for sent in (["0"], ["0", "0"], ["0", "5"], ["0", "x"], ["", ""], []):
        asked = people.visits.current_question(rater)
        submission = Submission(rater, asked.number, asked.form, sent)
        (problem,) = people.visits.submit_all([submission])
        assert isinstance(problem, ParticipantError)
        assert "another one that fits it worst" in str(problem)
    targets = [choose(people, rater, "fox", "bus").question.target for _ in range(4)]
    view = people.view()
    assert sorted(Counter(targets).values()) == [1, 1, 2]
    assert {a.order for a in view.answers} == {("fox", ("cup", "leopard", "tram"), "bus")}
    assert view.people[rater].flags == ()
    path = tmp_path / "rankings.jsonl"
    write_records(path, ranking_records(view.study, view.answers, view.flags))
    read = rs.read_rankings(path, items=ITEMS)
    assert read.orders() == [["fox", ["cup", "leopard", "tram"], "bus"]] * 2
    assert view.targets[0].consensus == ("fox", ("cup", "leopard", "tram"), "bus")


def test_the_page_asks_for_the_first_and_the_last_item(tmp_path):
    """It works without a script, and keeps what was chosen if it is sent back."""
    with open_survey(study_of(rank="best-worst"), tmp_path) as (client, database):
        home = begin(client)
        assert "fits it worst" in client.get(f"{home}/instructions").text
        form = form_of(client.get(home).text)
        reply = client.post(form.action, {**form.fields, "first": "3", "last": "3"})
        assert reply.status == 422
        assert "another one that fits it worst" in reply.text
        assert reply.text.count(" checked") == 2
        assert client.post(form.action, {**form.fields, "first": "3", "last": "0"}).status == 303
        kept = client.post(form.action, {**form.fields, "first": "1", "last": "0"})
        assert kept.status == 409
        assert kept.text.count("<li ") == 2
        with database.begin_read() as connection:
            (answer,) = read_answers(connection)
    assert (answer.order[0], answer.order[-1]) == (answer.shown[3], answer.shown[0])


@pytest.mark.parametrize(
    ("first", "last", "right"), [("fox", "bus", 1), ("fox", "leopard", 0), ("bus", "cup", 0)]
)
def test_a_gold_question_is_correct_if_nothing_comes_before_the_known_items(
    visit, first, last, right
):
    people = visit(study_of(rank="best-worst", gold=(GOLD,)))
    rater = people.start("a")
    for _ in range(3):
        choose(people, rater, first, last)
    (gold,) = (answer for answer in people.view().answers if answer.question.is_gold)
    assert is_correct(gold) == right


def test_conditions_have_as_many_people_their_own_prompts_and_questions(visit, tmp_path):
    """Half of 20 people are in each condition; the cat is asked in one of them alone."""
    prompts = {"gain": "Which {target} to gain?", "loss": "Which {target} to lose?"}
    questions = (Question("cat", ITEMS, condition="gain"), DOG)
    study = small_study(
        items=ITEMS,
        questions=questions,
        conditions=prompts,
        gold=(GOLD,),
        questions_per_participant=2,
    )
    path = tmp_path / "study.toml"
    path.write_text(format_study(study), encoding="utf-8")
    assert read_study(path) == study
    people = visit(study)
    raters = [people.start(f"p{i}") for i in range(20)]
    view = people.view()
    # Also of those who have answered nothing yet.
    conditions = {row["rater"]: row["condition"] for row in participant_records(view)}
    assert 8 <= list(conditions.values()).count("gain") <= 12
    # Not one after the other.
    assert list(conditions.values()) != ["gain", "loss"] * 10
    for rater in raters:
        asked = people.visits.current_question(rater)
        assert asked.question.condition == conditions[rater]
        people.answer(rater)
    view = people.view()
    given = Counter((a.question.target, a.question.condition) for a in view.answers)
    assert given["cat", "loss"] == 0
    assert given["cat", "gain"] == given["dog", "gain"] == given["wolf", "gain"]
    assert [(row.target, row.condition) for row in view.targets] == [
        *(("cat", "gain"), ("dog", "gain"), ("dog", "loss"))
    ]
    records = ranking_records(study, view.answers, view.flags)
    assert {record["rater"]: record["condition"] for record in records} == conditions


def test_an_unknown_condition_is_named():
    with pytest.raises(RankshotError, match=r"'gian', which is not under \[conditions\].*'gain'"):
        small_study(
            items=ITEMS,
            questions=(Question("cat", ITEMS, condition="gian"),),
            conditions={"gain": "Which {target}?"},
        )
    with pytest.raises(RankshotError, match=r"\[conditions\] loss has no question: add one"):
        small_study(
            items=ITEMS,
            questions=(Question("cat", ITEMS, condition="gain"),),
            conditions={"gain": "Which {target}?", "loss": "Which {target}?"},
        )


def test_drawn_sets_work_with_conditions_and_first_and_last(visit):
    pool = Question("all items", tuple(f"item {i}" for i in range(8)), show=4)
    study = small_study(
        items=pool.items,
        questions=(pool,),
        conditions={"a": "First?", "b": "Last?"},
        rank="best-worst",
        unshown="unknown",
    )
    people = visit(study)
    for i in range(6):
        rater = people.start(f"p{i}")
        for _ in range(4):
            shown = people.visits.current_question(rater).shown
            choose(people, rater, min(shown), max(shown))
    rows = people.view().targets
    assert [(row.condition, row.answered) for row in rows] == [("a", 12), ("b", 12)]
    for row in rows:
        assert row.places[0].item == "item 0"
        assert row.places[-1].item == "item 7"
        worths = [place.log_worth for place in row.places]
        assert np.all(np.diff(worths) <= 0)
