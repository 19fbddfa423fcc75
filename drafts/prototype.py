"""Prototype of issue 28 (NumPy, SciPy, scikit-learn). `python prototype.py` runs its tests."""
from dataclasses import replace

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import log_softmax, logsumexp, softmax

# ---- 1. Examples: head * a + ridge regression of the examples * b; a and b by leave-one-out

RIDGE = 1.0                            # of features whose mean square length is 1
HEAD_WEIGHT, EXAMPLE_WEIGHT = 0.8, 0.2  # prior medians of a, and of b for one example per class
PRIOR_STD = np.array([0.25, 0.5])       # of log a and log b
RIDGES, PRIOR = (RIDGE,), np.log([HEAD_WEIGHT, EXAMPLE_WEIGHT])


def center_kernel(K, Kt=None, weights=None):
    """Products of features -> those of features minus their mean over the examples, mean square length 1."""
    w = np.full(len(K), 1 / len(K)) if weights is None else weights / weights.sum()
    r = K @ w
    c = w @ r
    scale = max(float((np.diag(K) - 2 * r + c) @ w), 1e-12)
    return (K - r - r[:, None] + c) / scale, None if Kt is None else (Kt - (Kt @ w)[:, None] - r + c) / scale


def fit_examples(h, y, K, ridges=RIDGES, prior=None, prior_std=PRIOR_STD, balanced=True):
    """Return (a, B, ridge, b): the logits of an input are a * log P_head + k(x)' B.

    h: (n, L) log-probabilities of the head for the examples; y: their columns; K: from `center_kernel`.
    """
    ridge = ridges[0]
    n, L = h.shape
    if prior is None:
        prior = np.log([HEAD_WEIGHT, EXAMPLE_WEIGHT * np.sqrt(n / L)])
    size = np.bincount(y, minlength=L)
    there = np.flatnonzero(size)
    w = size[there].mean() / size[y] if balanced else np.ones(n)
    Y = np.zeros((n, L))
    Y[:, there] = -1 / len(there)
    Y[np.arange(n), y] += 1
    inverse = np.linalg.inv(K + np.diag(ridge / w))
    A = inverse @ Y
    left_out = Y - A / np.diag(inverse)[:, None]      # exact leave-one-out predictions
    std = max(left_out[:, there].std(), 1e-12)
    several = size[y] > 1                             # a class's only example says nothing when left out
    hs, f, ys, ws = h[several], left_out[several] / std, y[several], w[several]
    rows = np.arange(len(ys))

    def loss(v):
        a, b = np.exp(v)
        log_p = log_softmax(a * hs + b * f, axis=1)
        P = np.exp(log_p)
        P[rows, ys] -= 1
        P *= ws[:, None]
        d = (v - prior) / prior_std
        return d @ d / 2 - ws @ log_p[rows, ys], np.array([a * (P * hs).sum(), b * (P * f).sum()]) + d / prior_std

    a, b = np.exp(minimize(loss, prior, jac=True, method="BFGS").x) if several.any() else np.exp(prior)
    return a, b / std * A, ridge, b


def predict_examples(h, Kt, a, B):
    """Logits; a class without examples gets what the classes with examples get on average."""
    f = Kt @ B
    none = ~B.any(axis=0)
    if none.any() and not none.all():
        f[:, none] = (logsumexp(f[:, ~none], axis=1) - np.log((~none).sum()))[:, None]
    return a * h + f


def add_unranked(h, n_unranked):
    """Log-probabilities with columns for classes that have examples and no ranking: the average class."""
    neutral = logsumexp(h, axis=1, keepdims=True) - np.log(h.shape[1])
    return np.concatenate([h, np.repeat(neutral, n_unranked, axis=1)], axis=1)


# ---- 2. Which inputs to label next


def suggest(Z, n, random_state=0):
    """Rows of Z (row-standardised scores) to label: the input nearest to the centre of each of n clusters."""
    from sklearn.cluster import KMeans
    km = KMeans(n, n_init=1, max_iter=20, random_state=random_state).fit(Z)
    d = ((Z - km.cluster_centers_[km.labels_]) ** 2).sum(axis=1)
    order = np.lexsort([d, km.labels_])
    first = np.unique(km.labels_[order], return_index=True)[1]
    return order[first]


# ---- 3. Evidence of another model


def standardize_evidence(g, scale=None):
    """Rows with mean 0, all divided by one number: the standard deviation over the batch."""
    g = g - g.mean(axis=1, keepdims=True)
    return g / ((g.std() or 1.0) if scale is None else scale)


