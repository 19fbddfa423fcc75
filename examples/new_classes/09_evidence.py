"""
Combine rankings with CLIP, a sentence encoder or keywords
==========================================================

Another model may score the new classes as well: CLIP for images, a sentence encoder or a list of
keywords for texts. rankshot calls these scores *evidence* and combines them with the rankings.
Their weight is found without a single label. Here the classifier of a chatbot gets 30 new intents,
and the evidence compares the words of a request with the name of each intent.
"""

# %%
# Rankings alone, evidence alone
# ------------------------------
#
# Evidence is a table: one row per input, one column per new class. Its scale does not matter.
# :func:`~rankshot.zeroshot.word_evidence` needs only the texts and the names; the scores of any
# other model are used in the same way.

# sphinx_gallery_thumbnail_number = 2
import numpy as np
from matplotlib import pyplot as plt
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline

import rankshot as rs
from rankshot.datasets import load_intents
from rankshot.zeroshot.metrics import wilson_interval

data = load_intents()
pipeline = make_pipeline(TfidfVectorizer(sublinear_tf=True), RidgeClassifier())
pipeline.fit(data.seen_train, data.seen_train_label)
logits = rs.scores_of(pipeline, data.new)
words = rs.zeroshot.word_evidence(data.new, data.new_classes, corpus=data.seen_train)


def measure(found):
    """Return the accuracy with its interval."""
    return wilson_interval(int(np.sum(found == data.new_label)), len(data.new_label))


names = np.array(words.items)
results = {
    "rankings": measure(rs.WeightedMean().fit(data.panel).predict(logits)),
    "words of the names": measure(names[words.values.argmax(axis=1)]),
}

# %%
# Both together
# -------------
#
# ``evidence_weight_`` follows from how often rankings and evidence agree. Two models that know
# different things are rarely wrong in the same way.

inputs = rs.Scores(logits.values, logits.items, kind=logits.kind, evidence=words)
both = rs.WeightedMean().fit(data.panel, evidence=inputs)
results["both"] = measure(both.predict(inputs))
for name, accuracy in results.items():
    print(f"{name:<20}{accuracy}")
print(f"the weight of the evidence: {both.evidence_weight_:.2f}")
rs.pages.ComparisonDisplay.from_results(results, chance=1 / len(data.new_classes))
plt.show()

# %%
# Is the weight a good one?
# -------------------------
#
# With labels, which nobody has before the new intents are in use, we can try all weights. Evidence
# that is pure noise shows the other extreme: it gets a weight near 0.

noise = rs.Scores(np.random.default_rng(0).normal(size=words.values.shape), words.items)
kinds = {"words": words, "noise": noise}
weights = np.linspace(0, 2, 9)
_, ax = plt.subplots(figsize=(5.4, 3.6), layout="constrained")
for (name, evidence), marker in zip(kinds.items(), "os", strict=True):
    given = rs.Scores(logits.values, logits.items, kind=logits.kind, evidence=evidence)
    curve = [
        measure(
            rs.WeightedMean(evidence_weight=weight).fit(data.panel, evidence=given).predict(given)
        ).estimate
        for weight in weights
    ]
    head = rs.WeightedMean().fit(data.panel, evidence=given)
    (line,) = ax.plot(weights, curve, label=f"evidence: {name}")
    found = measure(head.predict(given)).estimate
    ax.plot(head.evidence_weight_, found, marker, color=line.get_color(), markersize=9)
    print(f"{name}: weight {head.evidence_weight_:.2f}, accuracy {found:.3f}")
ax.set(xlabel="weight of the evidence", ylabel="accuracy on new intents", ylim=(0, 1))
ax.legend(loc="lower right")
plt.show()

# %%
# The markers are the weights that were found without labels.
#
# **CLIP and sentence encoders.** With ``pip install sentence-transformers``, this is evidence from
# a sentence encoder::
#
#     encode = SentenceTransformer("all-MiniLM-L6-v2").encode
#     values = encode(texts, normalize_embeddings=True) @ encode(names, normalize_embeddings=True).T
#     evidence = rs.Scores(values, names)
#
# **Where to go next.** :ref:`sphx_glr_gallery_new_classes_08_few_examples.py` uses labelled
# examples. :ref:`sphx_glr_gallery_new_classes_02_new_intents.py` has the same intents in detail.
