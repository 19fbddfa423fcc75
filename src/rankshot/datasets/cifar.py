"""CIFAR: features of the images of 100 seen and 10 new classes, from a file or from its archives.

The archives are the binary ones, which contain no pickles.
"""

from __future__ import annotations

import shutil
import tarfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.files import replace_file
from rankshot.core.http import download
from rankshot.core.progress import Announce
from rankshot.datasets.efficientnet import N_FEATURES, SIDE, EfficientNetFeatures, Images
from rankshot.datasets.embedded import class_names, embedded_file
from rankshot.datasets.features import (
    FeatureFile,
    Features,
    ImageData,
    Labels,
    Pca,
    fit_pca,
    read_only,
)

PARTS = {"seen_train": "seen", "seen_test": "seen", "unseen_test": "unseen"}
"""The parts of a file of features, and the kind of their classes in the names of its arrays."""
Extract = Callable[[Images], Features]
ArchiveLabels = NDArray[np.int16]
HOME = "https://www.cs.toronto.edu/~kriz"
PIXELS = 3 * SIDE * SIDE
MAX_LIST_BYTES = 1 << 16
"""The most bytes of a list of class names."""
SHARD = 1000
"""Images per file of intermediate features: a minute or two of work on a CPU."""
N_COMPONENTS = 256
"""The number of features after the PCA, out of 1,280."""


def load_cifar(path: str | Path | None = None) -> ImageData:
    """Return features of images of CIFAR-100 (seen classes) and of CIFAR-10 (new classes).

    Without a path, these are the data that come with the package: 8,000 images for training,
    3,000 for validation and 4,000 of new classes. The features are those of a network trained on
    ImageNet, reduced by PCA and rounded to multiples of a quarter; ``cifar_features.md``, in the
    folder of the data, describes how they were made, and their limits.

    Parameters
    ----------
    path : str or Path, optional
        A file of features of all images (``features.npz``), as `build_cifar_features` writes it:
        50,000 for training (CIFAR-100's training images), 10,000 for validation (its test
        images) and 10,000 of new classes (CIFAR-10's test images). It has the arrays
        ``seen_train``, ``seen_test`` and ``unseen_test`` (images by features), for each of them
        one with ``_label`` (class numbers), and the names ``seen_classes`` and
        ``unseen_classes``.

    Raises
    ------
    RankshotError
        Names the file and the array that is missing or wrong.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> from rankshot.datasets import load_cifar
    >>> data = load_cifar()
    >>> data
    cifar: 8000 + 3000 images of 100 seen classes, 4000 of 10 new ones, 256 features
    >>> data.seen_train.shape, data.seen_validation.shape, data.new.shape
    ((8000, 256), (3000, 256), (4000, 256))
    >>> print(data.seen_train_label[:3], data.new_classes[:3])
    ['oak_tree' 'lobster' 'girl'] ('airplane', 'automobile', 'bird')
    """
    return _load_embedded() if path is None else _load_file(Path(path))


def _load_embedded() -> ImageData:
    seen, new = class_names("cifar")
    with (
        embedded_file("cifar_features.npz") as path,
        np.load(path, allow_pickle=False) as arrays,
    ):
        return ImageData(
            "cifar",
            *_read_embedded_part(arrays, "seen_train", seen),
            *_read_embedded_part(arrays, "seen_validation", seen),
            *_read_embedded_part(arrays, "unseen", new),
            seen_classes=seen,
            new_classes=new,
        )


def _read_embedded_part(
    arrays: Mapping[str, NDArray[Any]], part: str, classes: tuple[str, ...]
) -> tuple[Features, Labels]:
    """Return features and labels, read-only; the file has whole steps, one row per dimension."""
    features = np.multiply(arrays[part].T, arrays["step"], order="C")
    return read_only(features), read_only(np.array(classes)[arrays[f"{part}_label"]])


