"""Rankings in parts on Dask: files, sums over parts, and statistics."""

import errno
import gzip
import os
import re
import signal
import threading
import time
from itertools import pairwise
from pathlib import Path

import dask
import numpy as np
import pyarrow.parquet as pq
import pytest
from distributed import Client
from hypothesis import given, settings, strategies as st

import rankshot as rs
from command_line import run_well
from random_rankings import any_rankings
from rankshot.jobs import PartitionedRankings, partitioned_rankings, read_rankings, write_rankings
from rankshot.ranking.models.plackett_luce import Likelihood

LINES = (
    '{"ranking": ["größe", ["b", "a"], "c"], "k": 2, "target": "cat"}\n'
    "\n"
    '{"ranking": ["c", "a"], "kind": "subset", "weight": 2.5}\n'
    "   \n"
    '{"ranking": [["日本", "a"]], "rater": "p1", "source": "s", "target": "dog"}\n'
    '{"ranking": ["b"], "weight": 0}'
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("parts")


@pytest.fixture(scope="module")
def votes():
    """300 rankings with ties, cut ties, subsets, weights and two targets."""
    rng = np.random.default_rng(5)
    n = 300
    scores = rng.integers(0, 9, (n, 6)) + np.arange(6)
    every = rs.Rankings.from_scores(
        scores,
        items=list("fabced"),
        targets=rng.choice(["cat", "dog"], n),
        raters=[f"p{i % 20}" for i in range(n)],
        weights=rng.integers(0, 5, n) / 2,
    ).top(rng.integers(1, 7, n))
    subsets = rs.Rankings.from_orders(
        every.orders()[:60], items=every.items, kind="subset", targets="cat"
    )
    return rs.Rankings.concatenate([every, subsets])


def split(rankings, *cuts):
    """Cut rankings into parts at some rows."""
    edges = [0, *cuts, len(rankings)]
    parts = [rankings[a:b] for a, b in pairwise(edges)]
    return PartitionedRankings(parts, rankings.items)


# ---- Reading


@pytest.mark.parametrize("end", ["", "\n\n \n"])
def test_lines_are_read_once_whatever_the_size_of_blocks(tmp_path, end):
    path = tmp_path / "votes.jsonl"
    path.write_text(LINES + end, encoding="utf-8")
    expected = rs.read_rankings(path)
    assert len(expected) == 4
    with dask.config.set(scheduler="synchronous"):
        for part_bytes in (1, 50, 64, 65, 66, 10_000):
            assert read_rankings(path, part_bytes=part_bytes).compute() == expected


@settings(max_examples=15)
@given(rankings=any_rankings(), part_bytes=st.integers(20, 400), parts=st.integers(1, 3))
def test_files_in_parts_equal_files_in_memory(folder, rankings, part_bytes, parts):
    rows = np.array_split(np.arange(len(rankings)), parts)
    rows = [some for some in rows if len(some)]
    for ending in "jsonl", "parquet":
        paths = [folder / f"{i}.{ending}" for i in range(len(rows))]
        for path, some in zip(paths, rows, strict=True):
            rs.write_rankings(rankings[some], path)
        with dask.config.set(scheduler="synchronous"):
            found = read_rankings(paths, part_bytes=part_bytes)
            one_file = folder / f"all.{ending}"
            rs.write_rankings(rankings, one_file)
            assert found.compute() == rs.read_rankings(one_file)


@pytest.mark.parametrize(("row_group_size", "named"), [(1, True), (3, False), (100, True)])
def test_parquet_parts_are_runs_of_row_groups(tmp_path, monkeypatch, votes, row_group_size, named):
    monkeypatch.setattr(partitioned_rankings, "GROUP_ENTRIES", 60)
    votes = votes[:40]
    rs.write_rankings(votes, tmp_path / "votes.parquet")
    table = pq.read_table(tmp_path / "votes.parquet")
    table = table if named else table.replace_schema_metadata()
    pq.write_table(table, tmp_path / "votes.parquet", row_group_size=row_group_size)
    parts = read_rankings(tmp_path / "votes.parquet")
    assert parts.compute() == rs.read_rankings(tmp_path / "votes.parquet")
    assert parts.items == (votes.items if named else tuple(sorted(votes.items)))
    sizes = dask.compute(*parts.delay(lambda part: part.codes.size))
    assert sum(sizes) == votes.codes.size
    assert row_group_size == 100 or (max(sizes) <= 60 and min(sizes[:-1]) > 30)


def test_folders_patterns_lists_compressed_files_and_other_stores(tmp_path, votes):
    for i in range(12):
        rs.write_rankings(votes[i * 30 : i * 30 + 30], tmp_path / f"{i:02}.jsonl")
    packed = gzip.compress((tmp_path / "03.jsonl").read_bytes())
    (tmp_path / "03.jsonl").unlink()
    (tmp_path / "03.jsonl.gz").write_bytes(packed)
    (tmp_path / ".hidden").write_text("x")
    paths = [tmp_path / f"{i:02}.jsonl{'.gz' if i == 3 else ''}" for i in range(12)]
    for address in (tmp_path, f"file://{tmp_path}/*.jsonl*", paths):
        assert read_rankings(address, votes.items, part_bytes=500).compute() == votes
    write_rankings(split(votes, 100), "memory://votes/2026")
    assert read_rankings("memory://votes/2026/*-of-00002.parquet").compute() == votes


@pytest.mark.parametrize("line", ['{"ranking": ["x"]}', "["])
def test_errors_are_those_of_one_file_in_memory(tmp_path, line):
    path = tmp_path / "votes.jsonl"
    good = '{"ranking": ["a", "b"]}\n'
    path.write_text(good * 3 + "\n" + good + line + "\n" + good * 2)
    with pytest.raises(rs.RankshotError, match=r"votes\.jsonl:6: ") as expected:
        rs.read_rankings(path, ["a", "b"])
    for part_bytes in (1, 40, 1000):
        with pytest.raises(type(expected.value), match=re.escape(str(expected.value))):
            read_rankings(path, ["a", "b"], part_bytes=part_bytes).compute()


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "parquet"])
def test_parts_that_fit_in_memory_are_read_once(tmp_path, votes, ending):
    path = tmp_path / f"votes.{ending.removesuffix('.gz')}"
    rs.write_rankings(votes, path)
    if ending.endswith("gz"):
        path, plain = tmp_path / f"votes.{ending}", path
        path.write_bytes(gzip.compress(plain.read_bytes()))
    parts = read_rankings(path, part_bytes=1000)
    assert parts.reduce(len) == len(votes)
    path.unlink()
    assert parts.compute().with_items(votes.items) == votes


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_file_that_changes_between_passes_is_refused(tmp_path, monkeypatch, votes, ending):
    """A file that is cut at the end of a line would else have fewer rankings, and no error."""
    monkeypatch.setattr(partitioned_rankings, "find_memory", lambda client: 0)
    path = tmp_path / f"votes.{ending}"
    rs.write_rankings(votes, path)
    parts = read_rankings(path, part_bytes=1000)
    assert parts.reduce(len) == len(votes)
    rs.write_rankings(votes[:100], path)
    with pytest.raises(
        rs.RankshotError, match=rf"votes\.{ending}: was changed while it was being read"
    ):
        parts.reduce(len)


