"""What the survey does not use of the floor: JSON, other policies, uncounted paths, host names."""

import pytest
from starlette.responses import PlainTextResponse

from asgi import JSON, URLENCODED, Client
from rankshot.web.guards import POLICY, RateLimit
from rankshot.web.server import create_application

OWN = "127.0.0.1:8000"
MEDIA = f"{POLICY}; media-src 'self'"


def refuse(_reader, error):
    return PlainTextResponse(error.message, error.status, headers=error.headers)


@pytest.fixture
def app():
    made = create_application(
        refuse,
        limit=RateLimit(3),
        uncounted={"/health", "/images/"},
        policy=MEDIA,
        kind=JSON,
        hosts={OWN},
    )

    @made.get("/images/{name}")
    def image(name: str):
        return name

    @made.post("/labels")
    def label(labels: dict[str, str]):
        return labels

    return made


def ask(app, path, *, host=OWN, kind=JSON, body=None):
    """Send a request; return its status, its headers and its text."""
    client = Client(app, headers={"host": host})
    reply = client.get(path) if body is None else client.post(path, body, {"content-type": kind})
    return reply.status, reply, reply.text


def test_only_json_is_read_however_many_commas_it_has(app):
    body = b'{"%s": "okapi;&"}' % b"&".join([b"a"] * 100)
    status, _, text = ask(app, "/labels", body=body)
    assert (status, text) == (200, body.decode().replace(" ", ""))
    status, _, text = ask(app, "/labels", body=b"a=okapi", kind=URLENCODED)
    assert (status, text) == (415, "no_form")


def test_images_do_not_count_and_have_the_policy(app):
    found = [ask(app, f"/images/{n}") for n in range(20)]
    assert {status for status, *_ in found} == {200}
    assert {headers["content-security-policy"] for _, headers, _ in found} == {MEDIA}
    assert [ask(app, "/imagesque")[0] for _ in range(4)] == [404, 404, 404, 429]


def test_another_name_of_our_address_is_refused(app):
    assert ask(app, "/images/1", host="evil.example:8000")[::2] == (421, "host")
