"""What guards all pages: sizes, kinds, origins, hosts, rates, headers and secrets."""

from contextlib import suppress

import pytest
from jinja2 import UndefinedError
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from asgi import JSON, URLENCODED, Client
from rankshot.web.guards import (
    POLICY,
    SENT,
    RateLimit,
    RefusedError,
    is_loopback,
    is_secret,
    require_secret,
    set_cookie,
)
from rankshot.web.server import (
    add_files,
    create_application,
    create_environment,
    load_static_files,
)
from refusals import refuses

OWN = "127.0.0.1:8000"
FILES = load_static_files("rankshot.review")


def refuse(_reader, error):
    return PlainTextResponse(error.message, error.status, headers=error.headers)


@pytest.fixture
def app():
    made = create_application(refuse, limit=RateLimit(3), kind=JSON, hosts={OWN})

    @made.get("/images/{name}")
    def image(name: str):
        return name

    @made.post("/labels")
    def label(labels: dict[str, str]):
        return labels

    return made


@pytest.fixture(scope="module")
def form():
    """A browser at an application that repeats the forms that it gets."""
    made = create_application(refuse, limit=RateLimit(10_000), repeated={b"place"})

    @made.post("/form")
    async def repeat(request: Request):
        assert await request.body() == request.scope[SENT]
        return Response(request.scope[SENT], headers={"cache-control": "private"})

    @made.get("/fails")
    async def fail():
        raise RuntimeError("inside")

    @made.get("/breaks")
    async def break_off():
        def halves():
            yield "half"
            raise RuntimeError("inside")

        return StreamingResponse(halves())

    @made.get("/number/{number}")
    async def number(number: int):
        return number

    add_files(made, "/static/{name}", FILES)

    async def server(*request):
        # Where uvicorn would write them down.
        with suppress(RuntimeError):
            await made(*request)

    return Client(server)


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


def test_files_and_health_do_not_count(app):
    for path, status in (("/images/1", 200), ("/health", 200), ("/static/none", 404)):
        assert [ask(app, path)[0] for _ in range(5)] == [status] * 5
    asked = [ask(app, "/imagesque") for _ in range(4)]
    assert [status for status, *_ in asked] == [404, 404, 404, 429]
    assert (asked[3][1]["retry-after"], asked[3][2]) == ("20", "wait")


def test_another_name_of_our_address_is_refused(app):
    assert ask(app, "/images/1", host="evil.example:8000")[::2] == (421, "host")


# ---- Bodies


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"a=1&b=2&place=1&place=2", {}, 200),
        (b"a=1&a=2", {}, 422),
        (b"a=1&%61=2", {}, 422),
        (b"place=1" + b"&place=1" * 63, {}, 200),
        (b"place=1" + b"&place=1" * 64, {}, 413),
        (b"place=1" + b"&place=1;" * 32, {}, 413),
        (b"a=" + b"x" * (65_536 - 2), {}, 200),
        (b"a=" + b"x" * (65_536 - 1), {}, 413),
        *((b"a=1", {"content-length": text}, 413) for text in ("-1", "1e3", "", "\xb2", "5, 5")),
        (b"a=1", {"content-length": "0" * 10}, 413),
        (b"a=1", {"content-type": f"{URLENCODED.upper()} ; charset=utf-8"}, 200),
        *((b"a=1", {"content-type": kind}, 415) for kind in (JSON, "", f"x{URLENCODED}")),
        *((b"a=1", {"origin": f"{scheme}://survey.example"}, 200) for scheme in ("http", "https")),
        *((b"a=1", {"origin": text}, 403) for text in ("https://evil.example", "null", "")),
        *((b"a=1", {"sec-fetch-site": site}, 200) for site in ("same-origin", "none")),
        *((b"a=1", {"sec-fetch-site": site}, 403) for site in ("cross-site", "same-site")),
        (b"a=1", {"sec-fetch-site": "cross-site", "origin": "http://survey.example"}, 403),
    ],
)
def test_forms_as_our_pages_send_them_and_others(form, body, headers, status):
    reply = form.post("/form", body, headers)
    assert reply.status == status
    assert status != 200 or reply.body == body


def test_a_body_is_read_to_its_end_and_no_further_than_the_limit(form):
    kind, half = {"content-type": URLENCODED}, b"x" * 32_768
    assert form.send("POST", "/form", kind, [b"a", b"=", b"1"]).body == b"a=1"
    assert form.send("POST", "/form", kind, [half, half]).status == 200
    # It comes to no end, but is too large already, or says that it will be.
    assert form.send("POST", "/form", kind, [half] * 3, breaks_off=True).status == 413
    told = {**kind, "content-length": "65537"}
    assert form.send("POST", "/form", told, breaks_off=True).status == 413
    # Half a form could be a different answer.
    assert form.send("POST", "/form", kind, [b"a=1"], breaks_off=True).status is None
    assert form.send("POST", "/form").body == b"", "a body without a kind may be empty"
    assert form.send("POST", "/form", {}, [b"a=1"]).status == 415


