"""Scores in NumPy's .npz archives, read from front to back without unpacking the whole.

``numpy.load`` would hold all scores at once, and unpickles where it is let. Here the members of
the archive are streamed, and what their headers claim is held against their sizes.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from errno import EINVAL
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.core.names import as_names
from rankshot.core.tables import ID, text_array
from rankshot.zeroshot.scores import KINDS, Kind, n_columns

MAX_COLUMNS = 2**24
"""Numbers in a row: more is a damaged file, or an attack."""
_MAX_NAMES = 2**28
"""Bytes of all names of classes together."""
_CHUNK = 2**20
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_HEADER_ERRORS = (
    *(ValueError, TypeError, EOFError, OverflowError),
    # NumPy reads the header of an array as a Python literal, and lets these through.
    *(SyntaxError, TokenError, RecursionError, MemoryError),
)
_ZIP_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, EOFError, UnicodeDecodeError),
    # What is encrypted, or packed by a method that Python does not know.
    *(RuntimeError, NotImplementedError),
)


@dataclass(frozen=True, eq=False)
class NpzScores:
    """An open archive of scores: what its headers say, and its rows."""

    path: Path
    items: tuple[str, ...]
    kind: Kind
    scores: _Member
    ids: _Member | None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.scores.shape[0]

    @property
    def n_columns(self) -> int:
        """The number of scores in a row."""
        return self.scores.shape[1]

    @property
    def has_ids(self) -> bool:
        """Whether there is an array ``id``."""
        return self.ids is not None

    def blocks(
        self, n_rows: int
    ) -> Iterator[tuple[NDArray[np.object_] | None, NDArray[np.floating]]]:
        """Yield ids and scores, ``n_rows`` rows at a time; only once."""
        for begin in range(0, self.n_rows, n_rows):
            n = min(n_rows, self.n_rows - begin)
            ids = None if self.ids is None else self._take_ids(self.ids, begin, n)
            scores = self.scores.take(n)
            single = scores.dtype.kind == "f" and scores.dtype.itemsize == 4
            dtype: Any = np.float32 if single else np.float64
            # Extended precision may overflow; the infinite scores are refused by whoever reads.
            with np.errstate(over="ignore"):
                values: NDArray[Any] = scores.astype(dtype, copy=False)
            yield ids, values

    def _take_ids(self, member: _Member, begin: int, n: int) -> NDArray[np.object_]:
        texts: list[str] = []
        # Text of fixed width may be far wider than what it holds, so a little at a time.
        step = max(1, _CHUNK // member.row_bytes)
        for done in range(0, n, step):
            try:
                texts += map(str, member.take(min(step, n - done)).tolist())
            except ValueError as error:
                if isinstance(error, RankshotError):
                    raise
                raise RankshotError(f"{self.path}: 'id' is damaged ({error})") from None
        if "" in texts:
            raise RankshotError(f"{self.path}: row {begin + texts.index('')} has no id")
        return text_array(texts)


@contextmanager
def open_npz(path: Path) -> Iterator[NpzScores]:
    """Open an archive with the arrays ``scores`` and ``classes``, perhaps ``id`` and ``kind``."""
    with path.open("rb") as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                yield _opened(archive, path)
        except (*_ZIP_ERRORS, OSError) as error:
            # A place before the start of the file, from a damaged directory, is no argument.
            if isinstance(error, OSError) and error.errno not in {None, EINVAL}:
                raise
            raise RankshotError(f"{path}: not a whole .npz file ({error})") from None


def _opened(archive: zipfile.ZipFile, path: Path) -> NpzScores:
    scores = _member(archive, "scores", path)
    if scores.dtype.kind not in "fiu":
        raise RankshotError(f"{path}: 'scores' holds {scores.dtype}, not numbers")
    items = _classes(_member(archive, "classes", path), path)
    kind = _kind(scores.shape, len(items), _named_kind(archive, path), path)
    if scores.shape[0] == 0:
        raise RankshotError(f"{path}: 'scores' has no rows")
    ids = _member(archive, ID, path) if f"{ID}.npy" in archive.namelist() else None
    if ids is not None:
        _refuse_no_text(ids, ID, path)
        if ids.shape != scores.shape[:1]:
            raise RankshotError(
                f"{path}: 'id' has shape {ids.shape}, but 'scores' has shape {scores.shape}"
            )
        if ids.row_bytes > _CHUNK:
            raise RankshotError(
                f"{path}: 'id' has room for {ids.row_bytes:,} bytes an id: too much"
            )
    return NpzScores(path, items, kind, scores, ids)


def _classes(member: _Member, path: Path) -> tuple[str, ...]:
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


def _named_kind(archive: zipfile.ZipFile, path: Path) -> str | None:
    """Return what the array ``kind`` says, if there is one."""
    if "kind.npy" not in archive.namelist():
        return None
    member = _member(archive, "kind", path)
    name: object = f"{member.dtype} of shape {member.shape}"
    if member.dtype.kind == "U" and prod(member.shape) == 1 and member.row_bytes < _CHUNK:
        name = member.take(1).ravel()[0]
    if name not in KINDS:
        raise RankshotError(
            f"{path}: 'kind' must be one of {', '.join(KINDS)}, not {short_repr(str(name))}"
        )
    return str(name)


def _kind(shape: tuple[int, ...], C: int, named: str | None, path: Path) -> Kind:
    """Tell by the number of columns whether they stand for classes or for pairs of them."""
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


def _member(archive: zipfile.ZipFile, name: str, path: Path) -> _Member:
    there = [file.removesuffix(".npy") for file in archive.namelist()]
    if f"{name}.npy" not in archive.namelist():
        raise RankshotError(
            f"{path}: no array {name!r}; the arrays are {quote_names(there) or 'none at all'}"
        )
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise RankshotError(f"{path}: {name!r} is packed in a way that NumPy does not use")
    stream = archive.open(info)
    shape, fortran, dtype = _header(stream, name, path)
    if dtype.hasobject:
        raise RankshotError(
            f"{path}: {name!r} holds Python objects, which only a pickle can; save it as text or "
            f"numbers, for example {name}.astype(str)"
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


def _header(
    stream: IO[bytes], name: str, path: Path
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        version = npy.read_magic(stream)
        if version not in _HEADERS:
            raise ValueError(f"version {version}")
        return _HEADERS[version](stream)
    except _HEADER_ERRORS as error:
        raise RankshotError(f"{path}: {name!r} is no plain array ({error})") from None
