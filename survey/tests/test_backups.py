"""Backups, restoring, damaged files, and databases of older versions."""

import shutil
import sqlite3
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect, text

from asgi import Client
from asgi_client import MANY, begin, form_of
from rankshot.core.errors import InputError
from rankshot_survey import backup_database
from rankshot_survey.overview import read_overview
from rankshot_survey.store import backups
from rankshot_survey.store.database import Database
from rankshot_survey.store.participation import StoppedError
from rankshot_survey.study_files import format_study
from rankshot_survey.web.app import create_app
from refusals import ANY, refuses
from server_process import wait_until
from small_studies import Visitors, read_all, small_study
from survey_command import check_refused, run_command

STUDY = small_study()


def take_part(database, *names):
    """Let people answer four questions each."""
    people = Visitors(STUDY, database)
    for name in names:
        people.answer(people.start(name))


def listing(folder):
    """Return all that a folder contains, to the byte."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def served(tmp_path):
    with closing(Database(tmp_path / "study.sqlite", create=True)) as database:
        yield database


# ---- Backups


def test_backups_under_load_are_complete_and_consistent(served, tmp_path):
    client = Client(create_app(STUDY, served, **MANY))
    acknowledged = []

    def answer(name):
        home = begin(client, f"participant={name}")
        while 'name="place"' in (page := client.get(home).text):
            form = form_of(page)
            assert client.post(form.action, form.answer("1")).status == 303
            acknowledged.append(name)

    with ThreadPoolExecutor(2) as pool:
        people = [pool.submit(answer, f"p{i}") for i in range(12)]
        targets = []
        while not all(person.done() for person in people):
            target = tmp_path / f"backup-{len(targets)}.sqlite"
            least = len(acknowledged)
            made = backup_database(tmp_path / "study.sqlite", target)
            # Two answers may be stored, and not acknowledged yet.
            assert least <= made.n_answers <= len(acknowledged) + 2
            assert read_all(target) == made.n_answers
            targets.append(target)
        for person in people:
            person.result()
    last = backup_database(tmp_path / "study.sqlite", tmp_path / "last.sqlite")
    assert (last.n_answers, last.n_participants) == (48, 12)
    assert {stat.S_IMODE(target.stat().st_mode) for target in targets} == {0o600}
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert not list(tmp_path.glob("*backup*-wal"))


def test_a_backup_replaces_nothing_and_serves_as_a_database(served, tmp_path):
    take_part(served, "ann", "bob")
    study, target = tmp_path / "study.toml", tmp_path / "backup.sqlite"
    study.write_text(format_study(STUDY))
    assert run_command(f"backup {study} -o {target}").status == 0
    take_part(served, "eve")
    check_refused(tmp_path, f"backup {study} -o {target}", "--output")
    assert read_all(target) == 8
    with closing(Database(target)) as restored:
        take_part(restored, "ida")
        assert restored.identity.link("0" * 16) == served.identity.link("0" * 16)
    assert read_all(target) == 12


def test_backups_on_a_schedule_are_made_if_something_has_changed(tmp_path, monkeypatch):
    path = tmp_path / "study.sqlite"
    turns = []

    class Turns:
        """Waits for the test, and not for minutes."""

        def wait(self, seconds):
            assert seconds == 600
            while not turns:
                time.sleep(0.001)
            return turns.pop()

        def set(self):
            turns.append(True)

    monkeypatch.setattr(backups, "Event", Turns)
    with closing(Database(path, create=True)) as database, backups.backing_up(path, 10):
        turns.append(False)
        wait_until(lambda: not turns)
        take_part(database, "ann")
        turns.append(False)
        wait_until(lambda: list(tmp_path.glob("study.backup-*.sqlite")))
        turns.append(False)
        wait_until(lambda: not turns)
    (made,) = tmp_path.glob("study.backup-*.sqlite")
    assert read_all(made) == 4


@pytest.mark.parametrize(
    ("database", "target", "option"),
    [
        ("study.sqlite", "other.sqlite", "--output"),
        ("study.sqlite", "backup.txt", "--output"),
        ("gone.sqlite", "backup.sqlite", "--database"),
        ("text.sqlite", "backup.sqlite", "--database"),
        ("foreign.sqlite", "backup.sqlite", "--database"),
        ("postgresql://me@host/x", "backup.sqlite", "--database"),
    ],
)
def test_a_backup_that_cannot_be_made_leaves_nothing_behind(tmp_path, database, target, option):
    (tmp_path / "study.toml").write_text(format_study(STUDY))
    (tmp_path / "text.sqlite").write_text("no database, but text that is long enough" * 50)
    with closing(sqlite3.connect(tmp_path / "foreign.sqlite")) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
    for name in ("study", "other"):
        Database(tmp_path / f"{name}.sqlite", create=True).close()
    database = database if "://" in database else tmp_path / database
    words = f"backup {tmp_path}/study.toml --database {database} -o {tmp_path}/{target}"
    check_refused(tmp_path, words, option)


# ---- Files that are damaged, or not whole


@pytest.mark.parametrize("options", [{}, {"create": True}, {"read_only": True}])
def test_a_damaged_or_bare_file_is_refused_and_stays_as_it_is(tmp_path, options):
    path = tmp_path / "study.sqlite"
    with closing(Database(path, create=True)) as database:
        take_part(database, *"abcdef")
    content = path.read_bytes()
    (tmp_path / "cut.sqlite").write_bytes(content[: len(content) // 2])
    (tmp_path / "page.sqlite").write_bytes(content[:4096] + b"\xff" * 4096 + content[8192:])
    with closing(sqlite3.connect(tmp_path / "wal.sqlite")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE survey (version INTEGER)")
        shutil.copy(tmp_path / "wal.sqlite", tmp_path / "bare.sqlite")
    for name in ("cut", "page", "bare"):
        before = (tmp_path / f"{name}.sqlite").read_bytes()
        with refuses("database", str(tmp_path / f"{name}.sqlite")):
            Database(tmp_path / f"{name}.sqlite", **options)
        assert (tmp_path / f"{name}.sqlite").read_bytes() == before


def test_a_server_that_was_killed_at_its_first_step_starts_again(tmp_path):
    (tmp_path / "study.sqlite").touch()
    with refuses("database"):
        Database(tmp_path / "study.sqlite")
    with closing(Database(tmp_path / "study.sqlite", create=True)) as database:
        take_part(database, "ann")
    assert read_all(tmp_path / "study.sqlite") == 4


# ---- Older versions

# The tables of rankshot 0.2.0, as it created them.
TABLES_OF_0_2 = (
    """CREATE TABLE survey (version INTEGER NOT NULL, secret TEXT NOT NULL,
        state TEXT DEFAULT 'open' NOT NULL, serving INTEGER DEFAULT '0' NOT NULL)""",
    """CREATE TABLE question (key TEXT NOT NULL PRIMARY KEY, target TEXT NOT NULL,
        items TEXT NOT NULL, first TEXT NOT NULL)""",
    """CREATE TABLE participant (rater TEXT NOT NULL PRIMARY KEY,
        started_at DOUBLE PRECISION NOT NULL, seen_at DOUBLE PRECISION NOT NULL,
        finished_at DOUBLE PRECISION, pilot INTEGER DEFAULT '0' NOT NULL, language TEXT,
        platform_id TEXT, platform_study TEXT, platform_session TEXT,
        excluded_at DOUBLE PRECISION, excluded_why TEXT, withdrawn_at DOUBLE PRECISION)""",
    """CREATE TABLE assignment (rater TEXT NOT NULL REFERENCES participant (rater),
        number INTEGER NOT NULL, question TEXT NOT NULL REFERENCES question (key),
        repeat INTEGER NOT NULL, shown TEXT NOT NULL, shown_at DOUBLE PRECISION, answer TEXT,
        answered_at DOUBLE PRECISION, seconds DOUBLE PRECISION, PRIMARY KEY (rater, number),
        UNIQUE (rater, question, repeat))""",
    "CREATE INDEX assignment_of_question ON assignment (question)",
    """CREATE TABLE extra_answer (rater TEXT NOT NULL REFERENCES participant (rater),
        name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (rater, name))""",
    """CREATE TABLE event (id TEXT NOT NULL PRIMARY KEY, at DOUBLE PRECISION NOT NULL,
        action TEXT NOT NULL, rater TEXT, detail TEXT NOT NULL)""",
)


def columns_of(database):
    with database.begin_read() as connection:
        look = inspect(connection)
        return {
            table: sorted(column["name"] for column in look.get_columns(table))
            for table in look.get_table_names()
        }


def make_old(path, *names, version=2):
    """Make a database of rankshot 0.2.0, with the answers of some people."""
    with closing(Database(path, create=True)) as database:
        take_part(database, *names)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ATTACH ? AS old", [f"{path}.old"])
        for statement in TABLES_OF_0_2:
            words = statement.replace("TABLE ", "TABLE old.").replace("INDEX ", "INDEX old.")
            connection.execute(words)
        connection.execute(
            "INSERT INTO old.survey SELECT ?, secret, state, 1 FROM main.survey", [version]
        )
        for table in ("question", "participant", "assignment", "event"):
            columns = [row[1] for row in connection.execute(f"PRAGMA old.table_info({table})")]
            named = ", ".join(columns)
            copied = f"INSERT INTO old.{table} ({named}) SELECT {named} FROM main.{table}"
            connection.execute(copied)
        connection.commit()
    Path(f"{path}.old").replace(path)


def change(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_database_of_an_older_release_is_brought_up_to_date_with_its_answers(tmp_path):
    old, new = tmp_path / "old.sqlite", tmp_path / "new.sqlite"
    make_old(old, "ann", "bob")
    with closing(Database(old)) as upgraded, closing(Database(new, create=True)) as fresh:
        columns = columns_of(upgraded)
        # Older versions noted there that a server had the file open.
        columns["survey"].remove("serving")
        assert columns == columns_of(fresh)
        view = read_overview(STUDY, upgraded, time.time())
        assert (len(view.people), view.n_answers, view.state) == (2, 8, "open")
        assert all(answer.seconds is not None for answer in view.answers)
        take_part(upgraded, "cem")
        assert read_overview(STUDY, upgraded, time.time()).n_answers == 12
        # Those who had started have their links; their ids alone do not resume.
        with pytest.raises(StoppedError):
            Visitors(STUDY, upgraded).start("ann")


# What version 0.3 had beyond 0.2.0, and this version has not.
OF_0_3 = (
    "ALTER TABLE question ADD COLUMN condition TEXT NOT NULL DEFAULT ''",
    "CREATE TABLE withdrawn (rater TEXT PRIMARY KEY, at DOUBLE PRECISION, answers TEXT)",
)


def test_a_database_of_0_3_opens_or_is_refused_by_name(tmp_path):
    path = tmp_path / "study.sqlite"
    make_old(path, "ann", version=4)
    change(path, *OF_0_3, "INSERT INTO withdrawn VALUES ('x', 0, '[\"a secret\"]')")
    for name in ("conditions", "best_worst"):
        shutil.copy(path, tmp_path / f"{name}.sqlite")
    assert read_all(path) == 4
    with closing(Database(path)) as database:
        take_part(database, "bob")
        # Answers of who had withdrawn were to be deleted after a day.
        assert "withdrawn" not in columns_of(database)
    assert read_all(path) == 8
    change(tmp_path / "conditions.sqlite", "UPDATE question SET condition = 'loss'")
    with refuses("database", str(tmp_path / "conditions.sqlite")):
        Database(tmp_path / "conditions.sqlite")
    order = '["fox", ["bus", "leopard"]]'
    change(tmp_path / "best_worst.sqlite", f"UPDATE assignment SET answer = '{order}'")
    with refuses("database", ANY):
        read_all(tmp_path / "best_worst.sqlite")


@pytest.mark.parametrize("version", [1, 6])
def test_a_database_of_a_much_older_or_newer_release_is_refused(tmp_path, version):
    make_old(tmp_path / "old.sqlite", "ann", version=version)
    before = listing(tmp_path)
    for options in ({}, {"create": True}, {"read_only": True}):
        with pytest.raises(InputError) as caught:
            Database(tmp_path / "old.sqlite", **options)
        assert caught.value.parameter == "database"
        assert f"version {version}" in caught.value.rule
    assert listing(tmp_path).keys() == before.keys()


def test_postgresql_is_brought_up_to_date_as_well(postgresql):
    url = postgresql()
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        for statement in TABLES_OF_0_2:
            connection.execute(text(statement))
        connection.execute(text("INSERT INTO survey VALUES (2, 'ab')"))
    engine.dispose()
    with refuses("database"):
        Database(url, read_only=True)
    with (
        closing(Database(url)) as upgraded,
        closing(Database(postgresql(), create=True)) as fresh,
    ):
        columns = columns_of(upgraded)
        columns["survey"].remove("serving")
        assert columns == columns_of(fresh)


def test_an_older_file_is_read_and_backed_up_without_a_byte_written(tmp_path):
    path = tmp_path / "study.sqlite"
    make_old(path, "ann", "bob")
    before = listing(tmp_path)
    assert read_all(path) == 8
    assert listing(tmp_path) == before
    assert backup_database(path, tmp_path / "backup.sqlite").n_answers == 8
    with closing(sqlite3.connect(tmp_path / "backup.sqlite")) as connection:
        assert connection.execute("SELECT version FROM survey").fetchone() == (2,)