class Thumbnails(NamedTuple):
    """Pictures of new classes, to show beside their predictions; all arrays are read-only.

    Attributes
    ----------
    images : ndarray of uint8, shape (60, 32, 32, 3)
        Red, green and blue.
    labels : ndarray of str, shape (60,)
        The class of each picture.
    rows : ndarray of int, shape (60,)
        The row of each picture in ``load_cifar().new``.

    Examples
    --------
    >>> from rankshot.datasets import load_thumbnails
    >>> pictures = load_thumbnails()
    >>> pictures.images.shape, str(pictures.labels[0])
    ((60, 32, 32, 3), 'airplane')
    """

    images: Images
    labels: Labels
    rows: NDArray[np.int64]


def load_thumbnails() -> Thumbnails:
    """Return 60 pictures of CIFAR-10, six of each class, whose features `load_cifar` has.

    Examples
    --------
    >>> from rankshot.datasets import load_cifar, load_thumbnails
    >>> images, labels, rows = load_thumbnails()
    >>> images.shape, images.dtype
    ((60, 32, 32, 3), dtype('uint8'))
    >>> bool((load_cifar().new_label[rows] == labels).all())
    True
    """
    with (
        embedded_file("cifar_thumbnails.npz") as path,
        np.load(path, allow_pickle=False) as arrays,
    ):
        labels = np.array(class_names("cifar").new)[arrays["label"]]
        rows = arrays["row"].astype(np.int64)
        return Thumbnails(*map(read_only, (arrays["image"], labels, rows)))


def _load_file(path: Path) -> ImageData:
    seen, new = class_names("cifar")
    names = [*PARTS, *(f"{part}_label" for part in PARTS), "seen_classes", "unseen_classes"]
    file = FeatureFile.read(path, names)
    # Labels are indices into the names as the file lists them, in any order.
    known = {
        "seen": file.classes("seen_classes", seen),
        "unseen": file.classes("unseen_classes", new),
    }
    train, validation, test = (_read_part(file, part, known[kind]) for part, kind in PARTS.items())
    for part, (features, _) in zip(PARTS, (train, validation, test), strict=True):
        if features.shape[1] != train[0].shape[1]:
            problem = f"has {features.shape[1]} features, but 'seen_train' has {train[0].shape[1]}"
            raise file.error(part, problem)
    data = ImageData("cifar", *train, *validation, *test, seen_classes=seen, new_classes=new)
    return data.require_complete()


def _read_part(file: FeatureFile, part: str, classes: tuple[str, ...]) -> tuple[Features, Labels]:
    features = file.features(part)
    return features, file.labels(f"{part}_label", classes, len(features))


# ---- The archives


@dataclass(frozen=True)
class CifarArchive:
    """One of the two archives: its address, and the layout of its records."""

    file: str
    md5: str
    folder: str
    """The folder of its members."""
    names: str
    """The member that lists the classes, one name per line."""
    classes: tuple[str, ...]
    """The classes that it must list."""
    label_bytes: int
    """Bytes before the pixels of a record; the last is the (fine) label."""
    images: Mapping[str, int]
    """The members that are read, and the number of images in each."""

    @property
    def url(self) -> str:
        """The address of the archive."""
        return f"{HOME}/{self.file}"


class LabelledImages(NamedTuple):
    """Images of shape (n, 32, 32, 3), uint8, and their class numbers."""

    images: Images
    labels: ArchiveLabels


CIFAR10 = CifarArchive(
    file="cifar-10-binary.tar.gz",
    md5="c32a1d4ab5d03f1284b67883e8d87530",
    folder="cifar-10-batches-bin",
    names="batches.meta.txt",
    classes=class_names("cifar").new,
    label_bytes=1,
    images={"test_batch.bin": 10_000},
)


CIFAR100 = CifarArchive(
    file="cifar-100-binary.tar.gz",
    md5="03b5dce01913d631647c71ecec9e9cb8",
    folder="cifar-100-binary",
    names="fine_label_names.txt",
    classes=class_names("cifar").seen,
    label_bytes=2,  # the coarse label, then the fine one
    images={"train.bin": 50_000, "test.bin": 10_000},
)


