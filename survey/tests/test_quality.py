"""Flags: each rule by hand, by brute force, and how often it is right on simulated people."""

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import permutations
from math import prod
from pathlib import Path

import numpy as np
import pytest

from rankshot.ranking.rankings import Rankings
from rankshot.ranking.rater_agreement import concordance
from rankshot_survey.answers import group_by, is_counted
from rankshot_survey.quality import MOST_CHANCE, find_flags, find_identical_raters
from rankshot_survey.study import QualityRules, Question
from survey_answers import Simulation, answer

RULES = QualityRules()
CAT, DOG, OWL, ELK = (Question(name, tuple("abcdef")) for name in ("cat", "dog", "owl", "elk"))
GOLD = Question("wolf", tuple("abcd"), ("a", "b"))


def names(answers, rater, rules=RULES):
    return [flag.name for flag in find_flags(answers, rules)[rater]]


def the_flag(answers, rater, name, rules=RULES):
    (flag,) = (flag for flag in find_flags(answers, rules)[rater] if flag.name == name)
    return flag


# -------------------------------------------------------------------- by hand


def test_half_of_the_answers_faster_than_the_rule_are_fast():
    slow = [answer("x", question, "ab", seconds=3.0) for question in (CAT, DOG)]
    fast = [answer("x", question, "ab", seconds=2.99) for question in (OWL, ELK)]
    assert names([*slow, fast[0]], "x") == []
    flag = the_flag([*slow, *fast], "x", "fast")
    assert flag.value == 0.5
    assert names([*slow, *fast], "x", replace(RULES, seconds=1.5)) == []


def test_many_items_take_longer_to_read():
    many = Question("all", tuple(f"item {i}" for i in range(40)))
    order = many.items[:3]
    for seconds, found in ((11.9, ["fast"]), (12.0, [])):
        assert names([answer("x", many, order, seconds=seconds)], "x") == found


def test_more_than_half_skipped():
    said = [answer("x", CAT, "ab"), answer("x", DOG, "")]
    assert names(said, "x") == []
    flag = the_flag([*said, answer("x", OWL, "", repeat=True)], "x", "skips")
    assert flag.value == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("order", "right"),
    [
        *(("ab", 1), ("bac", 1), ("abcd", 1), ("ac", 0), ("cab", 0)),
        # Stopping among the known ones is not wrong; placing none of them is.
        *(("a", 1), ("b", 1), ("c", 0), ("cd", 0), ("bda", 0)),
    ],
)
def test_a_gold_answer_places_nothing_before_the_known_items(order, right):
    assert names([answer("x", GOLD, order)], "x") == ([] if right else ["gold"])


def test_repeats_are_compared_with_the_first_answer_to_the_same_question():
    said = [answer("x", CAT, "abcdef"), answer("x", DOG, "fedcba")]
    others = [answer("y", DOG, "abcdef")]
    # 15 pairs, 10 of them turned round.
    again = [answer("x", CAT, "fedabc", repeat=True)]
    turned = 3 + 9
    flag = the_flag([*others, *again, *said], "x", "repeats")
    assert flag.value == pytest.approx(turned / 15)
    same = answer("x", DOG, "fedcba", repeat=True)
    assert names([*said, *again, same], "x") == []
    flag = the_flag([*said, *again, same], "x", "repeats", replace(RULES, repeat_distance=0.39))
    assert flag.value == pytest.approx(0.4)
    # The rule names the largest distance that is allowed.
    at_most = replace(RULES, repeat_distance=flag.value)
    assert names([*said, *again, same], "x", at_most) == []


# -------------------------------------------------------------------- by brute force


def brute_twins(answers):
    """All pairs of people, one after the other."""
    said, count = {}, Counter(a.question.key for a in answers)
    same = Counter((a.question.key, a.order) for a in answers)
    for a in answers:
        said.setdefault(a.rater, {})[a.question.key] = a.order
    shared = {r: {s: said[r].keys() & said[s].keys() for s in said if s != r} for r in said}
    compared = {r: sum(len(keys) >= 3 for keys in shared[r].values()) for r in said}
    twins = {}
    for r, s in permutations(said, 2):
        keys = shared[r][s]
        if len(keys) < 3 or any(said[r][key] != said[s][key] for key in keys):
            continue
        chance = prod((same[key, said[r][key]] - 1) / (count[key] - 1) for key in keys)
        chance *= max(compared[r], compared[s])
        n_places = sum(len(said[r][key]) for key in keys)
        if chance <= MOST_CHANCE and n_places >= 8:
            twins.setdefault(r, {})[s] = (len(keys), n_places, pytest.approx(chance))
    return twins


