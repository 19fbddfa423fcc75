"""Trust in sources: coherence by enumeration, default weights, and what fills in."""

from itertools import permutations

import numpy as np
import pytest

import rankshot as rs
from rankshot.zeroshot.weighted_mean import (
    choose_source_weights,
    measure_coherence,
    weigh_sources,
)
from refusals import refuses

ITEMS = [f"c{i}" for i in range(8)]


def rankings(rows, **options):
    """Rankings from (target, source, rater, order)."""
    targets, sources, raters, orders = zip(*rows, strict=True)
    return rs.Rankings.from_orders(
        [[f"c{i}" for i in order] for order in orders],
        items=ITEMS,
        targets=targets,
        sources=sources,
        raters=raters,
        **options,
    )


PANEL = [("u", "panel", "p", "012"), ("v", "panel", "p", "456"), ("w", "panel", "q", "127")]
TABLE = [(z, "table", None, order) for z, order in zip("uvw", ("345", "670", "017"), strict=True)]


def measure_by_enumeration(listed, correlations):
    """Mantel's statistic in standard deviations over all permutations of the items."""
    together = listed.T @ listed
    values = []
    for order in permutations(range(len(correlations))):
        moved = together[np.ix_(order, order)]
        off = ~np.eye(len(moved), dtype=bool)
        values.append((moved * correlations)[off].sum())
    return (values[0] - np.mean(values)) / np.std(values)


@pytest.mark.parametrize("n", [4, 6])
def test_coherence_by_enumeration(rng, n):
    listed = rng.random((5, n)) * (rng.random((5, n)) < 0.8)
    listed[0] -= listed[0].mean()  # as of a subset ranking
    correlations = np.corrcoef(rng.normal(size=(n, 30)))
    found = measure_coherence(listed, correlations)
    assert found == pytest.approx(measure_by_enumeration(listed, correlations), rel=1e-9)


def test_coherence_may_be_unknown(rng):
    listed, correlations = rng.random((5, 20)), np.corrcoef(rng.normal(size=(20, 30)))
    assert measure_coherence(listed, np.full((20, 20), 0.3)) == np.inf
    assert measure_coherence(np.ones((5, 20)), correlations) == np.inf
    assert measure_coherence(listed[:, :3], correlations[:3, :3]) == np.inf


@pytest.mark.parametrize(
    ("rows", "coherence", "expected"),
    [
        (TABLE, {}, {"table": 1}),
        ([*PANEL, *TABLE], {}, {"panel": 1, "table": 0}),
        ([*PANEL[:2], *TABLE], {}, {"panel": 1, "table": 0}),
        ([*TABLE, *((z, "other", None, "12") for z in "uv")], {}, {"other": 0, "table": 1}),
        ([*TABLE, *((z, None, None, "12") for z in "uvw")], {}, {"": 1, "table": 1}),
        ([*PANEL, *((z, "another", "a", "12") for z in "u")], {}, {"another": 1, "panel": 1}),
        ([*PANEL, *TABLE], {"panel": -0.5, "table": 9}, {"panel": 0, "table": 1}),
        ([*PANEL, *TABLE], {"panel": 1.7, "table": 9}, {"panel": 1, "table": 0}),
        # With few classes, good lists are often no more coherent than chance.
        ([*PANEL, *TABLE], {"panel": -0.5, "table": 1}, {"panel": 1, "table": 0}),
        ([*PANEL, *TABLE], {"panel": -1.5, "table": 1}, {"panel": 0, "table": 1}),
        ([*PANEL, *TABLE], {"panel": 1, "table": np.inf}, {"panel": 1, "table": 0}),
    ],
)
def test_default_weights(rows, coherence, expected):
    votes = rankings(rows)

    def measure(part):
        return coherence[part.source_names[0]] if coherence else np.inf

    assert choose_source_weights(votes, measure) == expected


def test_a_source_without_weight_fills_in():
    votes = rankings([*PANEL[:2], *TABLE])
    used = weigh_sources(votes, {"panel": 0.5, "table": 0.0})
    assert used.targets.tolist() == ["u", "v", "w"]
    assert used.sources.tolist() == ["panel", "panel", "table"]
    assert used.weights.tolist() == [0.5, 0.5, 1.0]
    both = weigh_sources(votes, {"panel": 1.0, "table": 0.3})
    assert both.weights.tolist() == [1, 1, 0.3, 0.3, 0.3]


