"""
Generalised zero-shot and out-of-scope detection
================================================

In use, a classifier does not know whether an input belongs to a class that it was trained on. This
chatbot gets requests for 120 intents that it knows, requests for 30 new intents for which it has
only rankings, and requests that match no intent at all. :class:`~rankshot.SeenAndNew` lets all of
them compete: a *gate* decides whether an input belongs to a seen class, a new one, or neither.
"""

# %%
# Three kinds of requests
# -----------------------
#
# The data are a part of CLINC150. The classifier is trained on the 120 seen intents.

import numpy as np
from matplotlib import pyplot as plt
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline

import rankshot as rs
from rankshot.datasets import load_intents
from rankshot.zeroshot.metrics import generalized_accuracy

data = load_intents()
pipeline = make_pipeline(TfidfVectorizer(sublinear_tf=True), RidgeClassifier())
pipeline.fit(data.seen_train, data.seen_train_label)
scores = {
    "seen intents": rs.scores_of(pipeline, data.seen_test),
    "new intents": rs.scores_of(pipeline, data.new),
    "out of scope": rs.scores_of(pipeline, data.out_of_scope_test),
}
for name, table in scores.items():
    print(f"{name}: {len(table)} requests")

# %%
# If the kind of a request were known, each part would be easier:

reference = rs.scores_of(pipeline, data.seen_validation)
head = rs.WeightedMean().fit(data.panel, reference=reference)
seen_alone = pipeline.score(data.seen_test, data.seen_test_label)
new_alone = np.mean(head.predict(scores["new intents"]) == data.new_label)
print(f"accuracy, if the kind is known: seen {seen_alone:.2f}, new {new_alone:.2f}")

# %%
# The gate
# --------
#
# The gate looks at two numbers: how well a request fits the best new intent, and how well it fits
# the best seen one. The default gate was fitted to held-out seen classes of three data sets. The
# reference, requests of seen intents that the classifier was not trained on, is its baseline.

both = rs.SeenAndNew(head, none=True).fit(reference, data.seen_validation_label)
colours = {"seen intents": "C0", "new intents": "C1", "out of scope": "0.35"}
markers = {"seen intents": "o", "new intents": "^", "out of scope": "x"}

_, ax = plt.subplots(figsize=(6.4, 5.2), layout="constrained")
for name, table in scores.items():
    z, s = both.gate_features(table).T
    ax.scatter(z, s, s=12, marker=markers[name], color=colours[name], alpha=0.5, label=name)
# The log-odds of new against seen are a z + b s + c; on the line they are 0.
a, b, c = both.gate_.new
ax.axline((0, -c / b), slope=-a / b, color="k", linewidth=1)
ax.set(xlabel="fit to the best new intent", ylabel="fit to the best seen intent")
ax.legend(loc="upper left", frameon=True)
plt.show()

# %%
# On the line, seen and new are equally probable. Most requests of seen intents are above it, and
# most requests of new intents are below it. Out-of-scope requests fit neither: they are at the
# bottom left, where requests of both kinds lie as well. So they are the hardest to find.
#
# The accuracy
# ------------
#
# There are 150 intents now, so chance is below .01.

truth = np.concatenate([data.seen_test_label, data.new_label])
tables = (scores["seen intents"], scores["new intents"])


def measure(head):
    found = np.concatenate([head.predict(table) for table in tables])
    return generalized_accuracy(truth, found, data.seen_classes)


accuracy = measure(both)
print(f"seen {accuracy.seen:.2f}, new {accuracy.new:.2f}, harmonic mean {accuracy.harmonic:.2f}")
NONE = "none of these"
is_none = both.predict(scores["out of scope"]) == NONE
print(f"out of scope, labelled '{NONE}': {is_none.mean():.2f}")

# %%
# One row for each kind of request, and one column for each kind of prediction. Between seen and
# new, the gate is correct for about three requests in four. Few of the out-of-scope requests are
# found: the default gate was fitted to other data. Hardly any other request is lost to "none of
# these". To find more, put a lower threshold on the probability of "none of these".

kinds = {"seen": data.seen_classes, "new": data.new_classes, "none": [NONE]}
shares = np.array(
    [
        [np.isin(both.predict(table), list(names)).mean() for names in kinds.values()]
        for table in scores.values()
    ]
)
_, ax = plt.subplots(figsize=(4.6, 3.4), layout="constrained")
ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
for (row, column), share in np.ndenumerate(shares):
    colour = "white" if share > 0.5 else "black"
    ax.text(column, row, f"{share:.2f}", ha="center", va="center", color=colour)
ax.set_xticks(range(3), kinds)
ax.set_yticks(range(3), scores)
ax.set_xlabel("kind of the prediction")
plt.show()

# %%
# Balance between seen and new classes
# ------------------------------------
#
# You may need a different balance. A constant that is subtracted from the log-probability of every
# seen class moves the balance towards new classes. On the curve, every point is one constant; the
# dot is the balance without one. (``ZeroShotClassifier`` has it as ``calibration``.)

two_groups = rs.SeenAndNew(head).fit(reference, data.seen_validation_label)
log_proba = np.concatenate([two_groups.predict_log_proba(table) for table in tables])
curve = []
for constant in np.linspace(-8, 8, 65):
    shifted = log_proba - constant * two_groups.seen_
    found = two_groups.classes_[shifted.argmax(axis=1)]
    curve.append(generalized_accuracy(truth, found, data.seen_classes))
middle = measure(two_groups)
best = max(curve, key=lambda point: point.harmonic)
print(f"without a constant: {middle.harmonic:.3f}; best of 65 constants: {best.harmonic:.3f}")

_, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
ax.plot([point.new for point in curve], [point.seen for point in curve], color="C0")
ax.plot(middle.new, middle.seen, "o", color="C0", label="without a constant")
ax.plot(new_alone, seen_alone, "*", color="C1", markersize=14, label="if the kind were known")
ax.set(
    xlabel="accuracy on new intents", ylabel="accuracy on seen intents", xlim=(0, 1), ylim=(0, 1)
)
ax.legend(loc="lower left")
ax.grid(alpha=0.3)
plt.show()

# %%
# Deciding between the groups costs more than deciding within them: that is the distance between the
# curve and the star. The gate's own balance is nearly as good as the best of the constants, which
# were compared on these same requests; so use a constant only if one kind of error is more costly
# for you.
#
# Where to go next
# ----------------
#
# - :doc:`Seen and new classes together </guide/seen_and_new>`: the formulas, and gates fitted in a
#   rehearsal.
# - :class:`~rankshot.SeenAndNew` and :class:`~rankshot.Rehearsal` in the reference.
# - :ref:`sphx_glr_gallery_new_classes_02_new_intents.py`: new intents alone.
