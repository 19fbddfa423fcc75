"""Tables of scores, written in batches: CSV, Parquet and .npz, completely or not at all."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import IO, TextIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError
from rankshot.core.files import replace_file, require_ending
from rankshot.core.tables import (
    ID,
    import_pyarrow,
    open_csv_writer,
    open_row_groups,
    write_csv_rows,
)
from rankshot.zeroshot.files.score_tables import CLASSES_KEY, ENDINGS, KIND_KEY
from rankshot.zeroshot.scores import Kind

Block = tuple[Sequence[str], NDArray[np.floating]]
"""The ids of some rows, and their scores."""
ReadBlocks = Callable[[], Iterable[Block]]


def require_score_file(path: Path, items: Sequence[str], kind: Kind = "multiclass") -> None:
    """Raise if a file of this name cannot hold such scores."""
    ending = require_ending(path, ENDINGS)
    if ending == ".npz":
        return
    if ending == ".parquet":
        import_pyarrow("pyarrow.parquet")
    if ID in items:
        raise RankshotError(f"{path}: a class is called {ID!r}, as the column of ids; rename it")
    if kind == "one-vs-one" and ending == ".csv":
        raise RankshotError(
            f"{path}: one-vs-one scores have a column per pair; write .parquet or .npz instead"
        )


def write_score_table(
    path: str | Path, items: Sequence[str], read_blocks: ReadBlocks, kind: Kind = "multiclass"
) -> int:
    r"""Write a table of scores as CSV, Parquet or .npz, with a column of ids; return its rows.

    Parameters
    ----------
    path : str or Path
        Ends in .csv, .parquet or .npz. An older file is replaced when all rows are written.
    items : sequence of str
        The seen classes.
    read_blocks : callable
        Yields the ids and scores of some rows at a time. For .npz it is called several times,
        because these files begin with the number of rows.
    kind : {"multiclass", "one-vs-rest", "one-vs-one"}
        The kind of scores; CSV does not store it.

    Examples
    --------
    >>> import tempfile
    >>> from rankshot.zeroshot.files.score_output import write_score_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "scores.csv"
    ...     blocks = [(["x1", "x2"], np.array([[2.5, -1], [0, 1]]))]
    ...     write_score_table(path, ["leopard", "bus"], lambda: blocks)
    ...     path.read_text()
    2
    'id,leopard,bus\nx1,2.5,-1.0\nx2,0.0,1.0\n'
    """
    path = Path(path)
    require_score_file(path, items, kind)
    write = {".csv": _write_csv, ".parquet": _write_parquet, ".npz": _write_npz}[path.suffix]
    with replace_file(path) as stream:
        rows = write(stream, items, read_blocks, kind)
        if rows == 0:
            raise RankshotError(f"{path}: there are no scores to write")
    return rows


def _write_csv(stream: TextIO, items: Sequence[str], read_blocks: ReadBlocks, _kind: Kind) -> int:
    writer = open_csv_writer(stream)
    writer.writerow([ID, *items])
    n = 0
    for ids, values in read_blocks():
        write_csv_rows(writer, [ids], values)
        n += len(ids)
    return n


def _write_parquet(
    stream: TextIO, items: Sequence[str], read_blocks: ReadBlocks, kind: Kind
) -> int:
    return _write_row_groups(stream, items, read_blocks(), {}, kind)


def write_score_part(
    path: Path,
    items: Sequence[str],
    blocks: Iterable[Block],
    metadata: dict[str, str],
    kind: Kind = "multiclass",
) -> int:
    """Write a part of a dataset of scores as Parquet, which may be without rows; return its rows.

    The footer gets the metadata as they are after the last block.
    """
    with replace_file(path) as stream:
        return _write_row_groups(stream, items, blocks, metadata, kind)


def _write_row_groups(
    stream: TextIO,
    items: Sequence[str],
    blocks: Iterable[Block],
    metadata: dict[str, str],
    kind: Kind,
) -> int:
    n, columns = 0, list(items)
    if kind != "multiclass":
        metadata |= {KIND_KEY: kind, CLASSES_KEY: json.dumps(items)}
    if kind == "one-vs-one":
        columns = [f"{first} | {second}" for first, second in combinations(items, 2)]
    with open_row_groups(stream, [ID, *columns], metadata) as put:
        for ids, values in blocks:
            if len(ids):
                put([ids], list(values.T))
            n += len(ids)
        if n == 0:
            put([[]], [np.empty(0, np.float32)] * len(columns))
    return n


def _write_npz(stream: TextIO, items: Sequence[str], read_blocks: ReadBlocks, kind: Kind) -> int:
    n, width, columns, dtype = _measure(read_blocks())
    with zipfile.ZipFile(stream.buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in (("classes", np.array(items)), ("kind", np.array(kind))):
            with archive.open(f"{name}.npy", "w") as member:
                npy.write_array(member, array, allow_pickle=False)
        with _open_array(archive, ID, np.dtype(f"<U{width}"), (n,)) as member:
            for ids, _ in read_blocks():
                member.write(np.array(ids, dtype=f"<U{width}").tobytes())
        with _open_array(archive, "scores", dtype, (n, columns)) as member:
            for _, values in read_blocks():
                member.write(np.ascontiguousarray(values, dtype).tobytes())
    return n


def _measure(blocks: Iterable[Block]) -> tuple[int, int, int, np.dtype[np.floating]]:
    """Return the rows, the length of the longest id, the columns, and the type of the numbers."""
    n, width, columns = 0, 1, 0
    dtype: np.dtype[np.floating] = np.dtype(np.float32)
    for ids, values in blocks:
        if len(ids):
            n += len(ids)
            width = max(width, *map(len, ids))
            columns, dtype = values.shape[1], np.promote_types(dtype, values.dtype)
    return n, width, columns, dtype


@contextmanager
def _open_array(
    archive: zipfile.ZipFile, name: str, dtype: np.dtype[np.generic], shape: tuple[int, ...]
) -> Iterator[IO[bytes]]:
    """Yield a member of an archive after the header of an array, for its bytes."""
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        header = {
            "descr": npy.dtype_to_descr(dtype),
            "fortran_order": False,
            "shape": shape,
        }
        npy.write_array_header_2_0(member, header)
        yield member