def test_nothing_to_read(tmp_path):
    with pytest.raises(rs.RankshotError, match=r"votes\.jsonl: no such file"):
        read_rankings(tmp_path / "votes.jsonl")
    (tmp_path / "votes.jsonl").write_text("\n \n")
    with pytest.raises(rs.RankshotError, match=r"votes\.jsonl: contains no rankings"):
        read_rankings(tmp_path / "votes.jsonl")
    empty = read_rankings(tmp_path / "votes.jsonl", ["a"])
    assert empty.reduce(len) is None
    (tmp_path / "none.jsonl").write_text("")
    nothing = read_rankings(tmp_path / "none.jsonl", ["a"])
    assert nothing.n_parts == 0
    for parts in empty, nothing:
        assert parts.map_rows(weights_of, 3).compute().shape == (0,)
        assert len(parts.compute()) == 0


# ---- Writing


def test_a_folder_with_other_files_is_refused(tmp_path, votes):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(rs.RankshotError, match="the folder is not empty; give a new folder"):
        write_rankings(split(votes), tmp_path)
    assert list(tmp_path.iterdir()) == [tmp_path / "notes.txt"]


def refuse_rater_seven(rankings):
    if "p7" in rankings.raters:
        raise RuntimeError("rater 7")
    return rankings


