"""The export: rankings, through to the models that they are for; and raw data."""

import csv
import io
import json
from collections import Counter
from contextlib import closing
from dataclasses import replace

import pytest

import rankshot as rs
from rankshot_survey.export import (
    answer_records,
    format_csv,
    format_jsonl,
    participant_records,
    ranking_records,
    write_records,
)
from rankshot_survey.overview import read_overview
from rankshot_survey.quality import Flag
from rankshot_survey.store.database import Database
from rankshot_survey.store.people import exclude, set_state
from rankshot_survey.study import Question
from refusals import refuses
from small_studies import Visitors, small_study
from survey_answers import answer, study_of

CAT = Question("cat", ["leopard", "fox", "bus"])
ALL = Question("dog", ["leopard", "fox", "bus", "cup"])
GOLD = Question("wolf", ["fox", "rose"], ["fox"])
ITEMS = ["leopard", "fox", "bus", "cup"]
FAST = {"x": (Flag("fast", "1 of 1 answers within 3 seconds", 1.0),), "y": ()}


def study(unshown):
    return study_of([CAT, ALL], unshown=unshown, items=ITEMS, gold=[GOLD])


def records(unshown, answers, found=None, **options):
    found = ranking_records(study(unshown), answers, found or {}, **options)
    return [json.loads(line) for line in format_jsonl(found).splitlines()]


# ---- a line


def test_what_was_not_shown_comes_after():
    (line,) = records("after", [answer("x", CAT, ["fox"], seconds=7.26)])
    assert line == {
        "target": "cat",
        "ranking": ["fox"],
        "source": "survey",
        "rater": "x",
        "kind": "top",
        "shown": ["leopard", "fox", "bus"],
        "seconds": 7.3,
    }


@pytest.mark.parametrize(
    ("order", "ranking"),
    [
        (["fox"], ["fox", ["bus", "leopard"]]),
        (["fox", "bus"], ["fox", "bus", "leopard"]),
        (["fox", "bus", "leopard"], ["fox", "bus", "leopard"]),
    ],
)
def test_of_what_was_not_shown_nothing_is_known(order, ranking):
    (line,) = records("unknown", [answer("x", CAT, order)])
    assert line["kind"] == "subset"
    assert line["ranking"] == ranking
    assert line.get("k", 3) == len(order)


def test_what_another_question_of_the_target_shows_need_not_come_after():
    """The cup came into the question later: of the cup, the old answer says nothing."""
    old = Question("cat", ["leopard", "fox", "bus"])
    new = Question("cat", ["leopard", "fox", "cup"])
    asked = study_of([new, ALL], unshown="after", items=[*ITEMS, "rose"])
    of_old, of_new = answer("x", old, ["fox"]), answer("y", new, ["cup", "fox"])

    def export_orders(study, *answers):
        found = ranking_records(study, answers, FAST)
        return [(record.get("kind"), [*record["ranking"]]) for record in found]

    as_subset = ("subset", ["fox", ["bus", "leopard"]])
    both = [as_subset, ("subset", ["cup", "fox", "leopard"])]
    assert export_orders(asked, of_old, of_new) == both
    # The new question is asked, if not yet answered; an old one counts where it has answers.
    assert export_orders(asked, of_old) == [as_subset]
    assert export_orders(asked, of_new) == [("top", ["cup", "fox"])]
    # Other targets are not concerned, nor are skips, nor the order in which items are listed.
    dog = answer("x", ALL, ["cup"])
    assert export_orders(asked, of_old, dog)[1] == ("top", ["cup"])
    assert export_orders(asked, replace(of_old, order=()), of_new) == [("top", ["cup", "fox"])]
    turned = replace(new, items=new.items[::-1])
    assert export_orders(asked, answer("x", turned, ["fox"]), of_new)[0] == ("top", ["fox"])


# ---- what is left out


def everything():
    return [
        answer("x", CAT, ["fox"]),
        answer("x", ALL, ["fox", "cup"]),
        answer("y", CAT, ["bus", "fox"]),
        answer("y", ALL, []),
        answer("y", CAT, ["fox"], repeat=True),
        answer("y", CAT, [], repeat=True),
        answer("x", GOLD, ["fox"]),
        answer("y", GOLD, ["rose"]),
        answer("y", GOLD, []),
    ]


