"""Many people at once, who come back, change their browser and withdraw; a server that is killed.

One study asks for rankings of the same items. The other draws sets of items for each participant.
"""

import asyncio
import re
from collections import Counter
from dataclasses import replace
from random import Random

import httpx
import numpy as np
import pytest

from asgi import run_coroutine
from asgi_client import form_of
from rankshot_survey.answers import read_order
from rankshot_survey.overview import read_answers, read_overview
from rankshot_survey.store.database import Database
from rankshot_survey.store.people import release
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
        answers_per_question=n_people,
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
                again = await self._send(client, "GET", f"/?participant={name}")
                if again.status_code == 200:
                    assert await self._start(client, name) == home
        return page

    async def _end(self, client, name, home, page, rng):
        self.codes[name] = re.search(r"\b[A-Z2-7]{10}\b", page)[0]
        if rng.random() < 0.3:
            form = form_of((await self._send(client, "GET", f"{home}/withdraw")).text)
            await self._send(client, "POST", form.action, form.fields)
            self.withdrawn.add(name)

    @staticmethod
    def _places(n, rng):
        ranked = rng.sample(range(n), rng.randint(1, n))
        return [str(ranked.index(i) + 1) if i in ranked else "" for i in range(n)]


@pytest.mark.parametrize("design", [study_for, drawn_study])
def test_nothing_is_lost_and_nothing_is_double_when_the_server_is_killed(place, tmp_path, design):
    url = place if isinstance(place, str) else None
    # PostgreSQL has its own tests; here it must only survive the same treatment.
    n_kills = 3 if url else 10
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
        for share in np.linspace(0.05, 0.95, n_kills):
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
        answers = [answer for answer in read_answers(connection) if answer.rater not in gone]
    stayed = {
        (raters[name], number): places
        for (name, number), places in crowd.acknowledged.items()
        if name not in crowd.withdrawn
    }
    kept = {(a.rater, a.number): a for a in answers}
    print(f"{n_kills} kills: {len(stayed)} acknowledged, {len(answers)} found")  # noqa: T201
    assert kept.keys() == stayed.keys()
    assert len(kept) == len(answers)
    assert len(crowd.acknowledged) == n_answers
    for key, places in stayed.items():
        assert kept[key].order == read_order(study.rank, kept[key].shown, places)
    assert set(Counter((a.rater, a.question.key) for a in answers).values()) == {1}
    people = read_overview(study, database, 0.0).counts
    assert (sum(people.values()), people["finished"]) == (n_people, n_people - len(gone))
    codes = {name: database.identity.code(rater) for name, rater in raters.items()}
    assert crowd.codes == codes
    database.close()
