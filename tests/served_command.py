"""A command that serves pages, in a process of its own, which a test may kill."""

import os
import re
import signal
import subprocess
import sys


class ServedCommand:
    """A command with some words, at one port for all its lives.

    ``address`` is the pattern of what it prints: its groups are the address and the port.
    """

    def __init__(self, words, folder, address, module="rankshot.cli", **environment):
        self._module = module
        self._words = words
        self._folder = folder
        self._address = address
        self._environment = {**os.environ, **environment}
        self._errors = folder / "errors.txt"
        self._port = "0"

    def start(self):
        """Start, and return when it listens."""
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._module, *self._words, "--port", self._port],
                cwd=self._folder,
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.said = ""
        for line in self._process.stdout:
            self.said += line
            if found := re.search(self._address, line):
                self.url, self._port = found[1], found[2]
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
