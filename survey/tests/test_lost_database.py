"""A database that is removed, replaced, full or locked under a running server."""

import logging
import os
import re
import shutil
import sqlite3
from contextlib import closing

import httpx
import pytest

from asgi_client import begin, form_of, open_survey
from rankshot_survey.overview import read_answers
from rankshot_survey.store import sqlite_files
from rankshot_survey.store.database import Database
from rankshot_survey.store.sqlite_files import DatabaseGoneError
from server_process import Server, wait_until
from small_studies import questions_about, read_all, small_study

pytestmark = pytest.mark.slow

STUDY = small_study()


def remove_all(path):
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def move_and_copy(path):
    path.rename(path.with_name("moved.sqlite"))
    shutil.copy(path.with_name("moved.sqlite"), path)


def replace_by_another(path):
    other = path.with_name("other.sqlite")
    Database(other, create=True).close()
    other.replace(path)


LOSSES = {
    "remove": lambda path: path.unlink(),
    "remove all": remove_all,
    "remove log": lambda path: path.with_name(f"{path.name}-wal").unlink(),
    "move and copy": move_and_copy,
    "replace": replace_by_another,
    "remove folder": lambda path: shutil.rmtree(path.parent),
    "rename folder": lambda path: path.parent.rename(path.parent.with_name("renamed")),
}


def find_rescued(message):
    """Return the file that a message names."""
    return next(word.rstrip(".") for word in message.split() if ".rescued-" in word)


@pytest.mark.parametrize("lose", LOSSES)
def test_what_cannot_be_stored_is_refused_and_what_was_stored_is_rescued(
    tmp_path, monkeypatch, caplog, lose
):
    monkeypatch.setattr(sqlite_files, "CHECKPOINT_SECONDS", 3600)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path / "data"
    folder.mkdir()
    with open_survey(STUDY, folder) as (client, _):
        home = begin(client)
        for _ in range(2):
            form = form_of(client.get(home).text)
            assert client.post(form.action, form.answer("1")).status == 303
        form = form_of(client.get(home).text)
        LOSSES[lose](folder / "study.sqlite")
        for _ in range(2):
            reply = client.post(form.action, form.answer("1"))
            assert reply.status == 503
            assert "what you sent was not saved" in reply.text
            assert client.get(home).status == 503
        assert client.get("/?participant=bob").status == 503
    (record,) = [entry for entry in caplog.records if entry.levelno == logging.CRITICAL]
    message = record.getMessage()
    assert "study.sqlite or its log was removed or replaced while the survey was" in message
    assert read_all(tmp_path / find_rescued(message)) == (2, None)
    if lose == "replace":
        # The log of the lost file was not added to this one.
        with closing(sqlite3.connect(folder / "study.sqlite")) as connection:
            assert connection.execute("SELECT count(*) FROM participant").fetchone() == (0,)
    if lose in {"remove", "remove all"}:
        assert not (folder / "study.sqlite").exists(), "no new, empty file"


