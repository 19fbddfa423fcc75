"""What was acknowledged is found again, whatever happened."""

import errno
import os

import pytest

from rankshot.core.errors import OutputError, RankshotError
from rankshot.review.session import Journal

EVENTS = [{"what": "labels", "labels": {"ünï\n": "cat"}}, {"what": "close"}]


@pytest.fixture
def path(tmp_path):
    journal = Journal(tmp_path / "review.jsonl")
    for event in EVENTS:
        journal.append(event)
    journal.close()
    return tmp_path / "review.jsonl"


def read(path):
    journal = Journal(path)
    try:
        return list(journal.read())
    finally:
        journal.close()


def test_every_cut_of_the_last_line_loses_only_that_line(path):
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(first, len(whole)):
        path.write_bytes(whole[:end])
        journal = Journal(path)
        assert list(journal.read()) == EVENTS[:1]
        journal.append({"what": "again"})
        assert list(journal.read()) == [EVENTS[0], {"what": "again"}]
        journal.close()


def test_damage_in_the_middle_is_named(path):
    whole = path.read_bytes()
    path.write_bytes(b"\0\0\n" + whole)
    with pytest.raises(RankshotError, match="jsonl:1: damaged"):
        read(path)


def test_a_full_disk_keeps_what_was_there(path, monkeypatch):
    journal = Journal(path)

    def fail(_handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OutputError, match="No space left on device"):
        journal.append({"what": "lost"})
    monkeypatch.undo()
    journal.append({"what": "found"})
    journal.close()
    assert read(path) == [*EVENTS, {"what": "found"}]


def test_a_removed_file_is_noticed(path):
    journal = Journal(path)
    path.unlink()
    with pytest.raises(OutputError, match="was removed"):
        journal.append({"what": "lost"})
    journal.close()
