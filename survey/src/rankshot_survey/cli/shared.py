"""What several commands share: options, the database of a study, and what is printed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Console

from rankshot.core.errors import InputError

if TYPE_CHECKING:
    from rankshot_survey.overview import Overview
    from rankshot_survey.store.database import Database
    from rankshot_survey.study import Study

StudyFile = Annotated[Path, Parameter(help="The study file, such as study.toml.")]
Place = Annotated[
    str | None,
    Parameter(
        env_var="RANKSHOT_SURVEY_DATABASE",
        help="An SQLite file or a postgresql:// URL. The default is an SQLite file next to the "
        "study. If the URL contains a password, give it in the environment variable.",
    ),
]
Output = Annotated[Path, Parameter(alias="-o")]
Pilot = Annotated[bool, Parameter(help="Include only pilot participants.")]
Yes = Annotated[bool, Parameter(help="Skip the confirmation prompt.")]
Ids = Annotated[
    list[str], Parameter(help="Participants: platform ids, completion codes or rater names.")
]


def say(text: str) -> None:
    """Print text unchanged: without highlighting, markup or added line breaks."""
    Console().print(text, highlight=False, markup=False, soft_wrap=True)


def confirm(question: str, *, yes: bool) -> None:
    """Ask whether something is meant that cannot be undone; end the command if it is not."""
    if yes:
        return
    say(f"{question} [y/N]")
    # Without a terminal, nobody answers.
    if sys.stdin.readline().strip().casefold() not in ("y", "yes"):
        say("Nothing was changed.")
        raise SystemExit(1)


def check_output(path: Path, endings: Sequence[str], parameter: str = "output") -> None:
    """Refuse an output file with another ending, or in no folder, before anything is read."""
    rule = f"must end in {' or '.join(endings)}"
    require(path.suffix in endings, parameter, path, rule)
    require(path.resolve().parent.is_dir(), parameter, path, "must be in a folder that exists")


def require(holds: object, parameter: str, value: object, rule: str) -> None:
    """Refuse the value of an option."""
    if not holds:
        raise InputError(parameter, str(value) if isinstance(value, Path) else value, rule)


def find_database(study: Path, database: str | None) -> Path | str:
    """File of a study's database, or its URL."""
    if not database:
        return study.with_suffix(".sqlite")
    return database if "://" in database else Path(database)


@contextmanager
def open_survey(
    study: Path, database: str | None, **options: bool
) -> Iterator[tuple[Study, Database]]:
    """Read the study and open its database while the block runs."""
    from rankshot_survey.store.database import Database
    from rankshot_survey.study_files import read_study

    definition = read_study(study)
    with closing(Database(find_database(study, database), **options)) as opened:
        yield definition, opened


def read_view(study: Path, database: str | None, *, pilot: bool) -> Overview:
    """All that is known of a study and its participants now."""
    import time

    from rankshot_survey.overview import read_overview

    with open_survey(study, database, read_only=True) as (definition, answers):
        return read_overview(definition, answers, time.time(), pilot=pilot)
