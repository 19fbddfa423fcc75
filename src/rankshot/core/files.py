"""Files: text read line by line in bounded memory; anything written completely or not at all."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import re
import shutil
import zlib
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from errno import EDQUOT, EFBIG, ENOSPC, EROFS
from hashlib import file_digest
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from rankshot.core.errors import NO_VALUE, InputError, OutputError, RankshotError

MARK = b"\xef\xbb\xbf"
"""The byte-order mark that some editors put before UTF-8."""
PACKED = ".gz"
UNPACKERS: dict[str, Any] = {PACKED: gzip.open, ".xz": lzma.open}


def require_ending(path: Path, endings: Collection[str]) -> str:
    """Return the ending of a file's name, or raise an error that lists the known endings."""
    ending = "".join(path.suffixes[-2:]) if path.suffix == PACKED else path.suffix
    if path.is_dir() or ending not in endings:
        what = "is a folder" if path.is_dir() else f"has an unknown file extension {ending!r}"
        rule = f"{what}; a file is expected ({', '.join(endings)})"
        raise InputError("path", NO_VALUE, rule, where=str(path))
    return ending


def require_regular(path: Path, parameter: str = "path") -> None:
    """Refuse a pipe or a device: it may never end, and cannot be read twice."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise InputError(parameter, str(path), "is a pipe or a device; a file is expected")


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading; one whose name ends in .gz or .xz is unpacked."""
    require_regular(path)
    unpack = UNPACKERS.get(Path(str(path)).suffix)
    if unpack is None:
        with path.open("rb") as stream:
            yield stream
        return
    try:
        with path.open("rb") as packed, unpack(packed) as stream:
            yield cast("BinaryIO", stream)
    except (gzip.BadGzipFile, lzma.LZMAError, EOFError, zlib.error) as error:
        rule = f"is not a complete compressed file ({error})"
        raise InputError("file", NO_VALUE, rule, where=str(path)) from None


