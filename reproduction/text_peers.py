"""Peers for texts: methods that know of a new class only the words of its name."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from rankshot.core.errors import RankshotError
from rankshot.sources.vectors import ClassVectors, WordVectors, cosine
from rankshot.zeroshot.evidence import make_tfidf
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.weighted_mean import WeightedMean
from reproduction.benchmark import TextTask
from reproduction.peer_comparison import (
    PeerMethod,
    PeerTask,
    Setting,
    conse_method,
    expand_grid,
)

Floats = NDArray[np.float64]
Labels = NDArray[np.str_]
REGULARIZATION = 10.0
NAME_GRID = {"weight_of_a_name": (1.0, 10.0, 100.0)}
WORDS = "words of the name"
NAME_VECTOR = "nearest name vector"
NOTES = (
    "A request is compared with the words of the name: “plug_type” is “plug type”.",
    (
        "The last method is the default head with the panel's rankings and the similarity of "
        "request and name as another model's scores."
    ),
)


def text_peer_methods(vectors: ClassVectors) -> list[PeerMethod]:
    """The methods for texts, in the order of rows."""
    trains = "a classifier of requests and names"
    both = "rankings and TF-IDF, words of the name"
    return [
        PeerMethod("similarity of request and name", f"TF-IDF, {WORDS}", "nothing", ({},), match),
        PeerMethod(
            "logistic regression", f"TF-IDF, {WORDS}", trains, expand_grid(NAME_GRID), learn_names
        ),
        _name_vectors(),
        conse_method(vectors),
        PeerMethod(
            "rankings, and similarity of request and name", both, "nothing", ({},), add_rankings
        ),
    ]


def match(given: PeerTask, _: Setting) -> Labels:
    """Return the target whose name has the most similar words and characters."""
    task = require_texts(given)
    best = compare_names(task, task.targets).argmax(axis=1)
    return np.array([task.targets[number] for number in best])


def compare_names(task: TextTask, targets: Iterable[str]) -> Floats:
    """Return the TF-IDF similarity of the test requests (rows) and of names (columns)."""
    names = spell_names(targets)
    tfidf = make_tfidf().fit([*task.train_text, *names])
    product = tfidf.transform(task.test_text) @ tfidf.transform(names).T
    return np.asarray(product.toarray(), np.float64)


def add_rankings(given: PeerTask, _: Setting) -> Labels:
    """Predict by the default head, with the similarity as another model's scores."""
    task = require_texts(given)
    names = Scores(compare_names(task, task.targets), task.targets)
    scores = Scores(given.scores.values, given.scores.items, evidence=names)
    return np.asarray(WeightedMean().fit(task.panel, evidence=scores).predict(scores))


def learn_names(given: PeerTask, setting: Setting) -> Labels:
    """Train on requests of the seen classes, and on the name of each target as a request."""
    task = require_texts(given)
    names = spell_names(task.targets)
    tfidf = make_tfidf()
    X = tfidf.fit_transform([*task.train_text, *names])
    weights = np.repeat([1.0, setting["weight_of_a_name"]], [len(task.train_text), len(names)])
    y = np.concatenate([task.train_label, task.targets])
    model = LogisticRegression(C=REGULARIZATION, max_iter=500).fit(X, y, sample_weight=weights)
    columns = np.flatnonzero(np.isin(model.classes_, task.targets))
    scores = model.decision_function(tfidf.transform(task.test_text))[:, columns]
    return np.asarray(model.classes_[columns][scores.argmax(axis=1)])


def _name_vectors() -> PeerMethod:
    source = "GloVe 50d"
    try:
        glove = WordVectors.glove()
    except RankshotError as error:
        return PeerMethod(NAME_VECTOR, source, "nothing", (), match, missing=str(error))

    def predict(given: PeerTask, _: Setting) -> Labels:
        task = require_texts(given)
        names = spell_names(task.targets)
        tfidf = TfidfVectorizer().fit([*task.train_text, *names])
        best = match_vectors(glove, tfidf, task.test_text, names)
        return np.array([task.targets[number] for number in best])

    return PeerMethod(NAME_VECTOR, source, "nothing", ({},), predict)


def match_vectors(
    words: WordVectors, tfidf: TfidfVectorizer, texts: Iterable[str], names: Iterable[str]
) -> NDArray[np.intp]:
    """Return for each text the number of the name whose mean word vector is nearest.

    Words weigh as in TF-IDF, so that common words count little. Words without a vector do not
    count. A text without any known word gets the first name.
    """
    known = np.nan_to_num(words.vectors(tfidf.get_feature_names_out()).values)
    means = [tfidf.transform(some) @ known for some in (texts, names)]
    return np.asarray(np.nan_to_num(cosine(*means), nan=-1.0).argmax(axis=1))


def spell_names(names: Iterable[str]) -> list[str]:
    """Return names as words."""
    return [name.replace("_", " ") for name in names]


def require_texts(given: PeerTask) -> TextTask:
    """Return the task; raise if its inputs are not texts."""
    if not isinstance(given.task, TextTask):
        raise RankshotError(f"{given.task.name} has no texts")
    return given.task
