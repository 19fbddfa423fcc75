"""What goes wrong on the workers of a test; these functions run there."""

import os
import resource
import signal
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from rankshot.jobs.part_jobs import PartJob, Work
from rankshot.zeroshot.files import predictions

_label_or_reject = predictions.label_or_reject


def die_once(marker):
    """Let the first worker that has classified a batch, and has not yet written it, be killed."""

    def label_or_reject(*arguments):
        if not Path(marker).exists():
            Path(marker).touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)
        return _label_or_reject(*arguments)

    predictions.label_or_reject = label_or_reject


def heal():
    predictions.label_or_reject = _label_or_reject


def limit_file_size(n_bytes):
    """Let the kernel refuse longer files, as on a full disk; None lifts the limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard if n_bytes is None else n_bytes, hard))


@dataclass(frozen=True)
class DeadlyJob(PartJob):
    """Kills the process that does a part called deadly; storage fails for one called flaky."""

    log: str

    @property
    def description(self):
        return {"job": "deadly"}

    def load(self, content):
        return None

    def run(self, loaded, part, source, target, metadata):
        with Path(self.log).open("a") as stream:
            stream.write(f"{part.stem}\n")
        if part.stem == "deadly":
            os.kill(os.getpid(), signal.SIGKILL)
        if part.stem == "flaky" and Path(self.log).read_text().count("flaky\n") < 3:
            raise ConnectionResetError("the store closed the connection")
        if part.stem == "odd":
            raise ZeroDivisionError("never met before")
        parquet.write_table(pa.table({"id": [part.stem]}), target)
        return Work(1)
