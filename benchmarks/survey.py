"""The survey under load: answers per second, waiting times, CPU and memory.

A plain handler is loaded in the same way: one insert per answer, a redirect, and a page.

First, everybody answers one question within six seconds, in about the time that quick people take:
this says how long a page takes. Then participants wait for nothing: each sends the next answer as
soon as the page is there, so that the server is fully busy, and the CPU time per answer is compared
with that of the plain handler. Elapsed times are printed, and judged only on an idle machine.
``--people 1000`` takes other numbers of participants than 50 and 300.
"""

import argparse
import asyncio
import json
import os
import re
import resource
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import count, product
from pathlib import Path
from random import Random
from typing import Annotated, Any, NamedTuple

import numpy as np
import psycopg
from fastapi import FastAPI, Form as FormField
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment

from rankshot.web.guards import FORM
from rankshot.web.server import open_port, serve
from rankshot_survey.store.database import ASSIGNMENT, PARTICIPANT, Database
from rankshot_survey.store.participation import Participation
from rankshot_survey.study import Question, Study
from rankshot_survey.web.app import create_app
from rankshot_survey.web.researcher_routes import COOKIE

sys.path.insert(0, str(Path(__file__).parents[1] / "survey" / "tests"))
from postgres_server import MissingProgramsError, running_server

ITEMS = tuple(f"item_{i:02d}" for i in range(50))
N_SHOWN, N_TARGETS = 10, 40
ANSWERS = {50: 12, 300: 4}
"""How many questions each of this many participants answers."""
PACE_SECONDS = 6.0
"""Within this time, everybody answers the first question."""
FILES = ("survey.css", "question.js", "icon.svg", "survey.css", "question.js")
"""What a browser gets at the same time, over connections of their own that stay open."""
FAST = 300
"""Up to this many participants have only one connection each."""
TOKEN = "a token of the benchmark"
RATIO, SHARE, GROWTH, PAGE_SECONDS = 3.0, 0.6, 1.15, 0.05
"""CPU per answer and answers per second against a plain handler with the same database, both asked
of SQLite only: with PostgreSQL, most of the time goes into talking to its server; memory at the end
of a run against its start; and the time of a page (95 % are faster) if people answer at their own
pace."""
N_TURNS = 2
"""All are measured in turns, and the fastest turn of each is compared: a machine that is shared
changes its speed."""
IS_BUSY = os.getloadavg()[0] > 0.5
"""Whether other work ran when this began: then elapsed times are printed, but not judged."""
N_PEOPLE, N_EACH = 1_650, 8
"""The participants and their answers in the survey whose pages are measured alone."""
TICKS = os.sysconf("SC_CLK_TCK")


def make_study(n_questions: int) -> Study:
    rng = Random(0)
    return Study(
        title="Which animals are alike?",
        prompt="Which of these are most like “{target}”?",
        consent="Do you agree?",
        items=ITEMS,
        unshown="after",
        questions=tuple(
            Question(f"target {i}", tuple(rng.sample(ITEMS, N_SHOWN))) for i in range(N_TARGETS)
        ),
        answers_per_question=1_000_000,
        questions_per_participant=n_questions,
        repeats=0,
        starts_per_hour=1_000_000,
    )


# ---- The plain handler: one insert, one redirect, one page

PAGE = """<!DOCTYPE html>
<html lang="en"><head><title>{{ title }}</title></head><body><h1>{{ title }}</h1>
<form method="post" action="/p/{{ link }}/{{ number }}">
<input type="hidden" name="form" value="{{ form }}">
{% for name in names %}
<p><label>{{ name }} <select name="place"><option></option>
{% for place in range(1, names | length + 1) %}<option>{{ place }}</option>{% endfor %}
</select></label></p>
{% endfor %}
<button>Next</button></form>
<!-- {{ filler }} -->
</body></html>
"""


