"""Rankings in parts on Dask: files, and sums over parts."""

import errno
import gzip
import json
import os
import pickle
import re
import signal
import threading
import time
from functools import partial
from itertools import pairwise

import dask
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

import rankshot as rs
from random_rankings import any_rankings
from rankshot.core.errors import UnknownItemError
from rankshot.jobs import PartitionedRankings, partitioned_rankings, read_rankings, write_rankings
from rankshot.ranking.parts import reduce_parts

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


@pytest.mark.parametrize("part_bytes", [1, 7, 50, 64, 65, 66, 120, 10_000])
@pytest.mark.parametrize("end", ["", "\n", "\n\n \n"])
def test_lines_are_read_once_whatever_the_size_of_blocks(tmp_path, part_bytes, end):
    path = tmp_path / "votes.jsonl"
    path.write_text(LINES + end, encoding="utf-8")
    expected = rs.read_rankings(path)
    assert len(expected) == 4
    assert read_rankings(path, part_bytes=part_bytes).compute() == expected
    items = ["x", *expected.items[::-1]]
    again = read_rankings(str(path), items, part_bytes=part_bytes)
    assert again.compute() == rs.read_rankings(path, items)


@settings(max_examples=25)
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


@pytest.mark.parametrize("row_group_size", [1, 3, 100])
@pytest.mark.parametrize("named", [True, False])
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


def test_files_that_name_different_items_have_all_of_them(tmp_path):
    rs.write_rankings(rs.Rankings.from_orders([["b"]], items=["b", "a"]), tmp_path / "1.parquet")
    rs.write_rankings(rs.Rankings.from_orders([["c"]], items=["c", "a"]), tmp_path / "2.parquet")
    (tmp_path / "3.jsonl").write_text('{"ranking": ["d", "b"]}')
    with pytest.raises(rs.RankshotError, match=r"choose one kind, as in .*/\*\.parquet"):
        read_rankings(tmp_path)
    found = read_rankings([tmp_path / "*.parquet", tmp_path / "3.jsonl"])
    assert found.items == ("a", "b", "c", "d")
    assert found.compute().orders() == [["b"], ["c"], ["d", "b"]]


def test_folders_patterns_lists_and_compressed_files(tmp_path, votes):
    for i in range(12):
        rs.write_rankings(votes[i * 30 : i * 30 + 30], tmp_path / f"{i:02}.jsonl")
    packed = gzip.compress((tmp_path / "03.jsonl").read_bytes())
    (tmp_path / "03.jsonl").unlink()
    (tmp_path / "03.jsonl.gz").write_bytes(packed)
    (tmp_path / ".hidden").write_text("x")
    (tmp_path / "_SUCCESS").write_text("")
    paths = [tmp_path / f"{i:02}.jsonl{'.gz' if i == 3 else ''}" for i in range(12)]
    for address in (tmp_path, f"{tmp_path}/*.jsonl*", f"file://{tmp_path}/*.jsonl*", paths):
        assert read_rankings(address, votes.items, part_bytes=500).compute() == votes
    assert read_rankings(tmp_path / "[0-1]?.jsonl", votes.items).n_parts == 11


def test_addresses_of_other_file_systems(votes):
    parts = split(votes, 100)
    write_rankings(parts, "memory://votes/2026")
    assert read_rankings("memory://votes/2026").compute() == votes
    assert read_rankings("memory://votes/2026/*-of-00002.parquet").compute() == votes


@pytest.mark.parametrize("part_bytes", [1, 40, 1000])
@pytest.mark.parametrize(
    "line",
    [
        '{"ranking": ["a", "a"]}',
        '{"ranking": ["x"]}',
        '{"ranking": []}',
        "[",
        '{"ranking": ["a"], "wieght": 2}',
        '{"ranking": ["a"], "weight": -1}',
        '{"ranking": ["a"], "k": 2}',
    ],
)
def test_errors_are_those_of_one_file_in_memory(tmp_path, part_bytes, line):
    path = tmp_path / "votes.jsonl"
    good = '{"ranking": ["a", "b"]}\n'
    path.write_text(good * 3 + "\n" + good + line + "\n" + good * 2)
    with pytest.raises(rs.RankshotError, match=r"votes\.jsonl:6: ") as expected:
        rs.read_rankings(path, ["a", "b"])
    parts = read_rankings(path, ["a", "b"], part_bytes=part_bytes)
    with pytest.raises(type(expected.value), match=re.escape(str(expected.value))):
        parts.compute()


