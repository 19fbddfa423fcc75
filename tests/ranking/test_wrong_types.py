"""Values of a wrong type or range, for every parameter of the statistics of rankings.

Each is refused with the package's own error, which names the value.
"""

import numpy as np
import pytest

import rankshot as rs
from rankshot.core.errors import short_repr

ABC = list("abc")
VOTES = rs.Rankings.from_orders(
    [["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]], items=ABC, targets="t", raters=list("xyz")
)
PLACES = [[1, 2, 3]]
NOTHING = object()
VALUES = {
    "text": "1",
    "None": None,
    "True": True,
    "NaN": np.nan,
    "infinity": np.inf,
    "a fraction": 1.5,
    "a float": 2.0,
    "negative": -1,
    "zero": 0,
    "huge": 10**400,
    "complex": 1j,
    "bytes": b"1",
    "a list": [1, "x"],
    "a ragged list": [[1], [1, 2]],
    "a matrix": np.ones((2, 2)),
    "a dict": {"zz": "y"},
    "a set": {1},
    "an object": NOTHING,
    "a class": int,
}
LABELS = {"text", "None"}
NUMBERS = {"a fraction", "a float"}
SEEDS = {"None", "zero", "huge", "a ragged list"}


def build(method, **given):
    return lambda name: lambda value: method(**given, **{name: value})


orders = build(rs.Rankings.from_orders, orders=[ABC], items=ABC)
positions = build(rs.Rankings.from_positions, positions=PLACES, items=ABC)
scores = build(rs.Rankings.from_scores, scores=PLACES, items=ABC)


def fit(model, name):
    return lambda value: model(**{name: value}).fit(VOTES)


def pairs(name):
    return lambda value: rs.Rankings.from_pairs(["a"], ["b"], **{name: value})


def mixture(name):
    few = {"n_groups": 1, "n_starts": 1, "max_iter": 2}
    return lambda value: rs.RankingMixture(**{**few, name: value}).fit(VOTES)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("types") / "votes.jsonl"
    rs.write_rankings(VOTES, path)
    return path


PL = rs.PlackettLuce().fit(VOTES)
MALLOWS = rs.Mallows().fit(VOTES)
BS = rs.BabingtonSmith().fit(VOTES)

# For each parameter, how it is passed, and which of the values above are right.
PARAMETERS = {
    "from_orders(orders)": (lambda x: rs.Rankings.from_orders(x, items=ABC), set()),
    "from_orders(items)": (lambda x: rs.Rankings.from_orders([ABC], items=x), {"None"}),
    **{
        f"{method}({name})": (call(name), right)
        for method, call in (("from_orders", orders), ("from_positions", positions))
        for name, right in {
            "targets": LABELS,
            "sources": LABELS,
            "raters": LABELS,
            "weights": {"None"},
            "kind": set(),
        }.items()
    },
    "from_positions(positions)": (lambda x: rs.Rankings.from_positions(x, items=ABC), set()),
    "from_positions(items)": (lambda x: rs.Rankings.from_positions(PLACES, items=x), set()),
    "from_scores(scores)": (lambda x: rs.Rankings.from_scores(x, items=ABC), set()),
    "from_scores(k)": (scores("k"), {"None"}),
    "from_item_numbers(lists)": (lambda x: rs.Rankings.from_item_numbers(x, items=ABC), set()),
    "top(k)": (VOTES.top, set()),
    "with_items(items)": (VOTES.with_items, set()),
    "concatenate(parts)": (rs.Rankings.concatenate, set()),
    "concatenate(a part)": (lambda x: rs.Rankings.concatenate([VOTES, x]), set()),
    "select(target)": (lambda x: VOTES.select(target=x), {"None"}),
    "select(rater)": (lambda x: VOTES.select(rater=x), {"None"}),
    "read_rankings(path)": (lambda x, _: rs.read_rankings(x), set()),
    "read_rankings(items)": (lambda x, path: rs.read_rankings(path, x), {"None"}),
    "read_rankings(kind)": (lambda x, path: rs.read_rankings(path, kind=x), set()),
    "write_rankings(rankings)": (rs.write_rankings, set()),
    "write_rankings(path)": (lambda x: rs.write_rankings(VOTES, x), set()),
    **{
        function.__name__: (function, set())
        for function in (rs.agreement, rs.summarize, rs.ranking.concordance, rs.borda, rs.kemeny)
    },
    **{
        f"{distance.__name__}({name})": (call, right)
        for distance in (rs.kendall_distance, rs.ranking.mean_kendall_distance)
        for name, call, right in (
            ("a", distance, set()),
            ("b", lambda x, distance=distance: distance(VOTES, x), {"None"}),
            ("k", lambda x, distance=distance: distance(VOTES, k=x), {"None"}),
        )
    },
    "summarize(model)": (lambda x: rs.summarize(VOTES, x), {"None"}),
    "summarize(k)": (lambda x: rs.summarize(VOTES, k=x), {"None", "huge"}),
    "kemeny(method)": (lambda x: rs.kemeny(VOTES, x), set()),
    "kemeny(time_limit)": (
        lambda x: rs.kemeny(VOTES, "exact", time_limit=x),
        {"None", "infinity", *NUMBERS},
    ),
    "mallows_log_normalizer(spread)": (
        lambda x: rs.ranking.mallows_log_normalizer(x, 3),
        {"infinity", "zero", *NUMBERS},
    ),
    "mallows_log_normalizer(n_items)": (
        lambda x: rs.ranking.mallows_log_normalizer(1, x),
        {"zero"},
    ),
    "mallows_log_normalizer(k)": (
        lambda x: rs.ranking.mallows_log_normalizer(1, 3, x),
        {"None", "zero"},
    ),
    **{
        f"{type(model).__name__}.{name}": (call, right)
        for model in (PL, MALLOWS, BS)
        for name, call, right in (
            ("fit(rankings)", type(model)().fit, set()),
            ("log_prob(rankings)", model.log_prob, set()),
            ("sample(n)", model.sample, set()),
            ("sample(k)", lambda x, model=model: model.sample(1, x), {"None"}),
            (
                "sample(random_state)",
                lambda x, model=model: model.sample(1, random_state=x),
                SEEDS,
            ),
        )
    },
    "PlackettLuce(regularization)": (
        fit(rs.PlackettLuce, "regularization"),
        {"zero", *NUMBERS},
    ),
    "PlackettLuce(solver)": (fit(rs.PlackettLuce, "solver"), set()),
    "PlackettLuce(tol)": (fit(rs.PlackettLuce, "tol"), {"zero", *NUMBERS}),
    "PlackettLuce(max_iter)": (fit(rs.PlackettLuce, "max_iter"), {"huge"}),
    "PlackettLuce.standard_errors(rankings)": (PL.standard_errors, set()),
    "PlackettLuce.from_worths(worths)": (rs.PlackettLuce.from_worths, set()),
    "PlackettLuce.from_worths(a worth)": (
        lambda x: rs.PlackettLuce.from_worths({"a": x, "b": 1}),
        NUMBERS,
    ),
    "Mallows.from_center(center)": (
        lambda x: rs.Mallows.from_center(x, 1),
        {"a list", "a dict"},
    ),
    "Mallows.from_center(spread)": (
        lambda x: rs.Mallows.from_center(ABC, x),
        {"infinity", "zero", *NUMBERS},
    ),
    "Rankings.from_pairs(winners)": (lambda x: rs.Rankings.from_pairs(x, ["b"]), set()),
    "Rankings.from_pairs(ties)": (pairs("ties"), {"None"}),
    "Rankings.from_pairs(weights)": (pairs("weights"), {"None"}),
    "Rankings.from_pair_counts(wins)": (
        lambda x: rs.Rankings.from_pair_counts(x, items=ABC),
        set(),
    ),
    "read_pairs(path)": (lambda x, _: rs.read_pairs(x), set()),
    **{
        function.__name__: (function, set())
        for function in (
            *(
                rs.copeland,
                rs.schulze,
                rs.ranking.condorcet_winner,
                rs.ranking.smith_set,
            ),
            *(),
            *(rs.rank_biased_overlap, rs.leaderboard, rs.choose_n_groups),
        )
    },
    "rank_biased_overlap(p)": (lambda x: rs.rank_biased_overlap(VOTES, p=x), set()),
    "leaderboard(model)": (lambda x: rs.leaderboard(VOTES, x, n_draws=5), {"None"}),
    "leaderboard(level)": (lambda x: rs.leaderboard(VOTES, level=x, n_draws=5), set()),
    "leaderboard(method)": (lambda x: rs.leaderboard(VOTES, method=x, n_draws=5), set()),
    "leaderboard(random_state)": (
        lambda x: rs.leaderboard(VOTES, n_draws=5, random_state=x),
        SEEDS,
    ),
    "Mallows(method)": (fit(rs.Mallows, "method"), set()),
    "DavidsonLuce(regularization)": (
        fit(rs.DavidsonLuce, "regularization"),
        {"zero", *NUMBERS},
    ),
    "DavidsonLuce(max_iter)": (fit(rs.DavidsonLuce, "max_iter"), {"huge"}),
    "DavidsonLuce.sample(random_state)": (
        lambda x: rs.DavidsonLuce().fit(VOTES).sample(1, random_state=x),
        SEEDS,
    ),
    "PlackettLuceRegression(alpha)": (
        lambda x: rs.PlackettLuceRegression(alpha=x).fit(VOTES, np.eye(3)[:, :2]),
        {"zero", *NUMBERS},
    ),
    "PlackettLuceRegression.fit(features)": (
        lambda x: rs.PlackettLuceRegression().fit(VOTES, x),
        set(),
    ),
    "RankingMixture(model)": (mixture("model"), {"None"}),
    "RankingMixture(n_groups)": (mixture("n_groups"), set()),
    "RankingMixture(by)": (mixture("by"), set()),
    "RankingMixture(tol)": (mixture("tol"), NUMBERS),
    "RankingMixture(random_state)": (mixture("random_state"), SEEDS),
    "BabingtonSmith(regularization)": (fit(rs.BabingtonSmith, "regularization"), NUMBERS),
    "BabingtonSmith(tol)": (fit(rs.BabingtonSmith, "tol"), {"zero", *NUMBERS}),
    "BabingtonSmith(max_iter)": (fit(rs.BabingtonSmith, "max_iter"), {"huge"}),
    "BabingtonSmith.log_normalizer(k)": (BS.log_normalizer, set()),
    "BabingtonSmith.from_log_odds(log_odds)": (
        lambda x: rs.BabingtonSmith.from_log_odds(x, items=ABC),
        set(),
    ),
}


def is_named(value, text):
    """Whether a message names a value, or the shape or the number of values in it."""
    if isinstance(value, (str, bytes, list, set, dict, np.ndarray)):
        words = ("not", "shape", "entries", "unknown", "no ", "rows for", ", but")
        return any(word in text for word in words)
    shown = (short_repr(value), repr(value), f"shape {np.shape(value)}")
    return any(name in text for name in shown)


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.filterwarnings("ignore:.*converge")
def test_a_wrong_value_is_refused_and_named(name, path):
    call, right = PARAMETERS[name]
    for kind, value in VALUES.items():
        given = (
            (value, path) if name.startswith(("read_", "write_rankings(rankings)")) else (value,)
        )
        if kind in right:
            call(*given)
            continue
        try:
            call(*given)
        except rs.RankshotError as error:
            text = str(error)
        else:
            pytest.fail(f"{name}: {kind} is taken")
        assert is_named(value, text), (kind, text)


def test_a_wrong_name_of_a_parameter_is_a_type_error():
    with pytest.raises(TypeError, match="regularisation"):
        rs.PlackettLuce(regularisation=1)
    with pytest.raises(TypeError, match="methd"):
        rs.kemeny(VOTES, methd="exact")


def test_statistics_of_no_rankings():
    none = VOTES[:0]
    for model in (PL, MALLOWS, BS):
        assert model.log_prob(none).shape == (0,)
    assert BS.log_weight(none).shape == (0,)
    assert rs.ranking.concordance(none) is None
    assert rs.kendall_distance(none).shape == (0, 0)
    for merge in (rs.kemeny, rs.borda, rs.agreement, rs.summarize, PL.fit):
        with pytest.raises(rs.RankshotError, match="no rankings"):
            merge(none)
