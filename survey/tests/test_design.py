"""The design of a new study: which items each question shows."""

from contextlib import closing
from dataclasses import replace
from functools import cache
from itertools import permutations
from random import Random

import numpy as np
import pytest

import rankshot as rs
from rankshot.core.errors import NO_VALUE
from rankshot_survey.answers import Answer
from rankshot_survey.design import new_study, select_nearest_items
from rankshot_survey.overview import summarize_targets
from rankshot_survey.store.assignment import draw_sets
from rankshot_survey.store.database import Database
from rankshot_survey.study import Question
from rankshot_survey.study_files import format_study, read_study
from refusals import refuses
from small_studies import Visitors, small_study

# ---- preselection


def mean_places(orders, items):
    """The mean place of every item over all strict orders that each top-K list with ties allows."""
    totals = dict.fromkeys(items, 0.0)
    for order in orders:
        groups = [group if isinstance(group, list) else [group] for group in order]
        listed = [name for group in groups for name in group]
        groups.append([name for name in items if name not in listed])
        before = 0
        for group in groups:
            strict = list(permutations(group))
            for name in group:
                totals[name] += before + sum(s.index(name) for s in strict) / len(strict)
            before += len(group)
    return totals


def random_order(rng, items):
    """The first few of the items, sometimes tied."""
    order = []
    for name in rng.permutation(items)[: rng.integers(1, len(items) + 1)].tolist():
        if order and rng.random() < 0.3:
            order[-1] = [*(order[-1] if isinstance(order[-1], list) else [order[-1]]), name]
        else:
            order.append(name)
    return order


def test_nearest_are_those_of_the_smallest_mean_place_then_by_name(rng):
    items, targets = list("fbdaec"), ["two", "one"]
    for _ in range(60):
        orders = {target: [random_order(rng, items) for _ in range(3)] for target in targets}
        rankings = rs.Rankings.from_orders(
            [*orders["two"], *orders["one"]],
            items=items,
            targets=np.repeat(targets, 3).tolist(),
        )
        expected = []
        for target in targets:
            places = mean_places(orders[target], items)
            expected.append(tuple(sorted(items, key=lambda i: (round(places[i], 9), i))[:4]))
        assert select_nearest_items(rankings, targets, items, 4) == expected
        shuffled = rng.permutation(items).tolist()
        assert select_nearest_items(rankings, targets, shuffled, 4) == expected


# ---- sets that are drawn for each participant

NAMES = tuple(f"item {i:02d}" for i in range(40))
POOL = Question("all items", NAMES, show=10)
DRAWN = small_study(
    items=NAMES, questions=[POOL], unshown="unknown", questions_per_participant=8, repeats=2
)


def count_shown(sets, names=NAMES):
    """How often two items were shown together; on the diagonal, how often each was shown."""
    there = np.array([[name in shown for name in names] for shown in sets], int)
    return there.T @ there


def test_every_pair_is_shown_equally_often_and_nobody_gets_the_same_sets(tmp_path):
    with closing(Database(tmp_path / "study.sqlite", create=True)) as database:
        people = Visitors(DRAWN, database)
        raters = [people.start(f"p{i}") for i in range(15)]
        for rater in raters:
            people.answer(rater, rank=lambda _question, shown: sorted(shown))
        answers = people.view().answers
    sets = {rater: [a.shown for a in answers if a.rater == rater] for rater in raters}
    for rater, shown in sets.items():
        assert np.all(np.diag(count_shown(shown[:8])) == 2)
        # Repeats show the same items again, in another order.
        repeated = [a for a in answers if a.rater == rater and a.repeat]
        first = {a.question.key: a for a in answers if a.rater == rater and not a.repeat}
        assert len(repeated) == 2
        for again in repeated:
            before = first[again.question.key].shown
            assert set(again.shown) == set(before)
            assert again.shown != before
    together = count_shown([set(s) for shown in sets.values() for s in shown[:8]])
    assert np.all(np.diag(together) == 30)
    pairs = together[np.triu_indices(40, 1)]
    # 5,400 pairs on 120 pages; 780 different ones.
    assert pairs.min() >= 4
    assert pairs.max() <= 10
    assert len({frozenset(s) for shown in sets.values() for s in shown}) == 120


def test_pairs_of_people_who_left_or_are_excluded_are_shown_to_others(tmp_path):
    """All sets of a, which nobody answers, are free again: b's and c's together cover most."""
    study = replace(DRAWN, questions=(Question("all items", NAMES[:6], show=3),), items=NAMES[:6])
    with closing(Database(tmp_path / "study.sqlite", create=True)) as database:
        people = Visitors(study, database)
        people.start("a")
        people.now += 60 * study.return_after_minutes + 1
        raters = [people.start(name) for name in "bcde"]
        for rater in raters:
            people.answer(rater, rank=lambda _question, shown: shown)
        shown = [answer.shown for answer in people.view().answers if not answer.repeat]
    # 4 people with 4 sets of 3 pairs, for 15 pairs.
    pairs = count_shown(shown, NAMES[:6])[np.triu_indices(6, 1)]
    assert pairs.min() >= 1
    assert pairs.max() - pairs.min() <= 2


