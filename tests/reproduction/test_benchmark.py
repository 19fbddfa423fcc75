"""The rehearsal and the real task: nothing in two places; and what a source does not know."""

from collections import Counter
from math import isnan

import numpy as np
import pytest
from reproduction.benchmark import (
    LIST_LENGTH,
    PANEL,
    fill_missing,
    find_unranked_targets,
    load_benchmark,
    rank_items,
)
from reproduction.features import ImageData

import rankshot as rs
from rankshot.core.errors import RankshotError
from rankshot.datasets import load_cifar
from rankshot.datasets.embedded import (
    SOURCES,
    class_names,
    load_held_out_panel,
    load_panel,
    load_similarities,
)

each_data_set = pytest.mark.parametrize("name", ["cifar", "animals"])
each_task = pytest.mark.parametrize("part", ["rehearsal", "real"])


def numbered(name):
    """Images of all classes of a data set whose only feature is their number."""
    seen, new = class_names(name)
    rng = np.random.default_rng(0)
    labels = [rng.permutation(np.repeat(names, n)) for names, n in ((seen, 4), (seen, 2), (new, 3))]
    ends = np.cumsum([0, *map(len, labels)])
    parts = []
    for label, start, stop in zip(labels, ends, ends[1:], strict=False):
        parts += [np.arange(start, stop, dtype=np.float32)[:, None], label]
    return ImageData(name, *parts, seen_classes=seen, new_classes=new)


@pytest.fixture(scope="module")
def benchmarks():
    return {name: load_benchmark(numbered(name)) for name in ("cifar", "animals")}


def numbers(features):
    return set(features.ravel().tolist())


# ---- The two tasks


@each_data_set
@each_task
def test_no_image_and_no_class_is_in_two_places(benchmarks, name, part):
    task = getattr(benchmarks[name], part)
    train, validation, test = map(numbers, (task.train, task.validation, task.test))
    assert not train & validation
    assert not train & test
    assert not validation & test
    assert len(train) + len(validation) + len(test) == (
        len(task.train) + len(task.validation) + len(task.test)
    )
    assert set(task.train_label) == set(task.validation_label) == set(task.items)
    assert set(task.test_label) == set(task.targets)
    assert not set(task.items) & set(task.targets)


@each_data_set
@each_task
def test_labels_stay_with_their_images(benchmarks, name, part):
    benchmark = benchmarks[name]
    data, task = benchmark.data, getattr(benchmark, part)
    truth = dict(
        zip(
            np.concatenate([data.seen_train, data.seen_validation, data.new]).ravel().tolist(),
            np.concatenate([data.seen_train_label, data.seen_validation_label, data.new_label]),
            strict=True,
        )
    )
    for images, labels in (
        (task.train, task.train_label),
        (task.validation, task.validation_label),
        (task.test, task.test_label),
    ):
        assert [truth[number] for number in images.ravel().tolist()] == labels.tolist()


@each_data_set
def test_the_real_task_is_the_data_set(benchmarks, name):
    benchmark = benchmarks[name]
    data, task = benchmark.data, benchmark.real
    assert task.name == f"{name}-all"
    assert task.train is data.seen_train
    assert task.validation is data.seen_validation
    assert task.test is data.new
    assert (task.items, task.targets) == (data.seen_classes, data.new_classes)


@each_data_set
def test_the_rehearsal_uses_every_image_of_the_seen_classes_and_no_other(benchmarks, name):
    benchmark = benchmarks[name]
    data, task = benchmark.data, benchmark.rehearsal
    assert task.name == f"{name}-others"
    everything = numbers(task.train) | numbers(task.validation) | numbers(task.test)
    assert everything == numbers(data.seen_train) | numbers(data.seen_validation)
    assert numbers(task.train) < numbers(data.seen_train)
    assert numbers(task.validation) < numbers(data.seen_validation)
    assert set(Counter(task.test_label.tolist()).values()) == {6}
    assert set(task.targets) == set(load_held_out_panel(name, "similar").target_names)
    # The items keep their order, so that columns mean the same everywhere.
    assert task.items == tuple(c for c in data.seen_classes if c not in task.targets)
    assert (len(task.items), len(task.targets)) == ((80, 20) if name == "cifar" else (30, 10))


@each_data_set
@each_task
def test_sources_and_panel_are_of_targets_and_items(benchmarks, name, part):
    task = getattr(benchmarks[name], part)
    whole = load_similarities(name)
    assert tuple(task.sources) == SOURCES
    for source, table in task.sources.items():
        assert (table.targets, table.items) == (task.targets, task.items)
        for target, item in ((task.targets[0], task.items[7]), (task.targets[3], task.items[-1])):
            np.testing.assert_equal(table[target, item], whole[source][target, item])
    assert set(task.panel.target_names) == set(task.targets)
    assert task.panel.items == task.items
    assert len(task.panel) == 8 * len(task.targets)


def test_the_panels_are_those_of_the_data_set(benchmarks):
    for name, benchmark in benchmarks.items():
        assert benchmark.name == name
        assert benchmark.real.panel.orders() == load_panel(name, "similar").orders()
        assert benchmark.rehearsal.panel.orders() == load_held_out_panel(name, "similar").orders()
        assert set(benchmark.vectors.names) == set(
            benchmark.data.seen_classes + benchmark.data.new_classes
        )


