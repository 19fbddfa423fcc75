"""
Zero-shot classification with an ImageNet network
=================================================

You have a network with 1,000 outputs, and photographs of classes that are not among them. This
example uses EfficientNet-Lite0 as it is and recognises raccoons, rockets and temples. For each new
class, it needs a short list of the ImageNet classes that resemble it most. Nothing is trained, and
no photograph of a new class is needed before the first prediction.

The network comes with ``pip install 'rankshot[cli,onnx]'``.
"""

# %%
# Twelve photographs, twelve new classes
# --------------------------------------
#
# :func:`~rankshot.recognition.score` runs a network over a folder of images and returns its scores.
# The built-in network includes its preprocessing and the names of its 1,000 classes. The
# photographs are in the package, and so is a file with their licences.

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from matplotlib import pyplot as plt
from PIL import Image
from sklearn.metrics import ConfusionMatrixDisplay

import rankshot as rs
from rankshot.datasets import load_imagenet, load_photographs, write_photographs
from rankshot.zeroshot.metrics import wilson_interval

photographs = TemporaryDirectory()
write_photographs(photographs.name)
scored = rs.recognition.score("efficientnet-lite0", photographs.name)
print(f"{len(scored.ids)} photographs, {len(scored.scores.items)} scores each")

# %%
# One list per new class, best first. A language model wrote these from the names alone: it saw
# neither the photographs nor the scores. "Raccoon" is not a class of ImageNet, and neither are the
# other eleven.

lists = load_photographs().rankings
for target, order in zip(lists.targets, lists.orders(), strict=True):
    print(f"{target}: {', '.join(order)}")

# %%
# A head turns scores and rankings into probabilities of the new classes. The *reference* is a table
# of scores for other images, without labels: the baseline of each score.

reference = load_imagenet().reference
head = rs.WeightedMean().fit(lists, reference=reference)
found = head.predict(scored.scores)
confidence = head.predict_proba(scored.scores).max(axis=1)
labels = np.array([Path(name).stem for name in scored.ids])
own = np.array(scored.scores.items)[scored.scores.values.argmax(axis=1)]

_, axes = plt.subplots(3, 4, figsize=(6.4, 6), layout="constrained")
for ax, file, label, new, p, said in zip(
    axes.flat, scored.ids, labels, found, confidence, own, strict=True
):
    ax.imshow(Image.open(Path(photographs.name) / file))
    ax.set(xticks=[], yticks=[])
    ax.set_xlabel(f"network: {said[:13]}", fontsize=9)
    name = new.replace("_", " ")
    ax.set_title(f"{name} {p:.0%}", color="C2" if new == label else "C1", fontsize=10)
plt.show()
print(f"correct: {np.sum(found == labels)} of {len(labels)} (chance: 1)")

# %%
# Above each photograph is the new class with its probability, in green if it is correct. Below it
# is the prediction of the network itself.
#
# How accurate is it?
# -------------------
#
# Twelve photographs only illustrate the idea. The package also has this network's scores for 280
# small images of 20 other new classes, such as "deer" and "truck", with rankings from WordNet and
# from a language model. Which classes are most similar to a deer? WordNet knows the family tree:
# many hoofed animals are equally near, and they share a place. The language model lists what deer
# look like.

data = load_imagenet()
imagenet = rs.sources.read_class_labels("imagenet-1k")
new_classes = np.unique(data.labels)
wordnet = rs.WordNet(senses=imagenet.senses).similarity(new_classes, imagenet.names).to_rankings()
both = rs.Rankings.concatenate([wordnet, data.rankings])
rs.pages.plot_rankings(both, "deer", k=8)
plt.show()

# %%
# The accuracy on the new classes, with 95% intervals:

heads = {
    "WordNet": rs.WeightedMean().fit(wordnet),
    "language model": rs.WeightedMean().fit(data.rankings),
    "WordNet, reference": rs.WeightedMean().fit(wordnet, reference=reference),
    "language model, reference": rs.WeightedMean().fit(data.rankings, reference=reference),
}
accuracies = {}
for name, fitted in heads.items():
    n_right = int(np.sum(fitted.predict(data.scores) == data.labels))
    accuracies[name] = wilson_interval(n_right, len(data.labels))
    print(f"{name:<27}{accuracies[name]}")
rs.pages.plot_comparison(accuracies, chance=1 / len(new_classes))
plt.show()

# %%
# Which classes are confused?

best = heads["language model, reference"]
ConfusionMatrixDisplay.from_predictions(
    data.labels, best.predict(data.scores), xticks_rotation="vertical", colorbar=False
)
plt.show()

# %%
# The language model is more accurate than WordNet here, and a reference of 96 images improves both.
# More than one prediction in three is still wrong: the images have 32 x 32 pixels, and the network
# never saw such images.
#
# Save the head
# -------------
#
# One file has everything that the head needs. It contains no pickle.

with TemporaryDirectory() as folder:
    path = Path(folder) / "new-classes.rankshot"
    best.save(path, provenance={"note": "CIFAR classes from ImageNet"})
    again = rs.load_head(path)
    print(f"{path.stat().st_size / 1e6:.1f} MB")
same = np.array_equal(again.predict_proba(data.scores), best.predict_proba(data.scores))
print(f"the loaded head gives the same probabilities: {same}")

# %%
# **In one command.** ``rankshot demo`` writes the photographs and the rankings to files. Then:
# ``rankshot recognise rankshot-demo/photographs --model efficientnet-lite0 --rankings
# rankshot-demo/photographs.jsonl -o predictions.csv``.
#
# **Where to go next.** :doc:`Your model </guide/classifier>` covers ONNX files, torch and
# transformers. :doc:`Forecast </guide/forecast>` shows how to know the accuracy before there are
# labelled images, and :doc:`Examples and review </guide/examples>` how to add some.
