"""
Generalised zero-shot and out-of-scope detection
================================================

In use, a classifier does not know whether an input belongs to a class that it was trained on. This
chatbot gets requests for 120 intents that it knows, requests for 30 new intents for which it has
only rankings, and requests that match no intent at all. :class:`~rankshot.zeroshot.SeenAndNew` lets
all of them compete, within a *budget*: how much accuracy on the known intents may be lost.
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
from rankshot.datasets import load_intents, load_panel

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
head = rs.WeightedMean().fit(load_panel("intents"), reference=reference)
seen_alone = pipeline.score(data.seen_test, data.seen_test_label)
new_alone = np.mean(head.predict(scores["new intents"]) == data.new_label)
print(f"accuracy, if the kind is known: seen {seen_alone:.2f}, new {new_alone:.2f}")

# %%
# The budget
# ----------
#
# Each request has log-odds: the best new intent against the classifier's first guess. A new intent
# is predicted above a threshold. The reference, requests of seen intents that the classifier was
# not trained on, sets it so that at most .05 of the accuracy on seen intents is lost.

both = rs.zeroshot.SeenAndNew(head, seen_loss=0.05).fit(reference, data.seen_validation_label)
_, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
bins = np.linspace(-12, 12, 49)
for colour, (name, table) in zip(("C0", "C1", "0.35"), scores.items(), strict=True):
    log_odds, minus_threshold = both.head_.decision_terms(table).T
    ax.hist(log_odds, bins, density=True, histtype="step", color=colour, label=name)
ax.axvline(-minus_threshold[0], color="k", linewidth=1)
ax.set(xlabel="log-odds of the best new intent", ylabel="density")
ax.legend()
plt.show()

# %%
# Right of the line, a new intent is predicted. Out-of-scope requests fit none of the intents, and
# they are the hardest to find.
#
# The accuracy
# ------------
#
# There are 150 intents now, so chance is below .01.


def measure(head):
    seen = np.mean(head.predict(scores["seen intents"]) == data.seen_test_label)
    new = np.mean(head.predict(scores["new intents"]) == data.new_label)
    return seen, new


seen, new = measure(both)
print(f"seen {seen:.2f}, new {new:.2f}")

# %%
# One row for each kind of request, and one column for each kind of prediction, where "none of
# these" may be predicted as well. It has half of the budget.

NONE = "none of these"
three = rs.zeroshot.SeenAndNew(head, seen_loss=0.1, none=True).fit(
    reference, data.seen_validation_label
)
kinds = {"seen": data.seen_classes, "new": data.new_classes, "none": [NONE]}
shares = np.array(
    [
        [np.isin(three.predict(table), list(names)).mean() for names in kinds.values()]
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
# Larger budgets
# --------------
#
# A larger budget finds more requests of new intents. On the curve, every point is one budget.

budgets = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
curve = [
    measure(rs.zeroshot.SeenAndNew(head, seen_loss=b).fit(reference, data.seen_validation_label))
    for b in budgets
]
for budget, (seen, new) in zip(budgets, curve, strict=True):
    print(f"budget {budget:.2f}: seen {seen:.2f}, new {new:.2f}")

_, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
ax.plot([new for _, new in curve], [seen for seen, _ in curve], "o-", color="C0")
ax.plot(new_alone, seen_alone, "*", color="C1", markersize=14, label="if the kind were known")
ax.set(
    xlabel="accuracy on new intents", ylabel="accuracy on seen intents", xlim=(0, 1), ylim=(0, 1)
)
ax.legend(loc="lower left")
ax.grid(alpha=0.3)
plt.show()

# %%
# Deciding between the groups costs more than deciding within them: that is the distance between the
# curve and the star. A few labelled requests of the new intents shorten it most.
#
# Where to go next
# ----------------
#
# - :doc:`Old and new classes </guide/seen_and_new>`: how the budget is kept.
# - :class:`~rankshot.zeroshot.SeenAndNew` in the reference.
# - :ref:`sphx_glr_gallery_new_classes_02_new_intents.py`: new intents alone.
