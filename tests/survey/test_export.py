"""The export: line by line, and through to the models that it is for."""

import json
from dataclasses import replace

import pytest
from survey_answers import answer, study_of

import rankshot as rs
from command_line import rankshot
from rankshot.survey.export import export_lines, write_export
from rankshot.survey.overview import summarize_questions, summarize_targets
from rankshot.survey.quality import Flag
from rankshot.survey.study import Question

CAT = Question("cat", ["leopard", "fox", "bus"])
ALL = Question("dog", ["leopard", "fox", "bus", "cup"])
GOLD = Question("wolf", ["fox", "rose"], ["fox"])
ITEMS = ["leopard", "fox", "bus", "cup"]
FAST = {"x": (Flag("fast", "1 of 1 answers within 3 seconds", 1.0),), "y": ()}


def study(unshown):
    return study_of([CAT, ALL], unshown=unshown, items=ITEMS, gold=[GOLD])


def records(unshown, answers, found=None, **options):
    lines = export_lines(study(unshown), answers, found or {}, **options).lines
    assert all("\n" not in line for line in lines)
    return [json.loads(line) for line in lines]


# -------------------------------------------------------------------- a line


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


def test_what_another_question_of_the_target_shows_need_not_come_after():
    """The cup came into the question later: of the cup, the old answer says nothing."""
    old = Question("cat", ["leopard", "fox", "bus"])
    new = Question("cat", ["leopard", "fox", "cup"])
    asked = study_of([new, ALL], unshown="after", items=[*ITEMS, "rose"])
    of_old, of_new = answer("x", old, ["fox"]), answer("y", new, ["cup", "fox"])

    def export_orders(study, *answers):
        lines = map(json.loads, export_lines(study, answers, FAST).lines)
        return [(line.get("kind"), line["ranking"]) for line in lines]

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


# -------------------------------------------------------------------- what is left out


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


def test_skips_repeats_and_gold_questions_are_counted_and_not_exported():
    found = export_lines(study("after"), everything(), FAST)
    counts = (found.n_answers, found.n_skips, found.n_repeats, found.n_gold)
    assert counts == (3, 3, 1, 2)
    assert len(found.lines) == 3
    assert sum(counts) == len(everything())
    assert (found.n_excluded, found.n_raters_excluded) == (0, 0)


# -------------------------------------------------------------------- the file


@pytest.mark.parametrize("unshown", ["after", "unknown"])
def test_the_file_is_read_as_rankings_of_all_items(tmp_path, unshown):
    odd = Question('the "cat", \\ née Ω', ["leopard", "fox", "<b>bus</b>", "雪"])
    items = [*odd.items, "cup"]
    asked = study_of([odd], unshown=unshown, items=items)
    path = tmp_path / "rankings.jsonl"
    write_export(path, asked, [answer("x", odd, ["雪", "fox"])], FAST)
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


# -------------------------------------------------------------------- what it is for


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
    write_export(path, asked, said, {})
    (brief,) = rs.summarize(rs.read_rankings(path, items=items))
    (target,) = summarize_targets(summarize_questions(asked, said, {}), said, {})
    assert brief.concordance == pytest.approx(target.concordance, rel=1e-12)
    assert 0 < brief.concordance < 0.06
    (row,) = [line for line in rankshot(["consensus", path]).out.splitlines() if "cat" in line]
    assert row.split("│")[-4].strip() == f"{target.concordance:.2f}"
    # An early stop is no disagreement, also if the others are tied at the end.
    prefixes = [answer(f"r{i}", questions[0], sets[0][: 1 + i]) for i in range(10)]
    write_export(path, asked, prefixes, {})
    (brief,) = rs.summarize(rs.read_rankings(path, items=items))
    assert brief.concordance == pytest.approx(1, abs=1e-12)
    assert brief.mean_distance == pytest.approx(0, abs=1e-12)
    assert dict(brief.disagreement) == {f"r{i}": 0 for i in range(10)}
