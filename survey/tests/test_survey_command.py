"""The command ``rankshot-survey``, and what its export is good for."""

import re
import socket
from contextlib import closing
from functools import partial

import numpy as np
import pytest

import rankshot as rs
from rankshot.cli import app as main_app
from rankshot.core.command import run
from rankshot_survey.cli import app
from rankshot_survey.store.database import Database
from rankshot_survey.study import CONSENT_PLACEHOLDER
from rankshot_survey.study_files import read_study
from small_studies import Visitors
from survey_command import check_refused, run_command

SEEN = ["bus", "fox", "leopard", "tiger", "tram", "whale", "wolf"]
NEW = ["cat", "dog", "truck"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "seen.txt").write_text("\n".join(SEEN))
    (tmp_path / "new.txt").write_text("\n".join(NEW))
    near = rs.Rankings.from_orders([SEEN, SEEN[::-1], SEEN], targets=NEW)
    rs.write_rankings(near, tmp_path / "near.jsonl")
    return tmp_path


def new(folder, more=""):
    lists = f"--seen {folder}/seen.txt --new {folder}/new.txt --rankings {folder}/near.jsonl"
    return run_command(f"new {folder}/study.toml {lists} {more}")


def write_study(folder):
    """Write a study about all seen classes, without placeholders."""
    assert new(folder, "--show 7 --answers 12").status == 0
    path = folder / "study.toml"
    path.write_text(path.read_text().replace(CONSENT_PLACEHOLDER, "Ada"))
    return path


def take_part(folder, n_people, rank):
    """Let people answer; ``rank(person, question, shown)`` is what they say."""
    with closing(Database(folder / "study.sqlite", create=True)) as database:
        people = Visitors(read_study(folder / "study.toml"), database)
        for person in range(n_people):
            people.answer(people.start(f"p{person}"), rank=partial(rank, person))


def test_a_new_study_is_not_written_over(folder):
    assert new(folder, "--show 3 --answers 4").status == 0
    study = read_study(folder / "study.toml")
    assert [(q.target, q.items) for q in study.questions] == [
        *(("cat", tuple(SEEN[:3])), ("dog", tuple(SEEN[:3:-1])), ("truck", tuple(SEEN[:3])))
    ]
    assert study.answers_per_question == 4
    lists = f"--seen {folder}/seen.txt --new {folder}/new.txt"
    check_refused(folder, f"new {folder}/study.toml {lists}", "study")


def test_ordinary_items_are_one_question_without_a_target(folder):
    snacks, path = ["chips", "nuts", "olives", "pretzels"], folder / "study.toml"
    (folder / "items.txt").write_text("\n".join(snacks))
    question = "Which of these snacks do you like best?"
    words = f"new {path} --items {folder}/items.txt --answers 5".split()
    assert run_command([*words, "--prompt", question]).status == 0
    study = read_study(path)
    assert (study.prompt, study.questions[0].items) == (question, tuple(snacks))
    take_part(folder, 3, lambda person, _question, _shown: snacks if person else snacks[1:])
    assert run_command(f"export {path} -o {folder}/all.jsonl").status == 0
    exported = rs.read_rankings(folder / "all.jsonl")
    assert (exported.items, set(exported.targets)) == (tuple(snacks), {"all items"})
    assert rs.kemeny(exported).order == tuple(snacks)


def test_flagged_raters_are_exported_unless_told_and_counted(folder):
    path = write_study(folder)
    rng = np.random.default_rng(2)

    def choose_order(person, _question, shown):
        return rng.permutation(shown).tolist() if person >= 10 else SEEN

    take_part(folder, 12, choose_order)
    assert run_command(f"export {path} -o {folder}/all.jsonl").status == 0
    assert len(rs.read_rankings(folder / "all.jsonl")) == 36
    assert run_command(f"export {path} -o {folder}/clean.jsonl --exclude-flagged").status == 0
    kept = rs.read_rankings(folder / "clean.jsonl", items=SEEN)
    assert len(kept) == 30
    assert {tuple(order) for order in kept.orders()} == {tuple(SEEN)}
    status = run_command(f"status {path}").out
    assert "12 of 12" in status
    assert "2 of 12 raters" in status
    assert "bus > fox" in status


