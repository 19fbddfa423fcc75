"""What is known besides rankings: labelled examples, and evidence of another model.

Both are added to the log-posteriors of a head, and have weights that follow from the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.sparse import issparse
from scipy.special import log_softmax, softmax
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.pipeline import FeatureUnion, make_union

from rankshot.core.errors import RankshotError, suggest_name
from rankshot.core.validation import as_names
from rankshot.zeroshot.scores import Scores, as_scores

Floats = NDArray[np.float64]
RIDGE = 1.0
"""The penalty, in units of the mean squared length of the features. From .3 to 3, the accuracy on
held-out seen classes is the same."""
USUAL_WEIGHTS = 0.8, 0.2
"""The usual weights of the head and of one example per class, chosen on held-out seen classes of
three data sets. The second grows with the square root of the number of examples per class."""
LOG_WEIGHT_STD = np.array([0.25, 0.5])
"""How far the logarithms of the weights may be from those of the usual ones."""
SHARE = 0.6
"""The share of the weight that evidence would deserve alone: head and evidence know much in common.
From .6 to 1, the accuracy on held-out seen classes is the same, also of noisy evidence."""
MOST_WEIGHT = 1.0
"""Larger weights were slightly better on held-out classes and riskier with noise."""
LOWER_LIMIT = 1.64
"""Standard errors: the agreement of a few inputs may be chance."""
LOG_WEIGHTS = (-6.0, 6.0)
"""The range of the logarithm of the weight."""


# ---- Weights and temperatures


class Weighed(NamedTuple):
    """What a head and something else say of labelled inputs, and the weights of these inputs."""

    by_head: Floats
    by_other: Floats
    labels: NDArray[np.intp]
    weight: Floats


def measure_loss(parts: Sequence[Weighed], a: float, b: float) -> tuple[float, Floats]:
    """Return -Σ weight · log P(label) for P = softmax(a by_head + b by_other), and its slopes.

    The slopes are the derivatives by a and b.
    """
    loss, slopes = 0.0, np.zeros(2)
    for by_head, by_other, labels, weight in parts:
        rows = np.arange(len(labels))
        log_proba = log_softmax(a * by_head + b * by_other, axis=1)
        excess = weight[:, None] * np.exp(log_proba)
        excess[rows, labels] -= weight
        loss -= float(weight @ log_proba[rows, labels])
        slopes += (excess * by_head).sum(), (excess * by_other).sum()
    return loss, slopes


def fit_temperature(
    tables: Sequence[tuple[Floats, NDArray[np.intp], Floats]], bounds: tuple[float, float]
) -> float:
    """Return the temperature that makes labels most probable.

    Each table has log-posteriors, the columns of the labels, and the weights of the inputs.
    """

    def loss(log_temperature: float) -> float:
        inverse = np.exp(-log_temperature)
        scaled = ((log_softmax(inverse * x, axis=1), y, weight) for x, y, weight in tables)
        return -sum(float(weight @ x[np.arange(len(y)), y]) for x, y, weight in scaled)

    found = minimize_scalar(loss, bounds=np.log(bounds), method="bounded")
    return float(np.exp(found.x))


def find_log_factor(values: Floats, confidence: float, bounds: tuple[float, float]) -> float:
    """Return the logarithm of the factor of ``values`` whose softmax has this mean confidence.

    The confidence of a row is its largest probability. Beyond the bounds, it is infinite.
    """

    def excess(log_factor: float) -> float:
        share = softmax(np.exp(log_factor) * values, axis=1)
        return float(share.max(axis=1).mean() - confidence)

    if excess(bounds[0]) >= 0:
        return -np.inf
    return np.inf if excess(bounds[1]) <= 0 else float(brentq(excess, *bounds))


# ---- Labelled examples: a ridge regression added to what the rankings say


def as_examples(
    examples: tuple[Scores | ArrayLike, ArrayLike], items: tuple[str, ...], ranked: Sequence[str]
) -> tuple[Scores, NDArray[np.str_]]:
    """Return the scores and labels of examples of new classes.

    A class may have examples and no ranking, unless its name looks like that of a ranked class.
    """
    try:
        given, names = examples
    except (TypeError, ValueError):
        raise RankshotError("examples must be a pair: scores, and the class of each row") from None
    scores = as_scores(given, items)
    labels = np.asarray(names).astype(str)
    if labels.shape != (len(scores),) or len(scores) == 0:
        raise RankshotError(
            f"examples: {len(scores)} rows of scores need as many labels, not {labels.shape}"
        )
    for name in sorted(set(labels.tolist())):
        if name in items:
            raise RankshotError(
                f"examples: {name!r} is a seen class; examples are inputs of new classes"
            )
        if name not in ranked and (close := suggest_name(name, ranked)):
            raise RankshotError(f"examples: no ranking of {name!r}{close}")
    return scores, labels


class Refinement(NamedTuple):
    r"""What labelled examples change: log P(z|x) = a log P_head(z|x) + (φ(x) - m)·W_z + const.

    Attributes
    ----------
    head_weight : float
        a, the weight of the log-probabilities of the head.
    slopes : ndarray of shape (features, classes)
        W. Classes without examples have zeros.
    center : ndarray of shape (features,)
        m, the mean of the features over the examples; all classes have the same weight.
    example_weight : float
        b, by which the slopes of the regression were multiplied, in units of the standard deviation
        of its predictions for examples that are left out.
    """

    head_weight: float
    slopes: Floats
    center: Floats
    example_weight: float


def refine(
    log_proba: Floats,
    features: Any,
    labels: NDArray[np.intp],
    usual: tuple[float, float] = USUAL_WEIGHTS,
) -> Refinement:
    """Learn from labelled examples how to correct the log-probabilities of a head.

    The slopes are those of a ridge regression to the classes, in which each class has the same
    weight. Its predictions for examples that are left out have a closed form. The weights of the
    head and of the regression are those under which these predictions make the labels most
    probable, with a normal prior of the logarithms of both weights: few examples change little.

    Parameters
    ----------
    log_proba : ndarray of shape (n, classes)
        Log-probabilities of the examples by the head.
    features : ndarray or sparse array of shape (n, features)
        What the regression sees of them.
    labels : ndarray of int
        The column of the class of each example.
    usual : two numbers
        The most probable weights beforehand, of the head and of one example per class.
    """
    features = features.toarray() if issparse(features) else features
    n, n_classes = log_proba.shape
    there, counts = np.unique(labels, return_counts=True)
    size = np.bincount(labels, minlength=n_classes)[labels]
    weight = counts.mean() / size
    center = weight @ features / n
    targets = np.zeros((n, n_classes))
    targets[:, there] = -1 / len(there)
    targets[np.arange(n), labels] += 1
    slopes, left_out = _ridge(features - center, targets, weight)
    scale = left_out[:, there].std() or 1.0
    # The only example of a class cannot be predicted from the others.
    many = size > 1
    known = Weighed(log_proba[many], left_out[many] / scale, labels[many], weight[many])
    head_weight, example_weight = find_weights(
        [known], np.array([usual[0], usual[1] * np.sqrt(n / n_classes)])
    )
    return Refinement(head_weight, slopes * (example_weight / scale), center, example_weight)


def _ridge(features: Floats, targets: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return the slopes of a weighted ridge regression, and its predictions by leaving one out."""
    root = np.sqrt(weight)[:, None]
    U, s, Vt = np.linalg.svd(root * features, full_matrices=False)
    # All features of the examples may be equal.
    penalty = RIDGE * (s @ s / len(features)) or 1.0
    shrinkage = s**2 / (s**2 + penalty)
    projected = U.T @ (root * targets)
    residual = targets - U @ (shrinkage[:, None] * projected) / root
    leverage = (U**2) @ shrinkage
    slopes = Vt.T @ ((s / (s**2 + penalty))[:, None] * projected)
    return slopes, targets - residual / (1 - leverage)[:, None]


