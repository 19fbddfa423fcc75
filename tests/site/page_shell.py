"""Runs the shell commands of a page: `rankshot` in this process, other programs by bash."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from contextlib import contextmanager, nullcontext
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace
from unittest.mock import patch

from markdown_fences import ROOT

import command_line
from command_line import Done
from rankshot import datasets
from rankshot.datasets import write_example_files

sys.path.append(str(ROOT / "survey" / "tests"))
from survey_command import run_command

PROGRAMS = {"rankshot": command_line.rankshot, "rankshot-survey": run_command}
"""The commands that run in this process."""

HARMLESS = {
    *("cat", "cd", "cp", "echo", "export", "head", "ls", "mkdir"),
    *("printf", "python", "rm", "sed", "test"),
}
"""Programs that bash may run. Others must be marked as not run."""
WORDS = "FUNCTION() { pwd; env -0; printf '\\1'; printf '%s\\0' \"$@\"; }; "
"""Prints the environment of a command and its words, as bash expands them."""

SIX_PEOPLE = ({},) * 6


class Shell:
    """Remembers the folder and the variables from one command to the next.

    Attributes
    ----------
    people : sequence of dict
        The participants of surveys: what each says to some targets.
    """

    def __init__(self):
        self.people = SIX_PEOPLE

    def run(self, command):
        """Run one command, and return its exit status and output."""
        tokens = split_words(command)
        program = next(word for word in tokens if not re.match(r"\w+=", word))
        alone = not any(set(word) <= set("|&;<>()") for word in tokens)
        if program in PROGRAMS and alone:
            return self._run_here(command, program)
        if program == "pip" and alone:
            return check_installation(tokens)
        if program == "make" and alone:
            return run_bash(f"make --dry-run --directory {shlex.quote(str(ROOT))} {tokens[1]}")
        if program in HARMLESS or program in PROGRAMS:
            return run_bash(command)
        return Done(1, "", f"the tests cannot run {program!r}: say <!-- not run: REASON -->")

    def _run_here(self, command, program):
        output = subprocess.check_output(
            ["bash", "-c", WORDS.replace("FUNCTION", program) + command], text=True
        )
        variables, _, words = output.partition("\n")[2].partition("\1")
        with (
            patch.dict(os.environ, parse_variables(variables)),
            patch.object(datasets, "write_example_files", copy_example_files),
            people_who_answer(self.people),
        ):
            # A page leaves out that the reader says yes.
            return PROGRAMS[program](one_process(words.split("\0")[:-1]), typed="y\n")


def one_process(words):
    """Let a command use this process: others would take seconds to start."""
    if "--workers" in words:
        words[words.index("--workers") + 1] = "1"
    return words


@cache
def make_example_files():
    """Return a folder with the example files, which take some seconds: pages share them."""
    folder = Path(mkdtemp())
    write_example_files(folder)
    return folder


def copy_example_files(folder):
    for path in make_example_files().iterdir():
        shutil.copy(path, folder)


def split_commands(text):
    """Return the commands of a block: lines, where a backslash or a quote may join several."""
    commands, lines = [], []
    for line in text.splitlines():
        lines.append(line)
        command = "\n".join(lines)
        if line.endswith("\\") or bash_wants_more(command):
            continue
        lines = []
        if split_words(command):
            commands.append(command)
    if lines:
        raise AssertionError(f"the last command has no end: {command}")
    return commands


def bash_wants_more(command):
    if not any(mark in command for mark in "'\"<({`"):
        return False
    return bool(subprocess.run(["bash", "-nc", command], capture_output=True, check=False).stderr)


def split_words(command):
    lexer = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return list(lexer)


def run_bash(command):
    """Run a command by bash, and take over the folder and the variables that it leaves."""
    after = Path(os.environ["TMPDIR"]) / "after-the-command"
    script = f"{command}\nstatus=$?; {{ pwd; env -0; }} > {shlex.quote(str(after))}; exit $status"
    folders = [str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = {**os.environ, "PATH": os.pathsep.join(folders)}
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env=environment, check=False
    )
    folder, _, variables = after.read_text(encoding="utf-8").partition("\n")
    os.chdir(folder)
    os.environ.update(parse_variables(variables))
    return Done(done.returncode, done.stdout, done.stderr)


def parse_variables(text):
    """Return the variables in the output of ``env -0``, except those that bash itself changes."""
    pairs = (entry.split("=", 1) for entry in text.split("\0") if "=" in entry)
    return {name: value for name, value in pairs if name not in {"_", "PATH", "PWD", "SHLVL"}}


def check_installation(words):
    """Check the extras of an installation, which the tests do not repeat."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = re.findall(r"(?:\.|rankshot)\[(.+?)\]", " ".join(words))
    unknown = {name for names in asked for name in names.split(",")} - set(
        project["optional-dependencies"]
    )
    return Done(int(bool(unknown)), "", f"no such extras: {sorted(unknown)}" if unknown else "")


@contextmanager
def people_who_answer(people=SIX_PEOPLE):
    """Let ``rankshot-survey serve`` end when these people have answered all questions."""
    import rankshot_survey.web.app as app_module
    from rankshot.web import server

    def open_port(host, port):
        return nullcontext(SimpleNamespace(getsockname=lambda: (host, port)))

    participation = app_module.Participation
    clock = count(1_800_000_000, 7).__next__

    def participate(study, database):
        return participation(study, database, clock)

    with (
        patch.object(app_module, "Participation", participate),
        patch.object(server, "open_port", open_port),
        patch.object(server, "serve", lambda app, port: take_part(app, people)),
    ):
        yield


def take_part(app, people):
    """Answer as these people; the first of them has the id ``ID``, as on the pages."""
    from asgi import Client

    for number, opinions in enumerate(people):
        name = f"p{number}" if number else "ID"
        ids = f"participant={name}&PROLIFIC_PID={name}&STUDY_ID=s&SESSION_ID=session-{name}"
        client = Client(app, address=f"192.0.2.{number}", headers={"host": "127.0.0.1:8000"})
        # A study that is closed has no button to start.
        if 'action="/start"' in client.get(f"/?{ids}").text:
            answer_all(client, ids, number, opinions)


def answer_all(client, ids, number, opinions):
    from asgi_client import begin, form_of

    home = begin(client, ids)
    while 'name="place"' in (page := client.get(home).text):
        heading = re.search("<h1[^>]*>(.*?)</h1>", page, re.DOTALL)[1]
        shown = re.findall(r'data-name="([^"]+)"', page)
        usual = sorted(shown)[number % 2 :]
        order = next((order for target, order in opinions.items() if target in heading), usual)
        places = [str(order.index(item) + 1) if item in order else "" for item in shown]
        form = form_of(page)
        reply = client.post(form.action, {**form.fields, "place": places})
        assert reply.status == 303, reply.text
