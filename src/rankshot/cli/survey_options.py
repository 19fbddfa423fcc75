"""What the commands of ``rankshot survey`` share: their arguments, and opening the database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankshot.cli.console import say
from rankshot.core.errors import RankshotError

if TYPE_CHECKING:
    from rankshot.survey.store.database import Database
    from rankshot.survey.study import Study

DATABASE = "RANKSHOT_SURVEY_DATABASE"
StudyFile = Annotated[Path, typer.Argument(metavar="STUDY.toml", help="The file of the study.")]
DatabaseOption = Annotated[
    str | None,
    typer.Option(
        envvar=DATABASE,
        show_default=False,
        show_envvar=False,
        help="An SQLite file or a postgresql:// URL. The default is an SQLite file next to the "
        f"study. Set a URL with a password in the environment variable {DATABASE} instead.",
    ),
]
Ids = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID...",
        show_default=False,
        help="Participants: ids of the platform, completion codes or raters.",
    ),
]
PilotOption = Annotated[
    bool, typer.Option("--pilot", help="Only the participants of the pilot, not the others.")
]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask whether this is really meant.")]


def require_extra() -> None:
    """Refuse to go on without the packages that the survey needs."""
    needed = "fastapi jinja2 markdown_it pydantic python_multipart sqlalchemy uvicorn"
    for name in needed.split():
        if find_spec(name) is None:
            raise RankshotError(f"the survey needs {name}: pip install 'rankshot[survey]'")


def find_database(study: Path, database: str | None) -> Path | str:
    """Return the file of a study's database, or its URL."""
    if not database:
        return study.with_suffix(".sqlite")
    return database if "://" in database else Path(database)


def open_database(study: Path, database: str | None, **options: bool) -> Database:
    """Open the database of a study; say so if answers may be missing from it."""
    from rankshot.survey.store.database import Database
    from rankshot.survey.store.sqlite_files import MissingDatabaseError

    try:
        opened = Database(find_database(study, database), **options)
    except MissingDatabaseError as error:
        raise RankshotError(f"{error}; `rankshot survey serve` creates it") from None
    warn(opened.doubt)
    return opened


def warn(problem: str | None) -> None:
    """Print a warning, if there is one."""
    if problem is not None:
        from rich.console import Console

        say(f"Warning: {problem}", Console(stderr=True))


@contextmanager
def open_survey(
    study: Path, database: str | None, **options: bool
) -> Iterator[tuple[Study, Database]]:
    """Read the study and open its database while the block runs."""
    require_extra()
    from rankshot.survey.study_files import read_study

    definition = read_study(study)
    with closing(open_database(study, database, **options)) as opened:
        yield definition, opened
