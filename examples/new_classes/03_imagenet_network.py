"""Can a network that was trained on ImageNet recognise classes that ImageNet does not have?
=========================================================================================

Install: pip install 'rankshot[images]'

A folder of 60 small pictures (CIFAR-10's, which come with rankshot) is scored by EfficientNet-Lite0
as it is, with its outputs for ImageNet's 1,000 classes. The new classes are airplane, cat, truck
and so on. ImageNet has kinds of most of them, such as airliner, tabby and moving van, but none of
them as a class. Rankings from WordNet, or from a language model that saw the names alone, lead
from the 1,000 scores to the new classes. Nothing is trained.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

import rankshot as rs
from rankshot.datasets import load_imagenet, load_thumbnails


def write_pictures(folder: Path) -> tuple[str, ...]:
    """Write each picture as a PNG file into a folder of its class, and return the classes."""
    pictures = load_thumbnails()
    for number, (image, label) in enumerate(zip(pictures.images, pictures.labels, strict=True)):
        (folder / label).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / label / f"{number:02}.png")
    return tuple(map(str, np.unique(pictures.labels)))


def show_classes(new: tuple[str, ...], labels: rs.ClassLabels) -> None:
    """Print which of the new classes the network knows already."""
    known = [name for name in new if labels.match(name)]
    print(f"new classes: {', '.join(new)}")
    print(f"of these, classes of ImageNet: {', '.join(known) or 'none'}\n")


def show_rankings(rankings: rs.Rankings, name: str) -> None:
    for target in ("cat", "deer"):
        order = rankings.select(target=target).top(4)
        print(f"{name}, {str(order).splitlines()[1].strip()}")


def main(folder: Path) -> None:
    new = write_pictures(folder / "photos")
    labels = rs.read_class_labels("imagenet-1k")
    show_classes(new, labels)

    # The network brings its own preprocessing. An id is the path of a picture in the folder; only
    # the lines that count right answers look at the name of the class in it.
    found = rs.score("efficientnet-lite0", folder / "photos")
    truth = np.array([Path(name).parent.name for name in found.ids])
    n, n_seen = found.scores.values.shape
    print(f"{n} pictures have {n_seen} scores each, for example {found.ids[0]}:")
    for i in np.argsort(-found.scores.values[0])[:3]:
        print(f"  {found.scores.items[i]:<18}{found.scores.values[0, i]:>6.1f}")

    # ImageNet's classes come with their WordNet synsets: no sense of a word is guessed for them.
    wordnet = rs.WordNet(senses=labels.senses).similarity(new, labels.names).to_rankings()
    data = load_imagenet()
    rater = data.rankings[np.isin(data.rankings.targets, new)]
    print()
    show_rankings(wordnet, "WordNet")
    show_rankings(rater, "language model")

    print(f"\nright, of {n} pictures (chance: {1 / len(new):.2f}):")
    # The reference: scores of some pictures of seen classes tell which scores are usual.
    head = rs.WeightedMean().fit(rater, reference=data.reference)
    heads = {
        "WordNet": rs.WeightedMean().fit(wordnet),
        "language model": rs.WeightedMean().fit(rater),
        "language model, with reference": head,
    }
    for name, fitted in heads.items():
        print(f"  {name:<32}{np.mean(fitted.predict(found.scores) == truth):.2f}")

    # One file keeps all that the head needs; it is no pickle.
    head.save(folder / "new-classes.rankshot", note="CIFAR-10 from ImageNet")
    again = rs.load_head(folder / "new-classes.rankshot")
    same = np.array_equal(head.predict_proba(found.scores), again.predict_proba(found.scores))
    size = (folder / "new-classes.rankshot").stat().st_size
    print(f"\nsaved in {size / 1e3:.0f} kB; the loaded head gives the same probabilities: {same}")


if __name__ == "__main__":
    with TemporaryDirectory() as directory:
        main(Path(directory))
