"""The command ``rankshot``: reads options, calls one function of the library, prints.

A command is a function whose signature has the options and whose docstring has their help. It
imports the library inside the function, so that ``--help`` is quick.
"""

from typing import Annotated

from rankshot import __version__
from rankshot.core.errors import RankshotError

try:
    from cyclopts import Parameter

    from rankshot.cli.classify import classify
    from rankshot.cli.consensus import consensus
    from rankshot.cli.demo import demo
    from rankshot.cli.leaderboard import leaderboard
    from rankshot.cli.rank import rank
    from rankshot.cli.recognise import recognise
    from rankshot.cli.runs import doctor, export, report, review
    from rankshot.cli.score import score
    from rankshot.core.command import make_app, run
except ImportError as error:
    message = f"the command needs {error.name}: pip install 'rankshot[cli]'"
    raise SystemExit(message) from None

ABOUT = """Add classes to a classifier that you already have; analyse rankings and votes.

For each new class, rankshot needs rankings of the classes that the classifier knows: from its \
dictionary, a language model, WordNet, or people.
"""
COMMANDS = {
    "Add classes to a classifier": (
        *(recognise, classify, score, rank),
        *(review, report, doctor, export, demo),
    ),
    "Analyse rankings": (consensus, leaderboard),
}
app = make_app("rankshot", ABOUT, __version__, COMMANDS)


@app.command(show=False)
def survey(*_words: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> None:
    """Say where the surveys of 0.3 are now."""
    raise RankshotError("surveys are a package of their own: pip install rankshot-survey")


def main() -> None:
    """Run the command. Bad input ends it with a message and exit status 2, without a traceback."""
    run(app)
