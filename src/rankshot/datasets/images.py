"""Images in the package: photographs, features of CIFAR, and scores of an ImageNet network."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, quote_names, suggest_name
from rankshot.datasets.embedded import (
    class_names,
    embedded_arrays,
    embedded_file,
    embedded_rankings,
    read_only,
)
from rankshot.ranking.rankings import Rankings
from rankshot.sources.names import load_imagenet_labels
from rankshot.sources.vectors import ClassVectors
from rankshot.zeroshot.scores import Scores

RATER_FILE = "imagenet_rater.jsonl"
SCORES_FILE = "imagenet_scores.npz"
PHOTOGRAPHS_FOLDER = "photographs"
PHOTOGRAPHS_SCORES_FILE = "photographs_scores.npz"
PHOTOGRAPHS_RATER_FILE = "photographs.jsonl"


class Photographs(NamedTuple):
    """Photographs of new classes, with the scores of a network that knows 1,000 other classes.

    Attributes
    ----------
    files : ndarray of str
        Their file names, as `write_photographs` writes them.
    labels : ndarray of str
        The new class that each of them shows.
    scores : Scores
        The network's logits.
    predicted : ndarray of str
        The seen class that the network itself predicts.
    rankings : Rankings
        For each new class the first five seen classes, by one rater, a large language model.

    Examples
    --------
    >>> from rankshot.datasets import load_photographs
    >>> photos = load_photographs(["temple"])
    >>> photos.files.tolist(), photos.predicted.tolist()
    (['temple.jpg'], ['palace'])
    """

    files: NDArray[np.str_]
    labels: NDArray[np.str_]
    scores: Scores
    predicted: NDArray[np.str_]
    rankings: Rankings


def load_photographs(classes: Iterable[str] | None = None) -> Photographs:
    """Return the scores of EfficientNet-Lite0 for twelve photographs, one per new class.

    They illustrate how rankshot works; they are too few to measure anything. `write_photographs`
    writes the photographs themselves. ``photographs.md``, in the folder of the data, has their
    origins and licences.

    Parameters
    ----------
    classes : iterable of str, optional
        Only the photographs of these classes. By default all.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.datasets import load_photographs
    >>> photos = load_photographs()
    >>> photos.scores.values.shape
    (12, 1000)
    >>> photos.rankings.select(target="temple")
    Rankings: 1 ranking of 1,000 items, 1 target, 1 source, 1 rater
      temple: palace > stupa > monastery > mosque > bell cote
    >>> head = rs.WeightedMean().fit(photos.rankings)
    >>> n_correct = (head.predict(photos.scores) == photos.labels).sum()
    >>> print(n_correct, "of", len(photos.labels))
    11 of 12
    """
    seen = load_imagenet_labels().names
    rankings = embedded_rankings(PHOTOGRAPHS_RATER_FILE, seen)
    with embedded_arrays(PHOTOGRAPHS_SCORES_FILE) as arrays:
        files, logits = arrays["name"], arrays["logits"].astype(np.float32)
    labels = np.char.partition(files, ".")[:, 0]
    wanted = labels.tolist() if classes is None else list(classes)
    if unknown := [name for name in wanted if name not in labels]:
        hint = f"{suggest_name(unknown[0], labels)}; there are {quote_names(labels)}"
        raise RankshotError(f"no photograph of {quote_names(unknown)}{hint}")
    rows = np.isin(labels, wanted)
    return Photographs(
        files[rows],
        labels[rows],
        Scores(logits[rows], seen),
        np.array(seen)[logits[rows].argmax(axis=1)],
        rankings[np.isin(rankings.targets.astype(str), wanted)],
    )


def write_photographs(folder: str | Path) -> None:
    """Write the twelve photographs to a folder, as JPEG files of 224 x 224 pixels.

    Parameters
    ----------
    folder : str or Path
        The folder to write to; it is created if needed. Files with the same names are replaced.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rankshot.datasets import write_photographs
    >>> with TemporaryDirectory() as folder:
    ...     write_photographs(folder)
    ...     sorted(path.name for path in Path(folder).iterdir())[:2]
    ['astronaut.jpg', 'brick_wall.jpg']
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in load_photographs().files.tolist():
        with embedded_file(f"{PHOTOGRAPHS_FOLDER}/{name}") as path:
            Path(folder, name).write_bytes(path.read_bytes())


