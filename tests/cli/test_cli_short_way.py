"""`rankshot recognise`: what it decides by itself, and what it says of it."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

import rankshot as rs
from command_line import rankshot, read_csv, run_well
from tiny_models import CONFIG, write_images, write_onnx

GROUPS = {
    "fur claws whiskers paws": ["leopard", "tiger", "lion"],
    "street wheels passengers stop": ["bus", "taxi", "streetcar"],
    "water hull sail harbour": ["yacht", "canoe", "ship"],
    "petals stem garden bloom": ["daisy", "rose", "tulip"],
}
NEW = {"jaguar": 0, "truck": 1, "ferry": 2, "orchid": 3}
RUN = ["recognise", "t.csv", "--model", "zoo.skops", "--new", ", ".join(NEW), "-o", "p.csv"]
FOLDER = Path("t.csv.rankshot-run")


def write_texts(rng, group, own, n):
    """Texts with some words of a group, and perhaps a word of one class of it."""
    words = list(GROUPS)[group].split()
    return [" ".join([*rng.choice(words, 3), *own]) for _ in range(n)]


@pytest.fixture
def zoo(tmp_path, monkeypatch):
    """A classifier of texts, labelled texts of its classes, and texts of new ones."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from skops import io

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    seen = [(name, group) for group, names in enumerate(GROUPS.values()) for name in names]
    texts, labels = [], []
    for name, group in seen:
        texts += write_texts(rng, group, [f"own{name}"], 20)
        labels += [name] * 20
    model = make_pipeline(CountVectorizer(), LogisticRegression())
    io.dump(model.fit(texts, labels), "zoo.skops")
    rows = [
        (text, name) for name, group in seen for text in write_texts(rng, group, [f"own{name}"], 8)
    ]
    write_table("seen.csv", "text,label", rows)
    rows = [
        (f"{name}{i}", text)
        for name, g in NEW.items()
        for i, text in enumerate(write_texts(rng, g, [], 8))
    ]
    write_table("t.csv", "id,text", rows)
    return tmp_path


def write_table(path, header, rows):
    with Path(path).open("w", newline="") as stream:
        csv.writer(stream).writerows([header.split(","), *rows])


def share_right(path="p.csv"):
    return np.mean([row["label"] == re.sub(r"\d", "", row["id"]) for row in read_csv(path)])


def labelled():
    rows = read_csv("seen.csv")
    return [row["text"] for row in rows], [row["label"] for row in rows]


def test_all_inputs_are_decided_together(zoo):
    out = run_well(RUN)
    assert "batch: the 32 inputs are classified jointly: this changes " in out
    assert rs.load_head(FOLDER / "p.rankshot").about["batch"]["n"] == 32
    assert share_right() == 1
    explain = next(line for line in out.splitlines() if line.startswith("  rankshot explain"))
    run_well(explain.removeprefix("  rankshot "))
    run_well("score t.csv --model zoo.skops -o s.parquet")
    run_well(f"report p.csv --scores s.parquet --head {FOLDER}/p.rankshot -o page.html")
    assert "jaguar" in Path("page.html").read_text()
    out = run_well([*RUN, "--batch", "no"])
    assert "batch" not in out
    assert isinstance(rs.load_head(FOLDER / "p.rankshot"), rs.LinearHead)
    words = f"classify s.parquet --rankings {FOLDER}/p.rankings.jsonl -o"
    run_well(f"{words} alone.csv")
    assert Path("alone.csv").read_bytes() == Path("p.csv").read_bytes()
    assert "are classified jointly" in run_well(f"{words} together.csv --batch auto")
    assert share_right("together.csv") == 1
    done = rankshot(f"{words} no.csv --batch yes --classes all")
    assert "a batch needs a head that predicts only new" in done.err


