"""Backups, restoring, damaged files, and databases of older versions."""

import shutil
import sqlite3
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from asgi import Client
from asgi_client import MANY, begin, form_of
from rankshot.core.errors import NO_VALUE
from rankshot_survey import backup_database
from rankshot_survey.store import database as module
from rankshot_survey.store.database import VERSION, Database
from rankshot_survey.study_files import format_study
from rankshot_survey.web.app import create_app
from refusals import refuses
from server_process import wait_until
from small_studies import Visitors, read_all, small_study
from survey_command import check_refused, run_command

STUDY = small_study()


def take_part(database, *names):
    """Let people answer four questions each."""
    people = Visitors(STUDY, database)
    for name in names:
        people.answer(people.start(name))


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
            backup_database(tmp_path / "study.sqlite", target)
            # Two answers may be stored, and not acknowledged yet.
            assert least <= read_all(target) <= len(acknowledged) + 2
            targets.append(target)
        for person in people:
            person.result()
    backup_database(tmp_path / "study.sqlite", tmp_path / "last.sqlite")
    assert read_all(tmp_path / "last.sqlite") == 48
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

    monkeypatch.setattr(module, "Event", Turns)
    with closing(Database(path, create=True)) as database, module.backing_up(path, 10):
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
    # Nothing that is read at the start is damaged.
    (tmp_path / "leaf.sqlite").write_bytes(content[:-4096] + b"\xff" * 8 + content[-4088:])
    with closing(sqlite3.connect(tmp_path / "wal.sqlite")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE survey (version INTEGER)")
        shutil.copy(tmp_path / "wal.sqlite", tmp_path / "bare.sqlite")
    for name in ("cut", "page", "leaf", "bare"):
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


# ---- Version 0.3


@pytest.mark.parametrize("version", [4, VERSION + 1])
@pytest.mark.parametrize("options", [{}, {"create": True}, {"read_only": True}])
def test_databases_of_other_versions_are_refused_by_name(place, version, options):
    with closing(Database(place, create=True)) as database, database.begin_write() as connection:
        connection.execute(text(f"UPDATE survey SET version = {version}"))
    with refuses("database", str(place) if isinstance(place, Path) else NO_VALUE) as caught:
        Database(place, **options)
    assert str(version) in caught.value.rule
