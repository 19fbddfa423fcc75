"""Arrays of any library: NumPy, torch, CuPy and JAX.

Large computations go over blocks of rows (`row_blocks`), and so need little memory.

Formulas that take a namespace ``xp`` are written once, against the Python array API standard. They
run where their arguments are, and their result stays there.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError

Array = Any
"""An array of any library."""
Library = Any
"""The namespace of functions of an array library."""
Constants = dict[str, Any]
"""The arrays that a formula needs, by name."""
BLOCK_CELLS = 1 << 21
"""The number of cells of the largest temporary array of a computation."""
CACHED_CELLS = 1 << 16
"""The same for arrays that are used many times in a row: they stay in the cache."""


def row_blocks(n: int, cells_per_row: int, cells: int = BLOCK_CELLS) -> Iterator[slice]:
    """Split ``n`` rows into blocks whose dense arrays have about ``cells`` cells."""
    size = max(1, cells // max(1, cells_per_row))
    return (slice(begin, min(begin + size, n)) for begin in range(0, n, size))


def other_library(array: Any) -> Library | None:
    """Namespace of an array that is not NumPy's; None for everything else."""
    if isinstance(array, np.ndarray | np.generic):
        return None
    # Tensors of torch, and arrays of older CuPy, do not name their namespace themselves.
    makers = {base.__module__.partition(".")[0] for base in type(array).__mro__}
    if not makers & {"torch", "cupy"} and not hasattr(array, "__array_namespace__"):
        return None
    try:
        compat = import_module("array_api_compat")
    except ImportError:
        raise RankshotError(
            f"{type(array).__module__.partition('.')[0]} arrays need array-api-compat: "
            "pip install array-api-compat; or pass a NumPy array"
        ) from None
    return compat.array_namespace(array)


def device_of(array: Array) -> Any:
    """Device that an array is on."""
    return import_module("array_api_compat").device(array)


def as_real_floats(array: Array, xp: Library) -> Array:
    """Array as float32 or float64: float32 for shorter floats, such as bfloat16."""
    if array.dtype in (xp.float32, xp.float64):
        return array
    name = str(array.dtype).rpartition(".")[2]
    if xp.isdtype(array.dtype, "real floating") or name.startswith(("float", "bfloat")):
        return xp.astype(array, xp.float32)
    if xp.isdtype(array.dtype, "integral"):
        # As NumPy does, where single precision does not hold all numbers.
        return xp.astype(array, xp.float64 if name.endswith(("32", "64")) else xp.float32)
    raise RankshotError(f"scores must be a table of numbers, not of {name}")


def to_library(array: NDArray[Any], xp: Library, like: Array) -> Array:
    """NumPy array as one of another library, on the device of ``like``.

    Floating-point numbers get the precision of ``like``.
    """
    if xp is np:
        return array.astype(like.dtype) if array.dtype.kind == "f" else array
    if array.dtype.kind == "f":
        return xp.asarray(array, dtype=like.dtype, device=device_of(like))
    return xp.asarray(array, device=device_of(like))


def numpy_dtype(array: Array) -> np.dtype[Any]:
    """Type of the numbers of an array."""
    return np.dtype(str(array.dtype).rpartition(".")[2])


def to_numpy(array: Array) -> NDArray[Any]:
    """Array in main memory."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "detach"):
        return np.asarray(array.detach().cpu())
    # CuPy copies nothing unless it is told to.
    return np.asarray(array.get() if hasattr(array, "get") else array)


# -------------------------------------------------------------------- formulas


def row_norm(x: Array, xp: Library) -> Array:
    """Euclidean length of each row, as a column; its gradient at 0 is 0."""
    if hasattr(xp, "linalg") and "jax" not in xp.__name__:
        return xp.linalg.vector_norm(x, axis=1, keepdims=True)
    squares = xp.sum(x * x, axis=1, keepdims=True)
    return xp.where(squares > 0, xp.sqrt(xp.where(squares > 0, squares, 1.0)), 0.0)


def largest_of_rows(x: Array, k: int, xp: Library) -> Array:
    """The ``k`` largest numbers of each row, the largest first."""
    if hasattr(xp, "topk"):
        return xp.topk(x, k)[0]
    return xp.flip(xp.sort(x, axis=1), axis=1)[:, :k]


def log_softmax(x: Array, xp: Library, axis: int) -> Array:
    """X minus log Σ e^x along an axis."""
    if hasattr(xp, "log_softmax"):
        # That of torch is a single kernel.
        return xp.log_softmax(x, axis)
    x = x - xp.max(x, axis=axis, keepdims=True)
    return x - xp.log(xp.sum(xp.exp(x), axis=axis, keepdims=True))
