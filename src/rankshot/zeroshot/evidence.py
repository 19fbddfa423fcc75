"""Evidence: what another model says about the new classes, and how much it counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.special import log_softmax, softmax
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import FeatureUnion, make_union

from rankshot.core.validation import as_names
from rankshot.zeroshot.scores import Scores

Floats = NDArray[np.float64]
SHARE = 0.6
"""The share of the weight that evidence would deserve alone: head and evidence know much in common.
Chosen on held-out seen classes of one data set, with two classifiers, two kinds of evidence and
noise of several sizes added to it. From .6 to 1, the accuracy there is the same."""
MOST_WEIGHT = 1.0
"""Larger weights were slightly better on held-out classes and riskier with noise."""
LOWER_LIMIT = 1.64
"""Standard errors: the agreement of a few inputs may be chance."""
MOST_ACCURATE = 0.98
LOG_WEIGHTS = (-6.0, 6.0)
"""The range of the logarithm of the weight."""


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
    q = min((agreement - by_chance) / max(p - by_chance, np.finfo(float).eps), MOST_ACCURATE)

    def excess(log_weight: float) -> float:
        return float(softmax(np.exp(log_weight) * evidence, axis=1).max(axis=1).mean() - q)

    if excess(LOG_WEIGHTS[0]) >= 0:
        return 0.0
    if excess(LOG_WEIGHTS[1]) <= 0:
        return MOST_WEIGHT
    return min(MOST_WEIGHT, SHARE * float(np.exp(brentq(excess, *LOG_WEIGHTS))))


def fit_evidence(
    tables: Sequence[tuple[Floats, Floats, NDArray[np.intp], Floats]],
) -> tuple[float, float]:
    """Return the temperature and the weight of evidence that make labels most probable.

    Each table has log-posteriors by the head, evidence with mean 0 in each row and variance 1 over
    all, the columns of the labels, and the weights of the inputs.
    """

    def loss(parameters: Floats) -> tuple[float, Floats]:
        log_temperature, c = parameters
        value, gradient = 0.0, np.zeros(2)
        for log_posterior, evidence, labels, weight in tables:
            by_head, rows = log_posterior * np.exp(-log_temperature), np.arange(len(labels))
            log_proba = log_softmax(by_head + c * evidence, axis=1)
            excess = weight[:, None] * np.exp(log_proba)
            excess[rows, labels] -= weight
            value -= weight @ log_proba[rows, labels]
            gradient += [-(excess * by_head).sum(), (excess * evidence).sum()]
        return value, gradient

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
    given, named = vectorizer.transform(texts), vectorizer.transform(words)
    lengths = np.sqrt(given.multiply(given).sum(axis=1)), np.sqrt(named.multiply(named).sum(axis=1))
    cosines = (given @ named.T).toarray() / np.maximum(np.outer(*lengths), np.finfo(float).tiny)
    return Scores(cosines, names)
