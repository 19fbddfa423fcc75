"""Checks of numbers, options and names; how messages quote values."""

import numpy as np
import pytest

from rankshot.core.arrays import row_blocks
from rankshot.core.errors import (
    format_count,
    quote_names,
    short_repr,
    suggest_name,
)
from rankshot.core.validation import (
    as_name,
    as_names,
    require_choice,
    require_generator,
    require_number,
    require_whole_number,
    require_whole_numbers,
)
from refusals import refuses

NAN, INF = np.nan, np.inf


def call(function, **options):
    """A check that is given the name of a parameter, a value and options."""
    return lambda value: function("x", value, **options)


REFUSED = [
    (call(require_number), ["4", True, None, [[1], [1, 2]], 1j, np.array([1.0]), 10**400]),
    (call(require_whole_number), [0, True, 1.0, "1"]),
    (call(require_whole_numbers), [[1, 2.5], "1", np.ma.array([1, 2], mask=[0, 1])]),
    (call(require_choice, choices=["newton", "mm"]), [None, "newtn"]),
    (lambda labels: as_names(labels, "x"), ["ab", {"a"}, 3, ["a", ""], [1.5], ["a", "b", "a"], []]),
]


@pytest.mark.parametrize(("require", "values"), REFUSED)
def test_a_wrong_value_is_refused_and_named(require, values):
    for value in values:
        with refuses("x"):
            require(value)


def test_the_choice_that_was_meant_is_named():
    with refuses("x", "newtn") as caught:
        require_choice("x", "newtn", ["newton", "mm"])
    assert "'newton'" in caught.value.hint
    assert require_choice("x", "mm", ["newton", "mm"]) == "mm"


@pytest.mark.parametrize("seed", ["0", -1, 1.5, True])
def test_what_is_no_seed_is_refused(seed):
    with refuses("random_state", seed):
        require_generator(seed)


@pytest.mark.parametrize("value", [1, np.int8(3), np.float32(2), np.array(4.0)])
def test_numbers_of_any_type(value):
    assert type(require_number("x", value)) is float
    assert require_number("x", value) == float(value)
    assert require_whole_number("x", int(value), most=7) == value


@pytest.mark.parametrize(
    ("bounds", "inside", "outside", "rule"),
    [
        ({"least": 0}, [0, 2.5, INF], [-1e-9, NAN], "0 or more"),
        ({"above": 0, "below": INF}, [5], [0, INF, NAN], "positive and finite"),
        ({"above": 0, "most": 1}, [0.5, 1], [0, 1.1, NAN], "positive and at most 1"),
        ({"above": 0.5, "below": 1}, [0.6], [0.5, 1, NAN], "above 0.5 and below 1"),
    ],
)
def test_a_number_must_be_inside_its_bounds(bounds, inside, outside, rule):
    for value in inside:
        assert require_number("x", value, **bounds) == value
    for value in outside:
        with refuses("x") as caught:
            require_number("x", value, **bounds)
        assert caught.value.rule == f"must be {rule}"


def test_names_are_text_or_whole_numbers():
    assert as_names(["a", 7, np.int32(3), np.str_("b")]) == ("a", "7", "3", "b")
    assert [as_name(label) for label in ("", None, True, 1.0, 2**63)] == [None] * 5


def test_messages_shorten_what_they_quote():
    assert len(short_repr("x" * 10_000)) < 80
    assert short_repr(10**10_000) == "a number too long to show"
    assert short_repr(10**600).startswith("1000000")
    assert quote_names("abc", 2) == "'a', 'b' and 1 more"
    assert quote_names("abc", 3) == "'a', 'b', 'c'"
    assert quote_names(range(9)).endswith("7 and 1 more")
    counted = ", ".join(format_count(n, "item") for n in (0, 1, 2, 3000))
    assert counted == "0 items, 1 item, 2 items, 3,000 items"
    assert format_count(2, "class") == "2 classes"
    assert suggest_name("dgo", ["cat", "dog"]) == " (did you mean 'dog'?)"
    assert suggest_name("whale", ["cat", "dog"]) == ""


@pytest.mark.parametrize(
    ("n", "per_row", "cells"), [(10, 3, 9), (10, 100, 9), (0, 3, 9), (5, 0, 2)]
)
def test_blocks_cover_all_rows_once(n, per_row, cells):
    blocks = list(row_blocks(n, per_row, cells))
    assert [row for block in blocks for row in range(n)[block]] == list(range(n))
    assert all(
        (block.stop - block.start) * per_row <= cells or block.stop - block.start == 1
        for block in blocks
    )
