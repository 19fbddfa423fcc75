"""The command ``rankshot-survey``, and what its export is good for."""

import re
import resource
import signal
import socket
import sys
from contextlib import closing, contextmanager
from functools import partial
from math import comb

import numpy as np
import pytest

import rankshot as rs
from rankshot_survey.cli.commands import draw_code
from rankshot_survey.store.database import Database
from rankshot_survey.study import CONSENT_PLACEHOLDER
from rankshot_survey.study_files import read_study
from small_studies import Visitors
from survey_command import run_command

SEEN = ["bus", "fox", "leopard", "tiger", "tram", "whale", "wolf"]
NEW = ["cat", "dog", "truck"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "seen.txt").write_text("\n".join(SEEN))
    (tmp_path / "new.txt").write_text("\n".join(NEW))
    (tmp_path / "odd.txt").write_text("bus\nqzx\nfox")
    return tmp_path


def new(folder, more=""):
    lists = f"--seen {folder}/seen.txt --new {folder}/new.txt"
    return run_command(f"new {folder}/study.toml {lists} {more}")


def take_part(folder, n_people, rank):
    """Let people answer; ``rank(person, question, shown)`` is what they say."""
    with closing(Database(folder / "study.sqlite", create=True)) as database:
        people = Visitors(read_study(folder / "study.toml"), database)
        for person in range(n_people):
            people.answer(people.start(f"p{person}"), rank=partial(rank, person))


def test_a_new_study_is_not_written_over(folder):
    done = new(folder, "--show 3 --answers 4")
    assert done.status == 0, done.err
    assert "3 questions with 4 answers each, from 4 participants or more" in done.out
    study = read_study(folder / "study.toml")
    assert {(q.target, len(q.items)) for q in study.questions} == {(name, 3) for name in NEW}
    again = new(folder)
    assert (again.status, "study.toml: the file exists already" in again.err) == (2, True)
    assert read_study(folder / "study.toml") == study


def test_ordinary_items_are_one_question_without_a_target(folder):
    snacks, path = ["chips", "nuts", "olives", "pretzels"], folder / "study.toml"
    (folder / "items.txt").write_text("\n".join(snacks))
    question = "Which of these snacks do you like best?"
    words = f"new {path} --items {folder}/items.txt --answers 5".split()
    done = run_command([*words, "--prompt", question])
    assert done.status == 0, done.err
    assert "1 question with 5 answers, from 5 participants or more" in done.out
    assert "WordNet" not in done.out
    study = read_study(path)
    assert (study.prompt, study.questions[0].items) == (question, tuple(snacks))
    take_part(folder, 3, lambda person, _question, _shown: snacks if person else snacks[1:])
    assert run_command(f"export {path} -o {folder}/all.jsonl").status == 0
    exported = rs.read_rankings(folder / "all.jsonl")
    assert (exported.items, set(exported.targets)) == (tuple(snacks), {"all items"})
    assert rs.kemeny(exported).order == tuple(snacks)
    assert rs.read_rankings(folder / "all.jsonl").target_names == ("all items",)


def test_more_items_than_a_question_shows_are_several_questions(folder):
    words = f"new {folder}/study.toml --items {folder}/seen.txt --prompt Best? --show 4"
    done = run_command(words)
    assert done.status == 0
    study = read_study(folder / "study.toml")
    (question,) = study.questions
    assert (question.target, question.items, question.show) == ("all items", tuple(SEEN), 4)
    assert (study.unshown, study.questions_per_participant) == ("unknown", question.n_parts)
    n_pairs = comb(len(SEEN), 2)
    each = 50 * question.n_parts * comb(4, 2) / n_pairs
    assert f"{n_pairs} of {n_pairs} pairs of items compared, about {each:.0f} times" in done.out
    take_part(folder, 3, lambda _person, _question, shown: sorted(shown, key=SEEN.index))
    status = run_command(f"status {folder}/study.toml").out
    assert f"all items: {n_pairs} of {n_pairs} pairs of items compared, each " in status
    assert f"{SEEN[0]} [1-" in status


def test_many_sentences_get_a_note_and_a_short_table(folder):
    sentences = [f"Sentence {i:02} is so long that it fills most of a line" for i in range(12)]
    (folder / "items.txt").write_text("\n".join(sentences))
    words = f"new {folder}/study.toml --items {folder}/items.txt --prompt Best?"
    assert "One question shows all 12 items, which takes a long time to answer. With --show 10" in (
        " ".join(run_command(words).out.split())
    )
    take_part(folder, 2, lambda _person, _question, _shown: sentences)
    status = run_command(f"status {folder}/study.toml").out
    assert "Sentence 00 is so long that i…" in " ".join(status.replace("│", " ").split())
    assert "most of a line" not in status


