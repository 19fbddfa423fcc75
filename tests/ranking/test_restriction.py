"""Taking items away from rankings."""

import numpy as np
from hypothesis import given, strategies as st

from random_rankings import tied_groups
from rankshot.ranking.matrices import restrict_items
from rankshot.ranking.rankings import Rankings

ITEMS = list("abcdef")


@st.composite
def cases(draw):
    orders, kinds, cuts = [], [], []
    for _ in range(draw(st.integers(1, 6))):
        orders.append(draw(tied_groups(ITEMS)))
        kinds.append(draw(st.sampled_from(["top", "subset"])))
        cuts.append(draw(st.integers(1, sum(map(len, orders[-1])))))
    rankings = Rankings.from_orders(
        orders, items=ITEMS, kind=kinds, raters=list(map(str, range(len(orders))))
    )
    return rankings.top(np.array(cuts)), draw(st.permutations(ITEMS))[: draw(st.integers(1, 6))]


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


@given(cases())
def test_items_leave_and_the_others_keep_their_order(case):
    rankings, items = case
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
