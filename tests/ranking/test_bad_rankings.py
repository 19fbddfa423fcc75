"""Bad input is refused with a `RankshotError` that names the value and its row or line."""

import numpy as np
import pytest

import rankshot as rs
from rankshot import Rankings, RankshotError, read_rankings, write_rankings

ABC = ["a", "b", "c"]
AB = Rankings.from_orders([["a", "b"], ["b", "a"]], items=ABC, targets=["cat", "dog"])
TWO = [["a"], ["b"]]

HEADER = (
    "# NUMBER ALTERNATIVES: 3\n"
    "# ALTERNATIVE NAME 1: a\n"
    "# ALTERNATIVE NAME 2: b\n"
    "# ALTERNATIVE NAME 3: c\n"
)


def orders(orders, items=ABC, **options):
    return lambda _: Rankings.from_orders(orders, items=items, **options)


def positions(table, items=ABC, **options):
    return lambda _: Rankings.from_positions(table, items=items, **options)


def scores(table, items=ABC, **options):
    return lambda _: Rankings.from_scores(table, items=items, **options)


def numbers(table, items=ABC):
    return lambda _: Rankings.from_item_numbers(np.array(table), items=items)


def file(name, text, items=None):
    def read(folder):
        path = folder / name
        path.write_text(text, encoding="utf-8")
        return read_rankings(path, items)

    return read


def line(text, items=None):
    """A file whose third line is ``text``; the second is blank."""
    return file("bad.jsonl", f'{{"ranking": ["a", "b", "c"]}}\n\n{text}\n', items)


def preflib(text, ending=".toi", items=None):
    """A file whose fifth line is ``text``."""
    return file(f"bad{ending}", f"{HEADER}{text}\n", items)


def written(value, name):
    return lambda folder: write_rankings(value, folder / name)


NAMED_CONSTRUCTORS = {
    "unknown item, one close": (
        orders([["cat"], ["cat", "dgo"]], ["cat", "dog"]),
        "ranking 1: unknown item 'dgo' (did you mean 'dog'?)",
    ),
    "unknown item in a tie": (orders([["a", ["b", "zebra"]]]), "ranking 0: unknown item 'zebra'"),
    "unknown number": (orders([["a"], [4]]), "ranking 1: unknown item '4'"),
    "repeated item": (
        orders([["a"], ["b", "c", "b"]]),
        "ranking 1: item 'b' is listed more than once",
    ),
    "repeated in a tie": (
        orders([["a"], ["b"], [["c", "c"]]]),
        "ranking 2: item 'c' is listed more than once",
    ),
    "repeated in and out of a tie": (
        orders([["a", ["b", "a"]]]),
        "ranking 0: item 'a' is listed more than once",
    ),
    "repeated as number": (orders([[1, "1"]], [1]), "ranking 0: item '1' is listed more than once"),
    "empty ranking": (orders([["a"], []]), "ranking 1: the ranking is empty"),
    "only an empty ranking": (orders([[]], None), "ranking 0: the ranking is empty"),
    "empty tie": (orders([["a"], ["b", []]]), "ranking 1: an empty tie at place 2"),
    "only an empty tie": (orders([[[]]], None), "ranking 0: an empty tie at place 1"),
    "text for a list": (
        orders([["a"], "abc"]),
        "ranking 1: expected a list of items, not 'abc'",
    ),
    "text for a list, items unknown": (
        orders(["abc"], None),
        "ranking 0: expected a list of items, not 'abc'",
    ),
    "a number for a list": (
        orders([["a"], 7]),
        "ranking 1: expected a list of items, not 7",
    ),
    "a number for a list, items unknown": (
        orders([["a"], 7], None),
        "ranking 1: expected a list of items, not 7",
    ),
    "None for a list": (orders([None]), "ranking 0: expected a list of items, not None"),
    "a tie in a tie": (
        orders([["a", ["b", ["c"]]]]),
        "ranking 0: an item must be a name, not ['c']",
    ),
    "a tie in a tie, items unknown": (
        orders([["a", ["b", ["c"]]]], None),
        "ranking 0: an item must be a name, not ['c']",
    ),
    "None for a name": (orders([["a", None]]), "ranking 0: an item must be a name, not None"),
    "a fraction for a name": (orders([["a"], [1.5]]), "ranking 1: an item must be a name, not 1.5"),
    "a fraction for a name that has its digits": (
        orders([["1.5"], [1.5]], ["1.5"]),
        "ranking 1: an item must be a name, not 1.5",
    ),
    "a fraction for a name, items unknown": (
        orders([["a"], [1.5]], None),
        "ranking 1: an item must be a name, not 1.5",
    ),
    "NaN for a name": (orders([["a", float("nan")]]), "ranking 0: an item must be a name, not nan"),
    "a boolean for a name": (orders([[True]], [1]), "ranking 0: an item must be a name, not True"),
    "a dictionary for a name": (
        orders([[{"a": 1}]], None),
        "ranking 0: an item must be a name, not {'a': 1}",
    ),
    "repeated items": (orders([["a"]], ["a", "b", "a"]), "items names 'a' more than once"),
    "items that are one text": (
        orders([["a"]], "abc"),
        "items must be a sequence of names, not 'abc'",
    ),
    "no items": (orders([], []), "items is empty"),
    "an empty name among the items": (
        orders([["a"]], ["a", ""]),
        "items must be non-empty text, not ''",
    ),
    "None among the items": (
        orders([["a"]], ["a", None]),
        "items must be non-empty text, not None",
    ),
    "a fraction among the items": (
        positions([[1, 2]], ["a", 0.5]),
        "items must be non-empty text, not 0.5",
    ),
    "a boolean among the items": (
        scores([[1, 2]], ["a", True]),
        "items must be non-empty text, not True",
    ),
}

