"""No command replaces a file that a person wrote or changed, unless it is asked to."""

import inspect
import shutil
from pathlib import Path

import pytest

from command_line import rankshot, read_csv, run_well, write_small_run
from rankshot.cli import COMMANDS
from rankshot.recognition import open_run

MINE = b"id,label\nx1,cat\nmine,dog\n"
RECOGNISE = "recognise scores.csv --rankings rankings.jsonl --folder run"
CLASSIFY = "classify scores.csv --rankings rankings.jsonl"
RANK = "rank --seen seen.txt --new okapi --source look-alikes"
OUTPUTS = {
    ("recognise", "output"): (f"{RECOGNISE} -o mine.csv", "mine.csv"),
    ("recognise", "folder"): (RECOGNISE, "run/predictions.csv"),
    ("classify", "output"): (f"{CLASSIFY} -o mine.csv", "mine.csv"),
    ("classify", "head"): ("classify scores.csv --head run/head.rankshot -o mine.csv", "mine.csv"),
    ("rank", "output"): (f"{RANK} -o mine.jsonl", "mine.jsonl"),
    ("rank", "prompts"): (f"{RANK} --prompts prompts", "prompts/rater-1.txt"),
    ("report", "output"): ("report run -o mine.html", "mine.html"),
    ("report", "run"): ("report run/predictions.csv -o mine.html", "mine.html"),
    ("doctor", "output"): ("doctor run2 --rehearse -o mine.json", "mine.json"),
    ("export", "output"): ("export run -o mine.rankshot", "mine.rankshot"),
    ("export", "attach"): ("export run -o mine.onnx", "mine.onnx"),
    ("consensus", "output"): ("consensus rankings.jsonl -o mine.jsonl", "mine.jsonl"),
    ("leaderboard", "output"): ("leaderboard votes.csv -o mine.csv", "mine.csv"),
    ("leaderboard", "html"): ("leaderboard votes.csv --html mine.html", "mine.html"),
    ("leaderboard", "plot"): ("leaderboard votes.csv --plot mine.svg", "mine.svg"),
    ("demo", "output"): ("demo --files-only -o demo", "demo/votes.csv"),
    ("score", "output"): ("score texts.csv --model model.skops -o mine.csv", "mine.csv"),
    ("score", "on_error"): ("score texts.csv --model model.skops -o s.csv", "s.skipped.csv"),
}
"""Each option that names a file to write: a command, and the file."""
SEEN_RANKINGS = "".join(
    f'{{"target": "{name}", "ranking": {order}, "source": "zoo", "rater": "ann"}}\n'
    for name, order in (
        ("bus", '["tram", "fox"]'),
        ("fox", '["tiger", "leopard"]'),
        ("leopard", '["tiger", "fox"]'),
        ("tiger", '["leopard", "fox"]'),
        ("tram", '["bus", "fox"]'),
    )
)


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    """A folder with the inputs of all commands, and two runs."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from skops.io import dump

    folder = tmp_path_factory.mktemp("small")
    write_small_run(folder)
    (folder / "seen.txt").write_text("zebra\nbus\nleopard\n")
    (folder / "votes.csv").write_text("winner,loser,rater\na,b,1\na,c,2\nb,a,3\nb,c,1\nc,a,2\n")
    (folder / "texts.csv").write_text("text\na wheel\na wing\n")
    texts = make_pipeline(CountVectorizer(), LogisticRegression())
    dump(texts.fit(["a wheel", "a wing"], ["car", "bird"]), folder / "model.skops")
    lines = (folder / "rankings.jsonl").read_text() + SEEN_RANKINGS
    (folder / "more.jsonl").write_text(lines)
    usual = (folder / "usual.csv").read_text().splitlines()
    names = ["bus", "fox", "leopard", "tiger", "tram"]
    rows = [f"{row},{names[i % 5]}" for i, row in enumerate(usual[1:])]
    (folder / "labelled.csv").write_text("\n".join([f"{usual[0]},label", *rows]) + "\n")
    words = "--reference {0}/labelled.csv --no-rehearse --folder {0}/run2"
    run_well(f"recognise {folder}/scores.csv --rankings {folder}/more.jsonl {words}".format(folder))
    run_well(f"recognise {folder}/scores.csv --rankings {folder}/more.jsonl --folder {folder}/run")
    return folder


@pytest.fixture
def folder(small_run, tmp_path, monkeypatch):
    shutil.copytree(small_run, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_option_that_names_an_output_is_tried():
    functions = [function for group in COMMANDS.values() for function in group]
    named = {"output", "html", "plot", "folder", "prompts"}
    options = {(f.__name__, name) for f in functions for name in inspect.signature(f).parameters}
    assert {pair for pair in options if pair[1] in named} <= {*OUTPUTS}


@pytest.mark.parametrize(("words", "name"), OUTPUTS.values(), ids=map("-".join, OUTPUTS))
def test_what_a_person_wrote_is_kept_until_overwrite_is_asked_for(folder, words, name):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(MINE)
    done = rankshot(words)
    assert (done.status, path.read_bytes()) == (2, MINE)
    assert "--overwrite" in done.err
    done = rankshot(f"{words} --overwrite")
    assert done.status == 0, done.err
    assert not path.exists() or path.read_bytes() != MINE


def test_what_commands_wrote_about_a_run_is_replaced_until_it_is_changed(folder):
    words = [f"{RECOGNISE} -o out.csv", "report run -o page.html", "export run -o head.rankshot"]
    for one in [*words, *words]:
        run_well(one)
    for name, one in zip(("out.csv", "page.html", "head.rankshot"), words, strict=True):
        changed = Path(name).read_bytes() + b"\n"
        Path(name).write_bytes(changed)
        assert rankshot(one).status == 2
        assert Path(name).read_bytes() == changed
    shutil.move(folder / "run", folder / "elsewhere")
    assert rankshot("report elsewhere -o page.html").status == 2


def test_a_rehearsal_is_done_unless_it_is_turned_off(folder):
    run_well("recognise scores.csv --rankings more.jsonl --reference labelled.csv --folder other")
    assert open_run("other").predicted is not None
    assert open_run("run2").predicted is None


def test_a_failed_run_leaves_the_one_before_it(folder):
    run_well(f"{RECOGNISE} -o out.csv")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert rankshot("recognise scores.csv --new qqqq,zzyzx --folder run -o out.csv").status == 2
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert after == before
    run_well("report run -o page.html")
    assert [row["id"] for row in read_csv("out.csv")] == ["x1", "x2", "x3", "x4", "x5", "x6", "x7"]
