"""Many people at once, who come back and withdraw, and a server that is killed three times."""

import asyncio
import re
from collections import Counter
from random import Random

import httpx
import pytest
from asgi_client import form_of
from server_process import Server

from asgi import run_coroutine
from rankshot.survey.answers import order_from_places
from rankshot.survey.overview import read_answers, read_overview
from rankshot.survey.store.database import Database
from rankshot.survey.store.people import restore
from small_studies import questions_about, small_study

pytestmark = pytest.mark.slow

N_QUESTIONS = 4
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


class Crowd:
    """People who repeat a request that was not answered, and note what was acknowledged."""

    def __init__(self, url, n_people):
        self._url = url
        self._n_people = n_people
        self.acknowledged = {}
        self.codes = {}
        self.withdrawn = set()
        self.lost = 0

    async def all_at_once(self, killer):
        everybody = [self._person(f"p{i}", Random(i)) for i in range(self._n_people)]
        await asyncio.gather(killer(self), *everybody)

    async def _send(self, client, method, path, data=None):
        while True:
            try:
                response = await client.request(method, path, data=data)
            except httpx.TransportError:
                self.lost += 1
                await asyncio.sleep(0.2)
                continue
            assert response.status_code in {200, 303}, (path, response.text)
            return response

    async def _person(self, name, rng):
        # Everybody has a connection of their own, as browsers have.
        async with httpx.AsyncClient(
            base_url=self._url, timeout=120, trust_env=False, verify=False
        ) as client:
            await self._take_part(client, name, rng)

    async def _take_part(self, client, name, rng):
        page = await self._send(client, "GET", f"/?participant={name}")
        started = await self._send(client, "POST", "/start", form_of(page.text).fields)
        home = started.headers["location"].removesuffix("/instructions")
        while True:
            page = (await self._send(client, "GET", home)).text
            if 'name="place"' not in page:
                break
            form = form_of(page)
            places = self._places(form.n_items, rng)
            sent = ("POST", form.action, form.answer(*places))
            # Some click twice.
            n_clicks = rng.choice([1, 1, 2])
            await asyncio.gather(*(self._send(client, *sent) for _ in range(n_clicks)))
            self.acknowledged[name, int(form.action.rsplit("/", 1)[1])] = places
            # Some come back by the link of the study: the browser's cookie says who they are.
            if rng.random() < 0.2:
                page = await self._send(client, "GET", f"/?participant={name}")
                if page.status_code == 200:
                    again = await self._send(client, "POST", "/start", form_of(page.text).fields)
                    assert again.headers["location"].removesuffix("/instructions") == home
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


def test_nothing_is_lost_and_nothing_is_double_when_the_server_is_killed(place, tmp_path):
    url = place if isinstance(place, str) else None
    # PostgreSQL has its own tests; here it must only survive the same treatment.
    n_people = 16 if url else 32
    study = study_for(n_people)
    # All of them have one address here.
    server = Server(study, tmp_path, url, "--requests", "1000000")
    server.start()
    crowd = Crowd(server.url, n_people)

    async def kill(crowd):
        for share in (0.2, 0.6, 0.9):
            while len(crowd.acknowledged) < share * N_QUESTIONS * n_people:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)

    run_coroutine(crowd.all_at_once(kill))
    server.stop()

    database = Database(url or tmp_path / "study.sqlite")
    assert crowd.lost > 0, "the kill was felt"
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
        assert answer.order == order_from_places(answer.shown, places)
    assert len(answers) == len(crowd.acknowledged)
    assert set(Counter((a.rater, a.question.key) for a in answers).values()) == {1}
    cells = Counter(a.question.target for a in answers)
    assert set(cells) == set(TARGETS)
    assert all(abs(n - study.answers_per_question) <= 1 for n in cells.values()), cells
    assert (sum(people.values()), people["finished"]) == (n_people, n_people)
    codes = {name: database.identity.code(rater) for name, rater in raters.items()}
    assert crowd.codes == codes
    database.close()
