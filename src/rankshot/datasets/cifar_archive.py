"""CIFAR's own archives (the binary ones, without pickles), and features of their images."""

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
from scipy.linalg import eigh

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.http import Announce, download
from rankshot.core.text_files import replace_file
from rankshot.datasets.cifar import cifar10_classes, cifar100_classes
from rankshot.datasets.efficientnet import N_FEATURES, SIDE, EfficientNetFeatures, Features, Images

Extract = Callable[[Images], Features]
Labels = NDArray[np.int16]
HOME = "https://www.cs.toronto.edu/~kriz"
PIXELS = 3 * SIDE * SIDE
LONGEST_LIST = 1 << 16
"""Bytes of a list of class names."""
SHARD = 1000
"""Images whose features are kept together: a minute or two of work, on a processor."""
N_COMPONENTS = 256
"""Features that are left of each image's 1,280."""


@dataclass(frozen=True)
class CifarArchive:
    """One of the two archives: where it is, and how its records are laid out."""

    file: str
    md5: str
    folder: str
    """What the members' names begin with."""
    names: str
    """The member that lists the classes, a name a line."""
    classes: tuple[str, ...]
    """What it must list."""
    label_bytes: int
    """Bytes before the pixels of a record; the last is the (fine) label."""
    images: Mapping[str, int]
    """The members that are read, and the images in each."""

    @property
    def url(self) -> str:
        """Where the archive is."""
        return f"{HOME}/{self.file}"


class LabelledImages(NamedTuple):
    """Images (n, 32, 32, 3), uint8, and the numbers of their classes."""

    images: Images
    labels: Labels


CIFAR10 = CifarArchive(
    file="cifar-10-binary.tar.gz",
    md5="c32a1d4ab5d03f1284b67883e8d87530",
    folder="cifar-10-batches-bin",
    names="batches.meta.txt",
    classes=cifar10_classes(),
    label_bytes=1,
    images={"test_batch.bin": 10_000},
)


CIFAR100 = CifarArchive(
    file="cifar-100-binary.tar.gz",
    md5="03b5dce01913d631647c71ecec9e9cb8",
    folder="cifar-100-binary",
    names="fine_label_names.txt",
    classes=cifar100_classes(),
    label_bytes=2,  # the coarse label, then the fine one
    images={"train.bin": 50_000, "test.bin": 10_000},
)


# -------------------------------------------------------------------- reading


def read_cifar_archive(path: str | Path, archive: CifarArchive) -> dict[str, LabelledImages]:
    """Return the images of an archive, by member: ``train.bin``, ``test.bin``, ``test_batch.bin``.

    Raises
    ------
    RankshotError
        Names the archive and the member of what is wrong.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> CIFAR10.url, CIFAR10.classes[:3]
    ('https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz', ('airplane', 'automobile', 'bird'))
    >>> parts = read_cifar_archive("cifar-10-binary.tar.gz", CIFAR10)  # doctest: +SKIP
    >>> parts["test_batch.bin"].images.shape  # doctest: +SKIP
    (10000, 32, 32, 3)
    """
    path = Path(path)
    contents = _members(path, archive)
    names = tuple(contents.pop(archive.names).decode(errors="replace").split())
    if names != archive.classes:
        raise RankshotError(
            f"{path}: {archive.names} does not list CIFAR's classes: {short_repr(names)}"
        )
    return {
        name: _records(content, archive, f"{path}: {name}") for name, content in contents.items()
    }


def _members(path: Path, archive: CifarArchive) -> dict[str, bytes]:
    """Read the members that are wanted, in one pass; nothing is unpacked to disk."""
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
                contents[name] = stream.read(sizes.get(name, LONGEST_LIST))
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise RankshotError(f"{path}: not a whole .tar.gz file ({error}); delete it") from None
    if missing := sorted({*wanted.values()} - {*contents}):
        raise RankshotError(f"{path}: there is no {missing[0]} in {archive.folder}")
    return contents


def _records(content: bytes, archive: CifarArchive, where: str) -> LabelledImages:
    """Cut records: labels, then 1,024 red, 1,024 green and 1,024 blue pixels, row by row."""
    records = np.frombuffer(content, np.uint8).reshape(-1, archive.label_bytes + PIXELS)
    labels = records[:, archive.label_bytes - 1].astype(np.int16)
    if (wrong := labels >= len(archive.classes)).any():
        row = int(wrong.argmax())
        raise RankshotError(f"{where}: image {row} has label {labels[row]}, which is no class")
    planes = records[:, archive.label_bytes :].reshape(-1, 3, SIDE, SIDE)
    return LabelledImages(planes.transpose(0, 2, 3, 1), labels)


# -------------------------------------------------------------------- features