COLUMNS = {
    "negative weight": (
        orders(TWO, weights=[1, -2]),
        "ranking 1: the weight -2.0 is not a finite number of 0 or more",
    ),
    "NaN weight": (
        orders(TWO, weights=[float("nan"), 1]),
        "ranking 0: the weight nan is not a finite number of 0 or more",
    ),
    "infinite weight": (
        positions([[1, 2, 3]], weights=[float("inf")]),
        "ranking 0: the weight inf is not a finite number of 0 or more",
    ),
    "missing weight": (
        scores([[1, 2, 3]], weights=[None]),
        "ranking 0: the weight None is not a number",
    ),
    "too many weights": (
        orders(TWO, weights=[1, 2, 3]),
        "weights have shape (3,) for 2 rankings",
    ),
    "one weight for two": (orders(TWO, weights=2.0), "weights have shape () for 2 rankings"),
    "a table of weights": (
        orders(TWO, weights=[[1], [2]]),
        "ranking 0: the weight [1] is not a number",
    ),
    "too few targets": (orders(TWO, targets=["x"]), "targets has 1 entries for 2 rankings"),
    "too many sources": (
        positions([[1, 2, 3]], sources=["x", "y"]),
        "sources has 2 entries for 1 rankings",
    ),
    "too few raters": (orders(TWO, raters=[]), "raters has 0 entries for 2 rankings"),
    "a target that is a number": (
        orders(TWO, targets=["x", 5]),
        "ranking 1: target must be text, not 5",
    ),
    "a source that is missing the pandas way": (
        orders(TWO, sources=[float("nan"), "x"]),
        "ranking 0: source must be text, not nan",
    ),
    "a rater that is a list": (
        orders(TWO, raters=["x", ["y"]]),
        "ranking 1: rater must be text, not ['y']",
    ),
    "unknown kind": (
        orders(TWO, kind="bottom"),
        "ranking 0: kind must be 'top' or 'subset', not 'bottom'",
    ),
    "one unknown kind": (
        orders(TWO, kind=["top", None]),
        "ranking 1: kind must be 'top' or 'subset', not None",
    ),
    "too few kinds": (orders(TWO, kind=["top"]), "kind has 1 entries for 2 rankings"),
}

