"""A review: the labels that people gave, the audit, and the predictions that follow from them."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import RLock, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import (
    InputError,
    OutputError,
    RankshotError,
    format_count,
    short_repr,
    suggest_name,
)
from rankshot.core.files import append_line
from rankshot.ranking.rankings import Rankings
from rankshot.review.audit import Audit
from rankshot.review.learning import Changes, Learner, Predicted, compare
from rankshot.zeroshot.joint_head import NONE_OF_THESE

PAUSE_SECONDS = 0.4
"""The head is fitted, and results are written, if no label has come for so long."""
LONGEST_NAME = 200
ENDED = "an audit was ended: its inputs or predictions have changed; its labels are kept"


# ---- The journal: lines of JSON that are only added, each on disk before it counts

DAMAGED = "is damaged, or was written by another version of rankshot"


class Journal:
    """A file of events, which `read` returns in their order; only its owner may read it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.touch(0o600)
            path.chmod(0o600)
            # Not buffered: what is written goes to the system in one call.
            self._stream = path.open("a+b", buffering=0)
        except OSError as error:
            raise OutputError(f"{path}: cannot write there ({error.strerror})") from None

    def read(self) -> Iterator[tuple[str, object]]:
        """Yield each line with its place, before the first event is added; bytes are not JSON.

        A process that is killed can leave an incomplete last line. Its event was not acknowledged,
        and it is removed.
        """
        end = 0
        with self.path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if not line.endswith(b"\n"):
                    self._stream.truncate(end)
                    return
                end += len(line)
                try:
                    event = json.loads(line)
                except (ValueError, RecursionError):
                    event = line
                yield f"{self.path}:{number}", event

    def append(self, event: Mapping[str, object]) -> None:
        """Add an event; when this returns, it is on disk."""
        line = json.dumps(event, separators=(",", ":")).encode() + b"\n"
        append_line(self._stream, line, self.path)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def _are_texts(values: Iterable[object], *others: type) -> bool:
    return all(isinstance(value, (str, *others)) for value in values)


# ---- The review


class GoneError(RankshotError):
    """A request about something that no longer exists, such as a closed audit."""


