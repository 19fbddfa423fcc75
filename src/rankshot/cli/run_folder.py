"""`RunFolder`: what ``rankshot recognise`` keeps, so that another run need not do it again.

The scores are a job's folder of parts, with its own manifest. The file ``run.json`` says from which
new classes and sources the rankings are. A folder is used by one process at a time.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankshot.cli.console import check_output_folder, say
from rankshot.core.errors import RankshotError

if TYPE_CHECKING:
    from rankshot.inference.scoring import ScoringPlan

ENDING = ".rankshot-run"
FORMAT = "rankshot run 2"
MANIFEST = "run.json"
OWN_FILES = (MANIFEST, "scores", "*.rankings.jsonl", "*.rankshot")
"""What --again removes. The answers of a language model, which cost money, stay."""


class RunFolder:
    """The files of a run, of which `open` creates the folder.

    Attributes
    ----------
    path : Path
        The folder.
    scores : Path
        The scores of the inputs: a folder of Parquet parts.
    rankings, head : Path
        The rankings and the head for one output.
    answers : Path
        The answers of a language model.
    """

    def __init__(self, path: Path, output: Path) -> None:
        self.path = path
        self.scores = path / "scores"
        self.rankings = path / f"{output.stem}.rankings.jsonl"
        self.head = path / f"{output.stem}.rankshot"
        self.answers = path / "answers.jsonl"
        self._rankings: dict[str, dict[str, str]] = {}

    @contextmanager
    def open(self, plan: ScoringPlan, *, again: bool) -> Iterator[None]:
        """Create the folder, or use one of the same model; no other process can use it then."""
        if self.path.exists() and not self.path.is_dir():
            raise RankshotError(f"{self.path}: is a file, not a folder; give another --folder")
        check_output_folder(self.path)
        is_new = not self.path.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        with _lock(self.path):
            self._begin(plan, again=again)
            try:
                yield
            except BaseException:
                if is_new and [path.name for path in self.path.iterdir()] == [MANIFEST]:
                    shutil.rmtree(self.path)
                raise

    def refuse_to_remove(self, files: Iterable[Path | None]) -> None:
        """Refuse --again if it would remove a file that the user gives."""
        for path in files:
            if path is not None and path.resolve().is_relative_to(self.path.resolve()):
                raise RankshotError(f"{path}: --again would remove it; copy it to another folder")

    def has_rankings(self, fingerprint: str) -> bool:
        """Tell whether the rankings are there that the fingerprint describes."""
        kept = self._rankings.get(self.rankings.name, {})
        return self.rankings.is_file() and kept.get("from") == fingerprint

    @contextmanager
    def replace_rankings(self, fingerprint: str) -> Iterator[None]:
        """Record the fingerprint of rankings that the block writes.

        The old one is removed before: if the process is killed in between, the rankings are
        those of no run, and are made again. Rankings that were corrected by hand are kept beside.
        """
        self._keep_corrected(self.rankings.name)
        self._rankings.pop(self.rankings.name, None)
        self._write()
        yield
        self._rankings[self.rankings.name] = {
            "from": fingerprint,
            "written": _hash(self.rankings),
        }
        self._write()

    def _begin(self, plan: ScoringPlan, *, again: bool) -> None:
        """Read the manifest, or write a new one; refuse what is not from the same model."""
        from rankshot.core.files import remove_leftovers
        from rankshot.jobs.score_parts import require_same_plan

        remove_leftovers(self.path)
        kept = self._read()
        if kept is None and any(self.path.iterdir()):
            raise RankshotError(
                f"{self.path}: is not empty, and not a folder of `rankshot recognise`; give "
                "another --folder"
            )
        self._rankings = kept or {}
        if again:
            for name in self._rankings:
                self._keep_corrected(name)
            for pattern in OWN_FILES:
                for path in self.path.glob(pattern):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            self._rankings = {}
        try:
            require_same_plan(self.scores, plan)
        except RankshotError as error:
            raise RankshotError(f"{error}; give another --folder, or start with --again") from None
        self._write()

    def _keep_corrected(self, name: str) -> None:
        """Give rankings that are not as they were written another name, and say it."""
        rankings = self.path / name
        kept = self._rankings.get(name)
        if kept is None or not rankings.is_file() or _hash(rankings) == kept["written"]:
            return
        stem = rankings.name.removesuffix(".jsonl")
        names = (f"{stem}.corrected{f'-{n}' if n > 1 else ''}.jsonl" for n in count(1))
        copy = next(path for name in names if not (path := rankings.with_name(name)).exists())
        rankings.rename(copy)
        say(f"rankings: those in {rankings} were corrected by hand; they are kept as {copy}")

    def _read(self) -> dict[str, Any] | None:
        path = self.path / MANIFEST
        if not path.is_file():
            return None
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["format"] == FORMAT:
                return {name: dict(about) for name, about in kept["rankings"].items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            pass
        raise RankshotError(
            f"{path}: damaged, or written by another version of rankshot; give another --folder"
        )

    def _write(self) -> None:
        from rankshot.core.files import replace_file

        with replace_file(self.path / MANIFEST) as stream:
            json.dump({"format": FORMAT, "rankings": self._rankings}, stream, indent=1)


def _hash(path: Path) -> str:
    from rankshot.inference.model import fingerprint_files

    return fingerprint_files([path])


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Lock a folder; the lock of a process that ends, in whatever way, ends with it."""
    try:
        import fcntl
    except ImportError:  # Windows: one process at a time
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RankshotError(
                f"{folder}: is in use by another run; wait until that has ended, or give another "
                "--folder"
            ) from None
        yield
    finally:
        os.close(handle)


def fingerprint_sources(files: Iterable[Path], *settings: Any) -> str:
    """Return a hash of settings, and of the content of files and of folders of files."""
    from rankshot.inference.model import fingerprint_files
    from rankshot.jobs.part_jobs import fingerprint

    found: list[Path] = []
    for path in files:
        found += sorted(path.iterdir()) if path.is_dir() else [path]
    return fingerprint([fingerprint_files(path for path in found if path.is_file()), *settings])
