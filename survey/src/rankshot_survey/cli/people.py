"""``rankshot-survey``: the participants of a study, its states and payment."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from rankshot import core
from rankshot.cli.console import check_output, refuse, say
from rankshot.core.errors import RankshotError, format_count
from rankshot.core.files import iterate_names, replace_file
from rankshot_survey.cli.results import (
    find_database,
    open_survey,
    read_study_overview,
    require_written,
    warn,
)

if TYPE_CHECKING:
    from rankshot_survey.store.database import Database
    from rankshot_survey.store.people import State
    from rankshot_survey.study import Study

# What may be done with the payment of a participant, and with whose.
DECISIONS = {
    "approve": "finished",
    "look at": "finished, but flagged, or withdrew afterwards",
    "reject": "finished, but excluded",
    "return": "withdrew or were excluded before the end, or answered nothing",
    "screened out": "did not pass the screening, which has its own code",
    "wait": "have not finished",
}


# What the comparison with Prolific's list of submissions finds.
COMPARED = {
    "returned": "Returned or timed out at Prolific",
    "missing": "Submitted at Prolific, but not here",
    "not finished": "Submitted at Prolific, but not finished here",
    "another way": "Here, but not in Prolific's list",
}


# ---- States


def pilot(study: Path, *, database: str | None = None) -> None:
    """Try the study: answers from now on are only a test.

    They are marked, and kept separate from the others.

    Example: rankshot-survey pilot study.toml
    """
    _set_state(study, database, "pilot")
    say("From now on, answers are only a test. Open the study with `rankshot-survey reopen`.")


def pause(study: Path, *, database: str | None = None) -> None:
    """Pause the study: nobody can start or continue.

    Participants are told that the study is paused. An answer that they send is still saved.

    Example: rankshot-survey pause study.toml
    """
    _set_state(study, database, "paused")
    say("The study is paused. Resume it with `rankshot-survey reopen`.")


def close(study: Path, *, database: str | None = None) -> None:
    """End the study: no new participants can start; others may finish.

    Example: rankshot-survey close study.toml
    """
    _set_state(study, database, "closed")
    say("The study is closed. Open it again with `rankshot-survey reopen`.")


def reopen(study: Path, *, database: str | None = None) -> None:
    """Open the study again after a pilot, a pause or its end.

    Example: rankshot-survey reopen study.toml
    """
    _set_state(study, database, "open")
    say("The study is open. Answers of a pilot stay marked until `rankshot-survey reset`.")


def reset(
    study: Path,
    *,
    pilot: bool = False,
    all: bool = False,  # noqa: A002
    yes: bool = False,
    database: str | None = None,
) -> None:
    """Delete the answers of a pilot, or all answers.

    Example: rankshot-survey reset study.toml --pilot

    Parameters
    ----------
    pilot
        Delete pilot participants and their answers.
    all
        Delete all participants, if the study is paused or closed.
    """
    from rankshot_survey.store.people import reset as reset_answers

    refuse(pilot == all, "give either --pilot or --all")
    with open_survey(study, database) as (_, answers):
        what = "pilot participants" if pilot else "participants"
        _confirm(f"Delete all {what} of {study} and their answers permanently?", yes=yes)
        n = reset_answers(answers, pilot_only=pilot)
        warn(answers.remains)
    say(f"{format_count(n, 'participant')} deleted, with all answers.")


# ---- Participants


def exclude(
    study: Path,
    ids: list[str] | None = None,
    *,
    why: str,
    from_: Path | None = None,
    not_in: Path | None = None,
    database: str | None = None,
) -> None:
    """Exclude participants: their answers are no longer used.

    The answers are kept, and their questions are immediately given to others. Undo it with
    `rankshot-survey restore`.

    Example: rankshot-survey exclude study.toml 5f1e2d3c --why "failed the attention check"

    Parameters
    ----------
    why
        The reason, which is recorded.
    from_
        Also exclude the participants in a file: ids, one per line (.txt), or the column
        "Participant id" or "id" (.csv).
    not_in
        Exclude all participants who are not on this list from the platform, such as bots with
        invented ids.
    """
    from rankshot_survey.store.people import exclude as exclude_raters

    refuse(not (ids or from_ or not_in), "give ids, --from or --not-in")
    refuse(bool((ids or from_) and not_in), "give either ids or --not-in")
    names = [*(ids or ()), *_read_ids(from_), *_read_ids(not_in)]
    with _find(study, database, names, others=not_in is not None) as (_, answers, raters):
        changed = exclude_raters(answers, raters, why)
    _say_count(len(changed), f"excluded: {why}")
    n = len(raters) - len(changed)
    _say_count(n, "already excluded for this reason: nothing changed.")
    if not raters:
        say("All participants are in the list: nobody is excluded.")


def restore(study: Path, ids: list[str], *, database: str | None = None) -> None:
    """Undo an exclusion, or a withdrawal within the last day.

    The answers are used again. A withdrawal can be undone if it came after the last page: before
    that, the answers are deleted immediately.

    Example: rankshot-survey restore study.toml 5f1e2d3c
    """
    from rankshot_survey.store.people import restore as restore_raters

    with _find(study, database, ids) as (_, answers, raters):
        changed = restore_raters(answers, raters)
    _say_count(len(changed), "restored.")
    _say_count(len(raters) - len(changed), "neither excluded nor withdrawn: nothing to restore.")


def release(study: Path, ids: list[str], *, database: str | None = None) -> None:
    """Let participants continue in another browser.

    An id is not a secret, so the survey can be started with it only once, and the participant
    continues in the same browser. After this command, the next browser that opens the survey with
    the id continues. Use it if a participant asks for it, and you are certain who is asking.

    Example: rankshot-survey release study.toml 5f1e2d3c
    """
    from rankshot_survey.store.people import release as release_raters

    with _find(study, database, ids) as (_, answers, raters):
        release_raters(answers, raters)
    _say_count(
        len(raters), "released: the next browser that opens the survey with this id continues."
    )


def delete(study: Path, ids: list[str], *, yes: bool = False, database: str | None = None) -> None:
    """Delete everything about participants who ask for it.

    The answers are overwritten in the database file. Delete them from each backup as well (name it
    with --database), and export the files again.

    Example: rankshot-survey delete study.toml 5f1e2d3c

    Parameters
    ----------
    ids
        Participants: platform ids, completion codes or rater names.
    yes
        Skip the confirmation prompt.
    """
    from rankshot_survey.store.people import delete_participants

    with _find(study, database, ids) as (definition, answers, raters):
        mine = [row for row in _read_payments(definition, answers) if row["rater"] in raters]
        for row in mine:
            if row["decision"] in ("approve", "look at"):
                who = row["id"] or row["rater"]
                say(f"{who} is to be paid ({row['decision']}). Pay first, if you have not.")
        # Who came to the pilot as well is stored twice.
        n_pilot = len(raters) - len(mine)
        counts = {"participant": len(mine), "pilot participant": n_pilot}
        who = " and ".join(format_count(n, what) for what, n in counts.items() if n)
        _confirm(f"Delete {who} ({', '.join(raters)}) and all their answers permanently?", yes=yes)
        delete_participants(answers, raters)
        warn(answers.remains)
    say(f"{who} deleted.")
    say("Delete from backups as well (--database), and export the files again.")


# ---- Payment


def payments(
    study: Path,
    *,
    approve: bool = False,
    with_flagged: bool = False,
    reject: bool = False,
    pilot: bool = False,
    output: Path | None = None,
    prolific: Path | None = None,
    database: str | None = None,
) -> None:
    """Show who is to be paid; write lists for the platform.

    The ids are Prolific's participant ids or, without a platform, completion codes. Look at the
    answers of participants with a flag first: exclude them, or approve them with --with-flagged.

    Example: rankshot-survey payments study.toml --approve -o approve.csv

    Parameters
    ----------
    approve
        List those who finished and are not flagged.
    with_flagged
        With --approve: also list those with a flag.
    reject
        List those who finished but are excluded.
    output
        The file to write: a table (.csv), or with --approve or --reject plain ids, one per line
        (.txt), for Prolific's bulk approval.
    prolific
        The list of submissions that Prolific exports (.csv), to check against this survey.
    """
    refuse(approve and reject, "give --approve or --reject, each with a file of its own")
    refuse(output is None and (approve or reject), "give the file to write with --output")
    refuse(with_flagged and not approve, "--with-flagged needs --approve")
    # Plain ids do not say what is to be done with them.
    check_output(output, (".csv", ".txt") if approve or reject else (".csv",), study)
    view = read_study_overview(study, database, pilot=pilot)
    from rankshot_survey.export import compare_submissions, format_csv, payment_records

    found = payment_records(view)
    if output is not None:
        chosen = {"approve": approve, "reject": reject, "look at": with_flagged}
        which = [name for name in DECISIONS if chosen.get(name)] or DECISIONS
        listed = [row for row in found if row["decision"] in which]
        if lost := sum(row["id"] is None for row in listed):
            raise RankshotError(
                f"the ids of {format_count(lost, 'participant')} were erased (`rankshot survey "
                "forget-ids`); the platform cannot pay from this list"
            )
        is_plain = output.suffix == ".txt"
        lines = "".join(f"{row['id']}\n" for row in listed) if is_plain else format_csv(listed)
        with replace_file(output, private=True) as stream:
            stream.write(lines)
        what = "completion code" if view.study.platform == "none" else "participant id"
        say(f"{format_count(len(listed), what)} written to {output}")
    for decision, meaning in DECISIONS.items():
        theirs = [row for row in found if row["decision"] == decision]
        say(f"{decision}: {len(theirs):,} ({meaning})")
        if decision in ("look at", "reject", "return"):
            for row in theirs:
                say(f"    {row['id'] or row['rater']} {row['reason']}")
    if prolific is not None:
        ids, states = core.read_table(prolific, ("Participant id", "Status"), strip=True).texts
        for what, some in compare_submissions(view, zip(ids, states, strict=True)).items():
            say(f"{COMPARED[what]}: {len(some):,}")
            for one in some:
                say(f"    {one}")


def forget_ids(study: Path, *, yes: bool = False, database: str | None = None) -> None:
    """Erase the platform ids after all payments.

    The answers are kept. Afterwards, payments can no longer be matched to participants.

    Example: rankshot-survey forget-ids study.toml
    """
    from rankshot_survey.store.people import forget_ids as erase_ids

    with open_survey(study, database) as (definition, answers):
        decisions = [row["decision"] for row in _read_payments(definition, answers)]
        if n := decisions.count("wait"):
            say(f"{format_count(n, 'participant')} not finished: they may still have to be paid.")
        _confirm(
            "Erase the ids of all participants? Payments can no longer be matched to them.", yes=yes
        )
        n = erase_ids(answers)
        warn(answers.remains)
    say(f"The ids of {format_count(n, 'participant')} are erased.")
    say("Backups and exported files still have the ids: delete those files when all are paid.")


def _set_state(study: Path, database: str | None, state: State) -> None:
    # A pilot may be the first thing that happens to a study.
    create = state == "pilot"
    place = find_database(study, database)
    is_new = isinstance(place, Path) and not place.exists()
    with open_survey(study, database, create=create) as (definition, answers):
        from rankshot_survey.store.people import set_state

        if state == "open":
            require_written(definition, study)
        set_state(answers, state)
    if is_new:
        say(f"New database: {place}")


@contextmanager
def _find(
    study: Path, database: str | None, names: Sequence[str], *, others: bool = False
) -> Iterator[tuple[Study, Database, list[str]]]:
    """Read the study, open its database, and find participants in it, or all others."""
    with open_survey(study, database) as (definition, answers):
        from rankshot_survey.store.people import find_raters, find_unlisted

        find = find_unlisted if others else find_raters
        with answers.begin_read() as connection:
            raters = find(connection, answers.identity, definition.platform, names)
        yield definition, answers, raters


def _read_ids(path: Path | None) -> list[str]:
    """Read ids from a file: one per line, or a column of a table."""
    if path is None:
        return []
    if path.suffix != ".csv":
        return list(dict.fromkeys(name for _, name in iterate_names(path)))
    columns, _ = core.read_columns(path, strip=True)
    of_prolific = "Participant id" in columns
    (found,) = core.read_table(path, ("Participant id" if of_prolific else "id",), strip=True).texts
    return [name for name in dict.fromkeys(found) if name]


def _say_count(n: int, text: str) -> None:
    """Say something about a number of participants, unless it is 0."""
    if n:
        say(f"{format_count(n, 'participant')} {text}")


def _read_payments(study: Study, answers: Database) -> list[dict[str, object]]:
    from rankshot_survey.export import payment_records
    from rankshot_survey.overview import read_overview

    return payment_records(read_overview(study, answers, time.time()))


def _confirm(question: str, *, yes: bool) -> None:
    if not yes:
        typer.confirm(question, abort=True)
