"""Make the files of features: ``python -m reproduction.build_features cifar|animals DIRECTORY``.

CIFAR: the directory has the archives ``cifar-10-binary.tar.gz`` and ``cifar-100-binary.tar.gz``,
the binary ones, which contain no pickles. EfficientNet-Lite0 extracts 1,280 features of each image
(an hour or more without a GPU; the extra ``onnx``), and a PCA fitted to CIFAR-100's training
images reduces them to 256.

Animals with Attributes: the directory has ``classes.txt``, ``predicates.txt``,
``predicate-matrix-continuous.txt``, ``testclasses.txt`` and, for each of five kinds of histograms,
``Features/<kind>-hist/<class>/<class>_0001.txt`` and so on. Each histogram is divided by its sum,
and the square root is taken, so that dot products compare distributions; the five are concatenated
and reduced to 512 numbers by a PCA fitted to the training classes.
"""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.linalg.blas import dsyrk

from rankshot.core.errors import RankshotError
from rankshot.datasets import class_names
from reproduction.efficientnet import EfficientNetFeatures

SIDE_PIXELS = 32
BLOCK_ROWS = 1_000
KINDS = ("lss", "phog", "rgsift", "sift", "surf")
"""The histograms of an animal's image. The sixth, cq, is not used: 15 classes do not have it."""
CIFAR_COMPONENTS, ANIMALS_COMPONENTS = 256, 512


# ---- Reduction


class Pca(NamedTuple):
    """A principal component analysis, with one scale for all components.

    ``mean`` has shape (d,), ``components`` (k, d), in descending order of variance.
    """

    mean: NDArray[Any]
    components: NDArray[Any]
    scale: NDArray[Any]

    def transform(self, blocks: Iterable[NDArray[Any]]) -> NDArray[np.float16]:
        """Return the components of all rows."""
        reduced = [(rows - self.mean) @ self.components.T / self.scale for rows in blocks]
        return np.concatenate(reduced).astype(np.float16)


def fit_pca(blocks: Callable[[], Iterator[NDArray[Any]]], n_components: int) -> Pca:
    """Fit a PCA, exactly, with one block of rows in memory at a time.

    ``scale`` is the root mean square of the components of all rows. Dividing by it gives features
    of unit size on average, and leaves the proportions of the components as they are.
    """
    sums = [(len(rows), rows.sum(axis=0, dtype=np.float64)) for rows in blocks()]
    n_rows = sum(n for n, _ in sums)
    mean = np.sum([total for _, total in sums], axis=0) / n_rows
    # One triangle of the scatter matrix, summed in place: a second matrix might not fit.
    scatter = np.zeros((mean.size, mean.size), order="F")
    for rows in blocks():
        scatter = dsyrk(1.0, (rows - mean).T, beta=1.0, c=scatter, lower=True, overwrite_c=True)
    n = min(n_components, mean.size, n_rows - 1)
    last = [mean.size - n, mean.size - 1]
    variances, vectors = eigh(scatter, lower=True, overwrite_a=True, subset_by_index=last)
    # In the other directions the rows vary only by rounding.
    real = variances > variances.max() * mean.size * np.finfo(np.float64).eps
    components = vectors[:, real][:, ::-1].T
    # The sign of a component is arbitrary; with a fixed one, every library gives the same result.
    largest = np.abs(components).argmax(axis=1, keepdims=True)
    components = components * np.sign(np.take_along_axis(components, largest, axis=1))
    return Pca(mean, components, np.sqrt(variances[real].mean() / n_rows))


# ---- CIFAR


