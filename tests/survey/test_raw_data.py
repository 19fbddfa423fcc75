"""Raw data: complete, safe for spreadsheets, and enough to compute flags and agreement again."""

import csv
import io
import json
from collections import defaultdict
from itertools import combinations
from random import Random

import numpy as np
import pytest
from small_studies import small_study

from command_line import rankshot
from rankshot.ranking.agreement import concordance
from rankshot.ranking.rankings import Rankings
from rankshot.survey.overview import read_overview
from rankshot.survey.presentation import ExtraQuestion
from rankshot.survey.raw_data import (
    answer_records,
    format_csv,
    format_jsonl,
    participant_records,
    write_records,
)
from rankshot.survey.store.database import PARTICIPANT, Database
from rankshot.survey.store.participation import CurrentQuestion, Participation
from rankshot.survey.store.people import exclude, set_state, withdraw
from rankshot.survey.study import Question
from rankshot.survey.study_text import format_study

ITEMS = ("=bus", 'fox, "red"', "leopard\u202e", "雪", "cup")
GOLD = Question("wolf", ("dog", "bus", "cup"), ("dog",))
STUDY = small_study(
    title="Raw",
    items=ITEMS,
    questions=tuple(Question(target, ITEMS) for target in ("+cat", "dog", "owl", "elk")),
    gold=(GOLD,),
    questions_per_participant=4,
    repeats=2,
    extra=(ExtraQuestion("age", "How old?", "number"), ExtraQuestion("note", "Notes?", "text")),
)
SAID = {"age": "-5", "note": '@SUM(A1)\r\n"x",\ty'}
NOW = 1_700_000_000.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A study of careful and of random people: one excluded, one withdrawn, two of a pilot."""
    folder = tmp_path_factory.mktemp("raw")
    (folder / "study.toml").write_text(format_study(STUDY), encoding="utf-8")
    database = Database(folder / "study.sqlite", create=True)
    clock, rng = [NOW], Random(3)
    survey = Participation(STUDY, database, lambda: clock[0], rng, lambda: clock[0])

    def take_part(name):
        rater = survey.start(f"none:id:{name}")
        is_random = name.startswith("random")
        while isinstance(asked := survey.current_question(rater), CurrentQuestion):
            clock[0] += rng.uniform(5, 9)
            order = [*asked.question.items]
            if is_random:
                # Gold items come first in their questions.
                rng.shuffle(order) if not asked.question.is_gold else order.reverse()
            elif rng.random() < 0.3:
                order[1], order[2] = order[2], order[1]
            order = order[: rng.randint(2, len(order))]
            places = [str(order.index(i) + 1) if i in order else "" for i in asked.shown]
            skip = rng.random() < 0.1
            survey.submit(rater, asked.number, asked.form, places, skip=skip)
        said = SAID if name == "careful0" else {"age": "30", "note": ""}
        survey.submit_extra(rater, asked.form, said)
        return rater

    careful = [take_part(f"careful{i}") for i in range(6)]
    strange = [take_part(f"random{i}") for i in range(4)]
    exclude(database, strange[:1], '=HYPERLINK("http://evil.example"), "quoted"\nand\tmore')
    withdraw(database, careful[5:])
    set_state(database, "pilot")
    pilots = [take_part(f"pilot{i}") for i in range(2)]
    with database.begin_write() as connection:
        connection.execute(
            PARTICIPANT.update()
            .where(PARTICIPANT.c.rater == careful[0])
            .values(platform_id="5f1e2d", language="de")
        )
    database.close()
    return folder, careful, strange, pilots


@pytest.fixture(scope="module")
def views(folder):
    database = Database(folder[0] / "study.sqlite")
    yield [read_overview(STUDY, database, NOW + 9000, pilot=pilot) for pilot in (False, True)]
    database.close()


@pytest.fixture(scope="module")
def lines(views):
    return [
        json.loads(line) for line in "".join(format_jsonl(answer_records(views[0]))).splitlines()
    ]


# ---- What is there


def test_every_answer_is_there_once(folder, views, lines):
    _, careful, strange, pilots = folder
    raters = {line["rater"] for line in lines}
    assert raters == {*careful[:5], *strange}
    assert len({(line["rater"], line["number"]) for line in lines}) == len(lines)
    assert {line["rater"] for line in lines if line["excluded"]} == {strange[0]}
    assert not any(line["pilot"] for line in lines)
    tried = list(answer_records(views[1]))
    assert {line["rater"] for line in tried} == set(pilots)
    assert all(line["pilot"] for line in tried)


def test_a_record_says_what_was_shown_and_when(views, lines):
    stored = {(a.rater, a.number): a for a in (*views[0].answers, *views[0].excluded_answers)}
    for line in lines:
        answer = stored[line["rater"], line["number"]]
        assert sorted(line["shown"]) == sorted(answer.question.items)
        assert tuple(line["order"]) == answer.order
        assert line["skipped"] == (line["order"] == [])
        assert line["shown_at"] < line["answered_at"]
        assert line["shown_at"].startswith("2023-11-1")
        assert line["shown_at"].endswith("Z")
        assert 5 <= line["seconds"] <= 9
    (language,) = {line["language"] for line in lines if line["language"]}
    assert language == "de"


# ---- What it is for


def kendall(first, second, items):
    """The distance of two orders by its definition, over pairs that one of them orders."""
    signs = []
    for order in (first, second):
        place = {item: order.index(item) if item in order else len(order) for item in items}
        signs.append([np.sign(place[a] - place[b]) for a, b in combinations(items, 2)])
    one, other = map(np.array, signs)
    return np.abs(one - other).sum() / 2 / np.count_nonzero((one != 0) | (other != 0))


def test_flags_are_computed_again_from_the_lines_alone(lines):
    given = [line for line in lines if not line["skipped"]]
    first = {(x["rater"], x["question"]): x["order"] for x in given if not x["repeat"]}
    apart, wrong = defaultdict(list), defaultdict(int)
    for line in given:
        before = first.get((line["rater"], line["question"]), [])
        if line["repeat"] and min(len(before), len(line["order"])) > 1:
            apart[line["rater"]].append(kendall(before, line["order"], line["shown"]))
        if line["gold"]:
            is_right = set(line["order"][: len(line["first"])]) <= set(line["first"])
            assert line["right"] == is_right
            wrong[line["rater"]] += not is_right
        else:
            assert (line["right"], line["first"]) == (None, [])
    named = {line["rater"]: set(line["flags"]) for line in lines}
    rules = STUDY.quality
    repeats = {r for r, d in apart.items() if np.mean(d) > rules.repeat_distance}
    gold = {r for r, n in wrong.items() if n > rules.gold_failures}
    assert repeats == {rater for rater, flags in named.items() if "repeats" in flags}
    assert gold == {rater for rater, flags in named.items() if "gold" in flags}
    assert repeats
    assert gold


def test_agreement_is_computed_again_from_the_lines_alone(views, lines):
    for row in views[0].progress.targets:
        orders = [
            line["order"]
            for line in lines
            if line["target"] == row.target
            and not (line["excluded"] or line["skipped"] or line["repeat"] or line["gold"])
        ]
        assert len(orders) == row.n_answers
        within = concordance(Rankings.from_orders(orders, items=ITEMS))
        assert row.concordance == pytest.approx(within)


# ---- Participants


def test_participants_have_their_states_and_extra_answers(folder, views):
    _, careful, strange, _ = folder
    people = {line["rater"]: line for line in participant_records(views[0])}
    assert list(people) == [*careful, *strange]
    assert people[strange[0]]["state"] == "excluded"
    assert people[strange[0]]["excluded_why"].startswith("=HYPERLINK")
    assert (people[careful[5]]["state"], people[careful[5]]["answers"]) == ("withdrawn", 0)
    for rater, line in people.items():
        theirs = [answer for answer in answer_records(views[0]) if answer["rater"] == rater]
        counts = [sum(a["gold"] or a["repeat"] for a in theirs if not a["skipped"])]
        counts += [sum(a["skipped"] for a in theirs)]
        assert [line["gold_and_repeats"], line["skipped"]] == counts
        assert line["answers"] == len(theirs) - sum(counts)
    assert people[careful[0]]["extra_age"] == "-5"
    assert people[careful[1]]["extra_note"] == ""
    assert people[careful[0]]["code"] == views[0].codes[careful[0]]


def test_ids_of_the_platform_are_there_only_if_asked_for(views):
    assert "5f1e2d" not in "".join(format_jsonl(participant_records(views[0])))
    assert "5f1e2d" in "".join(format_jsonl(participant_records(views[0], with_ids=True)))


# ---- CSV


def read_csv(text):
    assert text.startswith("\ufeff")
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))


def test_csv_and_json_say_the_same(views, lines):
    rows = read_csv("".join(format_csv(answer_records(views[0]))))
    assert len(rows) == len(lines)
    for row, line in zip(rows, lines, strict=True):
        assert list(row) == list(line)
        for name, value in line.items():
            cell = row[name]
            if value is None:
                assert cell == ""
            elif isinstance(value, str):
                assert cell.removeprefix("'") == value
            else:
                assert json.loads(cell) == value


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("\n=1", "'\n=1"),
        ("＝1", "'＝1"),
        ("-5", "-5"),
        ("-5.25", "-5.25"),
        ("a=1", "a=1"),
        ("", ""),
        ('say "no", please\r\n', 'say "no", please\r\n'),
    ],
)
def test_no_cell_is_a_formula_and_every_cell_comes_back(text, cell):
    (row,) = read_csv("".join(format_csv([{"a": text, "=b": "x"}])))
    assert row == {"a": cell, "'=b": "x"}


def test_hostile_reasons_and_answers_stay_in_their_cells(folder, views):
    _, careful, strange, _ = folder
    rows = {r["rater"]: r for r in read_csv("".join(format_csv(participant_records(views[0]))))}
    assert len(rows) == 10
    assert rows[strange[0]]["excluded_why"].startswith("'=HYPERLINK(")
    assert rows[careful[0]]["extra_note"] == '\'@SUM(A1)\r\n"x",\ty'
    assert rows[careful[0]]["extra_age"] == "-5"


# ---- The command


def test_the_command_writes_raw_data(folder, views, lines):
    place = folder[0]
    done = rankshot(f"survey export {place}/study.toml --raw -o {place}/answers.jsonl")
    assert done.status == 0, done.err
    assert done.out == f"{len(lines)} answers written to {place}/answers.jsonl\n"
    written = (place / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in written] == lines
    done = rankshot(f"survey export {place}/study.toml --participants --with-ids -o {place}/p.csv")
    assert done.out == f"10 participants written to {place}/p.csv\n"
    assert len(read_csv((place / "p.csv").read_bytes().decode())) == 10
    done = rankshot(f"survey export {place}/study.toml --raw --pilot -o {place}/pilot.csv")
    n_tried = len(views[1].answers)
    assert done.out == f"{n_tried} answers written to {place}/pilot.csv\n"


def test_rankings_leave_out_who_is_excluded_and_the_pilot(folder, views):
    place = folder[0]
    done = rankshot(f"survey export {place}/study.toml -o {place}/r.jsonl")
    n_excluded = len(views[0].excluded_answers)
    assert f"left out: 1 excluded participant, with {n_excluded} answers" in done.out
    raters = {json.loads(x)["rater"] for x in (place / "r.jsonl").read_text().splitlines()}
    assert raters <= {*folder[1][:5], *folder[2][1:]}
    tried = rankshot(f"survey export {place}/study.toml --pilot -o {place}/t.jsonl")
    assert tried.status == 0, tried.err
    assert {json.loads(x)["rater"] for x in (place / "t.jsonl").read_text().splitlines()} == {
        *folder[3]
    }
    status = " ".join(rankshot(f"survey status {place}/study.toml").out.split())
    assert "10 participants: 8 finished, 0 active, 0 left before the end, 1 withdrawn, 1" in status
    assert "not counted: 2 pilot participants (--pilot)" in status
    assert "The survey is a pilot." in status
    assert "2 participants: 2 finished" in rankshot(f"survey status {place}/study.toml --pilot").out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--raw --participants -o {0}/x.csv", "two files: give one"),
        ("--raw --exclude-flagged -o {0}/x.csv", "raw data name the flags"),
        ("--raw --with-ids -o {0}/x.csv", "--with-ids needs --participants"),
        ("--raw -o {0}/x.txt", "unknown ending '.txt'; known are .csv, .jsonl"),
    ],
)
def test_options_that_do_not_fit_are_refused(folder, options, says):
    done = rankshot(f"survey export {folder[0]}/study.toml {options.format(folder[0])}")
    assert done.status == 2
    assert says in done.err
    assert not (folder[0] / "x.csv").exists()


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("old")

    def broken():
        yield {"a": 1}
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_records(path, broken())
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x.jsonl"]
