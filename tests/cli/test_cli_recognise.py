"""``rankshot recognise``: from a model and inputs to new classes, and what is kept between runs."""

import json
import os
import subprocess
import sys
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

import rankshot as rs
from command_line import check_refused, rankshot, read_csv, run_well
from rankshot.recognition.run_report import report_run
from rankshot.recognition.scoring import ScoringPlan
from rankshot.zeroshot.files.score_tables import open_scores
from rankshot.zeroshot.remarks import EXPECTED
from tiny_models import CONFIG, write_images, write_onnx

CLASSES = ["leopard", "bus", "daisy"]
BASE = ["recognise", "photos", "--model", "net.onnx"]
RUN = [*BASE, "--new", "cat, truck", "-o", "p.csv"]
FOLDER = Path("photos.rankshot-run")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with photos and a network that needs no option, as the current folder."""
    monkeypatch.chdir(tmp_path)
    write_images(tmp_path / "photos/a", 5)
    write_images(tmp_path / "photos/b", 4, seed=1)
    (tmp_path / "photos/bad.jpg").write_bytes(b"damaged")
    (tmp_path / "photos/notes.txt").touch()
    write_onnx(tmp_path / "net.onnx", metadata={"classes": CLASSES})
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(CONFIG))
    return tmp_path


@pytest.fixture
def idle(place, monkeypatch):
    """The same folder after a run; the model may not run any more."""
    run_well(RUN)
    monkeypatch.setattr(ScoringPlan, "_call", lambda *_: pytest.fail("the model ran"))
    return place


def test_one_command_does_what_four_do(place):
    out = run_well(RUN)
    prompts = FOLDER / "p.prompts"
    assert (
        f"To improve them, paste {prompts}/rater-1.txt into any chat window, save the answer" in out
    )
    assert f"rankings: by 'wordnet-path', without people or language models: {EXPECTED}" in out
    assert "batch: inputs are classified one at a time" in out
    assert "scores: 9 inputs scored, 1 skipped\n" in out
    assert "skipped 1 input: 1 not an image; not inputs: 1 not named like an image; all" in out
    assert f"all are listed in {FOLDER}/scores/_skipped.csv" in out
    assert "9 predictions written to p.csv\n" in out
    assert f"kept in {FOLDER}: scores, p.rankings.jsonl, p.rankshot; " in out
    assert [row["id"] for row in read_csv("p.csv")] == [
        *(f"a/{i:04d}.png" for i in range(5)),
        *(f"b/{i:04d}.png" for i in range(4)),
    ]
    assert {"cache.json", "run.json", "scores", "rankings.jsonl", "head.rankshot"} <= {
        file.name for file in FOLDER.iterdir()
    }
    (place / "seen.txt").write_text("\n".join(CLASSES) + "\n")
    run_well("score photos --model net.onnx -o s.parquet")
    run_well(["rank", "--seen", "seen.txt", "--new", "cat, truck", "-o", "r.jsonl"])
    run_well("classify s.parquet --rankings r.jsonl -o four.csv")
    assert Path("four.csv").read_bytes() == Path("p.csv").read_bytes()
    assert Path("r.jsonl").read_bytes() == (FOLDER / "p.rankings.jsonl").read_bytes()


def test_the_commands_that_are_printed(place):
    out = run_well(RUN)
    lines = [line for line in out.splitlines() if line.startswith("  rankshot ")]
    review, report, doctor, explain, suggest, export = lines
    assert review == f"  rankshot review {FOLDER}"
    assert "report written" in run_well(report.removeprefix("  rankshot "))
    assert "what would help most next" in run_well(doctor.removeprefix("  rankshot "))
    assert "a/0000.png: " in run_well(explain.removeprefix("  rankshot "))
    assert "9 inputs to label" in run_well(suggest.removeprefix("  rankshot "))
    assert export == f"  rankshot export {FOLDER}/p.rankshot --attach net.onnx -o zero-shot.onnx"
    run_well(f"classify {FOLDER}/scores --head {FOLDER}/p.rankshot -o later --workers 1")
    labels = [row["label"] for row in read_csv("p.csv")]
    assert parquet.read_table("later")["label"].to_pylist() == labels


# ---- what is kept


def test_the_same_run_once_more(idle):
    before = Path("p.csv").read_bytes()
    Path("p.csv").unlink()
    out = run_well(RUN)
    assert f"rankings: those in {FOLDER}/p.rankings.jsonl, from an earlier run" in out
    assert f"scores: those of 9 inputs in {FOLDER}/scores, from an earlier run\n" in out
    assert "1 not an image" in out
    assert Path("p.csv").read_bytes() == before


def test_other_new_classes_do_not_run_the_model(idle):
    first = (FOLDER / "p.rankshot").read_bytes()
    out = run_well([*BASE, "--new", "tulip, dog, cat", "-o", "other.csv"])
    assert "scores: those of 9 inputs" in out
    assert list(read_csv("other.csv")[0])[3:] == ["P(cat)", "P(dog)", "P(tulip)"]
    # What belongs to the other predictions stays.
    assert (FOLDER / "p.rankshot").read_bytes() == first
    run_well([*BASE, "--new", "tulip, dog", "-o", "p.csv"])
    assert list(read_csv("p.csv")[0])[3:] == ["P(dog)", "P(tulip)"]


def test_rankings_that_were_corrected_by_hand_are_used(idle):
    orders = [["daisy", "bus", "leopard"], ["leopard", "daisy", "bus"]]
    found = rs.Rankings.from_orders(orders, items=CLASSES, targets=["cat", "truck"])
    rs.write_rankings(found, FOLDER / "p.rankings.jsonl")
    run_well(RUN)
    _, scores = next(score_tables().batches())
    wanted = rs.WeightedMean().fit(found).predict(scores)
    assert [row["label"] for row in read_csv("p.csv")] == wanted.tolist()
    # The same classes from another source are ranked again.
    assert "covers 100% of all pairs" in run_well([*RUN, "--source", "wordnet:wup"])
    kept = rs.read_rankings(FOLDER / "p.rankings.before.jsonl", items=CLASSES)
    np.testing.assert_array_equal(kept.codes, found.codes)


def test_what_is_kept_after_ctrl_c(place, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ScoringPlan, "_call", stop)
        done = rankshot(RUN)
    assert done.status == 130
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["rankshot.cli.recognise"], "write_decisions", stop)
        done = rankshot(RUN)
    assert "scores: those of 9 inputs" in run_well(RUN)


def score_tables():
    return open_scores(FOLDER / "scores")


def test_a_folder_of_another_model_is_refused(place):
    run_well(RUN)
    before = {file: file.read_bytes() for file in FOLDER.rglob("*") if file.is_file()}
    write_onnx(place / "other.onnx", metadata={"classes": CLASSES}, softmax=True)
    other = ["recognise", "photos", "--model", "other.onnx", *RUN[4:]]
    (place / "names.txt").write_text("leopard\nbus\nrose\n")
    (place / "other.json").write_text(json.dumps(CONFIG | {"image_mean": [0, 0, 0]}))
    for words, what in (
        (other, "another model"),
        ([*RUN, "--preprocessing", "other.json"], "another model, with other preprocessing"),
        ([*RUN, "--seen", "names.txt"], "another model, with other classes"),
    ):
        done = rankshot(words)
        assert f"rankshot: {FOLDER}/scores: has the scores of {what}; give another" in done.err
        assert {file: file.read_bytes() for file in before} == before
    assert "9 inputs scored" in run_well([*other, "--folder", "kept/other"])


def test_two_runs_at_once_are_refused(place):
    fcntl = pytest.importorskip("fcntl")
    FOLDER.mkdir()
    handle = os.open(FOLDER, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    done = rankshot(RUN)
    assert f"{FOLDER}: is in use by another process; wait" in done.err
    assert done.status == 2
    assert list(FOLDER.iterdir()) == []
    os.close(handle)
    run_well(RUN)


def test_answers_of_a_language_model_are_asked_for_once(place, monkeypatch):
    asked, number = [], count()

    def ask(prompt):
        asked.append(prompt)
        if next(number) == 4:
            raise rs.RankshotError("no connection")
        return json.dumps(CLASSES)

    monkeypatch.setattr(rs.LanguageModel, "_connect", lambda _: ask)
    words = [*RUN, "--source", "llm:m", "--yes"]
    assert "no connection; earlier answers are in photos.rankshot-run" in rankshot(words).err
    out = run_well(words)
    assert "from WordNet" not in out
    # Five raters and two classes, and the call that failed.
    assert len(asked) == 11
    run_well(words)
    run_well([*BASE, "--new", "tulip, cat", "--source", "llm:m", "--yes", "-o", "p.csv"])
    assert len(asked) == 16
    assert {row["label"] for row in read_csv("p.csv")} <= {"tulip", "cat"}


# ---- killed


PROGRAM = """
import json, os, signal, sys
from pathlib import Path
from unittest.mock import patch
from rankshot.cli import main
from rankshot.recognition import scoring
from rankshot.recognition import score_parts
import rankshot.cli.fit, rankshot.recognition.recognition, rankshot.recognition.scoring
import onnxruntime, PIL.Image, rich.console, rich.table
from rankshot.sources.wordnet import WordNet
WordNet().similarity(["cat"], ["bus"])
score_parts.list_inputs.__defaults__ = (None, None, 2, None)
score_parts.MIN_BATCHES = 1
sync, n_files = os.fsync, 0

