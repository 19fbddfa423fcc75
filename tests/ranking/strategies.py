"""Random rankings, for property tests."""

from hypothesis import strategies as st


@st.composite
def tied_groups(draw, items):
    """Some of the items in groups, best first; those of a group are tied."""
    groups = []
    for name in draw(st.lists(st.sampled_from(items), min_size=1, unique=True)):
        if groups and draw(st.booleans()):
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups
