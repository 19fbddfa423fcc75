"""Bad input is refused with a `RankshotError` that names the value and its row or line."""

import numpy as np
import pytest

import rankshot as rs
from rankshot import Rankings, RankshotError, read_rankings, write_rankings
from refusals import refuses

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


def groups(labels):
    return lambda: rs.ranking.compare_groups(VOTES, labels)


def mixture(**options):
    return lambda: rs.RankingMixture(**options).fit(VOTES)


def board(**options):
    return lambda: rs.leaderboard(VOTES, **options)


ARGUMENTS = [
    # Names
    (orders([["cat"], ["dgo"]], ["cat", "dog"]), "ranking 1: unknown item 'dgo' (did you mean"),
    (orders([["a"], ["b", "c", "b"]]), "ranking 1: item 'b' is listed more than once"),
    (orders([["a"], []]), "ranking 1: the ranking is empty"),
    (orders([["a"], "abc"]), "ranking 1: expected a list of items, not 'abc'"),
    (orders([["a", ["b", ["c"]]]], None), "ranking 0: an item must be a name, not ['c']"),
    (
        orders([["a"], ["b", NAN]], None),
        "ranking 1: an item must be a name, not nan: leave missing",
    ),
    (orders([["a"]], ["a", "b", "a"]), "items must name each only once"),
    (orders([["a"]], "abc"), "items must be a sequence of names, not 'abc'"),
    (orders([], None), "items must name at least one"),
    # Columns
    (orders(TWO, weights=[1, -2]), "ranking 1: the weight -2.0 is not a finite number of 0 or"),
    (orders(TWO, weights=[1, 2, 3]), "weights must have one entry for each of 2 rankings, not 3"),
    (
        orders(TWO, weights=np.ma.array([1, 2], mask=[0, 1])),
        "row 1: weights must have no masked cell",
    ),
    (
        orders(TWO, targets=["x", 0.5]),
        "ranking 1: target must be a whole number or text that is not empty, not 0.5",
    ),
    (orders(TWO, weights=np.array([True, False])), "ranking 0: the weight np.True_ is not"),
    (orders(TWO, weights=np.array(["1", "2"])), "ranking 0: the weight np.str_('1') is not"),
    (orders(TWO, weights=["1", 2]), "ranking 0: the weight '1' is not"),
    (orders(TWO, targets=["x", ""]), "text that is not empty, not ''"),
    (orders({"x": ["a", "b"]}, targets="y"), "are the keys of the dict"),
    (orders({"x": "ab"}), "target 'x': orders must be a list of names, not 'ab'"),
    (orders(TWO, kind="bottom"), "ranking 0: kind must be 'top' or 'subset', not 'bottom'"),
    # Tables of numbers
    (positions([[1, 2, np.inf]]), "ranking 0, item 'c': positions must be 0 (not listed) or more"),
    (positions([[1, 2, 3], [0, 0, NAN]]), "ranking 1: the ranking is empty"),
    (positions([[1, 2]]), "positions must have one column for each of the 3 items, not shape"),
    (scores([[1, 2, NAN]]), "ranking 0, item 'c': scores must be numbers (with kind=\"subset\""),
    (scores(MASKED), "row 1, column 1: scores must have no masked cell"),
    (numbers([[0, 1], [2, 2]]), "ranking 1: item 'c' is listed more than once"),
    (numbers([[0, 1], [2, 3]]), "ranking 1: no item has the number 3"),
    # Pairs
    (pairs(losers=["b", "b", "c"]), "pair 1: item 'b' against itself"),
    (pairs(ties=[True, None, 1]), "pair 1: a tie must be True or False, not None"),
    (pairs(losers="abc"), "losers must be a list of names, not 'abc'"),
    (counts([[0, -1], [1, 0]]), "wins of 'a' and 'b' are -1: a count must be a finite number"),
    (counts([[0, 1], [1, 2]]), "wins of 'b' and 'b' are 2: an item cannot be compared with itself"),
    (counts([[0, 1], [1, 0]], [[0, 1], [2, 0]]), "ties of 'a' and 'b' are 1: the table must be"),
    # Tables
    (lambda: Rankings.from_scores([[1.0, 2.0]]), "scores have no column names: name the"),
    (lambda: rs.leaderboards.read_votes([["a"]]), "or Rankings, not [['a']]"),
    # Methods
    (lambda: AB.top(0), "k must be a whole number from 1 to 3, not 0"),
    (lambda: AB.top(np.array([1, 4])), "ranking 1: k must be a whole number from 1 to 3, not 4"),
    (lambda: AB.select(target="cta"), "no target 'cta' (did you mean 'cat'?)"),
    (lambda: AB.with_items(["a", "b"]), "unknown item 'c'"),
    (lambda: AB.with_items([*ABC, "z"]), "these rankings do not have 'z': give them the same"),
    (lambda: Rankings.concatenate([]), "expected a list of Rankings, not []"),
    # Statistics
    (lambda: rs.kendall_distance(VOTES, k=4), "k must be a whole number from 1 to 3, not 4"),
    (lambda: rs.agreement(VOTES[:1]), "W needs the rankings of at least two raters"),
    (
        lambda: rs.summarize(Rankings.from_orders(TWO, targets=["x", None])),
        "ranking 1: target must be given for all",
    ),
    (lambda: rs.summarize(VOTES, model=rs.Mallows), "model must be a model like PlackettLuce()"),
    (lambda: rs.kemeny(VOTES, "exact", time_limit=0), "time_limit must be positive, not 0"),
    (lambda: rs.kemeny(VOTES, time_limit=1), "time_limit applies to method='exact'"),
    (groups(np.repeat(["x", "y"], 2)[1:]), "groups must have one entry for each of 2"),
    (groups("xy"), "groups must have one entry for each of 2 rankings, not 'xy'"),
    (groups(["x", "x"]), "groups needs at least two different labels, not only 'x'"),
    # Models
    (lambda: rs.PlackettLuce(regularization=-1).fit(VOTES), "must be 0 or more and finite, not -1"),
    (lambda: rs.PlackettLuce.from_worths({"b": 0}), "worth of 'b' must be positive"),
    (lambda: WORTHS.sample(0), "n must be a whole number from 1 to 2147483648, not 0"),
    (lambda: rs.Mallows.from_center(["a", "b"], -1), "spread must be 0 or more, not -1"),
    (lambda: rs.Mallows.from_center(["a", "a"], 1), "center must name each only once"),
    (lambda: rs.BabingtonSmith(regularization=0).fit(VOTES), "positive and finite, not 0"),
    (lambda: rs.BabingtonSmith().fit(TIED), "cannot be fitted to ties"),
    (log_odds([[0, 1], [1, 0]]), "'a' over 'b' is 1.0, and of 'b' over 'a' 1.0"),
    (log_odds([[0, np.inf], [-np.inf, 0]]), "is inf, and of 'b' over 'a' -inf: both must be fin"),
    (lambda: log_odds(np.zeros((2, 2)))().log_prob(SUBSET), "does not define its probability"),
    (mixture(n_groups=0), "n_groups must be a whole number from 1 on, not 0"),
    (mixture(n_groups=3), "n_groups=3 needs at least as many raters, but there are 2"),
    (mixture(model=rs.DavidsonLuce()), "not DavidsonLuce()"),
    # Leaderboards
    (lambda: rs.leaderboard(TIED, ties="outcome"), "parameter of ties of 2 items is infinite"),
    (board(level=1), "level must be positive and below 1, not 1"),
    (board(ties="none"), "ties must be one of 'outcome', 'half', 'ignore'"),
    (board(scale="points"), "scale must be one of 'log-worth', 'elo'"),
    (board(n_draws=1), "n_draws must be a whole number from 2 on, not 1"),
    (board(covariates="length"), "covariates=('length',) names a column of a table"),
    (board(model=rs.Mallows()), "has no worths: use PlackettLuce"),
    (lambda: rs.leaderboard(PAIRS).votes_needed(0), "width must be positive"),
    (lambda: rs.leaderboard(PAIRS).next_pairs(0), "n must be a whole number"),
]


@pytest.mark.parametrize(("call", "message"), ARGUMENTS, ids=[text for _, text in ARGUMENTS])
def test_bad_arguments_are_refused_and_named(call, message):
    with pytest.raises(RankshotError) as caught:
        call()
    assert message in str(caught.value)


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
    same = rs.Rankings.from_orders(one)
    for call in (rs.kemeny, rs.borda, rs.copeland, rs.schulze):
        assert call(one).order == call(same).order
    assert rs.PlackettLuce().fit(one).mode_ == rs.PlackettLuce().fit(same).mode_
    assert rs.Mallows().fit(one).center_ == rs.Mallows().fit(same).center_
    assert rs.kendall_distance(one).tolist() == rs.kendall_distance(same).tolist()
    assert rs.summarize(one)[0].order == rs.summarize(same)[0].order
    assert rs.ranking.concordance(one) == rs.ranking.concordance(same)


@pytest.mark.parametrize("distance", [rs.kendall_distance, rs.ranking.mean_kendall_distance])
def test_rankings_of_a_subset_have_no_distance(distance):
    subset = Rankings.from_orders([["a", "b"]], items=ABC, kind="subset")
    with refuses("rankings", where="ranking 0"):
        distance(subset)


def test_statistics_of_no_rankings():
    none = VOTES[:0]
    assert rs.ranking.concordance(none) is None
    assert rs.kendall_distance(none).shape == (0, 0)
    for merge in (rs.kemeny, rs.borda, rs.agreement, rs.summarize, FIT):
        with refuses("rankings"):
            merge(none)


