"""How often somebody may ask: exact, in bounded memory, and counted for the right somebody."""

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest
import uvicorn
from asgi_client import Client, Form, begin, dump, form_of, open_survey
from hypothesis import given, strategies as st
from server_process import TOKEN
from small_studies import small_study
from starlette.responses import PlainTextResponse

from rankshot.survey.web import guards as rate_limit
from rankshot.survey.web.app import Rates
from rankshot.survey.web.guards import Guard, RateLimit, StartLimit
from rankshot.survey.web.server import serve

STUDY = small_study()
AS_RESEARCHER = {"authorization": f"Bearer {TOKEN}"}
WRONG = {"authorization": "Bearer a token that is not the one"}


class Clock:
    def __init__(self, now=1_000.0):
        self.now = now

    def __call__(self):
        return self.now


def count_allowed(limit, times, address="192.0.2.1"):
    return sum(limit.wait(address) == 0 for _ in range(times))


def test_so_many_a_minute_all_at_once_and_then_one_by_one():
    clock = Clock()
    limit = RateLimit(15, clock)
    assert count_allowed(limit, 20) == 15
    assert limit.wait("192.0.2.1") == 4.0
    clock.now += 3.75
    assert limit.wait("192.0.2.1") == 0.25, "who was refused loses nothing by asking"
    clock.now += 0.25
    assert [limit.wait("192.0.2.1") for _ in range(2)] == [0.0, 4.0]
    clock.now += 3600
    assert count_allowed(limit, 20) == 15, "what is not used is not saved up"


class Scheduled:
    """The same rule in other words, exactly: a theoretical time of arrival (GCRA)."""

    def __init__(self, per_minute):
        self._step = Fraction(60, per_minute)
        self._slack = 60 - self._step
        self._due = None

    def wait(self, now):
        due = now if self._due is None else max(self._due, now)
        if due - now > self._slack:
            return due - now - self._slack
        self._due = due + self._step
        return 0


# Steps of a quarter of a second and these rates are exact in binary.
@given(
    st.sampled_from([15, 30, 60, 120]),
    st.lists(st.integers(0, 40), max_size=200),
)
def test_it_agrees_with_another_algorithm(per_minute, quarters):
    clock = Clock()
    limit, truth = RateLimit(per_minute, clock), Scheduled(per_minute)
    for step in quarters:
        clock.now += step / 4
        assert limit.wait("192.0.2.1") == truth.wait(Fraction(clock.now))


@given(st.integers(1, 1000), st.lists(st.floats(0, 30), min_size=1, max_size=50))
def test_who_waits_as_long_as_told_is_let_in(per_minute, steps):
    clock = Clock()
    limit = RateLimit(per_minute, clock)
    count_allowed(limit, per_minute)
    for step in steps:
        clock.now += step
        wait = limit.wait("192.0.2.1")
        # The header says whole seconds; a clock that really ticks is never early.
        clock.now += wait + 1e-6 if wait else 0
        assert not wait or limit.wait("192.0.2.1") == 0


def test_threads_share_what_there_is():
    limit = RateLimit(100, Clock())
    with ThreadPoolExecutor(8) as pool:
        waits = list(pool.map(limit.wait, ["192.0.2.1"] * 800))
    assert waits.count(0.0) == 100


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", True),
        ("2001:db8::1", "2001:0DB8:0:0::1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        # A server that listens to both kinds of addresses writes IPv4 so.
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::1", "::ffff:192.0.2.1", False),
        ("unknown", "192.0.2.1", False),
        ("", "unknown", False),
    ],
)
def test_a_household_has_one_bucket(one, other, same):
    limit = RateLimit(1, Clock())
    assert limit.wait(one) == 0
    assert (limit.wait(other) > 0) == same


def test_memory_does_not_grow(monkeypatch):
    monkeypatch.setattr(rate_limit, "MOST_ADDRESSES", 50)
    limit = RateLimit(2, Clock())
    count_allowed(limit, 2)
    for i in range(1000):
        limit.wait(f"2001:db8:0:{i:x}::1")
        limit.wait(f"{i} " + "x" * 10_000)
        if i < 500:
            assert limit.wait("192.0.2.1") > 0, "who keeps asking is remembered"
    assert len(limit._buckets) == 50
    assert max(map(len, limit._buckets)) <= 64
    assert limit.wait("192.0.2.1") == 0, "who has been silent longest is forgotten"


