"""``rankshot survey``: the progress of a study, its rankings and its raw data."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankshot.cli.console import SHOWN, check_writable, format_order, say
from rankshot.cli.survey_options import DatabaseOption, StudyFile, open_database, require_extra
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
    they agree. Below it are groups of raters who clearly do not agree, and the flagged raters.
    Excluded participants do not count.

    Example: rankshot survey status study.toml
    """
    from rich.console import Console

    from rankshot.ranking.rater_groups import format_groups
    from rankshot.survey.store.people import describe_state

    view = _read_overview(study, database, pilot=pilot)
    people, progress = view.counts, view.progress
    console = Console()
    console.print(_make_table(view))
    for result in progress.targets:
        if result.groups:
            text = format_groups(result.groups, SHOWN)
            say(f"The raters of {result.target} fall into {text}", console)
    more = sum(q.answered for q in progress.questions if not q.is_asked)
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
    say(f"{len(progress.flagged):,} of {len(progress.raters):,} raters are flagged", console)
    for row in progress.flagged:
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
    if raw and participants:
        raise RankshotError("--raw and --participants are two files: give one of them")
    if exclude_flagged and (raw or participants):
        raise RankshotError("--exclude-flagged is for rankings: raw data name the flags instead")
    if with_ids and not participants:
        raise RankshotError("--with-ids needs --participants")
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
    from rankshot.survey.raw_data import answer_records, participant_records, write_records

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
    require_extra()
    from rankshot.survey.overview import read_overview
    from rankshot.survey.study_files import read_study

    definition = read_study(study)
    with closing(open_database(study, database, read_only=True)) as answers:
        return read_overview(definition, answers, time.time(), pilot=pilot)


def _make_table(view: Overview) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(view.study.title))
    table.add_column("target", style="bold", overflow="fold")
    table.add_column("answers", justify="right")
    table.add_column("in progress", justify="right")
    table.add_column("consensus so far", overflow="fold")
    table.add_column("stable", justify="right")
    table.add_column("first 3", justify="right")
    table.add_column("W", justify="right")
    questions = view.progress.questions
    for row in view.progress.targets:
        answered = sum(
            q.answered for q in questions if q.is_asked and q.question.target == row.target
        )
        shares = (row.stability, row.first_stability, row.concordance)
        cells = [
            row.target,
            f"{answered:,} of {row.planned:,}",
            f"{row.in_progress:,}",
            format_order(row.consensus),
            *("-" if share is None else f"{share:.2f}" for share in shares),
        ]
        table.add_row(*map(Text, cells))
    return table