def build_cifar_features(directory: str | Path, announce: Announce) -> Path:
    """Make ``cifar/features.npz`` in a directory, from CIFAR's archives; return its path.

    The archives (340 MB) are fetched from CIFAR's home into ``cifar/`` and stay there. Their
    images go through EfficientNet-Lite0: an hour or more without a GPU. After an interruption
    a second call goes on where the first one stopped. A file that is there already is left alone.

    The 1,280 features of an image are reduced to 256 by a PCA fitted to CIFAR-100's training
    images alone: minus ``pca_mean``, times ``pca_components`` (in order of variance; the
    largest loading of each is positive), over ``pca_scale``. This is one number for all, the root
    mean square of the projected training images: it makes their features of unit size on the
    average and leaves the components' proportions as they are.

    Images keep the order of the archives, in which the classes are mixed.

    Parameters
    ----------
    directory : str or Path
        Where data is kept.
    announce : callable
        Called with what is done, with how much there is to do, and with what it is: bytes of an
        archive (the archive's name), or images (``"images"``).

    Examples
    --------
    >>> build_cifar_features("data", announce=print)  # doctest: +SKIP
    """
    path = Path(directory) / "cifar" / "features.npz"
    if path.exists():
        return path
    # First of all, because a missing package should not cost a download.
    extract = EfficientNetFeatures()
    path.parent.mkdir(parents=True, exist_ok=True)
    for archive in (CIFAR100, CIFAR10):
        download(archive.url, path.parent / archive.file, md5=archive.md5, announce=announce)
    seen = read_cifar_archive(path.parent / CIFAR100.file, CIFAR100)
    unseen = read_cifar_archive(path.parent / CIFAR10.file, CIFAR10)
    parts = {
        "seen_train": seen["train.bin"],
        "seen_test": seen["test.bin"],
        "unseen_test": unseen["test_batch.bin"],
    }
    shards = path.parent / "features.shards"
    files = _extract_shards(parts, shards, extract, announce)
    arrays = _arrays({name: part.labels for name, part in parts.items()}, files)
    with replace_file(path) as stream:
        np.savez_compressed(stream.buffer, allow_pickle=False, **arrays)
    shutil.rmtree(shards)
    return path


def _extract_shards(
    parts: Mapping[str, LabelledImages], shards: Path, extract: Extract, announce: Announce
) -> dict[str, list[Path]]:
    """Extract features, a file a shard, but for files that are there; return the files."""
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
    """Whether the features of so many images are in a file already."""
    try:
        return bool(np.load(path, allow_pickle=False).shape == (rows, N_FEATURES))
    except (OSError, ValueError, EOFError):
        return False


def _write_shard(path: Path, features: Features, rows: int) -> None:
    # What goes wrong in the network should not come to light hours later.
    if features.shape != (rows, N_FEATURES) or not np.isfinite(features).all():
        raise RankshotError(
            f"{path.stem}: {rows} images should give {N_FEATURES} finite features each; they gave "
            f"{features.shape}, {np.count_nonzero(~np.isfinite(features))} not finite"
        )
    with replace_file(path) as stream:
        np.save(stream.buffer, features, allow_pickle=False)


# -------------------------------------------------------------------- reduction


class _Reduction(NamedTuple):
    """Minus the mean, times the components, over the scale."""

    mean: Features
    components: Features
    scale: Features


def _arrays(labels: Mapping[str, Labels], files: Mapping[str, list[Path]]) -> dict[str, Any]:
    """Return what goes into the file: reduced features, labels, names and the reduction."""
    reduction = _fit(files["seen_train"])
    arrays: dict[str, Any] = {}
    for name, shards in files.items():
        arrays[name] = np.concatenate(
            [_reduced(np.load(path, allow_pickle=False), reduction) for path in shards]
        )
        arrays[f"{name}_label"] = labels[name]
    arrays["seen_classes"] = np.array(CIFAR100.classes)
    arrays["unseen_classes"] = np.array(CIFAR10.classes)
    return arrays | {f"pca_{name}": array for name, array in reduction._asdict().items()}


def _fit(shards: list[Path]) -> _Reduction:
    """Fit a PCA, exactly, with one shard in memory at a time."""
    n, total = 0, np.zeros(N_FEATURES)
    for path in shards:
        features = np.load(path, allow_pickle=False)
        n += len(features)
        total += features.sum(axis=0, dtype=np.float64)
    mean = total / n
    covariance = np.zeros((N_FEATURES, N_FEATURES))
    for path in shards:
        centred = np.load(path, allow_pickle=False) - mean
        covariance += centred.T @ centred / n
    # Eigenvalues come in ascending order: the last ones are wanted, backwards.
    last = (N_FEATURES - N_COMPONENTS, N_FEATURES - 1)
    variances, vectors = eigh(covariance, subset_by_index=last)
    components = vectors.T[::-1]
    largest = np.abs(components).argmax(axis=1, keepdims=True)
    components = components * np.sign(np.take_along_axis(components, largest, axis=1))
    scale = np.sqrt(variances.mean())
    return _Reduction(*(np.asarray(part, np.float32) for part in (mean, components, scale)))


def _reduced(features: Features, reduction: _Reduction) -> NDArray[np.float16]:
    mean, components, scale = reduction
    return ((features - mean) @ components.T / scale).astype(np.float16)
