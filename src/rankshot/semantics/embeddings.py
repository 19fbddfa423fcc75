"""Similarity from any embedding model: a function from texts to vectors, and the cosine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.encode import as_names
from rankshot.ranking.errors import RankshotError, shown
from rankshot.semantics.cosine import cosine
from rankshot.semantics.similarity import Similarity

Floats = NDArray[np.float64]

SLOT = "{}"
"""Where a template takes the name."""


class Embedding:
    """Similarity by any model that turns texts into vectors, as the cosine of their angle.

    A model is trained on sentences more often than on bare words, so a name is put into a
    template first; underscores become spaces.

    Parameters
    ----------
    function : callable
        From a list of n texts to an array of shape (n, d): the ``encode`` of
        sentence-transformers, or a function that asks a service.
    template : str
        The text for one name, with ``{}`` in its place; ``"{}"`` leaves names as they are.
    batch_size : int
        The most texts in one call. Every distinct name is embedded once, whether it is
        a target, an item or both.
    source : str
        The name of the source in the table and its rankings.

    Examples
    --------
    >>> from rankshot.semantics.embeddings import Embedding
    >>> def letters(texts):
    ...     return [[text.count(letter) for letter in "aeiou"] for text in texts]
    >>> table = Embedding(letters, template="{}").similarity(["sea_lion"], ["lion", "bus"])
    >>> table.values.round(3)
    array([[0.707, 0.   ]])
    """

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        template: str = "a photo of a {}",
        *,
        batch_size: int = 256,
        source: str = "embedding",
    ) -> None:
        if not callable(function):
            raise RankshotError(f"an embedding is a function of texts, not {shown(function)}")
        if not isinstance(template, str) or SLOT not in template:
            raise RankshotError(
                f"the template {shown(template)} has no {SLOT} for the name to stand in"
            )
        if not isinstance(batch_size, int) or batch_size < 1:
            raise RankshotError(f"batch_size must be a positive integer, not {shown(batch_size)}")
        self.function = function
        self.template = template
        self.batch_size = batch_size
        self.source = source

    def similarity(self, targets: Iterable[Any], items: Iterable[Any]) -> Similarity:
        """Return the cosine of every target with every item."""
        targets, items = as_names(targets, "targets"), as_names(items)
        row = {text: i for i, text in enumerate(dict.fromkeys(map(self._text, targets + items)))}
        vectors = self._embedded(list(row))
        values = cosine(
            vectors[[row[self._text(name)] for name in targets]],
            vectors[[row[self._text(name)] for name in items]],
        )
        return Similarity(values, targets, items, self.source)

    def _text(self, name: str) -> str:
        # Not str.format: a template or a name may hold other braces, and they mean nothing.
        return self.template.replace(SLOT, name.replace("_", " "))

    def _embedded(self, texts: list[str]) -> Floats:
        blocks: list[Floats] = []
        for start in range(0, len(texts), self.batch_size):
            batch = texts[start : start + self.batch_size]
            block = _checked(self.function(list(batch)), batch)
            if blocks and block.shape[1] != blocks[0].shape[1]:
                raise RankshotError(
                    f"the embedding gave vectors of {blocks[0].shape[1]} numbers at first, and of "
                    f"{block.shape[1]} from {shown(batch[0])} on"
                )
            blocks.append(block)
        return np.concatenate(blocks)


def _checked(answer: Any, texts: Sequence[str]) -> Floats:
    """Return what the function gave as an array, or say what is wrong with it."""
    expected = f"an array of shape ({len(texts)}, d) for {len(texts)} texts"
    if isinstance(answer, np.ndarray) and answer.dtype.kind == "c":
        raise RankshotError(f"the embedding must give {expected}, not complex numbers")
    try:
        block: Floats = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise RankshotError(
            f"the embedding must give {expected}, not {shown(answer)} ({error})"
        ) from None
    if block.ndim != 2 or block.shape[0] != len(texts) or block.shape[1] == 0:
        raise RankshotError(
            f"the embedding must give {expected}, not shape {block.shape}: {shown(answer)}"
        )
    odd = np.argwhere(~np.isfinite(block))
    if odd.size:
        row, column = odd[0]
        raise RankshotError(
            f"the embedding of {shown(texts[row])} has {block[row, column]} at place {column}"
        )
    zero = np.flatnonzero(~block.any(axis=1))
    if zero.size:
        raise RankshotError(
            f"the embedding of {shown(texts[zero[0]])} is {block.shape[1]} zeros, which have no "
            f"direction"
        )
    return block
