"""A small study for the tests, and changes of it."""

from contextlib import closing
from random import Random

from rankshot_survey.overview import read_answers, read_overview
from rankshot_survey.store.database import Database
from rankshot_survey.store.participation import CurrentQuestion, Participation
from rankshot_survey.study import Question, Study

ITEMS = ("bus", "fox", "leopard")


def small_study(**changes):
    """Return a study of four questions, or one that differs in some fields.

    With other items, but without questions, each of the four targets has all items.
    """
    items = changes.get("items", ITEMS)
    plan = {
        "title": "Alike",
        "prompt": "Which of these are most like {target}?",
        "consent": "Do you agree?",
        "items": items,
        "unshown": "after",
        "questions": questions_about("cat", "dog", "car", "van", items=items),
        "answers_per_question": 1_000_000,
        "questions_per_participant": 4,
        "repeats": 0,
        # All requests come from few addresses.
        "starts_per_hour": 1_000_000,
    }
    return Study(**plan | changes)


def questions_about(*targets, items=ITEMS):
    """Return one question per target, which shows all items."""
    return tuple(Question(target, items) for target in targets)


def prolific_ids(person, study, session):
    """Return what is stored of somebody who comes from Prolific."""
    return {"platform_id": person, "platform_study": study, "platform_session": session}


def read_all(path):
    """Return the number of answers, as `status` reads them."""
    with (
        closing(Database(path, read_only=True)) as database,
        database.begin_read() as connection,
    ):
        return len(read_answers(connection))


class Visitors:
    """People who take part without a server, with a clock that tests set."""

    def __init__(self, study, database, seed=0):
        self.study, self.database, self.now = study, database, 1e9
        clock = lambda: self.now  # noqa: E731
        self.questions = {q.key: q for q in (*study.asked, *study.gold)}
        self.visits = Participation(study, database, clock, Random(seed))

    def start(self, name, **more):
        return self.visits.start(f"{self.study.platform}:id:{name}", **more)

    def answer(self, rater, n=100, *, rank=lambda _question, shown: shown[:2], seconds=9.0):
        """Answer the next questions, or skip those without a ranking; return what comes then."""
        for _ in range(n):
            asked = self.visits.current_question(rater)
            if not isinstance(asked, CurrentQuestion):
                return asked
            self.now += seconds
            self.submit(rater, asked, rank(self.questions[asked.key], asked.shown))
        return None

    def view(self, **which):
        """Return what the researcher sees now."""
        return read_overview(self.study, self.database, self.now, **which)

    def submit(self, rater, asked, order):
        """Send an answer, or a skip if nothing is ranked; raise what is wrong with it."""
        order = list(order)
        places = [str(order.index(x) + 1) if x in order else "" for x in asked.shown]
        self.visits.submit(rater, asked.number, asked.form, places, skip=not order)
