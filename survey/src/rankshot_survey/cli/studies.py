"""Commands for the study: design it, serve it, change its state, read its results, back it up."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from rankshot.core.errors import NO_VALUE, InputError, format_count
from rankshot_survey.cli.shared import (
    Output,
    Pilot,
    Place,
    StudyFile,
    check_output,
    find_database,
    open_survey,
    read_view,
    require,
    say,
)

if TYPE_CHECKING:
    from rankshot_survey.overview import TargetProgress
    from rankshot_survey.study import Study

TOKEN = "RANKSHOT_SURVEY_TOKEN"  # noqa: S105 (the name of the variable, not a token)
# How many items of a consensus the table of `status` has, and how many letters of each.
MOST_ITEMS, MOST_LETTERS = 10, 30
# What is said about a study that changes its state, or is served in it.
STATES = {
    "open": "OPEN: people can start, and their answers are part of the study",
    "pilot": "PILOT: answers are tests. Start the study with `rankshot-survey set STUDY open`",
    "paused": "PAUSED: nobody can start or continue; an answer that is sent is still saved",
    "closed": "CLOSED: no new participants can start; others may finish",
}


def new(
    study: Path,
    /,
    *,
    items: Annotated[Path, Parameter(name=["--items", "--seen"])],
    prompt: str | None = None,
    new: Path | None = None,
    show: int | None = None,
    rankings: Path | None = None,
    answers: int = 50,
) -> None:
    """Write a new study file.

    People put ordinary items in order, all in one question. With --new, they order the seen classes
    of a classifier by their similarity to each new class.

    Example: rankshot-survey new study.toml --items items.txt --prompt "Which do you like best?"

    Example: rankshot-survey new study.toml --seen seen.txt --new new.txt

    Parameters
    ----------
    study
        The file to write.
    items
        A text file with the items, or the seen classes, to be ordered, one per line.
    prompt
        The question, such as "Which of these do you like best?". With several new classes, it
        contains {target} in place of the new class.
    new
        A text file with the new classes, one per line.
    show
        The number of items in a question, by default all: with fewer, each participant gets
        different sets. Or the number of seen classes, by default 10: with fewer than all, the
        nearest to each new class are shown.
    rankings
        A rankings file that says which seen classes are nearest to each new class, for example
        from `rankshot rank`. Required if a question does not show all seen classes.
    answers
        The number of answers per question.
    """
    from rankshot import ranking
    from rankshot.core.files import read_names, replace_file
    from rankshot_survey.design import new_study
    from rankshot_survey.study import CONSENT_PLACEHOLDER
    from rankshot_survey.study_files import format_study

    check_output(study, (".toml",), "study")
    require(not study.exists(), "study", study, "exists already")
    names = read_names(items)
    designed = new_study(
        read_names(new) if new else None,
        names,
        prompt=prompt,
        show=show,
        rankings=ranking.read_rankings(rankings, items=names) if rankings else None,
        answers_per_question=answers,
    )
    with replace_file(study) as stream:
        stream.write(format_study(designed))
    say(f"{study}: {_describe_plan(designed)}")
    say(
        f"In the file, write a title, and replace {CONSENT_PLACEHOLDER}. Then start the survey with"
    )
    say(f"    rankshot-survey serve {study}")
    say("Until then, try it with --pilot.")


def serve(
    study: StudyFile,
    /,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    database: Place = None,
    backup_every: float = 0,
    requests: int = 600,
    pilot: bool = False,
) -> None:
    """Serve the web pages of a study until Ctrl-C.

    The researcher's page is available if RANKSHOT_SURVEY_TOKEN is set in the environment.

    Example: rankshot-survey serve study.toml --backup-every 60

    Parameters
    ----------
    host
        The address to listen on. With 0.0.0.0, other machines on the network can reach the survey.
    port
        The port to listen on. With 0, a free port is chosen.
    backup_every
        Minutes between backups of an SQLite file, which are written next to it if there are new
        answers. With 0, there are none.
    requests
        The number of requests per minute that one IP address may send.
    pilot
        Only try the study: answers are marked as a test. The study may still have placeholders.
    """
    require(0 <= port <= 65535, "port", port, "must be from 0 to 65535")
    require(requests >= 1, "requests", requests, "must be 1 or more")
    require(backup_every >= 0, "backup_every", backup_every, "must be 0 or more")
    from rankshot.web.server import open_port, serve as serve_app
    from rankshot_survey.store.database import backing_up
    from rankshot_survey.store.people import read_state, set_state
    from rankshot_survey.study_files import read_study
    from rankshot_survey.web.app import create_app

    definition = read_study(study)
    if not pilot:
        _require_written(definition, study)
    for note in _find_missing_links(definition):
        say(f"Note: {study}: {note}.")
    token = os.environ.get(TOKEN)
    with (
        open_port(host, port) as listening,
        open_survey(study, database, create=True) as (_, answers),
        backing_up(answers.place, backup_every),
    ):
        if pilot:
            set_state(answers, "pilot")
        site = create_app(definition, answers, token=token, requests=requests)
        with answers.begin_read() as connection:
            state = read_state(connection)
        number = listening.getsockname()[1]
        address = f"http://{f'[{host}]' if ':' in host else host}:{number}"
        say(f"{definition.title}: {_describe_plan(definition)}")
        if state != "open":
            say(f"State         {STATES[state]}")
        say(f"Participants  {address}/")
        if host in ("0.0.0.0", "::") and (own := _find_network_address()):  # noqa: S104 (asked for)
            say(f"Phones        http://{own}:{number}/ (on the same network)")
        if definition.platform != "none" and definition.allowed is None:
            hint = " (answers are real, unless the state is pilot)" * (state == "open")
            say(f"Try it        {address}/?{definition.id_names[0]}=test{hint}")
        say(f"Researcher    {address}/researcher" if token else f"Researcher    off: set {TOKEN}")
        say("Press Ctrl-C to stop. All answers that were sent are saved.")
        sys.stdout.flush()
        serve_app(site, listening)


def _find_network_address() -> str | None:
    """Return the address of this machine in its network; None without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
        # Nothing is sent: the system only chooses the interface.
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])
    return None


