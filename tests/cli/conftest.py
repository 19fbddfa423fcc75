"""What the tests of the command share."""

import pytest

from command_line import write_small_run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with the files of `write_small_run`; lines are 200 characters wide."""
    write_small_run(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path
