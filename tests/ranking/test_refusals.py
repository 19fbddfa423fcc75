"""Bad input is refused with a `RankshotError` that names the value and its row or line."""

import numpy as np
import pytest

import rankshot as rs
from rankshot import Rankings, RankshotError, read_rankings, write_rankings
from refusals import ANY, refuses

ABC = ["a", "b", "c"]
AB = Rankings.from_orders([["a", "b"], ["b", "a"]], items=ABC, targets=["cat", "dog"])
VOTES = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], items=ABC, raters=["x", "y"])
PAIRS = Rankings.from_orders([["a", "b"], ["b", "a"]])
TIED = Rankings.from_orders([[["a", "b"]]])
SUBSET = Rankings.from_orders([["a"]], items=["a", "b"], kind="subset")
WORTHS, FIT = rs.PlackettLuce.from_worths({"a": 1}), rs.PlackettLuce().fit
TWO = [["a"], ["b"]]
MASKED = np.ma.array([[1, 2, 3], [3, 2, 1]], mask=[[0, 0, 0], [0, 1, 0]])
HEADER = "".join(f"# ALTERNATIVE NAME {i}: {name}\n" for i, name in enumerate("abc", 1))
NAN = float("nan")


def orders(orders, items=ABC, **options):
    return lambda: Rankings.from_orders(orders, items=items, **options)


def positions(table, items=ABC, **options):
    return lambda: Rankings.from_positions(table, items=items, **options)


def scores(table, items=ABC, **options):
    return lambda: Rankings.from_scores(table, items=items, **options)


def numbers(table):
    return lambda: Rankings.from_item_numbers(np.array(table), items=ABC)


def pairs(**changed):
    given = {"winners": ["a", "b", "a"], "losers": ["b", "c", "c"], **changed}
    return lambda: Rankings.from_pairs(**given)


def counts(wins, ties=None):
    return lambda: Rankings.from_pair_counts(wins, ties=ties, items=["a", "b"])


def log_odds(table):
    return lambda: rs.BabingtonSmith.from_log_odds(table, items=["a", "b"])


def mixture(**options):
    return lambda: rs.RankingMixture(**options).fit(VOTES)


def board(**options):
    return lambda: rs.leaderboard(VOTES, **options)


