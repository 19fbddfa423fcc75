"""A model, of whatever library, as a function from a batch of inputs to scores."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from rankshot.recognition.images import Preprocessing
from rankshot.zeroshot.scores import Kind

Takes = Literal["images", "texts", "values"]
CHUNK_BYTES = 2**20


@dataclass(frozen=True, eq=False)
class Model:
    """A model that turns a batch of inputs into scores; `open_model` makes it.

    Attributes
    ----------
    name : str
        A description of the model, for messages.
    takes : {"images", "texts", "values"}
        The input of ``run``: an array of preprocessed images, a list of texts, or the inputs as
        they are.
    run : callable
        Returns one row of scores per input.
    run_with_features : callable or None
        Returns the scores, and the input of the model's last layer as features: one row per input,
        or None if the last layer is not found. None for a model without layers, such as a
        function.
    classes : sequence, mapping or None
        The names of its classes, if it has them, for `read_class_labels`.
    preprocessing : Preprocessing or None
        How images are preprocessed, if this is known.
    odd : str
        Why the model's own classes or preprocessing cannot be used, in brackets; usually empty.
    prepare : callable or None
        The model's own function from a Pillow image to its input; it replaces ``preprocessing``.
    input_shape : tuple or None
        The shape of its input, if this is known. Axes of fixed size are numbers.
    n_outputs : int or None
        The number of scores per input, if this is known before the model runs.
    max_tokens : int or None
        Texts are cut after this many tokens.
    kind : {"multiclass", "one-vs-rest", "one-vs-one"}
        The kind of its scores, as in `Scores`.
    fingerprint : str or None
        A hash that changes with the weights; None if it cannot be computed, as for a function.
    device : str
        The device that the model runs on.
    source : str or None
        The path or name with which `open_model` opens the same model again. None for an object.

    Examples
    --------
    >>> import rankshot as rs
    >>> count = lambda texts: [[text.count("a"), text.count("b")] for text in texts]
    >>> model = rs.recognition.open_model(count)
    >>> model.takes, model.classes, model.run(["banana"])
    ('values', None, array([[3, 1]]))
    """

    name: str
    takes: Takes
    run: Callable[[Any], NDArray[Any]]
    run_with_features: Callable[[Any], tuple[NDArray[Any], Any]] | None = None
    classes: Sequence[Any] | Mapping[Any, Any] | None = None
    preprocessing: Preprocessing | None = None
    prepare: Callable[[Any], NDArray[Any]] | None = None
    input_shape: tuple[object, ...] | None = None
    n_outputs: int | None = None
    max_tokens: int | None = None
    kind: Kind = "multiclass"
    fingerprint: str | None = None
    device: str = "CPU"
    odd: str = ""
    source: str | None = None

    def __str__(self) -> str:
        cut = f"; texts are cut after {self.max_tokens:,} tokens" if self.max_tokens else ""
        return f"{self.name}, on {self.device}{cut}"


def fingerprint(description: object) -> str:
    """Return a hash of what a result depends on: any value that JSON can hold."""
    return sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()


def join_lines(error: Exception) -> str:
    """Return the message of an error of another library, in one line that is not too long."""
    return " ".join(str(error).split())[:400]


def fingerprint_files(paths: Iterable[Path]) -> str:
    """Return a hash of the content of files, and of their names."""
    digest = sha256()
    for path in paths:
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode(errors="surrogateescape"))
        with path.open("rb") as stream:
            while chunk := stream.read(CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()