def run(folder, last_file=None, last_batch=None):
    '''Run the command in a process that kills itself while it writes a file or runs a batch.'''
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    os.chdir(folder)
    files, batches, call = [], [], scoring.ScoringPlan._call
    def count_file(handle):
        files.append(os.readlink(f"/proc/self/fd/{handle}"))
        if len(files) == last_file:
            os.kill(os.getpid(), signal.SIGKILL)
        sync(handle)
    def count_batch(self, batch):
        batches.append(len(batch))
        if len(batches) == last_batch:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(self, batch)
    os.fsync, scoring.ScoringPlan._call = count_file, count_batch
    sys.stdout = open("out.txt", "w")
    sys.argv = ["rankshot", *sys.argv[2:]]
    status = 0
    try:
        main()
    except SystemExit as end:
        status = end.code or 0
    json.dump({"files": files, "batches": sum(batches)}, open("done.json", "w"))
    sys.stdout.flush()
    os._exit(status)

os.environ["OMP_NUM_THREADS"] = "1"
root = Path(sys.argv[1])
assert run(root / "whole") == 0
n_files = len(json.loads((root / "whole/done.json").read_text())["files"])
moments = [{"last_file": n} for n in range(1, n_files + 1)] + [{"last_batch": n} for n in (1, 4)]
for number, moment in enumerate(moments):
    folder = root / f"killed-{number}"
    folder.mkdir()
    for name in ("photos", "net.onnx", "preprocessor_config.json"):
        (folder / name).symlink_to(root / "whole" / name)
    killed = run(folder, **moment)
    there = (folder / "p.csv").exists()
    again = run(folder)
    done = json.loads((folder / "done.json").read_text())["batches"] if again == 0 else None
    print(json.dumps([moment, killed, there, again, done]))