@pytest.mark.parametrize("kind", ["answers", "participants"])
def test_raw_data_are_written_as_csv_and_as_json_lines(folder, kind):
    path = write_study(folder)
    take_part(folder, 2, lambda _person, _question, shown: shown)
    for ending in ("csv", "jsonl"):
        out = folder / f"{kind}.{ending}"
        assert run_command(f"export {path} {kind} -o {out}").status == 0
        n_lines = {"answers": 8, "participants": 2}[kind]
        assert len(out.read_text(encoding="utf-8").splitlines()) == n_lines + (ending == "csv")
        assert out.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("export {0}/study.toml -o {0}/study.toml", "--output"),
        ("export {0}/study.toml -o {0}/none/x.jsonl", "--output"),
        ("status {0}/study.toml", "--database"),
        ("set {0}/study.toml closed", "--database"),
        ("set {0}/study.toml ended", "STATE"),
        ("serve {0}/study.toml", "consent"),
        ("serve {0}/study.toml --pilot --requests 0", "--requests"),
        ("serve {0}/study.toml --pilot --backup-every -1", "--backup-every"),
        ("serve {0}/study.toml --pilot --port 70000", "--port"),
        ("serve {0}/study.toml --pilot --port {1}", "--port"),
        ("new {0}/x.txt --seen {0}/seen.txt --new {0}/new.txt", "study"),
        ("new {0}/x.toml --items {0}/seen.txt", "--prompt"),
        ("new {0}/x.toml --seen {0}/seen.txt --new {0}/new.txt --show 2", "--rankings"),
        ("new {0}/x.toml --seen {0}/seen.txt --new {0}/new.txt --shwo 2", "--show"),
        ("stauts {0}/study.toml", "status"),
    ],
)
def test_the_wrong_thing_is_named_and_leaves_nothing_behind(folder, words, option):
    assert new(folder).status == 0
    with socket.create_server(("127.0.0.1", 0)) as taken:
        check_refused(folder, words.format(folder, taken.getsockname()[1]), option)


def test_placeholders_are_for_pilots(folder, monkeypatch):
    (folder / "items.txt").write_text("tea\ncoffee")
    path = folder / "study.toml"
    run_command(f"new {path} --items {folder}/items.txt --prompt Best?")
    monkeypatch.setattr("rankshot.web.server.serve", lambda *_: None)
    assert run_command(f"serve {path} --port 0").status == 2
    done = run_command(f"serve {path} --port 0 --pilot")
    assert (done.status, "PILOT" in done.out) == (0, True)
    assert "pilot" in run_command(f"status {path}").out
    assert run_command(f"set {path} open").status == 2
    text = path.read_text().replace(CONSENT_PLACEHOLDER, "Ada")
    path.write_text(text)
    assert run_command(f"set {path} open").status == 2
    path.write_text(text.replace('"A survey"', '"Drinks"'))
    assert run_command(f"set {path} open").status == 0
    assert run_command(f"serve {path} --port 0").status == 0
    monkeypatch.setenv("RANKSHOT_SURVEY_TOKEN", "secret")
    check_refused(folder, f"serve {path} --port 0", "token")


def test_every_command_has_a_short_help():
    def check(command, words):
        for name, inner in command.resolved_commands().items():
            if not name.startswith("-"):
                check(inner, [*words, name])
        done = run_command([*words, "--help"])
        assert done.status == 0
        assert len(done.out.splitlines()) <= 70, words
        # Each option has a text.
        assert not re.search(r"^│[* ]*--[\w-]+( [A-Z]+)? +(\[|│)", done.out, re.MULTILINE), words

    check(app, [])


def test_the_main_command_says_where_surveys_are(capsys):
    for words in ("survey", "survey serve study.toml --port 80"):
        with pytest.raises(SystemExit) as ended:
            run(main_app, words.split())
        assert ended.value.code == 2
        assert "pip install rankshot-survey" in capsys.readouterr().err
