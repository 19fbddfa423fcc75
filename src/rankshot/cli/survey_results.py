"""``rankshot survey``: the progress of a study, its rankings and its raw data."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankshot.cli.console import check_writable, format_order, say
from rankshot.cli.survey_options import (
    DatabaseOption,
    StudyFile,
    find_database,
    open_survey,
    require_extra,
)
from rankshot.core.errors import RankshotError, format_count

if TYPE_CHECKING:
    from rich.table import Table

    from rankshot.survey.overview import Overview

PilotOption = Annotated[
    bool, typer.Option("--pilot", help="Only the answers of the pilot; otherwise only the others.")
]


def status(study: StudyFile, database: DatabaseOption = None, pilot: PilotOption = False) -> None:
    """Show the progress of a survey.

    A table shows the answers to the questions of each target, their consensus and how much
    they agree (Kendall's W). Below it are the flagged raters. Excluded participants do not count.

    Example: rankshot survey status study.toml
    """
    from rich.console import Console

    from rankshot.survey.store.people import describe_state

    view = _read_overview(study, database, pilot=pilot)
    people = view.counts
    console = Console()
    console.print(_make_table(view))
    more = sum(question.answered for question in view.questions if not question.planned)
    if more:
        say(
            f"{format_count(more, 'more answer')} to questions that are no longer in the study",
            console,
        )
    say(f"The survey is {describe_state(view.state)}.", console)
    others = ("answered nothing", "withdrawn", "excluded")
    rare = [f", {people[name]:,} {name}" for name in others if people[name]]
    say(
        f"{format_count(len(view.people), 'participant')}: {people['finished']:,} finished, "
        f"{people['active']:,} active, {people['left']:,} left before the end{''.join(rare)}",
        console,
    )
    if view.n_pilot and not pilot:
        say(f"not counted: {format_count(view.n_pilot, 'pilot participant')} (--pilot)", console)
    say(f"{len(view.flagged):,} of {len(view.flags):,} raters are flagged", console)
    for row in view.flagged:
        reasons = "; ".join(f"{flag.name}: {flag.text}" for flag in row.flags)
        what = "code" if view.study.platform == "none" else "id"
        say(f"    {row.rater} ({what} {view.ids[row.rater]}) {reasons}", console)


def export(
    study: StudyFile,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The file to write: rankings (.jsonl), or raw data (.csv or .jsonl).",
        ),
    ],
    database: DatabaseOption = None,
    exclude_flagged: Annotated[
        bool, typer.Option("--exclude-flagged", help="Leave out the answers of flagged raters.")
    ] = False,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw",
            help="Write every answer with its times, repeats, gold questions and skips, also of "
            "excluded participants.",
        ),
    ] = False,
    participants: Annotated[
        bool, typer.Option("--participants", help="Write one line per participant.")
    ] = False,
    with_ids: Annotated[
        bool,
        typer.Option("--with-ids", help="With --participants: include the ids of the platform."),
    ] = False,
    pilot: PilotOption = False,
) -> None:
    """Write the answers to a rankings file, or the raw data.

    In a CSV file, a text that a spreadsheet could take for a formula begins with an apostrophe.

    Example: rankshot survey export study.toml -o rankings.jsonl
    """
    for is_wrong, problem in (
        (raw and participants, "--raw and --participants are two files: give one of them"),
        (exclude_flagged and (raw or participants), "--exclude-flagged is for rankings only"),
        (with_ids and not participants, "--with-ids needs --participants"),
    ):
        if is_wrong:
            raise RankshotError(problem)
    check_writable(output, study)
    view = _read_overview(study, database, pilot=pilot)
    if raw or participants:
        _export_raw(output, view, participants=participants, with_ids=with_ids)
        return
    from rankshot.survey.export import write_export

    exported = write_export(
        output, view.study, view.answers, view.flags, exclude_flagged=exclude_flagged
    )
    say(f"{format_count(exported.n_answers, 'answer')} written to {output}")
    if exclude_flagged:
        who = format_count(exported.n_raters_excluded, "flagged rater")
        say(f"left out: {format_count(exported.n_excluded, 'answer')} of {who}")
    never = (
        format_count(exported.n_skips, "skip"),
        format_count(exported.n_repeats, "repeat"),
        format_count(exported.n_gold, "gold answer"),
    )
    say(f"never exported: {', '.join(never)}")
    if view.counts["excluded"]:
        n = format_count(view.counts["excluded"], "excluded participant")
        say(f"left out: {n}, with {format_count(len(view.excluded_answers), 'answer')}")


def _export_raw(output: Path, view: Overview, *, participants: bool, with_ids: bool) -> None:
    from rankshot.survey.export import answer_records, participant_records, write_records

    if not view.people:
        raise RankshotError(f"{view.study.title}: nobody has started yet, nothing was written")
    if participants:
        write_records(output, participant_records(view, with_ids=with_ids))
        what = format_count(len(view.people), "participant")
    else:
        write_records(output, answer_records(view))
        what = format_count(len(view.answers) + len(view.excluded_answers), "answer")
    say(f"{what} written to {output}")


def _read_overview(study: Path, database: str | None, *, pilot: bool) -> Overview:
    with open_survey(study, database, read_only=True) as (definition, answers):
        from rankshot.survey.overview import read_overview

        return read_overview(definition, answers, time.time(), pilot=pilot)


def _make_table(view: Overview) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(view.study.title))
    table.add_column("target", style="bold", overflow="fold")
    table.add_column("answers", justify="right")
    table.add_column("in progress", justify="right")
    table.add_column("consensus so far", overflow="fold")
    table.add_column("W", justify="right")
    for row in view.targets:
        cells = [
            row.target,
            f"{row.answered:,} of {row.planned:,}",
            f"{row.in_progress:,}",
            format_order(row.consensus),
            "-" if row.concordance is None else f"{row.concordance:.2f}",
        ]
        table.add_row(*map(Text, cells))
    return table


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
    from rankshot.survey.store.sqlite_files import backup_database, describe_doubt

    place = find_database(study, database)
    require_ending(output, (".sqlite",))
    check_writable(output, study)
    done = backup_database(place, output, force=force)
    if not done.is_complete:
        say(f"Warning: {describe_doubt(Path(place))}", Console(stderr=True))
    answers = format_count(done.n_answers, "answer")
    people = format_count(done.n_participants, "participant")
    say(f"{output}: {answers} (skips, repeats and gold questions included) of {people}, checked")