def make_guard(limit, clock):
    return Guard(
        PlainTextResponse("hello"),
        headers={"x-guard": "yes"},
        limit=RateLimit(limit, clock),
        tokens=RateLimit(limit, clock),
        refuse=lambda _request, status, key, **fields: PlainTextResponse(f"{key} {fields}", status),
    )


@pytest.mark.parametrize(("per_minute", "seconds"), [(1, "60"), (7, "9"), (60, "1"), (600, "1")])
def test_a_refusal_says_how_many_seconds_to_wait(per_minute, seconds):
    clock = Clock()
    client = Client(make_guard(per_minute, clock))
    assert {client.get("/").status for _ in range(per_minute)} == {200}
    refused = client.get("/")
    assert (refused.status, refused["retry-after"], refused["x-guard"]) == (429, seconds, "yes")
    assert refused.text == f"wait {{'seconds': {seconds}}}"
    clock.now += int(seconds)
    assert client.get("/").status == 200


def test_every_request_counts_and_others_are_not_kept_waiting(tmp_path):
    with open_survey(STUDY, tmp_path, rates=Rates(requests=4)) as (app, _):
        client = Client(app)
        for method, path in (("GET", "/"), ("GET", "/nowhere"), ("POST", "/start"), ("PUT", "/")):
            assert client.send(method, path).status != 429
        refused = client.get("/static/survey.css")
        assert refused.status == 429
        assert 1 <= int(refused["retry-after"]) <= 15
        assert Client(app, "192.0.2.2").get("/").status == 200


def test_starting_is_limited_more_strictly_and_answering_is_not(tmp_path):
    with open_survey(STUDY, tmp_path, rates=Rates(requests=1000, starts=2)) as (app, database):
        client = Client(app)
        homes = [begin(client, f"participant=p{i}") for i in range(2)]
        form = form_of(client.get("/?participant=p2").text)
        assert client.post(form.action, form.fields).status == 429
        for home in homes:
            form = form_of(client.get(home).text)
            assert client.post(form.action, form.answer("1")).status == 303
        assert len({database.identity.verify_link(home.removeprefix("/p/")) for home in homes}) == 2
        begin(Client(app, "192.0.2.2"), "participant=p2")


def start(client, name):
    form = form_of(client.get(f"/?participant={name}").text)
    return client.post(form.action, form.fields)


def test_the_study_says_how_many_may_start_per_hour_and_the_server_may_say_more(tmp_path):
    study = small_study(starts_per_hour=3)
    for folder, rates, allowed in (("a", Rates(), 3), ("b", Rates(starts=5), 5)):
        (tmp_path / folder).mkdir()
        with open_survey(study, tmp_path / folder, rates=rates) as (app, _):
            statuses = [start(Client(app), f"p{i}").status for i in range(6)]
        assert statuses == [303] * allowed + [429] * (6 - allowed)


def test_who_started_before_may_come_back_and_others_are_told_what_to_do(tmp_path, caplog):
    study = small_study(starts_per_hour=2)
    with open_survey(study, tmp_path, rates=Rates()) as (app, database):
        client = Client(app)
        assert [start(client, name).status for name in ("ann", "bob", "ann")] == [303] * 3
        before = dump(database)
        refused = [start(client, name) for name in ("cay", "dan")]
        assert dump(database) == before
        assert start(client, "bob").status == 303
        start(Client(app, "192.0.2.2"), "eve")
    assert {reply.status for reply in refused} == {429}
    assert 3500 <= int(refused[0]["retry-after"]) <= 3600
    assert "try again later (after 60 min)" in refused[0].text
    (warning,) = caplog.records
    assert warning.getMessage().startswith("one address has reached 2 starts per hour: raise")
    assert "192.0.2" not in warning.getMessage()


def test_one_warning_per_address_and_hour(caplog):
    clock = Clock()
    limit = StartLimit(1, clock)
    for hour in (1, 2):
        for address in ("192.0.2.1", "192.0.2.2"):
            assert [limit.wait(address) == 0 for _ in range(9)] == [True] + [False] * 8
        assert len(caplog.records) == 2 * hour
        clock.now += 3600


@given(st.integers(1, 20), st.lists(st.integers(0, 1200), max_size=100))
def test_in_no_hour_are_there_more_starts(per_hour, steps):
    """By its definition: at the time of each start, count those of the hour before."""
    clock, limit, started = Clock(), StartLimit(per_hour, Clock()), []
    limit._clock = clock
    for step in steps:
        clock.now += step
        recent = [at for at in started if at > clock.now - 3600]
        wait = limit.wait("192.0.2.1")
        assert (wait == 0) == (len(recent) < per_hour)
        if wait:
            assert wait == recent[0] + 3600 - clock.now
        else:
            started.append(clock.now)


