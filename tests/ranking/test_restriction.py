"""Taking items away from rankings."""

from dataclasses import replace

import numpy as np
from hypothesis import given, strategies as st

from random_rankings import rankings_of
from rankshot.ranking.matrices import restrict_items

ITEMS = list("abcdef")


def plainly(ranking, items):
    """The same for one ranking, by lists: (order, length) or None."""
    order, length, placed = [], 0, 0
    cut = int(ranking.lengths[0])
    for entry in ranking.orders()[0]:
        tie = entry if isinstance(entry, list) else [entry]
        left = sorted(name for name in tie if name in items)
        taken = min(max(cut - placed, 0), len(tie))
        placed += len(tie)
        if taken == len(tie):
            length += len(left)
        elif taken and len(left) == len(tie):
            length += taken
        elif not ranking.is_subset[0]:
            break
        if left:
            order.append(left)
    size = sum(map(len, order))
    if length == 0 or (ranking.is_subset[0] and size < 2):
        return None
    return order, length


@given(rankings_of(ITEMS, st.just(1), most=6), st.permutations(ITEMS), st.integers(1, 6))
def test_items_leave_and_the_others_keep_their_order(rankings, items, n):
    items = items[:n]
    rankings = replace(rankings, raters=np.arange(len(rankings)).astype(str).astype(object))
    found = restrict_items(rankings, items)
    expected = {
        str(row): wanted
        for row in range(len(rankings))
        if (wanted := plainly(rankings[row], items)) is not None
    }
    assert found.items == tuple(items)
    assert list(found.raters) == list(expected)
    for row, (order, length) in enumerate(expected.values()):
        got = [sorted(e) if isinstance(e, list) else [e] for e in found[row].orders()[0]]
        assert got == order
        assert found.lengths[row] == length