TABLES = {
    "infinite position": (
        positions([[1, 2, float("inf")]]),
        "ranking 0, item 'c': positions must be 0 (not listed) or more, not inf",
    ),
    "negative position": (
        positions([[1, 0, 2], [-1, 2, 3]]),
        "ranking 1, item 'a': positions must be 0 (not listed) or more, not -1.0",
    ),
    "nothing placed": (positions([[1, 2, 3], [0, 0, np.nan]]), "ranking 1: the ranking is empty"),
    "too few columns": (
        positions([[1, 2]]),
        "positions must have one column for each of the 3 items, not shape (1, 2)",
    ),
    "a cube": (
        scores(np.zeros((2, 2, 3))),
        "scores must have one column for each of the 3 items, not shape (2, 2, 3)",
    ),
    "NaN score": (
        scores([[1, 2, 3], [1, 2, float("nan")]]),
        "ranking 1, item 'c': scores must be numbers (with kind=\"subset\", nan is an item",
    ),
    "NaN score of a top-K list beside a subset": (
        scores([[1, 2, np.nan], [1, np.nan, 3]], kind=["subset", "top"]),
        "ranking 1, item 'b': scores must be numbers (with kind=\"subset\", nan",
    ),
    "nothing rated": (
        scores([[1, 2, 3], [np.nan] * 3], kind="subset"),
        "ranking 1: the ranking is empty",
    ),
    "scores with k too large": (
        scores([[1, 2, 3]], k=4),
        "k must be a whole number from 1 to 3, not 4",
    ),
    "scores with k = 0": (scores([[1, 2, 3]], k=0), "k must be a whole number from 1 to 3, not 0"),
    "repeated item number": (
        numbers([[0, 1], [2, 2]]),
        "ranking 1: item 'c' is listed more than once",
    ),
    "no item numbers": (numbers(np.zeros((2, 0), int)), "ranking 0: the ranking is empty"),
}

METHODS = {
    "k too large": (lambda _: AB.top(4), "k must be a whole number from 1 to 3, not 4"),
    "k = 0": (lambda _: AB.top(0), "k must be a whole number from 1 to 3, not 0"),
    "k negative": (lambda _: AB.top(-1), "k must be a whole number from 1 to 3, not -1"),
    "unknown target": (
        lambda _: AB.select(target="cta"),
        "no target 'cta' (did you mean 'cat'?)",
    ),
    "unknown source": (lambda _: AB.select(source="web"), "no source 'web'"),
    "unknown rater": (lambda _: AB.select(rater="eve"), "no rater 'eve'"),
    "an item too few": (
        lambda _: AB.with_items(["a", "b"]),
        "unknown item 'c'",
    ),
    "an item too many": (
        lambda _: AB.with_items(["a", "b", "c", "z"]),
        "these rankings are not over 'z': give them the same items=",
    ),
    "items repeated": (lambda _: AB.with_items(["a", "a"]), "items names 'a' more than once"),
    "a listed item left out": (
        lambda _: AB.change_items(("b", "c", "z")),
        "ranking 0: unknown item 'a'",
    ),
    "concatenate over different items": (
        lambda _: Rankings.concatenate([AB, Rankings.from_orders([["z"]])]),
        "these rankings are not over 'a', 'b', 'c'",
    ),
    "concatenate nothing": (lambda _: Rankings.concatenate([]), "nothing to concatenate"),
}

