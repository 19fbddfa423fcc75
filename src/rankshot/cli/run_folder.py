"""`RunFolder`: what ``rankshot recognise`` keeps, so that another run need not do it again.

The file ``run.json`` says which model the scores are of, and which new classes and sources the
rankings are of. A folder is used by one process at a time.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankshot.cli.console import check_output_folder, say
from rankshot.core.errors import RankshotError

if TYPE_CHECKING:
    from rankshot.inference.scoring import ScoringPlan

ENDING = ".rankshot-run"
FORMAT = "rankshot run 1"
MANIFEST = "run.json"
OWN_FILES = (MANIFEST, "scores.*", "*.rankings.jsonl", "*.rankshot")
"""What --again removes. The answers of a language model, which cost money, stay."""


class RunFolder:
    """The files of a run, of which `open` creates the folder.

    Attributes
    ----------
    path : Path
        The folder.
    scores : Path
        The scores of the inputs. They are an .npz archive, which keeps the kind of the scores.
    rankings, head : Path
        The rankings and the head for one output.
    answers : Path
        The answers of a language model.
    """

    def __init__(self, path: Path, output: Path) -> None:
        self.path = path
        self.scores = path / "scores.npz"
        self.rankings = path / f"{output.stem}.rankings.jsonl"
        self.head = path / f"{output.stem}.rankshot"
        self.answers = path / "answers.jsonl"
        self._manifest: dict[str, Any] = {}

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
        return self.rankings.is_file() and self._made_from.get(self.rankings.name) == fingerprint

    @contextmanager
    def replace_rankings(self, fingerprint: str) -> Iterator[None]:
        """Record the fingerprint of rankings that the block writes.

        The old one is removed before: if the process is killed in between, the rankings are
        those of no run, and are made again. Rankings that were corrected by hand are kept beside.
        """
        name = self.rankings.name
        if name in self._made_from:
            _keep_corrected(self.rankings, self._written.get(name))
        self._made_from.pop(name, None)
        self._write()
        yield
        self._made_from[name] = fingerprint
        self._written[name] = _fingerprint(self.rankings)
        self._write()

    def _begin(self, plan: ScoringPlan, *, again: bool) -> None:
        """Read the manifest, or write a new one; refuse what is not from the same model."""
        from rankshot.core.files import remove_leftovers
        from rankshot.inference.score_runs import describe_plan

        remove_leftovers(self.path)
        description = describe_plan(plan)
        kept = self._read()
        if kept is None and any(self.path.iterdir()):
            raise RankshotError(
                f"{self.path}: is not empty, and not a folder of `rankshot recognise`; give "
                "another --folder"
            )
        if again:
            written = {} if kept is None else kept["rankings written"]
            for name in {} if kept is None else kept["rankings from"]:
                _keep_corrected(self.path / name, written.get(name))
            for pattern in OWN_FILES:
                for path in self.path.glob(pattern):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            kept = None
        # Without scores, the first attempt failed: another model may take its place.
        if kept is not None and any(self.path.glob("scores.npz*")):
            self._require_same(kept["scores of"], description)
        self._manifest = {
            "format": FORMAT,
            "scores of": description,
            "rankings from": {} if kept is None else kept["rankings from"],
            "rankings written": {} if kept is None else kept["rankings written"],
        }
        self._write()

    @property
    def _made_from(self) -> dict[str, str]:
        found: dict[str, str] = self._manifest["rankings from"]
        return found

    @property
    def _written(self) -> dict[str, str]:
        found: dict[str, str] = self._manifest["rankings written"]
        return found

    def _require_same(self, kept: Mapping[str, Any], description: Mapping[str, Any]) -> None:
        from rankshot.inference.score_runs import find_change

        try:
            changed = find_change(kept, description)
        except KeyError:
            changed = "version of rankshot"
        if changed is not None:
            name = kept.get("model")
            what = f"another model, {name}" if changed == "model" else f"{name}, but not with "
            what += "" if changed == "model" else f"the same {changed}"
            raise RankshotError(
                f"{self.path}: keeps the scores of {what}; give another --folder, or start afresh "
                "with --again"
            )

    def _read(self) -> dict[str, Any] | None:
        path = self.path / MANIFEST
        if not path.is_file():
            return None
        try:
            kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            # Rankings from before it was recorded how they were written count as corrected.
            kept.setdefault("rankings written", {})
            parts = kept["scores of"], kept["rankings from"], kept["rankings written"]
            if kept["format"] == FORMAT and all(isinstance(part, dict) for part in parts):
                return kept
        except (ValueError, KeyError, TypeError):
            pass
        raise RankshotError(
            f"{path}: damaged, or written by another version of rankshot; give another --folder"
        )

    def _write(self) -> None:
        from rankshot.core.files import replace_file

        with replace_file(self.path / MANIFEST) as stream:
            json.dump(self._manifest, stream, indent=1)


def _fingerprint(path: Path) -> str:
    from rankshot.inference.model_interface import fingerprint_files

    return fingerprint_files([path])


def _keep_corrected(rankings: Path, written: str | None) -> None:
    """Give rankings that are not as they were written another name, and say it."""
    if not rankings.is_file() or _fingerprint(rankings) == written:
        return
    stem = rankings.name.removesuffix(".jsonl")
    names = (f"{stem}.corrected{f'-{n}' if n > 1 else ''}.jsonl" for n in count(1))
    copy = next(path for name in names if not (path := rankings.with_name(name)).exists())
    rankings.rename(copy)
    say(f"rankings: those in {rankings} were corrected by hand; they are kept as {copy}")


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
    from hashlib import sha256

    from rankshot.inference.model_interface import fingerprint_files

    found: list[Path] = []
    for path in files:
        found += sorted(path.iterdir()) if path.is_dir() else [path]
    content = fingerprint_files(path for path in found if path.is_file())
    return sha256(json.dumps([content, *settings]).encode()).hexdigest()
