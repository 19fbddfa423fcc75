"""Runs the command ``rankshot-survey`` in this process."""

from functools import partial

from command_line import rankshot
from rankshot_survey.cli import main

run_command = partial(rankshot, main=main)


def check_refused(folder, words, option):
    """Hold that the command names the option that is wrong, in one line, and writes nothing."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = run_command(words)
    assert done.status == 2, done
    assert done.err.count("\n") == 1
    assert option in done.err
    assert done.out == ""
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
