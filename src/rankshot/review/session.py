"""A review: the labels that people gave, the audit, and the predictions that follow from them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from threading import Condition, RLock, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import InputError, RankshotError, format_count, suggest_name
from rankshot.ranking.rankings import Rankings
from rankshot.review.audit import Audit
from rankshot.review.journal import Event, Journal
from rankshot.review.learning import Changes, Learner, Predicted, compare
from rankshot.zeroshot.seen_and_new import NONE_OF_THESE

PAUSE_SECONDS = 0.4
"""A fit begins if no label has come for so long."""
WRITE_SECONDS = 3.0
"""Predictions, labels and the head are written if no label has come for so long."""
LONGEST_NAME = 200
ENDED = "an audit was ended: its inputs or predictions have changed; its labels are kept"


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
        # What was judged in an audit that cannot go on, by id.
        self._ended: list[tuple[str, str]] = []
        self._n_missing = 0
        self._journal = journal
        self._lock = RLock()
        # One fit at a time; who needs both locks takes this one first.
        self._fitting = RLock()
        self._changed = Condition(self._lock)
        self._is_closed = False
        self._thread: Thread | None = None
        self._n_fitted = -1
        self.predicted: Predicted
        self._replay()
        self._fit_now()

    # ---- Events

    def _replay(self) -> None:
        """Repeat all events of the journal."""
        for event in self._journal.read():
            self._apply(event)
        self._keep_ended()
        if self._n_missing:
            text = f"{format_count(self._n_missing, 'label')} kept for inputs that no longer exist"
            self.notes.append(text)

    def _apply(self, event: Event) -> None:
        """Do what an event says."""
        what = event["what"]
        if what == "labels":
            self._set_by_id(event["labels"])
        elif what == "class":
            self.added[event["name"]] = tuple(event["ranking"])
            self.n_changes += 1
        elif what == "audit":
            self._keep_ended()
            self._open(event)
        elif what == "check":
            self._check(event.get("id"), event["label"])
        elif what == "uncheck":
            judged: list[Any] = self._ended if self.audit is None else self.audit.judged
            if judged:
                judged.pop()
        else:
            if self.audit is not None:
                self.last_audit = self.audit.describe()
                self._end_audit()
            self._keep_ended()

    def _check(self, name: str | None, label: str) -> None:
        """Add a judgement to the audit, or keep it if the audit is of other predictions."""
        audit = self.audit
        if audit is not None and name not in {None, self._next_id()}:
            self._end_audit()
            self.notes.append(ENDED)
        if self.audit is not None:
            self.audit.judged.append(label)
        elif name is not None:
            self._ended.append((name, label))

    def _next_id(self) -> str | None:
        row = None if self.audit is None else self.audit.next_row
        return None if row is None else self.ids[row]

    def _end_audit(self) -> None:
        """End the audit; what was judged in it waits to be kept as labels."""
        if self.audit is not None:
            order = self.audit.order.tolist()
            names = [self.ids[row] for row in order]
            self._ended = list(zip(names, self.audit.judged, strict=False))
            self.audit = None

    def _keep_ended(self) -> None:
        """Make labels of what was judged in an audit that has ended."""
        if self._ended:
            self._set_by_id(dict(self._ended))
            self._ended = []

    def _set_by_id(self, labels: Mapping[str, str | None]) -> None:
        """Set the labels of inputs that are there, and count the others."""
        self._n_missing += sum(name not in self._row_of for name in labels)
        self._set({self._row_of[n]: label for n, label in labels.items() if n in self._row_of})

    def _set(self, labels: Mapping[int, str | None]) -> None:
        for row, label in labels.items():
            if label is None:
                self.labels.pop(row, None)
            else:
                self.labels[row] = label
        self.n_changes += 1

    def _open(self, event: Event) -> None:
        """Begin an audit of the inputs without a label, unless they are not those of the event."""
        self._fit_now()
        self.audit = None
        if self._digest() != event["digest"]:
            self.notes.append(ENDED)
            return
        order = np.random.default_rng(event["seed"]).permutation(self.unlabelled())
        self.audit = Audit(order, self.predicted.labels)

    def _digest(self) -> str:
        """Return a hash of the predictions that an audit judges."""
        names = self.predicted.labels[self.unlabelled()].tolist()
        return sha256("\n".join(names).encode()).hexdigest()[:16]

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the lock, and have the head fitted soon."""
        with self._lock:
            yield
            self._changed.notify_all()

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
            if self._require_audit().next_row != row:
                raise GoneError("this input has been checked already, perhaps in another tab")
            self._require_class(label)
            self._record(what="check", id=self.ids[row], label=label)
            self._skip_labelled()

    def undo_check(self) -> None:
        """Take back what was said last in the audit."""
        with self._lock:
            if not self._require_audit().judged:
                raise GoneError("nothing has been checked yet")
            self._record(what="uncheck")

    def close_audit(self) -> None:
        """End the audit: what was checked becomes labels, from which the head learns."""
        with self._changing():
            self._require_audit()
            self._record(what="close")

    def _require_audit(self) -> Audit:
        if self.audit is None:
            raise GoneError("the audit has been closed, perhaps in another tab")
        return self.audit

    def _skip_labelled(self) -> None:
        """Nothing is asked twice: an audited input that has a label meanwhile is checked by it."""
        while self.audit is not None and (row := self.audit.next_row) in self.labels:
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
        """Learn in a thread after each pause; ``write`` is called after a longer one."""
        self._thread = Thread(target=self._run, args=(write,), daemon=True)
        self._thread.start()

    def _run(self, write: Callable[[], None]) -> None:
        n_learned = n_written = 0
        while True:
            with self._lock:
                if self._is_closed:
                    return
                n = self.n_changes
                pauses = {n_learned: WRITE_SECONDS, n_written: None}
                if self._changed.wait(pauses.get(n, PAUSE_SECONDS)):
                    # The pause begins again.
                    continue
            if n_learned < n:
                self.learn()
                n_learned = n
                continue
            n_written = n
            try:
                write()
            except (RankshotError, OSError) as error:
                self.problem = str(error)

    def close(self) -> None:
        """Stop learning."""
        with self._changing():
            self._is_closed = True
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
                "audit": None if self.audit is None else self.audit.describe(),
                "last_audit": self.last_audit,
                "problem": self.problem,
                "notes": self.notes,
            }
