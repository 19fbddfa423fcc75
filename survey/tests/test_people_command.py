"""The commands about participants, states and payment."""

import csv
import shutil
import sqlite3
import time
from contextlib import closing

import pytest

from rankshot_survey.overview import read_overview
from rankshot_survey.store.database import Database
from rankshot_survey.store.participation import Participation
from rankshot_survey.store.people import read_state
from rankshot_survey.study_files import format_study, read_study
from small_studies import Visitors, prolific_ids, small_study
from survey_command import check_refused, run_command

DONE = "https://app.prolific.com/submissions/complete?cc=C1A2B3"
STUDY = small_study(
    platform="prolific", completion_url=DONE, answers_per_question=4, spare_answers=0
)
SECRET = "I was born in Oldenburg"


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


def words_of(folder, command):
    """Return the words of a command, with the study behind its name."""
    name, _, rest = command.partition(" ")
    return f"people {name} {folder}/study.toml {rest}"


def run(folder, command, typed=""):
    done = run_command(words_of(folder, command), typed)
    assert done.status == 0, done.err
    return done.out


def set_state(folder, state):
    assert run_command(f"set {folder}/study.toml {state}").status == 0


def read_all(folder):
    """Return participants and the state."""
    with closing(Database(folder / "study.sqlite")) as database:
        view = read_overview(read_study(folder / "study.toml"), database, time.time())
        with database.begin_read() as connection:
            return [person.row for person in view.people.values()], read_state(connection)


def read_rows(path):
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "study.toml").write_text(format_study(STUDY), encoding="utf-8")
    return tmp_path


@pytest.fixture
def raters(folder):
    return take_part(folder, ["ann-5f1e2d3c", "bob-5f1e2d3c", "eve-5f1e2d3c"])


# ---- Participants


def excluded(folder):
    return [person.excluded_why for person in read_all(folder)[0]]


def test_exclude_and_restore(folder, raters):
    (folder / "bots.txt").write_text("bob-5f1e2d3c  # a program\n\nbob-5f1e2d3c\n")
    run(folder, f"exclude eve-5f1e2d3c --from {folder}/bots.txt --why 'too fast'")
    assert excluded(folder) == [None, "too fast", "too fast"]
    run(folder, f"restore {raters['ann-5f1e2d3c']} {raters['bob-5f1e2d3c']}")
    assert excluded(folder) == [None, None, "too fast"]
    before = read_all(folder)
    for command, option in (
        ("exclude ann-5f1e2d3c nobody --why x", "ids"),
        ("exclude --why bot", "ids"),
        ("exclude ann-5f1e2d3c --why ''", "--why"),
    ):
        check_refused(folder, words_of(folder, command), option)
    assert read_all(folder) == before


def test_states(folder, raters):
    for state in ("pilot", "paused", "closed", "open"):
        set_state(folder, state)
        assert read_all(folder)[1] == state


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
    run(folder, f"exclude {name} --why '{SECRET}'")
    run(folder, f"restore {name}")
    shutil.copy(folder / "study.sqlite", folder / "backup.sqlite")
    # Other rows are changed, so that old versions of pages are left in the log.
    server = Database(folder / "study.sqlite")
    run(folder, "exclude bob-5f1e2d3c --why 'too fast'")
    run(folder, "restore bob-5f1e2d3c")
    secrets = (rater, name, f"session-of-{name}", code, SECRET)
    assert {file for file, _ in traces(folder, *secrets)} >= {"study.sqlite", "backup.sqlite"}
    run(folder, f"delete {name} --yes")
    run(folder, f"delete {name} --yes --database {folder}/backup.sqlite")
    assert traces(folder, *secrets) == set()
    server.close()
    # All others are as they were.
    for file in ("study.sqlite", "backup.sqlite"):
        with closing(sqlite3.connect(folder / file)) as connection:
            assert connection.execute("SELECT count(*) FROM participant").fetchone() == (2,)
            assert connection.execute("SELECT count(*) FROM assignment").fetchone() == (8,)
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_who_took_part_in_the_pilot_as_well_is_deleted_twice(folder):
    set_state(folder, "pilot")
    take_part(folder, ["ann", "tester"])
    set_state(folder, "open")
    take_part(folder, ["ann", "bob"])
    run(folder, "delete ann --yes")
    run(folder, "delete --pilot --yes")
    assert [person.platform_id for person in read_all(folder)[0]] == ["bob"]
    with closing(Database(folder / "study.sqlite")) as database:
        assert read_overview(STUDY, database, time.time()).n_pilot == 0


@pytest.mark.parametrize("command", ["delete ann-5f1e2d3c", "delete --all", "forget-ids"])
def test_what_cannot_be_undone_is_asked_before(folder, raters, command):
    set_state(folder, "closed")
    before = read_all(folder)
    # Nobody answers, or says no.
    for typed in ("", "\n", "n\n"):
        assert run_command(words_of(folder, command), typed).status == 1
        assert read_all(folder) == before
    run(folder, command, typed="y\n")
    assert read_all(folder) != before


def test_who_may_still_have_to_be_paid_is_counted_before_ids_are_erased(folder, raters):
    asked = run_command(words_of(folder, "forget-ids")).out
    assert str(len(raters)) not in asked
    take_part(folder, ["slow"], n=1)
    assert "1 participant" in run_command(words_of(folder, "forget-ids")).out


def test_all_are_deleted_with_those_of_the_pilot(folder, raters):
    check_refused(folder, words_of(folder, "delete --yes"), "ids")
    set_state(folder, "pilot")
    take_part(folder, ["tester"])
    assert "4 participants" in run(folder, "delete ann-5f1e2d3c --pilot --all --yes")
    assert read_all(folder)[0] == []


# ---- Payment


def test_everybody_is_in_one_list_with_the_ids_of_the_platform(folder):
    raters = take_part(folder, ["ann", "bob", "none"], skip=["none"])
    take_part(folder, ["fast"], seconds=0.1)
    run(folder, "exclude bob --why '=too(fast)'")
    away = take_part(folder, ["slow", "away"], n=0)["away"]
    with closing(Database(folder / "study.sqlite")) as database:
        Participation(STUDY, database).withdraw(away)
    run(folder, f"payments --approve -o {folder}/approve.csv")
    (row,) = read_rows(folder / "approve.csv")
    assert (row["id"], row["rater"], row["session"]) == ("ann", raters["ann"], "session-of-ann")
    run(folder, f"payments --reject -o {folder}/reject.txt")
    assert (folder / "reject.txt").read_text() == "bob\n"
    run(folder, f"payments --approve --with-flagged -o {folder}/all.txt")
    assert sorted((folder / "all.txt").read_text().split()) == ["ann", "fast"]
    check_refused(folder, words_of(folder, f"payments -o {folder}/x.json"), "--output")
    run(folder, f"payments -o {folder}/all.csv")
    assert {row["id"]: row["decision"] for row in read_rows(folder / "all.csv")} == {
        "ann": "approve",
        "bob": "reject",
        "none": "return",
        "fast": "look at",
        "slow": "wait",
        "away": "return",
    }
    run(folder, "forget-ids --yes")
    assert [person.platform_id for person in read_all(folder)[0]] == [None] * 6
    check_refused(folder, words_of(folder, f"payments --approve -o {folder}/x.csv"), "study")
