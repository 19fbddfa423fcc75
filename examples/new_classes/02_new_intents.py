"""
Zero-shot intent classification for a chatbot
=============================================

A virtual assistant classifies requests into 120 intents, such as "spelling" or "oil_change_when".
Now it should understand 30 more, and there is not one request for any of them yet. For each new
intent, four runs of a language model listed the known intents that the classifier would predict
instead. With these rankings, the same pipeline (TF-IDF and a linear model) recognises the new
intents. The data are a part of CLINC150, which comes with rankshot.
"""

# %%
# The existing classifier
# -----------------------

# sphinx_gallery_thumbnail_number = 2
from collections import Counter

import numpy as np
from matplotlib import pyplot as plt
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline

import rankshot as rs
from rankshot.datasets import load_intents, load_panel, load_similarities
from rankshot.zeroshot.metrics import per_class_accuracy, wilson_interval

data, panel = load_intents(), load_panel("intents")
pipeline = make_pipeline(TfidfVectorizer(sublinear_tf=True), RidgeClassifier())
pipeline.fit(data.seen_train, data.seen_train_label)
seen_accuracy = pipeline.score(data.seen_test, data.seen_test_label)
print(f"accuracy on {len(data.seen_classes)} seen intents: {seen_accuracy:.2f}")

# %%
# New intents
# -----------
#
# :func:`~rankshot.scores_of` returns the scores of the pipeline, and the head compares them with
# the rankings. The head is fitted to rankings alone.

scores = rs.scores_of(pipeline, data.new)
head = rs.WeightedMean().fit(panel)
found = head.predict(scores)
right = found == data.new_label
chance = 1 / len(data.new_classes)
print(f"accuracy on new intents: {right.mean():.2f} (chance: {chance:.2f})")

# %%
# Some requests, with the prediction of the pipeline itself and the new intent:

said = pipeline.predict(data.new)
for row in range(5):
    print(f"“{data.new[row]}”")
    verdict = "correct" if right[row] else f"wrong, it is {data.new_label[row]}"
    print(f"   pipeline: {said[row]}; new intent: {found[row]} ({verdict})")

# %%
# Where do the rankings come from?
# --------------------------------
#
# These are the four lists for "tire_pressure". The four raters agree on what comes first. Each is
# one call to a language model that saw only the names of the intents.

rs.pages.plot_rankings(panel, "tire_pressure", k=6)
plt.show()

# %%
# Word vectors need no language model: GloVe compares the words in the names of the intents. They
# are much less accurate here. A *reference* (scores of other requests of seen intents) does not
# help this classifier.

glove = load_similarities("intents")["GloVe 100d"].select(data.new_classes, data.seen_classes)
reference = rs.scores_of(pipeline, data.seen_validation)
heads = {
    "GloVe": rs.WeightedMean().fit(glove.to_rankings()),
    "panel": head,
    "panel, reference": rs.WeightedMean().fit(panel, reference=reference),
}
accuracies = {
    name: wilson_interval(np.sum(fitted.predict(scores) == data.new_label), len(scores))
    for name, fitted in heads.items()
}
for name, accuracy in accuracies.items():
    print(f"{name:<17}{accuracy}")
rs.pages.plot_comparison(accuracies, chance=chance)
plt.show()

# %%
# Which intents are difficult?
# ----------------------------

shares = per_class_accuracy(data.new_label, found)
names = sorted(shares, key=shares.__getitem__)
_, ax = plt.subplots(figsize=(6.4, 6.4), layout="constrained")
ax.barh(names, [shares[name] for name in names], color="C0")
ax.axvline(chance, color="0.3", linestyle=":", label="chance")
ax.set(xlabel="accuracy on 20 requests", xlim=(0, 1))
ax.margins(y=0.01)
ax.legend(loc="lower right")
plt.show()

# %%
# The most difficult intent is at the bottom. What is predicted instead?

worst = names[0]
is_lost = (data.new_label == worst) & ~right


def count(labels):
    """Return the three most frequent labels with their counts."""
    return ", ".join(f"{name} ({n})" for name, n in Counter(labels.tolist()).most_common(3))


print(f"{worst}: {shares[worst]:.0%} correct; the others are predicted as {count(found[is_lost])}")
print(f"the pipeline itself predicts {count(said[is_lost])}")

# %%
# These requests ask about the interest on a bank account. The pipeline sees the word "account" and
# predicts "balance". The raters ranked it among the first for "routing"; for "interest_rate" they
# thought of other rates. Raters who see no requests cannot know such words.
#
# Where to go next
# ----------------
#
# - :ref:`sphx_glr_gallery_new_classes_03_seen_and_new.py`: requests for old
#   intents, for new ones and for neither, in one stream.
# - :doc:`Names and rankings </guide/names>`: how to ask a language model, with or
#   without an API.
