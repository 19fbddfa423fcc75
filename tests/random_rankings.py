"""Random rankings of all kinds, for property tests."""

from hypothesis import strategies as st

from rankshot import Rankings


@st.composite
def tied_groups(draw, items, *, ties=True, complete=False):
    """Some of the items in groups, best first; those of a group are tied."""
    smallest = len(items) if complete else 1
    groups = []
    for name in draw(st.lists(st.sampled_from(items), min_size=smallest, unique=True)):
        if groups and ties and draw(st.booleans()):
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups


def orders_over(items, **options):
    """The same as orders: an item that is not tied is not in a list."""
    return tied_groups(items, **options).map(
        lambda groups: [group if len(group) > 1 else group[0] for group in groups]
    )


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
names = st.lists(text.filter(bool), min_size=1, max_size=5, unique=True)
labels = st.none() | text.filter(bool)
weights = st.floats(0, allow_infinity=False) | st.integers(0, 2**53).map(float)


@st.composite
def rankings_of(draw, items, weights, *, most=5, ties=True, kinds=("top", "subset"), **labels):
    """Rankings of all kinds together: ties, cut ties, subsets; ``labels`` are other strategies."""
    return Rankings.concatenate(
        Rankings.from_orders(
            [draw(orders_over(items, ties=ties))],
            items=items,
            weights=[draw(weights)],
            kind=draw(st.sampled_from(kinds)),
            **{name: [draw(label)] for name, label in labels.items()},
        ).top(draw(st.integers(1, len(items))))
        for _ in range(draw(st.integers(1, most)))
    )


def any_rankings():
    """Rankings of all kinds, of any names, with any weights and labels."""
    columns = dict.fromkeys(("targets", "sources", "raters"), labels)
    return names.flatmap(lambda items: rankings_of(items, weights, **columns))