# ---- Replies


def test_every_reply_has_the_headers_and_errors_have_a_page(form):
    replies = {
        "/health": (200, "ok"),
        "/nowhere": (404, "no_page"),
        "/form": (405, "address"),
        "/number/one": (422, "malformed"),
        "/static/nothing.css": (404, "no_file"),
        "/fails": (500, "failed"),
    }
    for path, expected in replies.items():
        reply = form.get(path, {"sec-fetch-site": "cross-site"})
        assert (reply.status, reply.text) == expected
        assert reply["cache-control"] == "no-store"
        assert reply["content-security-policy"] == POLICY
        assert reply["x-content-type-options"] == "nosniff"
        assert reply["referrer-policy"] == "same-origin"
    assert form.send("HEAD", "/health", {"sec-fetch-site": "cross-site"}).status == 200
    assert form.get("/form")["allow"] == "POST"
    assert form.post("/form", b"")["cache-control"] == "private"
    # What has begun cannot become another page.
    assert form.get("/breaks").text == "half"


def test_a_static_file_is_kept_for_ever_by_the_address_that_names_its_content(form):
    static = create_environment("rankshot.review", FILES, "/").globals["static"]
    for name, kind in {"base.css": "text/css", "icon.svg": "image/svg+xml"}.items():
        reply = form.get(static(name))
        assert (reply.status, reply.body) == (200, FILES[name].content)
        assert reply["content-type"] == f"{kind}; charset=utf-8"
        assert reply["cache-control"] == "public, max-age=31536000, immutable"
        for other in (f"/static/{name}", static(name)[:-1]):
            assert form.get(other)["cache-control"] == "no-cache"


def test_templates_escape_what_people_wrote_and_know_all_their_values():
    templates = create_environment("rankshot.review", FILES, name="<b>")
    assert templates.from_string("{{ name }}").render() == "&lt;b&gt;"
    with pytest.raises(UndefinedError):
        templates.from_string("{{ nobody }}").render()


# ---- Rates


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


def test_of_ten_thousand_addresses_the_oldest_is_forgotten():
    limit = RateLimit(1, Clock())
    assert {limit.wait(f"address {n}") for n in range(10_000)} == {0.0}
    assert limit.wait("address 0") > 0
    limit.wait("one more")
    assert limit.wait("address 0") > 0, "it has come again meanwhile"
    assert limit.wait("address 1") == 0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        # A server that listens to both kinds of addresses writes IPv4 so.
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("x" * 64 + "a", "x" * 64 + "b", True),
        ("x" * 63 + "a", "x" * 63 + "b", False),
    ],
)
def test_a_household_has_one_bucket(one, other, same):
    limit = RateLimit(1, Clock())
    assert limit.wait(one) == 0
    assert (limit.wait(other) > 0) == same


# ---- Secrets


def test_a_secret_is_long_and_sent_unchanged():
    for secret in ("x" * 16, "two words, and a sign", "x" * 500):
        assert require_secret(secret) == secret
    for secret in ("x" * 15, "x" * 501, "é" * 20, "x" * 20 + "\n", " " + "x" * 20, "x\0" * 10, ""):
        with refuses("token"):
            require_secret(secret)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *((host, True) for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost")),
        *((host, False) for host in ("0.0.0.0", "::", "192.0.2.1", "example.org", "")),
    ],
)
def test_addresses_that_only_this_machine_reaches(host, expected):
    assert is_loopback(host) == expected


@pytest.mark.parametrize("client", [("192.0.2.1", 1), ("127.0.0.1", 1), None])
def test_wrong_secrets_are_limited_and_lock_out_everybody_but_the_owner(client):
    request, attempts = Request({"type": "http", "client": client}), RateLimit(2, Clock())
    assert [is_secret(request, given, "right", attempts) for given in ("wrong", "")] == [False] * 2
    with pytest.raises(RefusedError) as caught:
        is_secret(request, "wrong", "right", attempts)
    assert (caught.value.status, caught.value.headers) == (429, {"retry-after": "30"})
    if client and client[0] == "127.0.0.1":
        assert is_secret(request, "right", "right", attempts)
    else:
        # Not even the right one: otherwise an answer would tell.
        with pytest.raises(RefusedError):
            is_secret(request, "right", "right", attempts)
        assert is_secret(request, "right", "right", RateLimit(1))


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_scripts_cannot_read_a_cookie_and_https_keeps_it(scheme):
    response, request = Response(), Request({"type": "http", "scheme": scheme})
    set_cookie(response, request, "name", "value", max_age=9, path="/p", samesite="lax")
    first, *others = response.headers["set-cookie"].split("; ")
    assert first == "name=value"
    expected = {"HttpOnly", "Max-Age=9", "Path=/p", "SameSite=lax"}
    assert set(others) == expected | ({"Secure"} if scheme == "https" else set())