@dataclass(frozen=True, eq=False, repr=False)
class ImageData:
    """Images as features, with the names of their classes; all arrays are read-only.

    Attributes
    ----------
    name : str
        The data set, "cifar" or "animals", as for `load_panel`, `load_similarities` and
        `load_class_vectors`.
    seen_train, seen_train_label : ndarray of shape (n, d), ndarray of shape (n,)
        Images of the seen classes, for training.
    seen_validation, seen_validation_label : ndarrays
        Other images of the seen classes, for calibration and for the choice of settings.
    new, new_label : ndarrays
        Images of the new classes, for reporting results; no setting may be chosen on them.
    seen_classes, new_classes : tuples of str
        The names of the classes, sorted.
    attributes : ClassVectors or None
        The attributes of all classes, if the data set has them; missing ones are NaN.

    Examples
    --------
    >>> from rankshot.datasets import load_cifar
    >>> data = load_cifar()
    >>> data.name, data.seen_train.shape, data.new_classes[:2]
    ('cifar', (8000, 256), ('airplane', 'automobile'))
    """

    name: str
    seen_train: NDArray[np.float32]
    seen_train_label: NDArray[np.str_]
    seen_validation: NDArray[np.float32]
    seen_validation_label: NDArray[np.str_]
    new: NDArray[np.float32]
    new_label: NDArray[np.str_]
    seen_classes: tuple[str, ...]
    new_classes: tuple[str, ...]
    attributes: ClassVectors | None = None

    def __repr__(self) -> str:
        return (
            f"{self.name}: {len(self.seen_train)} + {len(self.seen_validation)} images of "
            f"{len(self.seen_classes)} seen classes, {len(self.new)} of "
            f"{len(self.new_classes)} new ones, {self.new.shape[1]} features"
        )


def load_cifar() -> ImageData:
    """Return features of images of CIFAR-100 (seen classes) and of CIFAR-10 (new classes).

    8,000 images are for training, 3,000 for validation and 4,000 are of new classes. The features
    are those of a network trained on ImageNet, reduced by PCA and rounded to multiples of a
    quarter; ``cifar_features.md``, in the folder of the data, describes how they were made, and
    their limits.

    Examples
    --------
    >>> from rankshot.datasets import load_cifar
    >>> data = load_cifar()
    >>> data
    cifar: 8000 + 3000 images of 100 seen classes, 4000 of 10 new ones, 256 features
    >>> print(data.seen_train_label[:3], data.new_classes[:3])
    ['oak_tree' 'lobster' 'girl'] ('airplane', 'automobile', 'bird')
    """
    seen, new = class_names("cifar")
    parts: dict[str, Any] = {}
    with embedded_arrays("cifar_features.npz") as arrays:
        for part, stored, classes in (
            ("seen_train", "seen_train", seen),
            ("seen_validation", "seen_validation", seen),
            ("new", "unseen", new),
        ):
            # The file has whole steps, one row per dimension.
            parts[part] = read_only(np.multiply(arrays[stored].T, arrays["step"], order="C"))
            parts[f"{part}_label"] = read_only(np.array(classes)[arrays[f"{stored}_label"]])
    return ImageData(name="cifar", **parts, seen_classes=seen, new_classes=new)


class Thumbnails(NamedTuple):
    """Images of new classes, to show next to their predictions; all arrays are read-only.

    Attributes
    ----------
    images : ndarray of uint8, shape (60, 32, 32, 3)
        Red, green and blue.
    labels : ndarray of str, shape (60,)
        The class of each image.
    rows : ndarray of int, shape (60,)
        The row of each image in ``load_cifar().new``.

    Examples
    --------
    >>> from rankshot.datasets import load_thumbnails
    >>> images = load_thumbnails()
    >>> images.images.shape, str(images.labels[0])
    ((60, 32, 32, 3), 'airplane')
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.str_]
    rows: NDArray[np.int64]


def load_thumbnails() -> Thumbnails:
    """Return 60 images of CIFAR-10, six of each class, whose features `load_cifar` returns.

    Examples
    --------
    >>> from rankshot.datasets import load_cifar, load_thumbnails
    >>> images, labels, rows = load_thumbnails()
    >>> images.shape, images.dtype
    ((60, 32, 32, 3), dtype('uint8'))
    >>> bool((load_cifar().new_label[rows] == labels).all())
    True
    """
    with embedded_arrays("cifar_thumbnails.npz") as arrays:
        labels = np.array(class_names("cifar").new)[arrays["label"]]
        rows = arrays["row"].astype(np.int64)
        return Thumbnails(*map(read_only, (arrays["image"], labels, rows)))


class ImageNetScores(NamedTuple):
    """Scores of a network that knows 1,000 classes, for images of 20 other classes.

    Attributes
    ----------
    scores : Scores
        The network's logits for 280 images, 14 of each new class.
    labels : ndarray of str
        The new class of each image.
    reference : Scores
        The logits of 96 images of 24 of the seen classes.
    reference_labels : ndarray of str
        The seen class of each of these images.
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
    """Return the scores of EfficientNet-Lite0 for small images, and rankings of their classes.

    The images are CIFAR's, enlarged; ``imagenet_scores.md``, in the folder of the data, describes
    them. They show how rankshot works with 1,000 seen classes. They are too few to compare methods.

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
    seen = load_imagenet_labels().names
    rankings = embedded_rankings(RATER_FILE, seen)
    with embedded_arrays(SCORES_FILE) as arrays:
        return ImageNetScores(
            Scores(arrays["new"].astype(np.float32), seen),
            arrays["new_label"],
            Scores(arrays["reference"].astype(np.float32), seen),
            arrays["reference_label"],
            rankings,
        )
