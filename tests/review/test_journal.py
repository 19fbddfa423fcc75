"""What was acknowledged is found again, whatever happened; what is not an event is named."""

import pytest
from small_review import open_review

from rankshot.core.errors import OutputError
from rankshot.review.session import Journal
from refusals import refuses

EVENTS = [{"what": "labels", "labels": {"ünï\n": "cat"}}, {"what": "close"}]


@pytest.fixture
def path(tmp_path):
    journal = Journal(tmp_path / "review.jsonl")
    for event in EVENTS:
        journal.append(event)
    journal.close()
    return tmp_path / "review.jsonl"


def test_every_cut_of_the_last_line_loses_only_that_line(path):
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(first, len(whole)):
        path.write_bytes(whole[:end])
        journal = Journal(path)
        assert list(journal.read()) == [(f"{path}:1", EVENTS[0])]
        journal.append({"what": "uncheck"})
        assert list(journal.read())[1:] == [(f"{path}:2", {"what": "uncheck"})]
        journal.close()


@pytest.mark.parametrize(
    "line",
    [
        b"\0\0",
        b"[" * 200_000 + b"]" * 200_000,
        b"[]",
        b'{"what": "labels", "labels": ["cat.jpg"]}',
        b'{"what": "labels", "labels": {"cat.jpg": ["cat"]}}',
        b'{"what": "class", "name": "okapi", "ranking": "zebra"}',
        b'{"what": "class", "name": "okapi", "ranking": [1]}',
        b'{"what": "audit", "seed": "0", "digest": "0"}',
        b'{"what": "check", "label": "cat", "id": 3}',
        b'{"what": "check", "label": null, "id": "cat.jpg"}',
        b'{"what": "unknown"}',
    ],
)
def test_a_line_that_is_no_event_is_named(path, line):
    whole = path.read_bytes()
    path.write_bytes(whole + line + b"\n")
    with refuses("event", where=f"{path}:3"), open_review(path.parent):
        pass
    assert path.read_bytes() == whole + line + b"\n"


def test_only_the_owner_may_read_it(path):
    path.chmod(0o644)
    Journal(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_removed_file_is_noticed(path):
    journal = Journal(path)
    path.unlink()
    with pytest.raises(OutputError):
        journal.append({"what": "close"})
    journal.close()
