"""A whole paid study: who comes, leaves, is replaced, is paid, and is deleted on request."""

from collections import Counter
from contextlib import closing
from random import Random

from asgi_client import MANY, dump
from prolific import COMPLETE, FULL, NO_CONSENT, TIME_OUT, Prolific, completion_code
from server_process import TOKEN
from small_studies import questions_about, small_study

from command_line import rankshot
from rankshot.survey.deletion import delete_everywhere
from rankshot.survey.export import read_payments
from rankshot.survey.overview import read_overview
from rankshot.survey.store.assignment import count_answers
from rankshot.survey.store.database import Database
from rankshot.survey.store.participation import Participation
from rankshot.survey.store.people import exclude
from rankshot.survey.study import Question
from rankshot.survey.study_files import format_study
from rankshot.survey.web import app as app_module

ITEMS = ("bus", "fox", "leopard", "tram", "whale")
TARGETS = ("cat", "dog", "car", "van", "seal", "wolf", "lion", "bike")
GOLD = Question("lorry", ("truck", "rose", "fox"), first=("truck",))


def plan(n_targets, answers):
    return small_study(
        items=ITEMS,
        questions=questions_about(*TARGETS[:n_targets], items=ITEMS),
        gold=(GOLD,),
        answers_per_question=answers,
        questions_per_participant=4,
        repeats=1,
        platform="prolific",
        completion_url=COMPLETE,
        full_url=FULL,
        refusal_url=NO_CONSENT,
    )


# ---- People


def think(visit):
    """Return what somebody careful says."""
    if visit.target == "lorry":
        return ["truck", "fox"]
    order = Random(visit.target).sample(ITEMS, 5)
    # People differ a little, but not from themselves.
    swap = Random(f"{visit.target} {visit.number}").randrange(4)
    order[swap : swap + 2] = reversed(order[swap : swap + 2])
    return order


def careful(visit, seconds=12):
    """Answer everything, and return with the code."""
    if not visit.agree():
        visit.follow("Return to Prolific")
        return
    while visit.target:
        yield seconds
        assert visit.answer(think(visit)) == 200
    assert visit.code == completion_code(COMPLETE), "not our own code"
    yield 5
    visit.follow("Return to Prolific")


def bot(visit):
    """Answer at random, at once."""
    assert visit.agree()
    while visit.target:
        yield 0.1
        visit.answer(visit.shown)
    visit.follow("Return to Prolific")


def gives_back(visit):
    """Answer two questions, and return the submission at Prolific."""
    assert visit.agree()
    for _ in range(2):
        yield 30
        visit.answer(think(visit))
    visit.give_back()


def falls_asleep(visit):
    """Answer one question, and leave the page open until the submission times out."""
    assert visit.agree()
    yield 30
    visit.answer(think(visit))
    yield TIME_OUT + 60


def disagrees(visit):
    """Read the consent, and do not agree."""
    assert visit.open()
    yield 20
    visit.follow("I do not agree")
    visit.follow("Return to Prolific")


def withdraws(visit):
    """Answer two questions, and withdraw."""
    assert visit.agree()
    for _ in range(2):
        yield 30
        visit.answer(think(visit))
    visit.follow("Withdraw")
    assert visit.send() == 410
    visit.follow("Return to Prolific")


def skips_all(visit):
    """Skip everything, and leave without a code."""
    assert visit.agree()
    while visit.target:
        yield 5
        visit.skip()
    assert visit.code is None
    visit.follow("without a code")


def skips_and_returns(visit):
    """Skip everything, and then answer after all."""
    assert visit.agree()
    while visit.target:
        yield 5
        visit.skip()
    assert visit.code is None
    assert visit.send() == 200
    yield from finish(visit)


def finish(visit):
    while visit.target:
        yield 12
        visit.answer(think(visit))
    visit.follow("Return to Prolific")


SPECIAL = [
    careful,
    gives_back,
    bot,
    careful,
    bot,
    disagrees,
    falls_asleep,
    withdraws,
    careful,
    skips_all,
    skips_and_returns,
    gives_back,
    falls_asleep,
    disagrees,
]


def people(special):
    yield from special
    while True:
        yield careful


# ---- The study


class PaidStudy:
    """A study on a database, with people from Prolific."""

    def __init__(self, study, place, special, monkeypatch):
        self.study = study
        self.database = Database(place, create=True)

        def participate(study, database):
            return Participation(study, database, self.clock, Random(4), self.clock)

        monkeypatch.setattr(app_module, "Participation", participate)
        app = app_module.create_app(study, self.database, token=TOKEN, rates=MANY)
        self.prolific = Prolific(app, people(special))

    def clock(self):
        return self.prolific.now

    def cells(self):
        """Return the numbers of answers, and how many questions have them."""
        with self.database.begin_read() as connection:
            loads = count_answers(connection, self.study, self.prolific.now)
        return Counter(load.given for load in loads.values())

    def count(self):
        return sum(given * n for given, n in self.cells().items())

    def fill(self):
        """Open places until everything is answered; return how many were needed."""
        while not any(s.status == "returned: full" for s in self.prolific.submissions):
            self.prolific.run(1)
        return self.prolific.places

    def decisions(self):
        found = {}
        for payment in read_payments(self.study, self.database):
            found.setdefault(payment.decision, []).append(payment.id)
        return found

    def persons(self):
        return read_overview(self.study, self.database, self.clock()).people.values()

    def find_paid(self):
        """Return somebody who answered four questions and was paid."""
        paid = self.decisions()["approve"]
        return next(p for p in self.persons() if p.ids["platform_id"] in paid and p.n_answers == 4)

    def check_cells(self):
        """Hold that every question has its answers, and at most the spare ones more."""
        given = self.cells()
        planned, spare = self.study.answers_per_question, self.study.n_spare
        assert min(given) >= planned
        assert max(given) <= planned + spare

    def pay(self):
        """Look at who is flagged, exclude them, pay the others; return the excluded."""
        flagged = self.decisions().get("look at", [])
        raters = [p.rater for p in self.persons() if p.ids["platform_id"] in flagged]
        exclude(self.database, raters, "answers within a second")
        decided = self.decisions()
        self.prolific.decide(decided["approve"], "approved")
        self.prolific.decide(decided.get("reject", []), "rejected")
        return flagged