def evidence_weight(h, g, most=1.0, share=0.4):
    """Default weight of standardised evidence g beside log-probabilities h, without labels.

    If errors are independent, the two agree for q_h q_g + (1 - q_h)(1 - q_g) / (L - 1) of the inputs. So the
    accuracy q_g follows from the agreement (its lower limit) and the head's mean confidence q_h.
    """
    n, L = h.shape
    same = np.mean(h.argmax(axis=1) == g.argmax(axis=1))
    same -= 1.64 * np.sqrt(max(same * (1 - same), 1 / n / L) / n)
    q = softmax(h, axis=1).max(axis=1).mean()
    by_chance = (1 - q) / (L - 1)
    accuracy = np.clip((same - by_chance) / max(q - by_chance, 1e-9), 1 / L, 0.98)

    def excess(log_c):
        return softmax(np.exp(log_c) * g, axis=1).max(axis=1).mean() - accuracy

    return 0.0 if excess(-6.0) >= 0 else min(most, share * np.exp(brentq(excess, -6.0, 6.0)) if excess(6.0) > 0 else most)


def fit_evidence(h, g, y):
    """Rehearsal: (a, c) of a * h + c * g by maximum likelihood on held-out seen classes."""
    rows = np.arange(len(y))
    found = minimize(lambda v: -log_softmax(v[0] * h + v[1] * g, axis=1)[rows, y].mean(), [1.0, 1.0],
                     method="L-BFGS-B", bounds=[(0.05, 20), (0, 20)])
    return found.x


# ---- 4. Trust in sources


def coherence(W, R):
    """How much the classes that rankings list rise and fall together, in standard errors above chance.

    W: (L, C) weights of the listed classes; R: correlations of the scores over the reference.
    """
    W = W[np.abs(np.nan_to_num(W)).sum(axis=1) > 0]
    off = R - np.diag(np.diag(R))
    mean = np.einsum("zi,ij,zj->z", W, off, W) / np.maximum(W.sum(axis=1) ** 2 - (W**2).sum(axis=1), 1e-9)
    if len(mean) < 2:
        return np.inf
    return (mean.mean() - off.sum() / (len(R) * (len(R) - 1))) / max(mean.std(ddof=1) / np.sqrt(len(mean)), 1e-12)


def source_weights(rankings, classes, correlations=None, mean_weights=None, least=1.64):
    """Return {source: weight}: raters 1, tables 0 beside raters, 0 for lists that are unrelated to R."""
    names = np.array([s or "" for s in rankings.sources], object)
    own = {s: rankings[names == s] for s in sorted(set(names))}
    strength = {s: np.inf if correlations is None else coherence(mean_weights(r), correlations) for s, r in own.items()}
    related = {s: x > least for s, x in strength.items()}
    if not any(related.values()):
        related[max(strength, key=strength.get)] = True

    def trust(s):
        return related[s], bool(own[s].rater_names), set(own[s].target_names) == set(classes)

    top = max(map(trust, own))
    return {s: float(trust(s) == top or trust(s)[:2] == (True, True)) for s in own}


def fill_in(rankings, weights):
    """Weigh rankings by source; classes that lose all their rankings keep those of the other sources."""
    names = np.array([s or "" for s in rankings.sources], object)
    w = rankings.weights * np.array([weights[s] for s in names])
    lost = ~np.isin(rankings.targets.astype(str), np.unique(rankings.targets[w > 0].astype(str)))
    return replace(rankings, weights=np.where(lost, rankings.weights, w))


# ---- 5. A reference that lacks classes

REFERENCE_COUNT = 10.0
LEAST_TRUST = {"multiclass": 0.5, "one-vs-rest": 0.0, "one-vs-one": 0.0}


def row_standardize(X):
    X = X - X.mean(axis=1, keepdims=True)
    return X / np.maximum(X.std(axis=1, keepdims=True), 1e-12)


def fit_reference(V, W, kind="multiclass", uncertainty=0.1):
    """Return (mean, std, slopes, alpha): log-posterior = ((row_standardize(X) - mean) / std) @ slopes.T.

    alpha_c = n_c / (n_c + 10), n_c = reference inputs whose highest score is c: how far column c is covered.
    At alpha = 0, a column keeps mean 0, variance 1 and no correlations: exactly the head without a reference.
    """
    C = V.shape[1]
    F = row_standardize(V)
    n = np.bincount(F.argmax(axis=1), minlength=C)
    alpha = np.maximum(n / (n + REFERENCE_COUNT), LEAST_TRUST[kind])
    center, spread = F.mean(axis=0), np.maximum(F.std(axis=0), 1e-6)
    Z = (F - center) / spread
    R = (Z.T @ Z / len(Z)) * np.sqrt(np.outer(alpha, alpha))
    R[np.diag_indices(C)] = 1.0
    slopes = np.linalg.solve(R + uncertainty * C * np.eye(C), W.T).T
    slopes /= np.sqrt(np.einsum("zi,ij,zj->z", slopes, R, slopes))[:, None]
    return alpha * center, spread**alpha, slopes, alpha


