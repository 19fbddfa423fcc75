"""Any two options of `recognise` work together, or one of them is refused by its name."""

from inspect import signature
from itertools import combinations

import numpy as np
import pytest

import rankshot as rs
from command_line import SEEN, USUAL
from rankshot.core.errors import InputError

TEXTS = [f"{a} {b}" for a in SEEN for b in SEEN[:3]]
LABELS = [SEEN[i % 5] for i in range(40)]
NEW = {"cat": ["leopard", "tiger", "fox"], "dog": ["fox", "tiger"], "truck": ["bus", "tram"]}
LISTS = {name: [other for other in SEEN[i:] + SEEN[:i] if other != name] for i, name in
         enumerate(SEEN)} | NEW  # fmt: skip


def count_words(texts):
    return [[text.count(name) + len(text) / 50 + 0.1 * i for i, name in enumerate(SEEN)]
            for text in texts]  # fmt: skip


TEXT_REFERENCE = [f"{SEEN[i % 5]} number {i}" for i in range(20)]
CHOICES = {
    "source": ["look-alikes"],
    "reference": [TEXT_REFERENCE, TEXT_REFERENCE[:5], (TEXT_REFERENCE, LABELS[:20])],
    "examples": [(["a bus", "a fox"], ["truck", "dog"]), {"0": "truck", "7": "dog", "3": "dog"}],
    "classes": ["new", "all"],
    "seen_loss": [0.1],
    "none": [True],
    "batch": [True, False],
    "rehearse": [False],
    "raters": [["ann"]],
    "preprocessing": ["imagenet"],
    "features": [False],
    "on_error": ["skip"],
    "settings": [rs.zeroshot.Settings(k=2, decay=1.0)],
    "score_type": ["logits"],
    "seen": [SEEN],
    "model": [count_words],
}
PAIRS = [
    (one, other)
    for a, b in combinations(CHOICES, 2)
    for one in [(a, value) for value in CHOICES[a]]
    for other in [(b, value) for value in CHOICES[b]]
]


def find_refused(options):
    """The parameter that must be refused, of options that contradict each other."""
    if "preprocessing" in options:
        return None  # a function on texts: any error of its own
    is_measured = options.get("classes") == "all" and len(options.get("reference", [])) != 5
    if "seen_loss" in options and not (is_measured and "reference" in options):
        return "seen_loss"
    return "source" if "source" in options else ""


def test_all_options_are_tried():
    assert {*signature(rs.recognise).parameters} == {"inputs", "new", *CHOICES}


def test_all_pairs_of_options():
    problems = []
    for pair in PAIRS:
        options = {"model": count_words, "seen": SEEN, **dict(pair)}
        rankings = dict(LISTS) if "raters" not in options else {n: [o] for n, o in LISTS.items()}
        expected = find_refused(options)
        try:
            found = rs.recognise(TEXTS, rankings, **options)
        except InputError as error:
            if expected is not None and error.parameter != expected:
                problems.append((pair[0][0], pair[1][0], expected, str(error)))
            continue
        allowed = {*NEW, *(SEEN if options.get("classes") == "all" else ()), "none of these"}
        if expected:
            problems.append((pair[0][0], pair[1][0], expected, "was accepted"))
        assert len(found.labels) == len(TEXTS)
        assert {*found.labels.tolist()} <= allowed
        np.testing.assert_allclose(found.proba.sum(axis=1), 1, atol=1e-6)
        assert ("none of these" in found.head.classes_) == options.get("none", False)
    assert "\n".join(map(str, problems)) == ""


SCORES = rs.Scores(USUAL, SEEN)
REFERENCE = SCORES, LABELS


def test_a_dict_is_of_one_rater_so_its_accuracy_is_forecast():
    found = rs.recognise(SCORES, LISTS, reference=REFERENCE)
    named = rs.recognise(SCORES, LISTS, reference=REFERENCE, raters="ann")
    assert found.predicted == named.predicted is not None
    assert len(found.forecast.classes) == 5
    several = {name: [order, order] for name, order in LISTS.items()}
    assert rs.recognise(SCORES, several, reference=REFERENCE).predicted is None


def test_rankings_of_seen_classes_by_another_source_are_not_rehearsed():
    new = rs.Rankings.from_orders(NEW, items=SEEN, sources="zoo")
    seen = rs.Rankings.from_orders({name: LISTS[name] for name in SEEN}, items=SEEN)
    both = rs.Rankings.concatenate([new, seen])
    found = rs.recognise(SCORES, both, reference=REFERENCE)
    assert found.forecast is None
    alone = rs.recognise(SCORES, new, reference=REFERENCE)
    np.testing.assert_allclose(found.proba, alone.proba, atol=1e-12)


@pytest.mark.parametrize("n", [9, 10])
def test_a_reference_of_ten_inputs_is_used(n):
    found = rs.recognise(SCORES, NEW, reference=rs.Scores(USUAL[:n], SEEN))
    alone = rs.recognise(SCORES, NEW)
    assert (found.knowledge.reference is not None) == (n == 10)
    assert np.allclose(found.proba, alone.proba) == (n == 9)


def test_only_rankings_by_raters_are_rehearsed_if_raters_rank_the_new_classes():
    orders, targets = list(LISTS.values()), list(LISTS)
    for seen_rater, is_rehearsed in (("ann", True), (None, False)):
        raters = [seen_rater if name in SEEN else "ann" for name in targets]
        lists = rs.Rankings.from_orders(orders, items=SEEN, targets=targets, raters=raters)
        found = rs.recognise(SCORES, lists, reference=REFERENCE)
        assert (found.forecast is not None) == is_rehearsed
