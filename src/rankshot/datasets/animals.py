"""Animals with Attributes: features of images of 40 seen and 10 new classes, and attributes.

They are loaded from a file of features, which is made from the data set as its authors publish it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.core.files import replace_file
from rankshot.core.progress import Announce
from rankshot.core.validation import as_names
from rankshot.datasets.embedded import class_names
from rankshot.datasets.features import FeatureFile, ImageData, fit_pca, read_only
from rankshot.sources.class_vectors import ClassVectors

ARRAYS = ("features", "label", "classes", "unseen", "attributes")
VALIDATION_IMAGES, SEEN_IMAGES = 2_448, 24_295
"""As in the paper: the images for validation, out of all images of the seen classes."""
SEED = 20150701
MISSING = -1
"""Marks a missing attribute in the data set's table."""
Floats = NDArray[np.float64]
Table = NDArray[np.float32]
KINDS = ("lss", "phog", "rgsift", "sift", "surf")
"""The histograms of an image. The sixth kind, cq, is not used: 15 classes do not have it."""
N_COMPONENTS = 512
"""The most features that are left of the histograms of an image."""
BLOCK_ROWS = 1_024
"""The number of images in memory in double precision at a time."""


def load_animals(path: str | Path) -> ImageData:
    """Return features of the images of Animals with Attributes, with its attributes.

    The images of the 40 seen classes are split as in the paper, 21,847 for training and 2,448 for
    validation, about one in ten of every class. They are drawn with a fixed seed. If a file has
    another number of images, the share is the same.

    Parameters
    ----------
    path : str or Path
        A file of features (``features.npz``), as `build_animals_features` writes it: the arrays
        ``features`` (images by features), ``label`` (the numbers of their classes), ``classes``
        (their names), ``unseen`` (True for the new classes) and ``attributes`` (classes by
        attributes, -1 for missing ones).

    Returns
    -------
    ImageData
        Names are those of the data set, such as ``persian+cat``. ``attributes`` are of all 50
        classes, from 0 to 100, and NaN where they are missing: four of the antelope's 85. They
        are not imputed here; a method that needs them can take the mean over the other classes.

    Raises
    ------
    RankshotError
        Names the file and the array that is missing or wrong.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    The features are not in the package (see `build_animals_features`), so tests do not run this:

    >>> from rankshot.datasets import load_animals
    >>> load_animals("features.npz")  # doctest: +SKIP
    """
    file = FeatureFile.read(Path(path), ARRAYS)
    seen, new = class_names("animals")
    classes = file.classes("classes", seen + new)
    features = file.features("features")
    number = file.class_numbers("label", len(classes), len(features))
    labels = np.array(classes)[number]
    is_new = _find_new_classes(file, classes, new)[number]
    train, validation = _split(file, np.flatnonzero(~is_new), labels)
    return ImageData(
        "animals",
        *(read_only(features[train]), read_only(labels[train])),
        *(read_only(features[validation]), read_only(labels[validation])),
        *(read_only(features[is_new]), read_only(labels[is_new])),
        seen_classes=seen,
        new_classes=new,
        attributes=_read_attributes(file, classes),
    ).require_complete()


def _find_new_classes(
    file: FeatureFile, classes: tuple[str, ...], new: tuple[str, ...]
) -> NDArray[np.bool_]:
    """Return which classes are new; the split of the file must be that of the data set."""
    expected = np.isin(classes, new)
    found = file.arrays["unseen"]
    if found.shape != expected.shape or found.dtype != np.bool_:
        problem = f"is {found.dtype} of shape {found.shape}, not True or False for each class"
        raise file.error("unseen", problem)
    if (odd := np.flatnonzero(found != expected)).size:
        truth = "new" if expected[odd[0]] else "seen"
        problem = (
            f"is {found[odd[0]]} for {classes[odd[0]]!r}, which is a {truth} class in the data set"
        )
        raise file.error("unseen", problem)
    return expected


