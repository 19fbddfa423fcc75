"""Commands for participants: exclude, restore, release and delete them, and pay them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import App

from rankshot.core.errors import NO_VALUE, InputError, format_count
from rankshot_survey.cli.shared import (
    Ids,
    Output,
    Pilot,
    Place,
    StudyFile,
    Yes,
    check_output,
    confirm,
    open_survey,
    read_view,
    require,
    say,
)

if TYPE_CHECKING:
    from rankshot_survey.store.database import Database
    from rankshot_survey.study import Study

app = App(
    name="people", help="Exclude, restore, release, delete and pay participants.", group="Answers"
)
# What may be done with the payment of a participant, and with whose.
DECISIONS = {
    "approve": "finished",
    "look at": "finished, but flagged, or withdrew afterwards",
    "reject": "finished, but excluded",
    "return": "withdrew or were excluded before the end, or answered nothing",
    "wait": "have not finished",
}


@app.command
def exclude(
    study: StudyFile,
    ids: Ids | None = None,
    /,
    *,
    why: str,
    from_: Path | None = None,
    database: Place = None,
) -> None:
    """Exclude participants: their answers are kept, but no longer used.

    Their questions are immediately given to others. `restore` undoes it.

    Example: rankshot-survey people exclude study.toml 5f1e2d3c --why "failed the attention check"

    Parameters
    ----------
    why
        The reason, which is recorded.
    from_
        Also exclude the participants in a file with one id per line.
    """
    from rankshot.core.files import iterate_names
    from rankshot_survey.store.people import exclude as exclude_raters

    names = [*(ids or ()), *(name for _, name in (iterate_names(from_) if from_ else ()))]
    require(names, "ids", NO_VALUE, "must be given, or --from")
    with _find(study, database, names) as (_, answers, raters):
        exclude_raters(answers, raters, why)
    say(f"{format_count(len(raters), 'participant')} excluded: {why}")


@app.command
def restore(study: StudyFile, ids: Ids, /, *, database: Place = None) -> None:
    """Undo an exclusion: the answers are used again.

    Example: rankshot-survey people restore study.toml 5f1e2d3c
    """
    from rankshot_survey.store.people import restore as restore_raters

    with _find(study, database, ids) as (_, answers, raters):
        n = restore_raters(answers, raters)
    say(f"{format_count(n, 'participant')} restored.")


@app.command
def release(study: StudyFile, ids: Ids, /, *, database: Place = None) -> None:
    """Let participants continue in another browser.

    An id is not a secret, so the survey can be started with it only once, and the participant
    continues in the same browser. After this command, the next browser that opens the survey with
    the id continues. Use it if a participant asks for it, and you are certain who is asking.

    Example: rankshot-survey people release study.toml 5f1e2d3c
    """
    from rankshot_survey.store.people import release as release_raters

    with _find(study, database, ids) as (_, answers, raters):
        release_raters(answers, raters)
    say(f"{format_count(len(raters), 'participant')} released: the next browser continues.")


@app.command
def delete(
    study: StudyFile,
    ids: Ids | None = None,
    /,
    *,
    pilot: bool = False,
    all_: bool = False,
    yes: Yes = False,
    database: Place = None,
) -> None:
    """Delete everything about participants.

    The answers are overwritten in the database file. Delete them from each backup as well (name it
    with --database), and export the files again.

    Example: rankshot-survey people delete study.toml 5f1e2d3c

    Parameters
    ----------
    pilot
        Also delete all pilot participants.
    all_
        Delete all participants, those of the pilot included.
    """
    from rankshot_survey.store.people import delete_participants

    require(ids or pilot or all_, "ids", NO_VALUE, "must be given, or --pilot or --all")
    with _find(study, database, ids or ()) as (definition, answers, raters):
        payments = _read_payments(definition, answers)
        tried = _read_payments(definition, answers, pilot=True) if pilot or all_ else []
        chosen = {*raters, *(str(row["rater"]) for row in [*tried, *(payments if all_ else ())])}
        for row in payments:
            if row["rater"] in chosen and row["decision"] in ("approve", "look at"):
                who = row["id"] or row["rater"]
                say(f"{who} is to be paid ({row['decision']}). Pay first, if you have not.")
        who = format_count(len(chosen), "participant")
        confirm(f"Permanently delete {who} of {study} and all their answers?", yes=yes)
        delete_participants(answers, chosen)
    say(f"{who} deleted. Remove them from backups as well (--database), and export again.")


@app.command
def payments(
    study: StudyFile,
    /,
    *,
    approve: bool = False,
    with_flagged: bool = False,
    reject: bool = False,
    pilot: Pilot = False,
    output: Output | None = None,
    database: Place = None,
) -> None:
    """Show who is to be paid; write lists for the platform.

    The ids are Prolific's participant ids or, without a platform, completion codes. Look at the
    answers of participants with a flag first: exclude them, or approve them with --with-flagged.

    Example: rankshot-survey people payments study.toml --approve -o approve.csv

    Parameters
    ----------
    approve
        List those who finished and are not flagged. Without this and the next two options, all
        participants are listed.
    with_flagged
        List those who finished and have a flag.
    reject
        List those who finished but are excluded.
    output
        The file to write: a table (.csv), or plain ids, one per line (.txt), for Prolific's bulk
        approval.
    """
    from rankshot.core.files import replace_file
    from rankshot_survey.export import format_csv, payment_records

    if output is not None:
        check_output(output, (".csv", ".txt"))
    view = read_view(study, database, pilot=pilot)
    wanted = {"approve": approve, "look at": with_flagged, "reject": reject}
    which = [name for name in DECISIONS if wanted.get(name)] or list(DECISIONS)
    rows = [row for row in payment_records(view) if row["decision"] in which]
    lost = sum(row["id"] is None for row in rows)
    if lost and output is not None:
        who = format_count(lost, "participant")
        raise InputError("study", NO_VALUE, f"has no ids of {who} any more: they were erased")
    for decision in which:
        theirs = [row for row in rows if row["decision"] == decision]
        say(f"{decision}: {len(theirs):,} ({DECISIONS[decision]})")
        if decision not in ("approve", "wait"):
            for row in theirs:
                say(f"    {row['id'] or row['rater']} {row['reason']}")
    if output is not None:
        is_plain = output.suffix == ".txt"
        text = "".join(f"{row['id']}\n" for row in rows) if is_plain else format_csv(rows)
        with replace_file(output, private=True) as stream:
            stream.write(text)
        what = "completion code" if view.study.platform == "none" else "participant id"
        say(f"{format_count(len(rows), what)} written to {output}")


@app.command
def forget_ids(study: StudyFile, /, *, yes: Yes = False, database: Place = None) -> None:
    """Erase the platform ids after all payments.

    The answers are kept. Afterwards, payments can no longer be matched to participants.

    Example: rankshot-survey people forget-ids study.toml
    """
    from rankshot_survey.store.people import forget_ids as erase_ids

    with open_survey(study, database) as (definition, answers):
        decisions = [row["decision"] for row in _read_payments(definition, answers)]
        if n := decisions.count("wait"):
            say(f"{format_count(n, 'participant')} not finished: they may still have to be paid.")
        confirm(
            "Erase the ids of all participants? Payments can no longer be matched to them.", yes=yes
        )
        n = erase_ids(answers)
    say(f"The ids of {format_count(n, 'participant')} are erased.")
    say("Backups and exported files still have the ids: delete those files when all are paid.")


@contextmanager
def _find(
    study: Path, database: str | None, names: Sequence[str]
) -> Iterator[tuple[Study, Database, list[str]]]:
    """Read the study, open its database, and find participants in it."""
    from rankshot_survey.store.people import find_raters

    with open_survey(study, database) as (definition, answers):
        with answers.begin_read() as connection:
            raters = find_raters(connection, answers.identity, definition.platform, names)
        yield definition, answers, raters


def _read_payments(
    study: Study, answers: Database, *, pilot: bool = False
) -> list[dict[str, object]]:
    from rankshot_survey.export import payment_records
    from rankshot_survey.overview import read_overview

    return payment_records(read_overview(study, answers, time.time(), pilot=pilot))
