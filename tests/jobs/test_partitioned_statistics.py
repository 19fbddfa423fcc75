"""Consensus, models and agreement of rankings in parts: the answers in memory, to 1e-8."""

from itertools import pairwise
from pathlib import Path

import dask
import numpy as np
import pytest

import rankshot as rs
from command_line import rankshot, run_well
from rankshot.jobs import PartitionedRankings, read_rankings, write_rankings

KINDS = ["full", "top", "ties", "cut ties", "subsets"]


def draw(kind, n=60, C=6):
    """Random rankings of a kind, with weights and raters."""
    rng = np.random.default_rng(KINDS.index(kind))
    scores = rng.random((n, C)) + np.arange(C) / 5
    if kind in {"ties", "cut ties"}:
        scores = np.rint(2 * scores)
    lengths = np.full(n, C) if kind in {"full", "ties"} else rng.integers(2, C + 1, n)
    drawn = rs.Rankings.from_scores(scores, items=list("fabecd")).top(lengths)
    again = rs.Rankings.from_orders(
        drawn.orders(),
        items=drawn.items,
        weights=rng.choice([0, 0.3, 1, 2.5], n),
        raters=rng.choice(["ann", "bob", "cy"], n).tolist(),
        kind="subset" if kind == "subsets" else "top",
    )
    return again.top(lengths)


def compare(rankings, parts):
    """Hold every statistic of parts to that of the rankings."""
    assert rs.borda(parts).order == rs.borda(rankings).order
    assert rs.borda(parts).score == pytest.approx(rs.borda(rankings).score, rel=1e-8)
    assert rs.kemeny(parts).score == pytest.approx(rs.kemeny(rankings).score, rel=1e-8)
    model, found = rs.PlackettLuce().fit(rankings), rs.PlackettLuce().fit(parts)
    np.testing.assert_allclose(found.worths_, model.worths_, rtol=1e-8)
    assert found.log_likelihood_ == pytest.approx(model.log_likelihood_, rel=1e-8)
    np.testing.assert_allclose(
        found.log_prob(parts).compute(), model.log_prob(rankings), rtol=0, atol=1e-8
    )
    (brief,), (expected,) = rs.summarize(parts), rs.summarize(rankings)
    assert (brief.order, brief.n_rankings) == (expected.order, expected.n_rankings)
    assert dict(brief.disagreement) == pytest.approx(dict(expected.disagreement), rel=1e-8)
    if rankings.is_subset.any():
        return
    model, found = rs.Mallows().fit(rankings), rs.Mallows().fit(parts)
    assert found.center_ == model.center_
    assert found.spread_ == pytest.approx(model.spread_, rel=1e-8)
    np.testing.assert_allclose(
        found.log_prob(parts).compute(), model.log_prob(rankings), rtol=0, atol=1e-8
    )
    agreement, expected = rs.agreement(parts), rs.agreement(rankings)
    assert agreement.concordance == pytest.approx(expected.concordance, rel=1e-8)
    assert agreement.mean_kendall_distance == pytest.approx(
        expected.mean_kendall_distance, rel=1e-8
    )
    np.testing.assert_allclose(
        agreement.distance_to_others.compute(), expected.distance_to_others, rtol=1e-8
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cuts", [[0, 1, 30, 30], list(range(4, 60, 4))])
def test_statistics_do_not_depend_on_the_parts(kind, cuts):
    rankings = draw(kind)
    edges = [0, *cuts, len(rankings)]
    parts = [rankings[a:b] for a, b in pairwise(edges)]
    with dask.config.set(scheduler="synchronous"):
        compare(rankings, PartitionedRankings(parts, rankings.items))


@pytest.mark.slow
def test_statistics_of_files_on_a_cluster(default_client, tmp_path):
    rankings = draw("cut ties")
    rs.write_rankings(rankings, tmp_path / "votes.jsonl")
    lines = read_rankings(tmp_path / "votes.jsonl", rankings.items, part_bytes=1000)
    assert lines.n_parts > 2
    compare(rankings, lines.persist())
    write_rankings(lines, tmp_path / "votes")
    model = rs.PlackettLuce().fit(read_rankings(tmp_path / "votes"))
    np.testing.assert_allclose(model.worths_, rs.PlackettLuce().fit(rankings).worths_, rtol=1e-8)


def test_the_command_merges_many_files(tmp_path, monkeypatch, workers):
    monkeypatch.chdir(tmp_path)
    Path("votes").mkdir()
    given = draw("top")
    targets = np.random.default_rng(0).choice(["cat", "dog"], len(given)).tolist()
    votes = rs.Rankings.from_orders(given.orders(), items=given.items, targets=targets)
    rs.write_rankings(votes, "all.jsonl")
    for number, part in enumerate((votes[:25], votes[25:])):
        rs.write_rankings(part, f"votes/{number}.jsonl")
    whole = run_well("consensus all.jsonl -o whole.jsonl --k 3")
    address = workers.scheduler_address
    found = run_well(f"consensus votes -o found.jsonl --k 3 --scheduler {address}")
    assert "votes: 2 parts\n" in found
    assert whole.split("consensus rankings")[0] in found
    assert Path("found.jsonl").read_text() == Path("whole.jsonl").read_text()
    done = rankshot(f"consensus votes/*.csv --scheduler {address}")
    assert done.status == 2
    assert "votes/*.csv: there are no files; parts end in .jsonl" in done.err