def run_study(paid, n_first):
    """Run the study to its end, as a researcher would."""
    paid.prolific.run(n_first)
    paid.fill()
    paid.check_cells()
    before = paid.count()
    flagged = paid.pay()
    assert before - paid.count() == 4 * len(flagged)
    if flagged:
        # The places of the excluded are free for others.
        for submission in paid.prolific.submissions:
            submission.status = submission.status.replace("returned: full", "returned")
        paid.fill()
        paid.check_cells()
        assert paid.pay() == []
    return flagged


def check_everybody_is_settled(paid):
    """Hold that all are paid or named, and that Prolific and the survey agree on it."""
    statuses = paid.prolific.statuses()
    assert set(statuses.values()) <= {
        "approved",
        "rejected",
        "returned",
        "returned: full",
        "returned: no consent",
        "timed out",
    }
    decided = {name: decision for decision, names in paid.decisions().items() for name in names}
    expected = {
        "approved": {"approve"},
        "rejected": {"reject"},
        # Gone at Prolific: they have not finished, or have withdrawn, or never started.
        "returned": {"wait", None},
        "returned: full": {None},
        "returned: no consent": {"return", None},
        "timed out": {"wait"},
    }
    for name, status in statuses.items():
        assert decided.get(name) in expected[status], (name, status)
    assert set(decided) <= set(statuses)


def test_a_paid_study_from_the_first_arrival_to_the_deletion_of_somebody(tmp_path, monkeypatch):
    study = plan(8, answers=5)
    assert study.n_spare == 3
    (tmp_path / "study.toml").write_text(format_study(study), encoding="utf-8")
    paid = PaidStudy(study, tmp_path / "study.sqlite", SPECIAL, monkeypatch)
    with closing(paid.database):
        bots = run_study(paid, n_first=10)
        assert [paid.prolific.statuses()[name] for name in bots] == ["rejected"] * 2
        check_everybody_is_settled(paid)
        statuses = Counter(paid.prolific.statuses().values())
        assert statuses["rejected"] == 2
        assert statuses["timed out"] == 2
        assert statuses["returned"] == 2 + 1, "two gave back, and one found a full study"
        assert statuses["returned: no consent"] == 4
        # 40 answers of 4 each are 10 people; the spare answers cost at most as many again.
        assert 10 <= statuses["approved"] <= 12
        check_deletion(paid, tmp_path)


def check_deletion(paid, folder):
    """Delete somebody who was paid, from everything that there is."""

    def command(words):
        done = rankshot(f"survey {words.replace('STUDY', f'{folder}/study.toml')}")
        assert done.status == 0, done.err

    command(f"export STUDY -o {folder}/rankings.jsonl")
    command(f"export STUDY --raw -o {folder}/raw.jsonl")
    command(f"export STUDY --raw -o {folder}/raw.csv")
    command(f"export STUDY --participants --with-ids -o {folder}/people.csv")
    command(f"payments STUDY --approve -o {folder}/approve.csv")
    command(f"payments STUDY --approve -o {folder}/approve.txt")
    command(f"backup STUDY -o {folder}/backup.sqlite")
    person = paid.find_paid()
    code = paid.database.identity.code(person.rater)
    traces = [
        text.encode()
        for text in (person.rater, code, person.ids["platform_id"], person.ids["platform_session"])
    ]

    def files_with_traces():
        files = [path for path in folder.iterdir() if path.name != "study.toml"]
        return {path.name for path in files if any(t in path.read_bytes() for t in traces)}

    exported = {"rankings.jsonl", "raw.jsonl", "raw.csv", "people.csv", "approve.csv"}
    exported |= {"approve.txt", "backup.sqlite"}
    assert files_with_traces() >= exported
    assert files_with_traces() & {"study.sqlite", "study.sqlite-wal"}
    before = paid.count()
    also = " ".join(f"--also {folder}/{name}" for name in sorted(exported))
    platform_id = person.ids["platform_id"]
    command(f"delete STUDY {platform_id} --yes {also}")
    assert files_with_traces() == set()
    assert before - paid.count() == 4
    assert len((folder / "approve.txt").read_text().split()) == len(paid.decisions()["approve"])


def test_a_smaller_one_on_postgresql(postgresql, monkeypatch):
    special = [careful, gives_back, bot, withdraws, skips_all, falls_asleep]
    paid = PaidStudy(plan(4, answers=3), postgresql(), special, monkeypatch)
    with closing(paid.database):
        flagged = run_study(paid, n_first=3)
        assert len(flagged) == 1
        check_everybody_is_settled(paid)
        person = paid.find_paid()
        delete_everywhere(paid.database, [person.rater])
        assert person.rater not in str(dump(paid.database))
        assert person.ids["platform_id"] not in str(dump(paid.database))
