"""The export: rankings, through to the models that they are for; and raw data."""

import csv
import io
import json
from collections import defaultdict
from dataclasses import replace
from itertools import combinations
from random import Random

import numpy as np
import pytest
from small_studies import Visitors, small_study
from survey_answers import answer, study_of

import rankshot as rs
from command_line import rankshot
from rankshot.survey.export import (
    answer_records,
    format_csv,
    format_jsonl,
    ranking_records,
    write_records,
)
from rankshot.survey.overview import read_overview, summarize_questions, summarize_targets
from rankshot.survey.quality import Flag
from rankshot.survey.store.database import PARTICIPANT, Database
from rankshot.survey.store.people import exclude, set_state, withdraw
from rankshot.survey.study import ExtraQuestion, Question

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


def test_without_answers_the_message_counts_nothing():
    with pytest.raises(rs.RankshotError, match=r"there are no answers to export yet$"):
        records("unknown", [])


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
    assert export_orders(asked, of_old, of_new) == [
        as_subset,
        ("subset", ["cup", "fox", "leopard"]),
    ]
    # The new question is asked, if not yet answered; an old one counts where it has answers.
    assert export_orders(asked, of_old) == [as_subset]
    assert export_orders(asked, of_new) == [(None, ["cup", "fox"])]
    # Other targets are not concerned, nor are skips, nor the order in which items are listed.
    dog = answer("x", ALL, ["cup"])
    assert export_orders(asked, of_old, dog)[1] == (None, ["cup"])
    assert export_orders(asked, replace(of_old, order=()), of_new) == [(None, ["cup", "fox"])]
    turned = replace(new, items=new.items[::-1])
    assert export_orders(asked, answer("x", turned, ["fox"]), of_new)[0] == (None, ["fox"])


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
    assert [(line["rater"], line["target"]) for line in exported] == [
        ("x", "cat"),
        ("x", "dog"),
        ("y", "cat"),
    ]
    assert [line.get("flags") for line in exported] == [["fast"], ["fast"], None]
    kept = records("after", everything(), FAST, exclude_flagged=True)
    assert kept == exported[2:]
    with pytest.raises(rs.RankshotError, match="all 2 answers are from flagged participants"):
        records("after", everything()[:2], FAST, exclude_flagged=True)
    gone = [answer("x", Question("cat", ["leopard", "fux"]), ["fux"])]
    with pytest.raises(rs.RankshotError, match="'fux', which is no longer among the study's"):
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
    assert (read.target_names, read.source_names, read.rater_names) == (
        (odd.target,),
        ("survey",),
        ("x",),
    )


# ---- what it is for


@pytest.mark.parametrize(("unshown", "n_sets"), [("after", 1), ("unknown", 1), ("unknown", 2)])
def test_agreement_in_the_export_is_that_of_the_status(tmp_path, rng, unshown, n_sets):
    """50 participants rank, at random and as far as they like, 10 of 100 items."""
    items = [f"item {i:02d}" for i in range(100)]
    # Nobody ranks the last item shown.
    sets = [items[:10], items[5:15]][:n_sets]
    questions = [Question("cat", some) for some in sets]
    said = [
        answer(f"r{i}", question, rng.permutation(question.items[:9])[: rng.integers(1, 10)])
        for i in range(50)
        for question in questions
    ]
    asked = replace(study_of(questions, unshown=unshown), items=tuple(items))
    path = tmp_path / "votes.jsonl"
    write_records(path, ranking_records(asked, said, {}))
    (brief,) = rs.summarize(rs.read_rankings(path, items=items))
    (target,) = summarize_targets(summarize_questions(asked, said, {}), said)
    assert brief.concordance == pytest.approx(target.concordance, rel=1e-12)
    assert 0 < brief.concordance < 0.06
    (row,) = [line for line in rankshot(["consensus", path]).out.splitlines() if "cat" in line]
    assert row.split("│")[-4].strip() == f"{target.concordance:.2f}"
    if unshown == "unknown":
        # `rankshot consensus` and `survey status` have the same order.
        (brief,) = rs.summarize(rs.read_rankings(path, items=items), "kemeny", None)
        assert brief.order == target.consensus[: len(brief.order)]
    # An early stop is no disagreement, also if the others are tied at the end.
    prefixes = [answer(f"r{i}", questions[0], sets[0][: 1 + i]) for i in range(10)]
    write_records(path, ranking_records(asked, prefixes, {}))
    (brief,) = rs.summarize(rs.read_rankings(path, items=items))
    assert brief.concordance == pytest.approx(1, abs=1e-12)
    assert brief.mean_distance == pytest.approx(0, abs=1e-12)
    assert dict(brief.disagreement) == {f"r{i}": 0 for i in range(10)}


# ---- Raw data

RAW_ITEMS = ("=bus", 'fox, "red"', "leopard\u202e", "雪", "cup")
RAW_GOLD = Question("wolf", ("dog", "bus", "cup"), ("dog",))
RAW = small_study(
    title="Raw",
    items=RAW_ITEMS,
    questions=tuple(Question(target, RAW_ITEMS) for target in ("+cat", "dog", "owl", "elk")),
    gold=(RAW_GOLD,),
    questions_per_participant=4,
    repeats=2,
    extra=(ExtraQuestion("age", "How old?", "number"), ExtraQuestion("note", "Notes?", "text")),
)
SAID = {"age": "-5", "note": '@SUM(A1)\r\n"x",\ty'}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A study of careful and of random people: one excluded, one withdrawn, two of a pilot."""
    folder = tmp_path_factory.mktemp("raw")
    database = Database(folder / "study.sqlite", create=True)
    people, rng = Visitors(RAW, database), Random(3)

    def take_part(name):
        def rank(question, _shown):
            order = [*question.items]
            if name.startswith("random"):
                # Gold items come first in their questions.
                rng.shuffle(order) if not question.is_gold else order.reverse()
            elif rng.random() < 0.3:
                order[1], order[2] = order[2], order[1]
            return [] if rng.random() < 0.1 else order[: rng.randint(2, len(order))]

        rater = people.start(name)
        left = people.answer(rater, rank=rank)
        people.visits.submit_extra(rater, left.form, SAID if name == "careful0" else {"age": "30"})
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
    yield [read_overview(RAW, database, 2e9, pilot=pilot) for pilot in (False, True)]
    database.close()


@pytest.fixture(scope="module")
def lines(views):
    return [json.loads(line) for line in format_jsonl(answer_records(views[0])).splitlines()]


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
    rules = RAW.quality
    repeats = {r for r, d in apart.items() if np.mean(d) > rules.repeat_distance}
    gold = {r for r, n in wrong.items() if n > rules.gold_failures}
    assert repeats == {rater for rater, flags in named.items() if "repeats" in flags}
    assert gold == {rater for rater, flags in named.items() if "gold" in flags}
    assert repeats
    assert gold


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
        ("-5", "-5"),
        ("", ""),
        ('say "no", please\r\n', 'say "no", please\r\n'),
    ],
)
def test_no_cell_is_a_formula_and_every_cell_comes_back(text, cell):
    (row,) = read_csv(format_csv([{"a": text, "=b": "x"}]))
    assert row == {"a": cell, "'=b": "x"}