def test_skips_repeats_gold_questions_and_perhaps_flagged_raters_are_left_out():
    exported = records("after", everything(), FAST)
    whose = [(line["rater"], line["target"]) for line in exported]
    assert whose == [("x", "cat"), ("x", "dog"), ("y", "cat")]
    assert [line.get("flags") for line in exported] == [["fast"], ["fast"], None]
    kept = records("after", everything(), FAST, exclude_flagged=True)
    assert kept == exported[2:]
    with refuses("answers"):
        records("after", everything()[:2], FAST, exclude_flagged=True)
    with refuses("answers"):
        records("unknown", [])
    gone = [answer("x", Question("cat", ["leopard", "fux"]), ["fux"])]
    with refuses("items.names", "fux"):
        records("after", gone)


# ---- the file


@pytest.mark.parametrize("unshown", ["after", "unknown"])
def test_the_file_is_read_as_rankings_of_all_items(tmp_path, unshown):
    odd = Question('the "cat", \\ née Ω', ["leopard", "fox", "<b>bus</b>", "雪"])
    items = [*odd.items, "cup"]
    asked = study_of([odd], unshown=unshown, items=items)
    path = tmp_path / "rankings.jsonl"
    write_records(path, ranking_records(asked, [answer("x", odd, ["雪", "fox"])], FAST))
    read = rs.read_rankings(path, items=asked.items)
    assert read.items == tuple(items)
    rest = [] if unshown == "after" else [["leopard", "<b>bus</b>"]]
    assert read.orders() == [["雪", "fox", *rest]]
    assert read.is_subset.tolist() == [unshown == "unknown"]
    names = [read.target_names, read.source_names, read.rater_names]
    assert names == [(odd.target,), ("survey",), ("x",)]


# ---- Raw data


def test_every_answer_is_there_once_with_its_gold_and_its_repeat(tmp_path):
    """Skips, repeats, gold questions and the excluded are in the raw data; pilots apart."""
    asked = small_study(gold=(GOLD,), items=("fox", "rose", "bus"), repeats=1)
    with closing(Database(tmp_path / "study.sqlite", create=True)) as database:
        people = Visitors(asked, database)

        def take_part(name, order=slice(None)):
            rater = people.start(name)
            people.answer(rater, rank=lambda question, _: question.items[order])
            return rater

        ann, bob, eve = take_part("ann"), take_part("bob", slice(0)), take_part("eve")
        exclude(database, [eve], "why")
        set_state(database, "pilot")
        pilot = take_part("tester")
        views = [read_overview(asked, database, 2e9, pilot=pilot) for pilot in (False, True)]
    lines, tried = (list(answer_records(view)) for view in views)
    assert Counter(line["rater"] for line in lines) == {ann: 6, bob: 5, eve: 6}
    assert len({(line["rater"], line["number"]) for line in lines}) == len(lines)
    assert {line["rater"] for line in lines if line["skipped"]} == {bob}
    assert {line["rater"] for line in lines if line["excluded"]} == {eve}
    assert Counter((line["rater"], line["correct"]) for line in lines if line["gold"]) == {
        (ann, True): 1,
        (bob, None): 1,
        (eve, True): 1,
    }
    assert sum(line["repeat"] for line in lines) == 2
    assert {(line["rater"], line["pilot"]) for line in tried} == {(pilot, True)}
    line = next(line for line in lines if line["rater"] == ann and not line["gold"])
    assert line["order"] == ("fox", "rose", "bus")
    assert set(line["shown"]) == set(line["order"])
    # The columns of the files are what scripts of researchers read.
    assert " ".join(line) == (
        "rater number question target shown order skipped repeat gold first correct "
        "answered_at seconds pilot excluded flags language"
    )
    assert " ".join(next(participant_records(views[0]))) == (
        "rater code state started_at seen_at finished_at withdrawn_at excluded_at excluded_why "
        "pilot language answers gold_and_repeats skipped seconds flags"
    )


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
        ("＝1", "'＝1"),
        (";=1+1", "';=1+1"),
        ("\u200b=1+1", "'\u200b=1+1"),
        ("\ufeff=1+1", "'\ufeff=1+1"),
        (" =1+1", "' =1+1"),
        ("; a=b", "; a=b"),
        ("-5", "-5"),
        ("", ""),
        ('say "no", please\r\n', 'say "no", please\r\n'),
    ],
)
def test_no_cell_is_a_formula_and_every_cell_comes_back(text, cell):
    (row,) = read_csv(format_csv([{"a": text, "=b": "x"}]))
    assert row == {"a": cell, "'=b": "x"}
