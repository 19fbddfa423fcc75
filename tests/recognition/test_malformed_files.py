"""Malformed files, by the hundred: an error that names the file, soon, and in little memory."""

import json
import random
import resource
import time
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

import rankshot as rs
from command_line import LOGITS, RANKINGS, SEEN, SIMILARITY, rankings, write_small_run
from rankshot.core.errors import RankshotError
from rankshot.jobs import classify
from rankshot.recognition import Preprocessing, open_model, open_run
from rankshot.recognition.inputs import open_inputs
from rankshot.recognition.label_studio import read_labels
from rankshot.recognition.run_report import report_predictions, report_run
from rankshot.review.learning import Learner
from rankshot.review.serve import review_run
from rankshot.review.session import Journal, Review
from rankshot.sources import read_class_labels, read_look_up
from rankshot.sources.similarity import read_similarity
from rankshot.zeroshot import Settings, open_scores, read_predictions
from tiny_models import CLASSES, CONFIG, write_onnx

PER_READER = 24
MOST_SECONDS, MOST_BYTES = 10, 2**30
DEEP = b"[" * 200_000 + b"]" * 200_000
NASTY = [b"", b"\0", b"\xff\xfe\x00", b"\xef\xbb\xbf", b"\n" * 50, b"9" * 5_000]
NASTY += [DEEP, b"{" * 100_000]
JUNK = [*b'\0 \xff -1 nan 1e999 " , [] {} null \xe2\x80\x8b'.split(), b"\n"]


def read_journal(path):
    learner = Learner(rs.Knowledge(rankings(), batch=rs.Scores(LOGITS, SEEN)))
    with closing(Journal(path)) as journal, closing(Review(learner, "abcdefg", journal)):
        pass


def open_whole_run(path):
    run = open_run(path.parent)
    report_run(run)
    return review_run(run)


def read_inputs(path):
    return list(open_inputs(path, "images" if path.suffix == ".txt" else "texts"))


LABEL_STUDIO = [
    {"data": {"id": "x1"}, "annotations": [{"result": [{"value": {"choices": ["cat"]}}]}]}
]
EVENTS = [{"what": "labels", "labels": {"a": "cat"}}, {"what": "class", "name": "x", "ranking": []}]
PREFLIB = "# NUMBER ALTERNATIVES: 2\n# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: b\n1: 1,2\n"
READERS = {
    "rankings.jsonl": (rs.read_rankings, RANKINGS),
    "ballots.csv": (rs.read_rankings, "rater,item,rank\na,tea,1\na,rum,2\nb,rum,1\nb,tea,2\n"),
    "orders.csv": (rs.read_rankings, "first,second,third\ntea,beer,rum\nrum,tea,beer\n"),
    "votes.csv": (rs.leaderboard, "winner,loser,rater\na,b,1\na,c,2\nb,a,3\nb,c,1\nc,a,2\n"),
    "election.soc": (rs.read_rankings, PREFLIB),
    "table.csv": (read_similarity, SIMILARITY),
    "seen.txt": (read_class_labels, "zebra\nbus\n"),
    "seen.json": (read_class_labels, json.dumps({"id2label": {"0": "zebra", "1": "bus"}})),
    "names.csv": (lambda path: read_look_up(path, ["cat", "dog"]), "class,look_up\ncat,lion\n"),
    "settings.json": (Settings.read, None),
    "tasks.json": (read_labels, json.dumps(LABEL_STUDIO)),
    "labels.csv": (read_labels, "id,label\nx1,cat\nx2,dog\n"),
    "preprocessor.json": (Preprocessing.read, json.dumps(CONFIG)),
    "texts.jsonl": (read_inputs, '{"id": "a", "text": "b"}\n{"id": "c", "text": "d"}\n'),
    "texts.csv": (read_inputs, "id,text\na,b\nc,d\n"),
    "paths.txt": (read_inputs, "a.png\nb.png\n"),
    "review.jsonl": (read_journal, "".join(f"{json.dumps(event)}\n" for event in EVENTS)),
    "scores.csv": (lambda path: open_scores(path).read(), None),
    "scores.parquet": (lambda path: open_scores(path).read(), None),
    "out.csv": (report_predictions, None),
    "out.parquet": (read_predictions, None),
    "head.rankshot": (rs.load_head, None),
    "net.onnx": (open_model, None),
    "run/run.json": (open_whole_run, None),
    "run/inputs.jsonl": (open_whole_run, None),
    "run/rankings.jsonl": (open_whole_run, None),
    "run/predictions.csv": (open_whole_run, None),
}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A good file for each reader."""
    folder = tmp_path_factory.mktemp("good")
    write_small_run(folder)
    rs.WeightedMean().fit(rankings()).save(folder / "head.rankshot")
    Settings().write(folder / "settings.json")
    for name in ("out.csv", "out.parquet"):
        classify(folder / "scores.csv", folder / "head.rankshot", folder / name)
    write_onnx(folder / "net.onnx", metadata={"classes": CLASSES})
    texts = ["a bus", "a fox"]
    model = lambda batch: [[text.count(name) for name in SEEN] for text in batch]  # noqa: E731
    rs.recognise(texts, rankings(), model=model, seen=SEEN).save(folder / "run")
    for name, (_, text) in READERS.items():
        if text is not None:
            (folder / name).write_text(text, encoding="utf-8")
    return folder


def damage(content, rng):
    """A file with one random fault; or with another value in its JSON."""
    begin, end = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    kind = rng.randrange(6)
    if kind == 0:
        return content[:begin]
    if kind == 1:
        return content[:begin] + content[end:]
    if kind == 2:
        return content[:begin] + rng.choice(JUNK) + content[begin:]
    if kind == 3:
        return content[:end] + content[begin:]
    if kind == 4:
        lines = content.splitlines(keepends=True)
        rng.shuffle(lines)
        return b"".join(lines)
    numbers = [i for i, byte in enumerate(content) if chr(byte).isdigit()]
    place = rng.choice(numbers or [0])
    return content[:place] + rng.choice(JUNK) + content[place + 1 :]


def damage_archive(path, rng):
    """A saved head with a fault in one of its members, and the checksums of the archive right."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(sorted(members))
    members[name] = damage(members[name], rng)
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return path.read_bytes()


# A damaged file may still be a file, of which something is to be said.
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_a_malformed_file_is_named(files, tmp_path, name):
    read, _ = READERS[name]
    good = {p: p.read_bytes() for p in (files / name).parent.iterdir() if p.is_file()}
    path = tmp_path / Path(name).name
    for one, content in good.items() if "/" in name else [(files / name, good[files / name])]:
        (tmp_path / one.name).write_bytes(content)
    read(path)
    whole, rng = path.read_bytes(), random.Random(name)
    n_refused, unnamed, crashed = 0, [], []
    for number in range(PER_READER):
        path.write_bytes(whole)
        if number < len(NASTY):
            path.write_bytes(NASTY[number])
        elif path.suffix == ".rankshot" and number % 2:
            damage_archive(path, rng)
        else:
            path.write_bytes(damage(whole, rng))
        content, begin = path.read_bytes(), time.process_time()
        try:
            read(path)
        except RankshotError as error:
            n_refused += 1
            unnamed += [] if path.name in str(error) else [f"{error}; {content[:300]!r}"]
        except Exception as error:  # noqa: BLE001
            crashed.append(f"{type(error).__name__}: {error}; {content[:300]!r}")
        assert time.process_time() - begin < MOST_SECONDS
    assert "\n".join(unnamed + crashed) == ""
    assert n_refused >= 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < MOST_BYTES
