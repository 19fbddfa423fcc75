"""A real browser before a survey that is really served."""

import re
import threading
import time
from contextlib import contextmanager

import uvicorn

import small_studies
from rankshot.web.server import open_port
from rankshot_survey.overview import read_answers
from rankshot_survey.store.database import Database
from rankshot_survey.study import Question
from rankshot_survey.web.app import create_app

ANIMALS = ("leopard", "tiger", "fox", "hippopotamus", "killer whale")
LONG = f"a name that is far too long for a phone, with a {'very' * 20}longword"
ODD = ("tiger", "fox", "<b>bold</b> & 'quoted'", LONG)
HOST = "127.0.0.1"


def small_study(*questions, **changes):
    """Return a study of these questions; by default, of two animals."""
    questions = questions or (Question("cat", ANIMALS), Question("wolf", ODD))
    items = tuple(dict.fromkeys(item for question in questions for item in question.items))
    plan = {"questions_per_participant": 2, "repeats": 1, "unshown": "unknown"}
    plan |= {"prompt": "Which of these are most like a {target}?", "title": "Which animals?"}
    return small_studies.small_study(items=items, questions=questions, **plan | changes)


class Survey:
    """A study at an address, and what it has collected."""

    def __init__(self, url, study, database):
        self.url = url
        self._study = study
        self.database = database

    def answers(self, participant):
        """Return what somebody has answered, in the order of the questions."""
        rater = self.database.identity.rater(f"none:id:{participant}")
        with self.database.begin_read() as connection:
            return [answer for answer in read_answers(connection) if answer.rater == rater]

    def orders(self, participant):
        return [answer.order for answer in self.answers(participant)]

    def take_part(self, participant, seconds):
        """Let somebody answer all questions without a browser, in so many seconds each."""
        people = small_studies.Visitors(self._study, self.database)
        rater = people.start(participant)
        people.answer(rater, rank=lambda question, _: question.items, seconds=seconds)


@contextmanager
def serve_study(study, folder, token=None):
    """Serve a study in a thread while the block runs; a token opens the researcher's page."""
    database = Database(folder / "study.sqlite", create=True)
    # All tests come from one address, faster than people do.
    app = create_app(study, database, token=token, requests=100_000)
    port = open_port(HOST, 0)
    # A browser may keep connections open that it does not use.
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [port]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield Survey(f"http://{HOST}:{port.getsockname()[1]}", study, database)
    finally:
        server.should_exit = True
        thread.join()
        port.close()
        database.close()


def begin(page, url, participant):
    """Agree, and go past the instructions to the first question."""
    page.goto(f"{url}/?participant={participant}")
    page.get_by_role("button", name="I agree: start").click()
    page.get_by_role("link", name="Continue to the question").click()
    arrive(page, 1)


def begin_in_any_language(page, url, query):
    """Agree, and go to the first question, whatever the language."""
    page.goto(f"{url}/?{query}")
    page.locator("button.primary").click()
    page.locator("main > .actions a.primary").click()
    page.locator("#choices button").first.wait_for()


def arrive(page, number):
    page.get_by_text(re.compile(rf"^Question {number} of \d+$")).wait_for()
    page.wait_for_load_state("load")


def ranked_names(page):
    return tuple(page.locator("#ranking .name").all_inner_texts())


def unranked_names(page):
    return tuple(page.locator("#choices .choice:visible").all_inner_texts())


def status(page):
    """Return what a screen reader was told last."""
    return page.get_by_role("status").inner_text().strip("\u00a0")


def choose(page, *names):
    """Tap or click names in the pool."""
    for name in names:
        page.locator("#choices").get_by_role("button", name=name, exact=True).click()


def drag(page, source, target, *, below=False):
    """Drag with the mouse, from one locator to the upper or lower part of another."""
    start, end = source.bounding_box(), target.bounding_box()
    page.mouse.move(start["x"] + 12, middle(source))
    page.mouse.down()
    share = 0.8 if below else 0.2
    page.mouse.move(end["x"] + 60, end["y"] + end["height"] * share, steps=8)
    page.mouse.up()


def focus_name(page):
    """Return the accessible name of what has the focus: its label, or its text."""
    return page.evaluate(
        "() => document.activeElement.getAttribute('aria-label')"
        " ?? document.activeElement.innerText.trim()"
    )


def send(page):
    page.get_by_role("button", name="Next").click()


def skip(page):
    page.get_by_role("button", name="Skip: I do not know").click()


def row(page, name):
    return page.locator("#ranking .row").filter(has=page.get_by_text(name, exact=True))


def choice(page, name):
    return page.locator("#choices").get_by_role("button", name=name, exact=True)


def middle(locator):
    box = locator.bounding_box()
    return box["y"] + box["height"] / 2


def swipe(page, source, by):
    """Move a finger up or down, from the middle of a locator."""
    devtools, box = page.context.new_cdp_session(page), source.bounding_box()
    x, y = box["x"] + box["width"] / 2, middle(source)
    kinds = ["touchStart", *["touchMove"] * 10]
    for step, kind in enumerate(kinds):
        point = {"x": x, "y": y + by * step / 10, "id": 0}
        devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
    devtools.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def tab_to(page, name):
    seen = []
    while focus_name(page) != name:
        assert len(seen) < 80, f"{name!r} is not reached, only {seen}"
        page.keyboard.press("Tab")
        seen.append(focus_name(page))
