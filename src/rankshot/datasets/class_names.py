"""The names of the classes of both data sets, seen and unseen."""

from __future__ import annotations

from typing import Any, NamedTuple

from rankshot.datasets.embedded import embedded
from rankshot.ranking.errors import RankshotError, did_you_mean, shown

FILES = {
    "cifar": ("cifar100_classes.txt", "cifar10_classes.txt"),
    "animals": ("animals_seen_classes.txt", "animals_unseen_classes.txt"),
}
"""By data set: the file of the seen classes and that of the unseen ones, a name a line."""


class ClassNames(NamedTuple):
    """The names of the seen and of the unseen classes, each sorted."""

    seen: tuple[str, ...]
    unseen: tuple[str, ...]


def class_names(dataset: str) -> ClassNames:
    """Return the names of the classes of "cifar" or "animals".

    Examples
    --------
    >>> from rankshot.datasets.class_names import class_names
    >>> seen, unseen = class_names("animals")
    >>> len(seen), unseen[:3]
    (40, ('chimpanzee', 'giant+panda', 'hippopotamus'))
    """
    check_dataset(dataset)
    seen, unseen = FILES[dataset]
    return ClassNames(_names(seen), _names(unseen))


def check_dataset(dataset: Any) -> None:
    """Raise if there is no such data set."""
    if not isinstance(dataset, str) or dataset not in FILES:
        hint = f"{did_you_mean(dataset, FILES)}; there are {' and '.join(map(repr, FILES))}"
        raise RankshotError(f"no data set {shown(dataset)}{hint}")


def _names(file: str) -> tuple[str, ...]:
    with embedded(file) as path:
        return tuple(path.read_text(encoding="utf-8").split())