"""


def list_files(folder):
    here = {"out.txt", "done.json", "photos", "net.onnx", "preprocessor_config.json"}
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    return {file for file in files if file.split("/")[0] not in here}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads the names of open files")
def test_killed_at_every_file_and_started_again(place):
    """SIGKILL while each of the files is written, and while the network runs."""
    (place / "whole").mkdir()
    for name in ("photos", "net.onnx", "preprocessor_config.json"):
        (place / name).rename(place / "whole" / name)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(place), *RUN],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    files = json.loads((place / "whole/done.json").read_text())["files"]
    names = [Path(file).name for file in files]
    for wanted in (".p.rankings.jsonl", ".p.rankshot", ".part-", "._rankshot.json", ".p.csv"):
        assert any(name.startswith(wanted) for name in names)
    assert len(results) == len(files) + 2
    whole = (place / "whole/p.csv").read_bytes()
    assert len({row["id"] for row in read_csv(place / "whole/p.csv")}) == 9
    n_scored = []
    for number, (moment, killed, there, again, n) in enumerate(results):
        folder = place / f"killed-{number}"
        assert (killed, again) == (9, 0), (moment, done.stderr)
        assert not there
        assert (folder / "p.csv").read_bytes() == whole
        assert list_files(folder) == list_files(place / "whole")
        n_scored.append(n)
    # What was scored before is not scored again.
    assert n_scored[0] == 9
    assert 0 in n_scored
    assert any(0 < n < 9 for n in n_scored)


# ---- other inputs, models and options


REFUSED = {
    "-o p.csv": "give the new classes, such as --new",
    "--new bus,tulip -o p.csv": "classes are both seen and new: 'bus'; leave them out",
    "--new tulip --source wordnet --rankings r.jsonl -o p.csv": "replaces --source and --names",
    "--rankings r.jsonl -o p.csv": "r.jsonl: No such file",
    "--new tulip -o photos/p.csv": "photos/p.csv: is inside the folder of the inputs",
    "--new tulip --folder photos/run -o p.csv": "photos/run: is inside the folder of the inputs",
    "--new tulip --folder net.onnx -o p.csv": "net.onnx: is a file, not a folder",
    "--new tulip --classes all-or-none -o p.csv": "all-or-none needs inputs of the model's own",
    "--new tulip --rehearse seen.csv -o p.csv": "the model has no class 'rose'",
    "--new tulip --reject-below 2 -o p.csv": "--reject-below must be from 0 to 1, not 2",
    "--new tulip --folder mine -o p.csv": "mine: is not empty, and not a folder of `rankshot",
    "--new tulip --evidence words -o p.csv": "--evidence words needs one file of texts",
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_wrong_is_said(place, words):
    (place / "mine").mkdir()
    (place / "mine/thesis.doc").touch()
    (place / "seen.csv").write_text("id,label\na/0000.png,bus\na/0001.png,rose\n")
    check_refused(place, f"recognise photos --model net.onnx {words}", {}, REFUSED[words])


def test_only_new_images_are_scored(idle, monkeypatch):
    monkeypatch.undo()
    monkeypatch.chdir(idle)
    scored, call = [], ScoringPlan._call

    def count_inputs(self, batch):
        scored.append(len(batch))
        return call(self, batch)

    monkeypatch.setattr(ScoringPlan, "_call", count_inputs)
    write_images(idle / "photos/a/0", 2, seed=5)
    assert "scores: 11 inputs scored, 9 of them by an earlier run" in run_well(RUN)
    assert sum(scored) == 2
    labels = {row["id"]: row["label"] for row in read_csv("p.csv")}
    assert "scores: those of 11 inputs" in run_well(RUN)
    write_images(idle / "photos/a/0", 1, seed=6)  # changed
    (idle / "photos/b/0000.png").unlink()
    assert "scores: 10 inputs scored" in run_well(RUN)
    run_well([*RUN[:-1], "q.csv", "--folder", "fresh"])
    fresh, now = ({row["id"]: row for row in read_csv(name)} for name in ("q.csv", "p.csv"))
    assert fresh == now
    assert {*labels} - {*now} == {"b/0000.png"}


def test_a_damaged_manifest(place):
    run_well(RUN)
    for text in ("{", "{}", '{"format": "rankshot run 1", "rankings": {}}'):
        (FOLDER / "cache.json").write_text(text)
        assert "cache.json" in rankshot(RUN).err


# ---- examples and evidence

TEXTS = {
    "play a song": "play_music",
    "set an alarm": "set_alarm",
    "is it warm today": "weather",
    "play some jazz": "play_music",
    "wake me at six": "set_alarm",
    "will it rain": "weather",
}


@pytest.fixture
def requests(tmp_path, monkeypatch):
    """A pipeline for texts, and requests of new classes, in a column with another name."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from skops import io

    monkeypatch.chdir(tmp_path)
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    io.dump(model.fit(list(TEXTS), list(TEXTS.values())), "intents.skops")
    Path("requests.csv").write_text(
        "id,request\na,turn the volume up\nb,stop the alarm\nc,\nd,the volume is too low\n"
    )
    Path("r.jsonl").write_text(
        '{"target": "change_volume", "ranking": ["play_music", "weather"]}\n'
        '{"target": "stop_alarm", "ranking": ["set_alarm", "play_music"]}\n'
    )
    return "recognise requests.csv --model intents.skops --rankings r.jsonl -o p.csv"


