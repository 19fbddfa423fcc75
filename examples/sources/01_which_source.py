"""Compare WordNet, word vectors and language models
=================================================

Rankings of your new classes can come from WordNet, from word vectors, from a corpus or from a
language model. Which of them should you use? You have no data for the new classes to try them on.
But some of your *seen* classes can be held out: this is a rehearsal. The example rehearses seven
sources with the images of CIFAR-100, and then measures them on ten classes that are actually new.
"""

# %%
# Seven sources
# -------------
# All rankings come with rankshot. For your own classes, use :class:`~rankshot.WordNet`,
# :class:`~rankshot.WordVectors`, :class:`~rankshot.sources.Corpus` or a language model. Tables of
# similarities become rankings with :meth:`~rankshot.Similarity.to_rankings`; several tables may be
# averaged. The language-model panel was asked two questions: which seen classes are most
# *similar*, and what a classifier would predict for *photographs* of the new class.

# sphinx_gallery_thumbnail_number = 4
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeClassifier

import rankshot as rs
from rankshot.datasets import load_cifar, load_held_out_panel, load_panel, load_similarities
from rankshot.zeroshot import Bootstrap


def collect_sources(load, targets, items):
    """Return the rankings of the items by each source, for all targets."""
    tables = {name: t.select(targets, items) for name, t in load_similarities().items()}
    del tables["GloVe"]  # GloVe 100d is the same with longer vectors
    tables["WordNet + GloVe"] = rs.sources.arithmetic_mean(
        [tables["WordNet"], tables["GloVe 100d"]]
    )
    panels = {f"panel, {q}": load(question=q) for q in ("similar", "photographs")}
    return {name: table.to_rankings() for name, table in tables.items()} | panels


new = collect_sources(load_panel, load_panel().target_names, load_panel().items)
shown = ["WordNet", "Wikipedia", "GloVe 100d", "panel, similar", "panel, photographs"]
orders = [rs.borda(new[name].select(target="frog")).order for name in shown]
frog = rs.Rankings.from_orders(orders, items=load_panel().items, sources=shown)
rs.pages.RankingsDisplay.from_rankings(frog, k=6)

# %%
# The sources disagree about what resembles a frog. WordNet knows relatives, and 17 classes tie for
# third place. The Wikipedia text is small, and its list is noisy. Both questions of the panel begin
# with lizard and turtle.
#
# Rehearsal: hold out seen classes
# --------------------------------
# 20 of the 100 seen classes are held out. A classifier learns the other 80, and the sources rank
# these 80 for each of the 20. Then we know how accurate a head is with each source. No image of an
# actually new class is used. The intervals are for *other classes*: they come from resamples of the
# 20.

data = load_cifar()
held_out = load_held_out_panel()
images = np.concatenate([data.seen_train, data.seen_validation])
labels = np.concatenate([data.seen_train_label, data.seen_validation_label])
is_held_out = np.isin(labels, held_out.target_names)
classifier = RidgeClassifier().fit(images[~is_held_out], labels[~is_held_out])


def average_classes(labels, values):
    """Return the mean over classes, with an interval from resamples of the classes."""
    means = [values[labels == name].mean() for name in np.unique(labels)]
    return Bootstrap(["class"] * len(means)).interval(means)


def mark_right(sources, classifier, images, labels):
    """Return for each source which images a head with its rankings gets right."""
    scores = rs.scores_of(classifier, images)
    heads = {name: rs.WeightedMean().fit(rankings) for name, rankings in sources.items()}
    return {name: head.predict(scores) == labels for name, head in heads.items()}


sources = collect_sources(load_held_out_panel, held_out.target_names, held_out.items)
right = mark_right(sources, classifier, images[is_held_out], labels[is_held_out])
rehearsed = {name: average_classes(labels[is_held_out], hits) for name, hits in right.items()}
for name, accuracy in rehearsed.items():
    print(f"{name:<19}{accuracy}")
rs.pages.ComparisonDisplay.from_results(rehearsed, chance=1 / 20)

# %%
# The panel's rankings are far better than all others. Among the others, the intervals overlap.
#
# Is one source really better than another?
# -----------------------------------------
# Overlapping intervals do not answer this question. All sources are measured on the same images, so
# compare them in pairs: the difference has its own interval.

pairs = [
    ("panel, photographs", "panel, similar"),
    ("panel, similar", "WordNet + GloVe"),
    ("WordNet + GloVe", "WordNet"),
    ("WordNet", "word2vec"),
]
for one, other in pairs:
    difference = right[one].astype(float) - right[other]
    gain, low, high = average_classes(labels[is_held_out], difference)
    print(f"{one} - {other}: {gain:+.3f} [{low:+.3f}, {high:+.3f}]")

# %%
# An interval that contains zero means that 20 classes are too few to decide. The step from tables
# to a language-model panel is clear.
#
# Do the sources agree?
# ---------------------
# Sources that differ can complement each other. Here is how many of the first ten places two
# sources share, as a mean over the ten new classes; the panels are merged by Borda's rule first.

names = list(new)
overlap = np.zeros((len(names), len(names)))
targets = load_panel().target_names
for target in targets:
    merged = [rs.borda(found.select(target=target)).order[:10] for found in new.values()]
    listed = rs.Rankings.from_orders(merged).positions() > 0
    overlap += listed.astype(float) @ listed.T / 10 / len(targets)
fig, ax = plt.subplots(figsize=(6, 5), layout="constrained")
ax.imshow(overlap, cmap="Blues", vmin=0, vmax=1)
for i, j in np.ndindex(overlap.shape):
    ax.text(j, i, f"{overlap[i, j]:.2f}", ha="center", va="center", fontsize=8)
ax.set_xticks(range(len(names)), names, rotation=40, ha="right")
ax.set_yticks(range(len(names)), names)
plt.show()

# %%
# The measured accuracy
# ---------------------
# Finally, the ten new classes, with a classifier that has learnt all 100 seen ones:

classifier = RidgeClassifier().fit(data.seen_train, data.seen_train_label)
right = mark_right(new, classifier, data.new, data.new_label)
results = {name: average_classes(data.new_label, hits) for name, hits in right.items()}
for name, accuracy in results.items():
    print(f"{name:<19}{accuracy}")
rs.pages.ComparisonDisplay.from_results(results, chance=1 / 10)

# %%
# The rehearsal was correct about the panel. It called the other differences uncertain, and indeed
# the order of the other sources changed.
#
# **Be careful.** A language model may have read about CIFAR and about what classifiers confuse in
# it. With your own classes, rehearse before you trust any source; on the command line: ``rankshot
# rank --rehearse 20`` and ``rankshot doctor --rehearse``.
#
# **Where to go next.** :ref:`sphx_glr_gallery_sources_03_language_model.py` makes such a panel for
# your classes. :doc:`Sources of rankings </guide/sources>` describes each source.
