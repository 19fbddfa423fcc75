"""Commands that read the results: the progress, the rankings and the raw data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.table import Table

from rankshot.core.errors import format_count
from rankshot_survey.cli.shared import (
    Output,
    Pilot,
    Place,
    StudyFile,
    check_output,
    read_view,
    say,
)

if TYPE_CHECKING:
    from rankshot_survey.overview import TargetProgress

# How many items of a consensus the table of `status` has, and how many letters of each.
MOST_ITEMS, MOST_LETTERS = 10, 30


def status(study: StudyFile, /, *, database: Place = None, pilot: Pilot = False) -> None:
    """Show the progress of a survey.

    A table shows the answers to the questions of each target, their consensus and how well they
    agree (Kendall's W). If people saw different items, the consensus is the order of the worths.
    Below are the flagged raters. Excluded participants are not included.

    Example: rankshot-survey status study.toml
    """
    view = read_view(study, database, pilot=pilot)
    table = Table(title=view.study.title)
    for heading in ("target", "answers", "in progress", "consensus so far", "W"):
        is_text = heading in ("target", "consensus so far")
        table.add_column(heading, justify="left" if is_text else "right", overflow="fold")
    for row in view.targets:
        answered = f"{row.answered:,} of {row.planned:,}"
        agreement = "-" if row.concordance is None else f"{row.concordance:.2f}"
        cells = (row.target, answered, f"{row.in_progress:,}", _format_consensus(row), agreement)
        table.add_row(*cells)
    Console(markup=False, highlight=False).print(table)
    if more := sum(row.dropped for row in view.targets):
        say(f"{format_count(more, 'answer')} to questions that are no longer in the study")
    say(f"The survey is {'a pilot' if view.state == 'pilot' else view.state}.")
    people = view.counts
    others = ("answered nothing", "withdrawn", "excluded")
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
        say(f"    {person.row.rater} ({what} {person.name}) {reasons}")


def _format_consensus(row: TargetProgress) -> str:
    """Return the consensus, with short names."""

    def shorten(item: str) -> str:
        return item if len(item) <= MOST_LETTERS else f"{item[: MOST_LETTERS - 1]}…"

    ties = [(tie,) if isinstance(tie, str) else tie for tie in row.consensus]
    texts = [" = ".join(map(shorten, tie[:MOST_ITEMS])) for tie in ties[:MOST_ITEMS]]
    rest = sum(map(len, ties)) - sum(len(tie[:MOST_ITEMS]) for tie in ties[:MOST_ITEMS])
    return " > ".join([*texts, f"{rest:,} more"] if rest else texts)


Kind = Literal["rankings", "answers", "participants"]


def export(
    study: StudyFile,
    kind: Kind = "rankings",
    /,
    *,
    output: Output,
    database: Place = None,
    exclude_flagged: bool = False,
    pilot: Pilot = False,
) -> None:
    """Write the rankings, or the raw data.

    In a CSV file, a text that a spreadsheet could read as a formula begins with an apostrophe.

    Example: rankshot-survey export study.toml -o rankings.jsonl

    Example: rankshot-survey export study.toml answers -o answers.csv

    Parameters
    ----------
    kind
        What to write: the rankings (.jsonl); every answer, with repeats, gold questions and skips;
        or one line per participant.
    output
        The file to write (.jsonl, raw data also .csv).
    exclude_flagged
        Leave flagged participants and their answers out.
    """
    from rankshot_survey.answers import is_counted
    from rankshot_survey.export import make_records, write_records

    check_output(output, (".jsonl",) if kind == "rankings" else (".csv", ".jsonl"))
    view = read_view(study, database, pilot=pilot)
    rows = make_records(view, kind, exclude_flagged=exclude_flagged)
    write_records(output, rows, private=kind != "rankings")
    say(f"{format_count(len(rows), kind.removesuffix('s'))} written to {output}")
    if kind == "rankings":
        n_other = sum(not is_counted(answer) for answer in view.answers)
        say(f"not exported: {n_other:,} skips, repeats and gold answers")
        if view.counts["excluded"]:
            say(f"left out: {format_count(view.counts['excluded'], 'excluded participant')}")
    if exclude_flagged:
        say(f"left out: {format_count(len(view.flagged), 'flagged participant')}")
