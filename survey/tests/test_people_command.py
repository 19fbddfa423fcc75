"""The commands about participants, states and payment."""

import csv
import shutil
import sqlite3
import time
from contextlib import closing

import pytest

from rankshot_survey.overview import read_overview
from rankshot_survey.store.database import EXTRA_ANSWER, Database
from rankshot_survey.store.people import read_events, read_state, withdraw
from rankshot_survey.study_files import format_study, read_study
from small_studies import Visitors, prolific_ids, small_study
from survey_command import run_command

DONE = "https://app.prolific.com/submissions/complete?cc=C1A2B3"
STUDY = small_study(
    platform="prolific", completion_url=DONE, answers_per_question=4, spare_answers=0
)
SECRET, OLD = "I was born in Oldenburg", "and my cat is called Mitzi"


def take_part(folder, names, *, skip=(), n=100, seconds=9.0):
    """Let people answer everything, or ``n`` questions, except those in ``skip``."""
    raters = {}
    with closing(Database(folder / "study.sqlite", create=True)) as database:
        people = Visitors(STUDY, database)
        for name in names:
            ids = prolific_ids(name, "study-1", f"session-of-{name}")
            raters[name] = people.start(name, ids=ids)
            said = [] if name in skip else STUDY.items
            people.answer(raters[name], n, rank=lambda *_, said=said: said, seconds=seconds)
    return raters


def run(folder, words, status=0):
    command, *rest = words.split(" ")
    done = run_command(f"{command} {folder}/study.toml {' '.join(rest)}")
    assert done.status == status, done.err
    return done.err if status else done.out


def read_all(folder):
    """Return participants, events and the state."""
    with closing(Database(folder / "study.sqlite")) as database:
        view = read_overview(read_study(folder / "study.toml"), database, time.time())
        with database.begin_read() as connection:
            return [*view.people.values()], read_events(connection), read_state(connection)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "study.toml").write_text(format_study(STUDY), encoding="utf-8")
    return tmp_path


@pytest.fixture
def raters(folder):
    return take_part(folder, ["ann-5f1e2d3c", "bob-5f1e2d3c", "eve-5f1e2d3c"])


# ---- Participants


def test_exclude_and_restore(folder, raters):
    out = run(folder, "exclude bob-5f1e2d3c eve-5f1e2d3c --why 'too fast'")
    assert "2 participants excluded: too fast" in out
    people, events, _ = read_all(folder)
    assert [person.excluded_why for person in people] == [None, "too fast", "too fast"]
    assert {event.rater for event in events} == set(list(raters.values())[1:])
    both = f"{raters['ann-5f1e2d3c']} {raters['bob-5f1e2d3c']}"
    out = run(folder, f"restore {both}")
    assert "1 participant restored.\n1 participant neither excluded nor withdrawn: nothing" in out
    before = read_all(folder)
    assert "'nobody'" in run(folder, "exclude ann-5f1e2d3c nobody --why x", status=2)
    assert read_all(folder) == before


def test_exclude_by_lists(folder, raters):
    (folder / "bots.txt").write_text("bob-5f1e2d3c  # a program\n\nbob-5f1e2d3c\n")
    assert "1 participant excluded: bot" in run(
        folder, f"exclude --from {folder}/bots.txt --why bot"
    )
    (folder / "list.csv").write_text(
        "Submission id,Participant id,Status\n1,ann-5f1e2d3c,APPROVED\n2,who-never-came,RETURNED\n"
    )
    said = run(folder, f"exclude --not-in {folder}/list.csv --why bot")
    assert "1 participant excluded: bot\n1 participant already excluded" in said
    people, *_ = read_all(folder)
    assert [person.excluded_why for person in people] == [None, "bot", "bot"]
    (folder / "all.csv").write_text("id\n" + "\n".join(raters.values()))
    said = run(folder, f"exclude --not-in {folder}/all.csv --why bot")
    assert "All participants are in the list" in said
    (folder / "other.txt").write_text("somebody\n")
    said = run(folder, f"exclude --not-in {folder}/other.txt --why bot", status=2)
    assert "none of the 3 participants is in the list" in said
    assert "give ids, --from or --not-in" in run(folder, "exclude --why bot", status=2)
    said = run(folder, f"exclude ann-5f1e2d3c --not-in {folder}/all.csv --why bot", status=2)
    assert "give either ids or --not-in" in said


def test_states_and_reset(folder, raters):
    for word, state in (("pilot", "pilot"), ("pause", "paused"), ("close", "closed")):
        run(folder, word)
        assert read_all(folder)[2] == state
    run(folder, "reopen")
    assert read_all(folder)[2] == "open"
    assert "pause or close it first" in run(folder, "reset --all --yes", status=2)
    assert "give either --pilot or --all" in run(folder, "reset --yes", status=2)
    assert "0 participants deleted" in run(folder, "reset --pilot --yes")
    run(folder, "pause")
    # Nobody says yes.
    assert run_command(f"reset {folder}/study.toml --all").status == 1
    assert len(read_all(folder)[0]) == 3
    assert "3 participants deleted" in run(folder, "reset --all --yes")
    assert read_all(folder)[0] == []


# ---- Deletion


def traces(folder, *texts):
    """Return the files that contain one of these texts, in any of their bytes."""
    return {
        (path.name, text)
        for path in folder.iterdir()
        if path.name != "study.toml"
        for text in texts
        if text.encode() in path.read_bytes()
    }


