"""Many people at once, who come back, change their browser and withdraw; a server that is killed.

One study asks for rankings of the same items. The other draws sets of items for each participant,
asks for the first and the last of them, and has two conditions.
"""

import asyncio
import re
from collections import Counter
from dataclasses import replace
from itertools import combinations
from random import Random

import httpx
import pytest

from asgi import run_coroutine
from asgi_client import form_of
from rankshot_survey.answers import read_order
from rankshot_survey.overview import read_answers, read_overview
from rankshot_survey.store.database import Database
from rankshot_survey.store.people import release, restore
from rankshot_survey.study import Question
from server_process import Server
from small_studies import questions_about, small_study

pytestmark = pytest.mark.slow

N_QUESTIONS = 4
N_DRAWN = 6
DRAWN_ITEMS = tuple(f"item {i:02}" for i in range(12))
ITEMS = ("bus", "fox", "leopard", "tiger", "truck", "wolf")
TARGETS = ("car", "cat", "cow", "dog", "hen", "lion", "pig", "van")


def study_for(n_people):
    """Return a study that needs exactly the answers of so many people."""
    return small_study(
        title="Many at once",
        items=ITEMS,
        questions=questions_about(*TARGETS, items=ITEMS),
        answers_per_question=n_people * N_QUESTIONS // len(TARGETS),
        questions_per_participant=N_QUESTIONS,
    )


def drawn_study(n_people):
    """Return a study in which each participant gets sets of 4 of 12 items, each item twice."""
    return replace(
        study_for(n_people),
        items=DRAWN_ITEMS,
        unshown="unknown",
        questions=(Question("all items", DRAWN_ITEMS, show=4),),
        questions_per_participant=N_DRAWN,
        # Each part has this many answers in each condition.
        answers_per_question=n_people // 2,
        rank="best-worst",
        conditions={"gain": "Which would you like most?", "loss": "Which would you miss most?"},
    )


class Crowd:
    """People who repeat a request that was not answered, and note what was acknowledged.

    ``free`` lets a participant continue in another browser, as a researcher does.
    """

    def __init__(self, url, n_people, free):
        self._url = url
        self._n_people = n_people
        self._free = free
        self.n_freed = 0
        self.acknowledged = {}
        self.codes = {}
        self.withdrawn = set()
        self.lost = 0

    async def all_at_once(self, killer):
        everybody = [self._person(f"p{i}", Random(i)) for i in range(self._n_people)]
        await asyncio.gather(killer(self), *everybody)

    async def _send(self, client, method, path, data=None, accepted=frozenset({200, 303})):
        while True:
            try:
                response = await client.request(method, path, data=data)
            except httpx.TransportError:
                self.lost += 1
                await asyncio.sleep(0.2)
                continue
            assert response.status_code in accepted, (path, response.text)
            return response

    def _open_browser(self):
        # Everybody has a connection of their own, as browsers have.
        return httpx.AsyncClient(base_url=self._url, timeout=120, trust_env=False, verify=False)

    async def _person(self, name, rng):
        async with self._open_browser() as client, self._open_browser() as other:
            home = await self._start(client, name)
            await self._answer(client, name, home, rng, n=2)
            if rng.random() < 0.3:
                client = other  # noqa: PLW2901 (without the cookie of the first)
                assert await self._start_again(client, name) == home
            page = await self._answer(client, name, home, rng)
            await self._end(client, name, home, page, rng)

    async def _start(self, client, name, **options):
        page = await self._send(client, "GET", f"/?participant={name}")
        started = await self._send(client, "POST", "/start", form_of(page.text).fields, **options)
        return started.headers.get("location", "").removesuffix("/instructions")

    async def _start_again(self, client, name):
        """Start in another browser, which is allowed once: again if a reply may have been lost."""
        while True:
            await asyncio.to_thread(self._free, name)
            self.n_freed += 1
            lost = self.lost
            home = await self._start(client, name, accepted={200, 303, 409})
            if home or lost == self.lost:
                return home

    async def _answer(self, client, name, home, rng, n=100):
        """Answer some questions; return the page after the last."""
        for _ in range(n):
            page = (await self._send(client, "GET", home)).text
            if 'name="place"' not in page and 'name="first"' not in page:
                break
            form, n_items = form_of(page), page.count('name="first"')
            if n_items:
                places = [str(number) for number in rng.sample(range(n_items), 2)]
                fields = {**form.fields, "first": places[0], "last": places[1]}
            else:
                places = self._places(form.n_items, rng)
                fields = form.answer(*places)
            sent = ("POST", form.action, fields)
            # Some click twice.
            n_clicks = rng.choice([1, 1, 2])
            await asyncio.gather(*(self._send(client, *sent) for _ in range(n_clicks)))
            self.acknowledged[name, int(form.action.rsplit("/", 1)[1])] = places
            # Some come back by the link of the study: the browser's cookie says who they are.
            if rng.random() < 0.2:
                again = await self._send(client, "GET", f"/?participant={name}")
                if again.status_code == 200:
                    assert await self._start(client, name) == home
        return page

    async def _end(self, client, name, home, page, rng):
        self.codes[name] = re.search(r"\b[A-Z2-7]{10}\b", page)[0]
        if rng.random() < 0.3:
            form = form_of((await self._send(client, "GET", f"{home}/withdraw")).text)
            fields = {**form.fields, "code": self.codes[name]}
            await self._send(client, "POST", form.action, fields)
            self.withdrawn.add(name)

    @staticmethod
    def _places(n, rng):
        ranked = rng.sample(range(n), rng.randint(1, n))
        return [str(ranked.index(i) + 1) if i in ranked else "" for i in range(n)]


