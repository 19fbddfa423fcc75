"""Where parts are: listed, fetched and written, in folders and in other stores of fsspec."""

import errno
import os

import fsspec
import pytest

import rankshot as rs
from command_line import LOGITS, write_scores
from rankshot.jobs import storage
from rankshot.jobs.storage import (
    OutputError,
    as_address,
    fetch_part,
    list_files,
    list_parts,
    new_part,
    read_bytes,
    read_footer,
    remove_files,
    remove_partial_files,
    require_unchanged,
    write_text,
)
from rankshot.zeroshot import open_scores

FILES = {
    "b.csv": "x\n1\n",
    "a.parquet": "PAR1",
    "day=1/b.csv": "x\n2\n",
    "notes.txt": "no part",
    "_log/c.csv": "",
    "day=1/.c.csv.crc": "",
    "_SUCCESS": "",
    ".hidden/d.csv": "",
}


@pytest.fixture(params=["folder", "memory"])
def root(request, tmp_path):
    """A dataset in a folder, and the same in a store that is no folder."""
    address = str(tmp_path / "data") if request.param == "folder" else "memory://bucket/data"
    for name, text in FILES.items():
        write_text(f"{address}/{name}", text)
    yield as_address(address)
    fsspec.filesystem("memory").store.clear()


def test_parts_are_listed_by_name(root):
    parts = list_parts(root)
    assert [part.name for part in parts] == ["a.parquet", "b.csv", "day=1/b.csv"]
    assert [part.address for part in parts] == [f"{root}/{part.name}" for part in parts]
    assert [part.size for part in parts] == [4, 4, 4]
    assert [part.stem for part in parts] == ["a", "b", "day=1/b"]
    assert list_parts(f"{root}/") == parts
    assert [part.name for part in list_parts(f"{root}/*.csv")] == ["b.csv"]
    assert list_parts(f"{root}/b.csv") == [parts[1]]
    assert [part.name for part in list_parts(f"{root}/**/*.csv")] == ["b.csv", "day=1/b.csv"]
    assert [part.name for part in list_parts(f"{root}/day=*/*")] == ["day=1/b.csv"]


def test_a_folder_without_parts_says_what_it_has(root):
    with pytest.raises(
        rs.RankshotError, match=r"no files that end in .jsonl; there is 'a.parquet', "
    ):
        list_parts(root, [".jsonl"])
    with pytest.raises(rs.RankshotError, match="no such file or folder"):
        list_parts(f"{root}/nothing")
    with pytest.raises(rs.RankshotError, match="qq://x: cannot be opened: Protocol not known"):
        list_parts("qq://x")


def test_a_part_that_changes_is_found_out(root):
    part = list_parts(root)[1]
    require_unchanged(part)
    write_text(part.address, "x\n3\n")
    assert list_parts(root)[1].version != part.version
    with pytest.raises(rs.RankshotError, match=r"b.csv: was changed while it was being read"):
        require_unchanged(part)


def test_errors_name_the_part_not_its_copy(root):
    part = list_parts(root)[0]
    with pytest.raises(rs.RankshotError) as error, fetch_part(part) as path:
        open_scores(path)
    assert str(error.value).startswith(f"{part.address}: not a complete Parquet file (")


# -------------------------------------------------------------------- writing


def test_a_new_part_is_whole_or_not_there(root):
    before = list_files(root)

    def write_half():
        with new_part(f"{root}/new/c.csv") as path:
            assert path.suffix == ".csv"
            path.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_half()
    assert list_files(root) == before
    with new_part(f"{root}/new/c.csv") as path:
        path.write_text("whole")
        assert "new/c.csv" not in list_files(root)
    assert read_bytes(f"{root}/new/c.csv") == b"whole"
    assert sorted(list_files(root)) == sorted([*before, "new/c.csv"])
    remove_files(root, ["new/c.csv", "never/there"])
    assert read_bytes(f"{root}/new/c.csv") is None


def test_stores_that_show_half_a_file_get_it_under_another_name(root, monkeypatch):
    monkeypatch.setattr(storage, "ATOMIC_STORES", frozenset())
    seen = []
    put_file = fsspec.implementations.memory.MemoryFileSystem.put_file

    def watch(self, source, target, **options):
        put_file(self, source, target, **options)
        seen.append(target)

    monkeypatch.setattr(fsspec.implementations.memory.MemoryFileSystem, "put_file", watch)
    for text in ("first", "second"):
        write_text("memory://b/out/a.json", text)
        assert read_bytes("memory://b/out/a.json") == text.encode()
    assert list_files("memory://b/out") == ["a.json"]
    assert all(".a.json.rankshot-" in target for target in seen)
    assert len(seen) == 2


@pytest.mark.parametrize(("number", "error"), [(errno.EDQUOT, OutputError), (errno.EIO, OSError)])
def test_a_full_disk_is_named(root, number, error):
    with pytest.raises(error, match=os.strerror(number)), new_part(f"{root}/c.csv"):
        raise OSError(number, os.strerror(number))


def test_leftovers_of_killed_processes_are_removed(root):
    before = sorted(list_files(root))
    for name in (".a.parquet.rankshot-0a1b.parquet", "day=1/..b.rankshot-12.csv.rankshot-x"):
        write_text(f"{root}/{name}", "half")
    remove_partial_files(root)
    assert sorted(list_files(root)) == before


def test_the_footer_tells_what_is_complete(root, tmp_path):
    write_scores(tmp_path / "t.parquet", LOGITS)
    content = (tmp_path / "t.parquet").read_bytes()
    for end, rows in ((None, (7, {})), (-1, None), (len(content) // 2, None), (0, None)):
        with new_part(f"{root}/t.parquet") as path:
            path.write_bytes(content[:end])
        assert read_footer(f"{root}/t.parquet") == rows
    assert read_footer(f"{root}/nothing.parquet") is None
