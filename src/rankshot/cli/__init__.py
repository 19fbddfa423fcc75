"""The command ``rankshot``."""

from __future__ import annotations

try:
    import rich  # noqa: F401
    import typer
except ImportError as error:
    message = f"the command needs {error.name}: install it with pip install 'rankshot[cli]'"
    raise SystemExit(message) from None

from rankshot.cli.classify import classify
from rankshot.cli.consensus import consensus
from rankshot.cli.console import fail
from rankshot.cli.demo import demo
from rankshot.cli.explain import explain
from rankshot.cli.rank import rank
from rankshot.cli.report import report
from rankshot.ranking.errors import RankshotError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Zero-shot classification with semantic rankings.",
)
for command in (demo, rank, consensus, classify, explain, report):
    app.command()(command)


def main() -> None:
    """Run the command; bad input ends it with a message and status 2, never a traceback."""
    try:
        app()
    except RankshotError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
