"""``rankshot doctor``: one page about a network and its rankings, and what would help most."""

import json
import re
import shlex

import numpy as np
import pytest

import rankshot as rs
from command_line import check_refused, run_well, write_scores, write_small_run

NAMES = [f"class{i:02}" for i in range(24)]
NEW = ["new1", "new2", "new3"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Classes on a line, as a network sees them; the first two new classes are neighbours."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    places = np.arange(24)

    def score(at):
        return -abs(np.array(at)[:, None] - places) + rng.normal(size=(len(at), 24))

    label = np.tile(places, 4)
    write_scores(tmp_path / "seen.csv", score(label), NAMES, [f"s{i}" for i in range(len(label))])
    lines = [f"s{i},{NAMES[j]}" for i, j in enumerate(label)]
    (tmp_path / "labels.csv").write_text("\n".join(["id,label", *lines]))
    at = np.repeat([3.4, 4.6, 15.5], 10)
    write_scores(tmp_path / "scores.csv", score(at), NAMES, [f"x{i}" for i in range(30)])
    near = rs.Similarity(-abs(np.array([[3.4], [4.6], [15.5]]) - places), NEW, NAMES, source="line")
    rs.write_rankings(near.to_rankings(8), tmp_path / "rankings.jsonl")
    own = rs.Similarity(-abs(places[:, None] - places).astype(float), NAMES, NAMES, source="line")
    rs.write_rankings(own.to_rankings(), tmp_path / "rehearsal.jsonl")
    return tmp_path


def read_steps(out):
    """Return the texts and commands of the list at the end."""
    _, _, steps = out.partition("what would help most next\n")
    return re.findall(r"  (\d+)\. (.*)\n     (rankshot .*)\n", steps)


def test_scores_and_rankings_alone(folder):
    out = run_well("doctor scores.csv --rankings rankings.jsonl")
    assert "top predictions of the model itself (30 inputs): class" in out
    assert "rankings (random guessing: .333)\n  line: ranks 3 of 3 new classes\n" in out
    assert "(0 is the same ranking)\n  new1 and new2: ." in out
    assert "reference\n  none" in out
    numbers, texts, commands = zip(*read_steps(out), strict=True)
    assert numbers == ("1", "2", "3", "4", "5")
    begins = (
        "answers from",
        "classify all inputs jointly",
        "labels for a few",
        "a reference",
        "a rehearsal",
    )
    assert all(text.startswith(begin) for text, begin in zip(texts, begins, strict=True))
    assert "(new1 or new2)" in texts[2]
    # The inputs to label look like one of the two classes that are alike.
    assert all(int(name) < 20 for name in re.findall(r"'x(\d+)'", texts[2]))
    assert commands[0] == "rankshot ask --seen scores.csv --new 'new1, new2, new3' -o prompts"
    assert commands[2] == "rankshot suggest scores.csv --rankings rankings.jsonl -o labels.csv"
    for command in commands[1:3]:
        run_well(command.removeprefix("rankshot "))


def test_all_that_can_be_given(folder):
    (folder / "scores.csv.json").write_text(
        json.dumps({"origin": {"model": "net.onnx, on CPU"}, "skipped": {"damaged": 2}})
    )
    given = "--reference seen.csv --truth labels.csv --rehearsal rehearsal.jsonl"
    out = run_well(f"doctor scores.csv --rankings rankings.jsonl {given}")
    assert "  model: net.onnx, on CPU\n  skipped inputs: 2 damaged\n" in out
    assert re.search(r"own accuracy on 96 labelled inputs of seen classes: \.\d+ \[", out)
    rehearsal = rs.Rehearsal().fit(*read_seen(folder), rs.read_rankings("rehearsal.jsonl"))
    new = rs.read_rankings("rankings.jsonl", items=NAMES)
    for line in rehearsal.forecast_.describe(new)[1:]:
        assert f"  {line}\n" in out
    assert (
        "seen.csv: 96 inputs, which the model assigns to 24 of the 24 seen classes, 4 each" in out
    )
    commands = [command for *_, command in read_steps(out)]
    assert commands[-1] == (
        "rankshot rehearse seen.csv --truth labels.csv --rankings rehearsal.jsonl --new-rankings "
        "rankings.jsonl -o settings.json"
    )


def read_seen(folder):
    table = np.genfromtxt(folder / "seen.csv", delimiter=",", skip_header=1)[:, 1:]
    labels = [line.split(",")[1] for line in (folder / "labels.csv").read_text().split("\n")[1:]]
    return rs.Scores(table, NAMES), labels


def test_scores_without_rankings_and_a_doubtful_network(folder):
    usual = np.random.default_rng(1).normal(size=24)
    write_scores(
        folder / "scores.csv", usual + np.zeros((30, 24)), NAMES, [f"x{i}" for i in range(30)]
    )
    out = run_well("doctor scores.csv")
    (_, doubt, score), (_, rankings, _) = read_steps(out)
    assert "check the preprocessing" in doubt
    assert "-o scores.csv --preprocessing NAME" in score
    assert rankings.startswith("rankings of the new classes")
    needs = "--rehearsal needs --rankings, --reference and --truth as well"
    check_refused(folder, "doctor scores.csv --rehearsal rehearsal.jsonl", {}, needs)


@pytest.fixture
def kept(folder):
    """The folder of a run of `recognise`, with prompts and its command."""
    kept = folder / "photos.rankshot-run"
    for part in ("photos", "photos.rankshot-run/scores", "photos.rankshot-run/p.prompts/answers"):
        (folder / part).mkdir(parents=True)
    ids = [f"x{i}" for i in range(30)]
    values = 3 * np.eye(24)[np.repeat([3, 5, 15], 10)]
    write_scores(kept / "scores" / "part.parquet", values, NAMES, ids)
    (folder / "rankings.jsonl").rename(kept / "p.rankings.jsonl")
    for name in ("READ-ME-FIRST.txt", "rater-1.txt"):
        (kept / "p.prompts" / name).touch()
    return kept


COMMAND = ["recognise", "photos", "--model", "net.onnx", "--new", "new1, new2, new3", "-o", "p.csv"]


def write_command(kept, *more):
    (kept / "run.json").write_text(json.dumps({"command": [*COMMAND, *more]}))
    return f"rankshot {shlex.join([*COMMAND, *more])}"


def test_the_inputs_of_recognise(kept):
    again = write_command(kept)
    out = run_well("doctor photos")
    assert "photos: `rankshot recognise` keeps its scores in photos.rankshot-run\n" in out
    assert "line: ranks 3 of 3 new classes" in out
    answers, labels, rehearsal = read_steps(out)
    assert "paste photos.rankshot-run/p.prompts/rater-1.txt into any chat window" in answers[1]
    assert answers[2] == again
    assert labels[2].startswith("rankshot suggest photos.rankshot-run/scores --rankings photos.")
    assert rehearsal[1].startswith("a rehearsal of at least 20 labelled seen classes, which fin")
    assert rehearsal[2] == f"{again} --rehearse LABELLED"


def test_a_batch_that_was_not_wanted(kept):
    write_command(kept, "--batch", "no")
    batch = read_steps(run_well("doctor photos"))[1]
    assert batch[2] == write_command(kept, "--batch", "yes")
    assert "classify all inputs jointly" not in run_well("doctor photos")


def test_a_run_with_labelled_inputs(kept, folder):
    (kept / "labelled").mkdir()
    seen, labels = read_seen(folder)
    ids = [f"s{i}" for i in range(len(labels))]
    write_scores(kept / "labelled" / "part.parquet", seen.values, NAMES, ids)
    (folder / "labels.csv").rename(kept / "labelled.csv")
    again = write_command(kept)
    # The last run was without --rehearse: its rankings are of the new classes alone.
    out = run_well("doctor photos.rankshot-run")
    assert "p.rankings.jsonl has no rankings of labelled classes\n" in out
    assert read_steps(out)[-1][2] == f"{again} --rehearse LABELLED"
    with (kept / "p.rankings.jsonl").open("a") as stream:
        stream.write((folder / "rehearsal.jsonl").read_text())
    out = run_well("doctor photos.rankshot-run")
    assert "own accuracy on 96 labelled inputs of seen classes" in out
    assert "no accuracy is predicted for the " in out
    assert not any("rehearse" in command for *_, command in read_steps(out))


def test_a_run_with_rankings_of_ones_own(kept, folder):
    (kept / "p.rankings.jsonl").rename(folder / "mine.jsonl")
    write_command(kept, "--rankings", "mine.jsonl")
    (_, _, ask), *_ = read_steps(run_well("doctor photos"))
    assert "written to prompts" in run_well(ask.removeprefix("rankshot "))


def test_a_folder_without_scores(folder):
    (folder / "empty").mkdir()
    check_refused(folder, "doctor empty", {}, "empty: has no scores; `rankshot recognise empty --m")


def test_a_source_of_raters_needs_no_language_model(tmp_path, monkeypatch):
    write_small_run(tmp_path)
    monkeypatch.chdir(tmp_path)
    out = run_well("doctor scores.csv --rankings rankings.jsonl")
    steps = out.partition("what would help")[2]
    assert "language model" not in steps
    assert "a rehearsal of all 5 labelled seen classes" in steps
