"""Requests to an application in this process."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import unquote


@dataclass(frozen=True)
class Reply:
    status: int
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


class Client:
    """A browser that keeps cookies."""

    def __init__(self, app, host):
        self.app, self._host, self.cookies = app, host, {}

    def get(self, target, headers=None):
        return self._send("GET", target, headers or {}, b"")

    def read(self, target):
        """Return the JSON of a good answer."""
        reply = self.get(target)
        assert reply.status == 200, reply.text
        return reply.json

    def post(self, target, value, headers=None):
        body = json.dumps(value).encode()
        return self._send(
            "POST", target, {"content-type": "application/json", **(headers or {})}, body
        )

    def _send(self, method, target, headers, body):
        path, _, query = target.partition("?")
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        given = {"host": self._host, "cookie": cookies, **headers}
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
            "client": ("127.0.0.1", 1234),
            "server": ("127.0.0.1", 8000),
        }
        # The browser of other tests keeps an event loop running in this thread.
        with ThreadPoolExecutor(1) as pool:
            reply = pool.submit(asyncio.run, self._call(scope, body)).result()
        for cookie in reply.all("set-cookie"):
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        return reply

    async def _call(self, scope, body):
        sent = []
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive():
            message = next(messages, None)
            if message is None:
                await asyncio.Event().wait()
            return message

        async def send(message):
            sent.append(message)

        await self.app(scope, receive, send)
        headers = tuple((k.decode("latin-1"), v.decode("latin-1")) for k, v in sent[0]["headers"])
        return Reply(sent[0]["status"], headers, b"".join(m.get("body", b"") for m in sent[1:]))
