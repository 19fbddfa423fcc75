"""Copies of a database: of the bare file, by the command, of an older version, read-only."""

import shutil
import sqlite3
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from sqlalchemy import create_engine, inspect, text

from asgi import Client
from asgi_client import MANY, begin, form_of
from rankshot.core.errors import RankshotError
from rankshot_survey import backup_database
from rankshot_survey.overview import read_overview
from rankshot_survey.store import sqlite_files
from rankshot_survey.store.database import Database
from rankshot_survey.store.participation import StoppedError
from rankshot_survey.study_files import format_study
from rankshot_survey.web.app import create_app
from server_process import Server, wait_until
from small_studies import Visitors, read_all, small_study
from survey_command import check_refused, run_command

STUDY = small_study()


def take_part(database, *names):
    """Let people answer four questions each."""
    people = Visitors(STUDY, database)
    for name in names:
        people.answer(people.start(name))


def look(path, what):
    """Return a value of a file, without its log."""
    with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as connection:
        return connection.execute(f"SELECT {what}").fetchone()[0]


def count_stored(path):
    return look(path, "count(answer) FROM assignment")


def is_serving(path):
    return bool(look(path, "serving FROM survey"))


def listing(folder):
    """Return all that a folder contains, to the byte."""
    return {
        path.relative_to(folder): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A database that a server has open, and that makes no checkpoint by itself."""
    monkeypatch.setattr(sqlite_files, "CHECKPOINT_SECONDS", 3600)
    database = Database(tmp_path / "study.sqlite", create=True)
    database.start_serving()
    yield database
    database.close()


# ---- the bare file


def test_a_bare_copy_of_a_running_survey_is_doubted(served, tmp_path):
    take_part(served, "ann", "bob")
    bare = tmp_path / "bare.sqlite"
    shutil.copy(tmp_path / "study.sqlite", bare)
    assert count_stored(bare) == 0
    n_answers, doubt = read_all(bare)
    assert n_answers == 0
    assert "copied while the survey was running, or its log (bare.sqlite-wal) is missing" in doubt
    assert read_all(tmp_path / "study.sqlite") == (8, None)
    shutil.copy(tmp_path / "study.sqlite-wal", tmp_path / "bare.sqlite-wal")
    assert read_all(bare) == (8, None)


def test_the_doubt_about_a_bare_copy_stays_until_somebody_accepts_it(served, tmp_path):
    bare, backup = tmp_path / "bare.sqlite", tmp_path / "backup.sqlite"
    take_part(served, "ann")
    shutil.copy(tmp_path / "study.sqlite", bare)
    for name in ("bob", "cem"):
        with closing(Database(bare)) as copy:
            assert "answers may be missing" in copy.doubt
            copy.start_serving()
            take_part(copy, name)
    assert not backup_database(bare, backup).is_complete
    assert all("--accept-copy" in read_all(file)[1] for file in (bare, backup))
    with closing(Database(bare)) as copy:
        copy.accept_copy()
        assert copy.doubt is None
    assert read_all(bare) == (8, None)
    assert backup_database(bare, backup, force=True).is_complete


def test_a_checkpoint_makes_the_bare_file_complete_and_so_does_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_files, "CHECKPOINT_SECONDS", 0.02)
    path = tmp_path / "study.sqlite"
    with closing(Database(path, create=True)) as database:
        database.start_serving()
        take_part(database, "ann")
        wait_until(lambda: count_stored(path) == 4)
        # A server cannot know whether somebody answers while the file is being copied.
        assert is_serving(path)
        monkeypatch.setattr(sqlite_files, "CHECKPOINT_SECONDS", 3600)
        take_part(database, "bob")
    assert [found.name for found in tmp_path.iterdir()] == ["study.sqlite"]
    assert count_stored(path) == 8
    assert read_all(path) == (8, None)


@pytest.mark.slow
def test_a_killed_server_loses_nothing_and_is_repaired_by_the_next(tmp_path):
    server = Server(STUDY, tmp_path)
    server.start()
    path = tmp_path / "study.sqlite"
    take_part_over_http(server.url, "ann")
    server.kill()
    assert is_serving(path)
    assert read_all(path) == (4, None)
    # A copy with its log, but without the shared memory beside it, is complete as well.
    for ending in ("", "-wal"):
        shutil.copy(f"{path}{ending}", f"{tmp_path}/copy.sqlite{ending}")
    before = listing(tmp_path)
    assert read_all(tmp_path / "copy.sqlite") == (4, None)
    assert listing(tmp_path) == before
    server.start()
    server.stop()
    assert (is_serving(path), count_stored(path)) == (False, 4)
    assert not (tmp_path / "study.sqlite-wal").exists()
    assert "answers may be missing" not in server.errors


def take_part_over_http(url, name):
    with httpx.Client(base_url=url, trust_env=False, follow_redirects=True) as client:
        form = form_of(client.get(f"/?participant={name}").text)
        page = client.post(form.action, data=form.fields)
        home = str(page.url).removesuffix("/instructions")
        while 'name="place"' in (page := client.get(home).text):
            form = form_of(page)
            assert client.post(form.action, data=form.answer("1")).status_code == 200


def test_a_file_without_tables_is_an_error_and_stays_as_it_is(tmp_path):
    path = tmp_path / "study.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE survey (version INTEGER)")
        shutil.copy(path, tmp_path / "bare.sqlite")
    assert (tmp_path / "bare.sqlite").stat().st_size == 4096
    (tmp_path / "empty.sqlite").touch()
    before = listing(tmp_path)
    for name in ("bare.sqlite", "empty.sqlite"):
        for options in ({}, {"create": True}, {"read_only": True}):
            with pytest.raises(RankshotError, match=rf"{name}: the file has no tables"):
                Database(tmp_path / name, **options)
        with pytest.raises(RankshotError, match=rf"{name}: the file has no tables"):
            backup_database(tmp_path / name, tmp_path / "backup.sqlite")
    assert listing(tmp_path) == before


# ---- the command


@pytest.mark.slow
def test_backups_under_load_are_complete_and_consistent(served, tmp_path):
    client = Client(create_app(STUDY, served, **MANY))
    acknowledged = []

    def answer(name):
        home = begin(client, f"participant={name}")
        while 'name="place"' in (page := client.get(home).text):
            form = form_of(page)
            assert client.post(form.action, form.answer("1")).status == 303
            acknowledged.append(name)

    target = tmp_path / "backup.sqlite"
    with ThreadPoolExecutor(2) as pool:
        people = [pool.submit(answer, f"p{i}") for i in range(12)]
        counts = []
        while not all(person.done() for person in people):
            least = len(acknowledged)
            done = backup_database(tmp_path / "study.sqlite", target, force=True)
            assert least <= done.n_answers <= len(acknowledged) + 2
            assert done.is_complete
            assert read_all(target) == (done.n_answers, None)
            counts.append(done.n_answers)
        for person in people:
            person.result()
    assert len(set(counts)) > 2, "answers came between the backups"
    final = backup_database(tmp_path / "study.sqlite", target, force=True)
    assert (final.n_answers, final.n_participants) == (48, 12)
    assert not is_serving(target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert not list(tmp_path.glob("backup.sqlite-*"))


def test_the_command_makes_a_backup_and_does_not_replace_a_file(served, tmp_path):
    take_part(served, "ann", "bob")
    study, target = tmp_path / "study.toml", tmp_path / "backup.sqlite"
    study.write_text(format_study(STUDY))
    done = run_command(f"backup {study} -o {target}")
    assert done.status == 0, done.err
    assert "8 answers" in done.out
    assert "of 2 participants" in done.out
    before = target.read_bytes()
    again = run_command(f"backup {study} -o {target}")
    assert (again.status, "the file exists already" in again.err) == (2, True)
    assert target.read_bytes() == before
    take_part(served, "eve")
    assert run_command(f"backup {study} -o {target} --force").status == 0
    assert read_all(target) == (12, None)
    # The copy serves as the database of a server.
    with closing(Database(target)) as restored:
        take_part(restored, "ida")
        assert restored.identity.link("0" * 16) == served.identity.link("0" * 16)
    assert read_all(target) == (16, None)


@pytest.mark.parametrize(
    ("database", "target", "says"),
    [
        ("study.sqlite", "other.sqlite", "this is a database in use"),
        ("gone.sqlite", "backup.sqlite", "there is no such database"),
        ("text.sqlite", "backup.sqlite", "not a database"),
        ("foreign.sqlite", "backup.sqlite", "no such table"),
        ("postgresql://me@host/x", "backup.sqlite", "pg_dump --format=custom"),
    ],
)
def test_a_backup_that_cannot_be_made_leaves_nothing_behind(
    served, tmp_path, database, target, says
):
    take_part(served, "ann")
    (tmp_path / "study.toml").write_text(format_study(STUDY))
    (tmp_path / "text.sqlite").write_text("no database, but text that is long enough" * 50)
    with closing(sqlite3.connect(tmp_path / "foreign.sqlite")) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
    database = database if "://" in database else tmp_path / database
    with closing(Database(tmp_path / "other.sqlite", create=True)):
        words = f"backup {tmp_path}/study.toml --database {database} -o {tmp_path}/{target} --force"
        check_refused(tmp_path, words, says)


# ---- older versions

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


def test_a_database_of_the_last_release_is_brought_up_to_date_with_its_answers(tmp_path):
    old, new = tmp_path / "old.sqlite", tmp_path / "new.sqlite"
    make_old(old, "ann", "bob")
    with closing(Database(old)) as upgraded, closing(Database(new, create=True)) as fresh:
        assert columns_of(upgraded) == columns_of(fresh)
        view = read_overview(STUDY, upgraded, time.time())
        assert (len(view.people), view.n_answers, view.state) == (2, 8, "open")
        assert all(answer.seconds is not None for answer in view.answers)
        assert {answer.screen for answer in view.answers} == {None}
        take_part(upgraded, "cem")
        assert read_overview(STUDY, upgraded, time.time()).n_answers == 12
        # Those who had started have their links; their ids alone do not resume.
        with pytest.raises(StoppedError, match="elsewhere"):
            Visitors(STUDY, upgraded).start("ann")


def test_a_database_of_the_first_release_is_refused(tmp_path):
    old = tmp_path / "old.sqlite"
    make_old(old, "ann")
    with closing(sqlite3.connect(old, isolation_level=None)) as connection:
        connection.execute("UPDATE survey SET version = 1")
    with pytest.raises(RankshotError, match=r"version 1, .*open older ones with 0\.2\.0"):
        Database(old)


def test_postgresql_is_brought_up_to_date_as_well(postgresql):
    url = postgresql()
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        for statement in TABLES_OF_0_2:
            connection.execute(text(statement))
        connection.execute(text("INSERT INTO survey VALUES (2, 'ab')"))
    engine.dispose()
    with pytest.raises(RankshotError, match=r"schema version 2, .* reading does not change it"):
        Database(url, read_only=True)
    with (
        closing(Database(url)) as upgraded,
        closing(Database(postgresql(), create=True)) as fresh,
    ):
        assert columns_of(upgraded) == columns_of(fresh)


def make_old(path, *names):
    """Make a database of rankshot 0.2.0, with the answers of some people."""
    with closing(Database(path, create=True)) as database:
        take_part(database, *names)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ATTACH ? AS old", [f"{path}.old"])
        for statement in TABLES_OF_0_2:
            words = statement.replace("TABLE ", "TABLE old.").replace("INDEX ", "INDEX old.")
            connection.execute(words)
        connection.execute(
            "INSERT INTO old.survey SELECT 2, secret, state, serving FROM main.survey"
        )
        for table in ("question", "participant", "assignment", "event"):
            columns = [row[1] for row in connection.execute(f"PRAGMA old.table_info({table})")]
            named = ", ".join(columns)
            copied = f"INSERT INTO old.{table} ({named}) SELECT {named} FROM main.{table}"
            connection.execute(copied)
        connection.commit()
    Path(f"{path}.old").replace(path)


def test_an_older_file_is_read_and_backed_up_without_a_byte_written(tmp_path):
    path = tmp_path / "study.sqlite"
    make_old(path, "ann", "bob")
    before = listing(tmp_path)
    assert read_all(path) == (8, None)
    assert listing(tmp_path) == before
    assert backup_database(path, tmp_path / "backup.sqlite").n_answers == 8
    with closing(sqlite3.connect(tmp_path / "backup.sqlite")) as connection:
        assert connection.execute("SELECT version FROM survey").fetchone() == (2,)
    with closing(Database(path)) as database:
        take_part(database, "eve")
    assert read_all(path) == (12, None)
