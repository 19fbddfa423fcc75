"""Errors say which name or row is wrong, to people and to programs, in any process."""

import pickle

import pytest

import rankshot as rs
from rankshot.core.errors import RowError, UnknownItemError


def test_an_unknown_item_is_named():
    with pytest.raises(UnknownItemError, match="unknown item 'dgo'") as caught:
        rs.Rankings.from_orders([["cat", "dgo"]], items=["cat", "dog"])
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (UnknownItemError, str(caught.value))


def test_a_row_is_numbered():
    with pytest.raises(RowError, match=r"^row 1, column 'b': 1\.5 is not a probability$") as caught:
        rs.Scores.from_probabilities([[0.5, 0.5], [0.1, 1.5]], ["a", "b"])
    assert caught.value.row == 1
    with pytest.raises(RowError, match=r"^row 0: .* not 1\.5\. Pass kind=") as caught:
        rs.Scores.from_probabilities([[0.5, 1.0]], ["a", "b"])
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.problem, again.row) == (
        str(caught.value),
        caught.value.problem,
        0,
    )
    assert isinstance(again, rs.RankshotError)