def test_a_file_that_is_replaced_during_a_transaction_is_noticed_before_the_answer_is_sent(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(sqlite_files, "CHECKPOINT_SECONDS", 3600)
    path = tmp_path / "study.sqlite"
    with (
        closing(Database(path, create=True)) as database,
        pytest.raises(DatabaseGoneError),
        database.begin_write(),
    ):
        move_and_copy(path)


def test_a_server_says_once_what_happened_and_what_to_do(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    study = small_study(questions=questions_about("cat", "dog"), questions_per_participant=2)
    server = Server(study, tmp_path, str(folder / "study.sqlite"))
    server.start()
    with httpx.Client(base_url=server.url, trust_env=False, follow_redirects=True) as client:
        form = form_of(client.get("/?participant=ann").text)
        home = str(client.post(form.action, data=form.fields).url).removesuffix("/instructions")
        form = form_of(client.get(home).text)
        assert client.post(form.action, data=form.answer("1")).status_code == 200
        form = form_of(client.get(home).text)
        remove_all(folder / "study.sqlite")
        # Without any request: the server looks every few seconds.
        wait_until(lambda: "restart" in server.errors or "rescued" in server.errors)
        for _ in range(3):
            reply = client.post(form.action, data=form.answer("1"))
            assert reply.status_code == 503
            assert reply.headers["retry-after"] == "60"
    server.stop()
    assert server.errors.count("removed or replaced") == 1
    assert "Stop the server" in server.errors
    assert "Traceback" not in server.errors
    (rescued,) = folder.iterdir()
    assert read_all(rescued) == (1, None)
    # As the message says: the rescued file takes the place of the lost one.
    rescued.rename(folder / "study.sqlite")
    server.start()
    with httpx.Client(base_url=server.url, trust_env=False, follow_redirects=True) as client:
        home = home.replace(home.rsplit("/p/")[0], server.url)
        assert client.post(form.action, data=form.answer("1")).status_code == 200
        assert 'name="place"' not in client.get(home).text
    server.stop()
    assert read_all(folder / "study.sqlite") == (2, None)


def test_a_full_disk_and_a_locked_database_are_outages_and_no_errors_of_ours(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_files, "BUSY_SECONDS", 0.05)
    # The thread that empties the log would keep others waiting for as long on a busy machine.
    monkeypatch.setattr(sqlite_files, "CHECKPOINT_SECONDS", 3600)
    with open_survey(STUDY, tmp_path) as (client, database):
        home = begin(client)
        form = form_of(client.get(home).text)
        with closing(sqlite3.connect(tmp_path / "study.sqlite", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert client.post(form.action, form.answer("1")).status == 503
            other.execute("ROLLBACK")
        with database._file.take_turn():
            reply = client.post(form.action, form.answer("1"))
            assert reply.status == 503
        # The page has a button that sends the same again.
        again = form_of(reply.text)
        places = re.findall(r'name="place" value="(.*?)"', reply.text)
        assert (again.action, places) == (form.action, ["1", "", ""])
        assert "<button" in reply.text
        with database.begin_read() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        # The pool gives the same connection to the next request.
        with database.begin_write() as connection:
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        replies = [client.post(*start(client, i)).status for i in range(40)]
        assert 503 in replies
        assert set(replies) <= {303, 503}
        with database.begin_write() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count = 1000000")
        assert client.post(form.action, form.answer("1")).status == 303
        with database.begin_read() as connection:
            assert len(read_answers(connection)) == 1


def test_a_file_that_is_cut_off_is_an_outage_and_the_server_is_not_ready(
    tmp_path, monkeypatch, caplog
):
    with open_survey(STUDY, tmp_path) as (client, database):
        home = begin(client)
        for number in range(20):
            client.post(*start(client, number))
        assert client.get("/ready").status == 200
        form = form_of(client.get(home).text)
        # All of the log is in the file, as after some quiet seconds.
        database._file._empty_log()
        assert client.get("/ready").status == 200
        size = (tmp_path / "study.sqlite").stat().st_size
        os.truncate(tmp_path / "study.sqlite", size // 3)
        assert client.get("/ready").status == 503
        replies = (client.get(home), client.post(form.action, form.answer("1")))
        assert [reply.status for reply in replies] == [503, 503]
        assert "what you sent was not saved" in replies[1].text
    assert "study.sqlite was cut off while the survey was running" in caplog.text


def test_a_damaged_page_of_the_file_is_an_outage(tmp_path):
    with open_survey(STUDY, tmp_path) as (client, database):
        home = begin(client)
        database._file._empty_log()
        with (tmp_path / "study.sqlite").open("r+b") as file:
            file.seek(4096)
            file.write(b"x" * (tmp_path / "study.sqlite").stat().st_size)
        database._engine.dispose()
        assert client.get(home).status == 503


def start(client, number):
    form = form_of(client.get(f"/?participant=p{number}").text)
    return form.action, form.fields
