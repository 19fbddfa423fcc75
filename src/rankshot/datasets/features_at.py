"""Where the features of a data set are: ready, in its own files, or still at its home."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rankshot.core.errors import RankshotError
from rankshot.datasets.animals import load_animals
from rankshot.datasets.animals_archive import build_animals_features
from rankshot.datasets.cifar import load_cifar
from rankshot.datasets.cifar_archive import build_cifar_features
from rankshot.datasets.features import ImageData

Announce = Callable[[int, int, str], None]
LOADERS: dict[str, Callable[[Path], ImageData]] = {"cifar": load_cifar, "animals": load_animals}


class MissingFeaturesError(RankshotError):
    """There are no features of a data set, nor files from which they can be extracted."""


def images_at(name: str, directory: Path, announce: Announce, *, download: bool) -> ImageData:
    """Return the images of a data set, from features that are there or have to be made first.

    Parameters
    ----------
    name : {"cifar", "animals"}
    directory : Path
        Has ``<name>/features.npz`` or ``features.npz``, or is that file; or, for Animals with
        Attributes, is the data set's own directory, with its ``Features``: they are reduced, and
        kept there as ``features.npz``.
    announce : callable
        Is told how much is done, of how much, and of what.
    download : bool
        Fetch CIFAR from its home if it is not there, and extract its features.
    """
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
