"""Errors that are clustered by rater, against numerical derivatives; covariates of a match."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from pair_tables import draw_outcomes, draw_pairs, draw_votes, make_votes
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import expit
from scipy.stats import t as student

import rankshot as rs
from rankshot.ranking.models.plackett_luce_stages import find_gradients, log_prob
from rankshot.ranking.models.robust_errors import find_units, sum_squares
from refusals import refuses

NAMES, THETA = list("abcde"), np.linspace(1, -1, 5)


def differentiate(f, at, h=1e-5):
    """Return the derivatives of each value of f, one column per parameter."""
    steps = h * np.eye(at.size)
    return np.array([(f(at + step) - f(at - step)) / (2 * h) for step in steps]).T


def correct(s, h, q, total):
    """Return the sums of raters as CR2 corrects them, and degrees of freedom, by explicit matrices.

    One parameter after the other: ``h`` and ``q`` are the information and the variance by chance of
    each rater, and ``total`` is all information.
    """
    a, share = h / total, h.sum(axis=0) / total

    def after(w, k):
        """Return the covariance of s after the fit, if it is w before and that of nobody alike."""
        unlike = np.eye(len(a)) - np.outer(a[:, k], np.ones(len(a)))
        rest = w.sum() * (1 / share[k] - 1) * np.outer(a[:, k], a[:, k])
        return unlike @ np.diag(w) @ unlike.T + rest

    columns = range(a.shape[1])
    squares = (s**2).sum() - sum(after(q[:, k], k).trace() for k in columns)
    tau = max(0, squares / sum(after(h[:, k] ** 2, k).trace() for k in columns))
    w = q + tau * h**2
    left = np.array([np.diag(after(w[:, k], k)) for k in columns]).T
    same, rest = 0.0, 1 - share
    if rest.max() > 1e-9:
        # Further raters add their tastes to the sum over the raters, and the same raters do not.
        by_chance = rest**2 * q.sum(axis=0) + share**2 * (rest / share * q.sum(axis=0))
        further = tau * (rest**2 + share * rest) * (h**2).sum(axis=0)
        squares = s.sum(axis=0) ** 2
        same = np.clip(1 - (squares.sum() - by_chance.sum()) / further.sum(), 0, 1)
    scale = (1 - same) / share + same / share**2
    s = s * np.sqrt(np.divide(w, left, out=np.ones_like(w), where=left > 0) * scale)
    degrees = []
    for k in columns:
        unlike = np.diag(a[:, k]) - np.outer(a[:, k], a[:, k])
        matrix = unlike / np.sqrt(np.outer(1 - a[:, k], 1 - a[:, k]))
        degrees.append(matrix.trace() ** 2 / (matrix**2).sum())
    return s, degrees


def loop_over_raters(log_probs, at, raters, weights, ridge, named=None):
    """Return A⁻¹ B A⁻¹ of log-worths that add up to zero and of the parameters after, and degrees.

    ``named`` says which rankings have a rater.
    """
    slopes = differentiate(log_probs, at)
    bend = differentiate(lambda x: differentiate(log_probs, x).T @ weights, at, 1e-4)
    C = len(NAMES)
    prior = np.zeros_like(bend)
    prior[:C, :C] = ridge * (np.eye(C) - 1 / C)
    inverse = np.linalg.pinv(prior - bend, rcond=1e-6)
    named = np.ones(len(raters), bool) if named is None else named
    rows = [np.flatnonzero((raters == name) & named) for name in np.unique(raters[named])]
    s = np.array([weights[some] @ slopes[some] for some in rows])
    counts = weights if np.all(weights % 1 == 0) else weights**2
    h, q = (np.array([w[some] @ slopes[some] ** 2 for some in rows]) for w in (weights, counts))
    s, degrees = correct(s, h, q, weights @ slopes**2)
    found = inverse @ s.T @ s @ inverse
    centre = np.eye(at.size)
    centre[:C, :C] -= 1 / C
    return centre @ found @ centre, np.broadcast_to(degrees, at.size)


def check_errors(board, log_probs, at, raters, weights, ridge=0.01, rel=1e-3, named=None):
    """Hold the covariance of a board against a loop over raters, which is returned."""
    V, degrees = loop_over_raters(log_probs, at, raters, weights, ridge, named)
    place = [NAMES.index(item) for item in board.items]
    assert board.covariance == pytest.approx(V[np.ix_(place, place)], rel=rel, abs=1e-6)
    return V, degrees[[*place, *range(len(place), len(degrees))]]


def name_raters(rankings, n):
    raters = np.array([f"p{i % n}" for i in range(len(rankings))], object)
    return replace(rankings, raters=raters)


@pytest.mark.parametrize("kind", ["top", "subset"])
def test_derivatives_of_rankings_with_ties(random_rankings, rng, kind):
    rankings = random_rankings(n_items=8, n=30, kind=kind, shortest=2)
    theta = rng.normal(size=8)
    wanted = differentiate(lambda x: log_prob(rankings, rankings.items, x), theta)
    assert find_gradients(rankings, theta).toarray() == pytest.approx(wanted, abs=1e-7)


@pytest.mark.parametrize("kind", ["top", "subset"])
@pytest.mark.parametrize("every", [1, 5])
def test_errors_are_clustered_by_rater(random_rankings, rng, kind, every):
    """If one in five has no rater, it is of raters like the others."""
    votes = random_rankings(n_items=5, n=40, kind=kind, shortest=2, weights=rng.integers(1, 4, 40))
    votes = name_raters(votes, 7)
    raters, named = votes.raters.astype(str), (np.arange(40) % 5 > 0) | (every == 1)
    votes = replace(votes, raters=np.where(named, votes.raters, None))
    with nullcontext() if named.all() else pytest.warns(UserWarning, match="8 of 40"):
        board = rs.leaderboard(votes, rs.PlackettLuce(), min_votes=0)
    theta = rs.PlackettLuce().fit(votes).log_worths_

    def log_probs(x):
        return log_prob(votes, votes.items, x)

    _, degrees = check_errors(board, log_probs, theta, raters, votes.weights, named=named)
    assert board.degrees == pytest.approx(degrees)
    reach = student.ppf(0.975, board.degrees) * board.standard_errors
    assert board.intervals[:, 1] - board.log_worths == pytest.approx(reach)
    assert "40 rankings by 7 raters" in repr(replace(board, weight=40))


@pytest.fixture
def tied(rng):
    return draw_votes(rng, THETA, 120, NAMES, tie_parameter=0.8)


@pytest.fixture
def strict(rng):
    return draw_votes(rng, THETA, 120, NAMES)


def test_ties_as_outcomes_are_clustered_too(tied):
    votes = name_raters(tied, 9)
    board = rs.leaderboard(votes)
    a, b = votes.codes.reshape(-1, 2).T

    def log_probs(x):
        tie = x[-1] + (x[a] + x[b]) / 2
        total = np.exp(x[a]) + np.exp(x[b]) + np.exp(tie)
        return np.where(votes.rows_with_ties, tie, x[a]) - np.log(total)

    values = [board.log_worths[board.items.index(name)] for name in NAMES]
    at = np.append(values, np.log(board.tie_parameter))
    check_errors(board, log_probs, at, votes.raters.astype(str), votes.weights)


def test_half_wins_have_the_errors_of_their_votes(tied):
    """A tie of two equal items says exactly 1/2, with no chance in it."""
    votes = tied
    board = rs.leaderboard(votes, ties="half")
    a, b = votes.codes.reshape(-1, 2).T
    won = np.where(votes.rows_with_ties, 0.5, 1.0)

    def log_probs(x):
        d = x[a] - x[b]
        return won * np.log(expit(d)) + (1 - won) * np.log(expit(-d))

    at = minimize(lambda x: -log_probs(x).sum() + 0.005 * x @ x, np.zeros(5), tol=1e-12).x
    check_errors(board, log_probs, at, np.arange(len(votes)), np.ones(len(votes)), rel=2e-3)


def test_only_ratios_of_weights_that_are_not_counts_matter(rng, strict):
    pandas = pytest.importorskip("pandas")
    winner, loser = zip(*strict.orders(), strict=True)
    weights = rng.uniform(0.5, 2, len(strict))
    errors = []
    for factor in (1, 100, 0.01):
        frame = pandas.DataFrame({"winner": winner, "loser": loser, "weight": factor * weights})
        errors.append(rs.leaderboard(frame).standard_errors)
    assert errors[1] == pytest.approx(errors[0], rel=1e-9)
    assert errors[2] == pytest.approx(errors[0], rel=1e-9)
    frame["weight"] = 100
    wanted = rs.leaderboard(strict)
    assert rs.leaderboard(frame).standard_errors == pytest.approx(wanted.standard_errors)
    # Counts are counts: a hundred times as many votes.
    counted = rs.leaderboard(frame, count="weight", model=rs.PlackettLuce(regularization=1e-9))
    once = rs.leaderboard(strict, rs.PlackettLuce(regularization=1e-11))
    assert counted.standard_errors == pytest.approx(once.standard_errors / 10, rel=1e-6)


@pytest.mark.parametrize(("first", "seed"), [(1, 0), (-3, 4), (-3, 6), (-3, 17)])
def test_squares_are_those_of_explicit_matrices(first, seed):
    """Rater 0 is nobody: some of these rankings are of the other raters."""
    rng = np.random.default_rng(seed)
    raters = np.maximum(rng.integers(first, 8, 70), 0)
    kept = rng.random((70, 6)) < 0.5
    slopes = (rng.normal(size=(70, 6)) + rng.normal(size=(8, 6))[raters]) * kept
    # At a maximum of the likelihood, all derivatives add up to zero.
    slopes -= kept * slopes.sum(axis=0) / kept.sum(axis=0)
    units = find_units(raters, np.ones(70), np.arange(70))
    B, degrees, _ = sum_squares(csr_array(slopes), np.ones(70), units)
    sums = np.array([slopes[raters == g].sum(axis=0) for g in range(1, 8)])
    h = np.array([(slopes[raters == g] ** 2).sum(axis=0) for g in range(1, 8)])
    sums, wanted = correct(sums, h, h, (slopes**2).sum(axis=0))
    assert pytest.approx(sums.T @ sums) == B
    assert degrees == pytest.approx(wanted)


def as_table(votes, **columns):
    pandas = pytest.importorskip("pandas")
    a, b = np.array(votes.items)[votes.codes.reshape(-1, 2)].T
    winner = np.where(votes.rows_with_ties, "tie", "left")
    return pandas.DataFrame({"left": a, "right": b, "winner": winner, **columns})


@pytest.mark.parametrize("how", ["outcome", "half", "weights", "covariates"])
def test_a_single_rater_cannot_say_what_others_would(rng, tied, how):
    """Errors are those without a rater; they are never zero."""
    table = as_table(tied, length=rng.normal(size=120))
    options = {"ties": how} if how in {"outcome", "half"} else {}
    if how == "weights":
        table["weight"] = rng.uniform(0.5, 2, 120)
    if how == "covariates":
        options = {"covariates": ["length"]}
    wanted = rs.leaderboard(table, **options)
    with pytest.warns(UserWarning, match="one rater"):
        board = rs.leaderboard(table.assign(judge="ann"), **options)
    assert board.covariance == pytest.approx(wanted.covariance)
    assert board.standard_errors.min() > 0.1
    assert board.n_raters == 0


@pytest.mark.parametrize("ties", ["outcome", "half", "ignore"])
@pytest.mark.parametrize("n_raters", [2, 3, 5])
def test_copies_of_a_rater_are_not_certain(n_raters, ties):
    """Raters with equal votes have no variance between them, but their votes have."""
    winners, losers = list("xxyyzxzxyx"), list("yyzxxzyyzz")
    tied = [False] * 9 + [ties != "ignore"]
    options = {"ties": tied * n_raters}
    raters = [f"p{i}" for i in range(n_raters) for _ in winners]
    votes = rs.Rankings.from_pairs(winners * n_raters, losers * n_raters, raters=raters, **options)
    with pytest.warns(UserWarning, match="raters"):
        board = rs.leaderboard(votes, ties=ties)
    nobody = replace(votes, raters=np.full(len(votes), None))
    if ties != "half":
        assert board.covariance == pytest.approx(rs.leaderboard(nobody, ties=ties).covariance)
    assert board.n_raters == 0
    assert not board.clearly_better.any()


@pytest.mark.filterwarnings("ignore:some items always won", "ignore:the raters agree more")
@pytest.mark.parametrize(
    "orders",
    [[["x", "w"], ["x", "z"]], [["x", "y"], ["z", "w"]], [["x", "w"], ["w", "z"], ["z", "x"]]],
)
def test_raters_who_agree_in_everything_have_errors(orders):
    """Some of these items always won, and the errors of the others are rounding."""
    raters = [rater for rater in "pq" for _ in orders]
    votes = rs.Rankings.from_orders(orders * 2, items=list("wxyz"), raters=raters, kind="subset")
    board = rs.leaderboard(votes, min_votes=0)
    assert (np.diff(board.intervals) > 1).all()


def test_votes_that_are_all_ties_are_half_wins():
    votes = rs.Rankings.from_pairs(list("xyz") * 20, list("yzx") * 20, ties=[True] * 60)
    board = rs.leaderboard(votes)
    assert board.log_worths == pytest.approx(0)
    wins = rs.Rankings.from_pairs(list("xyz") * 20, list("yzx") * 20)
    assert board.covariance == pytest.approx(rs.leaderboard(wins).covariance)
    with refuses("ties", "outcome"):
        rs.leaderboard(votes, ties="outcome")


def test_two_way_clusters_add_up(rng):
    """Rater and prompt: the sum of both, minus what they share."""
    first, second = draw_pairs(rng, 600, 5)
    taste = THETA + rng.normal(size=(20, 1, 5)) + rng.normal(size=(15, 5))
    rater, prompt = np.arange(600) % 20, np.arange(600) // 40
    d = taste[rater, prompt, first] - taste[rater, prompt, second]
    votes = name_raters(make_votes(first, second, draw_outcomes(rng, d), NAMES), 20)
    prompts = np.array([f"q{i}" for i in prompt], object)
    by_rater, alone = rs.leaderboard(votes), rs.leaderboard(replace(votes, raters=prompts))
    each = np.array([f"{p}{r}" for p, r in zip(prompts, votes.raters, strict=True)], object)
    both = rs.leaderboard(replace(votes, raters=each))
    board = rs.leaderboard(votes, cluster=prompts)
    assert board.items == by_rater.items
    wanted = by_rater.covariance + alone.covariance - both.covariance
    assert np.linalg.eigvalsh(wanted).min() > -1e-9
    assert board.covariance == pytest.approx(wanted)
    assert np.all(board.degrees <= np.minimum(by_rater.degrees, alone.degrees) + 1e-9)
    table = as_table(votes, judge=votes.raters, prompt=prompts)
    assert rs.leaderboard(table, cluster="prompt").covariance == pytest.approx(board.covariance)
    with refuses("cluster", "prompt"):
        rs.leaderboard(votes, cluster="prompt")
    with pytest.raises(rs.RankshotError, match="cluster"):
        rs.leaderboard(votes, cluster=["a", "b", "c"])


def test_an_item_that_never_lost_keeps_its_wide_interval(strict):
    """All its derivatives are nearly zero: raters seem to agree on it exactly."""
    wins = rs.Rankings.from_pairs(["new"] * 30, ["a", "b", "c"] * 10, items=[*NAMES, "new"])
    votes = rs.Rankings.concatenate([strict.change_items(wins.items), wins])
    with pytest.warns(UserWarning, match="'new'"):
        by_rater = rs.leaderboard(name_raters(votes, 10))
    with pytest.warns(UserWarning, match="'new'"):
        alone = rs.leaderboard(votes)
    assert by_rater.items[0] == "new"
    assert by_rater.standard_errors[0] >= 0.99 * alone.standard_errors[0]


# ---- Covariates


@pytest.fixture(scope="module")
def styled():
    """Return votes with a length that helps, and the truth."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(2)
    n = 3000
    a, b = draw_pairs(rng, n, 5)
    length = rng.normal(size=(n, 2)) + 0.5 * THETA[np.stack([a, b], axis=1)]
    d = THETA[a] - THETA[b] + 0.6 * (length[:, 0] - length[:, 1]) + 0.25
    outcome = draw_outcomes(rng, d, 0.5)
    names = np.array(NAMES)
    return pandas.DataFrame(
        {
            "left": names[a], "right": names[b],
            "winner": np.array(["left", "right", "tie"])[outcome],
            "length_a": length[:, 0], "length_b": length[:, 1], "rater": np.arange(n) // 20,
        }
    )  # fmt: skip


