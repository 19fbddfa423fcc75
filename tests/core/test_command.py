"""The command: what an error becomes, and which option it names."""

import pickle
import signal

import pytest

from rankshot.core.command import _spell_option, make_app, run
from rankshot.core.errors import NO_VALUE, InputError, RankshotError


def work(scores: str, /, *, min_votes: int = 1, overwrite: bool = False):
    """Do some work.

    Parameters
    ----------
    scores
        A file.
    min_votes
        The least number of votes.
    overwrite
        Replace files.
    """
    raise {
        "number": InputError("min_votes", min_votes, "must be 2 or more"),
        "other": InputError("classes", "x", "must be 'new' or 'all'"),
        "choice": InputError("file", "a", "exists", choices={"overwrite": True, "min_votes": 3}),
        "result": RankshotError("there is no result"),
        "file": FileNotFoundError(2, "No such file or directory", "test_comand.py"),
    }[scores]


@pytest.fixture
def fails(capsys):
    before = signal.getsignal(signal.SIGTERM)

    def call(*words):
        app = make_app("tool", "A tool.", "1", {"Work": [work]})
        with pytest.raises(SystemExit) as caught:
            run(app, words)
        return caught.value.code, capsys.readouterr().err

    yield call
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("work number", "--min-votes"),
        ("work other", "classes"),
        ("work number --min-votes two", "--min-votes"),
        ("work number --min-vote 2", "--min-votes"),
        ("work number --min-votes 1 --min-votes 2", "--min-votes"),
        ("wrok", '"work"'),
        ("work", "scores"),
    ],
)
def test_bad_input_ends_with_status_2_and_names_the_option(fails, words, named):
    status, text = fails(*words.split())
    assert status == 2
    assert named.casefold() in text.casefold()
    assert "Traceback" not in text


def test_other_errors_are_shown_as_they_are(fails):
    assert fails("work", "result") == (2, "tool: there is no result\n")


def test_a_remedy_is_shown_as_options_or_as_arguments(fails):
    assert fails("work", "choice")[1].endswith("; --overwrite, or --min-votes 3\n")
    error = InputError("file", "a", "exists", choices={"overwrite": True})
    assert str(error).endswith("; overwrite=True")


def test_a_similar_file_is_suggested(fails, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_command.py").touch()
    status, text = fails("work", "file")
    assert status == 2
    assert "'test_command.py'" in text


def rank(*, column: list[str] | None = None, level: float = 0.95) -> None:
    """A command whose --column stands for several parameters."""


def test_proposed_arguments_are_options_of_the_command():
    assert _spell_option(rank, "rater", "judge id") == "--column 'rater=judge id'"
    assert _spell_option(rank, "level", "0.9") == "--level 0.9"
    assert _spell_option(rank, "rater", NO_VALUE) == "rater"
    assert _spell_option(None, "rater", "judge") == "rater='judge'"


def test_an_error_may_propose_several_values_of_one_argument():
    error = InputError("rater", "a, b", "may all be", choices={"rater": ("a", "b"), "ignore": "a"})
    spelled = []
    error.format(lambda name, value: spelled.append((name, value)) or name)
    assert spelled[1:] == [("rater", "a"), ("rater", "b"), ("ignore", "a")]


def test_an_error_of_another_process_has_the_same_message():
    error = InputError("file", NO_VALUE, "is empty", where="votes.csv")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
