"""`Embedding`: similarity as the cosine of the vectors of any embedding model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.validation import as_names, require_whole_number
from rankshot.sources.class_vectors import cosine
from rankshot.sources.similarity import Similarity

Floats = NDArray[np.float64]
SLOT = "{}"
"""The placeholder for the name in a template."""


class Embedding:
    """Similarity by any embedding model: the cosine of the vectors of two texts.

    Most models are trained on sentences rather than on single words, so a name is put into a
    template first; underscores become spaces.

    Parameters
    ----------
    function : callable
        Takes a list of n texts and returns an array of shape (n, d): the ``encode`` of
        sentence-transformers, or a function that calls a service.
    template : str
        The text for a name, with ``{}`` in place of the name; ``"{}"`` leaves names as they are.
    batch_size : int
        The maximum number of texts in one call. Every distinct text is embedded once.
    source : str
        The name of the source in the table and its rankings.

    Examples
    --------
    >>> from rankshot.sources import Embedding
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
            raise RankshotError(f"an embedding is a function of texts, not {short_repr(function)}")
        if not isinstance(template, str) or SLOT not in template:
            raise RankshotError(
                f"the template {short_repr(template)} has no {SLOT} in place of the name"
            )
        self.function = function
        self.template = template
        self.batch_size = require_whole_number("batch_size", batch_size)
        self.source = source

    def similarity(self, targets: Iterable[Any], items: Iterable[Any]) -> Similarity:
        """Return the cosine of every target with every item."""
        targets, items = as_names(targets, "targets"), as_names(items)
        row = {text: i for i, text in enumerate(dict.fromkeys(map(self._text, targets + items)))}
        vectors = self._embed(list(row))
        values = cosine(
            vectors[[row[self._text(name)] for name in targets]],
            vectors[[row[self._text(name)] for name in items]],
        )
        return Similarity(values, targets, items, self.source)

    def _text(self, name: str) -> str:
        # Not str.format: a template or a name may contain other braces, which have no meaning.
        return self.template.replace(SLOT, name.replace("_", " "))

    def _embed(self, texts: list[str]) -> Floats:
        blocks: list[Floats] = []
        for start in range(0, len(texts), self.batch_size):
            batch = texts[start : start + self.batch_size]
            block = _validate_embeddings(self.function(list(batch)), batch)
            if blocks and block.shape[1] != blocks[0].shape[1]:
                raise RankshotError(
                    f"the embedding returned vectors of {blocks[0].shape[1]} numbers at first, and "
                    f"of {block.shape[1]} from {short_repr(batch[0])} on"
                )
            blocks.append(block)
        return np.concatenate(blocks)


def _validate_embeddings(answer: Any, texts: Sequence[str]) -> Floats:
    """Return the result of the function as an array, or report what is wrong with it."""
    expected = f"an array of shape ({len(texts)}, d) for {len(texts)} texts"
    if isinstance(answer, np.ndarray) and answer.dtype.kind == "c":
        raise RankshotError(f"the embedding must return {expected}, not complex numbers")
    try:
        block: Floats = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise RankshotError(
            f"the embedding must return {expected}, not {short_repr(answer)} ({error})"
        ) from None
    if block.ndim != 2 or block.shape[0] != len(texts) or block.shape[1] == 0:
        raise RankshotError(
            f"the embedding must return {expected}, not shape {block.shape}: {short_repr(answer)}"
        )
    odd = np.argwhere(~np.isfinite(block))
    if odd.size:
        row, column = odd[0]
        raise RankshotError(
            f"the embedding of {short_repr(texts[row])} has {block[row, column]} at place {column}"
        )
    zero = np.flatnonzero(~block.any(axis=1))
    if zero.size:
        raise RankshotError(
            f"the embedding of {short_repr(texts[zero[0]])} is {block.shape[1]} zeros, which have "
            "no direction"
        )
    return block
