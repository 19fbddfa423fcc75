"""The command, as a person types it."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rankshot as rs
from command_line import rankshot
from rankshot.cli import COMMANDS, _build_command

MOST_OPTIONS = 16
"""What a person can still read through, without --help."""


def test_the_help_shows_the_two_parts_with_whole_lines(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out = rankshot("--help").out
    sections = [
        "Add classes to a classifier:",
        "Analyse rankings:",
    ]
    places = [out.index(text) for text in [*sections, "\n  consensus "]]
    assert places == sorted(places)
    assert "..." not in out.partition(sections[0])[2]


def test_no_command_has_more_than_sixteen_options():
    """Besides those that all jobs over many parts share."""
    of_jobs = {"workers", "scheduler", "progress", "overwrite", "on_error"}
    groups = {name: _build_command(name) for name in (each.__name__ for each in COMMANDS)}
    counts = {
        name: sum(
            option.param_type_name == "option" and option.name not in of_jobs
            for option in command.params
        )
        for name, command in groups.items()
    }
    assert {name: n for name, n in counts.items() if n > MOST_OPTIONS} == {}


OTHERS = {"--resources", "--format", "--file", "--clean", "--if-exists", "--dbname"}
OTHERS |= {"--help", "--version"}
"""Options of `dask worker` and of PostgreSQL."""


OPTION = r"(?<=[ `])--[a-z][a-z-]*[a-z](?![\w-])"


def test_texts_name_only_options_that_exist():
    commands = [_build_command(each.__name__) for each in COMMANDS]
    known = {name for command in commands for each in command.params for name in each.opts}
    found = {}
    for path in Path(rs.__file__).parent.rglob("*.py"):
        if path.parent.name == "pages":
            # Colours of style sheets are named in the same way.
            continue
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if re.search(OPTION, text) else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for option in re.findall(OPTION, node.value):
                    found[option] = f"{path.name}:{node.lineno}"
    assert len(found) > 30
    odd = found.keys() - known - OTHERS
    assert [f"{option} in {found[option]}" for option in odd] == []


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
        (["consensus", "none.jsonl"], 2, "", "rankshot: none.jsonl: No such file or directory\n"),
    ],
)
def test_the_exit_status_and_the_streams_of_a_process(words, status, out, err):
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (status, out, err)


def test_a_reader_that_stops_reading_is_no_error():
    """As ``rankshot --help | head -1`` is, where the pipe is closed before the end."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        done = subprocess.run(
            [*COMMAND, "--help"],
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
