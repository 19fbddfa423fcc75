"""An application in this process, and requests to it, byte for byte as a test wants them."""

import asyncio
import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import unquote, urlencode

from server_process import TOKEN, hidden_fields
from sqlalchemy import select

from rankshot.survey.store.database import METADATA, Database
from rankshot.survey.web.app import create_app
from rankshot.survey.web.researcher_routes import COOKIE

URLENCODED = "application/x-www-form-urlencoded"
# All requests come from few addresses, faster than people do.
MANY = {"requests": 10**9, "logins": 10**9}


@contextmanager
def open_survey(study, folder, **options):
    """Yield a client of a study's application, and its new database, while the block runs."""
    database = Database(folder / "study.sqlite", create=True)
    try:
        yield Client(create_app(study, database, **{"token": TOKEN} | MANY | options)), database
    finally:
        database.close()


def as_researcher(database):
    """Return the header of a researcher who is logged in."""
    return {"cookie": f"{COOKIE}={database.identity.timed_token(time.time(), 'login', TOKEN)}"}


@dataclass(frozen=True)
class Reply:
    """What came back; ``status`` is None where the server sent nothing."""

    status: int | None
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def text(self):
        return self.body.decode()

    def all(self, name):
        """Return all values of a header."""
        return [value for key, value in self.headers if key == name]

    def __getitem__(self, name):
        """Return the value of a header that is there once."""
        (value,) = self.all(name)
        return value


def run_coroutine(coroutine):
    """Run a coroutine in a thread of its own.

    The browser of other tests keeps an event loop running in this one, for the whole session.
    """
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


class Client:
    """A browser at one address, which sends whatever somebody likes, and keeps cookies."""

    def __init__(self, app, address="192.0.2.1", headers=None):
        self.app = app
        self._address = address
        self._headers = {"host": "survey.example", **(headers or {})}
        self.cookies = {}

    def get(self, target, headers=None):
        return self.send("GET", target, headers)

    def post(self, target, fields, headers=None):
        """Send a form as a browser does; ``fields`` may be bytes, as they stand in the body."""
        body = fields if isinstance(fields, bytes) else urlencode(fields, doseq=True).encode()
        length = {"content-type": URLENCODED, "content-length": str(len(body))}
        return self.send("POST", target, {**length, **(headers or {})}, [body])

    def send(self, method, target, headers=None, chunks=(), *, breaks_off=False):
        """Send a request, its body in chunks; if it breaks off, the end of the body never comes."""
        raw, _, query = target.partition("?")
        kept = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        given = {**self._headers, **({"cookie": kept} if kept else {}), **(headers or {})}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(raw),
            "raw_path": raw.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), _bytes(value)) for name, value in given.items()],
            "client": (self._address, 1234),
            "server": ("127.0.0.1", 8000),
        }
        reply = run_coroutine(self._call(scope, _messages(chunks, breaks_off)))
        for cookie in reply.all("set-cookie"):
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        return reply

    async def _call(self, scope, messages):
        sent = []

        async def receive():
            message = next(messages, None)
            if message is None:
                # The visitor stays until everything has come.
                await asyncio.Event().wait()
            return message

        async def send(message):
            sent.append(message)

        await self.app(scope, receive, send)
        if not sent:
            return Reply(None, (), b"")
        headers = tuple((k.decode("latin-1"), v.decode("latin-1")) for k, v in sent[0]["headers"])
        return Reply(sent[0]["status"], headers, b"".join(m["body"] for m in sent[1:]))


def _messages(chunks, breaks_off):
    """Yield what a server tells an application of a request's body."""
    for chunk in chunks:
        yield {"type": "http.request", "body": chunk, "more_body": True}
    if breaks_off:
        yield {"type": "http.disconnect"}
    yield {"type": "http.request", "body": b"", "more_body": False}


def _bytes(value):
    return value if isinstance(value, bytes) else value.encode("latin-1")


@dataclass(frozen=True)
class Form:
    """The form of a page: where it goes, and the fields it has from us."""

    action: str
    fields: dict[str, str]
    n_items: int

    def answer(self, *places, **more):
        """Return the fields of an answer; places that are not given are empty."""
        rest = [""] * (self.n_items - len(places))
        return {**self.fields, "place": [*places, *rest], **more}


def form_of(page):
    """Return the form of a page's text."""
    action = re.search(r'<form[^>]* action="([^"]+)"', page)
    return Form(action[1], hidden_fields(page), page.count('name="place"'))


def begin(client, query="participant=ann"):
    """Agree to take part; return the address of one's own page."""
    form = form_of(client.get(f"/?{query}").text)
    reply = client.post(form.action, form.fields)
    assert reply.status == 303, reply.text
    return reply["location"].removesuffix("/instructions")


def finish(client, home, **more):
    """Answer everything that is asked, or skip it; return the last page."""
    while 'name="place"' in (page := client.get(home).text):
        form = form_of(page)
        assert client.post(form.action, form.answer("1", **more)).status == 303
    return page


def dump(database, ignored=()):
    """Return all that is stored, some columns aside."""
    with database.begin_read() as connection:
        return {
            table.name: [
                {name: value for name, value in row._mapping.items() if name not in ignored}
                for row in connection.execute(select(table).order_by(*table.primary_key))
            ]
            for table in METADATA.sorted_tables
        }


class Survey:
    """A survey in which two people have their first questions in front of them."""

    def __init__(self, client, database, people=("ann", "bob")):
        self.client, self.database = client, database
        self.identity = database.identity
        self.home, self.other = (begin(self.client, f"participant={name}") for name in people)
        self.form, self.others = (form_of(self.client.get(h).text) for h in (self.home, self.other))
        self.nonce = form_of(self.client.get("/").text).fields["form"]

    @contextmanager
    def hold_unchanged(self, ignored=()):
        """Hold that the block stores nothing."""
        before = dump(self.database, ignored)
        yield
        assert dump(self.database, ignored) == before

    def start(self, **changes):
        """Return the fields that start somebody else."""
        return {"form": self.nonce, "participant": f"not-{self.home[-8:]}", **changes}

    def forms(self):
        """Return the forms that store something, each as it would be accepted."""
        return [("/start", self.start()), (self.form.action, self.form.answer("1"))]