def find_weights(parts: Sequence[Weighed], usual: Floats) -> tuple[float, float]:
    """Return the weights of head and examples that make labels most probable, given the prior."""

    def loss(log_weights: Floats) -> tuple[float, Floats]:
        weights, off = np.exp(log_weights), (log_weights - np.log(usual)) / LOG_WEIGHT_STD
        value, slopes = measure_loss(parts, *weights)
        return value + 0.5 * float(off @ off), weights * slopes + off / LOG_WEIGHT_STD

    head_weight, example_weight = np.exp(minimize(loss, np.log(usual), jac=True).x)
    return float(head_weight), float(example_weight)


# ---- Evidence of another model


def center_evidence(evidence: Floats) -> tuple[Floats, float]:
    """Return evidence with mean 0 in each row, and its standard deviation over all inputs."""
    centered = evidence - evidence.mean(axis=1, keepdims=True)
    return centered, float(centered.std()) or 1.0


def weigh_evidence(log_proba: Floats, evidence: Floats) -> float:
    """Return the weight of evidence beside log-probabilities of a head, without any label.

    If their errors are independent, two models that are right with the probabilities p and q agree
    on a share p q + (1 - p) (1 - q) / (L - 1) of the inputs. So q follows from their agreement and
    from p, the mean confidence of the head. The evidence gets `SHARE` of the weight with which its
    own mean confidence is q. Evidence that agrees no more than chance has the weight 0.

    Parameters
    ----------
    log_proba : ndarray of shape (n, L)
        Log-probabilities by the head.
    evidence : ndarray of shape (n, L)
        Evidence with mean 0 in each row and variance 1 over all.
    """
    n, L = log_proba.shape
    agreement = float(np.mean(log_proba.argmax(axis=1) == evidence.argmax(axis=1)))
    agreement -= LOWER_LIMIT * np.sqrt(max(agreement * (1 - agreement), 1 / (n * L)) / n)
    p = float(np.exp(log_proba.max(axis=1)).mean())
    by_chance = (1 - p) / (L - 1)
    q = min((agreement - by_chance) / max(p - by_chance, np.finfo(float).eps), 0.98)
    return min(MOST_WEIGHT, SHARE * float(np.exp(find_log_factor(evidence, q, LOG_WEIGHTS))))