def test_starts_are_forgotten_in_bounded_memory(monkeypatch):
    monkeypatch.setattr(rate_limit, "MOST_ADDRESSES", 50)
    clock = Clock()
    limit = StartLimit(3, clock)
    for i in range(400):
        limit.wait(f"192.0.2.{i % 100}")
        clock.now += 60
    assert len(limit._starts) == 50
    assert max(map(len, limit._starts.values())) <= 3


def test_right_tokens_are_not_counted(tmp_path):
    with open_survey(STUDY, tmp_path, rates=Rates(logins=2)) as (app, _):
        client = Client(app)
        for _ in range(5):
            assert client.get("/researcher/progress", AS_RESEARCHER).status == 200
            form = form_of(client.get("/researcher").text)
            assert client.post(form.action, {**form.fields, "token": TOKEN}).status == 303
        wrong = [client.get("/researcher", WRONG).status for _ in range(3)]
        assert wrong == [401, 401, 429]
        assert client.get("/researcher/progress", AS_RESEARCHER).status == 429


def token_attempts(client):
    """Return the ways to try a token: by the form, and in a header."""
    form = form_of(client.get("/researcher").text)
    wrong = Form(form.action, {**form.fields, "token": "not the token"}, 0)
    return {
        "form": lambda: client.post(wrong.action, wrong.fields),
        "page": lambda: client.get("/researcher", WRONG),
        "progress": lambda: client.get("/researcher/progress", WRONG),
        "lower": lambda: client.get("/researcher/rankings.jsonl", {"authorization": "bearer x"}),
    }


@pytest.mark.parametrize("way", ["form", "page", "progress", "lower"])
def test_tokens_cannot_be_tried_quickly_in_any_way(tmp_path, way):
    with open_survey(STUDY, tmp_path, rates=Rates(logins=3)) as (app, _):
        client = Client(app)
        attempt = token_attempts(client)[way]
        assert [attempt().status == 429 for _ in range(4)] == [False, False, False, True]
        # Not even the right one: otherwise an answer would tell.
        assert client.get("/researcher/progress", AS_RESEARCHER).status == 429
        assert {again().status for again in token_attempts(client).values()} == {429}
        assert client.get("/").status == 200
        assert Client(app, "192.0.2.2").get("/researcher/progress", AS_RESEARCHER).status == 200


def test_other_credentials_are_not_counted_as_tokens(tmp_path):
    with open_survey(STUDY, tmp_path, rates=Rates(logins=1)) as (app, _):
        client = Client(app)
        # A proxy may ask for a password of its own, and passes it on.
        basic = {"authorization": "Basic YTpi"}
        assert {client.get("/researcher", basic).status for _ in range(5)} == {200}
        assert {client.get("/", WRONG).status for _ in range(5)} == {200}


@pytest.fixture
def behind_server(tmp_path, monkeypatch):
    """The application as `serve` hands it to uvicorn, with what uvicorn puts before it."""
    monkeypatch.delenv("FORWARDED_ALLOW_IPS", raising=False)
    configured = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: configured.append(self.config))
    with open_survey(STUDY, tmp_path, rates=Rates(requests=3)) as (app, _):
        serve(app, None)
        (config,) = configured
        config.load()
        yield config.loaded_app


def asks(app, address, forwarded):
    client = Client(app, address, headers={"x-forwarded-for": forwarded})
    return [client.get("/").status for _ in range(4)]


def test_behind_a_proxy_the_client_is_counted_and_not_the_proxy(behind_server):
    once = [200, 200, 200, 429]
    assert asks(behind_server, "127.0.0.1", "198.51.100.1") == once
    assert asks(behind_server, "127.0.0.1", "198.51.100.2") == once
    # The proxy adds the address that it sees; what came before it is the client's own invention.
    assert asks(behind_server, "127.0.0.1", "203.0.113.9, 198.51.100.1") == [429] * 4


def test_who_is_no_proxy_cannot_take_another_address(behind_server):
    assert asks(behind_server, "192.0.2.7", "198.51.100.1") == [200, 200, 200, 429]
    assert asks(behind_server, "192.0.2.7", "198.51.100.2") == [429] * 4
