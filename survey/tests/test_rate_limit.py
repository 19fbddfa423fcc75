"""How often somebody may ask, counted for the right somebody."""

import pytest
import uvicorn

from asgi import Client
from asgi_client import dump, form_of, open_survey
from rankshot.web.server import serve
from server_process import TOKEN
from small_studies import small_study

STUDY = small_study()


def start(client, name):
    form = form_of(client.get(f"/?participant={name}").text)
    return client.post(form.action, form.fields)


def test_who_started_before_may_come_back_and_others_are_told_what_to_do(tmp_path, caplog):
    study = small_study(starts_per_hour=2, full_url="https://example.org/full?a=1&b=2")
    with open_survey(study, tmp_path, requests=600) as (client, database):
        assert [start(client, name).status for name in ("ann", "bob", "bob")] == [303] * 3
        before = dump(database)
        refused = [start(client, name) for name in ("cay", "dan")]
        assert dump(database) == before
        assert start(client, "bob").status == 303
        start(Client(client.app, "192.0.2.2"), "eve")
    assert {reply.status for reply in refused} == {429}
    assert 1700 <= int(refused[0]["retry-after"]) <= 1800
    assert "try again later (after 30 min)" in refused[0].text
    assert 'href="https://example.org/full?a=1&amp;b=2"' in refused[0].text
    warning = caplog.records[0]
    assert warning.getMessage().startswith("one address has reached 2 starts per hour: raise")
    assert "192.0.2" not in warning.getMessage()


def test_tokens_cannot_be_tried_quickly(tmp_path):
    with open_survey(STUDY, tmp_path) as (made, _):

        def try_token(address, token):
            client = Client(made.app, address)
            form = form_of(client.get("/researcher").text)
            return client.post(form.action, {**form.fields, "token": token}).status

        statuses = [try_token("192.0.2.1", "not the token") for _ in range(11)]
        assert statuses == [401] * 10 + [429]
        # Not even the right one: otherwise an answer would tell.
        assert try_token("192.0.2.1", TOKEN) == 429
        assert try_token("192.0.2.2", TOKEN) == 303


@pytest.fixture
def behind_server(tmp_path, monkeypatch):
    """The application as `serve` hands it to uvicorn, with what uvicorn puts before it."""
    monkeypatch.delenv("FORWARDED_ALLOW_IPS", raising=False)
    configured = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: configured.append(self.config))
    with open_survey(STUDY, tmp_path, requests=3) as (client, _):
        serve(client.app, None)
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
    # Who is no proxy cannot take another address.
    assert asks(behind_server, "192.0.2.7", "198.51.100.1") == once
    assert asks(behind_server, "192.0.2.7", "198.51.100.2") == [429] * 4