SEVERAL = "several targets are merged into one: 'cat', 'dog'"
FROM_ZERO = [[0, 1, 2], [2, 0, 1]]
# An item that won every vote would come last: it was named least often.
CHAIN = [["a", "b"], ["b", "c"], ["c", "d"], ["d", "e"], ["f", "a"]]
ALIKE = Rankings.from_pairs(["Pasta", "pasta_", "rice"], ["pasta_", "rice", "Pasta"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *((lambda call=call: call(AB), SEVERAL) for call in (rs.kemeny, rs.agreement, FIT)),
        (positions(FROM_ZERO), "holds 0, 1, …, 2: places start at 1"),
        (positions(FROM_ZERO, kind=["top", "subset"]), "holds 0, 1, …, 2: places start at 1"),
        (orders(CHAIN, None), 'at most 2 of 6 items, .* pass kind="subset"'),
        (lambda: rs.leaderboard(ALIKE), "nearly equal, .*: 'Pasta' and 'pasta_'"),
        (lambda: rs.PlackettLuce(max_iter=1).fit(VOTES), "the fit did not converge in 1 iter"),
    ],
)
def test_what_may_be_a_mistake_is_warned_of(call, message):
    with pytest.warns(UserWarning, match=message):
        call()


def test_short_lists_whose_kind_or_items_are_given_are_not_warned_of():
    Rankings.from_orders(CHAIN, kind="subset")
    Rankings.from_orders(CHAIN, items=list("abcdef"))


def test_the_caller_may_say_how_rows_are_called_in_messages():
    with pytest.raises(RankshotError, match=r"^sheet 1, row 12: unknown item 'z'; the items are"):
        Rankings.from_orders([["a"], ["z"]], items=["a"], where=lambda row: f"sheet 1, row {row}2")


# ---- Files

