"""The files that a page presupposes: small ones of the right kind, by page or by its section."""

import json
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
from page_shell import people_who_answer

import rankshot as rs
from command_line import LOGITS, rankings, run_well, write_scores
from rankshot.cli.demo import write_photographs
from rankshot.datasets import load_cifar, load_panel, write_example_files
from tiny_models import write_images, write_onnx

NAMES = "--seen seen.txt --new new.txt"


def write_lines(path, lines):
    Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_labels(path, labels):
    write_lines(path, ["id,label", *(f"{name},{label}" for name, label in labels.items())])


@cache
def make_example_files():
    """Return a folder with the files that `rankshot demo` writes for the pages."""
    folder = Path(mkdtemp())
    write_example_files(folder, ".parquet")
    return folder


def write_cifar():
    """The files that `rankshot demo` writes."""
    for path in make_example_files().iterdir():
        shutil.copy(path, path.name)


def write_sources():
    """Names of classes, also as they come with a network."""
    write_cifar()
    names = Path("seen.txt").read_text(encoding="utf-8").split()
    Path("config.json").write_text(json.dumps({"id2label": dict(enumerate(names))}), "utf-8")


def fill_in_labels():
    """What a person writes into the column of labels; and what another model says."""
    data, path = load_cifar(), Path("labels.csv")
    header, *rows = path.read_text(encoding="utf-8").splitlines()
    labels = [data.new_label[int(row.partition(",")[0].removeprefix("img"))] for row in rows]
    write_lines(path, [header, *(f"{row}{label}" for row, label in zip(rows, labels, strict=True))])
    names = np.unique(data.new_label)
    own = (data.new_label[:, None] == names).astype(float)
    ids = [f"img{i}" for i in range(len(own))]
    write_scores(Path("evidence.parquet"), own + np.eye(len(names))[0], list(names), ids)


def answer_prompts():
    """The answer of a language model, which a reader saves."""
    panel = load_panel(question="similar")
    answers = dict(zip(panel.targets, panel.orders(), strict=True))
    lines = [f"{target}: {', '.join(order)}" for target, order in answers.items()]
    write_lines("prompts/answers/rater-1.txt", lines)


def write_photos():
    """A network for the classes of ImageNet, and a folder of images."""
    write_onnx("network.onnx", shape=("n", 3, 224, 224), extra=997)
    ids = write_images(Path("photos"), 2)
    write_lines("new.txt", ["okapi", "menorah", "pagoda"])
    write_labels("labels.csv", dict.fromkeys(ids, "okapi"))


def write_intents():
    """A pipeline of scikit-learn for texts, and the answers of a language model."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from skops import io

    texts = {"play music": "play_music", "set an alarm": "set_alarm", "is it warm": "weather"}
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    io.dump(model.fit(list(texts), list(texts.values())), "intents.skops")
    write_lines("requests.csv", ["text", "wake me at six", "play it louder"])
    write_lines("new.txt", ["wake_up", "louder"])
    Path("prompts/answers").mkdir(parents=True)
    write_lines(
        "prompts/answers/rater-1.txt",
        ["wake_up: set_alarm, play_music", "louder: play_music, set_alarm"],
    )


def write_models_page():
    write_photos()
    write_intents()


def write_parts():
    """A dataset of scores in two parts, and rankings."""
    rs.write_rankings(rankings(), "rankings.jsonl")
    Path("scores").mkdir()
    for number in range(2):
        write_scores(Path(f"scores/part-{number}.parquet"), LOGITS, ids=[])


def write_network_of_cifar():
    """A network for the seen classes of CIFAR, their scores, and rankings of the new ones."""
    import onnx

    network = onnx.load(
        write_onnx("network.onnx", shape=("batch", 3, 224, 224), extra=97, softmax=True)
    )
    network.graph.input[0].name = network.graph.node[0].input[0] = "pixels"
    # The means of random pixels are nearly 0, but the logits of a network are not nearly equal.
    weights = 1000 * onnx.numpy_helper.to_array(network.graph.initializer[0])
    network.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(network, "network.onnx")
    write_cifar()
    rs.write_rankings(load_panel(question="similar"), "rankings.jsonl")


def write_votes():
    """Votes between models by several judges, and ballots."""
    shutil.copy(make_example_files() / "votes.csv", "votes.csv")
    write_lines("ballots.csv", ["name,first,second", "ann,ada,bert", "bob,bert,ada", "cy,ada,"])


def write_demo():
    """What the first command of the README writes, without its report."""
    shutil.copytree(make_example_files(), "rankshot-demo")
    write_photographs(Path("rankshot-demo"))


def write_survey_names():
    names = "bear bus fox leopard lion rose seal tiger tram truck whale wolf"
    write_lines("seen.txt", names.split())
    write_lines("new.txt", ["cat", "dog", "car"])


def write_leopard():
    """The image that an item of a study has."""
    from PIL import Image

    Path("images").mkdir()
    Image.new("RGB", (40, 30), "orange").save("images/leopard.jpg")


def write_study():
    write_survey_names()
    run_well(f"survey new study.toml {NAMES}")
    write_contact()


def write_contact():
    """What `survey new` asks for."""
    text = Path("study.toml").read_text(encoding="utf-8")
    text = text.replace("[name and e-mail address of the researcher]", "ada@example.org")
    Path("study.toml").write_text(text, encoding="utf-8")


def end_pilot():
    write_contact()
    run_well("survey reopen study.toml")


def write_prolific_list():
    write_lines("prolific_export.csv", ["Submission id,Participant id,Status", "1,ann,APPROVED"])


def write_answered_study():
    """A new study that people have answered, a backup of it, and its rankings."""
    for path in Path().glob("study.*"):
        path.unlink()
    write_study()
    with people_who_answer():
        run_well("survey serve study.toml")
    Path("backups").mkdir()
    run_well("survey backup study.toml -o backups/monday.sqlite")
    run_well("survey export study.toml -o rankings.jsonl")


START = ""
BUILDERS = {
    "README.md": {"On the command line": write_demo},
    "docs/guide/classifier.md": {"A network and a folder of photographs": write_photos},
    "docs/guide/files.md": {START: write_models_page},
    "docs/guide/devices.md": {START: write_network_of_cifar},
    "docs/guide/cluster.md": {START: write_parts, "Scores of a network": write_photos},
    "docs/guide/leaderboards.md": {START: write_votes},
    "docs/guide/survey.md": {
        START: write_survey_names,
        "What participants see": write_leopard,
        "The researcher's page": end_pilot,
    },
    "docs/guide/paid_studies.md": {
        START: write_study,
        "Prolific": write_prolific_list,
        "Exclude, restore, delete": write_answered_study,
    },
    "docs/guide/sources.md": {
        START: write_cifar,
        f"rankshot rank {NAMES} --source answers": answer_prompts,
    },
    "docs/guide/class_names.md": {START: write_sources},
    "docs/guide/examples.md": {
        START: write_cifar,
        "rankshot classify scores.parquet": fill_in_labels,
    },
    "docs/guide/rehearsal.md": {START: write_cifar},
    "docs/guide/seen_and_new.md": {START: write_cifar},
}
"""For a page, what is made at its start, before the first block of a section, or for a command."""

PEOPLE = {
    "docs/guide/run_a_survey.md": [
        {"breakfast": morning.split(), "dinner": evening.split()}
        for morning, evening in (
            ("coffee tea juice water beer", "beer water juice tea coffee"),
            ("coffee tea juice water beer", "beer water juice tea coffee"),
            ("tea juice", "water juice"),
        )
    ],
}
"""For a page, who takes part in its survey, and what they say to each target."""
