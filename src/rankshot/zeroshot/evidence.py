"""Evidence from another model, weighted by how often the two models agree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.pipeline import FeatureUnion, make_union

from rankshot.core.validation import as_names
from rankshot.zeroshot.decide import most_probable
from rankshot.zeroshot.scores import Scores

Floats = NDArray[np.float64]
LOWER_LIMIT = 1.64
"""Standard errors: the agreement of a few inputs may be chance."""
LOG_WEIGHTS = (-6.0, 6.0)
"""The range of the logarithm of the weight."""


# ---- Weights and temperatures


def fit_temperature(
    tables: Sequence[tuple[Floats, NDArray[np.intp], Floats]], bounds: tuple[float, float]
) -> float:
    """The temperature that makes labels most probable.

    Each table has log-posteriors, the columns of the labels, and the weights of the inputs.
    """

    def loss(log_temperature: float) -> float:
        inverse = np.exp(-log_temperature)
        scaled = ((log_softmax(inverse * x, axis=1), y, weight) for x, y, weight in tables)
        return -sum(float(weight @ x[np.arange(len(y)), y]) for x, y, weight in scaled)

    found = minimize_scalar(loss, bounds=np.log(bounds), method="bounded")
    return float(np.exp(found.x))


def find_log_factor(values: Floats, confidence: float, bounds: tuple[float, float]) -> float:
    """The logarithm of the factor of ``values`` whose softmax has this mean confidence.

    The confidence of a row is its largest probability. Beyond the bounds, it is infinite.
    """

    def excess(log_factor: float) -> float:
        share = softmax(np.exp(log_factor) * values, axis=1)
        return float(share.max(axis=1).mean() - confidence)

    if excess(bounds[0]) >= 0:
        return -np.inf
    return np.inf if excess(bounds[1]) <= 0 else float(brentq(excess, *bounds))


# ---- Evidence of another model


def center_evidence(evidence: Floats) -> tuple[Floats, float]:
    """Evidence with mean 0 in each row, and its standard deviation over all inputs."""
    centered = evidence - evidence.mean(axis=1, keepdims=True)
    return centered, float(centered.std()) or 1.0


def weigh_evidence(log_proba: Floats, evidence: Floats) -> float:
    """The weight of evidence beside log-probabilities of a head, without any label.

    If their errors are independent, two models that are right with the probabilities p and q agree
    on a share p q + (1 - p) (1 - q) / (L - 1) of the inputs. So q follows from their agreement and
    from p, the mean confidence of the head. The evidence gets the weight with which its own mean
    confidence is q, at most `MOST_WEIGHT`. Evidence that agrees no more than chance, or is of one
    class, has the weight 0.

    Parameters
    ----------
    log_proba : ndarray of shape (n, L)
        Log-probabilities by the head.
    evidence : ndarray of shape (n, L)
        Evidence with mean 0 in each row and variance 1 over all.
    """
    n, L = log_proba.shape
    if L == 1:
        return 0.0
    agreement = float(np.mean(most_probable(log_proba) == most_probable(evidence)))
    agreement -= LOWER_LIMIT * np.sqrt(max(agreement * (1 - agreement), 1 / (n * L)) / n)
    p = float(np.exp(log_proba.max(axis=1)).mean())
    by_chance = (1 - p) / (L - 1)
    q = min((agreement - by_chance) / max(p - by_chance, np.finfo(float).eps), 0.98)
    return min(1.0, float(np.exp(find_log_factor(evidence, q, LOG_WEIGHTS))))


def make_tfidf() -> FeatureUnion:
    """An extractor of features of texts: TF-IDF of words, pairs of words, and characters."""
    common: dict[str, Any] = {"sublinear_tf": True, "dtype": np.float32}
    return make_union(
        TfidfVectorizer(ngram_range=(1, 2), **common),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), **common),
    )


def word_evidence(
    texts: Sequence[str], classes: Iterable[str], corpus: Sequence[str] = ()
) -> Scores:
    """Compare the words of texts with the names of classes.

    The similarity is the cosine of TF-IDF vectors of words, pairs of words, and character
    sequences (two to five characters) within words. Underscores in names are treated as spaces.

    Parameters
    ----------
    texts : sequence of str
        The inputs.
    classes : iterable of names
        The new classes.
    corpus : sequence of str
        More texts of the same kind, such as those that the classifier was trained on, to estimate
        word frequencies.

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