JSON_LINES = [
    ('{"ranking": ["a"', "bad.jsonl:3: not JSON (Expecting ',' delimiter"),
    ('{"ranking": "abc"}', 'bad.jsonl:3: expected an object with a list "ranking", not {'),
    ('{"ranking": ["b", ["a", "b"]]}', "bad.jsonl:3: item 'b' is listed more than once"),
    ('{"ranking": ["a"], "weight": NaN}', "bad.jsonl:3: the weight nan is not a finite number"),
    ('{"ranking": [["a", "b"]], "k": 3}', "bad.jsonl:3: k must be a whole number from 1 to 2"),
    ('{"ranking": ["a"], "wieght": 3}', "bad.jsonl:3: field 'wieght': did you mean 'weight'"),
]
MALFORMED = [
    "1:", "1", "1,2", "1: 1,", "1: 1,,2", "1: {1,2", "1: 1,2}", "1: {1,{2,3}}", "1: {}",
    "1: 1: 2", "1: 4", "1: 18446744073709551617", "1: 1 2", "-1: 1", "1234567890123456: 1", "1: ١",
    "1.5: 1", "1: 1,{2,3", "1: {1}{2}",
]  # fmt: skip
PREFLIB = [
    (".toi", HEADER + "a > b\n", "bad.toi:4: expected 'count: 1,2,{3,4}', as in PrefLib files"),
    (".toi", HEADER + "1: 1,b,3\n", "not '1: 1,b,3'"),
    *(
        (".toi", f"{HEADER}2: 1,2\n{line}\n", "bad.toi:5: expected 'count: 1,2,{3,4}', as")
        for line in MALFORMED
    ),
    (".toi", HEADER + "1: 1,{2,1}\n", "bad.toi:4: item 'a' is listed more than once"),
    (".soi", HEADER + "2: 1\n1: 1,{2,3}\n", "bad.soi:5: has ties, which .soi does not allow"),
    (".soc", HEADER + "1: 3,2\n", "bad.soc:4: does not list all items, which .soc does not allow"),
    (".soi", "# NUMBER ALTERNATIVES: 0\n" + HEADER + "1: 1\n", "0 alternatives are announced,"),
    (".soc", HEADER, "bad.soc: contains no rankings"),
    (
        ".tab",
        "a,b\n",
        "bad.tab: unknown file extension '.tab'; expected .jsonl, .ndjson, .parquet, .soc",
    ),
]
WRITTEN = [
    (AB, "nowhere/bad.jsonl", "bad.jsonl: cannot write there (No such file or directory)"),
    (AB, "bad.soc", "ranking 0: does not list all items, which .soc does not allow"),
    (AB, "bad.soi", "ranking 0: PrefLib files cannot hold several targets: select"),
    (Rankings.from_orders([[["a", "b"]]]), "bad.soi", "ranking 0: has ties, which .soi does not"),
    (Rankings.from_orders(TWO, kind="subset"), "bad.soi", "ranking 0: PrefLib files cannot hold "),
    (Rankings.from_orders([["a\nb"]]), "bad.soc", "PrefLib files cannot hold line breaks in names"),
]


@pytest.mark.parametrize(
    ("ending", "text", "message"),
    [
        *(
            (".jsonl", f'{{"ranking": ["a", "b", "c"]}}\n\n{bad}\n', text)
            for bad, text in JSON_LINES
        ),
        *PREFLIB,
    ],
)
def test_bad_files_are_refused_on_their_line(ending, text, message, tmp_path):
    path = tmp_path / f"bad{ending}"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RankshotError) as caught:
        read_rankings(path, ABC if "unknown item" in message else None)
    assert message in str(caught.value)


@pytest.mark.parametrize(("value", "name", "message"), WRITTEN)
def test_what_a_file_cannot_hold_is_not_written(value, name, message, tmp_path):
    with pytest.raises(RankshotError) as caught:
        write_rankings(value, tmp_path / name)
    assert message in str(caught.value)
