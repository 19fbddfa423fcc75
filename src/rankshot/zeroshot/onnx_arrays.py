"""Arrays that record: what a formula does with them becomes operators of an ONNX graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rankshot.core.validation import require_module

Value = Any
"""A recorded array, a NumPy array, or a number."""


def import_onnx(name: str) -> Any:
    """A module of the extra ``onnx``."""
    return require_module(name, "exported heads", "onnx")


def _method(operator: str) -> Callable[..., RecordedArray]:
    """A method that adds an operator, for an array or for the `Recorder`."""

    def compute(self: RecordedArray | Recorder, *inputs: Value) -> RecordedArray:
        return self.add(operator, *inputs)

    return compute


def _methods(operator: str) -> tuple[Callable[..., RecordedArray], Callable[..., RecordedArray]]:
    """The method of an operator, and the one for an array on its right."""

    def swapped(self: RecordedArray, left: Value) -> RecordedArray:
        return self.recorder.add(operator, left, self)

    return _method(operator), swapped


class RecordedArray:
    """A table in a graph, in single precision: operators with it are added to the graph.

    ``shape`` is that of the scores, the only one that formulas ask for.
    """

    # NumPy arrays leave operators to this class.
    __array_ufunc__ = None
    dtype = np.dtype(np.float32)

    def __init__(self, recorder: Recorder, name: str) -> None:
        self.recorder, self.name, self.shape = recorder, name, (None, recorder.n_items)

    def add(self, operator: str, *inputs: Value) -> RecordedArray:
        """Add an operator whose first input is this table."""
        return self.recorder.add(operator, self, *inputs)

    __add__, __radd__ = _methods("Add")
    __sub__, __rsub__ = _methods("Sub")
    __mul__, __rmul__ = _methods("Mul")
    __truediv__, __rtruediv__ = _methods("Div")
    __matmul__, __rmatmul__ = _methods("MatMul")
    __eq__, __lt__, __le__ = _method("Equal"), _method("Less"), _method("LessOrEqual")  # type: ignore[assignment]
    __gt__, __ge__, __neg__ = _method("Greater"), _method("GreaterOrEqual"), _method("Neg")
    __hash__ = object.__hash__

    def __getitem__(self, key: tuple[slice, slice]) -> RecordedArray:
        """Some columns of all rows."""
        last = np.iinfo(np.int64).max if key[1].stop is None else key[1].stop
        ends = np.array([key[1].start or 0]), np.array([last])
        return self.add("Slice", *ends, np.array([1]))


class Recorder:
    """The functions of the array API that formulas use, for recorded arrays.

    All operators exist since opset 13, with the same inputs. Reductions are along rows, and means
    are those of the scores, which have ``n_items`` columns. Names begin with ``prefix``.
    """

    int8, finfo = np.int8, staticmethod(np.finfo)

    def __init__(self, graph: Any, n_items: int = 0, prefix: str = "rankshot") -> None:
        self.graph, self.n_items, self.prefix = graph, n_items, prefix
        self.onnx = import_onnx("onnx")

    def add(self, operator: str, *inputs: Value, **options: object) -> RecordedArray:
        """Add an operator; numbers and arrays become constants."""
        name = f"{self.prefix}/{operator}_{len(self.graph.node)}"
        names = [x.name if isinstance(x, RecordedArray) else self._constant(x) for x in inputs]
        outputs = [name, f"{name}_index"] if operator == "TopK" else [name]
        node = self.onnx.helper.make_node(operator, names, outputs, name, **options)
        self.graph.node.append(node)
        return RecordedArray(self, name)

    def _constant(self, values: Value) -> str:
        """Add a constant: whole numbers in arrays are places, all others are in one precision."""
        is_places = isinstance(values, np.ndarray) and values.dtype == np.int64
        array = np.array(values, np.int64 if is_places else np.float32, order="C")
        name = f"{self.prefix}/constant_{len(self.graph.initializer)}"
        self.graph.initializer.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    exp, log, sqrt, abs = (_method(name) for name in ("Exp", "Log", "Sqrt", "Abs"))
    where, maximum, clip = (_method(name) for name in ("Where", "Max", "Clip"))

    def astype(self, x: RecordedArray, dtype: Any) -> RecordedArray:
        """Other numbers, such as 0 and 1 for a condition."""
        to = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.add("Cast", x, to=to)

    def concat(self, arrays: Sequence[RecordedArray], *, axis: int) -> RecordedArray:
        """Tables side by side."""
        return self.add("Concat", *arrays, axis=axis)

    def take(self, x: Value, indices: Value, *, axis: int) -> RecordedArray:
        """Rows or columns by their numbers."""
        return self.add("Gather", x, indices, axis=axis)

    def expand_dims(self, x: RecordedArray, *, axis: int) -> RecordedArray:
        """A further axis."""
        return self.add("Unsqueeze", x, np.array([axis]))

    def sum(self, x: RecordedArray, *, axis: int, keepdims: bool = False) -> RecordedArray:
        """Sums along an axis."""
        return self.add("ReduceSum", x, np.array([axis]), keepdims=int(keepdims))

    def mean(self, x: RecordedArray, **options: Any) -> RecordedArray:
        """Means."""
        return self.sum(x, **options) / float(self.n_items)

    def topk(self, x: RecordedArray, k: int) -> tuple[RecordedArray]:
        """The largest numbers of each row."""
        return (self.add("TopK", x, np.array([k]), axis=1),)

    def max(self, x: RecordedArray, **_: Any) -> RecordedArray:
        """The largest number of each row, as a column."""
        return self.topk(x, 1)[0]

    def min(self, x: RecordedArray, **_: Any) -> RecordedArray:
        """The smallest number of each row, as a column."""
        return -self.max(-x)

    def argmax(self, x: RecordedArray, *, axis: int) -> RecordedArray:
        """The place of the largest number of each row; among equals, the first."""
        return self.add("ArgMax", x, axis=axis, keepdims=0)

    def log_softmax(self, x: RecordedArray, axis: int) -> RecordedArray:
        """Log-probabilities."""
        return self.add("LogSoftmax", x, axis=axis)