def test_flagged_raters_are_exported_unless_told_and_counted(folder):
    assert new(folder, "--show 7 --answers 12").status == 0
    rng = np.random.default_rng(2)

    def choose_order(person, _question, shown):
        return rng.permutation(shown).tolist() if person >= 10 else SEEN

    take_part(folder, 12, choose_order)
    everything = run_command(f"export {folder}/study.toml -o {folder}/all.jsonl")
    assert "36 answers written" in everything.out
    clean = run_command(f"export {folder}/study.toml -o {folder}/clean.jsonl --exclude-flagged")
    assert "30 answers written" in clean.out
    assert "left out: 6 answers of 2 flagged raters" in clean.out
    kept = rs.read_rankings(folder / "clean.jsonl", items=SEEN)
    assert {tuple(order) for order in kept.orders()} == {tuple(SEEN)}
    status = run_command(f"status {folder}/study.toml")
    assert "12 participants: 12 finished, 0 active, 0 left before the end" in status.out
    assert "2 of 12 raters are flagged" in status.out
    assert "12 of 12" in status.out
    assert "bus > fox" in status.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("export {0}/study.toml -o {0}/study.toml", "is also an input file"),
        ("status {0}/study.toml", "no such database; `rankshot-survey serve` creates"),
        ("serve {0}/study.toml", f"the study still has {CONSENT_PLACEHOLDER} in the consent;"),
        ("reopen {0}/study.toml", "no such database"),
        ("new {0}/x.txt --seen {0}/seen.txt --new {0}/new.txt", "expected .toml"),
        ("new {0}/x.toml --seen {0}/seen.txt", "give --items and --prompt to ask about ordinary"),
        ("new {0}/x.toml --items {0}/seen.txt", "give --items and --prompt to ask about ordinary"),
        ("new {0}/x.toml --items {0}/seen.txt --prompt Best? --new {0}/new.txt", "or --seen and"),
        ("new {0}/x.toml --items {0}/seen.txt --prompt Best? --pool 3", "or --seen and --new"),
        ("new {0}/x.toml --seen {0}/odd.txt --new {0}/new.txt --show 2", "and --preselect"),
        ("serve {0}/study.toml --pilot --port {1}", "cannot listen on 127.0.0.1:{1} ("),
    ],
)
def test_the_wrong_thing_says_what_to_do_and_leaves_nothing_behind(folder, words, says):
    assert new(folder).status == 0
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run_command(words.format(folder, port))
    assert done.status == 2
    assert says.format(folder, port) in done.err.replace("\n", " ")
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_short_token_is_refused(folder, monkeypatch):
    assert new(folder).status == 0
    monkeypatch.setenv("RANKSHOT_SURVEY_TOKEN", "secret")
    done = run_command(f"serve {folder}/study.toml --pilot --port 0")
    assert (done.status, "token has 6 characters; give from 16 to 500" in done.err) == (2, True)


def test_placeholders_are_for_pilots(folder, monkeypatch):
    (folder / "items.txt").write_text("tea\ncoffee")
    path = folder / "study.toml"
    run_command(f"new {path} --items {folder}/items.txt --prompt Best?")
    monkeypatch.setattr("rankshot.web.server.serve", lambda *_: None)
    done = run_command(f"serve {path} --port 0")
    assert (done.status, "and the title 'A survey'; replace" in done.err) == (2, True)
    done = run_command(f"serve {path} --port 0 --pilot")
    assert (done.status, "PILOT: answers are tests" in done.out) == (0, True)
    assert "The survey is a pilot" in run_command(f"status {path}").out
    assert "the study still has" in run_command(f"reopen {path}").err
    text = path.read_text().replace(CONSENT_PLACEHOLDER, "Ada").replace('"A survey"', '"Drinks"')
    path.write_text(text)
    assert run_command(f"reopen {path}").status == 0
    assert run_command(f"serve {path} --port 0").status == 0


@contextmanager
def largest_file(size):
    """Let files grow to some bytes only, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


# The first size is too small for a new database, the second for the questions of the study.
@pytest.mark.parametrize("size", [20_000, 90_000])
def test_a_full_disk_at_the_start_is_one_line(folder, size):
    names = [f"item {i} {'x' * 100}" for i in range(200)]
    (folder / "seen.txt").write_text("\n".join(names))
    (folder / "items.txt").write_text("\n".join(names))
    words = f"--items {folder}/items.txt --prompt Best? --show 10"
    assert run_command(f"new {folder}/study.toml {words}").status == 0
    with largest_file(size):
        done = run_command(f"serve {folder}/study.toml --pilot --port 0")
    assert done.status == 2
    assert re.fullmatch(r"rankshot: cannot open .*: disk I/O error\n", done.err)


def test_serve_prints_the_address_for_phones_of_the_same_network(folder, monkeypatch):
    assert new(folder).status == 0
    path = folder / "study.toml"
    path.write_text(path.read_text().replace(CONSENT_PLACEHOLDER, "Ada"))
    # It ends at once.
    monkeypatch.setattr("rankshot.web.server.serve", lambda *_: None)
    monkeypatch.setattr("rankshot.web.server.find_network_address", lambda: "192.0.2.7")
    done = run_command(f"serve {path} --port 0 --host 0.0.0.0")
    assert re.search(r"Phones +http://192\.0\.2\.7:\d+/ \(on the same network\)", done.out), done
    assert "Phones" not in run_command(f"serve {path} --port 0").out


def test_a_qr_code_has_the_address(monkeypatch):
    segno = pytest.importorskip("segno")
    address = "http://192.0.2.7:8000/"
    code = draw_code(address)
    # Two rows of modules are one line of half blocks, with four modules of margin on each side.
    n = segno.make(address, micro=False).symbol_size(border=4)[0]
    assert [len(line) for line in code.splitlines()] == [n] * ((n + 1) // 2)
    assert set(code) <= set(" \n\u2580\u2584\u2588")
    monkeypatch.setitem(sys.modules, "segno", None)
    assert draw_code(address) == "For a QR code of it: pip install segno"