JSON_LINES = {
    "JSON: cut short": (line('{"ranking": ["a"'), "bad.jsonl:3: not JSON (Expecting ',' delimiter"),
    "JSON: the bad text is shown": (line("a > b"), "(char 0)): 'a > b'"),
    "JSON: a long bad line is shortened": (
        line("x" * 500),
        "(char 0)): 'xxxxxxxxxxxxxxxxxxxxxxxxxxx...xxxxx",
    ),
    "JSON: two objects": (line('{"ranking": ["a"]} {}'), "bad.jsonl:3: not JSON (Extra data"),
    "JSON: a list": (
        line('["a", "b"]'),
        "bad.jsonl:3: expected an object with a list \"ranking\", not ['a', 'b']",
    ),
    "JSON: null": (
        line("null"),
        'bad.jsonl:3: expected an object with a list "ranking", not None',
    ),
    "JSON: no ranking": (
        line('{"order": ["a"]}'),
        "bad.jsonl:3: expected an object with a list \"ranking\", not {'order': ['a']}",
    ),
    "JSON: ranking is text": (
        line('{"ranking": "abc"}'),
        "bad.jsonl:3: expected an object with a list \"ranking\", not {'ranking': 'abc'}",
    ),
    "JSON: unknown item": (
        line('{"ranking": ["tigre"]}', [*ABC, "tiger"]),
        "bad.jsonl:3: unknown item 'tigre' (did you mean 'tiger'?)",
    ),
    "JSON: repeated item": (
        line('{"ranking": ["b", ["a", "b"]]}'),
        "bad.jsonl:3: item 'b' is listed more than once",
    ),
    "JSON: empty ranking": (line('{"ranking": []}'), "bad.jsonl:3: the ranking is empty"),
    "JSON: only an empty ranking": (
        file("bad.jsonl", '{"ranking": []}'),
        "bad.jsonl:1: the ranking is empty",
    ),
    "JSON: empty tie": (
        line('{"ranking": ["a", []]}'),
        "bad.jsonl:3: an empty tie at place 2",
    ),
    "JSON: only an empty tie": (
        file("bad.jsonl", '{"ranking": [[]]}'),
        "bad.jsonl:1: an empty tie at place 1",
    ),
    "JSON: null for a name": (
        line('{"ranking": [null]}', ABC),
        "bad.jsonl:3: an item must be a name, not None",
    ),
    "JSON: null for a name, items unknown": (
        line('{"ranking": [null]}'),
        "bad.jsonl:3: an item must be a name, not None",
    ),
    "JSON: an object for a name": (
        line('{"ranking": [{}]}', ABC),
        "bad.jsonl:3: an item must be a name, not {}",
    ),
    "JSON: an object for a name, items unknown": (
        line('{"ranking": [{}]}'),
        "bad.jsonl:3: an item must be a name, not {}",
    ),
    "JSON: a tie in a tie": (
        line('{"ranking": [["a", ["b"]]]}'),
        "bad.jsonl:3: an item must be a name, not ['b']",
    ),
    "JSON: an empty name": (
        line('{"ranking": [""]}', ABC),
        "bad.jsonl:3: an item must be a name, not ''",
    ),
    "JSON: an empty name, items unknown": (
        line('{"ranking": [""]}'),
        "bad.jsonl:3: an item must be a name, not ''",
    ),
    "JSON: weight is text": (
        line('{"ranking": ["a"], "weight": "2"}'),
        "bad.jsonl:3: the weight '2' is not a number",
    ),
    "JSON: weight is null": (
        line('{"ranking": ["a"], "weight": null}'),
        "bad.jsonl:3: the weight None is not a number",
    ),
    "JSON: weight is true": (
        line('{"ranking": ["a"], "weight": true}'),
        "bad.jsonl:3: the weight True is not a number",
    ),
    "JSON: negative weight": (
        line('{"ranking": ["a"], "weight": -0.5}'),
        "bad.jsonl:3: the weight -0.5 is not a finite number of 0 or more",
    ),
    "JSON: NaN weight": (
        line('{"ranking": ["a"], "weight": NaN}'),
        "bad.jsonl:3: the weight nan is not a finite number of 0 or more",
    ),
    "JSON: infinite weight": (
        line('{"ranking": ["a"], "weight": 1e999}'),
        "bad.jsonl:3: the weight inf is not a finite number of 0 or more",
    ),
    "JSON: target is a number": (
        line('{"ranking": ["a"], "target": 5}'),
        "bad.jsonl:3: target must be text, not 5",
    ),
    "JSON: target is empty": (
        line('{"ranking": ["a"], "target": ""}'),
        "bad.jsonl:3: target is empty: name it, or leave it out",
    ),
    "JSON: rater is a list": (
        line('{"ranking": ["a"], "rater": ["eve"]}'),
        "bad.jsonl:3: rater must be text, not ['eve']",
    ),
    "JSON: unknown kind": (
        line('{"ranking": ["a"], "kind": "all"}'),
        "bad.jsonl:3: kind must be 'top' or 'subset', not 'all'",
    ),
    "JSON: kind is a list": (
        line('{"ranking": ["a"], "kind": ["top"]}'),
        "bad.jsonl:3: kind must be 'top' or 'subset', not ['top']",
    ),
    "JSON: k too large": (
        line('{"ranking": [["a", "b"]], "k": 3}'),
        "bad.jsonl:3: k must be a whole number from 1 to 2, not 3",
    ),
    "JSON: k = 0": (
        line('{"ranking": [["a", "b"]], "k": 0}'),
        "bad.jsonl:3: k must be a whole number from 1 to 2, not 0",
    ),
    "JSON: k is true": (
        line('{"ranking": [["a", "b"]], "k": true}'),
        "bad.jsonl:3: k must be a whole number from 1 to 2, not True",
    ),
    "JSON: k is a fraction": (
        line('{"ranking": [["a", "b"]], "k": 1.0}'),
        "bad.jsonl:3: k must be a whole number from 1 to 2, not 1.0",
    ),
    "JSON: no rankings": (file("bad.jsonl", "\n \n"), "bad.jsonl: no rankings in it"),
    "JSON: bad items": (line("{}", ["a", "a"]), "items names 'a' more than once"),
}

