"""What the rest of the package knows of a model, whatever library it comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from rankshot.inference.preprocessing import Preprocessing
from rankshot.zeroshot.scores import Kind

Takes = Literal["pictures", "texts", "values"]
_CHUNK = 2**20


@dataclass(frozen=True, eq=False)
class Model:
    """A model that turns a batch of inputs into scores; `open_model` makes it.

    Attributes
    ----------
    name : str
        What it is, for messages.
    takes : {"pictures", "texts", "values"}
        What ``run`` takes: an array of preprocessed pictures, a list of texts, or whatever the
        inputs are.
    run : callable
        Returns one row of scores per input.
    classes : sequence, mapping or None
        The names of its classes, if it has them, for `read_class_labels`.
    preprocessing : Preprocessing or None
        How a picture becomes its input, if this is known.
    odd_classes, odd_preprocessing : str
        What the model says in place of its classes or preprocessing, if that cannot be used.
    prepare : callable or None
        The model's own function from a Pillow image to its input; it replaces ``preprocessing``.
    input_shape : tuple or None
        The shape of its input, where it is known: numbers are fixed.
    n_outputs : int or None
        How many scores it has for an input, if this is known before it runs.
    max_tokens : int or None
        Texts are cut after so many tokens.
    kind : {"multiclass", "one-vs-rest", "one-vs-one"}
        The kind of its scores, as in `Scores`.
    fingerprint : str or None
        Changes with its weights; None if that cannot be known, as for a function.
    device : str
        Where it runs.
    source : str or None
        What `open_model` opens again as the same model: a path or a name. None for an object.

    Examples
    --------
    >>> import rankshot as rs
    >>> count = lambda texts: [[text.count("a"), text.count("b")] for text in texts]
    >>> model = rs.inference.open_model(count)
    >>> model.takes, model.classes, model.run(["banana"])
    ('values', None, array([[3, 1]]))
    """

    name: str
    takes: Takes
    run: Callable[[Any], NDArray[Any]]
    classes: Sequence[Any] | Mapping[Any, Any] | None = None
    preprocessing: Preprocessing | None = None
    prepare: Callable[[Any], NDArray[Any]] | None = None
    input_shape: tuple[Any, ...] | None = None
    n_outputs: int | None = None
    max_tokens: int | None = None
    kind: Kind = "multiclass"
    fingerprint: str | None = None
    device: str = "CPU"
    odd_classes: str = ""
    odd_preprocessing: str = ""
    source: str | None = None

    def __str__(self) -> str:
        cut = f"; texts are cut after {self.max_tokens:,} tokens" if self.max_tokens else ""
        return f"{self.name}, on {self.device}{cut}"


def fingerprint_files(paths: Iterable[Path]) -> str:
    """Return a hash of the content of files, and of their names."""
    digest = sha256()
    for path in paths:
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode(errors="surrogateescape"))
        with path.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    return digest.hexdigest()