def test_the_default_head_trusts_raters_and_says_so(tmp_path):
    votes = rankings([*PANEL, *TABLE])
    head = rs.WeightedMean().fit(votes)
    assert head.source_weights_ == {"panel": 1.0, "table": 0.0}
    np.testing.assert_array_equal(head.weights_, rs.WeightedMean().fit(votes[:3]).weights_)
    head.save(tmp_path / "a.rankshot")
    loaded = rs.load_head(tmp_path / "a.rankshot")
    assert loaded.about["source_weights"] == head.source_weights_
    equal = rs.WeightedMean(source_weights={"panel": 1, "table": 1}).fit(votes)
    assert equal.source_weights_ == {"panel": 1.0, "table": 1.0}
    assert not np.allclose(equal.weights_, head.weights_)
    unnamed = rs.WeightedMean(source_weights={"table": 2}).fit(votes)
    np.testing.assert_allclose(unnamed.weights_, rs.WeightedMean().fit(votes[3:]).weights_)


def test_random_rankings_are_found_out_with_a_reference(rng):
    """Items on a circle: neighbours have correlated scores. A source lists other items."""
    C, L = 20, 10
    items = [f"c{i}" for i in range(C)]
    angle = 2 * np.pi * np.arange(C) / C
    where = rng.uniform(0, 2 * np.pi, 500)
    usual = 3 * np.cos(where[:, None] - angle) + rng.normal(size=(500, C))
    near = np.argsort(-np.cos(angle[None] - 2 * angle[:L, None]), axis=1)[:, :5]
    random = np.array([rng.permutation(C)[:5] for _ in range(L)])
    votes = rs.Rankings.from_orders(
        [[items[i] for i in order] for order in (*near, *random)],
        items=items,
        targets=[f"z{z}" for z in range(L)] * 2,
        sources=["near"] * L + ["random"] * L,
        raters=[None] * L + ["somebody"] * L,
    )
    assert rs.WeightedMean().fit(votes).source_weights_ == {"near": 0.0, "random": 1.0}
    assert rs.WeightedMean().fit(votes, reference=usual).source_weights_ == {
        "near": 1.0,
        "random": 0.0,
    }


@pytest.mark.parametrize(
    ("parameter", "weights", "value"),
    [
        ("source_weights", [1, 2], [1, 2]),
        ("source_weights['panel']", {"panel": -1}, -1),
        ("source_weights", {"pannel": 1}, "pannel"),
    ],
)
def test_refused(parameter, weights, value):
    with refuses(parameter, value) as caught:
        rs.WeightedMean(source_weights=weights).fit(rankings(PANEL))
    named = [repr(name) in (caught.value.hint or "") for name in sorted({row[1] for row in PANEL})]
    assert all(named) == (value == "pannel")


ONE = [("p", "one", "012"), ("q", "one", "210"), ("r", "one", "453")]


def from_people(rows, rater=None):
    return rankings([(z, source, rater, order) for z, source, order in rows])


@pytest.mark.parametrize("rater", [None, "somebody"])
@pytest.mark.parametrize("has_reference", [False, True])
def test_a_table_that_lacks_a_class_changes_nothing_in_the_default_head(rng, rater, has_reference):
    """It fills in: so no class gains or loses by what the table does not know."""
    usual = rng.normal(size=(30, len(ITEMS))) if has_reference else None
    people = from_people(ONE, rater)
    table = from_people([("q", "two", "354"), ("p", "two", "103")])
    both = rs.Rankings.concatenate([people, table])
    values = rng.normal(size=(50, len(ITEMS)))
    plain, more = (rs.WeightedMean().fit(each, reference=usual) for each in (people, both))
    np.testing.assert_array_equal(more.predict_proba(values), plain.predict_proba(values))
    assert more.source_weights_ == {"one": 1.0, "two": 0.0}
    # A class that nobody else ranks is added, and the odds of the others stay.
    extra = rs.Rankings.concatenate([people, from_people([("s", "two", "524")])])
    log_proba = rs.WeightedMean().fit(extra, reference=usual).log_proba(values)[:, :3]
    odds = log_proba - log_proba[:, :1]
    expected = plain.log_proba(values)
    np.testing.assert_allclose(odds, expected - expected[:, :1], atol=1e-12)