@cache
def draw_design(n_people):
    """The sets of each person, which do not depend on what anybody says."""
    together, rng = np.zeros((40, 40), int), Random(n_people)
    return [draw_sets(together, np.zeros(40, int), 8, 10, rng) for _ in range(n_people)]


def find_order(n_people, rng):
    """The order that a study finds, where the true order is that of NAMES."""
    said = []
    for person, sets in enumerate(draw_design(n_people)):
        for part, codes in zip(DRAWN.asked, sets, strict=True):
            scores = -0.35 * np.array(codes) + rng.gumbel(size=10)
            shown = tuple(NAMES[i] for i in codes)
            order = tuple(shown[i] for i in np.argsort(-scores))
            said.append(Answer(f"r{person}", part, part.part, False, shown, order, 9.0, 0.0))
    (target,) = summarize_targets(DRAWN, said, {})
    return target.consensus


def largest_error(n_people, n_studies, seed):
    """The largest error of a place in 95 % of the studies."""
    errors = []
    for rng in np.random.default_rng(seed).spawn(n_studies):
        places = [NAMES.index(item) for item in find_order(n_people, rng)]
        errors.append(np.abs(np.array(places) - np.arange(40)).max())
    return sorted(errors)[-(-95 * n_studies // 100) - 1]


@pytest.mark.parametrize(
    ("n_people", "n_studies", "most"),
    [
        (15, 40, 3),
        pytest.param(50, 20, 2, marks=pytest.mark.slow),
        pytest.param(300, 5, 1, marks=pytest.mark.slow),
    ],
)
def test_people_find_the_order_of_forty_items(n_people, n_studies, most):
    """Fixed sets, the same for everybody, had errors of 5, 5 and 4."""
    assert largest_error(n_people, n_studies, seed=n_people) <= most


# ---- new studies

ANIMALS = ["leopard", "seal", "mole", "otter", "wolf", "whale", "fox", "lion", "horse", "cow"]


NEAR = rs.Rankings.from_orders(
    [["lion", "leopard", "wolf", "fox", "otter", "seal", "cow"], ["whale", "seal", "otter"]],
    items=ANIMALS,
    targets=["tiger", "dolphin"],
)


def test_a_new_study_shows_the_nearest(tmp_path):
    study = new_study(["tiger", "dolphin"], ANIMALS, show=3, rankings=NEAR)
    nearest = {question.target: question.items for question in study.questions}
    assert nearest == {"tiger": ("lion", "leopard", "wolf"), "dolphin": ("whale", "seal", "otter")}
    assert study.items == tuple(ANIMALS)
    assert (study.unshown, study.gold, study.platform) == ("after", (), "none")
    assert (study.answers_per_question, study.questions_per_participant) == (50, 2)
    path = tmp_path / "study.toml"
    path.write_text(format_study(study), encoding="utf-8")
    assert read_study(path) == study


def test_sets_of_many_items_are_drawn_and_say_nothing_of_the_unshown(tmp_path):
    study = new_study(None, ANIMALS, prompt="Which is largest?", show=4)
    assert study.unshown == "unknown"
    (question,) = study.questions
    assert (question.items, question.show, question.n_parts) == (tuple(ANIMALS), 4, 5)
    assert len({question.key for question in study.asked}) == 5
    path = tmp_path / "study.toml"
    path.write_text(format_study(study), encoding="utf-8")
    assert read_study(path) == study


def test_no_rankings_are_needed_if_all_items_are_shown():
    study = new_study(["qzx"], ["abcx", "bcdx", "cdex"])
    assert study.questions == (Question("qzx", ("abcx", "bcdx", "cdex")),)


@pytest.mark.parametrize(
    ("change", "parameter", "value"),
    [
        ({"show": 11}, "show", 11),
        ({"show": 2}, "rankings", NO_VALUE),
        ({"items": ["fox"]}, "items", 1),
        ({"targets": ["tiger", "bear"], "show": 3, "rankings": NEAR}, "rankings", "bear"),
        ({"targets": None}, "prompt", NO_VALUE),
    ],
)
def test_a_study_that_cannot_be_made_is_refused(change, parameter, value):
    with refuses(parameter, value):
        new_study(**{"targets": ["tiger"], "items": ANIMALS, **change})