def test_errors_of_parquet_name_the_row_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(partitioned_rankings, "GROUP_ENTRIES", 4)
    table = pa.table({"ranking": [["a"]] * 7 + [["x"]]})
    pq.write_table(table, tmp_path / "votes.parquet", row_group_size=2)
    parts = read_rankings(tmp_path / "votes.parquet", ["a"])
    assert parts.n_parts == 2
    with pytest.raises(rs.RankshotError, match=r"votes\.parquet: row 7: unknown item 'x'"):
        parts.compute()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("votes.soc", "PrefLib's files are not read in parts; convert them"),
        ("votes.csv", "no part among 1 file (1 with .csv); parts end in .jsonl, .ndjson"),
        ("votes.parquet.gz", "no part among 1 file"),
        ("*.json", "there are no files"),
    ],
)
def test_other_files_are_refused_by_name(tmp_path, name, message):
    (tmp_path / name.replace("*", "x")).write_text("x")
    (tmp_path / "x.json").unlink(missing_ok=True)
    with pytest.raises(rs.RankshotError, match=re.escape(f"{name}: {message}")):
        read_rankings(tmp_path / name)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_file_that_changes_between_passes_is_refused(tmp_path, votes, ending):
    """A file that is cut at the end of a line would else have fewer rankings, and no error."""
    path = tmp_path / f"votes.{ending}"
    rs.write_rankings(votes, path)
    parts = read_rankings(path, part_bytes=1000)
    assert parts.reduce(len) == len(votes)
    rs.write_rankings(votes[:100], path)
    with pytest.raises(rs.RankshotError, match=rf"votes\.{ending}: was changed while it was read"):
        parts.reduce(len)


def test_a_part_that_is_cut_off_names_itself(tmp_path, votes):
    write_rankings(split(votes, 100, 200), tmp_path / "out")
    path = tmp_path / "out" / "part-00002-of-00003.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(rs.RankshotError, match=r"00002-of-00003\.parquet: not a complete Parquet"):
        read_rankings(tmp_path / "out")


def test_nothing_to_read(tmp_path):
    with pytest.raises(rs.RankshotError, match=r"votes\.jsonl: there is no such file"):
        read_rankings(tmp_path / "votes.jsonl")
    (tmp_path / "votes.jsonl").write_text("\n \n")
    with pytest.raises(rs.RankshotError, match=r"votes\.jsonl: no rankings in it"):
        read_rankings(tmp_path / "votes.jsonl")
    empty = read_rankings(tmp_path / "votes.jsonl", ["a"])
    assert empty.reduce(len) is None
    assert len(empty.compute()) == 0
    assert reduce_parts(empty, len) == 0
    (tmp_path / "none.jsonl").write_text("")
    nothing = read_rankings(tmp_path / "none.jsonl", ["a"])
    assert nothing.n_parts == 0
    for parts in empty, nothing, nothing.persist():
        assert parts.map_rows(weights_of, 3).compute().shape == (0,)
        assert len(parts.compute()) == 0
    with pytest.raises(rs.RankshotError, match="part_bytes must be a whole number"):
        read_rankings(tmp_path / "votes.jsonl", part_bytes=0)


# ---- Writing


def test_writing_and_reading_gives_the_same_parts(tmp_path, votes):
    parts = split(votes, 10, 10, 200).top(3)
    write_rankings(parts, tmp_path / "out")
    names = [f"part-0000{i}-of-00004.parquet" for i in (1, 2, 3, 4)]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    again = read_rankings(tmp_path / "out")
    assert again.compute() == votes.top(3)
    assert again.items == votes.items


