"""
Few-shot learning: rankings and labelled examples
=================================================

Rankings need no input of a new class. But sometimes a few labelled inputs exist, or someone has an
hour to label some. This example compares three ways to recognise ten new classes of images: from
rankings alone, from labelled examples alone, and from both. It also shows which inputs to label
first.
"""

# %%
# Rankings alone, examples alone, and both
# ----------------------------------------
#
# The classifier knows the 100 classes of CIFAR-100; the new classes are those of CIFAR-10. With the
# examples, :class:`~rankshot.WeightedMean` compares inputs by their ``features``, here the same 256
# numbers that the classifier gets.

import numpy as np
from matplotlib import pyplot as plt
from sklearn.linear_model import LogisticRegression, RidgeClassifier

import rankshot as rs
from rankshot.datasets import load_cifar, load_panel

data, panel = load_cifar(), load_panel()
classifier = RidgeClassifier(alpha=1000).fit(data.seen_train, data.seen_train_label)
reference = rs.scores_of(classifier, data.seen_validation)
logits = rs.scores_of(classifier, data.new)
inputs = rs.Scores(logits.values, logits.items, kind=logits.kind, features=data.new)
rankings_alone = rs.WeightedMean().fit(panel, reference=reference)
print(f"rankings alone: {np.mean(rankings_alone.predict(logits) == data.new_label):.2f}")

# %%
# The labelled inputs are drawn at random from the first thousand, the same number per class, three
# times. The accuracy is that of all other inputs, which are never labelled.

rng = np.random.default_rng(0)
rest = np.arange(1000, len(inputs))
counts = [1, 2, 5, 10, 20, 50]


def draw(count):
    """Return the rows of some inputs of each class, from the first thousand."""
    pools = (np.flatnonzero(data.new_label[:1000] == name) for name in data.new_classes)
    return np.concatenate([rng.choice(pool, count, replace=False) for pool in pools])


def measure(predicted):
    """Return the accuracy on the inputs that are never labelled."""
    return np.mean(predicted == data.new_label[rest])


curves = {"rankings and examples": [], "examples alone": []}
for count in counts:
    accuracies = []
    for _ in range(3):
        rows = draw(count)
        labels = data.new_label[rows]
        both = rs.WeightedMean().fit(panel, reference=reference, examples=(inputs[rows], labels))
        alone = LogisticRegression(C=0.1).fit(data.new[rows], labels)
        accuracies.append(
            [measure(both.predict(inputs[rest])), measure(alone.predict(data.new[rest]))]
        )
    for curve, accuracy in zip(curves.values(), np.mean(accuracies, axis=0), strict=True):
        curve.append(accuracy)
    print(f"{count:3} per class: both {curves['rankings and examples'][-1]:.2f}, ", end="")
    print(f"examples alone {curves['examples alone'][-1]:.2f}")

baseline = measure(rankings_alone.predict(logits[rest]))
_, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
for (name, curve), marker in zip(curves.items(), "os", strict=True):
    ax.plot(counts, curve, marker=marker, label=name)
ax.axhline(baseline, color="C2", linestyle="--", label="rankings alone")
ax.set(xscale="log", xlabel="labelled examples per class", ylabel="accuracy on new classes")
ax.set_xticks(counts, [str(count) for count in counts])
ax.set_ylim(0, 1)
ax.legend(loc="lower right")
plt.show()

# %%
# With few examples, the rankings do most of the work. With many, the two curves meet: the weights
# of rankings and examples follow from the examples themselves, each predicted from the others.
#
# Which inputs should be labelled?
# --------------------------------
#
# :func:`rankshot.zeroshot.suggest` divides the inputs into clusters and returns the middle of each.
# On the command line, ``rankshot review --csv`` writes them into a table to fill in.

todo = rs.zeroshot.suggest(rankings_alone, inputs[:1000], 30)
chosen = {"suggested": todo.rows, "random": rng.choice(1000, 30, replace=False)}
for name, rows in chosen.items():
    examples = (inputs[rows], data.new_label[rows])
    head = rs.WeightedMean().fit(panel, reference=reference, examples=examples)
    print(f"30 {name} inputs: {measure(head.predict(inputs[rest])):.3f}")

# %%
# **Where to go next.** :ref:`sphx_glr_gallery_new_classes_09_evidence.py` adds another model's
# scores. :class:`~rankshot.ZeroShotClassifier` accepts ``examples=`` as well.