PREFLIB = {
    "PrefLib: not an order": (
        preflib("a > b"),
        "bad.toi:5: expected 'count: 1,2,{3,4}', as PrefLib writes since 2022, not 'a > b'",
    ),
    "PrefLib: the count is no whole number": (preflib("1.5: 1"), "not '1.5: 1'"),
    "PrefLib: negative count": (preflib("-1: 1"), "bad.toi:5: expected 'count: 1,2,{3,4}'"),
    "PrefLib: unknown number": (
        preflib("1: 1,4"),
        "bad.toi:5: no alternative has the number '4'",
    ),
    "PrefLib: unknown number in a tie": (
        preflib("1: 1,{2,9}"),
        "bad.toi:5: no alternative has the number '9'",
    ),
    "PrefLib: a name for a number": (
        preflib("1: 1,b,3"),
        "bad.toi:5: cannot read the order from 'b,3' on",
    ),
    "PrefLib: an open brace": (
        preflib("1: 1,{2,3"),
        "bad.toi:5: cannot read the order from '{2,3' on",
    ),
    "PrefLib: repeated item": (
        preflib("1: 1,{2,1}"),
        "bad.toi:5: item 'a' is listed more than once",
    ),
    "PrefLib: empty tie": (preflib("1: 1,{}"), "bad.toi:5: an empty tie at place 2"),
    "PrefLib: ties in a strict file": (
        preflib("2: 1\n1: 1,{2,3}", ".soi"),
        "bad.soi:6: has ties, which .soi does not allow",
    ),
    "PrefLib: an incomplete order in a complete file": (
        preflib("2: 1,2,3\n\n1: 3,2", ".soc"),
        "bad.soc:7: does not list all items, which .soc does not allow",
    ),
    "PrefLib: other items": (
        preflib("1: 3", items=["a", "b"]),
        "bad.toi:5: unknown item 'c'",
    ),
    "PrefLib: fewer alternatives than names": (
        file("bad.soi", "# NUMBER ALTERNATIVES: 0\n# ALTERNATIVE NAME 1: a\n1: 1\n"),
        "bad.soi: 0 alternatives are announced, but 1 are named",
    ),
    "PrefLib: too many alternatives without names": (
        file("bad.soi", "# NUMBER ALTERNATIVES: 9999999\n# ALTERNATIVE NAME 1: a\n1: 1\n"),
        "bad.soi: 9999999 alternatives are announced, but 1 are named",
    ),
    "PrefLib: a name that is the number of an alternative without one": (
        file("bad.soi", "# NUMBER ALTERNATIVES: 2\n# ALTERNATIVE NAME 1: 2\n1: 1\n"),
        "bad.soi: alternative 2 has no name, and another one is named '2'",
    ),
    "PrefLib: a number above those announced": (
        file("bad.soi", "# NUMBER ALTERNATIVES: 2\n# ALTERNATIVE NAME 9: a\n1: 9\n"),
        "bad.soi: 2 alternatives are announced, but one has the number '9'",
    ),
    "PrefLib: two alternatives of one name": (
        file("bad.soi", "# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: a\n1: 1\n"),
        "bad.soi:2: ",
    ),
    "PrefLib: two names of one alternative": (
        file("bad.soi", "# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 1: b\n1: 1\n"),
        "bad.soi:2: ",
    ),
    "PrefLib: no orders": (file("bad.soc", HEADER), "bad.soc: no rankings in it"),
    "PrefLib: the format before 2022": (
        file("bad.soc", "2\n1,a\n2,b\n3,3,1\n3,1,2\n"),
        "bad.soc:1: expected 'count: 1,2,{3,4}', as PrefLib writes since 2022, not '2'",
    ),
}

