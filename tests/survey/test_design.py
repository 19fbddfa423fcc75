"""The design of a new study: which items each question shows."""

from itertools import permutations
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import rankshot as rs
from rankshot.core.errors import RankshotError
from rankshot.survey.design import new_study, select_nearest_items, split_pool
from rankshot.survey.study import Question
from rankshot.survey.study_files import format_study, read_study

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


def are_connected(sets):
    """Whether one can get from any set to any other over shared items."""
    reached, rest = set(sets[0]), list(sets[1:])
    while near := [s for s in rest if reached & set(s)]:
        reached |= set().union(*near)
        rest = [s for s in rest if s not in near]
    return not rest


@settings(max_examples=25)
@given(size=st.integers(2, 60), show=st.integers(2, 20), seed=st.integers(0, 99))
def test_sets_cover_the_pool_twice_and_hang_together(size, show, seed):
    show = min(show, size)
    pool = [f"item {i}" for i in range(size)]
    sets = split_pool(pool, show, Random(seed))
    assert all(len(set(s)) == show and set(s) <= set(pool) for s in sets)
    if size == show:
        assert sets == [tuple(pool)]
        return
    times = [sum(name in s for s in sets) for name in pool]
    # No more sets than twice the pool needs; no item is asked for much more often than another.
    assert min(times) >= 2
    assert sum(times) - 2 * size < show
    assert max(times) <= 3
    assert len({frozenset(s) for s in sets}) == len(sets)
    assert are_connected(sets)
    # And still, if any one of the sets gets no answers.
    assert all(are_connected(sets[:i] + sets[i + 1 :]) for i in range(len(sets)))


# ---- new studies

ANIMALS = ["leopard", "seal", "mole", "otter", "wolf", "whale", "fox", "lion", "horse", "cow"]


def test_a_new_study_shows_the_nearest_by_wordnet(tmp_path):
    study = new_study(["tiger", "dolphin"], ANIMALS, show=4)
    table = rs.WordNet().similarity(["tiger", "dolphin"], ANIMALS)
    for question in study.questions:
        nearest = sorted(ANIMALS, key=lambda name: (-table[question.target, name], name))
        assert question.items == tuple(nearest[:4])
    assert [question.target for question in study.questions] == ["tiger", "dolphin"]
    assert study.items == tuple(ANIMALS)
    assert (study.unshown, study.gold, study.platform) == ("after", (), "none")
    assert (study.answers_per_question, study.questions_per_participant) == (50, 2)
    path = tmp_path / "study.toml"
    path.write_text(format_study(study), encoding="utf-8")
    assert read_study(path) == study


def test_a_larger_pool_is_split_and_says_nothing_of_the_unshown():
    study = new_study(["tiger", "dolphin"], ANIMALS, show=4, pool=7)
    assert study.unshown == "unknown"
    nearest = {
        q.target: set(q.items) for q in new_study(["tiger", "dolphin"], ANIMALS, show=7).questions
    }
    for target in ("tiger", "dolphin"):
        sets = [question.items for question in study.questions if question.target == target]
        assert len(sets) == 4
        assert set().union(*sets) == nearest[target]
        assert are_connected(sets)
    other = new_study(["dolphin", "tiger"], ANIMALS[::-1], show=4, pool=7)
    assert {q.key for q in other.questions} == {q.key for q in study.questions}
    reseeded = new_study(["tiger", "dolphin"], ANIMALS, show=4, pool=7, seed=1)
    assert {q.key for q in reseeded.questions} != {q.key for q in study.questions}


def test_names_that_wordnet_does_not_know_are_fine_where_nothing_is_to_be_selected():
    study = new_study(["qzx"], ["abcx", "bcdx", "cdex"])
    assert study.questions == (Question("qzx", ("abcx", "bcdx", "cdex")),)
    assert len(new_study(["qzx"], ["abcx", "bcdx", "cdex"], show=2, pool=3).questions) == 3
    with pytest.raises(
        RankshotError, match=r"no noun 'qzx'.*no noun 'abcx'.*Pin.*, or give rankings"
    ):
        new_study(["qzx"], ["abcx", "bcdx", "cdex"], show=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"show": 11}, "show must be a whole number from 2 to 10, not 11"),
        ({"show": 5, "pool": 4}, "a pool of 4 is smaller than the 5 items shown"),
        ({"items": ["fox"]}, "a question needs 2 items or more, and there is 1"),
    ],
)
def test_a_study_that_cannot_be_made_is_refused(change, message):
    with pytest.raises(RankshotError, match=message):
        new_study(**{"targets": ["tiger"], "items": ANIMALS, **change})
