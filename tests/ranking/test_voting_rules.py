"""Copeland, Schulze, Smith set and others: against their definitions."""

from itertools import chain, combinations, permutations

import pytest

import rankshot as rs
from rankshot.ranking.consensus.precedence import precedence

ITEMS = list("abcde")


@pytest.fixture(params=["full", "top", "ties", "subset"])
def votes(request, random_rankings, rng):
    """Thirty values of each kind, with whole weights: majorities may be even."""
    kind = request.param
    options = {"n_items": 5, "ties": kind == "ties", "shortest": 5 if kind == "full" else 1}
    return [
        random_rankings(
            **options,
            n=int(rng.integers(2, 7)),
            kind="subset" if kind == "subset" else "top",
        )
        for _ in range(30)
    ]


def listed(rankings):
    return {rankings.items[i] for i in rankings.codes}


def margins(rankings):
    """Who beats whom, by name; items that no ranking lists lose against the others."""
    W, items, known = precedence(rankings), rankings.items, listed(rankings)
    return {
        (a, b): W[i, j] > W[j, i] or (a in known and b not in known)
        for i, a in enumerate(items)
        for j, b in enumerate(items)
    }


def flat(order):
    return [(group,) if isinstance(group, str) else group for group in order]


def level_of(order):
    return {name: number for number, group in enumerate(flat(order)) for name in group}


def grouped(values):
    """Names by value, smallest first, as an order with ties."""
    groups = []
    for value in sorted(set(values.values())):
        names = tuple(sorted(name for name, own in values.items() if own == value))
        groups.append(names[0] if len(names) == 1 else names)
    return tuple(groups)


def test_copeland_counts_wins_minus_losses(votes):
    for rankings in votes:
        beats = margins(rankings)
        value = {a: sum(beats[b, a] - int(beats[a, b]) for b in ITEMS) for a in ITEMS}
        assert rs.ranking.copeland(rankings).order == grouped(value)


def strongest_path(strength, a, b):
    """The best of all paths without repetition, each as strong as its weakest step."""
    rest = [x for x in ITEMS if x not in {a, b}]
    paths = chain.from_iterable(permutations(rest, k) for k in range(len(rest) + 1))
    return max(
        min(strength[x, y] for x, y in zip((a, *path), (*path, b), strict=True)) for path in paths
    )


def test_schulze_by_enumerating_all_paths(votes):
    for rankings in votes:
        W, known = precedence(rankings), listed(rankings)
        strength = {
            (a, b): W[i, j] if W[i, j] > W[j, i] else 0.0
            for i, a in enumerate(ITEMS)
            for j, b in enumerate(ITEMS)
        }
        path = {(a, b): strongest_path(strength, a, b) for a, b in permutations(ITEMS, 2)}
        better = {
            b: sum(
                path[a, b] > path[b, a] or (a in known and b not in known) for a in ITEMS if a != b
            )
            for b in ITEMS
        }
        found = rs.ranking.schulze(rankings).order
        assert found == grouped(better)
        level = level_of(found)
        assert all(level[a] < level[b] for a, b in path if path[a, b] > path[b, a])


def test_smith_set_is_the_smallest_that_beats_the_rest(votes):
    subsets = [set(s) for k in range(1, 6) for s in combinations(ITEMS, k)]
    for rankings in votes:
        beats = margins(rankings)
        dominating = [s for s in subsets if all(beats[a, b] for a in s for b in set(ITEMS) - s)]
        found = rs.ranking.smith_set(rankings)
        assert found == tuple(sorted(min(dominating, key=len)))
        winner = rs.ranking.condorcet_winner(rankings)
        expected = [a for a in ITEMS if all(beats[a, b] for b in ITEMS if b != a)]
        assert [winner] == (expected or [None])
        assert set(flat(rs.ranking.copeland(rankings).order)[0]) <= set(found)
        assert set(flat(rs.ranking.schulze(rankings).order)[0]) <= set(found)
        if winner is not None:
            assert found == (winner,)
            assert (
                rs.ranking.copeland(rankings).order[0]
                == rs.ranking.schulze(rankings).order[0]
                == winner
            )


# ---- Published elections


def test_schulze_on_the_example_of_his_paper():
    """45 voters, 5 candidates (Schulze 2011, example 1): E > A > C > B > D."""
    orders = ["ACBED", "ADECB", "BEDAC", "CABED", "CAEBD", "CBADE", "DCEBA", "EBADC"]
    votes = rs.Rankings.from_orders(map(list, orders), weights=[5, 5, 8, 3, 7, 2, 7, 8])
    assert rs.ranking.schulze(votes).order == ("E", "A", "C", "B", "D")
    assert rs.ranking.condorcet_winner(votes) is None
    assert rs.ranking.smith_set(votes) == ("A", "B", "C", "D", "E")