def test_a_folder_with_other_files_is_refused(tmp_path, votes):
    (tmp_path / "notes.txt").write_text("mine")
    for folder in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(rs.RankshotError, match="there are files already; name a new folder"):
            write_rankings(split(votes), folder)
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
    with pytest.raises(rs.RankshotError, match=r"1 part of 2 missing|there (is|are) no"):
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


def test_rankings_in_memory_are_written_elsewhere(tmp_path, votes):
    with pytest.raises(rs.RankshotError, match=r"rankshot\.write_rankings writes rankings that"):
        write_rankings(votes, tmp_path / "out")


# ---- Sums over parts


def count_pairs(part, scale):
    first = part.codes[part.starts[:-1]]
    return np.bincount(first, part.weights, part.n_items) * scale, len(part)


@settings(max_examples=30)
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
    assert repr(parts) == "PartitionedRankings: 4 parts of rankings of 6 items"
    assert parts.select(target="dog").compute() == votes.select(target="dog")
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


def test_parts_of_other_items_are_refused(votes):
    parts = PartitionedRankings([votes], [*votes.items, "z"])
    with pytest.raises(rs.RankshotError, match="not over 'z'"):
        parts.compute()
    turned = PartitionedRankings([votes], votes.items[::-1])
    assert turned.compute() == votes.with_items(votes.items[::-1])


def test_an_argument_is_in_the_graph_once(votes):
    table = np.zeros((500, 500))
    tasks = split(votes, *range(10, 300, 10)).delay(weights_of, table)
    graph = dask.base.collections_to_expr(tasks).__dask_graph__()
    assert len(tasks) == 30
    assert len(pickle.dumps(dict(graph))) < table.nbytes + 200_000


def count_reads(log, rankings, items):
    with log.open("a") as stream:
        stream.write("x")
    return rankings.with_items(items)


def test_persisted_parts_are_read_once(tmp_path, votes):
    log = tmp_path / "log"
    parts = PartitionedRankings([partial(count_reads, log, votes)] * 3, votes.items)
    assert parts.reduce(len) == parts.reduce(len) == 3 * len(votes)
    assert log.read_text() == "x" * 6
    kept = parts.top(2).persist()
    assert log.read_text() == "x" * 9
    assert kept.reduce(len) == 3 * len(votes)
    assert kept.compute()[: len(votes)] == votes.top(2)
    assert log.read_text() == "x" * 9


# ---- A cluster of processes


def count_slowly(part):
    time.sleep(0.05)
    return count_pairs(part, 1.1)


def test_workers_give_the_same_answer_though_one_is_killed(default_client, tmp_path, votes):
    path = tmp_path / "votes.jsonl"
    rs.write_rankings(votes, path)
    parts = read_rankings(path, part_bytes=800)
    assert parts.n_parts > 20
    with dask.config.set(scheduler="synchronous"):
        expected = parts.reduce(count_pairs, 1.1)
    victim = min(default_client.run(os.getpid).values())
    kill = threading.Timer(0.3, os.kill, (victim, signal.SIGKILL))
    kill.start()
    counts, n = parts.reduce(count_slowly)
    kill.join()
    default_client.wait_for_workers(2, timeout=30)
    assert victim not in default_client.run(os.getpid).values()
    assert n == len(votes)
    np.testing.assert_array_equal(counts, expected[0])
    assert parts.persist().compute() == rs.read_rankings(path)


def test_errors_of_workers_are_ours(default_client, tmp_path):
    path = tmp_path / "votes.jsonl"
    path.write_text("".join(json.dumps({"ranking": [name]}) + "\n" for name in "ababx"))
    parts = read_rankings(path, ["a", "b"], part_bytes=40)
    with pytest.raises(UnknownItemError, match=r"votes\.jsonl:5: unknown item 'x'"):
        parts.reduce(len)
