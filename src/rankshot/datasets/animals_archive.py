"""Animals with Attributes as its authors publish it: from histograms in text files to features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.linalg.blas import dsyrk

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.core.names import as_names
from rankshot.core.text_files import replace_file

Announce = Callable[[int, int, str], None]
Floats = NDArray[np.float64]
Table = NDArray[np.float32]
KINDS = ("lss", "phog", "rgsift", "sift", "surf")
"""The histograms of an image. The sixth kind, cq, is left out: 15 classes lack it."""
COMPONENTS = 512
BLOCK_ROWS = 1_024
"""Images that are in memory in double precision at once."""


def build_animals_features(
    directory: str | Path, destination: str | Path, announce: Announce
) -> None:
    """Make the file of features that `load_animals` reads, from the data set's own directory.

    Each of an image's five histograms is divided by its sum and square-rooted (so that dot
    products compare distributions); an empty one stays zero. The five are joined, centred and
    reduced by a PCA fitted on the images of the training classes alone, to 512 numbers or as many
    as there are, and divided by one number for all, so that the training classes' features have
    mean square 1. Images come by class, in the order of ``classes.txt``, and then by name.

    All 30,475 images take 1 GB of memory for their histograms and half as much for the PCA.

    Parameters
    ----------
    directory : str or Path
        What the archives ``AwA-base`` and ``AwA-features-…`` unpack to
        (``Animals_with_Attributes``). Needed are ``classes.txt``, ``predicates.txt``,
        ``predicate-matrix-continuous.txt``, ``trainclasses.txt``, ``testclasses.txt`` and, for
        each of the five kinds, ``Features/<kind>-hist/<class>/<class>_0001.txt`` and so on.
    destination : str or Path
        The file to write, ``features.npz``; it appears whole or not at all.
    announce : callable
        Is told how many steps are done, of how many, and what comes next.

    Raises
    ------
    RankshotError
        Names the file that is missing or wrong, and what is wrong with it.
    """
    directory, destination = Path(directory), Path(destination)
    animals = _read_animals(directory)
    files = _image_files(directory, animals.classes)
    # Opened first: a place where nothing can be written should not cost hours.
    with replace_file(destination) as stream:
        todo = len(KINDS) * len(files) + 2
        histograms = _read_histograms(directory, files, lambda n, what: announce(n, todo, what))
        label = np.repeat(np.arange(len(files)), list(map(len, files.values())))
        announce(todo - 2, todo, "reducing the histograms")
        features = _reduced(histograms, ~animals.new[label])
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


# -------------------------------------------------------------------- classes and attributes


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
    unseen = _is_unseen(directory, classes)
    return _Animals(classes, unseen, np.array(rows, np.float32), attribute_names)


def _numbered_names(path: Path) -> tuple[str, ...]:
    """Return the names of a file with one numbered name a line."""
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


def _is_unseen(directory: Path, classes: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return which classes are in the list of test classes; the others are for training."""
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


# -------------------------------------------------------------------- histograms


def _image_files(directory: Path, classes: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the names of the files of each class, which must be the same for all kinds."""
    return {name: _files_of(directory, name) for name in classes}


def _files_of(directory: Path, name: str) -> list[str]:
    folders = [_folder(directory, kind, name) for kind in KINDS]
    for folder in folders:
        if not folder.is_dir():
            raise RankshotError(
                f"{folder}: no such directory; unpack the archives of the features "
                f"{', '.join(KINDS)} so that they lie in {directory / 'Features'}"
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
    """Return the square roots of the shares of the bins."""
    counts = _numbers_in(path)
    if counts.size != n_bins:
        raise RankshotError(f"{path}: {counts.size} numbers, but the first image has {n_bins}")
    if (counts < 0).any():
        raise RankshotError(f"{path}: {counts.min():g} is no count; a histogram has none below 0")
    # An image in which nothing was found has an empty histogram.
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
        raise RankshotError(f"{where}: empty, where numbers are expected")
    if not np.isfinite(values).all():
        raise RankshotError(f"{where}: {values[~np.isfinite(values)][0]} is no finite number")
    return values


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise RankshotError(f"{path}: no such file; is this Animals with Attributes?") from None


# -------------------------------------------------------------------- the reduction


def _reduced(table: Table, train: NDArray[np.bool_]) -> Table:
    """Return the principal components of all rows, by the directions of some, of mean square 1."""
    mean, directions = _principal_directions(table, np.flatnonzero(train))
    reduced = np.empty((len(table), len(directions)), np.float32)
    for rows, block in _centred(table, np.arange(len(table)), mean):
        reduced[rows] = block @ directions.T
    reduced /= np.sqrt(np.mean(reduced[train] ** 2, dtype=np.float64))
    return reduced


def _principal_directions(table: Table, train: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the mean of some rows, and the directions in which they vary most, most first."""
    n_columns = table.shape[1]
    mean: Floats = sum(table[rows].sum(axis=0, dtype=np.float64) for rows in _blocks(train))
    mean = mean / len(train)
    # One triangle of the scatter matrix, summed in its place: a second matrix would not fit.
    scatter = np.zeros((n_columns, n_columns), order="F")
    for _, block in _centred(table, train, mean):
        scatter = dsyrk(1.0, block.T, beta=1.0, c=scatter, lower=True, overwrite_c=True)
    n = min(COMPONENTS, n_columns, len(train) - 1)
    if n < 1:
        raise RankshotError("the training classes have one image: there is nothing to reduce")
    subset = [n_columns - n, n_columns - 1]
    variances, vectors = eigh(scatter, lower=True, overwrite_a=True, subset_by_index=subset)
    # In the others nothing varies but by rounding.
    real = variances > variances.max() * n_columns * np.finfo(np.float64).eps
    if not real.any():
        raise RankshotError("all images of the training classes have the same histograms")
    directions: Floats = vectors[:, real][:, ::-1].T
    # The sign is free; fixed, the same data give the same features with every library.
    largest = np.abs(directions).argmax(axis=1)
    directions *= np.sign(directions[np.arange(len(directions)), largest])[:, None]
    return mean, directions


def _centred(
    table: Table, rows: NDArray[np.int64], mean: Floats
) -> Iterator[tuple[NDArray[np.int64], Floats]]:
    """Return some rows, block by block, with the mean subtracted."""
    for some in _blocks(rows):
        yield some, table[some] - mean


def _blocks(rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    for start in range(0, len(rows), BLOCK_ROWS):
        yield rows[start : start + BLOCK_ROWS]
