"""A stand-in of Prolific, and the people whom it sends: all in one process, with a clock."""

import heapq
import re
from dataclasses import dataclass
from html import unescape
from itertools import count
from urllib.parse import parse_qs, urlsplit

from asgi_client import Client, form_of

SITE = "https://app.prolific.com/submissions/complete"
COMPLETE, FULL, NO_CONSENT = (f"{SITE}?cc={code}" for code in ("C0MPLETE", "FULL0000", "N0C0NSNT"))
MINUTES = 60
TIME_OUT = 45 * MINUTES


@dataclass
class Submission:
    """The place of one person in the study, as Prolific sees it."""

    person: str
    session: str
    started: float
    status: str = "active"

    @property
    def query(self):
        return f"PROLIFIC_PID={self.person}&STUDY_ID=study-7&SESSION_ID={self.session}"


class Prolific:
    """Sends people to a survey until all places are taken, and takes them back.

    Parameters
    ----------
    app : ASGI application
        The survey.
    people : iterable
        What each person does, in the order in which they come: functions of a `Visit` that yield
        the seconds until they go on.
    """

    def __init__(self, app, people):
        self.now = 1_700_000_000.0
        self._app = app
        self._people = iter(people)
        self._events = []
        self._numbers = count(1)
        self.places = 0
        self.submissions = []

    def statuses(self):
        return {submission.person: submission.status for submission in self.submissions}

    def run(self, places):
        """Open some more places, and go on until they are taken or nobody finds one."""
        self.places += places
        while True:
            self._fill()
            if not self._events:
                return
            self.now, _, submission, steps = heapq.heappop(self._events)
            self._time_out()
            if submission.status == "active":
                self._step(submission, steps)

    def _fill(self):
        """Send somebody for every place that is free, at once."""
        taken = sum(s.status in ("active", "awaiting review", "approved") for s in self.submissions)
        # If the survey is full, its people come back, and Prolific pauses the study.
        screened = [s for s in self.submissions if s.status == "returned: full"]
        for _ in range(self.places - taken if not screened else 0):
            number = next(self._numbers)
            name = f"5f1e{number:020x}"
            submission = Submission(name, f"session-{number:04d}", self.now)
            self.submissions.append(submission)
            self._step(submission, next(self._people)(Visit(self, self._app, submission, number)))

    def _time_out(self):
        for submission in self.submissions:
            if submission.status == "active" and self.now - submission.started > TIME_OUT:
                submission.status = "timed out"

    def _step(self, submission, steps):
        wait = next(steps, None)
        if wait is not None:
            heapq.heappush(self._events, (self.now + wait, next(self._numbers), submission, steps))

    def receive(self, submission, address):
        """Take somebody back from the survey, with a code in the address."""
        assert submission.status == "active", "nobody comes back twice"
        ends = {
            COMPLETE: "awaiting review",
            FULL: "returned: full",
            NO_CONSENT: "returned: no consent",
        }
        submission.status = ends[address]

    def decide(self, people, status):
        """Approve or reject in bulk: a list of ids, as the researcher pastes it."""
        known = {submission.person: submission for submission in self.submissions}
        for person in people:
            assert known[person].status in ("awaiting review", status), "nothing is taken back"
            known[person].status = status


class Visit:
    """The browser of one person."""

    def __init__(self, prolific, app, submission, number):
        self._client = Client(app, f"2001:db8:{number:x}::1")
        self._prolific, self.submission, self.number = prolific, submission, number
        self.home = self.page = None

    def open(self):
        """Open the link that Prolific gives; return whether the survey lets them in."""
        reply = self._client.get(f"/?{self.submission.query}")
        self.page = reply.text
        return reply.status == 200

    def send(self, **more):
        """Send the form of the page, and go where it leads."""
        form = form_of(self.page)
        reply = self._client.post(form.action, {**form.fields, **more})
        if reply.status == 303:
            self.home = self.home or reply["location"].removesuffix("/instructions")
            reply = self._client.get(self.home)
        self.page = reply.text
        return reply.status

    def agree(self):
        return self.open() and self.send() == 200

    def follow(self, word):
        """Follow a link of the page, by what it says; outside, it leads to Prolific."""
        links = re.findall(r'<a [^>]*href="([^"]+)"[^>]*>([^<]*)</a>', self.page)
        found = [unescape(address) for address, text in links if word in text]
        assert found, f"no link {word!r} in {self.page}"
        address = found[0]
        if not address.startswith("https://"):
            reply = self._client.get(address)
            self.page = reply.text
            if reply.status != 303:
                return
            address = reply["location"]
        self._prolific.receive(self.submission, address)

    def give_back(self):
        """Return the submission at Prolific; the survey hears nothing of it."""
        self.submission.status = "returned"

    @property
    def target(self):
        """What the question is about; None if the page is no question."""
        found = re.search(r"most like ([a-z]+)\?</h1>", self.page)
        return found and found[1]

    @property
    def shown(self):
        return re.findall(r'data-name="([^"]+)"', self.page)

    def answer(self, order):
        places = [str(order.index(name) + 1) if name in order else "" for name in self.shown]
        return self.send(place=places)

    def skip(self):
        return self.send(place=[""] * len(self.shown), skip="yes")

    @property
    def code(self):
        found = re.search(r"<code[^>]*>([^<]+)</code>", self.page)
        return found and found[1]


def completion_code(address):
    return parse_qs(urlsplit(address).query)["cc"][0]
