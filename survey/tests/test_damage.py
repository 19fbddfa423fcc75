"""Damaged files: found at the start, read as far as they go, and named row by row."""

import json
import re
import sqlite3
from contextlib import closing

import pytest

from asgi_client import begin, form_of, open_survey
from rankshot import RankshotError
from rankshot_survey import backup_database
from rankshot_survey.store.database import Database
from rankshot_survey.study_files import format_study
from small_studies import Visitors, read_all, small_study
from survey_command import run_command

STUDY = small_study(title="Animals")
N = 60


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The bytes of a database with the answers of many people."""
    path = tmp_path_factory.mktemp("sound") / "study.sqlite"
    with closing(Database(path, create=True)) as database:
        people = Visitors(STUDY, database)
        for number in range(N):
            people.answer(people.start(str(number)))
    return path.read_bytes()


@pytest.fixture
def path(tmp_path, sound):
    (tmp_path / "study.toml").write_text(format_study(STUDY))
    (tmp_path / "study.sqlite").write_bytes(sound)
    return tmp_path / "study.sqlite"


def damage_page(path, table="assignment"):
    """Overwrite a page in the middle of a table, and return how many of its rows are left."""
    with closing(sqlite3.connect(path)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        pages = connection.execute(
            "SELECT pageno, ncell FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path",
            [table],
        ).fetchall()
        (n,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    number, cells = pages[len(pages) // 2]
    content = bytearray(path.read_bytes())
    content[(number - 1) * size : number * size] = b"\xa5" * size
    path.write_bytes(content)
    return n - cells


def run_sql(path, statement, values=()):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement, values)


def test_rows_on_a_damaged_page_are_named_and_the_others_are_exported(path):
    left = damage_page(path)
    folder, before = path.parent, path.read_bytes()
    reply = run_command(f"serve {folder}/study.toml --port 0")
    assert (reply.status, "the database is damaged" in reply.err) == (2, True)
    assert len(reply.err.splitlines()) < 5
    reply = run_command(f"export {folder}/study.toml --raw -o {folder}/raw.jsonl")
    assert reply.status == 0
    assert len((folder / "raw.jsonl").read_text().splitlines()) == left
    assert re.search(rf"{4 * N - left} rows left out: row \d+ of assignment", reply.err)
    assert len(reply.err.splitlines()) < 10
    assert path.read_bytes() == before


def test_a_backup_has_the_rest_and_does_not_replace_a_good_one(path):
    good, rest = path.with_name("good.sqlite"), path.with_name("rest.sqlite")
    assert backup_database(path, good) == (4 * N, N, True, ())
    left = damage_page(path)
    with pytest.raises(RankshotError, match=r"not replaced: the database is damaged\. \d+ rows"):
        backup_database(path, good, force=True)
    done = backup_database(path, rest)
    assert (done.n_answers, done.n_participants, len(done.lost)) == (left, N, 4 * N - left)
    # It takes the place of the damaged file.
    assert read_all(rest) == (left, None)
    with closing(Database(rest)) as database:
        Visitors(STUDY, database).start("new")


WRONG = {
    "a letter of an item": ("answer", '["foy"]', "answer has an item that was not shown"),
    "half a list": ("answer", '["fox"', "answer is not readable"),
    "no text": ("shown", b"\xff\xfe", "shown is of another type|shown is not readable"),
    "no number": ("answered_at", "soon", "answered_at is of another type"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_row_that_sqlite_finds_sound_is_read_as_well(path, what):
    column, value, problem = WRONG[what]
    # What a flipped byte leaves is still of the type that the row names.
    given = "CAST(? AS TEXT)" if isinstance(value, bytes) else "?"
    run_sql(path, f"UPDATE assignment SET {column} = {given} WHERE rowid = 7", [value])
    done = backup_database(path, path.with_name("copy.sqlite"))
    (lost,) = done.lost
    assert re.fullmatch(rf"row 7 of assignment \(rater [0-9a-f]{{16}}\): ({problem})", lost)
    n, doubt = read_all(path)
    assert (n, lost in doubt) == (4 * N - 1, True)
    with pytest.raises(RankshotError, match="the database is damaged"):
        Database(path)


def test_answers_of_a_lost_person_are_named_and_a_lost_key_is_an_error(path):
    run_sql(path, "UPDATE participant SET started_at = 'x' WHERE rowid = 3")
    assert [
        name.rpartition(": ")[2] for name in backup_database(path, path.with_name("b")).lost
    ] == [
        "started_at is of another type",
        *["its participant is lost"] * 4,
    ]
    run_sql(path, "UPDATE survey SET secret = CAST(x'ff' AS TEXT)")
    with pytest.raises(RankshotError, match="without its secret key: restore a backup"):
        Database(path, read_only=True)


def test_a_server_whose_pages_fail_is_not_ready(tmp_path):
    with open_survey(STUDY, tmp_path) as (client, database):
        home = begin(client)
        form = form_of(client.get(home).text)
        client.post(form.action, form.answer("1"))
        database._file._empty_log()
        database._engine.dispose()
        damage_page(tmp_path / "study.sqlite", "assignment")
        assert client.get(home).status == 503
        ready = client.get("/ready")
        assert (ready.status, json.loads(ready.text)["ready"]) == (503, False)
