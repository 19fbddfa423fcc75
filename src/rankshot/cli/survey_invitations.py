"""``rankshot survey invite``: links for invited people, and who has not used them."""

from __future__ import annotations

from collections.abc import Collection
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankshot.cli.console import check_writable, say
from rankshot.cli.survey_options import DatabaseOption, StudyFile, open_survey
from rankshot.core.errors import RankshotError, format_count

if TYPE_CHECKING:
    from rankshot.survey.store.identity import Identity


def invite(
    study: StudyFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write (.csv).")],
    url: Annotated[str, typer.Option(help="The address of the survey, https://example.org/ .")],
    n: Annotated[int, typer.Option("-n", min=1, max=1_000_000, help="How many links.")] = 100,
    first: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100_000_000,
            show_default=False,
            help="Write links again that were written before, from this number on.",
        ),
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Write links for invited people, one per participant.

    Every run writes new links. Whoever opens a link again goes on where they stopped. Nobody can
    make another link. With `invitations = true` under [access] in the study, nobody can start
    without one. `rankshot survey participants` shows the number of each participant's link.

    Example: rankshot survey invite study.toml -n 100 -o links.csv --url https://example.org/
    """
    from rankshot.core.files import replace_file, require_ending
    from rankshot.survey.platforms import INVITATION
    from rankshot.survey.store.people import count_invitations
    from rankshot.survey.study_files import read_study

    require_ending(output, (".csv",))
    if output.exists():
        raise RankshotError(f"{output}: the file exists already; give another name, or remove it")
    check_writable(output, study)
    if not url.startswith(("https://", "http://")) or set(url) & set("?# \"'<>"):
        raise RankshotError(f"--url is {url!r}: write the address of the survey, with https://")
    if (platform := read_study(study).platform) != "none":
        raise RankshotError(
            f"{study}: participants come from {platform}, which sends each with an id: a link of "
            "an invitation would not start; give the ids that may start with allowed under [access]"
        )
    with open_survey(study, database, create=True) as (definition, answers):
        # Counted before they are written: no number is given to two people.
        before = count_invitations(answers, n if first is None else 0)
        if first is not None and first + n - 1 > before:
            raise RankshotError(
                f"--first {first} and -n {n} end at link {first + n - 1:,}, but there are only "
                f"{before:,}; leave out --first to write new ones"
            )
        first = first or before + 1
        with replace_file(output, private=True) as stream:
            stream.write("number,link\n")
            for number in range(first, first + n):
                token = answers.identity.invitation(number)
                stream.write(f"{number},{url.rstrip('/')}/?{INVITATION}={token}\n")
    say(f"{format_count(n, 'link')} written to {output}: numbers {first:,} to {first + n - 1:,}")
    if not definition.invitations:
        say("Note: others can start as well. Write invitations = true under [access] in the study.")


def say_unused(identity: Identity, n_invited: int, raters: Collection[str]) -> None:
    """Say whose invitations are not used: the raters are hashes of the numbers."""
    from rankshot.survey.platforms import INVITATION, participant_name

    unused = [
        number
        for number in range(1, n_invited + 1)
        if identity.rater(participant_name(INVITATION, str(number))) not in raters
    ]
    if unused:
        # Numbers that follow each other have the same difference to their place in the list.
        groups = (list(g) for _, g in groupby(enumerate(unused), lambda pair: pair[1] - pair[0]))
        ranges = (f"{g[0][1]}-{g[-1][1]}" if len(g) > 1 else f"{g[0][1]}" for g in groups)
        say(f"{len(unused):,} of {n_invited:,} invitations are not used: {', '.join(ranges)}")