def build_cifar(directory: Path) -> dict[str, Any]:
    """Return the arrays of CIFAR's file of features."""
    seen = read_archive(directory / "cifar-100-binary.tar.gz", ["train.bin", "test.bin"], 2)
    new = read_archive(directory / "cifar-10-binary.tar.gz", ["test_batch.bin"], 1)
    images = {
        "seen_train": seen["train.bin"],
        "seen_test": seen["test.bin"],
        "unseen_test": new["test_batch.bin"],
    }
    extract = EfficientNetFeatures()
    features = {name: extract(pixels) for name, (pixels, _) in images.items()}
    pca = fit_pca(lambda: iter([features["seen_train"]]), CIFAR_COMPONENTS)
    classes = class_names("cifar")
    return {
        **{name: pca.transform([rows]) for name, rows in features.items()},
        **{f"{name}_label": labels for name, (_, labels) in images.items()},
        "seen_classes": np.array(classes.seen),
        "unseen_classes": np.array(classes.new),
        **{f"pca_{name}": np.asarray(part, np.float32) for name, part in pca._asdict().items()},
    }


def read_archive(
    path: Path, members: list[str], label_bytes: int
) -> dict[str, tuple[NDArray[np.uint8], NDArray[np.int16]]]:
    """Return images of shape (n, 32, 32, 3) and class numbers, for each member of an archive.

    A record has its labels (the last is the fine one), then 1,024 red, green and blue pixels each.
    """
    found = {}
    with tarfile.open(path, "r|gz") as archive:
        for member in archive:
            name = Path(member.name).name
            stream = archive.extractfile(member) if name in members and member.isreg() else None
            if stream is None:
                continue
            pixels = 3 * SIDE_PIXELS * SIDE_PIXELS
            records = np.frombuffer(stream.read(), np.uint8).reshape(-1, label_bytes + pixels)
            planes = records[:, label_bytes:].reshape(-1, 3, SIDE_PIXELS, SIDE_PIXELS)
            labels = records[:, label_bytes - 1].astype(np.int16)
            found[name] = np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels
    if missing := sorted({*members} - {*found}):
        raise RankshotError(f"{path}: there is no {missing[0]}")
    return found


# ---- Animals with Attributes


def build_animals(directory: Path) -> dict[str, Any]:
    """Return the arrays of the animals' file of features; images are sorted by class and name."""
    classes, attribute_names = (
        [line.split()[1] for line in (directory / file).read_text().splitlines() if line.strip()]
        for file in ("classes.txt", "predicates.txt")
    )
    is_new = np.isin(classes, (directory / "testclasses.txt").read_text().split())
    files = [
        sorted(path.name for path in (directory / "Features/lss-hist" / name).glob("*.txt"))
        for name in classes
    ]
    label = np.repeat(np.arange(len(classes)), [len(some) for some in files])
    histograms = np.array(
        [
            np.concatenate(
                [read_histogram(directory / f"Features/{kind}-hist" / name / f) for kind in KINDS]
            )
            for name, some in zip(classes, files, strict=True)
            for f in some
        ],
        np.float32,
    )
    train = np.flatnonzero(~is_new[label])

    def read_blocks(rows: NDArray[np.int64]) -> Iterator[NDArray[Any]]:
        return (histograms[rows[i : i + BLOCK_ROWS]] for i in range(0, len(rows), BLOCK_ROWS))

    pca = fit_pca(lambda: read_blocks(train), ANIMALS_COMPONENTS)
    return {
        "features": pca.transform(read_blocks(np.arange(len(label)))),
        "label": label.astype(np.int16),
        "classes": np.array(classes),
        "unseen": is_new,
        "attributes": np.loadtxt(
            directory / "predicate-matrix-continuous.txt", dtype=np.float32, ndmin=2
        ),
        "attribute_names": np.array(attribute_names),
    }


def read_histogram(path: Path) -> NDArray[np.float64]:
    """Return the square root of each bin's share; an image without keypoints has only zeros."""
    counts = np.array(path.read_text().split(), np.float64)
    return np.sqrt(counts / (counts.sum() or 1.0))


if __name__ == "__main__":
    _, name, folder = sys.argv
    build = {"cifar": build_cifar, "animals": build_animals}[name]
    np.savez_compressed(Path(folder) / "features.npz", allow_pickle=False, **build(Path(folder)))
