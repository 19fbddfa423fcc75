"""The export: line by line, and through to the models that it is for."""

import json
from dataclasses import replace

import numpy as np
import pytest
from survey_answers import Simulation, answer, sample_around, study_of

import rankshot as rs
from command_line import rankshot
from rankshot.core.errors import RankshotError
from rankshot.survey.export import export_lines, write_export
from rankshot.survey.progress import summarize_progress
from rankshot.survey.quality import Flag, find_flags
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


def test_an_unknown_time_is_null():
    (line,) = records("after", [answer("x", CAT, ["fox"], seconds=None)])
    assert line["seconds"] is None


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


@pytest.mark.parametrize("unshown", ["after", "unknown"])
def test_where_all_was_shown_the_ranking_is_of_all_items(unshown):
    (line,) = records(unshown, [answer("x", ALL, ["fox"])])
    assert "kind" not in line
    assert line["ranking"] == ["fox"]


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


def test_who_is_excluded_does_not_change_what_the_others_say():
    new = Question("cat", ["leopard", "fox", "cup"])
    asked = study_of([new], unshown="after", items=ITEMS)
    said = [answer("x", CAT, ["fox"]), answer("y", new, ["cup"])]
    both = export_lines(asked, said, FAST).lines
    assert export_lines(asked, said, FAST, exclude_flagged=True).lines == both[1:]


def test_flags_stand_beside_the_answers_of_who_has_them():
    said = [answer("x", CAT, ["fox"]), answer("y", CAT, ["fox"]), answer("z", CAT, ["fox"])]
    lines = records("after", said, FAST)
    assert [line.get("flags") for line in lines] == [["fast"], None, None]


def test_the_order_of_the_screen_is_kept():
    shown = ("bus", "leopard", "fox")
    (line,) = records("after", [replace(answer("x", CAT, ["fox"]), shown=shown)])
    assert line["shown"] == list(shown)


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


def test_the_flagged_are_left_out_only_if_told_and_are_counted():
    found = export_lines(study("after"), everything(), FAST, exclude_flagged=True)
    assert (found.n_answers, found.n_excluded, found.n_raters_excluded) == (1, 2, 1)
    assert [json.loads(line)["rater"] for line in found.lines] == ["y"]


def test_nothing_to_export_says_so():
    with pytest.raises(RankshotError, match=r"A study: there are no answers to export yet$"):
        export_lines(study("after"), [], {})
    with pytest.raises(RankshotError, match=r"yet, only 2 skips, repeats or gold answers$"):
        export_lines(study("after"), [answer("x", CAT, []), answer("x", GOLD, ["fox"])], {})
    with pytest.raises(RankshotError, match="all 1 answers are from flagged participants"):
        export_lines(study("after"), [answer("x", CAT, ["fox"])], FAST, exclude_flagged=True)


def test_an_answer_of_an_item_that_is_gone_is_refused_by_name():
    old = answer("x", Question("cat", ["leopart", "fox"]), ["fox"])
    with pytest.raises(RankshotError, match=r"'cat' ranks 'leopart'.*did you mean 'leopard'\?"):
        export_lines(study("after"), [old], {})
    # Questions that are gone, of items that are there, are exported as they were answered.
    (line,) = records("unknown", [answer("x", Question("owl", ["fox", "cup"]), ["cup"])])
    assert line["ranking"] == ["cup", "fox"]


# -------------------------------------------------------------------- the file


def test_the_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "rankings.jsonl"
    path.write_text("old")
    with pytest.raises(RankshotError, match="no answers to export"):
        write_export(path, study("after"), [], {})
    assert path.read_text() == "old"
    found = write_export(path, study("after"), everything(), FAST)
    assert path.read_text().splitlines() == list(found.lines)
    assert [p.name for p in tmp_path.iterdir()] == ["rankings.jsonl"]


def test_another_ending_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(RankshotError, match=r"out\.csv: unknown ending '.csv'; known are .jsonl"):
        write_export(tmp_path / "out.csv", study("after"), everything(), FAST)
    assert list(tmp_path.iterdir()) == []


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