class Review:
    """What people decided, on disk, and what follows from it; any number of threads may use it.

    Parameters
    ----------
    learner : Learner
    ids : sequence of str
        The ids of the inputs, one per row of its scores.
    journal : Journal
        Its events are repeated now, and new ones are added.
    labels : mapping of id to label
        Labels that were known before.
    """

    def __init__(
        self,
        learner: Learner,
        ids: Sequence[str],
        journal: Journal,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        self.learner = learner
        self.ids = tuple(ids)
        self._row_of = {name: row for row, name in enumerate(self.ids)}
        self.labels = {self._row_of[name]: label for name, label in (labels or {}).items()}
        self.added: dict[str, tuple[str, ...]] = {}
        # How often labels and classes have changed: what tabs and the thread that learns compare.
        self.n_changes = 0
        self.audit: Audit | None = None
        self.last_audit: dict[str, Any] | None = None
        self.changes = Changes()
        self.version = 0
        self.problem = ""
        self.notes: list[str] = []
        # What was judged in the audit that is open, or was ended, by id: it will become labels.
        self._judged: list[tuple[str, str]] = []
        self._n_missing = 0
        self._journal = journal
        self._lock = RLock()
        # One fit at a time; who needs both locks takes this one first.
        self._fitting = RLock()
        # A word for each change, and an empty one for the end.
        self._pending: SimpleQueue[str] = SimpleQueue()
        self._thread: Thread | None = None
        self._n_fitted = -1
        self.predicted: Predicted
        for where, event in journal.read():
            self._apply(event, where)
        if self.audit is None:
            self._end_audit()
        if self._n_missing:
            text = f"{format_count(self._n_missing, 'label')} kept for inputs that no longer exist"
            self.notes.append(text)
        self._fit_now()

    # ---- Events

    def _apply(self, event: object, where: str = "") -> None:
        """Do what an event says."""
        match event:
            case {"what": "labels", "labels": dict(labels)} if _are_texts(
                labels.values(), type(None)
            ):
                self._set(labels)
            case {"what": "class", "name": str(name), "ranking": [*names]} if _are_texts(names):
                self.added[name] = tuple(names)
                self.n_changes += 1
            case {"what": "audit", "seed": int(seed), "digest": digest}:
                self._end_audit()
                self._open_audit(seed, digest)
            case {"what": "check", "id": str(name), "label": str(label)}:
                self._judged.append((name, label))
            case {"what": "uncheck"}:
                del self._judged[-1:]
            case {"what": "close"}:
                if self.audit is not None:
                    self.last_audit = self.describe_audit()
                self._end_audit()
            case _:
                hint = "restore a copy, or remove this line; only the decision in it is lost"
                raise InputError("event", short_repr(event), DAMAGED, where, hint)

    def _set(self, labels: Mapping[str, str | None]) -> None:
        """Set the labels of inputs that are there, by id, and count the others."""
        for name, label in labels.items():
            row = self._row_of.get(name)
            if row is None:
                self._n_missing += 1
            elif label is None:
                self.labels.pop(row, None)
            else:
                self.labels[row] = label
        self.n_changes += 1

    def _open_audit(self, seed: int, digest: object) -> None:
        """Begin an audit, unless the inputs or predictions are not those of this digest."""
        self._fit_now()
        if self._digest() != digest:
            self.notes.append(ENDED)
            return
        order = np.random.default_rng(seed).permutation(self.unlabelled())
        self.audit = Audit(order, self.predicted.labels)

    def _end_audit(self) -> None:
        """End the audit, if there is one: what was judged in it becomes labels.

        An input that has a label by now got it later.
        """
        self.audit, judged, self._judged = None, self._judged, []
        if judged:
            self._set({n: label for n, label in judged if self._row_of.get(n) not in self.labels})

    def _digest(self) -> str:
        """Return a hash of the inputs and predictions that an audit judges."""
        pairs = [(self.ids[row], str(self.predicted.labels[row])) for row in self.unlabelled()]
        return sha256(repr(pairs).encode()).hexdigest()[:16]

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the lock, and have the head fitted soon."""
        with self._lock:
            yield
            self._pending.put("change")

    def _record(self, **event: object) -> None:
        """Save an event, and then do what it says."""
        self._journal.append({"at": round(time.time(), 3), **event})
        self._apply(event)

    # ---- What people do

    @property
    def classes(self) -> list[str]:
        """The classes that an input can have, in alphabetical order."""
        known = {*self.predicted.head.classes_.tolist(), *self.added, *self.labels.values()}
        return sorted(known - {NONE_OF_THESE})

    def unlabelled(self) -> NDArray[np.intp]:
        """Return the rows that nobody has labelled."""
        return np.delete(np.arange(len(self.ids)), list(self.labels))

    def set_labels(self, labels: Mapping[int, str | None]) -> None:
        """Save labels by row, None for no label."""
        with self._changing():
            for row, label in labels.items():
                if not 0 <= row < len(self.ids):
                    raise InputError("row", row, f"is not one of the {len(self.ids):,} inputs")
                self._require_class(label)
            named = {self.ids[row]: label for row, label in labels.items()}
            self._record(what="labels", labels=named)
            self._skip_labelled()

    def _require_class(self, label: str | None) -> None:
        if label not in {*self.classes, NONE_OF_THESE, None}:
            raise InputError("label", label, "is not a class", hint="add it first")

    def add_class(self, name: str, ranking: Sequence[str]) -> str:
        """Save a new class, with seen classes that are like it, or without; return its name."""
        with self._changing():
            name, known = " ".join(name.split()), self.classes
            if not name or len(name) > LONGEST_NAME or not name.isprintable():
                rule = f"must have 1 to {LONGEST_NAME} printable characters"
                raise InputError("name", name, rule)
            if name in {*known, NONE_OF_THESE}:
                raise InputError("name", name, "is a class already")
            if name in self.learner.items:
                raise InputError("name", name, "is a seen class of the classifier")
            if ranking:
                # Unknown and repeated classes are refused.
                Rankings.from_orders([ranking], items=self.learner.items)
            elif close := suggest_name(name, known):
                rule = f"looks misspelt{close}"
                raise InputError("name", name, rule, hint="if not, give it a ranking")
            self._record(what="class", name=name, ranking=list(ranking))
            return name

    def open_audit(self, seed: int) -> None:
        """Begin an audit: inputs are drawn from those without a label."""
        with self._fitting, self._lock:
            if self.audit is not None:
                return
            if len(self.labels) == len(self.ids):
                raise GoneError("all inputs have a label: there is nothing to audit")
            # The predictions of the moment follow from all labels.
            self._fit_now()
            self._record(what="audit", seed=seed, digest=self._digest())

    def check(self, row: int, label: str) -> None:
        """Save what an audited input is: the class that it has."""
        with self._lock:
            if self.next_row != row:
                raise GoneError("this input has been checked already, perhaps in another tab")
            self._require_class(label)
            self._record(what="check", id=self.ids[row], label=label)
            self._skip_labelled()

    def undo_check(self) -> None:
        """Take back what was said last in the audit."""
        with self._lock:
            if not self._judged:
                raise GoneError("nothing has been checked yet")
            self._record(what="uncheck")

    def close_audit(self) -> None:
        """End the audit: what was checked becomes labels, from which the head learns."""
        with self._changing():
            self._record(what="close")

    @property
    def next_row(self) -> int | None:
        """The input to check next; None without an audit, or if all are checked."""
        n = len(self._judged)
        if self.audit is None or n >= len(self.audit.order):
            return None
        return int(self.audit.order[n])

    def describe_audit(self) -> dict[str, Any] | None:
        """Return the progress of the audit and its estimate; None if there is none."""
        if self.audit is None:
            return None
        return self.audit.describe([label for _, label in self._judged])

    def _skip_labelled(self) -> None:
        """Nothing is asked twice: an audited input that has a label meanwhile is checked by it."""
        while (row := self.next_row) in self.labels:
            self._record(what="check", id=self.ids[row], label=self.labels[row])

    # ---- Learning

    def _fit_now(self) -> bool:
        """Fit the head to the labels of now, unless that is done; return whether it was done."""
        with self._fitting:
            with self._lock:
                n, labels, added = self.n_changes, dict(self.labels), dict(self.added)
            if n == self._n_fitted:
                return False
            predicted = self.learner.fit(labels, added)
            with self._lock:
                if self.version:
                    self.changes = compare(self.predicted, predicted, list(labels))
                self.predicted, self._n_fitted = predicted, n
                self.version += 1
            return True

    def learn(self) -> bool:
        """Fit the head again, unless nothing is new or an audit is open; return whether it was."""
        with self._fitting:
            try:
                self.problem = ""
                return self.audit is None and self._fit_now()
            except RankshotError as error:
                self.problem = f"cannot learn from the labels: {error}"
                return False

    def start(self, write: Callable[[], None]) -> None:
        """Learn in a thread after each pause, and then call ``write``."""
        self._thread = Thread(target=self._run, args=(write,), daemon=True)
        self._thread.start()

    def _run(self, write: Callable[[], None]) -> None:
        while self._pending.get():
            # After each label, the pause begins again.
            with suppress(Empty):
                while self._pending.get(timeout=PAUSE_SECONDS):
                    pass
                return
            self.learn()
            try:
                write()
            except (RankshotError, OSError) as error:
                self.problem = str(error)

    def close(self) -> None:
        """Stop learning."""
        self._pending.put("")
        if self._thread is not None:
            self._thread.join()

    # ---- What the page shows

    def describe(self) -> dict[str, object]:
        """Return the state of the review."""
        with self._lock:
            labelled = Counter(self.labels.values())
            guessed = Counter(self.predicted.labels[self.unlabelled()].tolist())
            names = [*self.classes, *([NONE_OF_THESE] if labelled[NONE_OF_THESE] else [])]
            return {
                "n_changes": self.n_changes,
                "version": self.version,
                "is_learning": self.audit is None and self._n_fitted != self.n_changes,
                "n_labelled": len(self.labels),
                "n_inputs": len(self.ids),
                "changes": self.changes._asdict(),
                "classes": [[name, guessed[name], labelled[name]] for name in names],
                "audit": self.describe_audit(),
                "last_audit": self.last_audit,
                "problem": self.problem,
                "notes": self.notes,
            }
