"""
Calibrated probabilities for new classes
========================================

A program that acts on a prediction needs to know how certain it is: of 100 predictions with
probability .8, 80 should be correct. The probabilities of new classes cannot be calibrated on
labelled data of these classes, because there are none. A rehearsal calibrates them on held-out seen
classes. This example shows where that helps, where it is not needed and where it misleads, with
reliability curves of images (CIFAR) and texts (intents).
"""

# %%
# Scores for a rehearsal
# ----------------------
#
# A *temperature* divides the log-probabilities of a head. It changes no prediction, only how
# confident the predictions are. The default temperatures are a compromise between other data
# sets. We compare them with those that a rehearsal finds.
#
# A rehearsal needs the scores of a classifier that was trained without the held-out classes. The
# classifier in use is trained on all seen classes. The *reference* is a table of its
# scores for held-out inputs of seen classes.

# sphinx_gallery_thumbnail_number = 2
import numpy as np
from matplotlib import pyplot as plt
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline

import rankshot as rs
from rankshot.datasets import (
    load_cifar,
    load_held_out_panel,
    load_intents,
    load_panel,
    load_similarities,
)


def train_twice(classifier, data, held_out):
    """Return scores for the rehearsal, and the reference and scores of inputs of new classes."""
    is_other = ~np.isin(data.seen_train_label, held_out)
    without = clone(classifier).fit(data.seen_train[is_other], data.seen_train_label[is_other])
    classifier = clone(classifier).fit(data.seen_train, data.seen_train_label)
    return (
        rs.scores_of(without, data.seen_validation),
        rs.scores_of(classifier, data.seen_validation),
        rs.scores_of(classifier, data.new),
    )


cifar, intents = load_cifar(), load_intents()
held_out = load_held_out_panel().target_names
cifar_scores = train_twice(LogisticRegression(C=0.01, max_iter=500, tol=1e-3), cifar, held_out)
ridge = make_pipeline(TfidfVectorizer(sublinear_tf=True), RidgeClassifier())
intent_scores = train_twice(ridge, intents, intents.held_out_classes)


def compare(title, data, scores, head, of_held_out, of_new):
    """Draw the reliability of new classes before and after the rehearsal; return the latter."""
    of_rehearsal, reference, of_inputs = scores
    rehearsal = rs.Rehearsal(head).fit(of_rehearsal, data.seen_validation_label, of_held_out)
    after = rehearsal.fit_head(of_new, reference)
    before = clone(after).set_params(temperature=rehearsal.plan_.default_temperature)
    before.fit(of_new, **({"reference": reference} if rehearsal.plan_.reference else {}))
    _, ax = plt.subplots(figsize=(5.2, 5.2), layout="constrained")
    for name, fitted in (("default", before), ("rehearsed", after)):
        proba = fitted.predict_proba(of_inputs)
        rs.pages.ReliabilityDisplay.from_predictions(
            data.new_label, proba, fitted.classes_, n_bins=10, name=name, ax=ax
        )
        print(f"{name}: temperature {fitted.temperature_:.2f}, ", end="")
        print(f"mean probability of the predicted class {proba.max(axis=1).mean():.2f}")
    right = fitted.classes_[proba.argmax(axis=1)] == data.new_label
    print(f"accuracy: {right.mean():.2f} (chance: {1 / len(data.new_classes):.2f})")
    ax.set_title(title)
    ax.legend(loc="best", fontsize=8)
    plt.show()
    return proba.max(axis=1), right


# %%
# Where the default is good
# -------------------------
#
# Images, with rankings from a language-model panel. The rehearsal sees only seen classes; the
# curves are those of the new classes. The calibration error is the mean distance between confidence
# and accuracy.

results = {}
results["images, panel"] = compare(
    "images, panel", cifar, cifar_scores, rs.WeightedMean(), load_held_out_panel(), load_panel()
)

# %%
# The default temperature was good already: the rehearsal does not improve it here.
#
# Where the rehearsal is overconfident
# ------------------------------------
#
# The same images, with rankings by GloVe's word vectors, which are worse. The default temperature
# is therefore higher for similarity tables than for rankings by raters.

others = [name for name in cifar.seen_classes if name not in held_out]
glove = load_similarities()["GloVe"]
results["images, GloVe"] = compare(
    "images, GloVe",
    cifar,
    cifar_scores,
    rs.WeightedMean(),
    glove.select(held_out, others).to_rankings(),
    glove.select(cifar.new_classes, cifar.seen_classes).to_rankings(),
)

# %%
# With the default temperature, the mean probability of the predicted class is close to the
# accuracy. After the rehearsal it is too high: the temperature that suits the 20 held-out classes
# does not suit these ten new ones. Word vectors describe some kinds of classes better than others.
#
# Where the default is underconfident
# -----------------------------------
#
# Requests to a chatbot, with rankings by a panel and with another head, ``ProbabilisticRanking``.
# Its default temperature does not suit the scores of this classifier, which are small.

results["requests, panel"] = compare(
    "requests, panel",
    intents,
    intent_scores,
    rs.ProbabilisticRanking(),
    intents.held_out_panel,
    intents.panel,
)

# %%
# Without the rehearsal, these probabilities are useless. With it, they are too low where they are
# small, and nearly correct where they are large.
#
# What calibrated probabilities are good for
# ------------------------------------------
#
# If the program may leave difficult inputs to a person, the probabilities show which ones. Each
# point of a curve is a threshold: the inputs above it are classified automatically.

_, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for name, (confidence, right) in results.items():
    order = np.argsort(-confidence, kind="stable")
    answered = np.arange(1, len(order) + 1)
    accuracy = np.cumsum(right[order]) / answered
    enough = answered >= 50
    ax.plot(answered[enough] / len(order), accuracy[enough], label=name)
    half = accuracy[len(order) // 2 - 1]
    print(f"{name}: {accuracy[-1]:.2f} of all are correct, {half:.2f} of the more certain half")
ax.set(xlabel="share of the inputs that is answered", ylabel="accuracy on these")
ax.set(xlim=(0, 1), ylim=(0, 1))
ax.legend(loc="lower left")
ax.grid(alpha=0.3)
plt.show()

# %%
# For requests and for the panel's images, the more certain half is clearly better than the rest.
# With GloVe it is hardly better: probabilities cannot compensate for bad rankings. The order of the
# inputs does not depend on the temperature. But only calibrated probabilities show beforehand what
# a threshold will give.
#
# Where to go next
# ----------------
#
# - :doc:`Rehearsal and calibration </guide/rehearsal>` in the guide.
# - :class:`~rankshot.ZeroShotClassifier` has ``reject_below``, which rejects uncertain inputs.
# - :ref:`sphx_glr_gallery_new_classes_06_seen_and_new.py`: inputs that belong to no class.
