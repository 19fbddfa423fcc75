"""Where inputs come from, their ids and order, and what is not used as one."""

import json
from pathlib import Path

import pandas as pd
import pytest
from scipy.sparse import eye_array

from rankshot.recognition.inputs import Input, Skipped, open_inputs
from refusals import refuses
from tiny_models import write_images


def split(inputs):
    items = list(inputs)
    used = [item for item in items if isinstance(item, Input)]
    return used, [item for item in items if isinstance(item, Skipped)]


def test_a_folder_is_walked_in_order_and_what_else_is_in_it_is_named(tmp_path):
    images = ["a.png", "b/a.png", "b/x.JPG", "b.png", "c/d/e.webp"]
    for name in (*images[::-1], ".DS_Store", ".git/a.png", "notes.txt", "plain"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "link.png").symlink_to(tmp_path / "a.png")
    used, skipped = split(open_inputs(tmp_path, "images"))
    assert [one.id for one in used] == [*images, "link.png"]
    assert [one.value for one in used] == [tmp_path / one.id for one in used]
    assert {one.id: one.reason.split()[0] for one in skipped} == {
        ".DS_Store": "hidden",
        ".git": "hidden",
        "loop": "a",
        "notes.txt": "not",
        "plain": "not",
    }
    assert not any(one.is_input for one in skipped)


def test_names_that_are_not_utf8_have_an_id(tmp_path):
    place = bytes(tmp_path) + b"/caf\xe9.png"
    try:
        Path(place.decode("utf-8", "surrogateescape")).touch()
    except OSError:
        pytest.skip("this file system wants UTF-8")
    ((one,), _) = split(open_inputs(tmp_path, "images"))
    assert one.id == "caf\\xe9.png"
    assert one.value.exists()


def test_a_list_of_paths(tmp_path):
    write_images(tmp_path / "p", 2)
    (tmp_path / "list.txt").write_text("p/0001.png\n\np/0000.png\np/0001.png\np/none.png\n")
    used, skipped = split(open_inputs(tmp_path / "list.txt", "images"))
    assert [one.id for one in used] == ["p/0001.png", "p/0000.png", "p/none.png"]
    assert used[0].value == tmp_path / "p/0001.png"
    assert skipped == [Skipped("p/0001.png", "the same id as an earlier input")]
    ((one,), _) = split(open_inputs(tmp_path / "p/0000.png", "images"))
    assert one == Input("0000.png", tmp_path / "p/0000.png")


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_tables_of_texts(tmp_path, ending):
    rows = [
        {"id": "x1", "text": "play, loud", "other": "o"},
        {"id": "x2", "text": " ", "other": "o"},
        {"id": "x1", "text": "again", "other": "p"},
        {"id": "x4", "text": "last\nline", "other": "q"},
    ]
    path = write_table(tmp_path / f"t.{ending}", rows)
    used, skipped = split(open_inputs(path, "texts"))
    assert used == [Input("x1", "play, loud"), Input("x4", "last\nline")]
    assert [one.id for one in skipped] == ["x2", "x1"]
    assert all(one.is_input for one in skipped)
    path = write_table(path, [{"text": "a"}, {"text": "b"}])
    assert list(open_inputs(path, "texts")) == [Input("0", "a"), Input("1", "b")]


def write_table(path, rows):
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pd.DataFrame(rows).to_csv(path, index=False)
    return path


def test_texts_in_lines_and_lists(tmp_path):
    (tmp_path / "blank.txt").write_text("one text\n\nanother\n")
    assert [one.id for one in open_inputs(tmp_path / "blank.txt", "texts")] == ["0", "2"]
    (tmp_path / "t.txt").write_text("one text\nanother\n")
    wanted = [Input("0", "one text"), Input("1", "another")]
    assert list(open_inputs(tmp_path / "t.txt", "texts")) == wanted
    used, skipped = split(open_inputs(["one text", "another", "", None], "texts"))
    assert used == wanted
    assert [one.id for one in skipped] == ["2", "3"]


REFUSED = [
    ("t.jsonl", "[1]\n", "texts", "line", "t.jsonl:1"),
    ("t.jsonl", '{"text": "a", "id": "x\\ud800"}\n', "texts", "id", "t.jsonl:1"),
    ("t.csv", "id,text\nb,c\na\0,b\n", "texts", "id", "t.csv:3"),
    ("t.jsonl", '{"txt": "a"}\n', "texts", "column", "t.jsonl"),
    ("t.doc", "a", "texts", "inputs", ""),
    ("t.csv", "id,text\na,b\n", "values", "inputs", ""),
]


def test_bad_files(tmp_path):
    for name, content, takes, parameter, where in REFUSED:
        (tmp_path / name).write_text(content)
        with refuses(parameter) as error:
            list(open_inputs(tmp_path / name, takes))
        assert error.value.where.endswith(where)


def test_a_row_without_id_is_skipped(tmp_path):
    rows = '{{"text": "b", "id": "a"}}\n{{"text": "c", "id": {}}}\n{{"text": "e", "id": "d"}}'
    for name, content, line in [
        ("t.csv", "id,text\na,b\n,c\nd,e\n", 3),
        ("t.jsonl", rows.format('""'), 2),
    ]:
        (tmp_path / name).write_text(content)
        used, (skipped,) = split(open_inputs(tmp_path / name, "texts"))
        assert used == [Input("a", "b"), Input("d", "e")]
        assert skipped.id == f"{tmp_path / name}:{line}"


def test_what_is_no_source(tmp_path):
    for takes in ("values", "texts"):
        with refuses("inputs", str(tmp_path)):
            open_inputs(tmp_path, takes)
    with refuses("inputs", str(tmp_path / "none")):
        open_inputs(tmp_path / "none", "images")
    for odd in (3, pd.DataFrame({"a": [1]}), eye_array(3)):
        with refuses("inputs"):
            list(open_inputs(odd, "values"))


class Dataset(list):
    """What is used of ``datasets.Dataset``."""

    features = ()

    @property
    def column_names(self):
        return list(self[0])


def test_datasets():
    rows = Dataset([{"text": "one text", "label": 1}, {"text": "", "label": 0}])
    used, (skipped,) = split(open_inputs(rows, "texts"))
    assert (used, skipped.id) == ([Input("0", "one text")], "1")
    images = Dataset([{"image": "an image", "id": 7, "size": 3}])
    assert list(open_inputs(images, "images")) == [Input("7", Path("an image"))]
    with refuses("inputs", ["a", "b"]):
        list(open_inputs(Dataset([{"a": "x", "b": "y"}]), "texts"))
