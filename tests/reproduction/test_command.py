"""``rankshot reproduce``: what is refused, and a whole run on a part of the embedded data."""

import csv
import os
import shlex
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from reproduction.classifiers import LinearClassifier

from command_line import check_refused, rankshot
from rankshot.core.errors import RankshotError
from rankshot.datasets import loading
from rankshot.report import page
from reproduction import classifiers, reproduction as pipeline
from shared_run import GRID

pytestmark = pytest.mark.slow

train_classifier = classifiers.train_classifier


def train_quickly(setting, C, X, y):
    """Train, but one-vs-one by the nearest of two means.

    4,950 support vector machines take ten seconds; tests of the experiments train them.
    """
    if setting != "one-vs-one":
        return train_classifier(setting, C, X, y)
    classes = np.unique(y)
    means = np.array([X[y == name].mean(axis=0) for name in classes])
    i, j = np.triu_indices(len(classes), 1)
    half = (means**2).sum(axis=1) / 2
    return LinearClassifier(
        setting, tuple(classes.tolist()), means[i] - means[j], half[j] - half[i]
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reproduce")


def stop_at_table_two(patch):
    """Train the classifiers of the shared run, one-vs-one quickly, and stop at Table 2."""

    def stop(*_):
        raise RankshotError("stopped here")

    patch.setattr(pipeline, "reproduce", partial(pipeline.reproduce, grid=GRID))
    patch.setattr(classifiers, "train_classifier", train_quickly)
    patch.setattr(pipeline, "table_two", stop)


def words(reproduction, output):
    return ["reproduce", "cifar", "--data", reproduction.data, "-o", output]


@pytest.fixture(scope="module")
def done(folder, reproduction):
    """The command with the results of the shared run, which are computed once for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "reproduce", reproduction.replay)
        # Tables are as wide as they need to be.
        patch.setenv("COLUMNS", "250")
        return rankshot(words(reproduction, folder / "new" / "found"))


@pytest.fixture(scope="module")
def lines(folder, done):
    path = folder / "new" / "found" / "numbers.csv"
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


TABLES = (
    *("table 2", "classifiers", "result 1, sources", "result 1, raters", "full sum"),
    *("peers", "improvements", "selection", "settings", "predicted accuracy", "calibration"),
    "figure 4",
)

# -------------------------------------------------------------------- a whole run


def test_a_run_writes_what_it_promises(folder, done):
    assert done.status == 0, done.err
    found = folder / "new" / "found"
    names = {"report.html", "numbers.csv", "tables.md", "classifiers"}
    assert {path.name for path in found.iterdir()} == names
    assert done.out.splitlines()[-1] == (
        f"report.html, numbers.csv and tables.md written to {found}"
    )
    assert {path.suffix for path in (found / "classifiers").iterdir()} == {".npz"}
    assert len(list((found / "classifiers").iterdir())) == 8


def test_all_tables_are_printed_with_their_notes(done):
    for text in (
        *("Table 1: the data", "Table 2: accuracy on the new classes, K = 4"),
        *("Result 1", "The full sum over rankings", "Peers", "Better than the paper"),
        *("Which settings seen classes favour", "1,200 / 600 / 200", "50,000 / 50,000 / 10,000"),
        *("individual sources, averaged", "paper .316", "Changes of the default"),
        *("The paper's appendix has other numbers than its table", "Figure 4 in numbers"),
        *("mean of all 45 pairs", "Classifiers with the batch within 0.01 of the best rehearsal"),
        "was never published. A language-model panel of eight raters takes its place",
    ):
        assert text in done.out, text


def test_what_comes_next_is_told_with_the_time(done):
    told = done.err.splitlines()
    seconds = [float(line.split(" s  ")[0]) for line in told]
    assert seconds == sorted(seconds)
    texts = [line.split(" s  ")[1] for line in told]
    assert texts[0] == "training one-vs-rest, C = 0.001, on 100 classes"
    assert texts[-1] == "figures"
    assert sum(text.startswith("training") for text in texts) == 8


def test_the_numbers_are_parsed_and_are_those_of_the_tables(lines, done):
    assert list(lines[0]) == ["table", "row", "column", "value", "low", "high", "paper"]
    assert {line["table"] for line in lines} == set(TABLES)
    for line in lines:
        value = float(line["value"])
        if line["low"]:
            assert float(line["low"]) <= value <= float(line["high"])
        if line["column"] not in {"µs per input", "gain over the consensus", "log-loss"}:
            assert 0 <= value <= 1, line
    keys = [(line["table"], line["row"], line["column"]) for line in lines]
    assert len(set(keys)) == len(keys)
    (line,) = (
        line
        for line in lines
        if (line["row"], line["column"])
        == ("Probabilistic Ranking | panel, Plackett-Luce", "multiclass")
    )
    assert line["paper"] == "0.26"
    figures = [f"{float(line[key]):.3f}".removeprefix("0") for key in ("value", "low", "high")]
    assert f"{figures[0]} [{figures[1]}, {figures[2]}]; paper .260" in done.out
    # One in ten is right by chance.
    assert float(line["low"]) > 0.2


def test_the_report_has_every_table_and_figure(folder, done):
    page = (folder / "new" / "found" / "report.html").read_text(encoding="utf-8")
    for text in ("Table 1: the data", "Peers", "Better than the paper", "Hamm and Belkin"):
        assert text in page
    for number in range(1, 5):
        assert f'id="figure-{number}"' in page
    assert "<title>Zero-shot classification with semantic rankings: CIFAR</title>" in page


def test_the_tables_in_markdown_are_all_there(folder, done):
    text = (folder / "new" / "found" / "tables.md").read_text(encoding="utf-8")
    assert text.count("### ") == len(TABLES) + 1


def test_a_second_run_trains_nothing_and_one_that_stops_keeps_what_was_there(
    folder, reproduction, done, monkeypatch
):
    """It is stopped at Table 2, before which all classifiers of the grid are asked for."""
    found = folder / "new" / "found"
    before = {path: path.read_bytes() for path in found.rglob("*") if path.is_file()}
    stop_at_table_two(monkeypatch)
    again = rankshot(words(reproduction, found))
    assert (again.status, again.err) == (2, "rankshot: stopped here\n")
    assert {path: path.read_bytes() for path in found.rglob("*") if path.is_file()} == before
    # Elsewhere there are none, and those that were trained stay for the next run.
    other = words(reproduction, folder / "other")
    told = rankshot(other).err
    assert told.count("training") == 5
    assert "training" not in rankshot(other).err


# -------------------------------------------------------------------- refused


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A place where no run may begin."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANKSHOT_DATA", raising=False)
    monkeypatch.setattr(pipeline, "reproduce", lambda *_: pytest.fail("the run was begun"))
    return tmp_path


def test_help_says_what_is_needed():
    done = rankshot("reproduce --help")
    assert done.status == 0
    for text in (
        "cifar|animals|intents",
        "--data",
        "--output",
        "--download",
        "RANKSHOT_DATA",
        "Example",
    ):
        assert text in done.out, text
    assert "reproduce" in rankshot("--help").out


@pytest.mark.parametrize("given", ["cifr", "CIFAR10", ""])
def test_another_data_set_is_refused(here, given):
    done = rankshot(["reproduce", given])
    assert done.status == 2
    assert f"'{given}' is not one of 'cifar', 'animals', 'intents'" in done.err
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("cifar --data d", "d/cifar/features.npz: there is no such file; give the directory"),
        ("cifar --data d", "or let --download fetch CIFAR and extract its features"),
        ("animals --data d", "d/animals/features.npz: there is no such file; give the directory"),
        (
            "animals --data d",
            "where Animals with Attributes was unpacked (with Features/ and class",
        ),
        (
            "cifar",
            "give the directory of the data with --data DIR, or set the environment variable",
        ),
        ("cifar --download", "give the directory of the data with --data DIR"),
        ("intents --data d", "d/intents/classes.json: there is no such file; give the directory"),
        ("cifar --data d -o deep/down", "d/cifar/features.npz: there is no such file"),
    ],
)
def test_no_data_leaves_nothing_behind(here, given, message):
    check_refused(here, f"reproduce {given}", {}, message)


def test_the_environment_says_where_data_are(here, monkeypatch):
    monkeypatch.setenv("RANKSHOT_DATA", "elsewhere")
    check_refused(
        here, "reproduce cifar", {}, "elsewhere/cifar/features.npz: there is no such file"
    )


@pytest.mark.parametrize("name", ["animals", "intents"])
def test_only_cifar_can_be_downloaded(here, monkeypatch, name):
    monkeypatch.setattr(
        loading, "load_images", lambda *_, **__: pytest.fail("data were looked for")
    )
    message = f"--download fetches CIFAR only; for {name} give --data DIR"
    check_refused(here, f"reproduce {name} --download", {}, message)


def test_a_broken_file_of_features_is_named(here):
    (here / "cifar").mkdir()
    files = {"cifar/features.npz": b"no archive"}
    message = "cifar/features.npz: not a complete .npz file of plain arrays"
    check_refused(here, "reproduce cifar --data .", files, message)


@pytest.mark.parametrize("output", ["file", "file/deeper", "file/deeper/still"])
def test_an_output_that_is_no_folder_is_refused_before_anything_is_read(here, output, monkeypatch):
    monkeypatch.setattr(
        loading, "load_images", lambda *_, **__: pytest.fail("data were looked for")
    )
    message = f"{output}: cannot write there: "
    check_refused(here, f"reproduce cifar --data . -o {output}", {"file": "mine"}, message)


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ("--data . -o out", "out"),
        ("--data . -o out/deep", "out/deep"),
        ("--download --data out -o new", "out"),
    ],
)
def test_a_place_of_others_is_refused_before_anything_is_read(here, options, place, monkeypatch):
    """So is the one that a download would go to."""
    monkeypatch.setattr(
        loading, "load_images", lambda *_, **__: pytest.fail("data were looked for")
    )
    (here / "out").mkdir()
    # Root may write anywhere, so rights alone would not do.
    monkeypatch.setattr(
        os, "access", lambda path, mode: mode != os.W_OK or Path(path).name != "out"
    )
    message = f"{place}: cannot write there: "
    check_refused(here, f"reproduce cifar {options}", {}, message)
    assert "you may not write in" in rankshot(f"reproduce cifar {options}").err


def test_a_report_needs_its_extra_before_anything_is_read(here, monkeypatch):
    def missing():
        raise RankshotError("a report needs jinja2")

    monkeypatch.setattr(page, "require_jinja2", missing)
    check_refused(here, "reproduce cifar --data .", {}, "a report needs jinja2")


# -------------------------------------------------------------------- where data come from


@pytest.mark.parametrize("asked", [False, True])
def test_cifar_is_downloaded_only_if_asked(here, reproduction, monkeypatch, asked):
    built = []

    def build(directory, announce):
        announce(1, 2, "images")
        built.append(directory)
        return reproduction.data / "cifar" / "features.npz"

    def stop(study, directory, announce):
        raise RankshotError(f"{study.data!r}; classifiers go to {directory}")

    monkeypatch.setattr(loading, "build_cifar_features", build)
    monkeypatch.setattr(pipeline, "reproduce", stop)
    given = shlex.split("reproduce cifar --data d" + " --download" * asked)
    done = rankshot(given)
    assert done.status == 2
    assert built == [Path("d")] * asked
    if asked:
        # Where the output goes if nobody says.
        assert "classifiers go to reproduction-cifar/classifiers" in done.err
        assert "cifar: 1200 + 600 images of 100 seen classes, 200 of 10 new ones" in done.err
    else:
        assert "there is no such file" in done.err
        assert list(here.iterdir()) == []
