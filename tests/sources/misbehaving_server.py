"""A chat endpoint on loopback that has a hidden preference, and misbehaves when told to.

`MisbehavingServer.script` holds what happens to the next calls, in turn: functions of the
handler that got the call. When the script is at its end, the server behaves.
"""

import json
import re
import socket
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class MisbehavingServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, preference):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.preference = preference
        self.script = []
        self.calls = []
        self.bytes_sent = 0
        self.stopping = threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def base_url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"

    @property
    def questions(self):
        """The first message of each conversation, as (target, k, items)."""
        return [understand(call["body"]["messages"][0]["content"]) for call in self.calls]

    def stop(self):
        self.stopping.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """Clients that hang up in the middle are what this server is for."""


class _Handler(BaseHTTPRequestHandler):
    disable_nagle_algorithm = True

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        call = {"path": self.path, "headers": dict(self.headers), "body": body}
        self.server.calls.append(call)
        self.body = body
        script = self.server.script
        behaviour = script.pop(0) if script else behave
        behaviour(self)

    def log_message(self, *_):
        pass

    def send(self, status, payload, **headers):
        payload = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(payload)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(payload)

    def true_order(self):
        target, k, items = understand(self.body["messages"][0]["content"])
        assert set(items) <= set(self.server.preference[target])
        return [name for name in self.server.preference[target] if name in items][:k]


def understand(prompt):
    """Read a prompt as a person would: the quoted target, the number, the list at the end."""
    question, _, items = prompt.rpartition("Items: ")
    target = json.loads(re.search(r'(?:shown|similar to) ("(?:[^"\\]|\\.)*")', question)[1])
    return target, int(re.search(r"Answer with the (\d+) ", question)[1]), json.loads(items)


def chat_answer(text):
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"choices": [choice], "usage": usage}


# ---- Behaviours


def behave(handler):
    handler.send(200, chat_answer(json.dumps(handler.true_order())))


def say(text):
    return lambda handler: handler.send(200, chat_answer(text))


def say_of_truth(change):
    """Answer with some text made of the right order."""
    return lambda handler: handler.send(200, chat_answer(change(handler.true_order())))


def send(status, payload, **headers):
    return lambda handler: handler.send(status, payload, **headers)


def hang(handler):
    handler.server.stopping.wait(30)


def drip(handler):
    """Send a byte every few milliseconds, for ever: no single wait is long."""
    handler.send_response(200)
    handler.end_headers()
    while not handler.server.stopping.wait(0.01):
        handler.wfile.write(b" ")


def drip_headers(handler):
    """Do the same before the headers have come to an end."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
    with suppress(OSError):
        while not handler.server.stopping.wait(0.01):
            handler.wfile.write(b"x")


def close_in_the_middle(handler):
    payload = json.dumps(chat_answer(json.dumps(handler.true_order()))).encode()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(payload)))
    handler.end_headers()
    handler.wfile.write(payload[: len(payload) // 2])


def close_at_once(handler):
    handler.connection.shutdown(socket.SHUT_RDWR)


def half_json(handler):
    payload = json.dumps(chat_answer(json.dumps(handler.true_order()))).encode()
    handler.send(200, payload[: len(payload) // 2])


def endless(status):
    """Send as fast as the client takes it."""

    def behaviour(handler):
        handler.send_response(status)
        handler.end_headers()
        end = time.monotonic() + 30
        with suppress(OSError):
            while time.monotonic() < end and not handler.server.stopping.is_set():
                handler.wfile.write(b"x" * 65536)
                handler.server.bytes_sent += 65536

    return behaviour


def not_http(handler):
    handler.wfile.write(b"You said " + handler.headers.get("Authorization", "").encode() + b"\r\n")


def repeat_the_key(status, **headers):
    """Send the caller's own key back to it, wherever there is room."""

    def behaviour(handler):
        said = handler.headers.get("Authorization", "nothing")
        message = {"error": {"message": f"You said {said}"}}
        handler.send(status, message, **dict.fromkeys(headers, said))

    return behaviour
