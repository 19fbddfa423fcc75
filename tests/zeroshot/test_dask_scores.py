"""Dask arrays and data frames as scores: lazy, one block at a time, the same as in memory."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from head_cases import ITEMS, few_cases, fitted, random_scores

import rankshot as rs

METHODS = ("predict_log_proba", "predict_proba", "decision_function", "predict")
BLOCKS = (3, 1, 4)
"""The lengths of the blocks."""


def in_blocks(values, columns=-1):
    return da.from_array(values, chunks=(BLOCKS, columns))


def by_block(values, method):
    """What a method returns for each block in memory."""
    ends = np.cumsum(BLOCKS)
    return np.concatenate(
        [method(values[end - n : end]) for n, end in zip(BLOCKS, ends, strict=True)]
    )


@few_cases
def test_few_heads_gives_the_same_to_the_last_bit(rng, name, kind):
    scores, head = random_scores(rng, kind, n=sum(BLOCKS)), fitted(name)
    lazy = rs.Scores(in_blocks(scores.values), ITEMS, kind)
    for method in METHODS:
        found = getattr(head, method)(lazy)
        wanted = by_block(scores, getattr(head, method))
        assert isinstance(found, da.Array)
        assert found.chunks[0] == BLOCKS
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_array_equal(found.compute(), wanted)


def test_pairs_are_recognised_and_split_columns_joined(rng):
    head = fitted("weighted")
    for kind in ("multiclass", "one-vs-one"):
        values = random_scores(rng, kind, n=sum(BLOCKS)).values
        found = head.predict_log_proba(in_blocks(values, columns=2))
        assert found.chunks == (BLOCKS, (len(head.classes_),))
        np.testing.assert_array_equal(found.compute(), by_block(values, head.predict_log_proba))


def test_the_most_probable_classes_are_lazy(rng):
    values, head = random_scores(rng, "multiclass", n=sum(BLOCKS)).values, fitted("weighted")
    found, wanted = head.top(in_blocks(values), 2), head.top(values, 2)
    labels, proba = dask.compute(*found)
    np.testing.assert_array_equal(labels, wanted.labels)
    np.testing.assert_allclose(proba, wanted.proba, rtol=1e-14)
    with pytest.raises(rs.RankshotError, match="k must be"):
        head.top(in_blocks(values), 99)


# -------------------------------------------------------------------- laziness and graphs


def test_nothing_is_computed_before_it_is_asked_for(rng):
    """One block at a time, each block once; and none while the graph is built."""
    computed = []

    def read(block_id):
        computed.append(block_id[0])
        return rng.normal(size=(2, len(ITEMS)))

    lazy = da.map_blocks(read, chunks=((2,) * 4, len(ITEMS)), dtype=float, meta=np.empty((0, 0)))
    head = fitted("weighted")
    results = [getattr(head, method)(lazy) for method in METHODS]
    results += head.top(lazy, 2)
    rs.Scores.from_probabilities(lazy, ITEMS)
    assert computed == []
    head.predict(lazy).blocks[2].compute()
    assert computed == [2]
    computed.clear()
    dask.compute(*results)
    assert sorted(computed) == [0, 1, 2, 3]


def test_the_head_is_in_the_graph_once(rng):
    """And log-probabilities that two results need are one set of tasks."""
    values, head = rng.normal(size=(50, len(ITEMS))), fitted("default")
    proba = head.predict_proba(da.from_array(values, chunks=(1, -1)))
    heads = [
        task
        for task in dict(proba.__dask_graph__()).values()
        if any(isinstance(part, rs.ProbabilisticRanking) for part in held_by(task))
    ]
    assert len(heads) == 1
    again = head.predict_log_proba(da.from_array(values, chunks=(1, -1)))
    assert set(again.__dask_graph__()) <= set(proba.__dask_graph__())


def held_by(task):
    """The values inside a task."""
    value = getattr(task, "value", None)
    args = (value, *getattr(task, "args", ()), *getattr(task, "kwargs", {}).values())
    return [part for arg in args for part in (arg if isinstance(arg, tuple) else (arg,))]


# -------------------------------------------------------------------- data frames


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_columns_of_data_frames_are_matched_by_name(rng, dtype):
    order = [3, 1, 4, 0, 2]
    values = (10 * rng.normal(size=(9, len(ITEMS)))).astype(dtype)
    frame = pd.DataFrame(values[:, order], columns=[ITEMS[i] for i in order])
    lazy = dd.from_pandas(frame.assign(id="x"), npartitions=3)
    head = fitted("weighted")
    for method in METHODS:
        found = getattr(head, method)(lazy)
        # The last digit of a row may depend on the other rows of its block.
        wanted = np.concatenate([getattr(head, method)(frame[i : i + 3]) for i in (0, 3, 6)])
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found.compute(), wanted)


# -------------------------------------------------------------------- Scores of Dask


@pytest.mark.parametrize("kind", ["multiclass", "one-vs-rest"])
def test_probabilities_become_scores_lazily(rng, kind):
    proba = rng.dirichlet(np.ones(len(ITEMS)), sum(BLOCKS)).astype(np.float32)
    lazy = rs.Scores.from_probabilities(in_blocks(proba), ITEMS, kind)
    wanted = rs.Scores.from_probabilities(proba, ITEMS, kind).values
    assert lazy.values.dtype == wanted.dtype
    np.testing.assert_array_equal(lazy.values.compute(), wanted)


# -------------------------------------------------------------------- what is refused


def test_bad_values_name_their_block_and_row(rng):
    values = rng.normal(size=(sum(BLOCKS), len(ITEMS)))
    values[6, 1] = np.nan
    lazy = fitted("weighted").predict_proba(in_blocks(values))
    with pytest.raises(rs.RankshotError, match="block 2, row 2, column 'b': the score is nan"):
        lazy.compute()
    proba = np.full(values.shape, 1 / len(ITEMS))
    proba[3] = 0.5
    bad = rs.Scores.from_probabilities(in_blocks(proba), ITEMS)
    with pytest.raises(rs.RankshotError, match="block 1, row 0: multiclass probabilities must"):
        bad.values.compute()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (da.zeros((4, 7)), r"need a table of 5 columns, not one of shape \(4, 7\)"),
        (da.zeros(5), "a Dask array or data frame is needed"),
        (da.zeros((4, 5), dtype=complex), "scores must be a table of numbers: Cannot cast"),
    ],
)
def test_other_tables_are_refused_at_once(wrong, message):
    with pytest.raises(rs.RankshotError, match=message):
        fitted("weighted").predict_log_proba(wrong)


@pytest.mark.slow
def test_a_process_of_a_cluster_gives_the_same(rng):
    from distributed import Client, LocalCluster

    values, head = rng.normal(size=(sum(BLOCKS), len(ITEMS))), fitted("default")
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(processes=True, **options) as cluster, Client(cluster) as client:
        found = client.compute(head.predict_proba(in_blocks(values))).result()
        np.testing.assert_array_equal(found, by_block(values, head.predict_proba))
        values[4, 0] = np.inf
        lazy = client.compute(head.predict(in_blocks(values)))
        with pytest.raises(rs.RankshotError, match="block 2, row 0, column 'a'"):
            lazy.result()