def test_twins_are_found_as_by_comparing_all_pairs():
    found = 0
    for seed in range(8):
        said = [
            a for a in Simulation(seed, between=2, within=2, longest=5).answers if is_counted(a)
        ]
        twins = find_identical_raters(said)
        plain = {r: {t.rater: (t.n_shared, t.n_places, t.chance) for t in twins[r]} for r in twins}
        assert plain == brute_twins(said)
        found += len(twins)
    assert found > 4


def test_raters_who_differ_once_are_not_identical():
    """They agree on many answers, which is unlikely by chance, and differ in one."""
    rng, questions = (
        np.random.default_rng(0),
        [Question(f"t{i}", tuple("abcdef")) for i in range(12)],
    )
    orders = [rng.permutation(list("abcdef")).tolist() for _ in questions]
    said = [answer("x", q, order) for q, order in zip(questions, orders, strict=True)]
    said += [
        answer(f"other {i}", q, rng.permutation(list("abcdef")))
        for q in questions
        for i in range(9)
    ]
    twin = [answer("y", q, order) for q, order in zip(questions, orders, strict=True)]
    assert set(find_identical_raters([*said, *twin])) == {"x", "y"}
    differs = answer("y", questions[0], orders[0][::-1])
    assert find_identical_raters([*said, differs, *twin[1:]]) == {}
    # A question that only one of them has answered says nothing.
    assert set(find_identical_raters([*said, *twin[1:]])) == {"x", "y"}


# -------------------------------------------------------------------- on simulated people

N_STUDIES = 60

# As `flags` documents them: careful, at random, one person twice.
GUIDE = Path(__file__).parents[2] / "survey" / "docs" / "study.md"
MEASURED = {
    "fast": (0.000, 0.90, 0.00),
    "repeats": (0.001, 0.42, 0.00),
    "gold": (0.019, 0.79, 0.00),
    "distance": (0.000, 0.97, 0.00),
    "identical": (0.000, 0.00, 0.92),
    "skips": (0.000, 0.00, 0.00),
}


@cache
def simulation(seed, **settings):
    return Simulation(seed, **settings)


@cache
def rates(n, rules=RULES, **settings):
    """How often each flag meets the careful, the random and the twins in ``n`` studies."""
    hits, people = Counter(), Counter()
    for seed in range(n):
        simulated = simulation(seed, **settings)
        found = find_flags(simulated.answers, rules)
        for role in ("careful", "random", "twins"):
            for rater in getattr(simulated, role):
                people[role] += 1
                hits.update((role, flag.name) for flag in found[rater])
    roles = ("careful", "random", "twins")
    return {name: [hits[role, name] / max(people[role], 1) for role in roles] for name in MEASURED}


def agreement_of_the_careful(**settings):
    found = []
    for seed in range(4):
        simulated = simulation(seed, **settings)
        said = [a for a in simulated.answers if a.rater in simulated.careful and is_counted(a)]
        for group in group_by(said, lambda a: a.question.key).values():
            orders = [a.order for a in group]
            found.append(concordance(Rankings.from_orders(orders, items=group[0].question.items)))
    return np.mean(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", MEASURED)
def test_the_documented_figures_are_measured(name):
    careful, random, twins = rates(N_STUDIES)[name]
    assert careful == pytest.approx(MEASURED[name][0], abs=0.003)
    assert random == pytest.approx(MEASURED[name][1], abs=0.02)
    assert twins == pytest.approx(MEASURED[name][2], abs=0.02)
    row = next(line for line in GUIDE.read_text().splitlines() if line.startswith(f"| {name} |"))
    assert row.endswith("| {:.3f} | {:.2f} | {:.2f} |".format(*MEASURED[name]).replace(" 0.", " ."))


@pytest.mark.slow
def test_the_documented_figures_of_other_rules_and_noisier_people_are_measured():
    assert agreement_of_the_careful() == pytest.approx(0.55, abs=0.02)
    stricter = rates(N_STUDIES, replace(RULES, repeat_distance=0.4))["repeats"]
    assert stricter[1] == pytest.approx(0.71, abs=0.03)
    assert stricter[0] == pytest.approx(0.03, abs=0.01)
    for between, within, agreement, flagged in ((0.5, 0.7, 0.34, 0.006), (0.3, 1.0, 0.24, 0.14)):
        settings = {"between": between, "within": within}
        assert agreement_of_the_careful(**settings) == pytest.approx(agreement, abs=0.02)
        careful = rates(N_STUDIES // 2, **settings)["distance"][0]
        assert careful == pytest.approx(flagged, abs=max(0.004, 0.15 * flagged))
