"""Runs the command ``rankshot-survey`` in this process: a new process takes seconds to start."""

import io
import shlex
import signal
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple
from unittest.mock import patch

from rankshot_survey.cli import main


class Done(NamedTuple):
    """The exit status and the output of a run of the command."""

    status: int
    out: str
    err: str


def run_command(words, typed=""):
    """Run the command; ``typed`` is what a person types at its questions."""
    out, err = io.StringIO(), io.StringIO()
    words = shlex.split(words) if isinstance(words, str) else list(map(str, words))
    before = signal.getsignal(signal.SIGTERM)
    try:
        with (
            patch.object(sys, "argv", ["rankshot-survey", *words]),
            patch.object(sys, "stdin", io.StringIO(typed)),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            main()
        status = 0
    except SystemExit as end:
        status = end.code or 0
    finally:
        signal.signal(signal.SIGTERM, before)
    return Done(status, out.getvalue(), err.getvalue())


def check_refused(folder, words, option):
    """Hold that the command names the option that is wrong, in one line, and writes nothing."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = run_command(words)
    assert done.status == 2, done
    assert done.err.count("\n") == 1
    assert option in done.err
    assert done.out == ""
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
