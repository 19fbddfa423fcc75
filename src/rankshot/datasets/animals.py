"""Animals with Attributes: features of images of 40 seen animals and of 10 unseen ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from rankshot.datasets.embedded import ClassNames, class_names
from rankshot.datasets.features import FeatureFile, ImageData, read_only
from rankshot.semantics.vectors import ClassVectors

ARRAYS = ("features", "label", "classes", "unseen", "attributes")
VALIDATION_IMAGES, SEEN_IMAGES = 2_448, 24_295
"""As the paper did: so many of all images of the seen classes were for validation."""
SEED = 20150701
MISSING = -1
"""What stands in the data set's table where nobody was asked."""


def load_animals(path: str | Path) -> ImageData:
    """Return features of the images of Animals with Attributes, with its attributes.

    The images of the 40 seen classes are split as in the paper, 21,847 to train on and 2,448 to
    choose on: drawn with a fixed seed, of every class about one in ten (of a file with other
    images, the same share). Those of the 10 unseen classes are left as they are.

    Parameters
    ----------
    path : str or Path
        A file of features (``features.npz``), as `build_animals_features` writes it: the arrays
        ``features`` (images by features), ``label`` (the numbers of their classes), ``classes``
        (their names), ``unseen`` (True for the unseen ones) and ``attributes`` (classes by
        attributes, -1 where one is missing).

    Returns
    -------
    ImageData
        Names are as the data set has them, such as ``persian+cat``. ``attributes`` are of all 50
        classes, from 0 to 100, and NaN where they are missing: four of the antelope's 85. Nothing
        is made up for them here; who cannot do without may take the mean over the other classes.

    Raises
    ------
    RankshotError
        Names the file and the array that is missing or wrong.
    FileNotFoundError
        If there is no such file.
    """
    file = FeatureFile.read(Path(path), ARRAYS)
    seen, unseen = animals_classes()
    classes = file.classes("classes", seen + unseen)
    features = file.features("features")
    number = file.class_numbers("label", len(classes), len(features))
    labels = np.array(classes)[number]
    is_unseen = _unseen(file, classes, unseen)[number]
    train, validation = _split(file, np.flatnonzero(~is_unseen), labels)
    return ImageData(
        "animals",
        *(read_only(features[train]), read_only(labels[train])),
        *(read_only(features[validation]), read_only(labels[validation])),
        *(read_only(features[is_unseen]), read_only(labels[is_unseen])),
        seen_classes=seen,
        new_classes=unseen,
        attributes=_attributes(file, classes),
    ).complete()


def animals_classes() -> ClassNames:
    """Return the names of the 40 seen animals and of the 10 unseen ones, each sorted.

    Examples
    --------
    >>> from rankshot.datasets.animals import animals_classes
    >>> seen, unseen = animals_classes()
    >>> len(seen), len(unseen), seen[:3]
    (40, 10, ('antelope', 'bat', 'beaver'))
    >>> unseen[-4:]
    ('pig', 'raccoon', 'rat', 'seal')
    """
    return class_names("animals")


def _unseen(
    file: FeatureFile, classes: tuple[str, ...], unseen: tuple[str, ...]
) -> NDArray[np.bool_]:
    """Return which classes are unseen, and refuse another split than the data set's own."""
    expected = np.isin(classes, unseen)
    found = file.arrays["unseen"]
    if found.shape != expected.shape or found.dtype != np.bool_:
        trouble = f"holds {found.dtype} of shape {found.shape}, not True or False for each class"
        raise file.error("unseen", trouble)
    if (odd := np.flatnonzero(found != expected)).size:
        truth = "unseen" if expected[odd[0]] else "seen"
        trouble = f"is {found[odd[0]]} for {classes[odd[0]]!r}, which is {truth} in the data set"
        raise file.error("unseen", trouble)
    return expected


def _split(
    file: FeatureFile, rows: NDArray[np.int64], labels: NDArray[np.str_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw the images for validation, of every class as large a share as of the others."""
    n_validation = round(len(rows) * VALIDATION_IMAGES / SEEN_IMAGES)
    try:
        train, validation = train_test_split(
            rows, test_size=n_validation, stratify=labels[rows], random_state=SEED
        )
    except ValueError as error:
        trouble = f"has too few images of seen classes to set some apart ({error})"
        raise file.error("label", trouble) from None
    return train, validation


def _attributes(file: FeatureFile, classes: tuple[str, ...]) -> ClassVectors:
    table = file.numbers("attributes")
    if len(table) != len(classes):
        raise file.error("attributes", f"has {len(table)} rows, but there are {len(classes)} names")
    values = np.where(table == MISSING, np.nan, table.astype(np.float64))
    if (odd := np.argwhere(values < 0)).size:
        row, column = odd[0]
        trouble = f"has {values[row, column]:g} for {classes[row]!r} in column {column}"
        raise file.error("attributes", f"{trouble}; the least is 0, and {MISSING} is missing")
    return ClassVectors(classes, values, "attributes")
