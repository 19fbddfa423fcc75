"""Text files: bounded lines with numbers, names, and files that are replaced as a whole."""

import errno
import json
import stat
from pathlib import Path

import pytest

from rankshot import RankshotError
from rankshot.core.errors import OutputError
from rankshot.core.files import (
    hash_file,
    read_lines,
    read_names,
    remember_own,
    remove_leftovers,
    replace_file,
    replace_own,
    replace_path,
)
from refusals import refuses

MARK = b"\xef\xbb\xbf"


def test_lines_keep_their_numbers_and_lose_the_mark(tmp_path):
    path = tmp_path / "t.txt"
    path.write_bytes(MARK + b"a\r\n\n  \n b " + MARK + b"\nc")
    assert list(read_lines(path)) == [(1, "a"), (4, "b \ufeff"), (5, "c")]


def test_names_and_comments(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("#animals\ncat # tame\n\nC#\n  sea lion  \nroute #2\n")
    assert read_names(path) == ("cat", "C#", "sea lion", "route #2")
    path.write_text("cat\ncat\n")
    with pytest.raises(RankshotError, match=r"names\.txt:2: name='cat'"):
        read_names(path)


def write_and_fail(path):
    with replace_file(path) as stream:
        stream.write("half of the new")
        raise KeyboardInterrupt


def test_a_file_is_replaced_at_the_end_or_not_at_all(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("old")
    path.chmod(0o640)
    with pytest.raises(KeyboardInterrupt):
        write_and_fail(path)
    assert (path.read_text(), list(tmp_path.iterdir())) == ("old", [path])
    with replace_file(path) as stream:
        stream.write("new\n")
        assert path.read_text() == "old"
    assert path.read_bytes() == b"new\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    with pytest.raises(RankshotError, match="cannot write there"), replace_file(path / "t"):
        pytest.fail("it opened")


@pytest.mark.parametrize("replace", [replace_file, replace_path])
def test_a_full_disk_leaves_the_old_file_and_is_named(tmp_path, replace):
    path = tmp_path / "t.txt"
    path.write_text("old")
    with pytest.raises(OutputError, match=r"t\.txt: cannot be written: No space"), replace(path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert (path.read_text(), list(tmp_path.iterdir())) == ("old", [path])


def test_private_files_and_leftovers(tmp_path):
    path = tmp_path / "t.txt"
    # Neither a private file nor one that replaces another is ever open to others.
    for private in (True, False):
        with replace_path(path, private=private) as temporary:
            assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
            temporary.write_text("old")
    path.chmod(0o644)
    with replace_path(path, private=True) as temporary:
        temporary.write_text("new")
        Path(f"{temporary}-wal").touch()
        names = [temporary.name, temporary.name.replace("t.txt", "u.txt"), "my.rankshot-1234abcd"]
    assert (path.read_text(), list(tmp_path.iterdir())) == ("new", [path])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for name in names:
        (tmp_path / name).touch()
    remove_leftovers(tmp_path, "t.txt")
    assert sorted(left.name for left in tmp_path.iterdir()) == sorted(["t.txt", *names[1:]])
    remove_leftovers(tmp_path)
    assert sorted(left.name for left in tmp_path.iterdir()) == sorted(["t.txt", names[2]])


def test_a_file_that_a_person_wrote_or_changed_is_not_replaced(tmp_path):
    path, manifest = tmp_path / "labels.csv", tmp_path / "run" / "run.json"
    manifest.parent.mkdir()

    def write(text, overwrite=False):
        with replace_own(path, manifest, overwrite=overwrite) as temporary:
            temporary.write_text(text)

    write("ours")
    assert json.loads(manifest.read_text())["files"] == {"../labels.csv": hash_file(path)}
    # Killed before the new file replaced the old one.
    (tmp_path / "new").write_text("ours, unfinished")
    remember_own(path, manifest, tmp_path / "new")
    write("ours again")
    path.write_text("a label")
    with refuses("output", str(path)):
        write("lost")
    assert path.read_text() == "a label"
    with refuses("output"), replace_own(path, overwrite=False):
        pass
    write("wanted", overwrite=True)
    assert path.read_text() == "wanted"
    for damaged in ("{", "[]", '{"files": 3}'):
        manifest.write_text(damaged)
        with refuses("folder", str(manifest)):
            write("lost")
