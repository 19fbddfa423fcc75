"""A survey in this process, and what its participants do."""

import re
import time
from contextlib import contextmanager
from dataclasses import dataclass

from markupsafe import escape
from sqlalchemy import select

from asgi import Client
from rankshot_survey.languages import load_catalogue
from rankshot_survey.store.database import METADATA, Database
from rankshot_survey.web.app import create_app
from rankshot_survey.web.researcher_routes import COOKIE
from server_process import TOKEN, hidden_fields

# All requests come from few addresses, faster than people do.
MANY = {"requests": 10**9}


@contextmanager
def open_survey(study, folder, **options):
    """Yield a client of a study's application, and its new database, while the block runs."""
    database = Database(folder / "study.sqlite", create=True)
    try:
        yield Client(create_app(study, database, **{"token": TOKEN} | MANY | options)), database
    finally:
        database.close()


def says(page, key, **fields):
    """Return whether a page has an English text of the catalogue."""
    return str(escape(load_catalogue("en").texts[key].format(**fields))) in page


def as_researcher(database):
    """Return the header of a researcher who is logged in."""
    return {"cookie": f"{COOKIE}={database.identity.timed_token(time.time(), 'login', TOKEN)}"}


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
