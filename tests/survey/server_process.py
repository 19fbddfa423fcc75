"""``rankshot survey serve`` in a process of its own, which a test may kill."""

import os
import re
import signal
import subprocess
import sys
import time

from rankshot.survey.study_files import format_study

TOKEN = "a token of the tests, long enough"


class Server:
    """``rankshot survey serve``, at one port for all its lives."""

    def __init__(self, study, folder, database=None, *options):
        self.path = folder / "study.toml"
        self.path.write_text(format_study(study), encoding="utf-8")
        self._environment = {**os.environ, "RANKSHOT_SURVEY_TOKEN": TOKEN}
        if database is not None:
            self._environment["RANKSHOT_SURVEY_DATABASE"] = database
        self._options = options
        self._process = None
        self._port = "0"
        self._errors = folder / "errors.txt"

    def start(self):
        """Start, and return when it listens."""
        command = [sys.executable, "-m", "rankshot.cli", "survey", "serve", str(self.path)]
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [*command, "--port", self._port, *self._options],
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.said = ""
        for line in self._process.stdout:
            self.said += line
            if found := re.search(r"Participants +(http://[^:]+:(\d+)/)", line):
                self.url, self._port = found[1].rstrip("/"), found[2]
            if line.startswith("Press Ctrl-C"):
                return
        raise AssertionError(f"the server did not start: {self.said} {self.errors}")

    @property
    def errors(self):
        """What it has written to standard error since its start."""
        return self._errors.read_text()

    def kill(self):
        """Kill it as a power cut would: no signal handler runs."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._process.stdout.close()

    def stop(self):
        """Ask it to end."""
        self._process.terminate()
        self.said += self._process.stdout.read()
        assert self._process.wait() is not None
        self._process.stdout.close()


def hidden_fields(page):
    """Return the hidden fields of a page's first form."""
    page = page.partition("</form>")[0]
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))


def wait_until(condition, seconds=300):
    """Wait for something that another process does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