ARGUMENTS = [
    (orders([["cat"], ["dgo"]], ["cat", "dog"]), "item", "dgo", "ranking 1"),
    (orders([["a"], ["b", "c", "b"]]), "item", "b", "ranking 1"),
    (orders([["a"], []]), "ranking", ANY, "ranking 1"),
    (orders([["a"], "abc"]), "ranking", "abc", "ranking 1"),
    (orders([["a", ["b", ["c"]]]], None), "item", ["c"], "ranking 0"),
    (orders([["a"], ["b", NAN]], None), "item", ANY, "ranking 1"),
    (orders([["a"]], ["a", "b", "a"]), "items", "a"),
    (orders([["a"]], "abc"), "items", "abc"),
    (orders([], None), "items"),
    (orders(TWO, weights=[1, -2]), "weights", -2.0, "ranking 1"),
    (orders(TWO, weights=[1, 2, 3]), "weights"),
    (orders(TWO, weights=np.ma.array([1, 2], mask=[0, 1])), "weights"),
    (orders(TWO, targets=["x", 0.5]), "targets", 0.5, "ranking 1"),
    (orders(TWO, weights=np.array([True, False])), "weights", ANY, "ranking 0"),
    (orders(TWO, weights=np.array(["1", "2"])), "weights", ANY, "ranking 0"),
    (orders(TWO, weights=["1", 2]), "weights", "1", "ranking 0"),
    (orders(TWO, targets=["x", ""]), "targets", "", "ranking 1"),
    (orders({"x": ["a", "b"]}, targets="y"), "targets"),
    (orders({"x": "ab"}), "orders", "ab", "target 'x'"),
    (orders(TWO, kind="bottom"), "kind", "bottom", "ranking 0"),
    (orders([["a"], ["z"]], where="sheet 1, row {}".format), "item", "z", "sheet 1, row 1"),
    (positions([[1, 2, np.inf]]), "positions", ANY, "ranking 0, item 'c'"),
    (positions([[1, 2, 3], [0, 0, NAN]]), "ranking", ANY, "ranking 1"),
    (positions([[1, 2]]), "positions"),
    (scores([[1, 2, NAN]]), "scores", ANY, "ranking 0, item 'c'"),
    (scores(MASKED), "scores"),
    (numbers([[0, 1], [2, 2]]), "item", "c", "ranking 1"),
    (numbers([[0, 1], [2, 3]]), "lists", 3, "ranking 1"),
    (pairs(losers=["b", "b", "c"]), "item", "b", "pair 1"),
    (pairs(ties=[True, None, 1]), "ties", None, "pair 1"),
    (pairs(losers="abc"), "losers", "abc"),
    (counts([[0, -1], [1, 0]]), "weights", -1.0, "pair 0"),
    (counts([[0, 1], [1, 2]]), "item", "b", "pair 2"),
    (counts([[0, 1], [1, 0]], [[0, 1], [2, 0]]), "ties", 1.0, "'a' and 'b'"),
    (lambda: Rankings.from_scores([[1.0, 2.0]]), "items"),
    (lambda: AB.top(0), "k", 0),
    (lambda: AB.top(np.array([1, 4])), "k", 4, "ranking 1"),
    (lambda: AB.select(target="cta"), "target", "cta"),
    (lambda: AB.with_items(["a", "b"]), "items"),
    (lambda: AB.with_items([*ABC, "z"]), "items"),
    (lambda: Rankings.concatenate([]), "rankings", []),
    (lambda: rs.kendall_distance(VOTES, k=4), "k", 4),
    (lambda: rs.kendall_distance(SUBSET), "rankings", ANY, "ranking 0"),
    (lambda: rs.ranking.mean_kendall_distance(SUBSET), "rankings", ANY, "ranking 0"),
    (
        lambda: rs.ranking.summarize(Rankings.from_orders(TWO, targets=["x", None])),
        "target",
        None,
        "ranking 1",
    ),
    (lambda: rs.ranking.summarize(VOTES, model=rs.Mallows), "model"),
    (lambda: rs.kemeny(VOTES, "exact", time_limit=0), "time_limit", 0),
    (lambda: rs.kemeny(VOTES, time_limit=1), "time_limit", 1),
    (lambda: rs.PlackettLuce(regularization=-1).fit(VOTES), "regularization", -1),
    (lambda: rs.PlackettLuce.from_worths({"b": 0}), "worths", 0, "item 'b'"),
    (lambda: WORTHS.sample(0), "n", 0),
    (lambda: rs.Mallows.from_center(["a", "b"], -1), "spread", -1),
    (lambda: rs.Mallows.from_center(["a", "a"], 1), "center", "a"),
    (lambda: rs.BabingtonSmith(regularization=0).fit(VOTES), "regularization", 0),
    (lambda: rs.BabingtonSmith().fit(TIED), "rankings"),
    (log_odds([[0, 1], [1, 0]]), "log_odds", 1.0, "'a' over 'b'"),
    (log_odds([[0, np.inf], [-np.inf, 0]]), "log_odds", ANY, "'a' over 'b'"),
    (lambda: log_odds(np.zeros((2, 2)))().log_prob(SUBSET), "rankings", ANY, "ranking 0"),
    (mixture(n_groups=0), "n_groups", 0),
    (mixture(tol=0), "tol", 0),
    (mixture(max_iter=0), "max_iter", 0),
    (mixture(n_starts=0), "n_starts", 0),
    (mixture(n_groups=3), "n_groups", 3),
    (mixture(model=rs.BabingtonSmith()), "model"),
    (board(level=1), "level", 1),
    (board(ties="none"), "ties", "none"),
    (board(scale="points"), "scale", "points"),
    (board(covariates="length"), "covariates", ("length",)),
    (board(model=rs.Mallows()), "model", "Mallows"),
    (lambda: rs.leaderboard(TIED, ties="outcome"), "ties", "outcome"),
    (lambda: rs.leaderboards.read_votes([["a"]]), "table", [["a"]]),
    (lambda: rs.agreement(VOTES[:1]), "rankings"),
    (lambda: rs.leaderboard(PAIRS).votes_needed(0), "width", 0),
    (lambda: rs.leaderboard(PAIRS).next_pairs(0), "n", 0),
]


@pytest.mark.parametrize("case", ARGUMENTS)
def test_bad_arguments_are_refused_and_named(case):
    call, *fields = case
    with refuses(*fields):
        call()


@pytest.mark.parametrize(
    "call",
    [
        *(rs.kemeny, rs.agreement, rs.kendall_distance, FIT),
        rs.Mallows.from_center(["a", "b"], 1).log_prob,
        lambda x: write_rankings(x, "votes.jsonl"),
    ],
)
def test_plain_lists_are_told_how_to_become_rankings(call):
    with refuses("rankings", [["a", "b"]]):
        call([["a", "b"]])


def test_a_dict_of_lists_is_accepted_wherever_rankings_are():
    lists = {"x": ["a", "b", "c"], "y": [["b", "a", "c"], ["b", ["a", "c"]]]}
    own = rs.Rankings.from_orders(lists, raters=["ann", "bob", "cy"])
    assert own.orders() == [lists["x"], *lists["y"]]
    assert own.targets.tolist() == ["x", "y", "y"]
    assert own.raters.tolist() == ["ann", "bob", "cy"]
    one = {"x": [["a", "b", "c"], ["b", "a", "c"], ["a", "c", "b"]]}
    for call in (
        *(lambda x, merge=merge: merge(x).order for merge in (rs.kemeny, rs.borda)),
        *(
            lambda x, merge=merge: merge(x).order
            for merge in (rs.ranking.copeland, rs.ranking.schulze)
        ),
        *(lambda x: FIT(x).mode_, lambda x: rs.Mallows().fit(x).center_, rs.ranking.concordance),
        *(lambda x: rs.kendall_distance(x).tolist(), lambda x: rs.ranking.summarize(x)[0].order),
    ):
        assert call(one) == call(rs.Rankings.from_orders(one))


