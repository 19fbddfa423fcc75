"""``rankshot survey backup``: a copy of the database while the survey runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankshot.cli.console import check_writable, say
from rankshot.cli.survey_options import DatabaseOption, StudyFile, find_database, require_extra
from rankshot.core.errors import format_count


def backup(
    study: StudyFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write (.sqlite).")],
    database: DatabaseOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file if it exists already.")
    ] = False,
) -> None:
    """Copy the database, also while the survey is running.

    The copy is complete and checked. Do not copy the file of a running survey in another way: the
    newest answers are in a second file, its log.

    Example: rankshot survey backup study.toml -o backup.sqlite
    """
    require_extra()
    from rich.console import Console

    from rankshot.core.files import require_ending
    from rankshot.survey.store.backup import backup_database, describe_doubt

    place = find_database(study, database)
    require_ending(output, (".sqlite",))
    check_writable(output, study)
    done = backup_database(place, output, force=force)
    if not done.is_complete:
        say(f"Warning: {describe_doubt(Path(place))}", Console(stderr=True))
    answers = format_count(done.n_answers, "answer")
    people = format_count(done.n_participants, "participant")
    say(f"{output}: {answers} (skips, repeats and gold questions included) of {people}, checked")