def test_labelled_inputs_are_rehearsed(zoo):
    out = run_well([*RUN, "--rehearse", "seen.csv", "--batch", "no"])
    assert "the model's own accuracy on 96 labelled inputs of seen classes: 1.000" in out
    assert "rankings of 12 of the 12 labelled classes as well" in out
    assert "of the inputs of 12 held-out seen classes are recognised" in out
    assert "no accuracy is predicted for the 4 new classes: tables without raters" in out
    # The model has only 12 classes.
    assert "warning: only 12 classes were held out, so the temperature is uncertain\n" in out
    assert " inputs, which the model assigns to " in out
    options = {"reference": labelled(), "batch": False, "source": "wordnet"}
    found = rs.recognise("t.csv", list(NEW), model="zoo.skops", **options)
    rows = read_csv("p.csv")
    assert found.ids.tolist() == [row["id"] for row in rows]
    assert found.labels.tolist() == [row["label"] for row in rows]
    np.testing.assert_allclose(
        found.proba, [[float(row[f"P({z})"]) for z in sorted(NEW)] for row in rows], rtol=1e-5
    )
    assert found.predicted is None
    page = f"report p.csv --scores {FOLDER}/scores --head {FOLDER}/p.rankshot -o out.html"
    run_well(page)
    text = Path("out.html").read_text(encoding="utf-8")
    assert ">forecast" not in text
    assert "<dt>model</dt><dd>zoo.skops (scikit-learn), on CPU</dd>" in text
    run_well([*RUN, "--rehearse", "seen.csv", "--classes", "all-or-none"])
    assert {"P(none of these)", "P(leopard)"} <= {*read_csv("p.csv")[0]}


def test_few_labelled_classes_are_a_reference(zoo):
    rows = [row for row in read_csv("seen.csv") if row["label"] in {"leopard", "bus"}]
    write_table("few.csv", "text,label", [(row["text"], row["label"]) for row in rows])
    out = run_well([*RUN, "--rehearse", "few.csv"])
    assert "and 2 are ranked by these; the labelled" in out
    assert " inputs, which the model assigns to " in out


def test_answers_beside_are_used(zoo):
    out = run_well([*RUN, "--rehearse", "seen.csv"])
    prompt = re.search(r"paste (\S+) into", out)[1]
    text = Path(prompt).read_text()
    assert "jaguar" in text
    assert "leopard" in text
    # The 12 seen classes are asked about as well.
    assert "list only other items" in text
    assert "Give the 11 items that" in text
    groups = list(GROUPS.values())
    group_of = NEW | {name: g for g, names in enumerate(groups) for name in names}
    turned = [[name for names in [*groups[g:], *groups[:g]] for name in names] for g in range(4)]
    lists = {name: turned[g] for name, g in group_of.items()}
    Path(re.search(r"save the answer as (\S+),", out)[1]).write_text(json.dumps(lists))
    out = run_well([*RUN, "--rehearse", "seen.csv"])
    assert "To improve them" not in out
    assert "rankings: by 1 rater, from 'answers', 'wordnet-path'" in out
    assert "expect a lower accuracy" not in out
    assert share_right() == 1
    # Answers about new classes alone rehearse nothing; what they lack is asked for.
    Path(FOLDER, "p.prompts/answers/rater-1.txt").write_text(
        json.dumps({name: lists[name] for name in NEW})
    )
    out = run_well([*RUN, "--rehearse", "seen.csv"])
    assert f"missing: 12 lists; paste the 1 prompt in {FOLDER}/p.follow-up into a chat" in out
    assert "and 0 are ranked by these" in out
    assert "leopard" in Path(FOLDER, "p.follow-up/rater-1.again-1.txt").read_text()
    # Other new classes: WordNet fills in.
    out = run_well([*RUN[:4], "--new", "jaguar, truck, ferry, dahlia", "-o", "p.csv"])


def test_images_in_folders_of_their_classes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_onnx(tmp_path / "net.onnx", metadata={"classes": ["leopard", "bus", "daisy"]})
    Path("preprocessor_config.json").write_text(json.dumps(CONFIG))
    write_images(tmp_path / "photos", 3)
    for number, name in enumerate(["Leopard", "bus"]):
        write_images(tmp_path / "seen" / name, 6, seed=number)
    words = ["recognise", "photos", "--model", "net.onnx", "--new", "cat, truck", "-o", "p.csv"]
    out = run_well([*words, "--rehearse", "seen"])
    assert "on 12 labelled inputs of seen classes" in out
    write_table("seen.csv", "path,label", [("seen/bus/0000.png", "bus"), ("seen/bus/0001.png", "")])
    assert "on 1 labelled input of seen classes" in run_well([*words, "--rehearse", "seen.csv"])


def test_inputs_with_low_probabilities_are_rejected(zoo):
    run_well([*RUN, "--reject-below", "0.999999", "--batch", "no"])
    assert {row["label"] for row in read_csv("p.csv")} == {"rejected"}
