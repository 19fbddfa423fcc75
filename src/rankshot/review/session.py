"""A review: the labels that people gave, the audit, and the predictions that follow from them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Condition, RLock, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, format_count, short_repr
from rankshot.review.audit import Checked, confidence_sequence, count_more
from rankshot.review.journal import Event, Journal
from rankshot.review.learning import Changes, Learner, Predicted, compare
from rankshot.zeroshot.heads.seen_and_new import NONE_OF_THESE

PAUSE_SECONDS = 0.4
"""A fit begins if no label has come for so long."""
WRITE_SECONDS = 3.0
"""Predictions, labels and the head are written if no label has come for so long."""
LONGEST_NAME = 200


class GoneError(RankshotError):
    """A request about something that is not there any more, such as a closed audit."""


@dataclass
class Audit:
    """Inputs in random order, and what people said of the first of them.

    The predictions are those of the moment when it was opened: until it is closed, nothing is
    learned.
    """

    order: NDArray[np.intp]
    predicted: NDArray[np.str_]
    judged: list[str] = field(default_factory=list)

    @property
    def next_row(self) -> int | None:
        """The input to check next; None if all are checked."""
        return int(self.order[len(self.judged)]) if len(self.judged) < len(self.order) else None

    @property
    def found(self) -> Checked:
        """How many predictions are correct."""
        rows = self.order[: len(self.judged)]
        n_correct = int((self.predicted[rows] == np.array(self.judged, str)).sum())
        return Checked(n_correct, len(self.judged), len(self.order))

    def describe(self) -> dict[str, Any]:
        """Return what the page shows of it."""
        found = self.found
        low, high = confidence_sequence(found) if found.n_inputs else (0.0, 1.0)
        drawn = {*self.predicted[self.order[: len(self.judged)]].tolist()}
        missing = sorted({*self.predicted[self.order].tolist()} - drawn)
        return {
            **found._asdict(),
            "low": low,
            "high": high,
            "more": count_more(found) if 0 < found.n_checked < found.n_inputs else None,
            "unchecked": missing if found.n_checked else [],
            "row": self.next_row,
        }


class Review:
    """What people decided, on disk, and what follows from it; any number of threads may use it.

    Parameters
    ----------
    learner : Learner
    ids : sequence of str
        The ids of the inputs, one per row of its scores.
    journal : Journal
        Its events are repeated now, and new ones are added.
    given : mapping of id to label
        Labels that were known before.
    """

    def __init__(
        self,
        learner: Learner,
        ids: Sequence[str],
        journal: Journal,
        given: Mapping[str, str] | None = None,
    ) -> None:
        self.learner = learner
        self.ids = tuple(ids)
        self.labels: dict[int, str] = {}
        # Labels, and removals, in the order in which they came: other tabs ask for the latest.
        self.history: list[tuple[int, str | None]] = []
        self.added: dict[str, tuple[str, ...]] = {}
        self.audit: Audit | None = None
        self.last_audit: dict[str, Any] | None = None
        self.changes = Changes()
        self.version = 0
        self.problem = ""
        self.notes: list[str] = []
        self._journal = journal
        self._row_of = {name: row for row, name in enumerate(self.ids)}
        self._lock = RLock()
        # One fit at a time; who needs both locks takes this one first.
        self._fitting = RLock()
        self._woken = Condition(self._lock)
        self._wanted = 0.0
        self._stopped = False
        self._thread: Thread | None = None
        for name, label in (given or {}).items():
            self.labels[self._row_of[name]] = label
        self.predicted: Predicted
        self._fitted: Any = None
        self._replay()
        self._fit_now()

    # ---- Events

    def _replay(self) -> None:
        """Repeat all events of the journal."""
        missing = 0
        for event in self._journal.read():
            try:
                missing += self._apply(event)
            except (KeyError, TypeError, ValueError, AttributeError):
                raise RankshotError(
                    f"{self._journal.path}: damaged, or written by another version of rankshot: "
                    f"{short_repr(event)}"
                ) from None
        if missing:
            text = f"{format_count(missing, 'label')} kept for inputs that are not there any more"
            self.notes.append(text)

    def _apply(self, event: Event) -> int:
        """Do what an event says; return how many of its inputs are not there."""
        what = event["what"]
        if what == "labels":
            found = {self._row_of.get(name): label for name, label in event["labels"].items()}
            there = {row: label for row, label in found.items() if row is not None}
            self._set(there)
            return len(event["labels"]) - len(there)
        if what == "class":
            self.added[event["name"]] = tuple(event["ranking"])
        elif what == "audit":
            self._open(event)
        elif self.audit is not None:
            self._continue_audit(self.audit, event)
        return 0

    def _set(self, labels: Mapping[int, str | None]) -> None:
        for row, label in labels.items():
            if label is None:
                self.labels.pop(row, None)
            else:
                self.labels[row] = label
            self.history.append((row, label))

    def _open(self, event: Event) -> None:
        """Begin an audit of the inputs without a label, unless they are not those of the event."""
        self._fit_now()
        rows = self.unlabelled()
        names = self.predicted.labels
        if len(rows) != event["n"] or _digest(names[rows]) != event["digest"]:
            self.notes.append("an audit was ended: its inputs or predictions are not those of now")
            self.audit = None
            return
        order = np.random.default_rng(event["seed"]).permutation(rows)
        self.audit = Audit(order, names)

    def _continue_audit(self, audit: Audit, event: Event) -> None:
        if event["what"] == "check":
            audit.judged.append(event["label"])
        elif event["what"] == "uncheck":
            audit.judged.pop()
        else:
            self.last_audit = audit.describe()
            judged = zip(audit.order.tolist(), audit.judged, strict=False)
            self.audit = None
            self._set(dict(judged))

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the lock, and have the head fitted soon."""
        with self._lock:
            yield
            self._wanted = time.monotonic()
            self._woken.notify_all()

    def _record(self, event: Event) -> None:
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
        is_left = np.ones(len(self.ids), bool)
        is_left[list(self.labels)] = False
        return np.flatnonzero(is_left)

    def set_labels(self, labels: Mapping[int, str | None]) -> int:
        """Save labels by row, None for no label; return the number of changes so far."""
        with self._changing():
            known = {*self.classes, NONE_OF_THESE, None}
            for row, label in labels.items():
                self._require_row(row)
                if label not in known:
                    raise RankshotError(f"there is no class {label!r}; add it first")
            # In an audit, a label that is set elsewhere is what the audit finds.
            named = {self.ids[row]: label for row, label in labels.items()}
            self._record({"what": "labels", "labels": named})
            self._skip_labelled()
            return len(self.history)

    def _require_row(self, row: int) -> None:
        if not 0 <= row < len(self.ids):
            raise RankshotError(f"there is no input {row}; there are {len(self.ids):,}")

    def add_class(self, name: str, ranking: Sequence[str]) -> str:
        """Save a new class, with seen classes that are like it, or without; return its name."""
        with self._changing():
            name = " ".join(name.split())
            if not name or len(name) > LONGEST_NAME or not name.isprintable():
                raise RankshotError(f"the name of a class has 1 to {LONGEST_NAME} characters")
            self.learner.check_class(name, self.classes, ranking)
            self._record({"what": "class", "name": name, "ranking": list(ranking)})
            return name

    def open_audit(self, seed: int) -> None:
        """Begin an audit: inputs are drawn from those without a label."""
        with self._fitting, self._lock:
            if self.audit is not None:
                return
            # The predictions of the moment follow from all labels.
            self._fit_now()
            rows = self.unlabelled()
            if not len(rows):
                raise RankshotError("all inputs have a label: there is nothing to audit")
            digest = _digest(self.predicted.labels[rows])
            self._record({"what": "audit", "n": len(rows), "seed": seed, "digest": digest})

    def check(self, row: int, label: str) -> None:
        """Save what an audited input is: the class that it has."""
        with self._lock:
            audit = self._require_audit()
            if audit.next_row != row:
                raise GoneError("this input has been checked already, perhaps in another tab")
            if label not in {*self.classes, NONE_OF_THESE}:
                raise RankshotError(f"there is no class {label!r}; add it first")
            self._record({"what": "check", "label": label})
            self._skip_labelled()

    def undo_check(self) -> None:
        """Take back what was said last in the audit."""
        with self._lock:
            if not self._require_audit().judged:
                raise GoneError("nothing has been checked yet")
            self._record({"what": "uncheck"})

    def close_audit(self) -> None:
        """End the audit: what was checked becomes labels, from which the head learns."""
        with self._changing():
            self._require_audit()
            self._record({"what": "close"})

    def _require_audit(self) -> Audit:
        if self.audit is None:
            raise GoneError("the audit has been closed, perhaps in another tab")
        return self.audit

    def _skip_labelled(self) -> None:
        """Nothing is asked twice: an audited input that has a label meanwhile is checked by it."""
        audit = self.audit
        while audit is not None and audit.next_row in self.labels:
            self._record({"what": "check", "label": self.labels[audit.next_row]})

    # ---- Learning

    def _fit_now(self) -> bool:
        """Fit the head to the labels of now, unless that is done; return whether it was done."""
        with self._fitting:
            with self._lock:
                labels, added = dict(self.labels), dict(self.added)
            if self._fitted == (labels, added):
                return False
            predicted = self.learner.fit(labels, added)
            with self._lock:
                if self._fitted is not None:
                    self.changes = compare(self.predicted, predicted, list(labels))
                self.predicted, self._fitted = predicted, (labels, added)
                self.version += 1
            return True

    def learn(self) -> bool:
        """Fit the head again, unless nothing is new or an audit is open; return whether it was."""
        with self._fitting:
            if self.audit is not None:
                return False
            try:
                self.problem = ""
                return self._fit_now()
            except RankshotError as error:
                self.problem = f"cannot learn from the labels: {error}"
                return False

    def start(self, after: Callable[[], None]) -> None:
        """Learn in a thread after each pause; ``after`` is called after a longer one."""
        self._thread = Thread(target=self._run, args=(after,), daemon=True)
        self._thread.start()

    def _run(self, after: Callable[[], None]) -> None:
        learned = written = 0.0
        while not self._stopped:
            with self._lock:
                # What is new is learned after a short pause, and written after a longer one.
                pause = PAUSE_SECONDS if self._wanted > learned else WRITE_SECONDS
                is_due = self._wanted > written and time.monotonic() >= self._wanted + pause
                if not is_due:
                    self._woken.wait(PAUSE_SECONDS if self._wanted > written else None)
                    continue
                wanted = self._wanted
            if wanted > learned:
                self.learn()
                learned = wanted
            else:
                written = wanted
                try:
                    after()
                except (RankshotError, OSError) as error:
                    self.problem = str(error)

    def close(self) -> None:
        """Stop learning."""
        with self._lock:
            self._stopped = True
            self._woken.notify_all()
        if self._thread is not None:
            self._thread.join()

    # ---- What the page shows

    def describe(self, since: int) -> dict[str, Any]:
        """Return the state, with the labels that came after the first ``since`` ones."""
        with self._lock:
            changes, predicted = self.changes, self.predicted
            given = Counter(self.labels.values())
            guessed = Counter(predicted.labels[self.unlabelled()].tolist())
            names = [*self.classes, *([NONE_OF_THESE] if given[NONE_OF_THESE] else [])]
            return {
                "n_history": len(self.history),
                "history": self.history[since:],
                "version": self.version,
                "is_learning": self.audit is None and self._fitted != (self.labels, self.added),
                "n_labelled": len(self.labels),
                "n_inputs": len(self.ids),
                "changes": changes._asdict(),
                "classes": [[name, guessed[name], given[name]] for name in names],
                "audit": None if self.audit is None else self.audit.describe(),
                "last_audit": self.last_audit,
                "problem": self.problem,
                "notes": self.notes,
            }


def _digest(labels: NDArray[np.str_]) -> str:
    """Return what tells whether predictions are the same as before."""
    return sha256("\n".join(labels.tolist()).encode()).hexdigest()[:16]