def _split(
    file: FeatureFile, rows: NDArray[np.int64], labels: NDArray[np.str_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw the images for validation, the same share of every class."""
    n_validation = round(len(rows) * VALIDATION_IMAGES / SEEN_IMAGES)
    try:
        train, validation = train_test_split(
            rows, test_size=n_validation, stratify=labels[rows], random_state=SEED
        )
    except ValueError as error:
        problem = f"has too few images of seen classes for a validation set ({error})"
        raise file.error("label", problem) from None
    return train, validation


def _read_attributes(file: FeatureFile, classes: tuple[str, ...]) -> ClassVectors:
    table = file.numbers("attributes")
    if len(table) != len(classes):
        raise file.error("attributes", f"has {len(table)} rows, but there are {len(classes)} names")
    values = np.where(table == MISSING, np.nan, table.astype(np.float64))
    if (odd := np.argwhere(values < 0)).size:
        row, column = odd[0]
        problem = f"has {values[row, column]:g} for {classes[row]!r} in column {column}"
        raise file.error(
            "attributes", f"{problem}; the smallest value is 0, and {MISSING} marks a missing one"
        )
    return ClassVectors(classes, values, "attributes")


# ---- Building the file of features


def build_animals_features(
    directory: str | Path, destination: str | Path, announce: Announce
) -> None:
    """Make the file of features that `load_animals` reads, from the original data set.

    Each of the five histograms of an image is divided by its sum, and the square root is taken
    (so that dot products compare distributions); an empty histogram stays zero. The five are
    concatenated and reduced to at most 512 numbers by a PCA that is fitted to the images of the
    training classes alone. Images are sorted by class, in the order of
    ``classes.txt``, and then by name.

    All 30,475 images take 1 GB of memory for their histograms and half as much for the PCA.

    Parameters
    ----------
    directory : str or Path
        The directory ``Animals_with_Attributes`` from the archives ``AwA-base`` and
        ``AwA-features-…``. It needs ``classes.txt``, ``predicates.txt``,
        ``predicate-matrix-continuous.txt``, ``trainclasses.txt``, ``testclasses.txt`` and, for
        each of the five kinds, ``Features/<kind>-hist/<class>/<class>_0001.txt`` and so on.
    destination : str or Path
        The file to write, ``features.npz``; it is written completely or not at all.
    announce : callable
        Called with the number of steps that are done, their total number, and the next step.

    Raises
    ------
    RankshotError
        Names the file that is missing or wrong, and what is wrong with it.

    Examples
    --------
    The data set is not in the package, so tests do not run this:

    >>> from rankshot.datasets import build_animals_features
    >>> build_animals_features(
    ...     "Animals_with_Attributes", "features.npz", announce=print)  # doctest: +SKIP
    """
    directory, destination = Path(directory), Path(destination)
    animals = _read_animals(directory)
    files = _image_files(directory, animals.classes)
    # Opened first, so that a destination that cannot be written is reported at once.
    with replace_file(destination) as stream:
        todo = len(KINDS) * len(files) + 2
        histograms = _read_histograms(directory, files, lambda n, what: announce(n, todo, what))
        label = np.repeat(np.arange(len(files)), list(map(len, files.values())))
        announce(todo - 2, todo, "reducing the histograms")
        features = _reduce(histograms, ~animals.new[label])
        announce(todo - 1, todo, f"writing {destination.name}")
        np.savez_compressed(
            stream.buffer,
            allow_pickle=False,
            features=features.astype(np.float16),
            label=label.astype(np.int16),
            classes=np.array(animals.classes),
            unseen=animals.new,
            attributes=animals.attributes,
            attribute_names=np.array(animals.attribute_names),
        )
    announce(todo, todo, "done")


# ---- Classes and attributes


class _Animals(NamedTuple):
    classes: tuple[str, ...]
    new: NDArray[np.bool_]
    attributes: Table
    attribute_names: tuple[str, ...]


def _read_animals(directory: Path) -> _Animals:
    classes = _numbered_names(directory / "classes.txt")
    attribute_names = _numbered_names(directory / "predicates.txt")
    path = directory / "predicate-matrix-continuous.txt"
    lines = _text(path).splitlines()
    rows = [_numbers(line, f"{path}:{i}") for i, line in enumerate(lines, 1) if line.strip()]
    shape = len(classes), len(attribute_names)
    if len(rows) != shape[0] or any(row.size != shape[1] for row in rows):
        raise RankshotError(f"{path}: expected {shape[0]} rows of {shape[1]} numbers")
    new = _read_test_classes(directory, classes)
    return _Animals(classes, new, np.array(rows, np.float32), attribute_names)


def _numbered_names(path: Path) -> tuple[str, ...]:
    """Return the names of a file that has one numbered name per line."""
    names: list[str] = []
    for i, line in enumerate(_text(path).split("\n"), 1):
        match line.split():
            case []:
                continue
            case [number, name] if number == str(len(names) + 1):
                names.append(name)
            case _:
                expected = f"expected '{len(names) + 1}' and a name"
                raise RankshotError(f"{path}:{i}: {expected}, not {short_repr(line)}")
    return as_names(names, str(path))


def _read_test_classes(directory: Path, classes: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return which classes are test classes; all others must be training classes."""
    train, test = directory / "trainclasses.txt", directory / "testclasses.txt"
    lists = {path: as_names(_text(path).split(), str(path)) for path in (train, test)}
    for path, names in lists.items():
        for name in names:
            if name not in classes:
                hint = suggest_name(name, classes)
                raise RankshotError(f"{path}: {name!r} is not in classes.txt{hint}")
    if both := [name for name in lists[train] if name in lists[test]]:
        raise RankshotError(f"{test}: {quote_names(both)} also in {train.name}")
    if absent := [name for name in classes if name not in {*lists[train], *lists[test]}]:
        raise RankshotError(
            f"{directory}: {quote_names(absent)} in neither {train.name} nor {test.name}"
        )
    return np.isin(classes, lists[test])


# ---- Histograms


def _image_files(directory: Path, classes: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the names of the files of each class, which must be the same for all kinds."""
    return {name: _list_files(directory, name) for name in classes}


def _list_files(directory: Path, name: str) -> list[str]:
    folders = [_folder(directory, kind, name) for kind in KINDS]
    for folder in folders:
        if not folder.is_dir():
            raise RankshotError(
                f"{folder}: no such directory; unpack the archives of the features "
                f"{', '.join(KINDS)} to {directory / 'Features'}"
            )
    found = [{path.name for path in folder.glob(f"{name}_*.txt")} for folder in folders]
    everywhere = set.union(*found)
    if not everywhere:
        raise RankshotError(f"{folders[0]}: no file {name}_0001.txt, nor any other")
    for folder, there in zip(folders, found, strict=True):
        if lacking := everywhere - there:
            raise RankshotError(
                f"{folder / min(lacking)}: no such file, though other kinds of features have it"
            )
    return sorted(everywhere)


def _folder(directory: Path, kind: str, name: str) -> Path:
    return directory / "Features" / f"{kind}-hist" / name


def _read_histograms(
    directory: Path, files: dict[str, list[str]], announce: Callable[[int, str], None]
) -> Table:
    """Return the histograms of all images, the kinds side by side."""
    first, names = next(iter(files.items()))
    widths = [_numbers_in(_folder(directory, kind, first) / names[0]).size for kind in KINDS]
    table = np.empty((sum(map(len, files.values())), sum(widths)), np.float32)
    done = 0
    for kind, block in zip(KINDS, np.split(table, np.cumsum(widths)[:-1], axis=1), strict=True):
        row = 0
        for name, some in files.items():
            announce(done, f"reading {kind} of {name}")
            for file in some:
                block[row] = _histogram(_folder(directory, kind, name) / file, block.shape[1])
                row += 1
            done += 1
    return table


def _histogram(path: Path, n_bins: int) -> Floats:
    """Return the square root of each bin's share."""
    counts = _numbers_in(path)
    if counts.size != n_bins:
        raise RankshotError(f"{path}: {counts.size} numbers, but the first image has {n_bins}")
    if (counts < 0).any():
        raise RankshotError(f"{path}: a histogram has no negative numbers, not {counts.min():g}")
    # An image without any keypoint has an empty histogram.
    roots: Floats = np.sqrt(counts / (counts.sum() or 1.0))
    return roots


def _numbers_in(path: Path) -> Floats:
    return _numbers(_text(path), str(path))


def _numbers(text: str, where: str) -> Floats:
    """Return numbers separated by spaces."""
    try:
        values = np.array(list(map(float, text.split())))
    except ValueError as error:
        raise RankshotError(f"{where}: {error}") from None
    if values.size == 0:
        raise RankshotError(f"{where}: empty; it should have numbers")
    if not np.isfinite(values).all():
        raise RankshotError(f"{where}: {values[~np.isfinite(values)][0]} is not a finite number")
    return values


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise RankshotError(f"{path}: no such file; is this Animals with Attributes?") from None


def _reduce(table: Table, train: NDArray[np.bool_]) -> Table:
    """Reduce all rows by a PCA that is fitted to the training rows."""
    rows = np.flatnonzero(train)
    starts = range(0, len(rows), BLOCK_ROWS)
    pca = fit_pca(lambda: (table[rows[i : i + BLOCK_ROWS]] for i in starts), N_COMPONENTS)
    reduced = np.empty((len(table), len(pca.components)), np.float32)
    for start in range(0, len(table), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        reduced[block] = pca.transform(table[block])
    return reduced
