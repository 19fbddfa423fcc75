"""Reading and writing rankings: JSON lines and PrefLib."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from random_rankings import any_rankings, orders_over, text
from rankshot import Rankings, RankshotError, read_rankings, write_rankings
from rankshot.ranking.ranking_files import read_source
from refusals import refuses

ABC = ["a", "b", "c"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all examples of a property."""
    return tmp_path_factory.mktemp("files")


@pytest.fixture
def read(tmp_path):
    """Write text or bytes to a file and read rankings from it."""

    def read(content, name="votes.jsonl", items=None, **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_rankings(path, items, **options)

    return read


def groups_of(order):
    return [list(entry) if isinstance(entry, list) else [entry] for entry in order]


# ---- JSON lines


def test_jsonl_has_fields_that_are_not_as_usual(read, tmp_path):
    text = (
        '{"target": "cat", "ranking": ["b", ["a", "ü"]], "k": 2}\n'
        '{"ranking": ["a", "7"], "kind": "subset", "source": "web", "rater": "e\\"ve"}\n'
        '{"ranking": ["b"], "weight": 2}\n{"ranking": ["a"], "weight": 0.5}\n'
    )
    value = Rankings.from_orders(
        [["b", ["a", "ü"]], ["a", 7], ["b"], ["a"]],
        items=["7", "a", "b", "ü"],
        targets=["cat", None, None, None],
        sources=[None, "web", None, None],
        raters=[None, 'e"ve', None, None],
        weights=[1, 1, 2, 0.5],
        kind=["top", "subset", "top", "top"],
    ).top(np.array([2, 4, 4, 4]))
    write_rankings(value, tmp_path / "written.jsonl")
    assert (tmp_path / "written.jsonl").read_bytes().decode() == text
    by_hand = text.replace('"7"', "7").replace(
        '"weight": 2', '"weight": 2, "target": null, "x": [1]'
    )
    assert read(by_hand) == value


@settings(max_examples=20)
@given(rankings=any_rankings())
def test_json_lines_give_back_all(folder, rankings):
    write_rankings(rankings, folder / "one.jsonl")
    assert read_rankings(folder / "one.jsonl", rankings.items) == rankings


# ---- Several portions


def lines_of(rankings):
    return "".join(json.dumps({"ranking": ranking}) + "\n" for ranking in rankings)


@pytest.mark.parametrize("size", [1, 3, 8])
@pytest.mark.parametrize("items", [None, ["d", "c", "b", "a"]])
def test_a_file_of_several_portions_is_one_value(read, monkeypatch, size, items):
    monkeypatch.setattr("rankshot.ranking.ranking_files.ROWS_AT_ONCE", size)
    orders = [["c", "a"], ["b"], [["a", "d"], "b"], ["d"], ["a"], ["a", "b"], ["c"]]
    content, expected = lines_of(orders), Rankings.from_orders(orders, items=items or list("abcd"))
    for lines in (content, content.replace("\n", "\n\n\n\n")):
        assert read(lines, items=items) == expected


@pytest.mark.parametrize(
    ("bad", "parameter", "value"), [("{", "line", "{"), ('{"ranking": ["c"]}', "item", "c")]
)
@pytest.mark.parametrize("size", [2, 100])
def test_errors_in_a_later_portion_name_their_line(
    read, tmp_path, monkeypatch, size, bad, parameter, value
):
    monkeypatch.setattr("rankshot.ranking.ranking_files.ROWS_AT_ONCE", size)
    content = lines_of([["a"]] * 2) + "\n" + lines_of([["a", "b"]] * 3) + bad + "\n"
    with refuses(parameter, value, f"{tmp_path / 'votes.jsonl'}:7"):
        read(content + lines_of([["b"]]), items=["a", "b"])


# ---- Hostile files


VALID = {
    ".jsonl": (
        '{"target": "cat", "ranking": ["a", ["b", "ü"]], "weight": 2, "kind": "subset"}\n'
        '\n{"ranking": [["b", 1]], "k": 1, "source": "s", "rater": "r"}\n'
    ).encode(),
    ".toi": (
        "# FILE NAME: x.toi\n# NUMBER ALTERNATIVES: 3\n# ALTERNATIVE NAME 1: a\n"
        "# ALTERNATIVE NAME 2: b\n# ALTERNATIVE NAME 3: ü\n10: 1,{2,3}\n2: 2\n"
    ).encode(),
}


@pytest.mark.parametrize("ending", VALID)
@settings(max_examples=66, deadline=None)
@given(data=st.data())
def test_damaged_files_are_read_or_refused(folder, ending, data):
    content = VALID[ending]
    pieces = [content[i : i + n] for i in range(len(content)) for n in (1, 3)]
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = min(len(content), start + data.draw(st.integers(0, 12)))
        new = data.draw(st.binary(max_size=3) | st.sampled_from(pieces))
        content = content[:start] + new + content[end:]
    items = data.draw(st.sampled_from([None, ["a", "b", "ü", "1"]]))
    path = folder / f"damaged{ending}"
    path.write_bytes(content)
    try:
        assert len(read_rankings(path, items)) > 0
    except RankshotError as error:
        assert str(path) in str(error)  # noqa: PT017 - reading it is as good as refusing it


# ---- PrefLib


@st.composite
def countable(draw, *, ties, complete):
    """Rankings with whole weights, as PrefLib can hold them, and those weights by order."""
    stripped = text.map(str.strip).filter(lambda name: name and not set(name) & set("\n\r"))
    items = draw(st.lists(stripped, min_size=1, max_size=5, unique=True))
    orders = draw(
        st.lists(orders_over(items, ties=ties, complete=complete), min_size=1, max_size=6)
    )
    counts = [draw(st.integers(0, 10**6)) for _ in orders]
    by_order = Counter()
    for order, count in zip(orders, counts, strict=True):
        by_order[tuple(frozenset(group) for group in groups_of(order))] += count
    return Rankings.from_orders(orders, items=items, weights=counts, targets="t"), by_order


@pytest.mark.parametrize("ending", [".soc", ".soi", ".toc", ".toi"])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_preflib_gives_back_orders_and_counts(folder, ending, data):
    rankings, by_order = data.draw(countable(ties=ending[1] == "t", complete=ending[3] == "c"))
    path = folder / f"votes{ending}"
    write_rankings(rankings, path)
    again = read_rankings(path)
    frozen = [tuple(frozenset(group) for group in groups_of(order)) for order in again.orders()]
    assert again.items == rankings.items
    assert len(frozen) == len(by_order)
    assert dict(zip(frozen, again.weights.tolist(), strict=True)) == dict(by_order)
    assert again.weights.tolist() == sorted(by_order.values(), reverse=True)


def test_preflib_is_written_as_preflib_writes_it(tmp_path):
    rankings = Rankings.from_orders(
        [["b"], ["a", ["ü", "b"]], ["b"]], items=["a", "b", "ü"], weights=[1, 5, 2]
    )
    write_rankings(rankings, tmp_path / "votes.toi")
    assert (tmp_path / "votes.toi").read_bytes().decode() == (
        "# FILE NAME: votes.toi\n"
        "# DATA TYPE: toi\n"
        "# NUMBER ALTERNATIVES: 3\n"
        "# NUMBER VOTERS: 8\n"
        "# NUMBER UNIQUE ORDERS: 2\n"
        "# ALTERNATIVE NAME 1: a\n"
        "# ALTERNATIVE NAME 2: b\n"
        "# ALTERNATIVE NAME 3: ü\n"
        "5: 1,{2,3}\n"
        "3: 2\n"
    )


def test_rankings_without_a_kind_have_the_one_that_is_given(read):
    body = "".join(f"# ALTERNATIVE NAME {i}: {name}\n" for i, name in enumerate(ABC, 1)) + "2: 1\n"
    lines = '{"ranking": ["a"]}\n{"ranking": ["b"], "kind": "top"}\n'
    assert read(body, "votes.soi").is_subset.tolist() == [False]
    assert read(body, "votes.soi", kind="subset").is_subset.tolist() == [True]
    assert read(lines, items=ABC, kind="subset").is_subset.tolist() == [True, False]


@pytest.mark.parametrize(("end", "space"), [("\n", ""), ("\r\n", " "), ("", " ")])
def test_files_of_other_programs_are_read(tmp_path, end, space):
    """Those of PrefLib, and of other programs that write a space after a comma, or none."""
    path = tmp_path / "votes.toi"
    orders = f"3:{space}1,{space}{{2,{space}3}}\n10:{space}{{3,2}},1\n1:{space}2"
    head = "".join(f"# ALTERNATIVE NAME {i}: {name}\n" for i, name in enumerate(ABC, 1))
    path.write_bytes((head + orders + end).replace("\n", end or "\n").encode())
    found = read_rankings(path)
    assert found.orders() == [["a", ["b", "c"]], [["b", "c"], "a"], ["b"]]
    assert found.weights.tolist() == [3, 10, 1]


@pytest.mark.parametrize("ending", [".jsonl", ".parquet", "records", "frame"])
def test_fields_are_used_or_named(tmp_path, ending):
    pandas = pytest.importorskip("pandas")
    records = [{"ranking": ["a", ["b", "c"]], "judge": "ann", "length": 3}]
    tied = [{**records[0], "ranking": [["a"], ["b", "c"]]}]
    table, path = pandas.DataFrame(tied), tmp_path / f"rankings{ending}"
    if ending == ".jsonl":
        path.write_text(json.dumps(records[0]))
    elif ending == ".parquet":
        table.to_parquet(path)
    source = {"records": records, "frame": table}.get(ending, path)
    read = read_source(source)
    found, reading = read.rankings, read.reading
    assert found.orders() == [["a", ["b", "c"]]]
    assert found.raters.tolist() == ["ann"]
    assert (reading.layout, reading.unused) == ("rankings", ("length",))
    assert reading.used == {"ranking": "ranking", "judge": "rater"}
    assert read_rankings(source, rater="length").raters.tolist() == ["3"]
    with refuses("score"):
        read_rankings(source, score="length")
