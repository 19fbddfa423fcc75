"""What the survey does not use of the floor: JSON, other policies, uncounted paths, host names."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.responses import PlainTextResponse

from rankshot.web.application import create_application
from rankshot.web.guards import POLICY, RateLimit, Rules

JSON = "application/json"
OWN = "127.0.0.1:8000"
MEDIA = f"{POLICY}; media-src 'self'"


def refuse(_reader, error):
    return PlainTextResponse(error.message, error.status, headers=error.headers)


@pytest.fixture
def app():
    rules = Rules(
        RateLimit(3), uncounted={"/health", "/images/"}, policy=MEDIA, kind=JSON, hosts={OWN}
    )
    made = create_application(refuse, rules)

    @made.get("/images/{name}")
    def image(name: str):
        return name

    @made.post("/labels")
    def label(labels: dict[str, str]):
        return labels

    return made


def ask(app, path, *, host=OWN, kind=JSON, body=None):
    """Send a request; return its status, its headers and its text."""
    headers = {"host": host} | ({} if body is None else {"content-type": kind})
    scope = {
        "type": "http",
        "method": "GET" if body is None else "POST",
        "path": path,
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1234),
    }
    sent = []

    async def receive():
        return {"type": "http.request", "body": body or b"", "more_body": False}

    async def send(message):
        sent.append(message)

    # In a thread: the tests with a browser leave an event loop in theirs.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, app(scope, receive, send)).result()
    return sent[0]["status"], dict(sent[0]["headers"]), sent[1]["body"].decode()


def test_only_json_is_read_however_many_commas_it_has(app):
    body = b'{"%s": "okapi;&"}' % b"&".join([b"a"] * 100)
    status, _, text = ask(app, "/labels", body=body)
    assert (status, text) == (200, body.decode().replace(" ", ""))
    status, _, text = ask(app, "/labels", body=b"a=okapi", kind="application/x-www-form-urlencoded")
    assert (status, text) == (415, "no_form")


def test_images_do_not_count_and_have_the_policy(app):
    found = [ask(app, f"/images/{n}") for n in range(20)]
    assert {status for status, *_ in found} == {200}
    assert {headers[b"content-security-policy"].decode() for _, headers, _ in found} == {MEDIA}
    assert [ask(app, "/imagesque")[0] for _ in range(4)] == [404, 404, 404, 429]


def test_another_name_of_our_address_is_refused(app):
    assert ask(app, "/images/1", host="evil.example:8000")[::2] == (421, "host")