@pytest.mark.parametrize("design", [study_for, drawn_study])
def test_nothing_is_lost_and_nothing_is_double_when_the_server_is_killed(place, tmp_path, design):
    url = place if isinstance(place, str) else None
    # PostgreSQL has its own tests; here it must only survive the same treatment.
    n_people = 16 if url or design is drawn_study else 32
    study = design(n_people)
    n_answers = study.questions_per_participant * n_people
    # All of them have one address here.
    server = Server(study, tmp_path, url, "--requests", "1000000")
    server.start()

    def free(name):
        database = Database(url or tmp_path / "study.sqlite")
        release(database, [database.identity.rater(f"none:id:{name}")])
        database.close()

    crowd = Crowd(server.url, n_people, free)

    async def kill(crowd):
        for share in (0.2, 0.6, 0.9):
            while len(crowd.acknowledged) < share * n_answers:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)

    run_coroutine(crowd.all_at_once(kill))
    server.stop()

    database = Database(url or tmp_path / "study.sqlite")
    assert crowd.lost > 0, "the kill was felt"
    assert crowd.n_freed > 0
    raters = {name: database.identity.rater(f"none:id:{name}") for name in crowd.codes}
    gone = {raters[name] for name in crowd.withdrawn}
    assert 0 < len(gone) < n_people
    with database.begin_read() as connection:
        assert not gone & {answer.rater for answer in read_answers(connection)}
    # It can be undone, and then nothing is missing.
    assert set(restore(database, gone)) == gone
    with database.begin_read() as connection:
        answers = read_answers(connection)
    people = read_overview(study, database, 0.0).counts
    kept = {(a.rater, a.number): a for a in answers}
    assert len(kept) == len(answers)
    for (name, number), places in crowd.acknowledged.items():
        answer = kept[raters[name], number]
        assert answer.order == read_order(study.rank, answer.shown, places)
    assert len(answers) == len(crowd.acknowledged) == n_answers
    assert set(Counter((a.rater, a.question.key) for a in answers).values()) == {1}
    cells = Counter((a.question.target, a.question.condition, a.question.part) for a in answers)
    assert len(cells) == len(study.asked)
    # Conditions are drawn at random, nearly balanced.
    most = 2 if study.conditions else 1
    assert all(abs(n - study.answers_per_question) <= most for n in cells.values()), cells
    assert (sum(people.values()), people["finished"]) == (n_people, n_people)
    if study.conditions:
        check_balance(answers)
    codes = {name: database.identity.code(rater) for name, rater in raters.items()}
    assert crowd.codes == codes
    database.close()


def check_balance(answers):
    """In each condition, everybody saw each item twice, and pairs were shown about equally often.

    Sets that do not know of each other would show some of the 66 pairs never, and some 10 times.
    """
    for condition in ("gain", "loss"):
        shown = [a.shown for a in answers if a.question.condition == condition]
        assert Counter(name for names in shown for name in names) == dict.fromkeys(
            DRAWN_ITEMS, len(shown) * 4 // 12
        )
        pairs = Counter(pair for names in shown for pair in combinations(sorted(names), 2))
        assert len(pairs) == 66
        assert min(pairs.values()) >= 2
        assert max(pairs.values()) <= 8
