"""Scores in NumPy's .npz archives, read from front to back in bounded memory.

``numpy.load`` would hold all scores at once. Here the arrays of the archive are streamed, their
headers are checked against their sizes, and nothing is unpickled.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from errno import EINVAL
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, quote_names
from rankshot.core.tables import ID, as_text_array
from rankshot.core.validation import as_names, require_choice
from rankshot.zeroshot.scores import KINDS, Kind, n_columns

MAX_COLUMNS = 2**24
"""Numbers in a row: more is a damaged file, or an attack."""
_MAX_NAMES = 2**28
"""Bytes of all names of classes together."""
_CHUNK = 2**20
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_HEADER_ERRORS = (
    *(ValueError, TypeError, EOFError, OverflowError),
    # NumPy parses the header of an array as a Python literal, which can raise these.
    *(SyntaxError, TokenError, RecursionError, MemoryError),
)
ZIP_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, EOFError, UnicodeDecodeError),
    # Encrypted members, and compression methods that Python does not support.
    *(RuntimeError, NotImplementedError),
)


class Header(NamedTuple):
    """What a file of scores, of any format, says about its rows before they are read."""

    items: tuple[str, ...]
    kind: Kind
    has_ids: bool
    n_rows: int | None


Block = tuple[NDArray[np.object_] | None, NDArray[np.floating]]
"""The ids of some rows, if there are any, and their scores."""
ReadBlocks = Callable[[int], Iterator[Block]]
"""Yields blocks of at most so many rows; it can be called once."""


@contextmanager
def open_npz(path: Path) -> Iterator[tuple[Header, ReadBlocks]]:
    """Open an archive with the arrays ``scores``, ``classes``, optionally ``id`` and ``kind``."""
    with path.open("rb") as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                yield _open_arrays(archive, path)
        except (*ZIP_ERRORS, OSError) as error:
            # A damaged directory may name a place before the start of the file: EINVAL.
            if isinstance(error, OSError) and error.errno not in {None, EINVAL}:
                raise
            raise RankshotError(f"{path}: not a complete .npz file ({error})") from None


def _open_arrays(archive: zipfile.ZipFile, path: Path) -> tuple[Header, ReadBlocks]:
    scores = _open_member(archive, "scores", path)
    if scores.dtype.kind not in "fiu":
        raise RankshotError(f"{path}: 'scores' holds {scores.dtype}, not numbers")
    items = _read_classes(_open_member(archive, "classes", path), path)
    kind = _find_kind(scores.shape, len(items), _read_kind(archive, path), path)
    n_rows = scores.shape[0]
    if n_rows == 0:
        raise RankshotError(f"{path}: 'scores' has no rows")
    names = _open_member(archive, ID, path) if f"{ID}.npy" in archive.namelist() else None
    if names is not None:
        _check_ids(names, scores.shape, path)

    def read_blocks(most: int) -> Iterator[Block]:
        for begin in range(0, n_rows, most):
            n = min(most, n_rows - begin)
            ids = None if names is None else _take_ids(names, begin, n, path)
            values = scores.take(n)
            single = values.dtype.kind == "f" and values.dtype.itemsize == 4
            # Extended precision may overflow; the reader of the blocks refuses infinite scores.
            with np.errstate(over="ignore"):
                floats: NDArray[Any] = values.astype("f4" if single else "f8", copy=False)
            yield ids, floats

    return Header(items, kind, names is not None, n_rows), read_blocks


def _check_ids(ids: _Member, shape: tuple[int, ...], path: Path) -> None:
    _refuse_no_text(ids, ID, path)
    if ids.shape != shape[:1]:
        raise RankshotError(f"{path}: 'id' has shape {ids.shape}, but 'scores' has shape {shape}")
    if ids.row_bytes > _CHUNK:
        raise RankshotError(
            f"{path}: 'id' has {ids.row_bytes:,} bytes per id, more than the limit of {_CHUNK:,}"
        )


def _take_ids(ids: _Member, begin: int, n: int, path: Path) -> NDArray[np.object_]:
    texts: list[str] = []
    # Text of fixed width may be far wider than what it holds, so a little at a time.
    step = max(1, _CHUNK // ids.row_bytes)
    for done in range(0, n, step):
        try:
            texts += map(str, ids.take(min(step, n - done)).tolist())
        except ValueError as error:
            if isinstance(error, RankshotError):
                raise
            raise RankshotError(f"{path}: 'id' is damaged ({error})") from None
    if "" in texts:
        raise RankshotError(f"{path}: row {begin + texts.index('')} has no id")
    return as_text_array(texts)


def _read_classes(member: _Member, path: Path) -> tuple[str, ...]:
    _refuse_no_text(member, "classes", path)
    n, width = member.shape[0] if member.shape else 0, member.row_bytes
    if len(member.shape) != 1 or n > MAX_COLUMNS or n * width > _MAX_NAMES:
        raise RankshotError(
            f"{path}: 'classes' must be a list of names, not of shape {member.shape}"
        )
    try:
        return as_names(member.take(n).tolist(), "'classes'")
    except ValueError as error:
        raise RankshotError(f"{path}: {error}") from None


def _read_kind(archive: zipfile.ZipFile, path: Path) -> str | None:
    """Return the text of the array ``kind``, if there is one."""
    if "kind.npy" not in archive.namelist():
        return None
    member = _open_member(archive, "kind", path)
    name = f"{member.dtype} of shape {member.shape}"
    if member.dtype.kind == "U" and prod(member.shape) == 1 and member.row_bytes < _CHUNK:
        name = str(member.take(1).ravel()[0])
    return require_choice(f"{path}: 'kind'", name, KINDS)


def _find_kind(shape: tuple[int, ...], C: int, named: str | None, path: Path) -> Kind:
    """Return the kind of scores: the number of columns is that of the classes or of their pairs."""
    widths: dict[Kind, int] = {kind: n_columns(C, kind) for kind in KINDS}
    for kind, width in widths.items():
        if len(shape) == 2 and 0 < shape[1] == width <= MAX_COLUMNS and named in {None, kind}:
            return kind
    pairs = f"(n, {widths['one-vs-one']})"
    wanted = f"(n, {C}), or {pairs} one-vs-one"
    if named is not None:
        shape_of = pairs if named == "one-vs-one" else f"(n, {C})"
        wanted = f"{shape_of}, as 'kind' is {named!r}"
    raise RankshotError(
        f"{path}: 'scores' has shape {shape} and 'classes' has shape ({C},); expected scores of "
        f"shape {wanted}"
    )


def _refuse_no_text(member: _Member, name: str, path: Path) -> None:
    if member.dtype.kind not in "Uiu":
        raise RankshotError(
            f"{path}: {name!r} holds {member.dtype}; save it as text: {name}.astype(str)"
        )


# -------------------------------------------------------------------- arrays in the archive


@dataclass(frozen=True, eq=False)
class _Member:
    """An array in an archive, of which the header has been read."""

    stream: IO[bytes]
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def row_bytes(self) -> int:
        return self.dtype.itemsize * prod(self.shape[1:])

    def take(self, n: int) -> NDArray[Any]:
        """Return the next n rows."""
        buffer = bytearray(n * self.row_bytes)
        left = memoryview(buffer)
        while left:
            got = self.stream.readinto(left[:_CHUNK])  # type: ignore[attr-defined]
            if not got:
                raise EOFError("it ends too early")
            left = left[got:]
        return np.frombuffer(buffer, self.dtype).reshape(n, *self.shape[1:])


def _open_member(archive: zipfile.ZipFile, name: str, path: Path) -> _Member:
    there = [file.removesuffix(".npy") for file in archive.namelist()]
    if f"{name}.npy" not in archive.namelist():
        raise RankshotError(
            f"{path}: no array {name!r}; the arrays are {quote_names(there) or 'none at all'}"
        )
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise RankshotError(f"{path}: {name!r} is compressed with a method that NumPy does not use")
    stream = archive.open(info)
    shape, fortran, dtype = read_array_header(stream, name, path)
    if dtype.hasobject:
        raise RankshotError(
            f"{path}: {name!r} holds Python objects, which only a pickle can store; save it as "
            f"text or numbers, for example {name}.astype(str)"
        )
    if fortran:
        raise RankshotError(
            f"{path}: {name!r} is stored column by column; save it in C order: "
            f"numpy.ascontiguousarray({name})"
        )
    size = dtype.itemsize * prod(shape)
    if min(shape, default=0) < 0 or dtype.itemsize == 0 or info.file_size - stream.tell() != size:
        raise RankshotError(
            f"{path}: {name!r} is damaged: {dtype} of shape {shape} does not take "
            f"{info.file_size:,} bytes"
        )
    return _Member(stream, dtype, shape)


def read_array_header(
    stream: IO[bytes], name: str, path: Path
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return the shape of an array, whether it is stored column by column, and its dtype."""
    try:
        version = npy.read_magic(stream)
        if version not in _HEADERS:
            raise ValueError(f"version {version}")
        return _HEADERS[version](stream)
    except _HEADER_ERRORS as error:
        raise RankshotError(f"{path}: {name!r} is not a plain array ({error})") from None