def set_(
    study: StudyFile,
    state: Literal["open", "pilot", "paused", "closed"],
    /,
    *,
    database: Place = None,
) -> None:
    """Set the state of a study: open, pilot, paused or closed.

    In a pilot, answers are marked as tests, and never mixed with others; delete them with
    `rankshot-survey people delete STUDY --pilot`. In a paused study, nobody can start or continue.
    In a closed one, nobody can start.

    Example: rankshot-survey set study.toml closed

    Parameters
    ----------
    state
        The new state.
    """
    from rankshot_survey.store.people import set_state

    # A pilot may be the first thing that happens to a study.
    with open_survey(study, database, create=state == "pilot") as (definition, answers):
        if state == "open":
            _require_written(definition, study)
        set_state(answers, state)
    say(STATES[state])


# ---- Results


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


def export(
    study: StudyFile,
    kind: Literal["rankings", "answers", "participants"] = "rankings",
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


def backup(
    study: StudyFile,
    /,
    *,
    output: Output,
    database: Place = None,
) -> None:
    """Copy the database, even while the survey is running.

    Do not copy the database of a running survey in any other way: the newest answers are in a
    second file, its log. A backup never overwrites a file.

    Example: rankshot-survey backup study.toml -o backup.sqlite

    Parameters
    ----------
    output
        The file to write (.sqlite).
    """
    from rankshot_survey.store.database import backup_database

    check_output(output, (".sqlite",))
    backup_database(find_database(study, database), output)
    say(f"{output} written")


def _require_written(study: Study, path: Path) -> None:
    """Refuse a study that still has the placeholders of a new one."""
    from rankshot_survey.study import CONSENT_PLACEHOLDER, TITLE_PLACEHOLDER

    texts = [study.consent, *(text.consent or "" for text in study.translations.values())]
    hint = "write it, or try the study with `rankshot-survey serve STUDY --pilot`"
    is_left = {
        "consent": CONSENT_PLACEHOLDER in "".join(texts),
        "title": study.title == TITLE_PLACEHOLDER,
    }
    for key in filter(is_left.get, is_left):
        raise InputError(key, NO_VALUE, "is still a placeholder", str(path), hint)


def _find_missing_links(study: Study) -> Iterator[str]:
    """Yield what participants from a platform lack; those of MTurk copy the completion code."""
    if study.platform not in ("none", "mturk"):
        for key, problem in {
            "completion_url": "the platform cannot see who finished",
            "full_url": "people cannot return from a study that is full, paused or closed",
            "refusal_url": "people who do not agree, withdraw or answer nothing cannot return",
        }.items():
            if getattr(study, key) is None:
                yield f"without [platform] {key}, {problem}"


def _describe_plan(study: Study) -> str:
    n, each = len(study.asked), study.answers_per_question
    people = -(-n * each // study.n_asked)
    return (
        f"{format_count(n, 'question')} with {format_count(each, 'answer')}"
        f"{' each' if n > 1 else ''}, from {format_count(people, 'participant')} or more"
    )