@pytest.mark.parametrize("ties", ["outcome", "half", "ignore"])
def test_covariates_are_fitted_with_the_worths(styled, ties):
    board = rs.leaderboard(styled, covariates=["length", "position"], ties=ties)
    found = [styled[name].map(NAMES.index).to_numpy() for name in ("left", "right")]
    gap = (styled.length_a - styled.length_b).to_numpy()
    sign = styled.winner.map({"left": 1.0, "right": -1.0, "tie": 0.0}).to_numpy()
    kept = (sign != 0) | (ties != "ignore")

    def log_probs(x):
        d = x[found[0]] - x[found[1]] + gap * x[5] + x[6]
        delta = np.exp(x[7]) if ties == "outcome" else 0.0
        total = np.exp(d / 2) + np.exp(-d / 2) + delta
        tie = x[7] if ties == "outcome" else 0.0
        return (np.where(sign == 0, tie, sign * d / 2) - np.log(total))[kept]

    def loss(x):
        return -log_probs(x).sum() + x[:5].mean() ** 2

    start = np.zeros(7 + (ties == "outcome"))
    at = minimize(loss, start, tol=1e-10).x
    worths = [at[NAMES.index(item)] for item in board.items]
    assert board.log_worths == pytest.approx(worths - np.mean(at[:5]), abs=1e-3)
    values = [board.effects[name].value for name in ("length", "position")]
    assert values == pytest.approx(at[5:7], abs=1e-3)
    raters = styled.rater.to_numpy()[kept]
    V, degrees = check_errors(board, log_probs, at, raters, np.ones(kept.sum()), 0.0, 5e-3)
    low, high = board.effects["length"].interval
    reach = student.ppf(0.975, degrees[5]) * np.sqrt(V[5, 5])
    assert (high - low) / 2 == pytest.approx(reach, rel=5e-3)
    assert f"effect of length: {at[5]:.3g}" in repr(board)


