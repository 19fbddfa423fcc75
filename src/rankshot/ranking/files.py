"""Reading and writing rankings, by the ending of the file's name."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from rankshot.ranking.arguments import require_rankings
from rankshot.ranking.errors import RankshotError, shown
from rankshot.ranking.jsonl import read_jsonl, write_jsonl
from rankshot.ranking.preflib import PREFLIB_ENDINGS, read_preflib, write_preflib
from rankshot.ranking.rankings import Rankings

JSONL_ENDINGS = (".jsonl", ".ndjson")


def read_rankings(path: str | Path, items: Iterable[Any] | None = None) -> Rankings:
    """Read rankings from JSON lines (.jsonl) or PrefLib (.soc, .soi, .toc, .toi).

    Parameters
    ----------
    path : str or Path
        One ranking a line, such as
        ``{"target": "cat", "ranking": ["leopard", ["tiger", "lion"], "fox"], "weight": 1}``.
        ``target``, ``source``, ``rater``, ``weight`` and ``kind`` (``"top"``, the default, or
        ``"subset"``) are optional, other fields are passed over. ``k`` says that only the
        first k of the listed items count, where that cuts a tie.
    items : iterable of names, optional
        All items that could be ranked, in the order wanted: a classifier's ``classes_``. By
        default those that occur in the file, sorted (PrefLib files name all of theirs).

    Raises
    ------
    RankshotError
        Names the file and the line of what is wrong.
    FileNotFoundError
        If there is no such file.
    """
    path = Path(path)
    check_ending(path)
    read = read_jsonl if path.suffix in JSONL_ENDINGS else read_preflib
    return read(path, items)


def write_rankings(rankings: Rankings, path: str | Path) -> None:
    """Write rankings as JSON lines (.jsonl) or PrefLib (.soc, .soi, .toc, .toi).

    The file appears whole or not at all: it is written beside its place and then renamed.
    JSON lines name the items that somebody lists and no others: to read the same rankings back,
    give `read_rankings` the same ``items``. PrefLib names all items, but has no place for targets
    (one at most may be there), sources and raters; they are left out.
    """
    path = Path(path)
    require_rankings(rankings)
    if len(rankings) == 0:
        raise RankshotError(f"{path}: there are no rankings to write")
    check_ending(path)
    write = write_jsonl if path.suffix in JSONL_ENDINGS else write_preflib
    try:
        with replacing(path) as stream:
            write(rankings, stream, path)
    except UnicodeEncodeError as error:
        odd = shown(error.object[error.start : error.end])
        raise RankshotError(f"{path}: UTF-8 cannot hold the character {odd}") from None


def check_ending(path: Path) -> None:
    """Raise if the name of a file does not tell its format."""
    known = (*JSONL_ENDINGS, *PREFLIB_ENDINGS)
    if path.suffix not in known:
        raise RankshotError(f"{path}: unknown ending {path.suffix!r}; known are {', '.join(known)}")


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """Open a file that takes the place of ``path`` when, and only when, all went well."""
    path = path.resolve()
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise RankshotError(f"{path}: cannot write there ({error.strerror})") from None
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(path.stat().st_mode if path.exists() else 0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