def test_a_folder_that_was_not_finished_is_refused(tmp_path, votes):
    parts = split(votes, 5).map_parts(refuse_rater_seven)
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(RuntimeError, match="rater 7"),
    ):
        write_rankings(parts, tmp_path / "stopped")
    # Which of the parts came first is up to Dask.
    missing = "1 part of 2 missing|stopped: no such file or folder"
    with pytest.raises(rs.RankshotError, match=missing):
        read_rankings(tmp_path / "stopped")
    write_rankings(split(votes, 5, 10, 15), tmp_path / "whole")
    for i in (2, 3):
        (tmp_path / "whole" / f"part-0000{i}-of-00004.parquet").unlink()
    with pytest.raises(rs.RankshotError, match="whole: 2 parts of 4 missing, the first is part 2"):
        read_rankings(tmp_path / "whole")


def test_a_full_disk_leaves_no_half_file(tmp_path, votes, monkeypatch):
    def write_half(part, stream):
        stream.write(b"PAR1")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(partitioned_rankings, "put_rankings", write_half)
    with pytest.raises(rs.RankshotError, match=r"00001-of-00001\.parquet: cannot be written: No"):
        write_rankings(split(votes), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


# ---- Sums over parts


def count_pairs(part, scale):
    first = part.codes[part.starts[:-1]]
    return np.bincount(first, part.weights, part.n_items) * scale, len(part)


@settings(max_examples=15)
@given(cuts=st.lists(st.integers(0, 360), max_size=20).map(sorted))
def test_sums_equal_those_of_all_rankings(votes, cuts):
    parts = split(votes, *cuts)
    assert parts.n_parts == len(cuts) + 1
    with dask.config.set(scheduler="synchronous"):
        counts, n = parts.reduce(count_pairs, 2)
        assert parts.reduce(len, combine=max) == max(np.diff([0, *cuts, len(votes)]))
        assert parts.compute() == votes
    assert n == len(votes)
    np.testing.assert_allclose(counts, count_pairs(votes, 2)[0], rtol=1e-12)


def weights_of(part, factor):
    return part.weights * factor


def test_parts_are_mapped_selected_and_cut(votes):
    parts = split(votes, 100, 100, 250)
    both = parts.select(target="dog", rater="p3")
    assert both.compute() == votes.select(target="dog", rater="p3")
    assert len(parts.select(target="horse").compute()) == 0
    assert parts.select(target="horse").reduce(len) is None
    assert parts.top(2).compute() == votes.top(2)
    turned = votes.items[::-1]
    other = parts.map_parts(rs.Rankings.with_items, turned, items=turned)
    assert other.items == turned
    assert other.top(2).compute() == votes.with_items(turned).top(2)
    rows = parts.map_rows(weights_of, 3)
    assert np.isnan(rows.shape[0])
    np.testing.assert_array_equal(rows.compute(), votes.weights * 3)


# ---- A cluster of processes


def count_slowly(part):
    time.sleep(0.05)
    return count_pairs(part, 1.1)


@pytest.mark.slow
def test_workers_give_the_same_answer_though_one_is_killed(workers, tmp_path, votes):
    path = tmp_path / "votes.jsonl"
    rs.write_rankings(votes, path)
    parts = read_rankings(path, part_bytes=800)
    assert parts.n_parts > 20
    with dask.config.set(scheduler="synchronous"):
        expected = parts.reduce(count_pairs, 1.1)
    with Client(workers) as client:
        victim = min(client.run(os.getpid).values())
        kill = threading.Timer(0.3, os.kill, (victim, signal.SIGKILL))
        kill.start()
        counts, n = parts.reduce(count_slowly)
        kill.join()
        # A nanny starts another one; the scheduler may not have noticed the death yet.
        deadline = time.monotonic() + 300
        while victim in (alive := set(client.run(os.getpid, on_error="ignore").values())):
            assert time.monotonic() < deadline
        client.wait_for_workers(2, timeout=300)
        assert alive
        assert n == len(votes)
        np.testing.assert_array_equal(counts, expected[0])
        assert parts.compute() == rs.read_rankings(path)


# ---- Consensus, models and agreement; tests/ranking/test_parts.py has more of them


def test_statistics_do_not_depend_on_the_parts(votes):
    rankings = votes[:300].select(target="cat")
    parts = split(rankings, 0, 1, 30, 30, 45)
    with dask.config.set(scheduler="synchronous"):
        assert rs.borda(parts).score == pytest.approx(rs.borda(rankings).score, rel=1e-8)
        model, found = rs.PlackettLuce().fit(rankings), rs.PlackettLuce().fit(parts)
        np.testing.assert_allclose(found.worths_, model.worths_, rtol=1e-8)
        expected = rs.ranking.concordance(rankings)
        assert rs.ranking.concordance(parts) == pytest.approx(expected, rel=1e-12)
        lazy, expected = found.log_prob(parts), model.log_prob(rankings)
        np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-8, atol=1e-8)


