"""The command ``rankshot-survey``: reads options, calls one function, prints.

Each command imports what it needs when it runs, so that the help is quick.
"""

from __future__ import annotations

from importlib.metadata import version

from cyclopts import App, Parameter

from rankshot.core.command import run
from rankshot_survey.cli import people, results, studies

app = App(
    name="rankshot-survey",
    help="Collect rankings from people with your own web page.",
    version=lambda: version("rankshot-survey"),
    default_parameter=Parameter(negative=()),
    help_format="plaintext",
)
for command in (studies.new, studies.catalogue, studies.serve, results.status, results.export):
    app.command(command)
app.command(studies.backup)
app.command(studies.set_, name="set")
app.command(people.app)


def main() -> None:
    """Run the command. Bad input ends it with a message and exit status 2, without a traceback."""
    run(app)
