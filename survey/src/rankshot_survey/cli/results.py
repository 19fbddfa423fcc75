"""``rankshot-survey``: the database of a study, its progress, its rankings and its raw data."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankshot.cli.console import (
    check_output,
    format_order,
    print_table,
    refuse,
    require_packages,
    say,
)
from rankshot.core.errors import RankshotError, format_count

if TYPE_CHECKING:
    from rankshot_survey.overview import Overview, TargetProgress
    from rankshot_survey.store.database import Database
    from rankshot_survey.study import Study

LETTERS_SHOWN = 30
"""Longer names of items, such as sentences, are cut in the table of `status`."""


def status(study: Path, *, database: str | None = None, pilot: bool = False) -> None:
    """Show the progress of a survey.

    A table shows the answers to the questions of each target, their consensus and how well they
    agree (Kendall's W). If people saw different items, the consensus is the order of the worths,
    with 95% intervals for the places, and the number of compared pairs is stated. Below are the
    flagged raters. Excluded participants are not included.

    Example: rankshot-survey status study.toml

    Parameters
    ----------
    study
        The study file.
    database
        An SQLite file or a postgresql:// URL. The default is an SQLite file next to the study. If
        the URL contains a password, give it in the environment variable RANKSHOT_SURVEY_DATABASE
        instead.
    pilot
        Include only pilot participants.
    """
    from rankshot_survey.store.people import describe_state

    view = read_study_overview(study, database, pilot=pilot)
    people = view.counts
    rows = [
        (
            row.name,
            f"{row.answered:,} of {row.planned:,}",
            f"{row.in_progress:,}",
            format_order(_name_places(row)),
            "-" if row.concordance is None else f"{row.concordance:.2f}",
        )
        for row in view.targets
    ]
    columns = ["target", ">answers", ">in progress", "consensus so far", ">W"]
    print_table(view.study.title, columns, rows)
    for row in view.targets:
        if row.coverage:
            say(f"{row.name}: {row.coverage}; [1-3]: from place 1 to place 3")
    more = sum(question.answered for question in view.questions if not question.planned)
    if more:
        what = format_count(more, "more answer")
        say(f"{what} to questions that are no longer in the study")
    say(f"The survey is {describe_state(view.state)}.")
    others = ("answered nothing", "withdrawn", "screened out", "excluded")
    rare = [f", {people[name]:,} {name}" for name in others if people[name]]
    say(
        f"{format_count(len(view.people), 'participant')}: {people['finished']:,} finished, "
        f"{people['active']:,} active, {people['left']:,} left before the end{''.join(rare)}"
    )
    if view.n_pilot and not pilot:
        say(f"not counted: {format_count(view.n_pilot, 'pilot participant')} (--pilot)")
    say(f"{len(view.flagged):,} of {len(view.flags):,} raters are flagged")
    what = "code" if view.study.platform == "none" else "id"
    for person in view.flagged:
        reasons = "; ".join(f"{flag.name}: {flag.text}" for flag in person.flags)
        say(f"    {person.rater} ({what} {view.ids[person.rater]}) {reasons}")


def _name_places(row: TargetProgress) -> tuple[Any, ...]:
    """Return the consensus, with short names and, if known, the intervals of their places."""
    from rankshot.pages.formatting import shorten

    places = {place.item: f" [{place.best}-{place.worst}]" for place in row.places}

    def name(item: str) -> str:
        return shorten(item, LETTERS_SHOWN) + places.get(item, "")

    return tuple(name(i) if isinstance(i, str) else tuple(map(name, i)) for i in row.consensus)


def export(
    study: Path,
    *,
    output: Path,
    database: str | None = None,
    exclude_flagged: bool = False,
    raw: bool = False,
    wide: bool = False,
    participants: bool = False,
    with_ids: bool = False,
    consents: bool = False,
    pilot: bool = False,
) -> None:
    """Write the answers to a rankings file, or the raw data.

    In a CSV file, a text that a spreadsheet could read as a formula begins with an apostrophe.

    Example: rankshot-survey export study.toml -o rankings.jsonl

    Parameters
    ----------
    output
        The file to write (.jsonl, raw data also .csv).
    exclude_flagged
        Leave out the answers of flagged raters.
    raw
        Write every answer, including repeats, gold questions and skips.
    wide
        Write one line per answer, with one column per item for its place. A second file, with
        _codebook at the end of its name, names the item of each column.
    participants
        Write one line per participant.
    with_ids
        With --participants: add the platform ids.
    consents
        Write the texts to which participants agreed, with their versions.
    """
    n_kinds = raw + wide + participants + consents
    is_raw, kinds = n_kinds > 0, "--raw, --wide, --participants and --consents"
    refuse(n_kinds > 1, f"{kinds} are separate files: give one of them")
    refuse(exclude_flagged and is_raw, f"--exclude-flagged cannot be combined with {kinds}")
    refuse(with_ids and not participants, "--with-ids needs --participants")
    check_output(output, (".csv", ".jsonl") if is_raw else (".jsonl",), study)
    view = read_study_overview(study, database, pilot=pilot)
    from rankshot_survey import export as records
    from rankshot_survey.answers import is_counted

    if is_raw:
        refuse(not view.people, f"{view.study.title}: nobody has started yet, nothing was written")
        if raw:
            what, found = "answer", list(records.answer_records(view))
        elif wide:
            found, book = records.wide_records(view)
            what, codebook = "answer", output.with_stem(f"{output.stem}_codebook")
            refuse(not found, f"{view.study.title}: no answers to export yet")
            records.write_records(codebook, book, private=False)
            say(f"the columns are explained in {codebook}")
        elif participants:
            what, found = "participant", list(records.participant_records(view, with_ids=with_ids))
        else:
            what, found = "text", records.consent_records(view)
        records.write_records(output, found)
        say(f"{format_count(len(found), what)} written to {output}")
        if with_ids:
            _say_ids(view)
        return
    found = records.ranking_records(
        view.study, view.answers, view.flags, exclude_flagged=exclude_flagged
    )
    records.write_records(output, found, private=False)
    say(f"{format_count(len(found), 'answer')} written to {output}")
    if exclude_flagged:
        left = [a.rater for a in view.answers if view.flags.get(a.rater) and is_counted(a)]
        who = format_count(len(set(left)), "flagged rater")
        say(f"left out: {format_count(len(left), 'answer')} of {who}")
    others = Counter(
        "skip" if not answer.order else "gold answer" if answer.question.is_gold else "repeat"
        for answer in view.answers
        if not answer.order or answer.question.is_gold or answer.repeat
    )
    never = (format_count(others[kind], kind) for kind in ("skip", "repeat", "gold answer"))
    say(f"not exported: {', '.join(never)}")
    if view.counts["excluded"]:
        who = format_count(view.counts["excluded"], "excluded participant")
        say(f"left out: {who}, with {format_count(len(view.excluded_answers), 'answer')}")


def _say_ids(view: Overview) -> None:
    """Say which ids the file has, and of how many participants."""
    if view.study.platform == "none":
        say("no ids: without a [platform], none are stored. The file has completion codes")
        return
    for name in view.study.id_names:
        n = sum(view.find_ids(rater)[name] is not None for rater in view.people)
        say(f"{name}: known for {n:,} of {format_count(len(view.people), 'participant')}")


def read_study_overview(study: Path, database: str | None, *, pilot: bool) -> Overview:
    """Return all that is known of a study and its participants now."""
    with open_survey(study, database, read_only=True) as (definition, answers):
        from rankshot_survey.overview import read_overview

        return read_overview(definition, answers, time.time(), pilot=pilot)


def backup(study: Path, *, output: Path, database: str | None = None, force: bool = False) -> None:
    """Copy the database, even while the survey is running.

    Every row of the copy is checked. From a damaged file, everything that can be read is copied,
    and what is lost is reported. Do not copy the database of a running survey in any other way:
    the newest answers are in a second file, its log.

    Example: rankshot-survey backup study.toml -o backup.sqlite

    Parameters
    ----------
    output
        The file to write (.sqlite).
    force
        Replace the file if it exists already.
    """
    require_extra()
    from rankshot_survey.store.sqlite_files import backup_database, describe_doubt, describe_loss

    place = find_database(study, database)
    check_output(output, (".sqlite",), study)
    done = backup_database(place, output, force=force)
    warn(None if done.is_complete else describe_doubt(Path(place)))
    warn(describe_loss(done.lost))
    answers = format_count(done.n_answers, "answer")
    people = format_count(done.n_participants, "participant")
    say(f"{output}: {answers} (skips, repeats and gold questions included) of {people}, checked")


# ---- The database of a study

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
    from rankshot_survey.store.database import Database
    from rankshot_survey.store.sqlite_files import MissingDatabaseError

    try:
        opened = Database(find_database(study, database), **options)
    except MissingDatabaseError as error:
        raise RankshotError(f"{error}; `rankshot-survey serve` creates it") from None
    warn(opened.doubt)
    return opened


def require_written(study: Study, path: Path) -> None:
    """Refuse a study that still has the placeholders of a new one."""
    from rankshot_survey.study import CONSENT_PLACEHOLDER, TITLE_PLACEHOLDER

    texts = [study.consent, *(text.consent or "" for text in study.translations.values())]
    found = [f"{CONSENT_PLACEHOLDER} in the consent"] * (CONSENT_PLACEHOLDER in "".join(texts))
    found += [f"the title {TITLE_PLACEHOLDER!r}"] * (study.title == TITLE_PLACEHOLDER)
    if found:
        raise RankshotError(
            f"{path}: the study still has {' and '.join(found)}; replace it, or try the study with "
            "`rankshot-survey serve --pilot`"
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
    from rankshot_survey.study_files import read_study

    definition = read_study(study)
    with closing(open_database(study, database, **options)) as opened:
        yield definition, opened
