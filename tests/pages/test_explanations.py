"""Explanations: bars, groups, and which inputs are explained."""

from dataclasses import replace

import numpy as np
import pytest
from report_samples import EXAMPLE

import rankshot as rs
from rankshot.pages import Outcomes, build_report
from rankshot.pages.explanations import (
    find_supporters,
    format_alternatives,
    format_contributions,
)
from rankshot.pages.page import make_bars
from rankshot.zeroshot.explanation import Explanation

WHY = EXAMPLE.why


def test_a_group_of_contributions_has_five_bars_and_the_rest():
    items = tuple((f"seen{i}", (-1.0) ** i / (i + 1)) for i in range(30))
    listed = tuple(name for name, _ in items[:20:2])
    own, others = format_contributions(replace(WHY, items=items[::-1], listed=listed))[:2]
    assert [bar.name for bar in own["bars"]] == list(listed[:5])
    assert [bar.name for bar in others["bars"]] == [f"seen{i}" for i in range(9, 0, -2)]
    rest = np.exp(sum(value for _, value in items[10:20:2]))
    assert f"×{rest:.1f}" in own["note"]


def test_what_contributes_besides_the_rankings_is_a_table_of_its_own():
    why = replace(WHY, others=(("features", 0.7), ("another model", -0.05)))
    bars = format_contributions(why)[-1]["bars"]
    assert [(bar.name, bar.text) for bar in bars] == [
        ("features", "×2.0"),
        ("another model", "÷1.05"),
    ]
    assert len(format_contributions(replace(WHY, others=()))) == len(format_contributions(why)) - 1
    assert [bar[:3] for bar in format_alternatives(why)] == [
        ("dog", "21.4%", 0.214),
        ("ship", "7.1%", 0.071),
    ]


def test_a_bar_that_hides_all_others_is_cut_off_and_marked():
    table = format_contributions(replace(WHY, items=(("a", 28.0), ("b", 1.0), ("c", -0.5))))[0]
    assert [(bar.name, bar.length, bar.clipped) for bar in table["bars"]] == [
        ("a", 1.0, True),
        ("b", pytest.approx(1 / 3), False),
        ("c", pytest.approx(-1 / 6), False),
    ]
    assert not any(bar.clipped for bar in make_bars([("a", 2.0), ("b", 1.0)]))


def test_only_classes_in_the_rankings_support_a_prediction():
    items = (("bus", 3.0), ("fox", -2.0), ("a", 0.5), ("lion", 1.0), ("cow", 0.7), ("b", 0.5))
    listed = ("fox", "lion", "a", "b", "cow")
    why = Explanation("cat", 0.5, None, items, (), (), listed)
    assert find_supporters(why) == ("lion", "cow", "a")
    assert find_supporters(Explanation("cat", 0.5, None, items, (), ())) == ("bus", "lion", "cow")
    assert find_supporters(Explanation("cat", 0.5, None, (("a", 0.0), ("b", 0.1)), (), ())) == (
        "b",
    )


NAMES = ["bus", "cat", "dog"]
RANKINGS = {"cat": ["lion", "wolf"], "dog": ["wolf", "lion"], "bus": ["tram", "wolf"]}
SEEN = ["lion", "tram", "wolf"]
SCORES = rs.Scores([[3.0, 0, 1], [3, 0, 2.8], [1, 0, 3], [0, 3, 1], [3, 1, 0]], SEEN)
HEAD = rs.WeightedMean().fit(
    rs.Rankings.from_orders(RANKINGS.values(), items=SEEN, targets=list(RANKINGS))
)
FOUND = Outcomes(
    [f"input {i}" for i in range(5)],
    HEAD.predict(SCORES),
    HEAD.predict_proba(SCORES),
    np.array(["cat", "dog", "dog", "bus", "bus"]),
    NAMES,
)


def list_explained(outcomes):
    """Return why each input got its class and not another, in the order of the page."""
    shown = build_report("t", outcomes, head=HEAD, scores=SCORES).inputs
    return [(one.name[-1], one.label, one.why.against) for one in shown if one.why]


def test_inputs_are_explained_against_the_truth_or_the_next_class():
    assert FOUND.predicted.tolist() == ["cat", "cat", "dog", "bus", "cat"]
    assert list_explained(FOUND) == [
        ("3", "bus", "dog"),
        ("4", "cat", "bus"),
        ("0", "cat", "dog"),
        ("2", "dog", "cat"),
        ("1", "cat", "dog"),
    ]
    assert {against for _, _, against in list_explained(FOUND._replace(truth=None))} <= {*NAMES}


def test_wrong_predictions_are_explained_first(monkeypatch):
    monkeypatch.setattr("rankshot.pages.explanations.MAX_EXPLAINED", 2)
    assert [name for name, *_ in list_explained(FOUND)] == ["4", "1"]


def test_predictions_of_another_head_are_not_explained():
    corrected = FOUND.predicted.copy()
    corrected[[0, 2]] = ["dog", "bus"]
    other = FOUND._replace(predicted=corrected, truth=None)
    assert {name for name, *_ in list_explained(other)} == {"1", "3", "4"}