def test_words_are_evidence_of_texts(requests):
    out = run_well(f"{requests} --evidence words")
    assert "3 inputs scored, 1 skipped" in out
    assert "kept in requests.csv.rankshot-run: scores, p.rankshot; " in out
    assert "evidence: weight 0." in out
    texts = ["turn the volume up", "stop the alarm", "the volume is too low"]
    words = rs.zeroshot.word_evidence(texts, ["change_volume", "stop_alarm"])
    run = Path("requests.csv.rankshot-run")
    scores = next(open_scores(run / "scores").batches())[1]
    given = rs.Scores(scores.values, scores.items, evidence=words)
    head = rs.load_head(run / "p.rankshot")
    assert [row["label"] for row in read_csv("p.csv")] == head.predict(given).tolist()
    explain = next(line for line in out.splitlines() if line.startswith("  rankshot explain"))
    assert "seen classes" in run_well(explain.removeprefix("  rankshot "))
    assert "scores: those of 3 inputs" in run_well(f"{requests} --evidence words")


def test_examples_of_the_inputs(requests):
    run_well(requests)
    run_well("suggest p.csv -n 2 -o labels.csv")
    text = Path("labels.csv").read_text()
    for name in ("stop_alarm", "change_volume"):
        text = text.replace(",\n", f",{name}\n", 1)
    Path("labels.csv").write_text(text)
    out = run_well(f"{requests} --examples labels.csv --evidence words")
    assert "examples: 2, compared by their scores; their scores follow " in out
    Path("labels.csv").write_text("id,label\nc,stop_alarm\n")
    before = Path("p.csv").read_bytes()
    done = rankshot(f"{requests} --examples labels.csv")
    assert "examples='c'" in done.err
    assert Path("p.csv").read_bytes() == before


