"""Tables of Dask: arrays and data frames whose rows come in blocks, computed when asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from rankshot.core.arrays import Array
from rankshot.core.errors import RankshotError, RowError, short_repr
from rankshot.core.tables import as_frame, frame_to_matrix


def is_dask(data: object) -> bool:
    """Return whether data are a collection of Dask, such as an array or a data frame.

    Who has a collection of Dask has imported Dask, so it is not imported here.
    """
    dask = sys.modules.get("dask.base")
    return dask is not None and bool(dask.is_dask_collection(data))


def as_dask_array(data: Any) -> Array:
    """Return a table of Dask as an array in which each block has all columns of its rows.

    The numbers of a data frame become float32 if all columns are, else float64.
    """
    # A `dask.delayed` value has attributes of any name; its type has not.
    if hasattr(type(data), "columns"):
        return data.map_partitions(_to_matrix, meta=_to_matrix(data._meta))
    is_array = hasattr(type(data), "map_blocks")
    if not is_array or data.ndim != 2 or np.isnan(data.shape[1]):
        raise RankshotError(
            "a Dask array or data frame is needed, with one column per class, not "
            f"{short_repr(data)}"
        )
    return data if len(data.chunks[1]) == 1 else data.rechunk({1: -1})


def _to_matrix(frame: Any) -> Array:
    return frame_to_matrix(as_frame(frame))


def empty_block(table: Array) -> Array:
    """Return a block without rows, of the library and the type of the blocks of a table."""
    return np.empty_like(table._meta, shape=(0, table.shape[1]))


def map_row_blocks(table: Array, function: Callable[[Any, Any], Any], constant: Any) -> Array:
    """Return ``function(block, constant)`` for each block of rows, as a lazy array of Dask.

    The result has one row per row of the table. The function is called once at once, with a block
    without rows: this shows the type of the result, and whether it refuses the columns. The
    constant is in the graph once, as a copy, so that it may change afterwards.

    Examples
    --------
    >>> import dask.array as da
    >>> table = da.from_array(np.arange(6.0).reshape(3, 2), chunks=2)
    >>> map_row_blocks(table, lambda block, factor: factor * block.sum(axis=1), 10).compute()
    array([10., 50., 90.])
    """
    from dask.delayed import delayed  # noqa: PLC0415

    result = function(empty_block(table), constant)
    return table.map_blocks(
        _call_on_block,
        function,
        delayed(deepcopy(constant), pure=True, traverse=False),
        chunks=(table.chunks[0], *((size,) for size in result.shape[1:])),
        drop_axis=1 if result.ndim == 1 else [],
        meta=result,
    )


def _call_on_block(
    block: Array,
    function: Callable[[Any, Any], Any],
    constant: Any,
    block_id: tuple[int, ...] = (0,),
) -> Array:
    try:
        return function(block, constant)
    except RowError as error:
        raise RankshotError(f"block {block_id[0]}, {error}") from None
