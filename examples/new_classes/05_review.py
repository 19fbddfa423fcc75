"""
Check predictions, correct them, and know when to stop
======================================================

After classification, someone checks the predictions. ``rankshot review`` opens a page for this
(:doc:`/guide/examples`). This example does what the page does, without a browser: a simulated
person labels the most representative inputs, the head learns from the labels, and an audit
estimates how many of the other predictions are correct.
"""

# %%
# A review
# --------
#
# The classifier knows the 100 classes of CIFAR-100; the new classes are those of CIFAR-10,
# described by the rankings of a panel. Every decision is written to a file at once, so nothing is
# lost if the process ends.

import tempfile
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from sklearn.linear_model import RidgeClassifier

import rankshot as rs
from rankshot.datasets import load_cifar, load_panel
from rankshot.review.audit import confidence_sequence
from rankshot.review.learning import Learner
from rankshot.review.session import Journal, Review

data = load_cifar()
classifier = RidgeClassifier(alpha=1000).fit(data.seen_train, data.seen_train_label)
logits = rs.scores_of(classifier, data.new)
scores = rs.Scores(logits.values, logits.items, kind=logits.kind, features=data.new)
truth = data.new_label.astype(str)
folder = tempfile.TemporaryDirectory()
journal = Journal(Path(folder.name, "review.jsonl"))
learner = Learner(rs.Knowledge(load_panel(), batch=scores))
review = Review(learner, [f"image {i}" for i in range(len(truth))], journal)

# %%
# Label and learn
# ---------------
#
# The person labels ten inputs at a time, those whose labels help most. The accuracy is that of the
# inputs without a label.

accuracies = []
for _ in range(6):
    left = review.unlabelled()
    accuracies.append(np.mean(review.predicted.labels[left] == truth[left]))
    useful = learner.find_useful(left, 10)
    review.set_labels({int(row): str(truth[row]) for row in useful})
    review.learn()
    change = review.changes
    print(f"{change.n:,} predictions changed, most often {change.before} -> {change.after}")
print(f"accuracy: {accuracies[0]:.0%} without labels, {accuracies[3]:.0%} with 30 labels")

# %%
# Audit
# -----
#
# Now inputs are drawn at random from those without a label, and the person judges their
# predictions. The interval is a confidence sequence: it is valid after any number of checks, so you
# may look after each check and stop at any time.

review.open_audit(seed=0)
left = review.unlabelled()
share = np.mean(review.predicted.labels[left] == truth[left])
found = []
for _ in range(200):
    row = review.next_row
    review.check(row, str(truth[row]))
    audit = review.describe_audit()
    found.append((audit["n_correct"] / audit["n_checked"], audit["low"], audit["high"]))
print(f"{found[-1][0]:.0%} correct, between {found[-1][1]:.0%} and {found[-1][2]:.0%}")
print(f"actually correct: {share:.0%} of {len(left):,} inputs")

# %%
# When the audit is closed, the checked inputs become labelled examples, from which the head learns.
# It does not learn from them earlier, so no input tests a head that has learned from it.

review.close_audit()
review.learn()
left = review.unlabelled()
print(f"{len(review.labels):,} labels; accuracy on all other inputs: ", end="")
print(f"{np.mean(review.predicted.labels[left] == truth[left]):.2f}")
review.close()
journal.close()
folder.cleanup()

# %%
# The first labels help most. The interval narrows slowly: to halve its width, about four times as
# many checks are needed.

figure, (first, second) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
first.plot(10 * np.arange(len(accuracies)), accuracies, marker="o")
first.set(xlabel="labels", ylabel="accuracy on inputs without a label")
checks = 1 + np.arange(len(found))
estimate, low, high = np.array(found).T
second.fill_between(checks, low, high, alpha=0.3, label="95% confidence sequence")
second.plot(checks, estimate, label="correct so far")
second.axhline(share, color="black", linestyle="--", label="in truth")
second.set(xlabel="checks", ylabel="share of correct predictions", ylim=(0, 1))
second.legend(loc="lower right")

# %%
# How many checks are enough depends on the precision that you need:

for n_checked in (50, 200, 800):
    low, high = confidence_sequence(round(0.9 * n_checked), n_checked, 10_000)
    print(f"90% of {n_checked} checks correct: between {low:.0%} and {high:.0%}")
