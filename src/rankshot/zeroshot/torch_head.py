"""`TorchHead`: a fitted head as a module of torch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from copy import deepcopy
from typing import cast

import numpy as np
import torch
from array_api_compat import torch as xp

from rankshot.core.arrays import Constants, Lost, log_softmax
from rankshot.zeroshot.decide import FittedHead
from rankshot.zeroshot.scores import Kind, require_columns


class TorchHead(torch.nn.Module):
    """A fitted head as a torch module, from scores to log-probabilities of the classes.

    The module has the constants of the head as buffers and no parameters. It is differentiable.
    Half-precision scores are converted to single precision, and `half` and `bfloat16` do not
    change the precision of the buffers. ``items`` are the seen classes, in the order of the
    columns of the scores, and ``classes`` those of the result.
    """

    def __init__(self, head: FittedHead, kind: Kind) -> None:
        super().__init__()
        self.items = head.items_
        self.classes = tuple(map(str, head.classes_))
        constants = head._constants(kind, np.dtype(np.float32), xp)
        # A copy: the module does not change if the head is fitted again.
        self._head, self._kind = deepcopy(head), kind
        self._names = tuple(constants)
        for name, array in constants.items():
            single = array.astype(np.float32) if array.dtype.kind == "f" else array
            self.register_buffer(name, torch.from_numpy(np.ascontiguousarray(single)))
        self.register_buffer("temperature", torch.tensor(head.temperature_, dtype=torch.float32))
        self._note_autocast()

    def forward(self, scores: torch.Tensor, features: torch.Tensor | None = None) -> torch.Tensor:
        """Return log P(z|x): one row per input, one column per class.

        A head that was fitted to examples with features also needs the features of the inputs.
        """
        require_columns(tuple(scores.shape), len(self.items), self._kind)
        f = scores.to(cast("torch.Tensor", self.temperature).dtype)
        if features is not None:
            f = torch.cat([f, features.to(f.dtype)], dim=1)
        c = {name: getattr(self, name) for name in self._names}
        in_graph = torch.compiler.is_dynamo_compiling()
        if torch.compiler.is_exporting() and not in_graph:
            # An exported graph has no branches.
            return self._log_proba(f, c, None)
        lost: list[torch.Tensor] = []
        log_proba = self._log_proba(f, c, lost)
        if not lost:
            return log_proba
        is_lost = torch.stack(lost).any()
        if in_graph:
            # The result of a branch must be new; the compiler knows functions only, not methods.
            branches = (lambda: self._log_proba(f, c, None), lambda: 1.0 * log_proba)
            return cast("torch.Tensor", torch.cond(is_lost, *branches))
        # The number of inputs is known without a look at any value.
        return self._log_proba(f, c, None) if torch.nonzero(is_lost).shape[0] else log_proba

    def _log_proba(self, f: torch.Tensor, c: Constants, lost: Lost) -> torch.Tensor:
        # Autocast would compute products of matrices in half precision.
        off = torch.autocast(f.device.type, enabled=False) if self._has_autocast else nullcontext()
        with off:
            log_posterior = self._head._log_posterior(f, self._kind, c, xp, lost)
            return cast("torch.Tensor", log_softmax(log_posterior / self.temperature, xp, 1))

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
        place = cast("torch.Tensor", self.temperature).device.type
        self._has_autocast = torch.amp.is_autocast_available(place)
