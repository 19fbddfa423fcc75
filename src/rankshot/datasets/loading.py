"""`load_images`: the images of a data set by its name, from features that are made if need be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rankshot.core.errors import RankshotError
from rankshot.core.progress import Announce
from rankshot.datasets.animals import build_animals_features, load_animals
from rankshot.datasets.cifar import build_cifar_features, load_cifar
from rankshot.datasets.embedded import require_dataset
from rankshot.datasets.features import ImageData

LOADERS: dict[str, Callable[[Path], ImageData]] = {"cifar": load_cifar, "animals": load_animals}


class MissingFeaturesError(RankshotError):
    """There are no features of a data set, nor files from which they can be extracted.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankshot.datasets import MissingFeaturesError, load_images
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     try:
    ...         load_images("animals", Path(folder), announce=print, download=False)
    ...     except MissingFeaturesError:
    ...         print("download the data set first")
    download the data set first
    """


def load_images(name: str, directory: Path, announce: Announce, *, download: bool) -> ImageData:
    """Load the images of a data set; make the file of their features first if it is missing.

    Parameters
    ----------
    name : {"cifar", "animals"}
        The data set.
    directory : Path
        Contains ``<name>/features.npz`` or ``features.npz``, or is that file itself. For Animals
        with Attributes, it can also be the directory of the original data set, with its folder
        ``Features``: `build_animals_features` then writes ``features.npz`` there.
    announce : callable
        Called with the amount that is done, the total amount, and a name of the current step.
    download : bool
        Whether to download CIFAR if its features are missing, and to extract them with
        `build_cifar_features`.

    Raises
    ------
    MissingFeaturesError
        If there is no file of features and it cannot be made.

    Examples
    --------
    It may download 340 MB, so tests do not run this:

    >>> from pathlib import Path
    >>> from rankshot.datasets import load_images
    >>> load_images("cifar", Path("data"), announce=print, download=True)  # doctest: +SKIP
    """
    require_dataset(name, LOADERS)
    places = [directory / name / "features.npz", directory / "features.npz", directory]
    path = next((place for place in places if place.is_file()), places[0])
    if not path.exists() and name == "animals" and (directory / "Features").is_dir():
        path = directory / "features.npz"
        build_animals_features(directory, path, announce)
    if not path.exists() and name == "cifar" and download:
        path = build_cifar_features(directory, announce)
    if not path.exists():
        raise MissingFeaturesError(f"{path}: there is no such file")
    return LOADERS[name](path)