ENDINGS = {
    "reading an unknown ending": (
        file("bad.csv", "a,b\n"),
        "bad.csv: unknown ending '.csv'; known are .jsonl, .ndjson, .parquet, .soc",
    ),
    "writing an unknown ending": (written(AB, "bad.txt"), "bad.txt: unknown ending '.txt'"),
    "writing without an ending": (written(AB, "bad"), "bad: unknown ending ''"),
    "writing where no folder is": (
        written(AB, "nowhere/bad.jsonl"),
        "bad.jsonl: cannot write there (No such file or directory)",
    ),
    "writing an incomplete order to .soc": (
        written(AB, "bad.soc"),
        "ranking 0: does not list all items, which .soc does not allow",
    ),
    "writing ties to .soi": (
        written(Rankings.from_orders([["a", "b"], [["a", "b"]]]), "bad.soi"),
        "ranking 1: has ties, which .soi does not allow",
    ),
    "writing several targets to PrefLib": (
        written(AB, "bad.soi"),
        "bad.soi: PrefLib has no targets; select one of ('cat', 'dog')",
    ),
    "writing fractions to PrefLib": (
        written(Rankings.from_orders([["a"], ["a"]], weights=[1, 0.5]), "bad.soc"),
        "ranking 1: PrefLib does not hold ",
    ),
    "writing subsets to PrefLib": (
        written(Rankings.from_orders([["a"], ["b"]], kind=["top", "subset"]), "bad.soi"),
        "ranking 1: PrefLib does not hold ",
    ),
    "writing cut ties to PrefLib": (
        written(Rankings.from_orders([[["a", "b"]]], items=ABC).top(1), "bad.toi"),
        "ranking 0: PrefLib does not hold ties cut by K",
    ),
    "writing a name of two lines to PrefLib": (
        written(Rankings.from_orders([["a\nb"]]), "bad.soc"),
        "bad.soc: PrefLib cannot hold line breaks in a name, nor space around it, as in 'a\\nb'",
    ),
}

TABLE = {
    **NAMED_CONSTRUCTORS,
    **COLUMNS,
    **TABLES,
    **METHODS,
    **JSON_LINES,
    **PREFLIB,
    **ENDINGS,
}


@pytest.mark.parametrize(("call", "message"), TABLE.values(), ids=TABLE.keys())
def test_bad_input_is_refused_and_named(call, message, tmp_path):
    with pytest.raises(RankshotError) as caught:
        call(tmp_path)
    assert message in str(caught.value)


HUGE = 10**400

