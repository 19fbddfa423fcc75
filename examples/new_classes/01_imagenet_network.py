"""
Can a network for ImageNet recognise other classes?
===================================================

You have a network with 1,000 outputs, and pictures of classes that are not among them. This
example takes EfficientNet-Lite0 as it is and recognises "deer", "truck" and "airplane". ImageNet
has gazelles, moving vans and airliners, but no class of these names. For each new class, WordNet
or a language model ranks the 1,000 known classes by similarity. Nothing is trained, and no picture
of a new class is needed before the first prediction.

The network comes with ``pip install 'rankshot[images,plot]'``.
"""

# %%
# Scores of the network
# ---------------------
#
# The package has 60 small pictures of CIFAR-10, six of each class. We take the first three of each.
# :func:`~rankshot.inference.score` runs a network over pictures and returns its scores. The
# built-in network brings its own preprocessing and the names of its 1,000 classes.

# sphinx_gallery_thumbnail_number = 2
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from matplotlib import pyplot as plt
from PIL import Image

import rankshot as rs
from rankshot.datasets import load_imagenet, load_thumbnails
from rankshot.zeroshot.metrics import wilson_interval

images, labels, _ = load_thumbnails()
is_first = np.arange(len(labels)) % 6 < 3
images, labels = images[is_first], labels[is_first]
scored = rs.inference.score("efficientnet-lite0", [Image.fromarray(image) for image in images])
scores = scored.scores
print(f"{len(scores)} pictures, {len(scores.items)} scores each")

# %%
# Rankings of the new classes
# ---------------------------
#
# WordNet needs only names. The classes of ImageNet come with their WordNet senses, so no meaning of
# a word is guessed. The other rankings are those of a large language model. It saw the names of all
# classes, but no picture and no score, and listed ten known classes for each new one.

data = load_imagenet()
imagenet = rs.sources.read_class_labels("imagenet-1k")
new_classes = np.unique(data.labels)
wordnet = rs.WordNet(senses=imagenet.senses).similarity(new_classes, imagenet.names).to_rankings()
language_model = data.rankings

# %%
# What is most like a deer? WordNet knows the family tree: many hoofed animals are equally near, and
# they share a place. The language model thinks of what deer look like.

both = rs.Rankings.concatenate([wordnet, language_model])
rs.plots.RankingsDisplay.from_rankings(both, "deer", k=8)
plt.show()

# %%
# Predictions
# -----------
#
# A head turns scores and rankings into probabilities of the new classes. The *reference* is a table
# of scores of other pictures. It tells the head which scores are usual: this network names a fox
# squirrel in many small, enlarged pictures. Here the ten classes of CIFAR-10 are the new classes.

is_wanted = np.isin(language_model.targets, labels)
head = rs.WeightedMean().fit(language_model[is_wanted], reference=data.reference)
found = head.predict(scores)
own = np.array(scores.items)[scores.values.argmax(axis=1)]

_, axes = plt.subplots(6, 5, figsize=(6.4, 8.6), layout="constrained")
for ax, image, label, name, said in zip(axes.flat, images, labels, found, own, strict=True):
    ax.imshow(image)
    ax.set(xticks=[], yticks=[])
    right = name == label
    ax.set_title(f"{'✓' if right else '✗'} {name}", color="C2" if right else "C3", fontsize=10)
    ax.set_xlabel(f"network: {said[:14]}", fontsize=7)
plt.show()
print(f"right: {np.mean(found == labels):.2f} of {len(labels)} pictures (chance: 0.10)")

# %%
# Above each picture is the predicted new class, below it what the network says by itself.
#
# How good is it?
# ---------------
#
# Thirty pictures are too few to compare methods. The package also has this network's scores for 280
# pictures of 20 new classes, 14 of each. Chance is 1 in 20.

heads = {
    "WordNet": rs.WeightedMean().fit(wordnet),
    "language model": rs.WeightedMean().fit(language_model),
    "WordNet, reference": rs.WeightedMean().fit(wordnet, reference=data.reference),
    "language model, reference": rs.WeightedMean().fit(language_model, reference=data.reference),
}
accuracies = {}
for name, fitted in heads.items():
    n_right = int(np.sum(fitted.predict(data.scores) == data.labels))
    accuracies[name] = wilson_interval(n_right, len(data.labels))
    print(f"{name:<27}{accuracies[name]}")

rs.plots.ComparisonDisplay.from_results(accuracies, chance=1 / len(new_classes))
plt.show()

# %%
# Which classes are confused?
# ---------------------------

best = heads["language model, reference"]
rs.plots.ConfusionDisplay.from_predictions(data.labels, best.predict(data.scores))
plt.show()

# %%
# Keep the head
# -------------
#
# One file has all that the head needs, without the rankings and the reference. It is no pickle.

with TemporaryDirectory() as folder:
    path = Path(folder) / "new-classes.rankshot"
    best.save(path, note="CIFAR classes from ImageNet")
    again = rs.load_head(path)
    print(f"{path.stat().st_size / 1e6:.1f} MB")
same = np.array_equal(again.predict_proba(data.scores), best.predict_proba(data.scores))
print(f"the loaded head gives the same probabilities: {same}")

# %%
# The language model is better than WordNet here, and the reference helps both. About one picture in
# three is still wrong: they are small and blurred, and the network never saw such pictures. The new
# classes are new as names, not as things: ImageNet has breeds of dogs and kinds of ships.
#
# What to read next
# -----------------
#
# - :doc:`Models, commands and files </guide/files>`: ONNX files, torch, transformers, and
#   ``rankshot recognise``, which does all of this in one command.
# - :ref:`sphx_glr_gallery_new_classes_03_rehearsal.py`: how accurate it will be, before there are
#   pictures with labels.
# - :ref:`sphx_glr_gallery_new_classes_05_explain.py`: why a class was predicted.
