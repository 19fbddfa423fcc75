"""A miniature with 1,000 seen classes: scores of an ImageNet network for small pictures."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.datasets.embedded import embedded_file
from rankshot.ranking.files.ranking_files import read_rankings
from rankshot.ranking.rankings import Rankings
from rankshot.sources.names.labels import load_imagenet_labels
from rankshot.zeroshot.scores import Scores

RATER_FILE = "imagenet_rater.jsonl"
SCORES_FILE = "imagenet_scores.npz"


class ImageNetClasses(NamedTuple):
    """The 1,000 classes of ImageNet, in the order of a network's outputs.

    Attributes
    ----------
    names : tuple of str
        The first synonym, which is what most lists of these classes show. Five classes that would
        share it with another have longer names, such as ``crane (bird)``. They are the names of
        ``read_class_labels("imagenet-1k")``.
    ids : tuple of str
        The WordNet 3.0 synset of each class, such as ``n02012849``.
    synonyms : tuple of str
        All synonyms, separated by commas, such as ``goldfish, Carassius auratus``.

    Examples
    --------
    >>> from rankshot.datasets import imagenet_classes
    >>> classes = imagenet_classes()
    >>> classes.names[1], classes.ids[1], classes.synonyms[1]
    ('goldfish', 'n01443537', 'goldfish, Carassius auratus')
    """

    names: tuple[str, ...]
    ids: tuple[str, ...]
    synonyms: tuple[str, ...]


def imagenet_classes() -> ImageNetClasses:
    """Return the names, synset ids and synonyms of ImageNet's 1,000 classes.

    Examples
    --------
    >>> from rankshot.datasets import imagenet_classes
    >>> classes = imagenet_classes()
    >>> len(classes.names), classes.names[1], classes.ids[1], classes.synonyms[1]
    (1000, 'goldfish', 'n01443537', 'goldfish, Carassius auratus')
    """
    labels = load_imagenet_labels()
    ids = tuple(labels.senses.values())
    return ImageNetClasses(labels.names, ids, tuple(map(", ".join, labels.synonyms)))


class ImageNetScores(NamedTuple):
    """Scores of a network that knows 1,000 classes, for pictures of 20 other classes.

    Attributes
    ----------
    scores : Scores
        The network's logits of 280 pictures, 14 of each new class.
    labels : ndarray of str
        The new class of each picture.
    reference : Scores
        The logits of 96 pictures of 24 of the seen classes.
    reference_labels : ndarray of str
        The seen class of each of these pictures.
    rankings : Rankings
        For each new class the first ten seen classes, by one rater, a large language model.

    Examples
    --------
    >>> from rankshot.datasets import load_imagenet
    >>> data = load_imagenet()
    >>> data.scores.values.shape, str(data.labels[0]), data.rankings.target_names[:2]
    ((280, 1000), 'ship', ('airplane', 'automobile'))
    """

    scores: Scores
    labels: NDArray[np.str_]
    reference: Scores
    reference_labels: NDArray[np.str_]
    rankings: Rankings


def load_imagenet() -> ImageNetScores:
    """Return the scores of EfficientNet-Lite0 for small pictures, and rankings of their classes.

    The pictures are CIFAR's, enlarged; ``imagenet_scores.md``, in the folder of the data,
    describes them. They show how rankshot works at 1,000 seen classes. They are too few to
    compare methods.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.datasets import load_imagenet
    >>> data = load_imagenet()
    >>> data.scores.values.shape
    (280, 1000)
    >>> head = rs.WeightedMean().fit(data.rankings)
    >>> accuracy = (head.predict(data.scores) == data.labels).mean()
    >>> print(f"{accuracy:.2f}, where chance is {1 / len(head.classes_):.2f}")
    0.57, where chance is 0.05
    """
    seen = imagenet_classes().names
    with embedded_file(RATER_FILE) as path:
        rankings = read_rankings(path, items=seen)
    with embedded_file(SCORES_FILE) as path, np.load(path, allow_pickle=False) as arrays:
        return ImageNetScores(
            Scores(arrays["new"].astype(np.float32), seen),
            arrays["new_label"],
            Scores(arrays["reference"].astype(np.float32), seen),
            arrays["reference_label"],
            rankings,
        )