def test_a_fit_lays_out_each_part_once_if_there_is_memory(tmp_path, monkeypatch, votes):
    chosen = votes[votes.weights > 0].select(target="cat")
    rs.write_rankings(chosen, tmp_path / "votes.jsonl")
    built, lay_out = [], Likelihood.__init__

    def count(self, *arguments):
        built.append(self)
        lay_out(self, *arguments)

    monkeypatch.setattr(Likelihood, "__init__", count)

    def fit():
        parts = read_rankings(tmp_path / "votes.jsonl", votes.items, part_bytes=800)
        n_built = len(built)
        # Some parts have no ranking by this rater.
        counts = dask.compute(*parts.select(rater="p3").delay(len))
        assert None in counts
        worths = rs.PlackettLuce().fit(parts.select(rater="p3")).worths_
        return worths, (len(built) - n_built) / sum(n is not None for n in counts)

    with dask.config.set(scheduler="synchronous"):
        kept, n_layouts = fit()
        assert n_layouts == 1
        monkeypatch.setattr(partitioned_rankings, "find_memory", lambda client: 0)
        read, n_layouts = fit()
        assert n_layouts > 5
    np.testing.assert_array_equal(kept, read)
    whole = rs.PlackettLuce().fit(chosen.select(rater="p3")).worths_
    np.testing.assert_allclose(kept, whole, rtol=1e-8)


@pytest.mark.slow
def test_the_command_merges_many_files(tmp_path, monkeypatch, workers, votes):
    monkeypatch.chdir(tmp_path)
    Path("votes").mkdir()
    votes = votes[:60]
    rs.write_rankings(votes, "all.jsonl")
    for number, part in enumerate((votes[:25], votes[25:])):
        rs.write_rankings(part, f"votes/{number}.jsonl")
    whole = run_well("consensus all.jsonl -o whole.jsonl --k 3")
    address = workers.scheduler_address
    found = run_well(f"consensus votes -o found.jsonl --k 3 --scheduler {address}")
    assert "votes: 2 parts\n" in found
    assert whole.split("consensus rankings")[0] in found
    assert Path("found.jsonl").read_text() == Path("whole.jsonl").read_text()
