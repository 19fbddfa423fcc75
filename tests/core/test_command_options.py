"""Arguments that an error proposes, as options of a command."""

from rankshot.core.command import _spell_option
from rankshot.core.errors import NO_VALUE, InputError


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
