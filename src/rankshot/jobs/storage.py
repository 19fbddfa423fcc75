"""Where the parts of a dataset are: folders, and all that fsspec reaches (S3, GCS, Azure, HDFS).

Parts are listed with their versions, fetched to a file that the readers of tables can open, and
written so that a reader sees a part completely or not at all.
"""

from __future__ import annotations

import os
import pickle
import re
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from secrets import token_hex
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import OutputError, RankshotError, quote_names
from rankshot.core.files import (
    DISK_ERRORS,
    PATTERN,
    TEMPORARY,
    has_pattern,
    is_address,
    replace_path,
)
from rankshot.core.tables import ID, TABLE_ENDINGS, open_parquet
from rankshot.core.validation import require_module

ATOMIC_STORES = frozenset(
    {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oci", "oss", "tos", "memory"}
)
"""Stores that show an object only when all of it has arrived."""
CHUNK_BYTES = 1 << 20
COMPRESSED_ENDINGS = (".gz", ".bz2", ".xz", ".zst", ".zip")
_VERSION_KEYS = (
    *("ETag", "etag", "md5Hash", "generation"),
    *("mtime", "LastModified", "last_modified", "modification_time", "modificationTime", "created"),
)


class Record(NamedTuple):
    """What a job keeps about a part that is done: versions and checksums of input and output."""

    input_version: str
    input_checksum: str
    output_version: str
    output_checksum: str


@dataclass(frozen=True)
class Part:
    """A file of a dataset.

    Attributes
    ----------
    name : str
        Its path relative to the dataset, with slashes.
    address : str
        Its path, or its address for fsspec.
    size : int
        In bytes.
    version : str
        Changes with the content: a checksum of the store, or the size and the time of the change.
    record : Record, optional
        What the job keeps about it since an earlier run.
    """

    name: str
    address: str
    size: int
    version: str
    record: Record | None = None

    @property
    def stem(self) -> str:
        """The name without its ending."""
        return str(PurePosixPath(self.name).with_suffix(""))


@dataclass(frozen=True)
class PackedPart(Part):
    """A part that is not a file: its content goes with it to the worker, compressed."""

    content: bytes = b""

    @classmethod
    def pack(cls, name: str, value: object, version: str, *, compress: bool = True) -> PackedPart:
        """Return a part that holds a value, which is never written to a file."""
        content = zlib.compress(pickle.dumps(value), int(compress))
        return cls(name, name, len(content), version, content=content)


class _Place(NamedTuple):
    """A file system of fsspec, and a path in it."""

    files: Any
    path: str
    kinds: set[str]

    @property
    def is_local(self) -> bool:
        return bool(self.kinds & {"file", "local"})


def as_address(text: str | Path) -> str:
    """Return an absolute path, or the address, without a slash at its end."""
    text = str(text)
    if not is_address(text):
        return str(Path(text).absolute())
    if "::" in text:
        return text.rstrip("/")
    place = _open_place(text)
    if place.is_local:
        return str(Path(place.path))
    return str(place.files.unstrip_protocol(place.path)).rstrip("/")


def follow_links(address: str) -> str:
    """Return the address of what a local name stands for; other addresses as they are."""
    place = _open_place(address)
    return os.path.realpath(place.path) if place.is_local else address


def join_address(folder: str, name: str) -> str:
    """Return the address of a file in a folder."""
    return f"{folder.rstrip('/')}/{name}" if is_address(folder) else str(Path(folder, name))


def _open_place(address: str) -> _Place:
    """Return the file system of an address; a missing one says what to install."""
    core = require_module("fsspec.core", "datasets of many parts", "cli")
    if not is_address(address):
        address = str(Path(address).absolute())
    try:
        with _as_os_error(address):
            files, path = core.url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise RankshotError(f"{address}: cannot be opened: {error}") from None
    kinds = {files.protocol} if isinstance(files.protocol, str) else set(files.protocol)
    return _Place(files, path, kinds)


@contextmanager
def _as_os_error(address: str) -> Iterator[None]:
    """Turn the errors of a store, which has many classes of its own, into `OSError`."""
    try:
        yield
    except (OSError, ImportError, ValueError):
        raise
    except Exception as error:
        raise OSError(f"{address}: {type(error).__name__}: {error}") from error


# -------------------------------------------------------------------- listing


def list_parts(dataset: str | Path, endings: Sequence[str] = TABLE_ENDINGS) -> list[Part]:
    """Return the parts of a folder with all below it, of a pattern, a file or an fsspec address.

    They are sorted by name; names that begin with ``_`` or ``.`` are not parts.
    """
    address = as_address(dataset)
    place = _open_place(address)
    root, found = _find_files(place, address)
    names = {name: path for path in found if is_visible(name := _relative(path, root))}
    wanted = {name: path for name, path in names.items() if name.endswith(tuple(endings))}
    known = ", ".join(endings)
    if not wanted:
        found_names = f"; there is {quote_names(sorted(names), 3)}" if names else ""
        raise RankshotError(f"{address}: no files that end in {known}{found_names}")
    # Parts but for the case of their ending, or because they are compressed.
    alike = tuple(f"{ending}{more}" for ending in endings for more in ("", *COMPRESSED_ENDINGS))
    if meant := [name for name in sorted({*names} - {*wanted}) if name.lower().endswith(alike)]:
        raise RankshotError(
            f"{address}: {quote_names(meant, 3)} would be left out, because parts end in "
            f"{known}: rename "
            "or unpack them, or move them elsewhere"
        )
    return [
        Part(name, *_describe_file(place, path, found[path]))
        for name, path in sorted(wanted.items())
    ]


def _find_files(place: _Place, address: str) -> tuple[str, Mapping[str, Mapping[str, object]]]:
    """Return the folder that names are relative to, and the files with what is known about them."""
    files, path, _ = place
    with _as_os_error(address):
        if has_pattern(address):
            folder = PATTERN.split(path, maxsplit=1)[0].rpartition("/")[0]
            found = files.glob(path, detail=True)
            return folder, {name: info for name, info in found.items() if info["type"] == "file"}
        try:
            info = files.info(path)
        except FileNotFoundError:
            raise RankshotError(f"{address}: no such file or folder") from None
        if info["type"] == "file":
            return path.rpartition("/")[0], {path: info}
        if place.is_local:
            _refuse_linked_folders(path)
        return path, files.find(path, detail=True)


def _refuse_linked_folders(folder: str) -> None:
    for root, folders, _ in os.walk(folder):
        for name in folders:
            if is_visible(name) and os.path.islink(linked := os.path.join(root, name)):  # noqa: PTH114, PTH118
                raise RankshotError(
                    f"{linked}: is a link to a folder, and would be left out; give a folder "
                    "without such links"
                )


def _relative(path: str, root: str) -> str:
    return path.removeprefix(root.rstrip("/")).lstrip("/")


def is_visible(name: str) -> bool:
    """Return whether a file may be a part: no name on its path begins with ``_`` or ``.``."""
    return bool(name) and not any(step.startswith(("_", ".")) for step in name.split("/"))


def _describe_file(place: _Place, path: str, info: Mapping[str, Any]) -> tuple[str, int, str]:
    """Return the address, the size and the version of a file."""
    if place.is_local:
        # fsspec rounds the time to microseconds.
        try:
            status = os.stat(path)  # noqa: PTH116 (there may be many thousands of files)
        except OSError:
            # A link to nothing: the worker that gets this part says so.
            return str(Path(path)), 0, "missing"
        return str(Path(path)), status.st_size, f"{status.st_size}-{status.st_mtime_ns}"
    size = int(info.get("size") or 0)
    known = next((info[key] for key in _VERSION_KEYS if info.get(key)), "")
    if isinstance(known, datetime):
        # Some file systems list times as numbers, and describe a single file with dates.
        known = known.timestamp()
    version = f"{size}-{known}".replace('"', "")
    return str(place.files.unstrip_protocol(path)), size, version


def require_unchanged(part: Part) -> None:
    """Refuse a part that is not what it was when the parts were listed."""
    if isinstance(part, PackedPart):
        return
    if find_version(part.address) != part.version:
        raise RankshotError(f"{part.address}: was changed while it was being read")


# -------------------------------------------------------------------- reading


@contextmanager
def fetch_part(part: Part) -> Iterator[Any]:
    """Yield a file with the content of a part, or the value that was packed.

    Errors about a copy of the file name the part.
    """
    if isinstance(part, PackedPart):
        yield pickle.loads(zlib.decompress(part.content))  # noqa: S301 (made by `pack`)
        return
    place = _open_place(part.address)
    if place.is_local:
        yield Path(place.path)
        return
    with tempfile.TemporaryDirectory(prefix="rankshot-") as folder:
        copy = Path(folder, f"part{PurePosixPath(part.name).suffix}")
        try:
            with _as_os_error(part.address):
                place.files.get_file(place.path, str(copy))
            yield copy
        except RankshotError as error:
            raise type(error)(str(error).replace(str(copy), part.address)) from None


def read_bytes(address: str, n: int | None = None) -> bytes | None:
    """Return the content of a file, or its first n bytes; None if it does not exist."""
    place = _open_place(address)
    with _as_os_error(address), suppress(FileNotFoundError, NotADirectoryError):
        place.files.invalidate_cache()
        content: bytes = place.files.cat_file(place.path, end=n)
        return content
    return None


class StoredFile(NamedTuple):
    """A file at an address; it opens and prints like a path.

    If it is given as a part, it must be as it was when the parts were listed: what passes over it
    find must fit together.
    """

    address: str
    part: Part | None = None

    def open(self, mode: str = "rb") -> Any:
        """Return a context that opens the file, and unpacks it if it is compressed."""
        if self.part is not None:
            require_unchanged(self.part)
        module = require_module("fsspec", "datasets of many parts", "cli")
        return module.open(self.address, mode, compression="infer")

    def __str__(self) -> str:
        return self.address


def read_footer(address: str, *, read_pages: bool = False) -> tuple[int, dict[str, str]] | None:
    """Return the number of rows and the metadata of a Parquet file; None if it is not complete.

    With ``read_pages``, also None if a page is damaged, as its checksum tells.
    """
    try:
        with _as_os_error(address), open_parquet(StoredFile(address)) as file:
            metadata = file.metadata
            for number in range(file.num_row_groups if read_pages else 0):
                file.read_row_group(number)
    except (FileNotFoundError, RankshotError):
        return None
    pairs = metadata.metadata or {}
    return metadata.num_rows, {
        key.decode(): value.decode() for key, value in pairs.items() if key.startswith(b"rankshot")
    }


def find_version(address: str) -> str:
    """Return the version of a file, as `list_parts` has it; nothing if it does not exist."""
    place = _open_place(address)
    with _as_os_error(address), suppress(FileNotFoundError):
        place.files.invalidate_cache()
        return _describe_file(place, place.path, place.files.info(place.path))[2]
    return ""


def compute_checksum(address: str | Path) -> str:
    """Return the size and the CRC of a file, which tell damage and changes, but not forgery."""
    size = checksum = 0
    with _as_os_error(str(address)), StoredFile(str(address)).open() as stream:
        while chunk := stream.read(CHUNK_BYTES):
            size, checksum = size + len(chunk), zlib.crc32(chunk, checksum)
    return f"{size}-{checksum:08x}"


def read_id_hashes(address: str) -> bytes:
    """Return the numbers of the ids in a Parquet file, from `hash_ids`."""
    with _as_os_error(address), open_parquet(StoredFile(address)) as file:
        return hash_ids(file, ID)


# -------------------------------------------------------------------- writing


@contextmanager
def new_part(address: str) -> Iterator[Path]:
    """Yield a file to write; when the block ends without an exception, it is at ``address``."""
    place = _open_place(address)
    if place.is_local:
        target = Path(place.path)
        with _name_output(address):
            target.parent.mkdir(parents=True, exist_ok=True)
        with replace_path(target) as temporary:
            try:
                yield temporary
            except OutputError as error:
                # The writer knows only the name of the file that is not complete.
                raise OutputError(str(error).replace(str(temporary), address)) from None
        return
    with tempfile.TemporaryDirectory(prefix="rankshot-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder, f"part{PurePosixPath(place.path).suffix}")
        with _name_output(folder, only_full=True):
            yield copy
        with _name_output(address):
            _put(place, copy, address)


@contextmanager
def _name_output(address: str, *, only_full: bool = False) -> Iterator[None]:
    """Turn errors that all parts would meet into an `OutputError` that names the address."""
    try:
        yield
    except OSError as error:
        is_forbidden = isinstance(error, PermissionError | NotADirectoryError | FileExistsError)
        if error.errno in DISK_ERRORS or (is_forbidden and not only_full):
            raise OutputError(f"{address}: cannot be written: {error.strerror or error}") from None
        raise


def _put(place: _Place, source: Path, address: str) -> None:
    files, path, kinds = place
    with _as_os_error(address):
        if kinds & ATOMIC_STORES:
            files.put_file(str(source), path)
            return
        folder, _, name = path.rpartition("/")
        files.makedirs(folder, exist_ok=True)
        temporary = f"{folder}/.{name}{TEMPORARY}{token_hex(4)}"
        try:
            files.put_file(str(source), temporary)
            # Some stores do not rename a file over another one.
            if files.exists(path):
                files.rm_file(path)
            files.mv(temporary, path)
        except BaseException:
            if files.exists(temporary):
                files.rm_file(temporary)
            raise


def write_text(address: str, text: str) -> None:
    """Write a small file completely or not at all; text is encoded as UTF-8."""
    with new_part(address) as path:
        path.write_text(text, encoding="utf-8", newline="\n")


def list_files(folder: str) -> list[str]:
    """Return the names of all files in a folder and its folders; none if it does not exist."""
    place = _open_place(folder)
    with _as_os_error(folder):
        place.files.invalidate_cache()
        return [_relative(path, place.path) for path in place.files.find(place.path)]


def remove_files(folder: str, names: Sequence[str]) -> None:
    """Remove files of a folder; those that do not exist are no error."""
    place = _open_place(folder)
    for name in names:
        with _as_os_error(folder), _name_output(folder), suppress(FileNotFoundError):
            place.files.rm_file(f"{place.path.rstrip('/')}/{name}")


def remove_partial_files(folder: str) -> None:
    """Remove the incomplete files that killed processes have left in a folder."""
    begins = re.compile(rf"(.*/)?\.[^/]*{re.escape(TEMPORARY)}[^/]*")
    remove_files(folder, [name for name in list_files(folder) if begins.fullmatch(name)])


# ---- Ids of many files, in different processes: how many occur more than once

HASHED_ROWS = 1 << 16
"""Ids that are read at a time."""
MOST_IDS = 1 << 26
"""Ids that are counted one by one; of more, a part is."""


def hash_ids(file: Any, column: str) -> bytes:
    """Return a number of 8 bytes for each id in a Parquet file, equal for equal ids anywhere.

    It is the sum of the bytes of the id, each times a random number of its place.
    """
    rng, factors, hashes = np.random.default_rng(0), np.empty(0, np.uint64), b""
    for batch in file.iter_batches(HASHED_ROWS, columns=[column]):
        _, offsets, text = batch.column(0).cast("large_binary").buffers()
        ends = np.frombuffer(offsets, np.int64)[: len(batch) + 1]
        values = np.frombuffer(text, np.uint8)[: ends[-1]]
        sizes = np.diff(ends)
        while factors.size < sizes.max(initial=0):
            factors = np.append(factors, rng.integers(2**64 - 1, size=64, dtype=np.uint64))
        place = np.arange(values.size) - np.repeat(ends[:-1], sizes)
        sums = np.zeros(values.size + 1, np.uint64)
        np.cumsum((values + np.uint64(1)) * factors[place], out=sums[1:])
        hashes += (sums[ends[1:]] - sums[ends[:-1]]).tobytes()
    return hashes


class RepeatedIds:
    """Counts repeated ids by their numbers; if there are too many, those of a part of the ids.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.jobs.storage import RepeatedIds
    >>> found = RepeatedIds()
    >>> for numbers in ([5, 6, 7], [8, 6]):
    ...     found.add(np.array(numbers, np.uint64).tobytes())
    >>> found.count()
    1
    """

    def __init__(self) -> None:
        self._kept: list[NDArray[np.uint64]] = []
        self._n = self._halvings = 0

    def add(self, hashes: bytes) -> None:
        """Add the numbers of some ids, from `hash_ids`."""
        self._kept.append(self._thin(np.frombuffer(hashes, np.uint64)))
        self._n += self._kept[-1].size
        while self._n > MOST_IDS:
            self._halvings += 1
            self._kept = [self._thin(some) for some in self._kept]
            self._n = sum(some.size for some in self._kept)

    def _thin(self, hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return hashes[hashes < 2 ** (64 - self._halvings)] if self._halvings else hashes

    def count(self) -> int:
        """Return how many ids were there before."""
        found = np.sort(np.concatenate([*self._kept, np.empty(0, np.uint64)]))
        return int((found[1:] == found[:-1]).sum()) << self._halvings
