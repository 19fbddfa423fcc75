"""The paper's equations, one test each, against the formulas written out in plain Python.

An order lists items, best first; ``place[i]`` is the paper's π(i), counted from 1.
"""

from dataclasses import replace
from itertools import combinations, permutations, product
from math import exp, log, prod

import numpy as np
import pytest

import rankshot as rs
from rankshot.zeroshot.paper.likelihoods import babington_smith, plackett_luce

ITEMS = ("a", "b", "c", "d", "e")
C = len(ITEMS)
SEEN = ["airplane", "automobile", "bird", "deer", "dog", "frog", "horse", "ship"]
LENGTHS = pytest.mark.parametrize("K", [1, 3, 5])


def rankings(orders, **options):
    return rs.Rankings.from_orders(orders, items=ITEMS, **options)


def top_lists(K, items=ITEMS):
    return list(permutations(items, K))


def completed(order, items=ITEMS):
    """The list and, in any order, what comes after it."""
    return [*order, *(item for item in items if item not in order)]


def places(order):
    return {item: place for place, item in enumerate(order, 1)}


def scores_by_name(rng):
    return dict(zip(ITEMS, rng.normal(scale=2, size=C).tolist(), strict=True))


def pairs_by_name(rng):
    """Antisymmetric f_ij, by names; and the same as a row of one-vs-one scores."""
    row = rng.normal(scale=0.5, size=C * (C - 1) // 2)
    f = {}
    for (i, j), value in zip(combinations(ITEMS, 2), row.tolist(), strict=True):
        f[i, j], f[j, i] = value, -value
    return f, row[None]


def as_row(f):
    return np.array([[f[item] for item in ITEMS]])


# ------------------------------------------------------------------ rankings of two targets


def test_equation_01_ranking_of_cat():
    """[horse, deer, …, automobile, airplane]; d(cat, dog) < d(cat, automobile)."""
    [cat] = rs.WordNet("wup").similarity(["cat"], SEEN).to_rankings().orders()
    assert cat == ["dog", ["deer", "horse"], "bird", "frog", ["automobile", "ship"], "airplane"]


def test_equation_02_ranking_of_truck():
    """[automobile, ship, …, deer, horse]; d(truck, automobile) < d(truck, dog)."""
    [truck] = rs.WordNet("wup").similarity(["truck"], SEEN).to_rankings().orders()
    assert truck[:2] == ["automobile", "ship"]
    assert truck[-1] == ["deer", "horse"]


# ------------------------------------------------------------------ the deterministic method


def kendall(first, second):
    """|{(i, j) : π1(i) > π1(j) and π2(i) < π2(j)}|."""
    a, b = places(first), places(second)
    return sum(a[i] > a[j] and b[i] < b[j] for i, j in product(first, repeat=2))


def test_equation_03_deterministic_ranking(rng):
    """z(x) = argmin_z d(π(x), π_z)."""
    semantic = {z: rng.permutation(ITEMS).tolist() for z in ("u", "v", "w")}
    head = rs.zeroshot.paper.DeterministicRanking(k=None).fit(
        rankings(semantic.values(), targets=list(semantic))
    )
    for _ in range(20):
        f = scores_by_name(rng)
        pi_x = sorted(ITEMS, key=f.get, reverse=True)
        nearest = min(semantic, key=lambda z, pi_x=pi_x: (kendall(pi_x, semantic[z]), z))
        assert head.predict(as_row(f)) == [nearest]


def test_equation_04_kendall_distance():
    orders = list(permutations("abcd"))
    d = rs.kendall_distance(rs.Rankings.from_orders(orders, items=list("abcd")))
    np.testing.assert_array_equal(d, [[kendall(p, q) for q in orders] for p in orders])


def critchlow(first, second, K, *, as_printed):
    """Equation 5 of two full orders. The paper's D has π1(i) > K and π2(i) > K."""
    n, a, b = len(first), places(first), places(second)
    A = [i for i in a if a[i] <= K and b[i] <= K]
    B = [i for i in a if a[i] <= K and b[i] > K]
    D = [i for i in a if a[i] > K and ((b[i] > K) if as_printed else (b[i] <= K))]
    inverted = sum(a[i] < a[j] and b[i] > b[j] for i, j in product(A, repeat=2))
    return (
        inverted + len(B) * (n + K - (len(B) - 1) / 2) - sum(a[i] for i in B) - sum(b[i] for i in D)
    )


def hausdorff(first, second, K, items):
    """The largest distance from a completion of one list to the nearest of the other."""
    A, B = (
        [(*order[:K], *rest) for rest in permutations(sorted(set(items) - set(order[:K])))]
        for order in (first, second)
    )
    d = np.array([[kendall(x, y) for y in B] for x in A])
    return max(d.min(axis=1).max(), d.min(axis=0).max())


@pytest.mark.parametrize("K", [1, 2, 3])
def test_equation_05_top_k_kendall_distance(K):
    """With D = {π1(i) > K, π2(i) ≤ K}; as printed it is never the Hausdorff distance."""
    items = list("abcd")
    orders = [completed(head, items) for head in top_lists(K, items)]
    d = rs.kendall_distance(rs.Rankings.from_orders(orders, items=items), k=K)
    for (i, first), (j, second) in product(enumerate(orders), repeat=2):
        truth = hausdorff(first, second, K, items)
        assert d[i, j] == truth
        assert critchlow(first, second, K, as_printed=False) == truth
        assert critchlow(first, second, K, as_printed=True) != truth


# ------------------------------------------------------------------ the sum over rankings


def plackett_luce_by_hand(order, v):
    """Π_i v_i / Σ_{j ≥ i} v_j over the first K."""
    whole = completed(order)
    return prod(v[whole[i]] / sum(v[j] for j in whole[i:]) for i in range(len(order)))


def stage_counts(order, center):
    """V_j: items after place j that the centre puts before the one there."""
    rank, whole = places(center), completed(order)
    return [
        sum(rank[later] < rank[item] for later in whole[j + 1 :]) for j, item in enumerate(order)
    ]


def mallows(order, center, spread):
    n, K = len(center), len(order)
    phi = prod((1 - exp(-(n - j + 1) * spread)) / (1 - exp(-spread)) for j in range(1, K + 1))
    return exp(-spread * sum(stage_counts(order, center))) / phi


def three_targets():
    return rankings(
        [["a", "b", "c"], ["b", "a", "d"], ["e", "d"], ["d", "e", "c"], ["c", "a"], ["c", "e"]],
        targets=["u", "u", "v", "v", "w", "w"],
    )


@pytest.mark.parametrize("posterior", ["consensus", "mean", "sum"])
def test_equation_06_the_label_depends_on_the_ranking_alone(rng, posterior):
    """x → π → z: inputs that have the same P(π|x) have the same P(z|x)."""
    head = rs.ProbabilisticRanking(k=2, posterior=posterior, decay=0).fit(three_targets())
    f = rng.normal(size=(4, C))
    np.testing.assert_allclose(head.predict_proba(f + 7), head.predict_proba(f), rtol=1e-12)
    # One-vs-one and K = 1: only Σ_j f_ij matters, which going round a → b → c → a leaves alone.
    head = rs.ProbabilisticRanking(k=1, posterior=posterior, decay=0).fit(three_targets())
    pairs = rng.normal(size=(4, C * (C - 1) // 2))
    round_trip = {("a", "b"): 3.0, ("b", "c"): 3.0, ("a", "c"): -3.0}
    cycle = [round_trip.get(pair, 0.0) for pair in combinations(ITEMS, 2)]
    np.testing.assert_allclose(
        head.predict_proba(pairs + cycle), head.predict_proba(pairs), rtol=1e-12
    )


@pytest.mark.parametrize("prior", [rs.PlackettLuce(), rs.Mallows()])
def test_equation_07_sum_over_rankings(rng, prior):
    """P(z|x) = Σ_π P(π|x) P(z) P(π|z) / Σ_z P(z) P(π|z), with a uniform P(z)."""
    K = 2
    head = rs.ProbabilisticRanking(k=K, prior=prior, posterior="sum").fit(three_targets())

    def likelihood(pi, z):
        model = head.priors_[z]
        if isinstance(model, rs.Mallows):
            return mallows(pi, model.center_, model.spread_)
        return plackett_luce_by_hand(pi, dict(zip(model.items_, model.worths_, strict=True)))

    f = scores_by_name(rng)
    v = {item: exp(f[item]) for item in ITEMS}
    expected = [
        sum(
            plackett_luce_by_hand(pi, v) * likelihood(pi, z) / sum(likelihood(pi, y) for y in "uvw")
            for pi in top_lists(K)
        )
        for z in "uvw"
    ]
    np.testing.assert_allclose(head.predict_proba(as_row(f)), [expected], rtol=1e-10)


# ------------------------------------------------------------------ models of rankings


@LENGTHS
def test_equation_08_plackett_luce(rng, K):
    v = {item: exp(f) for item, f in scores_by_name(rng).items()}
    log_prob = rs.PlackettLuce.from_worths(v).log_prob(rankings(top_lists(K)))
    np.testing.assert_allclose(
        np.exp(log_prob), [plackett_luce_by_hand(pi, v) for pi in top_lists(K)]
    )


def test_equation_09_plackett_luce_log_likelihood(rng):
    """Of the rankings fitted; no worths near those found have a larger one."""
    orders = [rng.permutation(ITEMS)[: rng.integers(2, C)].tolist() for _ in range(20)]

    def log_likelihood(v):
        return sum(
            log(v[item]) - log(sum(v[later] for later in completed(pi)[i:]))
            for pi in orders
            for i, item in enumerate(pi)
        )

    model = rs.PlackettLuce(regularization=0).fit(rankings(orders))
    found = dict(zip(ITEMS, model.worths_.tolist(), strict=True))
    assert model.log_likelihood_ == pytest.approx(log_likelihood(found), rel=1e-12)
    for item, factor in product(ITEMS, (0.99, 1.01)):
        assert log_likelihood({**found, item: found[item] * factor}) < log_likelihood(found)


def test_equation_10_stage_counts_add_up_to_the_distance(rng):
    """d(π, π_0) = Σ_j V_j(π π_0⁻¹)."""
    center = rng.permutation(ITEMS).tolist()
    distance = rs.kendall_distance(rankings(top_lists(C)), rankings([center]))[:, 0]
    np.testing.assert_array_equal(distance, [sum(stage_counts(p, center)) for p in top_lists(C)])


@LENGTHS
def test_equation_11_mallows(rng, K):
    center = rng.permutation(ITEMS).tolist()
    log_prob = rs.Mallows.from_center(center, spread=0.7).log_prob(rankings(top_lists(K)))
    truth = [mallows(pi, center, 0.7) for pi in top_lists(K)]
    np.testing.assert_allclose(np.exp(log_prob), truth)
    assert sum(truth) == pytest.approx(1)


def test_equation_12_kemeny_consensus(rng):
    """argmin_π0 Σ_i d(π_i, π_0)."""
    votes = [rng.permutation(ITEMS).tolist() for _ in range(7)]
    cost = {pi: sum(kendall(vote, pi) for vote in votes) for pi in top_lists(C)}
    found = rs.kemeny(rankings(votes), method="exact")
    assert cost[tuple(found.order)] == min(cost.values()) == found.score
    assert cost[rs.Mallows(method="exact").fit(rankings(votes)).center_] == min(cost.values())


def babington_smith_by_hand(order, f):
    """Π_{i ≤ K} Π_{j > i} e^{f_ij}."""
    whole = completed(order)
    return prod(
        exp(f[whole[i], whole[j]]) for i in range(len(order)) for j in range(i + 1, len(whole))
    )


@LENGTHS
def test_equation_13_babington_smith(rng, K):
    f, _ = pairs_by_name(rng)
    table = [[2 * f.get((i, j), 0.0) for j in ITEMS] for i in ITEMS]
    model = rs.BabingtonSmith.from_log_odds(table, items=ITEMS)
    weight = np.array([babington_smith_by_hand(pi, f) for pi in top_lists(K)])
    prob = np.exp(model.log_prob(rankings(top_lists(K))))
    np.testing.assert_allclose(prob, weight / weight.sum())


# ------------------------------------------------------------------ scorers and classifiers


@LENGTHS
def test_equation_14_plackett_luce_scorer(rng, K):
    f = scores_by_name(rng)
    v = {item: exp(f[item]) for item in ITEMS}
    prob = np.exp(plackett_luce(rankings(top_lists(K)), as_row(f)))
    np.testing.assert_allclose(prob, [[plackett_luce_by_hand(pi, v) for pi in top_lists(K)]])


@LENGTHS
def test_equation_15_babington_smith_scorer(rng, K):
    f, row = pairs_by_name(rng)
    weight = np.exp(babington_smith(rankings(top_lists(K)), row))[0]
    truth = np.array([babington_smith_by_hand(pi, f) for pi in top_lists(K)])
    np.testing.assert_allclose(weight / weight.sum(), truth / truth.sum())


def check_classifier(rng, K, draw):
    """P(z|x) and the decision, where ``draw`` makes a row of scores and says P(π|x) of it."""
    merged = {z: rng.permutation(ITEMS).tolist() for z in "uvw"}
    head = rs.ProbabilisticRanking(k=K, posterior="consensus", decay=0)
    head.fit(rankings(merged.values(), targets=list(merged)))
    for _ in range(10):
        row, prob = draw()
        p = {z: prob(pi[:K]) for z, pi in merged.items()}
        expected = [p[z] / sum(p.values()) for z in "uvw"]
        np.testing.assert_allclose(head.predict_proba(row), [expected], rtol=1e-10)
        assert head.predict(row) == [max(p, key=p.get)]


@LENGTHS
def test_equation_16_classifier_from_scores_of_classes(rng, K):
    def draw():
        f = scores_by_name(rng)
        v = {item: exp(f[item]) for item in ITEMS}
        return as_row(f), lambda pi: plackett_luce_by_hand(pi, v)

    check_classifier(rng, K, draw)


def test_several_rankings_of_a_class_are_averaged_by_their_weights(rng):
    votes = replace(three_targets(), weights=np.array([1, 3, 1, 1, 2, 0.5]))
    each = rankings(votes.orders(), targets=[f"{i}" for i in range(len(votes))])
    values = rng.normal(size=(4, C))
    # One class for each ranking: its log-posterior is log P(π|x), minus that of equal scores.
    values = rs.Scores(values, ITEMS)
    log_prob = rs.ProbabilisticRanking(k=3).fit(each)._log_posterior(values)
    parts = [votes.targets == z for z in "uvw"]
    expected = [np.average(log_prob[:, own], axis=1, weights=votes.weights[own]) for own in parts]
    found = rs.ProbabilisticRanking(k=3).fit(votes)._log_posterior(values)
    np.testing.assert_allclose(found, np.transpose(expected), rtol=1e-12)


@LENGTHS
def test_equation_17_classifier_from_scores_of_pairs(rng, K):
    def draw():
        f, row = pairs_by_name(rng)
        return row, lambda pi: babington_smith_by_hand(pi, f)

    check_classifier(rng, K, draw)


def test_equation_18_direct_similarity(rng):
    """P(z|x) ∝ Π_k (P(y_k|x) / P(y_k))^{y_k^z}, over the most similar classes."""
    w = {z: dict(zip(ITEMS, rng.random(C).tolist(), strict=True)) for z in "uvw"}
    prior = dict(zip(ITEMS, rng.dirichlet(np.ones(C)).tolist(), strict=True))
    table = rs.Similarity([list(w[z].values()) for z in "uvw"], list("uvw"), ITEMS)
    head = rs.zeroshot.paper.DirectSimilarity(n_similar=3, class_prior=prior).fit(table)
    f = scores_by_name(rng)
    platt = {item: 1 / (1 + exp(-f[item])) for item in ITEMS}

    def p(z):
        similar = sorted(ITEMS, key=w[z].get, reverse=True)[:3]
        total = sum(w[z][y] for y in similar)
        return prod((platt[y] / prior[y]) ** (w[z][y] / total) for y in similar)

    expected = [p(z) / sum(map(p, "uvw")) for z in "uvw"]
    scores = rs.Scores(as_row(f), ITEMS, "one-vs-rest")
    np.testing.assert_allclose(head.predict_proba(scores), [expected], rtol=1e-10)