# What the message says is free here, but for the words that it must hold.
ODD_TYPES = {
    "items is a number": (orders(TWO, items=5), ["items", "5"]),
    "targets is a number": (orders(TWO, targets=5), ["targets", "5"]),
    "kind is a number": (orders(TWO, kind=5), ["kind", "5"]),
    "a set for a ranking, which has no order": (orders([["a"], {"a", "b"}]), ["ranking 1"]),
    "weights that are text": (
        orders(TWO, weights=[1, "many"]),
        ["weight", "ranking 1", "'many'"],
    ),
    "weights that are digits": (orders(TWO, weights=["1", 2]), ["weight", "ranking 0", "'1'"]),
    "weights that are truth values": (
        orders(TWO, weights=[1, True]),
        ["weight", "ranking 1", "True"],
    ),
    "weight beyond all floats": (orders(TWO, weights=[1, HUGE]), ["weight", "ranking 1"]),
    "weight too long to be shown": (orders(TWO, weights=[1, 10**5000]), ["weight", "ranking 1"]),
    "name too long to be shown": (orders([["a"], [10**5000]]), ["ranking 1"]),
    "position too long to be shown": (positions([[1, 2, 10**5000]]), ["positions", "ranking 0"]),
    "a word among the positions": (positions([[1, 2, 3], [1, 2, "x"]]), ["ranking 1", "'x'"]),
    "a word among the scores": (scores([[1, 2, 3], [1, 2, "high"]]), ["ranking 1", "'high'"]),
    "a word in a row by itself": (positions([1, 2, "x"]), ["ranking 0", "'x'"]),
    "ragged positions": (positions([[1, 2, 3], [1, 2]]), ["positions", "ranking 1"]),
    "position beyond all floats": (positions([[1, 2, HUGE]]), ["positions", "ranking 0"]),
    "score beyond all floats": (scores([[1, 2, HUGE]]), ["scores", "ranking 0"]),
    "item number too large": (numbers([[0, 1], [2, 3]]), ["ranking 1", "3"]),
    "item number negative": (numbers([[0, 1], [2, -1]]), ["ranking 1", "-1"]),
    "k is a fraction": (lambda _: AB.top(1.5), ["k", "1.5"]),
    "one k of many too large": (lambda _: AB.top(np.array([1, 4])), ["ranking 1", "4"]),
    "too many k": (lambda _: AB.top(np.array([1, 2, 3])), ["k", "3", "2"]),
    "two k for one ranking": (lambda _: AB[0].top(np.array([1, 2])), ["k", "2", "1"]),
    "k is text": (lambda _: AB.top("1"), ["k", "'1'"]),
}


@pytest.mark.parametrize(("call", "words"), ODD_TYPES.values(), ids=ODD_TYPES.keys())
def test_input_of_an_odd_type_or_range_is_refused_and_named(call, words, tmp_path):
    with pytest.raises(RankshotError) as caught:
        call(tmp_path)
    assert [word for word in words if word not in str(caught.value)] == []


def test_the_caller_may_say_how_rows_are_called_in_messages():
    with pytest.raises(
        RankshotError, match=r"^sheet 1, row 12: unknown item 'z'; the items are 'a'$"
    ):
        Rankings.from_orders([["a"], ["z"]], items=["a"], where=lambda row: f"sheet 1, row {row}2")


def test_the_error_is_a_value_error():
    assert issubclass(RankshotError, ValueError)


def test_a_misspelt_field_is_named_and_a_strange_one_is_passed_over(tmp_path):
    path = tmp_path / "votes.jsonl"
    for field, meant in (("wieght", "weight"), ("raters", "rater"), ("Target", "target")):
        path.write_text(f'{{"ranking": ["a"]}}\n{{"ranking": ["a"], "{field}": 3}}\n')
        with pytest.raises(
            RankshotError, match=f"jsonl:2: field '{field}': did you mean '{meant}'"
        ):
            read_rankings(path)
    path.write_text('{"ranking": ["a"], "dataset": "cifar", "time": 3}\n')
    assert len(read_rankings(path)) == 1


def test_counting_from_zero_is_warned_of():
    with pytest.warns(UserWarning, match=r"holds 0, 1, …, 2: places start at 1"):
        Rankings.from_positions([[0, 1, 2], [2, 0, 1]], items=ABC)


@pytest.mark.parametrize(
    "call",
    [
        rs.kemeny,
        rs.borda,
        rs.agreement,
        rs.kendall_distance,
        lambda x: rs.PlackettLuce().fit(x),
        lambda x: rs.Mallows().fit(x),
        lambda x: rs.BabingtonSmith().fit(x),
        lambda x: rs.PlackettLuce.from_worths({"a": 1, "b": 1}).log_prob(x),
        lambda x: rs.Mallows.from_center(["a", "b"], 1).log_prob(x),
        lambda x: write_rankings(x, "votes.jsonl"),
    ],
)
def test_plain_lists_are_told_how_to_become_rankings(call):
    with pytest.raises(RankshotError, match=r"expected Rankings, not \[\['a', 'b'\]\]"):
        call([["a", "b"]])


@pytest.mark.parametrize(
    "call", [rs.kemeny, rs.borda, rs.agreement, rs.PlackettLuce().fit, rs.Mallows().fit]
)
def test_merging_several_targets_is_warned_of(call):
    with pytest.warns(UserWarning, match="several targets are merged into one: 'cat', 'dog'"):
        call(AB)