def test_the_embedded_images_are_split_without_overlap():
    benchmark = load_benchmark(load_cifar())
    for task, sizes in ((benchmark.real, (8000, 3000, 4000)), (benchmark.rehearsal, None)):
        train, validation, test = (
            {row.tobytes() for row in part} for part in (task.train, task.validation, task.test)
        )
        assert not train & test
        assert not validation & test
        if sizes:
            assert (len(task.train), len(task.validation), len(task.test)) == sizes
    rehearsal = benchmark.rehearsal
    assert len(rehearsal.train) + len(rehearsal.validation) + len(rehearsal.test) == 11_000


# ---- What a source knows

NAN = np.nan
TABLE = rs.Similarity(
    [
        [0.9, 0.2, 0.5, 0.2],
        [NAN, NAN, NAN, NAN],
        [0.4, NAN, 0.1, 0.6],
        [0.3, 0.3, 0.3, 0.3],
        [0.1, 0.1, NAN, 0.1],
    ],
    ["cat", "unheard", "holey", "flat", "least"],
    ["a", "b", "c", "d"],
    "me",
)


def test_unranked_targets_have_the_same_similarity_to_all_items():
    """Missing values count as the minimum of the table, so a row of minima is unranked, too."""
    assert find_unranked_targets(TABLE) == ("unheard", "flat", "least")
    assert find_unranked_targets(TABLE.select(["cat", "holey"], TABLE.items)) == ()


def test_missing_values_become_the_minimum_of_the_table():
    found = fill_missing(TABLE)
    least = min(v for row in TABLE.values.tolist() for v in row if not isnan(v))
    expected = [[least if isnan(v) else v for v in row] for row in TABLE.values.tolist()]
    assert found.values.tolist() == expected
    assert (found.targets, found.items, found.source) == (TABLE.targets, TABLE.items, "me")
    whole = TABLE.select(["cat"], TABLE.items)
    np.testing.assert_array_equal(fill_missing(whole).values, whole.values)


def test_the_minimum_may_be_negative():
    table = rs.Similarity([[-0.5, NAN, 0.2]], ["cat"], ["a", "b", "c"])
    assert fill_missing(table).values.tolist() == [[-0.5, -0.5, 0.2]]


def test_only_targets_with_different_similarities_are_ranked():
    found = rank_items(TABLE)
    assert found.targets.tolist() == ["cat", "holey"]
    assert found.orders() == [["a", "c", ["b", "d"]], ["d", "a", ["b", "c"]]]
    assert not found.is_subset.any()
    assert set(found.sources) == {"me"}


def test_a_source_that_ranks_no_target_is_refused():
    for flat in (NAN, 0.5):
        table = rs.Similarity(np.full((2, 3), flat), ["cat", "dog"], ["a", "b", "c"], "nobody")
        assert find_unranked_targets(table) == ("cat", "dog")
        with pytest.raises(RankshotError, match="nobody ranks the items of no target"):
            rank_items(table)


def by_hand(row, k):
    """(items, best first, ties together; whether k cuts the last tie)."""
    groups, placed = [], 0
    for value in sorted(set(row), reverse=True):
        if placed >= k:
            break
        groups.append({i for i, v in enumerate(row) if v == value})
        placed += len(groups[-1])
    return groups


@each_data_set
@each_task
@pytest.mark.parametrize("source", ["WordNet", "Wikipedia"])
def test_the_ranking_of_a_source_by_hand(benchmarks, name, part, source):
    task = getattr(benchmarks[name], part)
    table = task.sources[source]
    values = table.values.tolist()
    ranked = {
        z: row
        for z, row in zip(table.targets, values, strict=True)
        if len({v for v in row if not isnan(v)}) > 1
    }
    least = min(v for row in ranked.values() for v in row if not isnan(v))
    found = rank_items(table)
    assert found.targets.tolist() == list(ranked)
    assert found.items == task.items
    assert set(found.lengths) == {LIST_LENGTH}
    for z, order in zip(found.targets, found.orders(), strict=True):
        groups = [{group} if isinstance(group, str) else set(group) for group in order]
        row = [least if isnan(v) else v for v in ranked[z]]
        assert groups == [{task.items[i] for i in group} for group in by_hand(row, LIST_LENGTH)]


@each_data_set
@each_task
def test_rankings_are_of_the_panel_or_of_a_source(benchmarks, name, part):
    task = getattr(benchmarks[name], part)
    assert task.rankings(PANEL) is task.panel
    assert task.rankings("GloVe").orders() == rank_items(task.sources["GloVe"]).orders()
    with pytest.raises(KeyError):
        task.rankings("Glove")


def test_some_sources_of_the_animals_lack_targets(benchmarks):
    missing = {
        name: len(find_unranked_targets(t))
        for name, t in benchmarks["animals"].real.sources.items()
    }
    assert {name: n for name, n in missing.items() if n} == {"Wikipedia": 4, "word2vec": 4}
    assert not any(
        find_unranked_targets(table) for table in benchmarks["cifar"].real.sources.values()
    )
