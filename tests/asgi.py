"""Requests to an application in this process, byte for byte as a test wants them."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import unquote, urlencode

URLENCODED = "application/x-www-form-urlencoded"
JSON = "application/json"


@dataclass(frozen=True)
class Reply:
    """What came back; ``status`` is None where the server sent nothing."""

    status: int | None
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)

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

    def read(self, target):
        """Return the JSON of a good reply."""
        reply = self.get(target)
        assert reply.status == 200, reply.text
        return reply.json

    def post(self, target, fields, headers=None):
        """Send a form as a browser does; ``fields`` may be bytes, as they stand in the body."""
        body = fields if isinstance(fields, bytes) else urlencode(fields, doseq=True).encode()
        length = {"content-type": URLENCODED, "content-length": str(len(body))}
        return self.send("POST", target, {**length, **(headers or {})}, [body])

    def post_json(self, target, value, headers=None):
        """Send JSON as the script of a page does."""
        return self.post(
            target, json.dumps(value).encode(), {"content-type": JSON, **(headers or {})}
        )

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
        body = b"".join(message.get("body", b"") for message in sent[1:])
        return Reply(sent[0]["status"], headers, body)


def _messages(chunks, breaks_off):
    """Yield what a server tells an application of a request's body."""
    for chunk in chunks:
        yield {"type": "http.request", "body": chunk, "more_body": True}
    if breaks_off:
        yield {"type": "http.disconnect"}
    yield {"type": "http.request", "body": b"", "more_body": False}


def _bytes(value):
    return value if isinstance(value, bytes) else value.encode("latin-1")