def test_deleted_people_are_gone_from_the_bytes_of_all_files(folder, raters):
    name, rater = "ann-5f1e2d3c", raters["ann-5f1e2d3c"]
    with closing(Database(folder / "study.sqlite")) as database:
        code = database.identity.code(rater)
        with database.begin_write() as connection:
            row = {"rater": rater, "name": "life", "value": SECRET}
            connection.execute(EXTRA_ANSWER.insert().values(row))
    # An older rankshot did not overwrite what it deleted.
    with closing(sqlite3.connect(folder / "study.sqlite", isolation_level=None)) as old:
        old.execute("PRAGMA secure_delete = OFF")
        old.execute("INSERT INTO extra_answer VALUES (?, 'old', ?)", [rater, OLD])
        old.execute("DELETE FROM extra_answer WHERE name = 'old'")
    run(folder, f"exclude {name} --why '{SECRET}'")
    run(folder, f"restore {name}")
    shutil.copy(folder / "study.sqlite", folder / "backup.sqlite")
    # Other rows are changed, so that old versions of pages are left in the log.
    server = Database(folder / "study.sqlite")
    run(folder, "exclude bob-5f1e2d3c --why 'too fast'")
    run(folder, "restore bob-5f1e2d3c")
    secrets = (rater, name, f"session-of-{name}", code, SECRET, OLD)
    assert {file for file, _ in traces(folder, *secrets)} >= {"study.sqlite", "backup.sqlite"}
    assert "1 participant deleted" in run(folder, f"delete {name} --yes")
    run(folder, f"delete {name} --yes --database {folder}/backup.sqlite")
    assert traces(folder, *secrets) == set()
    server.close()
    # All others are as they were.
    for file in ("study.sqlite", "backup.sqlite"):
        with closing(sqlite3.connect(folder / file)) as connection:
            assert connection.execute("SELECT count(*) FROM participant").fetchone() == (2,)
            assert connection.execute("SELECT count(*) FROM assignment").fetchone() == (8,)
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert next((e.action, e.rater) for e in read_all(folder)[1]) == ("delete", None)


def test_who_took_part_in_the_pilot_as_well_is_one_participant(folder):
    run(folder, "pilot")
    take_part(folder, ["ann"])
    run(folder, "reopen")
    take_part(folder, ["ann"])
    assert "1 participant and 1 pilot participant deleted." in run(folder, "delete ann --yes")
    assert read_all(folder)[0] == []


# ---- Payment


def test_everybody_is_in_one_list_with_the_ids_of_the_platform(folder):
    raters = take_part(folder, ["ann", "bob", "none"], skip=["none"])
    take_part(folder, ["fast"], seconds=0.1)
    run(folder, "exclude bob --why '=too(fast)'")
    away = take_part(folder, ["slow", "away"], n=0)["away"]
    with closing(Database(folder / "study.sqlite")) as database:
        withdraw(database, away, 0.0)
    said = run(folder, f"payments --approve -o {folder}/approve.csv")
    assert "1 participant id written" in said
    for line in ("approve: 1 (", "look at: 1 (", "reject: 1 (", "return: 2 (", "wait: 1 ("):
        assert line in said
    assert "    fast fast: 4 of 4 answers within 3 seconds" in said
    with (folder / "approve.csv").open(encoding="utf-8-sig", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert (row["id"], row["rater"], row["session"]) == ("ann", raters["ann"], "session-of-ann")
    run(folder, f"payments --reject -o {folder}/reject.txt")
    assert (folder / "reject.txt").read_text() == "bob\n"
    run(folder, f"payments --approve --with-flagged -o {folder}/all.txt")
    assert sorted((folder / "all.txt").read_text().split()) == ["ann", "fast"]
    assert "--with-flagged needs --approve" in run(folder, "payments --with-flagged", status=2)
    assert "with --output" in run(folder, "payments --approve", status=2)
    assert "expected .csv" in run(folder, f"payments -o {folder}/x.txt", status=2)
    run(folder, f"payments -o {folder}/all.csv")
    with (folder / "all.csv").open(encoding="utf-8-sig", newline="") as stream:
        decisions = {row["id"]: row["decision"] for row in csv.DictReader(stream)}
    assert decisions == {
        "ann": "approve",
        "bob": "reject",
        "none": "return",
        "fast": "look at",
        "slow": "wait",
        "away": "return",
    }
    said = run(folder, "forget-ids --yes")
    assert "1 participant not finished: they may still have to be paid" in said
    assert "The ids of 6 participants are erased" in said
    assert "Backups and exported files still have the ids" in said
    write = f"payments --approve -o {folder}/x.csv"
    assert "ids of 1 participant were erased" in run(folder, write, status=2)
    assert not (folder / "x.csv").exists()


def test_the_list_of_prolific_is_compared_with_ours(folder):
    take_part(folder, ["ann", "bob", "eve"])
    take_part(folder, ["slow"], n=0)
    # As Prolific exports it, with more columns.
    listed = """Submission id,Participant id,Status,Started at
1,bob,RETURNED,x
2,bob,AWAITING REVIEW,x
3,eve,TIMED-OUT,x
4,gone,APPROVED,x
5,slow,AWAITING REVIEW,x
6,busy,ACTIVE,x
"""
    (folder / "prolific.csv").write_text(f"\ufeff{listed}", encoding="utf-8")
    said = run(folder, f"payments --prolific {folder}/prolific.csv")
    assert said.endswith("""Returned or timed out at Prolific: 1
    eve
Submitted at Prolific, but not here: 1
    gone
Submitted at Prolific, but not finished here: 1
    slow
Here, but not in Prolific's list: 1
    ann
"""), said
    (folder / "other.csv").write_text("id,status\nann,APPROVED\n")
    said = run(folder, f"payments --prolific {folder}/other.csv", status=2)
    assert "Participant id" in said
