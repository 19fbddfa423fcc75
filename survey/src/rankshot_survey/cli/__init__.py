"""The command ``rankshot-survey``: reads options, calls one function, prints.

Each command imports what it needs when it runs, so that the help is quick.
"""

from importlib.metadata import version

from rankshot.core.command import make_app, run
from rankshot_survey.cli import people, studies

app = make_app(
    "rankshot-survey",
    "Collect rankings from people on web pages that you host.",
    version("rankshot-survey"),
    {
        "Make and run a study": (studies.new, studies.serve, studies.set_),
        "Answers": (studies.status, studies.export, studies.backup),
    },
)
app.command(people.app)


def main() -> None:
    """Run the command. Bad input ends it with a message and exit status 2, without a traceback."""
    run(app)
