"""How many items a study may ask for: any, all or some of them."""

from contextlib import closing

import pytest

from asgi_client import begin, open_survey
from rankshot_survey.languages import ParticipantError, load_catalogue
from rankshot_survey.store.database import Database
from rankshot_survey.study import Question
from refusals import refuses
from small_studies import Visitors, small_study

ITEMS = ("bus", "cup", "fox", "leopard", "tram")
CAT, DOG = Question("cat", ITEMS), Question("dog", ITEMS)


def study_of(**changes):
    return small_study(items=ITEMS, questions=(CAT, DOG), **changes)


@pytest.mark.parametrize(("rank", "n"), [("all", 5), (3, 3)])
def test_as_many_items_are_ranked_as_the_study_says(tmp_path, rank, n):
    with closing(Database(tmp_path / "study.sqlite", create=True)) as database:
        people = Visitors(study_of(rank=rank), database)
        rater = people.start("a")
        asked = people.visits.current_question(rater)
        for some in {1, 2, 3, 4, 5} - {n}:
            with pytest.raises(ParticipantError) as caught:
                people.submit(rater, asked, asked.shown[:some])
            assert (caught.value.key, caught.value.fields["n"]) == ("question.exactly", some)
        people.submit(rater, asked, asked.shown[:n])
        people.answer(rater, rank=lambda _question, _shown: [])
        assert sorted(len(answer.order) for answer in people.view().answers) == [0, n]


def test_a_study_cannot_ask_for_more_items_than_a_question_shows():
    for rank in (6, "some", "best-worst"):
        with refuses("rank", rank):
            study_of(rank=rank)


@pytest.mark.parametrize(("rank", "key"), [(1, "by_number_one"), (3, "by_number_exactly")])
def test_the_page_says_how_many_items_are_ranked(tmp_path, rank, key):
    text = load_catalogue("en").texts[f"question.{key}"].format(n=rank)
    with open_survey(study_of(rank=rank), tmp_path) as (client, _):
        assert text in client.get(begin(client)).text