def decode_lines(stream: BinaryIO, path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a UTF-8 file, line ends included, with their numbers from 1.

    No more than one line is held.
    """
    for number, line in enumerate(stream, 1):
        where = f"{path}:{number}"
        try:
            yield number, (line.removeprefix(MARK) if number == 1 else line).decode()
        except UnicodeDecodeError as error:
            rule = f"is not UTF-8 text ({error.reason}); save it as UTF-8 (in Excel: CSV UTF-8)"
            raise InputError("line", NO_VALUE, rule, where=where) from None


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file."""
    with open_bytes(path) as stream:
        return "".join(line for _, line in decode_lines(stream, path))


def read_lines(path: Path) -> Generator[tuple[int, str], None, None]:
    """Yield the lines of a UTF-8 file that are not blank, with their numbers from 1."""
    with open_bytes(path) as stream:
        for number, line in decode_lines(stream, path):
            if text := line.strip():
                yield number, text


def read_json_lines(
    path: Path, odd: dict[str, None] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the JSON objects of a file, one per line, with the numbers of their lines.

    With ``odd``, other lines are left out, and what is wrong with them is put there.
    """
    for number, text in read_lines(path):
        try:
            row, rule = json.loads(text), "must be a JSON object"
        except (ValueError, RecursionError) as error:
            row, rule = None, f"is not JSON ({error})"
        if isinstance(row, dict):
            yield number, row
            continue
        problem = InputError("line", text, rule, where=f"{path}:{number}")
        if odd is None:
            raise problem
        odd[str(problem)] = None


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text that anybody may have written; None if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def iterate_names(path: Path) -> Iterator[tuple[int, str]]:
    """Yield names, one per line, with the numbers of their lines.

    A # at the start of a line, or between spaces, begins a comment; that of "route #2" does not.
    """
    for number, line in read_lines(path):
        if name := re.sub(r"(^\s*#|\s#(\s|$)).*", "", line).strip():
            yield number, name


def read_names(path: Path) -> tuple[str, ...]:
    """Read names, one per line, that must differ; see `iterate_names`."""
    line_of: dict[str, int] = {}
    for number, name in iterate_names(path):
        if name in line_of:
            rule = f"is also in line {line_of[name]}; names must be unique"
            raise InputError("name", name, rule, where=f"{path}:{number}")
        line_of[name] = number
    if not line_of:
        raise InputError("file", NO_VALUE, "contains no names: write one per line", where=str(path))
    return tuple(line_of)


TEMPORARY = ".rankshot-"
"""Part of the names of files that are not complete. A process that is killed leaves such a file."""
DISK_ERRORS = frozenset({ENOSPC, EDQUOT, EFBIG, EROFS})
"""The numbers of errors that no further attempt would avoid, such as that of a full disk."""


def append_line(stream: FileIO, line: bytes, path: Path) -> None:
    """Add a line to a file without a buffer; it is on disk when this returns, or nothing of it is.

    The next line would otherwise be part of one that a full disk has cut.
    """
    end = os.fstat(stream.fileno()).st_size
    try:
        if os.fstat(stream.fileno()).st_nlink == 0:
            raise FileNotFoundError(0, "the file was removed")
        while line:
            line = line[stream.write(line) :]
        os.fsync(stream)
    except OSError as error:
        stream.truncate(end)
        raise OutputError(f"{path}: cannot write there ({error.strerror})") from None


@contextmanager
def replace_path(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield an empty file beside ``path`` that replaces it if the block ends without an exception.

    After an exception, ``path`` is as it was, and the new file is removed. If it is ``private``,
    only its owner may read it; otherwise it has the mode of the file before.
    """
    place = path.resolve()
    # The ending stays, since writers choose the format by it.
    temporary = place.with_name(f".{place.name}{TEMPORARY}{os.urandom(4).hex()}{place.suffix}")
    try:
        exists = place.exists()
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        os.close(os.open(temporary, flags, 0o600 if private or exists else 0o666))
    except OSError as error:
        raise OutputError(f"{path}: cannot write there ({error.strerror})") from None
    try:
        yield temporary
        with temporary.open("r+b") as stream:
            os.fsync(stream.fileno())
        if exists and not private:
            shutil.copymode(place, temporary)
        temporary.replace(place)
    except OSError as error:
        if error.errno in DISK_ERRORS:
            raise OutputError(f"{path}: cannot be written: {error.strerror}") from None
        raise
    finally:
        # SQLite has files beside a database.
        for ending in ("", "-wal", "-shm", "-journal"):
            Path(f"{temporary}{ending}").unlink(missing_ok=True)


@contextmanager
def replace_file(path: Path, *, private: bool = False) -> Iterator[TextIO]:
    """Open a text file, with line ends as on Unix, for `replace_path`; bytes go to its buffer."""
    with replace_path(path, private=private) as temporary:
        try:
            with temporary.open("w", encoding="utf-8", newline="\n") as stream:
                yield stream
        except UnicodeEncodeError as error:
            odd = error.object[error.start : error.end]
            rule = "has a character that UTF-8 cannot encode"
            raise InputError("text", odd, rule, where=str(path)) from None


def hash_file(path: Path) -> str:
    """SHA-256 of the content of a file, as hexadecimal digits."""
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def read_hashes(manifest: Path | None, key: str = "files") -> dict[str, str]:
    """The hash of each file that a manifest lists; empty if there is no manifest.

    A manifest is a JSON file: ``files`` has the paths relative to its folder.
    """
    if manifest is None or not manifest.is_file():
        return {}
    content = parse_json(manifest.read_bytes())
    files = content.get(key, {}) if isinstance(content, dict) else None
    if not isinstance(files, dict):
        raise InputError("folder", str(manifest), "is damaged", hint="remove it, or overwrite it")
    return {str(name): str(digest) for name, digest in files.items()}


def require_own(path: Path, manifest: Path | None = None, *, overwrite: bool) -> None:
    """Refuse a file that a person may have written or changed.

    A file that exists may be replaced if the manifest has the hash of its content: then we wrote
    it, and nobody has changed it since. Otherwise the user must ask for it with ``overwrite``.
    """
    if overwrite or not path.exists():
        return
    if manifest is not None and path.is_file():
        name, digest = _name_in(manifest, path), hash_file(path)
        if digest in {read_hashes(manifest, key).get(name) for key in ("files", "before")}:
            return
    rule, hint = "exists, and may have been written or changed by a person", "give another name"
    raise InputError("output", str(path), rule, hint=hint, choices={"overwrite": True})


def _name_in(manifest: Path, path: Path) -> str:
    return os.path.relpath(path.resolve(), manifest.resolve().parent)


def remember_own(path: Path, manifest: Path, content: Path | None = None) -> None:
    """Add the hash of a file that we have written to a manifest, for `require_own`.

    ``content`` is a file that is about to replace it: a process that is killed in between leaves
    the old one, which is remembered as well.
    """
    name = _name_in(manifest, path)
    files = read_hashes(manifest) | {name: hash_file(content or path)}
    # Those of other files stay: their process may have been killed too.
    before = read_hashes(manifest, "before")
    if path.exists():
        before[name] = hash_file(path)
    with replace_file(manifest) as stream:
        json.dump({"files": files, "before": before}, stream, indent=1)


@contextmanager
def replace_own(path: Path, manifest: Path | None = None, *, overwrite: bool) -> Iterator[Path]:
    """`replace_path` for a file that `require_own` allows to be replaced, in its manifest."""
    require_own(path, manifest, overwrite=overwrite)
    with replace_path(path) as temporary:
        yield temporary
        if manifest is not None:
            remember_own(path, manifest, temporary)


def remove_leftovers(folder: Path, name: str = "") -> None:
    """Remove what processes that were killed in `replace_path` left, of all files or one name."""
    pattern = rf"\.{re.escape(name) or '.+'}{re.escape(TEMPORARY)}[a-z0-9_]{{8}}(\.\w+)?"
    for path in folder.iterdir():
        if re.fullmatch(pattern, path.name) and path.is_file():
            path.unlink()


@contextmanager
def lock_folder(folder: Path, remedy: str) -> Iterator[None]:
    """Lock a folder; the lock of a process that ends, in whatever way, ends with it.

    ``remedy`` is how the message goes on if another process has the lock.
    """
    try:
        import fcntl  # noqa: PLC0415
    except ImportError:  # Windows: one process at a time
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise RankshotError(f"{folder}: is in use by another process; {remedy}") from None
    finally:
        os.close(handle)