def test_the_centers_of_mallows_raters_are_recovered(tmp_path):
    """Items that no question shows come last; raters stop anywhere from the third place on."""
    simulated = Simulation(11, between=2.0, within=1.0, n_random=0, shortest=3)
    items = [*simulated.questions[0].items, "never", "shown"]
    asked = study_of(simulated.questions, unshown="after", items=items, gold=[simulated.gold])
    path = tmp_path / "rankings.jsonl"
    found = write_export(
        path, asked, simulated.answers, find_flags(simulated.answers, asked.quality)
    )
    assert found.n_answers + found.n_skips + found.n_repeats + found.n_gold == 480
    rankings = rs.read_rankings(path, items=asked.items)
    truth = dict(zip(asked.questions, simulated.centers, strict=True))
    truth = {q.target: [f"item {i}" for i in center] for q, center in truth.items()}
    summaries = rs.summarize(rankings, rs.Mallows(), k=10)
    assert [brief.target for brief in summaries] == sorted(truth)
    distances = []
    for brief in summaries:
        merged = rs.kemeny(rankings.select(target=brief.target), "exact").order
        orders = rs.Rankings.from_orders(
            [merged, brief.model.center_, truth[brief.target]], items=asked.items
        )
        distances.append(rs.kendall_distance(orders.top(10))[2, :2])
        assert {*merged[10:]} == {"never", "shown"}
    # Of 45 pairs; what is reversed are neighbours.
    assert np.mean(distances) < 1
    assert np.max(distances) <= 4


def test_a_pool_in_several_sets_is_put_together_again(tmp_path):
    """Subset rankings of overlapping sets: the order of the whole pool comes back."""
    rng = np.random.default_rng(4)
    pool = [f"{i:02d}" for i in rng.permutation(18)]
    sets = [sorted(pool[start::3] + pool[(start + 1) % 3 :: 3]) for start in range(3)]
    questions = [Question("cat", items) for items in sets]
    asked = study_of(questions, unshown="unknown", items=[*sorted(pool), "other"])
    said = []
    for number, question in enumerate(questions):
        center = np.array([i for i, item in enumerate(pool) if item in question.items])
        orders = sample_around(np.tile(center, (40, 1)), 0.8, rng)
        for rater, order in enumerate(orders):
            names = [pool[i] for i in order[: rng.integers(6, 13)]]
            said.append(answer(f"{number} {rater}", question, names))
    path = tmp_path / "rankings.jsonl"
    write_export(path, asked, said, {})
    rankings = rs.read_rankings(path, items=asked.items)
    assert rankings.is_subset.all()
    merged = [item for item in rs.kemeny(rankings, "exact").order if item != "other"]
    found = rs.Rankings.from_orders([merged, pool], items=sorted(pool))
    assert rs.kendall_distance(found)[0, 1] <= 3
    model = rs.PlackettLuce().fit(rankings)
    worth = dict(zip(model.items_, model.worths_, strict=True))
    by_worth = sorted(pool, key=worth.get, reverse=True)
    both = rs.Rankings.from_orders([by_worth, pool], items=sorted(pool))
    assert rs.kendall_distance(both)[0, 1] <= 6


@pytest.mark.parametrize(("unshown", "prior"), [("after", "mallows"), ("unknown", "plackett-luce")])
def test_the_command_merges_an_export(tmp_path, unshown, prior):
    simulated = Simulation(2, between=2.0, within=1.0)
    items = [*simulated.questions[0].items, "never shown"]
    asked = study_of(simulated.questions, unshown=unshown, items=items, gold=[simulated.gold])
    write_export(tmp_path / "all.jsonl", asked, simulated.answers, {})
    merged = tmp_path / "merged.jsonl"
    done = rankshot(["consensus", tmp_path / "all.jsonl", "--prior", prior, "-o", merged])
    assert done.status == 0, done.err
    read = rs.read_rankings(merged, items=asked.items)
    assert sorted(read.target_names) == sorted(q.target for q in asked.questions)
    first = {target: order[0] for target, order in zip(read.targets, read.orders(), strict=True)}
    truth = {f"target {t}": f"item {c[0]}" for t, c in enumerate(simulated.centers)}
    assert np.mean([first[target] == truth[target] for target in truth]) > 0.8


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
    (target,) = summarize_progress(asked, said, {}, {}).targets
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
