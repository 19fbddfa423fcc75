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

from rankshot.survey.export import (
    answer_records,
    format_csv,
    format_jsonl,
)
from rankshot.survey.overview import read_overview
from rankshot.survey.store.database import PARTICIPANT, Database
from rankshot.survey.store.participation import CurrentQuestion, Participation
from rankshot.survey.store.people import exclude, set_state, withdraw
from rankshot.survey.study import ExtraQuestion, Question
from rankshot.survey.study_files import format_study

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


# ---- Participants


# ---- CSV


def read_csv(text):
    assert text.startswith("\ufeff")
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))


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


# ---- The command