def open_plainly(place: str) -> tuple[Any, str]:
    """Return one connection for all threads, and how it marks a value.

    SQLite has one writer; a lock costs less than opening another connection.
    """
    if "://" in place:
        return psycopg.connect(place, autocommit=True), "%s"
    database = sqlite3.connect(place, isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    return database, "?"


def make_plain_app(place: str, page_size: int) -> FastAPI:
    app = FastAPI()
    page = Environment(autoescape=True).from_string(PAGE)
    database, mark = open_plainly(place)
    database.execute("CREATE TABLE answer (link TEXT, number INTEGER, form TEXT, answer TEXT)")
    shown: dict[str, Any] = {"title": "Plain", "form": "0" * 32, "names": ITEMS[:N_SHOWN]}
    bare = page.render(**shown, link="0" * 48, number=1, filler="")
    shown["filler"] = "x" * (page_size - len(bare))

    @app.get("/p/{link}/{number}")
    def question(link: str, number: int) -> HTMLResponse:
        return HTMLResponse(page.render(**shown, link=link, number=number))

    @app.post("/p/{link}/{number}")
    def answer(
        link: str,
        number: int,
        form: Annotated[str, FormField()],
        place: Annotated[list[str], FormField()],
    ) -> RedirectResponse:
        values = link, number, form, json.dumps(place)
        database.execute(f"INSERT INTO answer VALUES ({', '.join([mark] * 4)})", values)
        return RedirectResponse(f"/p/{link}/{number + 1}", 303)

    return app


# ---- A server in a process of its own


def run_server(options: argparse.Namespace) -> None:
    """Serve until a signal comes; the first line of the output is the port."""
    with open_port("127.0.0.1", 0) as port, ExitStack() as stack:
        if options.serve == "plain":
            app = make_plain_app(options.place, options.size)
        else:
            place = options.place if "://" in options.place else Path(options.place)
            database = stack.enter_context(closing(Database(place, create=True)))
            rates = {"requests": 10**9}
            app = create_app(make_study(options.questions), database, token=TOKEN, **rates)
        print(port.getsockname()[1], flush=True)
        serve(app, port)


class Usage(NamedTuple):
    """The CPU seconds (user and system) and the memory (MB) of a process."""

    seconds: float
    megabytes: float


class Server:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._folder = Path("/proc") / str(process.pid)
        assert process.stdout is not None
        self.port = int(process.stdout.readline())

    def usage(self) -> Usage:
        # The name of the program, in brackets, may have spaces.
        fields = (self._folder / "stat").read_text().rpartition(")")[2].split()
        status = (self._folder / "status").read_text()
        memory = int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]
        return Usage((int(fields[11]) + int(fields[12])) / TICKS, memory)


