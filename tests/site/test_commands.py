"""The code on the pages of the site: it runs, page by page, in a folder that is empty at first.

So a page makes or obtains all files that it reads. `markdown_fences` says how a page marks what is
not run. Examples with ``>>>`` share their names, as in one session; other programs run alone.
"""

import doctest
import json
import os
import re
import tomllib
import warnings
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import pytest
from markdown_fences import ROOT, find_pages, read_fences
from page_shell import Shell, split_commands

import rankshot as rs
import rankshot.cli
import rankshot_survey.cli
from rankshot.sources import read_look_up

PAGES = [page for page in find_pages() if read_fences(page)]
SHELL = {"bash", "console", "sh"}
BOXES = str.maketrans("", "", "┏┳┓┃┡╇┩│└┴┘━─╈╞╡├┼┤")
PEOPLE = {
    "survey/README.md": [
        {"breakfast": morning.split(), "dinner": evening.split()}
        for morning, evening in (
            ("coffee tea juice water beer", "beer water juice tea coffee"),
            ("coffee tea juice water beer", "beer water juice tea coffee"),
            ("tea juice", "water juice"),
        )
    ],
}
"""For a page, who takes part in its survey, and what they say to each target."""


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """A shell in an empty folder; what it changes is restored in the end."""
    (tmp_path / "page").mkdir()
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "page")
    for name in ("OPENAI_API_KEY", "RANKSHOT_SURVEY_TOKEN", "RANKSHOT_SURVEY_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    with patch.dict(os.environ, TMPDIR=str(tmp_path / "other"), COLUMNS="120"):
        yield Shell()


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_runs(page, shell):
    shell.people = PEOPLE.get(page, shell.people)
    printed, session = "", {"__name__": "__main__"}
    for fence in read_fences(page):
        try:
            printed = run_fence(fence, shell, printed, session)
        except AssertionError as error:
            raise AssertionError(f"{fence.place}: {error}") from None
        except Exception as error:
            raise AssertionError(f"{fence.place}: {error}") from error


def run_fence(fence, shell, printed, session):
    """Run a block, or check it; return what it prints."""
    if fence.note is None and fence.language == "python" and ">>>" in fence.text:
        run_examples(fence, session)
        return printed
    if fence.note is None and fence.language in SHELL:
        return run_commands(fence.text, shell)
    if fence.note == "output":
        if not is_printed(fence.text, printed, rounded=fence.reason == "rounded"):
            raise AssertionError(f"the block before prints something else:\n{printed}")
    elif fence.note == "file":
        Path(fence.reason).write_text(fence.text, encoding="utf-8")
        READERS[fence.reason.rpartition(".")[2]](fence.text)
    elif fence.note is None and fence.language in READERS:
        with redirect_stdout(StringIO()) as out:
            READERS[fence.language](fence.text)
        return out.getvalue() or printed
    return printed


def is_printed(text, printed, *, rounded=False):
    """Compare as doctests do: ``...`` is anything. White space and lines of tables do not count."""
    if rounded:
        printed = re.sub(r"\d+\.\d{4,}", lambda number: f"{float(number[0]):.3f}", printed)
    found = " ".join(printed.translate(BOXES).split())
    parts = [re.escape(" ".join(part.split())) for part in text.translate(BOXES).split("...")]
    return re.search(".*".join(parts), found)


def run_commands(text, shell):
    printed = ""
    for command in split_commands(text):
        done = shell.run(command)
        if done.status:
            raise AssertionError(f"{command}\nexit status {done.status}\n{done.out}{done.err}")
        printed += done.out
    return printed


# ---- Blocks that are no commands


def run_examples(fence, session):
    """Run lines with prompts, and compare what they print."""
    examples = doctest.DocTestParser().get_doctest(
        fence.text, session, fence.place, fence.page, fence.line
    )
    examples.globs = session
    report = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    with ignore_deprecations():
        failed = runner.run(examples, out=report.append, clear_globs=False).failed
    if failed:
        raise AssertionError("".join(report))


def run_python(text):
    """Run a program."""
    with ignore_deprecations():
        exec(compile(text, "block", "exec"), {"__name__": "__main__"})


@contextmanager
def ignore_deprecations():
    """Allow the exporter of torch that needs no further package."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def read_toml(text):
    """Read a study, or a part of one in place of that of the study of the page."""
    from rankshot_survey import study_files

    path = Path("study.toml")
    given = tomllib.loads(text)
    document = given if "title" in given else study_files.parse_toml(path) | given
    with patch.object(study_files, "parse_toml", lambda _: document):
        study_files.read_study(path)


def read_json(text):
    """Read lines of a rankings file, or any JSON."""
    values = [json.loads(line) for line in text.splitlines()] if "\n{" in text else json.loads(text)
    lines = values if isinstance(values, list) else [values]
    if all("ranking" in line for line in lines):
        Path("pasted.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        assert len(rs.read_rankings("pasted.jsonl")) == len(lines)


def read_csv(text):
    """Read a table of words to look up, as ``--names`` takes it."""
    Path("pasted.csv").write_text(text, encoding="utf-8")
    classes = [line.split(",")[0] for line in text.splitlines()[1:]]
    assert list(read_look_up("pasted.csv", classes)) == classes


def read_bibtex(text):
    """Read one entry, with one field per line."""
    assert re.fullmatch(r"@\w+\{\w+,\n(?: +\w+ *= \{.+\},\n)+\}\n", text), "no entry of BibTeX"


READERS = {
    "bibtex": read_bibtex,
    "csv": read_csv,
    "json": read_json,
    "jsonl": read_json,
    "py": run_python,
    "python": run_python,
    "toml": read_toml,
}


@pytest.mark.parametrize("page", PAGES)
def test_every_block_has_a_language_and_is_run_or_says_why_not(page):
    unsaid = [
        f"{fence.place}: {fence.language or 'no language'}"
        for fence in read_fences(page)
        if fence.note is None
        and fence.language not in {*SHELL, *READERS}
        and not fence.language.startswith("{")
        # The texts on this page are read by tests/test_api_reference.py.
        and (fence.language, page) != ("text", "docs/api/files.md")
    ]
    assert unsaid == []


# ---- Commands inside of sentences, and in blocks that are not run


def find_named_commands(page):
    """Return the words of all commands that a page names without running them."""
    text = (ROOT / page).read_text(encoding="utf-8")
    inline = re.findall(r"(?<!`)`(rankshot(?:-survey)? [^`\n]+)`(?!`)", text)
    unrun = [
        fence.text.replace("\\\n", " ")
        for fence in read_fences(page)
        if fence.note == "not run" and fence.language != "python"
    ]
    blocks = re.findall(r"(?m)^(rankshot(?:-survey)? [a-z]+ .+)", "\n".join(unrun))
    return [re.split(r"[|&;<>#]", command)[0].split() for command in inline + blocks]


APPS = {"rankshot": rankshot.cli.app, "rankshot-survey": rankshot_survey.cli.app}


def find_fault(words):
    """Return the first word that is no subcommand or no option, or None."""
    command, words = APPS[words[0]], iter(words[1:])
    while inner := {k: v for k, v in command.resolved_commands().items() if k[0] != "-"}:
        word = next(words, None)
        # A word in capitals stands for any command.
        if word is None or word.isupper() or word in {"…", "--help", "--version"}:
            return None
        if word not in inner:
            return word
        command = inner[word]
    arguments = command.assemble_argument_collection()
    options = {name for each in arguments for name in each.names} | {"--help"}
    return next((w for w in words if re.match(r"--?[a-z]", w) and w not in options), None)


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_are_named_exist_with_their_options(page):
    faults = [(" ".join(words), find_fault(words)) for words in find_named_commands(page)]
    assert [fault for fault in faults if fault[1]] == []
