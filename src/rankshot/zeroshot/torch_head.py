"""`TorchHead`: a `LinearHead` or a `JointHead` as a module of torch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, cast

import torch
from array_api_compat import torch as xp

from rankshot.core.arrays import Constants, log_softmax
from rankshot.zeroshot.formula import Formula
from rankshot.zeroshot.scores import require_columns


class TorchHead(torch.nn.Module):
    """A fitted head as a torch module, from scores to log-probabilities of the classes.

    The module has the constants of the head as buffers and no parameters. It is differentiable.
    Half-precision scores are converted to single precision, and `half` and `bfloat16` do not
    change the precision of the buffers. ``seen`` are the seen classes, in the order of the
    columns of the scores, and ``classes`` those of the result.
    """

    def __init__(
        self,
        seen: tuple[str, ...],
        classes: tuple[str, ...],
        logits: Formula,
        constants: Constants,
    ) -> None:
        super().__init__()
        self.seen, self.classes, self._logits = seen, classes, logits
        self._names = tuple(constants)
        for name, array in constants.items():
            tensor = torch.tensor(array)
            self.register_buffer(name, tensor.float() if tensor.is_floating_point() else tensor)
        self._note_autocast()

    def forward(
        self,
        scores: torch.Tensor,
        features: torch.Tensor | None = None,
        evidence: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Log-probabilities: one row per input, one column per class.

        A head that was fitted to examples with features also needs the features of the inputs, and
        one that was fitted with another model's scores needs these.
        """
        require_columns(tuple(scores.shape), len(self.seen), "multiclass")
        c = {name: cast("torch.Tensor", getattr(self, name)) for name in self._names}
        dtype, place = c["scores"].dtype, scores.device.type
        inputs: Any = [None if x is None else x.to(dtype) for x in (scores, features, evidence)]
        # Autocast would compute products of matrices in half precision.
        with torch.autocast(place, enabled=False) if self._has_autocast else nullcontext():
            logits = self._logits(inputs[0], inputs[1], inputs[2], c, xp)
            return cast("torch.Tensor", log_softmax(logits, xp, 1))

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], *args: object) -> TorchHead:
        """Move or convert the buffers, but never to half precision."""

        def convert(buffer: torch.Tensor) -> torch.Tensor:
            moved = fn(buffer)
            is_short = moved.is_floating_point() and moved.dtype.itemsize < 4
            return buffer.to(moved.device) if is_short else moved

        super()._apply(convert, *args)  # type: ignore[no-untyped-call]
        self._note_autocast()
        return self

    def _note_autocast(self) -> None:
        """Ask beforehand: before torch 2.13, a compiled graph cannot ask."""
        place = cast("torch.Tensor", self.scores).device.type
        self._has_autocast = torch.amp.is_autocast_available(place)