@contextmanager
def start_server(kind: str, place: str, questions: int = 1, size: int = 0) -> Iterator[Server]:
    command = [sys.executable, __file__, "--serve", kind, "--place", place]
    process = subprocess.Popen(
        [*command, "--questions", str(questions), "--size", str(size)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Server(process)
    finally:
        process.terminate()
        _, log = process.communicate(timeout=60)
        print("".join(line for line in log.splitlines(True) if " INFO: " not in line), end="")


# ---- Participants


class Line:
    """A connection that is kept open, as browsers do."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def send(self, method: str, path: str, body: str = "") -> tuple[int, str, str]:
        """Send a request; return the status, the address of a redirect, and the page."""
        try:
            return await self._send(method, path, body)
        except (ConnectionError, asyncio.IncompleteReadError):
            # It was idle for so long that the server has closed it: browsers send it again.
            await self.open()
            return await self._send(method, path, body)

    async def _send(self, method: str, path: str, body: str) -> tuple[int, str, str]:
        head = f"{method} {path} HTTP/1.1\r\nHost: survey.example\r\n"
        if method == "POST":
            head += f"Content-Type: {FORM}\r\nContent-Length: {len(body)}\r\n"
        self._writer.write(f"{head}\r\n{body}".encode())
        answer = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = re.search(r"content-length: (\d+)", answer)
        page = await self._reader.readexactly(int(length[1])) if length else b""
        location = re.search(r"location: (\S+)", answer)
        return int(answer[9:12]), location[1] if location else "", page.decode()

    def close(self) -> None:
        self._writer.close()


@dataclass
class Load:
    """What a crowd of participants found."""

    seconds: list[float] = field(default_factory=list)
    pages: list[float] = field(default_factory=list)
    rate: float = 0.0
    calm_page: float = 0.0
    failed: int = 0
    page_size: int = 0
    cpu: float = 0.0
    growth: float = 1.0


class Participant:
    """Somebody who starts, answers all questions and reads the last page."""

    def __init__(self, server: Server, load: Load, *, plain: bool, n_files: int) -> None:
        self._lines = [Line(server.port) for _ in range(1 + n_files)]
        self._load = load
        self._plain = plain

    async def _send(self, method: str, path: str, body: str = "", expected: int = 200) -> Any:
        status, location, page = await self._lines[0].send(method, path, body)
        self._load.failed += status != expected
        return location or page

    async def start(self) -> None:
        for line in self._lines:
            await line.open()
        if self._plain:
            self._home = f"/p/{os.urandom(24).hex()}/1"
        else:
            for name, line in zip(FILES, self._lines[1:], strict=False):
                status, *_ = await line.send("GET", f"/static/{name}")
                self._load.failed += status != 200
            consent = await self._send("GET", "/")
            instructions = await self._send("POST", "/start", _hidden_fields(consent), 303)
            await self._send("GET", instructions)
            self._home = instructions.removesuffix("/instructions")
        self._page = await self._send("GET", self._home)
        self._load.page_size = len(self._page)

    async def answer(self, n_questions: int) -> None:
        for _ in range(n_questions):
            action = re.search(r'action="([^"]+)"', self._page)
            if action is None:
                self._load.failed += 1
                return
            body = _hidden_fields(self._page) + "".join(
                f"&place={place}" for place in [3, 1, 2] + [""] * (N_SHOWN - 3)
            )
            begin = time.perf_counter()
            after = await self._send("POST", action[1], body, 303)
            stored = time.perf_counter()
            self._page = await self._send("GET", after)
            end = time.perf_counter()
            self._load.seconds.append(end - begin)
            self._load.pages.append(end - stored)

    async def answer_at_own_pace(self, wait: float) -> None:
        await asyncio.sleep(wait)
        await self.answer(1)

    @property
    def has_code(self) -> bool:
        return 'class="code"' in self._page

    def close(self) -> None:
        for line in self._lines:
            line.close()


def _hidden_fields(page: str) -> str:
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page)
    return "&".join(f"{name}={value}" for name, value in found)


async def load_server(server: Server, n_people: int, n_questions: int, *, plain: bool) -> Load:
    """Let people start, answer at their own pace, then all at once; print what it took."""
    load = Load()
    n_files = len(FILES) if n_people > FAST and not plain else 0
    people = [Participant(server, load, plain=plain, n_files=n_files) for _ in range(n_people)]
    idle = server.usage()
    # Not more at once than wait at the server's door.
    for first in range(0, n_people, 100):
        await asyncio.gather(*(person.start() for person in people[first : first + 100]))
    before, waits = server.usage(), Random(2)
    await asyncio.gather(*(p.answer_at_own_pace(waits.uniform(0, PACE_SECONDS)) for p in people))
    load.calm_page = float(np.percentile(load.pages, 95))
    load.seconds, load.pages = [], []
    calm, begin = server.usage(), time.perf_counter()
    await asyncio.gather(*(person.answer(n_questions - 1) for person in people))
    seconds, after = time.perf_counter() - begin, server.usage()
    for person in people:
        load.failed += not plain and not person.has_code
        person.close()
    load.cpu = (after.seconds - calm.seconds) / len(load.seconds)
    load.growth = after.megabytes / before.megabytes
    load.rate = len(load.seconds) / seconds
    p50, p95, p99 = 1e3 * np.percentile(load.seconds, [50, 95, 99])
    print(
        f"    {n_people:5,} participants: at their own pace, a page in {1e3 * load.calm_page:.0f} "
        f"ms (p95); all at once, {load.rate:.0f} answers per second, {p50:.0f} / {p95:.0f} / "
        f"{p99:.0f} ms (p50, p95, p99), {1e3 * load.cpu:.2f} ms of CPU per answer, "
        f"{1e3 * (before.seconds - idle.seconds) / n_people:.1f} ms per start, "
        f"{before.megabytes:.0f} -> {after.megabytes:.0f} MB, {load.failed} failed"
    )
    return load


def compare_loads(folder: Path, people: list[int]) -> list[bool]:
    """Load the survey on each database, and the plain handler; return which limits are kept."""
    kept: list[bool] = []
    loads: defaultdict[tuple[str, str, int], list[Load]] = defaultdict(list)
    page_size, number = 0, count()
    with ExitStack() as stack:
        places = {"SQLite": lambda: str(folder / f"{next(number)}.sqlite")}
        try:
            places["PostgreSQL"] = stack.enter_context(running_server(durable=True))
        except MissingProgramsError as error:
            print(f"PostgreSQL is not measured: {error}")
        for kind, name, n_people in [*product(("survey", "plain"), places, people)] * N_TURNS:
            print(f"{kind}, {name}")
            n_questions, is_plain = ANSWERS.get(n_people, 4), kind == "plain"
            with start_server(kind, places[name](), n_questions, page_size) as server:
                load = asyncio.run(load_server(server, n_people, n_questions, plain=is_plain))
            loads[kind, name, n_people].append(load)
            page_size = load.page_size
            kept += [load.failed == 0, is_plain or load.growth <= GROWTH]
    for name, n_people in product(places, people):
        found, plain = loads["survey", name, n_people], loads["plain", name, n_people]
        ratio = min(load.cpu for load in found) / min(load.cpu for load in plain)
        share = max(load.rate for load in found) / max(load.rate for load in plain)
        page = min(load.calm_page for load in found)
        print(
            f"{name}, {n_people:,} participants: {ratio:.2f} times the CPU of the plain "
            f"handler (at most {RATIO:g} is asked of SQLite), {share:.2f} of its answers per "
            f"second ({SHARE:g}), a page in {1e3 * page:.0f} ms (at most {1e3 * PAGE_SECONDS:.0f})"
        )
        kept.append(IS_BUSY or page <= PAGE_SECONDS)
        if name == "SQLite":
            kept += [ratio <= RATIO, IS_BUSY or share >= SHARE]
    return kept


# ---- Pages of a survey that many have taken part in


def fill(place: Path) -> None:
    """Store answers of many participants, much faster than they could send them."""
    study, rng, now = make_study(N_EACH), Random(1), time.time()
    with closing(Database(place, create=True)) as database:
        Participation(study, database)
        people, rows = [], []
        for person in range(N_PEOPLE):
            rater = f"{person:016x}"
            people.append(
                {"rater": rater, "started_at": now - 100, "seen_at": now, "finished_at": now}
            )
            for number, question in enumerate(rng.sample(study.questions, N_EACH), 1):
                shown = rng.sample(question.items, N_SHOWN)
                answer = rng.sample(shown, 5)
                times = {"seconds": 10.0, "answered_at": now - 10.0}
                texts = {"shown": json.dumps(shown), "answer": json.dumps(answer)}
                key = {"rater": rater, "number": number, "question": question.key, "repeat": 0}
                rows.append({**key, **texts, **times})
        with database.begin_write() as connection:
            connection.execute(PARTICIPANT.insert(), people)
            connection.execute(ASSIGNMENT.insert(), rows)


def measure_pages(folder: Path) -> None:
    place = folder / "filled.sqlite"
    fill(place)
    with closing(Database(place)) as database:
        cookie = f"{COOKIE}={database.identity.timed_token(time.time(), 'login', TOKEN)}"
    print(f"pages of a survey with {N_PEOPLE:,} participants and {N_PEOPLE * N_EACH:,} answers")
    with start_server("survey", str(place), N_EACH) as server:
        for path, n in (("/", 200), ("/researcher", 5), ("/static/survey.css", 200)):
            seconds = []
            with socket.create_connection(("127.0.0.1", server.port)) as line:
                before = server.usage()
                for _ in range(n):
                    begin = time.perf_counter()
                    line.sendall(
                        f"GET {path} HTTP/1.1\r\nHost: survey.example\r\n"
                        f"Cookie: {cookie}\r\n\r\n".encode()
                    )
                    _read_response(line)
                    seconds.append(time.perf_counter() - begin)
                cpu = (server.usage().seconds - before.seconds) / n
            print(
                f"    GET {path}: {1e3 * min(seconds):.1f} to {1e3 * max(seconds):.1f} ms, "
                f"median {1e3 * np.median(seconds):.1f} ms, {1e3 * cpu:.1f} ms of CPU"
            )


def _read_response(line: socket.socket) -> None:
    received = b""
    while b"\r\n\r\n" not in received:
        received += line.recv(65536)
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    left = int(re.search(rb"content-length: (\d+)", head)[1]) - len(body)  # type: ignore[index]
    while left > 0:
        left -= len(line.recv(65536))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, nargs="+", default=list(ANSWERS))
    parser.add_argument("--only", choices=["load", "pages"])
    parser.add_argument("--serve", choices=["survey", "plain"], help=argparse.SUPPRESS)
    parser.add_argument("--place", help=argparse.SUPPRESS)
    parser.add_argument("--questions", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        run_server(options)
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    kept: list[bool] = []
    with tempfile.TemporaryDirectory() as name:
        if options.only != "pages":
            kept = compare_loads(Path(name), options.people)
        if options.only != "load":
            measure_pages(Path(name))
    if not all(kept):
        sys.exit("a limit is not kept")


if __name__ == "__main__":
    main()