def test_statistics_of_no_rankings():
    none = VOTES[:0]
    assert rs.ranking.concordance(none) is None
    assert rs.kendall_distance(none).shape == (0, 0)
    for merge in (rs.kemeny, rs.borda, rs.agreement, rs.ranking.summarize, FIT):
        with refuses("rankings"):
            merge(none)


SEVERAL = "several targets are merged into one: 'cat', 'dog'"
FROM_ZERO = [[0, 1, 2], [2, 0, 1]]
# An item that won every vote would come last: it was named least often.
CHAIN = [["a", "b"], ["b", "c"], ["c", "d"], ["d", "e"], ["f", "a"]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *((lambda call=call: call(AB), SEVERAL) for call in (rs.kemeny, rs.agreement, FIT)),
        (positions(FROM_ZERO), "holds 0, 1, …, 2: places start at 1"),
        (positions(FROM_ZERO, kind=["top", "subset"]), "holds 0, 1, …, 2: places start at 1"),
        (orders(CHAIN, None), 'at most 2 of 6 items, .* pass kind="subset"'),
        (lambda: rs.PlackettLuce(max_iter=1).fit(VOTES), "the fit did not converge in 1 iter"),
    ],
)
def test_what_may_be_a_mistake_is_warned_of(call, message):
    with pytest.warns(UserWarning, match=message):
        call()


def test_short_lists_whose_kind_or_items_are_given_are_not_warned_of():
    Rankings.from_orders(CHAIN, kind="subset")
    Rankings.from_orders(CHAIN, items=list("abcdef"))


# ---- Files

JSON_LINES = [
    ('{"ranking": ["a"', "line"),
    ('{"ranking": "abc"}', "ranking"),
    ('{"ranking": ["b", ["a", "b"]]}', "item"),
    ('{"ranking": ["a"], "weight": NaN}', "weights"),
    ('{"ranking": [["a", "b"]], "k": 3}', "k"),
]
MALFORMED = [
    "1:", "1", "1,2", "1: 1,", "1: 1,,2", "1: {1,2", "1: 1,2}", "1: {1,{2,3}}", "1: {}",
    "1: 1: 2", "1: 4", "1: 18446744073709551617", "1: 1 2", "-1: 1", "1234567890123456: 1", "1: ١",
    "1.5: 1", "1: 1,{2,3", "1: {1}{2}",
]  # fmt: skip
PREFLIB = [
    (".toi", HEADER + "a > b\n", "line", ":4"),
    *((".toi", f"{HEADER}2: 1,2\n{line}\n", "line", ":5") for line in MALFORMED),
    (".toi", HEADER + "1: 1,{2,1}\n", "item", ":4"),
    (".soi", HEADER + "# ALTERNATIVE NAME 3: d\n1: 1\n", "line", ":4"),
    (".soi", HEADER + "# ALTERNATIVE NAME 4: c\n1: 1\n", "line", ":4"),
    (".soi", HEADER + "2: 1\n1: 1,{2,3}\n", "ranking", ":5"),
    (".soc", HEADER + "1: 3,2\n", "ranking", ":4"),
    (".soi", "# NUMBER ALTERNATIVES: 0\n" + HEADER + "1: 1\n", "header", ""),
    (".soc", HEADER, "file", ""),
    (".jsonl", '{"ranking": ["a"], "wieght": 3}', "field", ""),
]


@pytest.mark.parametrize(
    ("ending", "text", "parameter", "line"),
    [
        *(
            (".jsonl", f'{{"ranking": ["a", "b", "c"]}}\n\n{bad}\n', parameter, ":3")
            for bad, parameter in JSON_LINES
        ),
        *PREFLIB,
    ],
)
def test_bad_files_are_refused_on_their_line(ending, text, parameter, line, tmp_path):
    path = tmp_path / f"bad{ending}"
    path.write_text(text, encoding="utf-8")
    with refuses(parameter, where=f"{path}{line}"):
        read_rankings(path)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (AB, "nowhere/bad.jsonl"),
        (AB, "bad.soc"),
        (AB, "bad.soi"),
        (Rankings.from_orders([[["a", "b"]]]), "bad.soi"),
        (Rankings.from_orders(TWO, kind="subset"), "bad.soi"),
        (Rankings.from_orders([["a\nb"]]), "bad.soc"),
        (AB, "bad.tab"),
    ],
)
def test_what_a_file_cannot_hold_is_not_written(value, name, tmp_path):
    with pytest.raises(RankshotError):
        write_rankings(value, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
