"""What the commands of ``rankshot survey`` share: opening the database of a study."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rankshot.cli.console import require_packages, say
from rankshot.core.errors import RankshotError

if TYPE_CHECKING:
    from rankshot.survey.store.database import Database
    from rankshot.survey.study import Study

DATABASE = "RANKSHOT_SURVEY_DATABASE"


def require_extra() -> None:
    """Refuse to go on without the packages that the survey needs."""
    needed = "fastapi jinja2 markdown_it pydantic python_multipart sqlalchemy uvicorn"
    require_packages("survey", needed)


def find_database(study: Path, database: str | None) -> Path | str:
    """Return the file of a study's database, or its URL, which may be in the environment."""
    database = database or os.environ.get(DATABASE)
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


def require_written(study: Study, path: Path) -> None:
    """Refuse a study that still has the placeholders of a new one."""
    from rankshot.survey.study import CONSENT_PLACEHOLDER, TITLE_PLACEHOLDER

    texts = [study.consent, *(text.consent or "" for text in study.translations.values())]
    found = [f"{CONSENT_PLACEHOLDER} in the consent"] * (CONSENT_PLACEHOLDER in "".join(texts))
    found += [f"the title {TITLE_PLACEHOLDER!r}"] * (study.title == TITLE_PLACEHOLDER)
    if found:
        raise RankshotError(
            f"{path}: the study still has {' and '.join(found)}; replace it, or try the study with "
            "`rankshot survey serve --pilot`"
        )


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