def coverage(V):
    """Simpson's effective number of predicted classes as a share of C (= `batch_refinement.variety`, at most 1)."""
    n = np.bincount(V.argmax(axis=1), minlength=V.shape[1])
    same = n @ (n - 1) / (n.sum() * (n.sum() - 1))
    return min(1.0, 1 / (V.shape[1] * same)) if same > 0 else 1.0


def blend_gates(with_reference, without, kappa):
    """Log-odds of new against seen: the gate with a reference counts as far as the reference covers the classes."""
    return kappa**2 * with_reference + (1 - kappa**2) * without


# ---- 6. Temperatures and intervals


def default_temperature(n_seen, alpha=0.0):
    """.8 without a reference, .5 with one that covers all, in between by alpha; more for more than 100 classes."""
    return 0.8 ** (1 - alpha) * 0.5**alpha * max(1.0, n_seen / 100) ** 0.2


def widen(estimate, low, high, tau=0.25):
    """Add what is not modelled (classes are not drawn at random): a standard deviation of tau log-odds."""
    e, lo, hi = (np.log(p / (1 - p)) for p in np.clip([estimate, low, high], 0.005, 0.995))
    low, high = e - np.hypot(e - lo, 1.96 * tau), e + np.hypot(hi - e, 1.96 * tau)
    return 1 / (1 + np.exp(-low)), 1 / (1 + np.exp(-high))


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    L, d, n = 5, 20, 8
    centers = rng.normal(size=(L, d))
    y = np.repeat(np.arange(L), n)
    X = centers[y] + rng.normal(size=(len(y), d))
    T = centers[y] + rng.normal(size=(len(y), d))
    h, ht = (log_softmax(rng.normal(size=(len(y), L)) + np.eye(L)[y], axis=1) for _ in range(2))
    K, Kt = center_kernel(X @ X.T, T @ X.T)
    a, B, _, b = fit_examples(h, y, K)
    both = np.mean(predict_examples(ht, Kt, a, B).argmax(1) == y)
    assert both > np.mean(ht.argmax(1) == y)
    inv = np.linalg.inv(K + np.eye(len(y)))      # leave-one-out is exact
    Y = np.eye(L)[y] - 1 / L
    A = inv @ Y
    keep = np.arange(len(y)) != 3
    direct = K[3, keep] @ np.linalg.solve(K[np.ix_(keep, keep)] + np.eye(len(y) - 1), Y[keep])
    assert np.allclose(Y[3] - A[3] / inv[3, 3], direct)
    some = y < 3                                  # classes 3 and 4 have no examples
    K2, Kt2 = center_kernel(K[np.ix_(some, some)], Kt[:, some])
    z = predict_examples(ht, Kt2, *fit_examples(h[some], y[some], K2)[:2])
    assert np.isfinite(z).all() and np.allclose(z[:, 3] - z[:, 4], fit_examples(h[some], y[some], K2)[0] * (ht[:, 3] - ht[:, 4]))
    one = [0, 8, 16, 24, 32]                      # one example per class: the prior decides
    a1, _, _, b1 = fit_examples(h[one], y[one], center_kernel(K[np.ix_(one, one)])[0])
    assert np.isclose(a1, HEAD_WEIGHT) and np.isclose(b1, EXAMPLE_WEIGHT)
    assert np.allclose(np.exp(add_unranked(h, 1))[:, -1], 1 / L)
    yy = rng.integers(L, size=2000)
    hh = log_softmax(rng.normal(size=(2000, L)) + 2 * np.eye(L)[yy], axis=1)
    good = standardize_evidence(2 * np.eye(L)[yy] + rng.normal(size=hh.shape))
    c, c0 = evidence_weight(hh, good), evidence_weight(hh, standardize_evidence(rng.normal(size=hh.shape)))
    assert c > 0.5 and c0 < 0.05, (c, c0)
    assert np.mean((hh + c * good).argmax(1) == yy) > max(np.mean(hh.argmax(1) == yy), np.mean(good.argmax(1) == yy))
    assert fit_evidence(hh, good, yy)[1] > 0.5
    V = rng.normal(size=(300, 30))
    W = rng.random((L, 30)) ** 4
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    V0 = V.copy(); V0[:, 0] += 100                # covers a single class: nothing else changes
    mean, std, slopes, alpha = fit_reference(V0, W, "one-vs-rest")
    assert (alpha[1:] == 0).all() and np.allclose(mean[1:], 0) and np.allclose(std[1:], 1)
    assert np.allclose(slopes, W) and coverage(V0) < 0.05 < coverage(V)
    assert len(set(suggest(row_standardize(V), 10))) == 10
    low, high = widen(0.6, 0.5, 0.7)
    assert low < 0.5 and high > 0.7
    print("ok")