def test_covariates_keep_the_wide_intervals_of_items_without_an_estimate(rng, strict):
    """An item that won all its votes, and two that no vote compares with the others."""
    wins = rs.Rankings.from_pairs(["new"] * 12, ["a", "b", "c"] * 4)
    apart = rs.Rankings.from_pairs(["x", "y"] * 10, ["y", "x"] * 10)
    for more, match in ((wins, "placed before 'new'"), (apart, "compared with 'x', 'y'")):
        items = tuple(sorted({*NAMES, *more.items}))
        votes = rs.Rankings.concatenate([strict.change_items(items), more.change_items(items)])
        table = as_table(votes, length=rng.normal(size=len(votes)))
        with pytest.warns(UserWarning, match=match):
            plain = rs.leaderboard(table, min_votes=0)
        with pytest.warns(UserWarning, match=match):
            board = rs.leaderboard(table, covariates="length", min_votes=0)
        for item in more.items[-2:]:
            mine, other = (x.standard_errors[x.items.index(item)] for x in (board, plain))
            assert mine == pytest.approx(other, rel=0.2)
            low, high = plain.rank_intervals[plain.items.index(item)]
            assert board.rank_intervals[board.items.index(item)].tolist() == [low, high]


def test_a_covariate_that_explains_all_votes_is_warned_of(strict):
    longer = np.linspace(1, 2, 120)
    table = as_table(strict, length=longer)
    with pytest.warns(UserWarning, match="'length'"):
        board = rs.leaderboard(table, covariates="length")
    assert np.isfinite(board.effects["length"].value)


def test_bad_covariates_are_refused(styled):
    strength = {item: number for number, item in enumerate(NAMES)}
    table = styled.assign(
        zero=0.0,
        words=2 * (styled["length_a"] - styled["length_b"]),
        size=styled["left"].map(strength) - styled["right"].map(strength),
    )
    for names in (["missing"], ["zero"], ["length", "words"], ["size"]):
        with refuses("covariates", ", ".join(names)):
            rs.leaderboard(table, covariates=names)
