"""What an earlier version of the package predicts, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.ranking_files import write_rankings
from rankshot.ranking.rankings import Rankings
from reproduction.scored_tasks import ScoredTask

Rows = NDArray[np.intp]
NOTHING = np.zeros(0, np.intp)


class Job(NamedTuple):
    """One fit, and the inputs to predict: rows of the task's scores, and of its reference.

    ``mode`` is "alone", "batch" or "together"; with "together", seen inputs are predicted as well.
    """

    tested: Rows
    mode: str = "alone"
    rankings: str = "panel"
    examples: Rows = NOTHING
    reference: Rows | None = None
    seen: Rows = NOTHING
    with_features: bool = False


VERSION_03 = """
import json, sys
from pathlib import Path
import numpy as np
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.heads.weighted_mean import WeightedMean
from rankshot.zeroshot.heads.batch_refinement import BatchRefinement
from rankshot.zeroshot.heads.seen_and_new import SeenAndNew
from rankshot.ranking.ranking_files import read_rankings
folder = Path(sys.argv[1])
with np.load(folder / "task.npz") as z:
    z = {name: z[name] for name in z.files}
items, kind = tuple(z["items"].tolist()), str(z["kind"])
rankings = {path.stem: read_rankings(path, items=items) for path in folder.glob("*.jsonl")}

def take(name, rows, features):
    beside = z[name + "_features"][rows] if features else None
    return Scores(z[name][rows], items, kind, features=beside)

def predict(job):
    features = job["with_features"]
    about = job["reference"]
    about = slice(None) if about is None else np.array(about, int)
    usual = take("reference", about, features)
    few = np.array(job["examples"], int)
    examples = (take("scores", few, features), z["labels"][few]) if len(few) else None
    head = WeightedMean().fit(rankings[job["rankings"]], usual, examples)
    new = take("scores", np.array(job["tested"], int), features)
    if job["mode"] == "alone":
        return np.asarray(head.predict(new)).tolist()
    if job["mode"] == "batch":
        return np.asarray(BatchRefinement(head).fit(new, examples).predict(new)).tolist()
    head = SeenAndNew(head).fit(usual)
    found = []
    for table in (take("reference", np.array(job["seen"], int), features), new):
        log_proba = np.asarray(head.predict_log_proba(table), np.float64)
        is_seen = np.asarray(head.seen_)
        values = np.where(is_seen, -np.inf, log_proba)
        odds = values.max(axis=1) - log_proba[:, is_seen].max(axis=1)
        found.append([odds.tolist(), np.asarray(head.classes_)[values.argmax(axis=1)].tolist()])
    return found

json.dump([predict(job) for job in json.loads((folder / "jobs.json").read_text())], sys.stdout)
"""


def predict_earlier(
    task: ScoredTask, jobs: Sequence[Job], source: Path, rankings: Mapping[str, Rankings]
) -> list[Any]:
    """Return what version 0.3, whose source is in a folder, predicts for each job.

    The predictions are labels; with "together", for the seen and for the new inputs, the log-odds
    of the most probable new class, and this class.
    """
    arrays: dict[str, Any] = {
        "items": np.array(task.scores.items),
        "kind": task.scores.kind,
        "labels": task.labels,
        "scores": task.scores.values,
        "reference": task.reference.values,
    }
    if task.scores.features is not None:
        arrays["scores_features"] = np.asarray(task.scores.features)
        arrays["reference_features"] = np.asarray(task.reference.features)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "task.npz", **arrays)
        for key, one in rankings.items():
            write_rankings(one, folder / f"{key}.jsonl")
        plain = [
            {
                key: value.tolist() if isinstance(value, np.ndarray) else value
                for key, value in job._asdict().items()
            }
            for job in jobs
        ]
        (folder / "jobs.json").write_text(json.dumps(plain), "utf-8")
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", VERSION_03, folder],
            env={**os.environ, "PYTHONPATH": str(source)},
            capture_output=True,
            check=True,
        )
    return json.loads(done.stdout)  # type: ignore[no-any-return]