# ---- what `rankshot report` reads


@pytest.mark.parametrize("more", ["", "--classes new-or-none", "--batch yes"])
def test_the_report_that_is_named_at_the_end_works(place, more):
    out = run_well([*RUN, *more.split()])
    (command,) = [line.strip() for line in out.splitlines() if " report " in line]
    assert command == f"rankshot report {FOLDER} -o report.html"
    run_well(command.removeprefix("rankshot "))
    page = Path("report.html").read_text("utf-8")
    assert '<section id="images"' in page
    assert ('<section id="explanations"' in page) == (more != "--classes new-or-none")
    done = rankshot(f"report {FOLDER} --scores s.csv -o report.html")
    assert "has all that is needed; leave out --scores" in done.err


def test_labelled_examples_are_not_test_inputs_of_a_report(place):
    run_well(RUN)
    ids = [row["id"] for row in read_csv("p.csv")]
    labels = ["id,label", *(f"{name},cat" for name in ids)]
    Path("truth.csv").write_text("\n".join(labels))
    Path("labels.csv").write_text("\n".join(labels[:2]))
    run_well([*RUN, "--examples", "labels.csv"])
    report = report_run(rs.recognition.open_run(FOLDER), "truth.csv")
    assert sum(report.evaluation.n_inputs) == len(ids) - 1


# ---- a part of the rankings, and names in another language


def test_new_chooses_a_part_of_the_rankings(place):
    orders = {"cat": ["leopard"], "truck": ["bus"], "ship": ["bus", "leopard"]}
    rankings = rs.Rankings.from_orders(list(orders.values()), items=CLASSES, targets=list(orders))
    rs.write_rankings(rankings, "r.jsonl")
    run_well([*BASE, "--rankings", "r.jsonl", "--new", "cat, truck", "-o", "p.csv"])
    head = rs.load_head(FOLDER / "p.rankshot")
    assert head.classes_.tolist() == ["cat", "truck"]
    run_well(f"report {FOLDER} -o report.html")
    done = rankshot([*BASE, "--rankings", "r.jsonl", "--new", "trukc", "-o", "p.csv"])
    assert "r.jsonl: no ranking of 'trukc' (did you mean 'truck'?); it has 'cat'" in done.err


def test_answers_are_enough_for_names_that_wordnet_does_not_know(place):
    words = [*BASE, "--new", "Kätzchen, Lastwagen", "-o", "p.csv"]
    first = rankshot(words)
    assert "has no similarity" in first.err or "no source knows" in first.err
    answers = FOLDER / "p.prompts" / "answers"
    answers.mkdir(exist_ok=True)
    (answers / "rater-1.txt").write_text(
        "Kätzchen: leopard, daisy, bus\nLastwagen: bus, daisy, leopard\n", "utf-8"
    )
    done = rankshot(words)
    assert done.status == 0, done.err
    assert {row["label"] for row in read_csv("p.csv")} <= {"Kätzchen", "Lastwagen"}