def read_cifar_archive(path: str | Path, archive: CifarArchive) -> dict[str, LabelledImages]:
    """Return the images of an archive, by member: ``train.bin``, ``test.bin``, ``test_batch.bin``.

    Raises
    ------
    RankshotError
        Names the archive and the member that is missing or wrong.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> CIFAR10.url, CIFAR10.classes[:3]
    ('https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz', ('airplane', 'automobile', 'bird'))

    The archive is not in the package (170 MB), so tests do not run this:

    >>> parts = read_cifar_archive("cifar-10-binary.tar.gz", CIFAR10)  # doctest: +SKIP
    >>> parts["test_batch.bin"].images.shape  # doctest: +SKIP
    (10000, 32, 32, 3)
    """
    path = Path(path)
    contents = _read_members(path, archive)
    names = tuple(contents.pop(archive.names).decode(errors="replace").split())
    if names != archive.classes:
        raise RankshotError(
            f"{path}: {archive.names} does not list CIFAR's classes: {short_repr(names)}"
        )
    return {
        name: _parse_records(content, archive, f"{path}: {name}")
        for name, content in contents.items()
    }


def _read_members(path: Path, archive: CifarArchive) -> dict[str, bytes]:
    """Read the members of class names and images, in one pass; nothing is unpacked to disk."""
    record = archive.label_bytes + PIXELS
    sizes = {name: count * record for name, count in archive.images.items()}
    wanted = {f"{archive.folder}/{name}": name for name in (*archive.images, archive.names)}
    contents = {}
    try:
        with tarfile.open(path, "r|gz") as tar:
            for member in tar:
                name = wanted.get(member.name)
                stream = tar.extractfile(member) if name and member.isreg() else None
                if name is None or stream is None:
                    continue
                if member.size != sizes.get(name, member.size):
                    raise RankshotError(
                        f"{path}: {name} is {member.size:,} bytes long, not {sizes[name]:,}"
                    )
                contents[name] = stream.read(sizes.get(name, MAX_LIST_BYTES))
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise RankshotError(f"{path}: not a complete .tar.gz file ({error}); delete it") from None
    if missing := sorted({*wanted.values()} - {*contents}):
        raise RankshotError(f"{path}: there is no {missing[0]} in {archive.folder}")
    return contents


def _parse_records(content: bytes, archive: CifarArchive, where: str) -> LabelledImages:
    """Parse records: labels, then 1,024 red, 1,024 green and 1,024 blue pixels, row by row."""
    records = np.frombuffer(content, np.uint8).reshape(-1, archive.label_bytes + PIXELS)
    labels = records[:, archive.label_bytes - 1].astype(np.int16)
    if (wrong := labels >= len(archive.classes)).any():
        row = int(wrong.argmax())
        raise RankshotError(
            f"{where}: image {row} has label {labels[row]}, which is not a class number"
        )
    planes = records[:, archive.label_bytes :].reshape(-1, 3, SIDE, SIDE)
    return LabelledImages(planes.transpose(0, 2, 3, 1), labels)


# ---- Building the file of features


