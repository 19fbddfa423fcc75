"""The command, as a person types it."""

import os
import subprocess
import sys

import pytest

import rankshot as rs
from command_line import rankshot
from rankshot.cli import COMMANDS, _build_command, _build_survey

MOST_OPTIONS = 16
"""What a person can still read through, without --help."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "seen.txt").write_text("# animals\ntiger\nwolf\nseal\nbus\nlawn_mower\n\n")
    (tmp_path / "new.txt").write_text("cat  # the pet\ntruck\n")
    (tmp_path / "vectors.txt").write_text(
        "cat 1 0\ntruck 0 1\ntiger 1 .1\nwolf 1 .5\nseal 1 .9\nbus .1 1\nmower .5 1\nlawn .2 1\n"
    )
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "vectors.txt").write_text((tmp_path / "vectors.txt").read_text())
    (tmp_path / "table.csv").write_text(
        "target,tiger,wolf,seal,bus,lawn_mower\ncat,.9,.8,.3,,.1\ntruck,0,0,0,1,1\n"
    )
    return tmp_path


def rank(*words):
    usual = {"--seen": "seen.txt", "--new": "new.txt", "-o": "out.jsonl"}
    pairs = [pair for pair in usual.items() if pair[0] not in words]
    return rankshot(["rank", *(word for pair in pairs for word in pair), *words])


def test_rank_writes_the_rankings_of_every_source_and_shows_the_first(folder):
    done = rank(
        "--source", "wordnet", "--source", "vectors:vectors.txt", "--source",
        "table:table.csv",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert done.err == ""
    rankings = rs.read_rankings(
        folder / "out.jsonl", items=["tiger", "wolf", "seal", "bus", "lawn_mower"]
    )
    assert rankings.source_names == ("table", "vectors", "wordnet-path")
    assert rankings.target_names == ("cat", "truck")
    by_vectors = rankings.select(source="vectors", target="cat").orders()[0]
    assert by_vectors == ["tiger", "wolf", "seal", "lawn_mower", "bus"]
    by_table = rankings.select(source="table")
    assert by_table.orders() == [
        ["tiger", "wolf", "seal", "lawn_mower"],
        [["bus", "lawn_mower"], ["tiger", "wolf", "seal"]],
    ]
    assert by_table.is_subset.tolist() == [True, False]
    assert rankings.select(source="wordnet-path", target="cat").orders()[0][0] == "tiger"
    for text in ("covers 90% of all pairs", "6 rankings written to out", "tiger > wolf > seal"):
        assert text in done.out, text


def test_the_help_shows_the_three_parts_with_whole_lines(folder):
    out = rankshot("--help").out
    sections = [
        "Add classes to a classifier:",
        "Analyse rankings:",
        "Collect rankings from people:",
    ]
    places = [out.index(text) for text in [*sections[:2], "\n  consensus ", *sections[2:]]]
    assert places == sorted(places)
    assert "..." not in out.partition(sections[0])[2]


def test_no_command_has_more_than_sixteen_options():
    groups = {name: _build_command(name) for name in (each.__name__ for each in COMMANDS)}
    groups |= {f"survey {name}": each for name, each in _build_survey().commands.items()}
    counts = {
        name: sum(option.param_type_name == "option" for option in command.params)
        for name, command in groups.items()
    }
    assert {name: n for name, n in counts.items() if n > MOST_OPTIONS} == {}


def test_a_language_model_is_asked_only_after_its_estimate(folder):
    done = rank("--source", "llm:some-model")
    assert done.status == 1
    assert "10 calls" in done.out
    assert not (folder / "out.jsonl").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--source", "wordnt"), "no source 'wordnt' (did you mean 'wordnet'?)"),
        (("--source", "vectors"), "source 'vectors' needs a file, as in vectors:FILE"),
        (("--source", "llm"), "source 'llm' needs a model, as in llm:MODEL"),
        (("--source", "glove:50"), "source 'glove' takes no file or name; it was given as 'glov"),
        (("--source", "glove", "--names-out", "n.csv"), "--names-out is for --source wordnet"),
        (("--source", "wordnet", "--source", "wordnet"), "given more than once: 'wordnet'"),
        (
            ("--source", "vectors:vectors.txt", "--source", "vectors:more/vectors.txt"),
            "two sources have the name 'vectors'",
        ),
        (("--names", "odd.csv"), "odd.csv:3: no class 'sea' (did you mean 'seal'?)"),
        (("--names-out", "out.csv", "--similarity-out", "out.csv"), "-out must be two files"),
        (("--k", "9"), "k must be a whole number from 1 to 5, not 9"),
    ],
)
def test_bad_input_ends_with_a_message_and_no_traceback(folder, words, message):
    (folder / "odd.csv").write_text("class,look_up\nseal,seal.n.09\nsea,seal.n.09\n")
    done = rank(*words)
    assert done.status == 2
    assert "Traceback" not in done.err
    assert message in " ".join(done.err.split())
    assert not (folder / "out.jsonl").exists()


def test_names_are_shown_as_they_are(folder):
    """Square brackets are not markup, and a # inside a name does not start a comment."""
    (folder / "seen.txt").write_text("[b]og\n[/red]x\nC#\n")
    (folder / "new.txt").write_text("cat\n")
    (folder / "table.csv").write_text("target,[b]og,[/red]x,C#\ncat,3,2,1\n")
    done = rank("--source", "table:table.csv")
    assert done.status == 0, done.err
    assert "[b]og > [/red]x > C#" in done.out


# ------------------------------------------------------------------ as a process of its own

COMMAND = [sys.executable, "-m", "rankshot.cli"]


def test_help_loads_nothing_heavy():
    """So that it is there at once: each command imports what it needs when it runs."""
    code = (
        "import atexit, sys; from rankshot.cli import main; sys.argv = ['rankshot', '--help']; "
        "atexit.register(lambda: print(*{name.split('.')[0] for name in sys.modules})); main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    text, modules = done.stdout.rstrip().rsplit("\n", 1)
    assert "Usage: rankshot" in text
    loaded = set(modules.split())
    assert {"typer", "rankshot"} <= loaded
    assert not loaded & {"numpy", "scipy", "sklearn", "jinja2", "sqlalchemy", "fastapi", "pyarrow"}


@pytest.mark.parametrize(
    ("words", "status", "out", "err"),
    [
        (["--version"], 0, f"rankshot {rs.__version__}\n", ""),
        (
            ["rank", "--seen", "none.txt", "--new", "new.txt", "-o", "out.jsonl"],
            2,
            "",
            "rankshot: none.txt: No such file or directory\n",
        ),
    ],
)
def test_the_exit_status_and_the_streams_of_a_process(folder, words, status, out, err):
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (status, out, err)


def test_a_reader_that_stops_reading_is_no_error(folder):
    """As ``rankshot rank --help | head -1`` is, where the pipe is closed before the end."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        done = subprocess.run(
            [*COMMAND, "rank", "--help"],
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