def fit_evidence(parts: Sequence[Weighed]) -> tuple[float, float]:
    """Return the temperature and the weight of evidence that make labels most probable.

    The evidence has mean 0 in each row and variance 1 over all.
    """

    def loss(parameters: Floats) -> tuple[float, Floats]:
        a = float(np.exp(-parameters[0]))
        value, slopes = measure_loss(parts, a, parameters[1])
        return value, slopes * [-a, 1]

    found = minimize(loss, [0.0, 0.1], jac=True, bounds=[LOG_WEIGHTS, (0, None)])
    return float(np.exp(found.x[0])), float(found.x[1])


def make_tfidf() -> FeatureUnion:
    """Return an extractor of features of texts: TF-IDF of words, pairs of words, and characters."""
    common: dict[str, Any] = {"sublinear_tf": True, "dtype": np.float32}
    return make_union(
        TfidfVectorizer(ngram_range=(1, 2), **common),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), **common),
    )


def word_evidence(
    texts: Sequence[str], classes: Iterable[str], corpus: Sequence[str] = ()
) -> Scores:
    """Compare the words of texts with the names of classes.

    The similarity is the cosine of TF-IDF vectors of words, pairs of words, and two to five
    characters within words. Underscores in names are spaces.

    Parameters
    ----------
    texts : sequence of str
        The inputs.
    classes : iterable of names
        The new classes.
    corpus : sequence of str
        More texts of the same kind, such as those that the classifier was trained on: they show
        which words are frequent.

    Examples
    --------
    >>> from rankshot.zeroshot import word_evidence
    >>> word_evidence(["freeze my bank account"], ["freeze_account", "flip_coin"]).values.round(2)
    array([[0.54, 0.01]])
    """
    names = as_names(classes)
    words = [name.replace("_", " ") for name in names]
    vectorizer = make_tfidf().fit([*corpus, *texts, *words])
    cosines = cosine_similarity(vectorizer.transform(texts), vectorizer.transform(words))
    return Scores(cosines.astype(np.float64), names)