def build_cifar_features(directory: str | Path, announce: Announce) -> Path:
    """Make ``cifar/features.npz`` in a directory, from CIFAR's archives; return its path.

    The archives (340 MB) are downloaded from CIFAR's web site into ``cifar/`` and stay there.
    EfficientNet-Lite0 extracts the features of their images: an hour or more without a GPU. After
    an interruption, a second call continues where the first one stopped. A file that exists
    already is not changed.

    The 1,280 features of an image are reduced to 256 by a PCA that is fitted to CIFAR-100's
    training images alone: minus ``pca_mean``, times ``pca_components`` (in descending order of
    variance; the largest loading of each is positive), divided by ``pca_scale``.

    Images keep the order of the archives, in which the classes are mixed.

    Parameters
    ----------
    directory : str or Path
        The directory of the data.
    announce : callable
        Called with the amount that is done, the total amount, and what it is: bytes of an archive
        (the archive's name), or images (``"images"``).

    Examples
    --------
    It downloads 340 MB, so tests do not run this:

    >>> from rankshot.datasets import build_cifar_features
    >>> build_cifar_features("data", announce=print)  # doctest: +SKIP
    """
    path = Path(directory) / "cifar" / "features.npz"
    if path.exists():
        return path
    # Before the download, so that a missing package is reported at once.
    extract = EfficientNetFeatures()
    path.parent.mkdir(parents=True, exist_ok=True)
    for archive in (CIFAR100, CIFAR10):
        download(archive.url, path.parent / archive.file, md5=archive.md5, announce=announce)
    seen = read_cifar_archive(path.parent / CIFAR100.file, CIFAR100)
    new = read_cifar_archive(path.parent / CIFAR10.file, CIFAR10)
    parts = {
        "seen_train": seen["train.bin"],
        "seen_test": seen["test.bin"],
        "unseen_test": new["test_batch.bin"],
    }
    shards = path.parent / "features.shards"
    files = _extract_shards(parts, shards, extract, announce)
    arrays = _reduce_shards({name: part.labels for name, part in parts.items()}, files)
    with replace_file(path) as stream:
        np.savez_compressed(stream.buffer, allow_pickle=False, **arrays)
    shutil.rmtree(shards)
    return path


def _extract_shards(
    parts: Mapping[str, LabelledImages], shards: Path, extract: Extract, announce: Announce
) -> dict[str, list[Path]]:
    """Extract features into one file per shard, except for existing files; return all files."""
    shards.mkdir(exist_ok=True)
    total, done = sum(len(part.labels) for part in parts.values()), 0
    announce(done, total, "images")
    files: dict[str, list[Path]] = {name: [] for name in parts}
    for name, (images, _) in parts.items():
        for start in range(0, len(images), SHARD):
            block = np.ascontiguousarray(images[start : start + SHARD])
            path = shards / f"{name}-{start:05d}.npy"
            if not _is_shard(path, len(block)):
                _write_shard(path, extract(block), len(block))
            files[name].append(path)
            done += len(block)
            announce(done, total, "images")
    return files


def _is_shard(path: Path, rows: int) -> bool:
    """Whether a file already has the features of this number of images."""
    try:
        return bool(np.load(path, allow_pickle=False).shape == (rows, N_FEATURES))
    except (OSError, ValueError, EOFError):
        return False


def _write_shard(path: Path, features: Features, rows: int) -> None:
    # An error of the network should be reported now, not hours later.
    if features.shape != (rows, N_FEATURES) or not np.isfinite(features).all():
        raise RankshotError(
            f"{path.stem}: {rows} images should have {N_FEATURES} finite features each, but they "
            f"have {features.shape}, {np.count_nonzero(~np.isfinite(features))} not finite"
        )
    with replace_file(path) as stream:
        np.save(stream.buffer, features, allow_pickle=False)


def _reduce_shards(
    labels: Mapping[str, ArchiveLabels], files: Mapping[str, list[Path]]
) -> dict[str, Any]:
    """Return the arrays of the file: reduced features, labels, class names and the PCA."""
    train = files["seen_train"]
    fitted = fit_pca(lambda: (np.load(path, allow_pickle=False) for path in train), N_COMPONENTS)
    # In single precision, as the file stores it.
    pca = Pca(*(np.asarray(part, np.float32) for part in fitted))
    arrays: dict[str, Any] = {}
    for name, shards in files.items():
        arrays[name] = np.concatenate(
            [pca.transform(np.load(path, allow_pickle=False)).astype(np.float16) for path in shards]
        )
        arrays[f"{name}_label"] = labels[name]
    arrays["seen_classes"] = np.array(CIFAR100.classes)
    arrays["unseen_classes"] = np.array(CIFAR10.classes)
    return arrays | {f"pca_{name}": array for name, array in pca._asdict().items()}
