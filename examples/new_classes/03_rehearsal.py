"""
Predict zero-shot accuracy without labelled data
================================================

You have a classifier and rankings of new classes, and must decide whether they are good enough.
Labelled inputs of the new classes do not exist. In a *rehearsal*, some seen classes are held out:
the classifier is trained without them, and they are recognised by their rankings alone. This
chooses the settings and predicts the accuracy on the new classes. Here the seen classes are those
of CIFAR-100 and the new ones those of CIFAR-10. At the end, the prediction is compared with the
labels.
"""

# %%
# The rehearsal
# -------------
#
# It needs labelled inputs of seen classes, and rankings of some *seen* classes by the same raters
# that rank the new ones. Here six calls to a language model ranked 20 seen classes.
# The rehearsal trains the classifier twice: without the 20 classes, and then with all of them.

# sphinx_gallery_thumbnail_number = 2
import numpy as np
from matplotlib import pyplot as plt
from sklearn.linear_model import LogisticRegression

import rankshot as rs
from rankshot.datasets import load_cifar, load_held_out_panel, load_panel, load_similarities

data = load_cifar()
classifier = LogisticRegression(C=0.01, max_iter=500, tol=1e-3)
rehearsal = rs.Rehearsal(estimator=classifier)
rehearsal.fit(data.seen_train, data.seen_train_label, load_held_out_panel())
n = len(rehearsal.forecast_.classes)
print(f"the {n} rehearsed classes: {rehearsal.accuracy_} (chance: .050)")

# %%
# What was tried
# --------------
#
# The intervals are wide, because 20 classes differ a lot. So the rehearsal changes the default
# settings only if the gain exceeds its standard error.

tried = {trial.what: trial.accuracy for trial in rehearsal.forecast_.trials}
rs.pages.ComparisonDisplay.from_results(tried, chance=1 / len(rehearsal.forecast_.classes))
plt.show()
chosen = rehearsal.settings_
print(f"chosen: k={chosen.k}, decay={chosen.decay}, temperature {chosen.temperature:.2f}")

# %%
# The prediction
# --------------
#
# The prediction accounts for the number of new classes and for how similar their rankings are. The
# reference is a table of scores of images of seen classes that the classifier was not trained on.

reference = rs.scores_of(rehearsal.estimator_, data.seen_validation)
predicted = rehearsal.predict_accuracy(load_panel(), reference)
print(f"predicted for the new classes: {predicted} (chance: .100)")

# %%
# Now the images of the new classes arrive, with labels.

scores = rs.scores_of(rehearsal.estimator_, data.new)
head = rehearsal.fit_head(load_panel(), reference=reference)
print(f"measured: {np.mean(head.predict(scores) == data.new_label):.3f}")

# %%
# How certain are such predictions?
# ---------------------------------
#
# The language model answered three questions. Each is rehearsed separately. To save time, the
# classifier is trained without the 20 classes only once: a rehearsal also takes scores, and
# rehearsed classes need no columns in them.

held_out = load_held_out_panel().target_names
others = [name for name in data.seen_classes if name not in held_out]
is_other = np.isin(data.seen_train_label, others)
classifier.fit(data.seen_train[is_other], data.seen_train_label[is_other])
rehearsal_scores = rs.scores_of(classifier, data.seen_validation)

sources = {
    f"panel: {question}": (load_held_out_panel(question=question), load_panel(question=question))
    for question in ("photographs", "contrast", "similar")
}
results = {}
for name, (of_held_out, of_new) in sources.items():
    one = rs.Rehearsal().fit(rehearsal_scores, data.seen_validation_label, of_held_out)
    expected = one.predict_accuracy(of_new, reference)
    measured = np.mean(one.fit_head(of_new, reference=reference).predict(scores) == data.new_label)
    results[name] = (expected, measured)
    print(f"{name:<19} predicted {expected}, measured {measured:.3f}")

# %%
# Each line is the 95% interval of a prediction, with a dot for the prediction. A cross is the
# measured accuracy.

_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for row, (expected, measured) in enumerate(reversed(results.values())):
    ax.plot([expected.low, expected.high], [row, row], color="C0", linewidth=2)
    ax.plot(expected.estimate, row, "o", color="C0", label="predicted" if row == 0 else None)
    ax.plot(measured, row, "X", color="C1", markersize=9, label="measured" if row == 0 else None)
ax.axvline(1 / len(data.new_classes), color="0.3", linestyle=":", label="chance")
ax.set(xlabel="accuracy on the 10 new classes", xlim=(0, 1))
ax.set_yticks(range(len(results)), reversed(results))
ax.legend(loc="lower right")
plt.show()

n_inside = sum(expected.low <= measured <= expected.high for expected, measured in results.values())
print(f"inside their intervals: {n_inside} of {len(results)}")

# %%
# The intervals are wide, because the ten new classes are few, and similar to only some of the 20
# held-out ones: use a prediction as a rough estimate. The three questions share their classes and
# their classifier, so these are not three independent tests.
#
# For tables without raters, such as WordNet, `predict_accuracy` returns None. They rank some kinds
# of classes well and others badly, so one kind cannot predict another.

table = load_similarities()["WordNet"]
one = rs.Rehearsal().fit(
    rehearsal_scores,
    data.seen_validation_label,
    table.select(held_out, others).to_rankings(),
)
of_new = table.select(data.new_classes, data.seen_classes).to_rankings()
measured = np.mean(one.fit_head(of_new, reference=reference).predict(scores) == data.new_label)
print(f"held-out classes {one.accuracy_}, predicted {one.predict_accuracy(of_new, reference)}")
print(f"measured {measured:.3f}")

# %%
# Where to go next
# ----------------
#
# - :doc:`Rehearsal </guide/rehearsal>` in the guide, and ``rankshot doctor --rehearse`` on the
#   command line.
# - :doc:`Predicted accuracy </reproduction>`: more such predictions, on three data sets.
# - :ref:`sphx_glr_gallery_new_classes_04_calibration.py`: the rehearsal also calibrates
#   probabilities.
