"""``rankshot survey``: rankings from people."""

from __future__ import annotations

import os
import time
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankshot.cli.console import SHOWN, check_writable, say
from rankshot.core.errors import RankshotError, format_count

if TYPE_CHECKING:
    from rich.table import Table

    from rankshot.survey.progress import Overview
    from rankshot.survey.store.database import Database
    from rankshot.survey.study import Study

TOKEN = "RANKSHOT_SURVEY_TOKEN"  # noqa: S105 (the name of the variable, not a token)
DATABASE = "RANKSHOT_SURVEY_DATABASE"
survey = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"max_content_width": 100},
    help="Collect rankings from people with a web page of your own.",
)
StudyFile = Annotated[Path, typer.Argument(metavar="STUDY.toml", help="The study.")]
DatabaseOption = Annotated[
    str | None,
    typer.Option(
        envvar=DATABASE,
        show_default=False,
        show_envvar=False,
        help="A postgresql:// URL, or another file than the one beside the study. A URL with a "
        f"password is better given in the environment, as {DATABASE}.",
    ),
]


@survey.command()
def new(
    study: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="The file to write.")],
    seen: Annotated[Path, typer.Option(help="The items: classes known, one name a line.")],
    unseen: Annotated[Path, typer.Option(help="The targets: classes wanted, one name a line.")],
    show: Annotated[
        int | None,
        typer.Option(show_default=False, help="Items that a question shows; 10, or all if fewer."),
    ] = None,
    nearest: Annotated[
        Path | None,
        typer.Option(
            "--from",
            show_default=False,
            help="A rankings file that says which items are nearest to each target, as from "
            "rankshot rank (where a name can be pinned to a sense); by default WordNet says it.",
        ),
    ] = None,
    pool: Annotated[
        int | None,
        typer.Option(
            show_default=False,
            help="Nearest items asked about, if more than a question shows: several questions "
            "of a target share them.",
        ),
    ] = None,
    answers: Annotated[int, typer.Option(help="Answers wanted of each question.")] = 50,
    questions: Annotated[
        int | None,
        typer.Option(show_default=False, help="Questions of a participant; 10, or all if fewer."),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option(show_default=False, help="What participants read above the page."),
    ] = None,
) -> None:
    """Write a study: which items are shown with each target, and how many answers are wanted.

    Example: rankshot survey new study.toml --seen seen.txt --unseen unseen.txt
    """
    from rankshot.core.text_files import read_names, replace_file
    from rankshot.ranking.files import read_rankings
    from rankshot.survey.new_study import DEFAULT_TITLE, new_study, study_text
    from rankshot.survey.study import CONSENT_PLACEHOLDER

    if study.suffix != ".toml":
        raise RankshotError(f"{study}: unknown ending {study.suffix!r}; a study is .toml")
    if study.exists():
        raise RankshotError(f"{study}: is there already; give another name, or remove it")
    check_writable(study)
    items = read_names(seen)
    made = new_study(
        read_names(unseen),
        items,
        show=show,
        pool=pool,
        rankings=None if nearest is None else read_rankings(nearest, items=items),
        title=DEFAULT_TITLE if title is None else title,
        answers_per_question=answers,
        questions_per_participant=questions,
    )
    with replace_file(study) as stream:
        stream.write(study_text(made))
    say(f"{study}: {_plan(made)}")
    if nearest is None:
        say(
            "WordNet chose the items: look at them. Where it reads a name in the wrong sense, pin "
            "that in rankshot rank, and give its rankings with --from."
        )
    say(f"Write whom participants may ask, where it says {CONSENT_PLACEHOLDER}, and start it with")
    say(f"    rankshot survey serve {study}")


@survey.command()
def serve(
    study: StudyFile,
    host: Annotated[
        str, typer.Option(help="The address to listen at; 0.0.0.0 is open to the network.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")] = 8000,
    database: DatabaseOption = None,
    root: Annotated[
        str, typer.Option(help="The path below which a proxy serves it, as /survey.")
    ] = "",
    requests: Annotated[
        int, typer.Option(min=1, help="Requests that one address may make in a minute.")
    ] = 600,
    starts: Annotated[
        int, typer.Option(min=1, help="Participants that one address may start in a minute.")
    ] = 60,
) -> None:
    """Serve a study's web page until Ctrl-C.

    The researcher's page is there if RANKSHOT_SURVEY_TOKEN is set in the environment.

    Example: rankshot survey serve study.toml
    """
    _require_extra()
    from rankshot.survey.store.collected import n_answers_to_others
    from rankshot.survey.study import CONSENT_PLACEHOLDER, read_study
    from rankshot.survey.web.app import Rates, create_app, is_loopback, open_port
    from rankshot.survey.web.app import serve as serve_app

    if root and (not root.startswith("/") or root.endswith("/")):
        raise RankshotError(f"--root is {root!r}: begin it with a slash and end it without one")
    asked = read_study(study)
    if CONSENT_PLACEHOLDER in asked.consent:
        todo = f"{study}: the consent still says {CONSENT_PLACEHOLDER}"
        if not is_loopback(host):
            raise RankshotError(f"{todo}; fill it in before others see it")
        say(f"Note: {todo}.")
    if asked.platform == "prolific" and asked.completion_url is None:
        say(f"Note: {study}: without [platform] completion_url Prolific does not see who finished.")
    token = os.environ.get(TOKEN)
    rates = Rates(requests=requests, starts=starts)
    with (
        open_port(host, port) as listening,
        closing(_open(study, database, create=True)) as answers,
    ):
        app = create_app(asked, answers, token=token, rates=rates, root=root)
        with answers.reading() as connection:
            others = n_answers_to_others(connection, asked)
        if others:
            say(
                f"Note: {format_count(others, 'answer')} in the database are to questions that {study} "
                "does not ask (any more); they are kept, and exported."
            )
        name = f"[{host}]" if ":" in host else host
        address = f"http://{name}:{listening.getsockname()[1]}{root}"
        say(f"{asked.title}: {_plan(asked)}")
        say(f"Participants  {address}/")
        say(f"Researcher    {address}/researcher" if token else f"Researcher    off: set {TOKEN}")
        say("Ctrl-C ends it. Every answer that was taken is kept.")
        serve_app(app, listening)


@survey.command()
def status(study: StudyFile, database: DatabaseOption = None) -> None:
    """Show how far a survey is: answers, consensus, agreement, flagged raters.

    Example: rankshot survey status study.toml
    """
    from rich.console import Console

    view = _overview(study, database)
    people = view.participants
    console = Console()
    console.print(_targets(view))
    gone = sum(q.answered for q in view.standing.questions if not q.is_asked)
    if gone:
        say(f"{format_count(gone, 'more answer')} to questions that are no longer asked", console)
    say(
        f"{format_count(people.started, 'participant')}: {people.finished:,} finished, "
        f"{people.active:,} at it, {people.left:,} left before the end",
        console,
    )
    standing = view.standing
    say(f"{len(standing.flagged):,} of {len(standing.raters):,} raters are flagged", console)
    for row in standing.flagged:
        reasons = "; ".join(f"{flag.name}: {flag.text}" for flag in row.flags)
        say(f"    {row.rater} (code {view.codes[row.rater]}) {reasons}", console)


@survey.command()
def export(
    study: StudyFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The rankings file to write (.jsonl).")
    ],
    database: DatabaseOption = None,
    exclude_flagged: Annotated[
        bool, typer.Option("--exclude-flagged", help="Leave out the answers of flagged raters.")
    ] = False,
) -> None:
    """Write the answers as a rankings file.

    Example: rankshot survey export study.toml -o rankings.jsonl
    """
    from rankshot.survey.export import write_export

    check_writable(output, study)
    view = _overview(study, database)
    exported = write_export(
        output, view.study, view.answers, view.flags, exclude_flagged=exclude_flagged
    )
    say(f"{format_count(exported.n_answers, 'answer')} written to {output}")
    if exclude_flagged:
        who = format_count(exported.n_raters_excluded, "flagged rater")
        say(f"left out: {format_count(exported.n_excluded, 'answer')} of {who}")
    say(
        f"never exported: {format_count(exported.n_skips, 'skip')}, "
        f"{format_count(exported.n_repeats, 'repeat')}, {format_count(exported.n_gold, 'gold answer')}"
    )


@survey.command()
def rater(
    study: StudyFile,
    participant: Annotated[str, typer.Argument(help="The platform's id, or a completion code.")],
    database: DatabaseOption = None,
) -> None:
    """Say under which name a participant's answers are kept, and whether they finished.

    Example: rankshot survey rater study.toml 5f1e2d3c
    """
    _require_extra()
    from rankshot.survey.platforms import kept_as
    from rankshot.survey.store.collected import raters
    from rankshot.survey.study import read_study

    asked = read_study(study)
    with closing(_open(study, database)) as opened, opened.reading() as connection:
        known = raters(connection)
        identity = opened.identity
        of_id = identity.rater(kept_as(asked.platform, participant))
        found = [name for name in known if name == of_id or identity.code(name) == participant]
    if not found:
        raise RankshotError(f"{participant}: nobody with this id or code has taken part")
    for name in found:
        end = "finished" if known[name] else "not finished"
        say(f"rater {name}, code {identity.code(name)}: {end}")


def _require_extra() -> None:
    for name in ("fastapi", "jinja2", "python_multipart", "sqlalchemy", "uvicorn"):
        if find_spec(name) is None:
            raise RankshotError(f"the survey needs {name}: pip install 'rankshot[survey]'")


def _open(study: Path, database: str | None, *, create: bool = False) -> Database:
    from rankshot.survey.store.database import Database

    if database is not None and "://" in database:
        return Database(database, create=create)
    return Database(Path(database or study.with_suffix(".sqlite")), create=create)


def _overview(study: Path, database: str | None) -> Overview:
    _require_extra()
    from rankshot.survey.progress import overview
    from rankshot.survey.study import read_study

    asked = read_study(study)
    with closing(_open(study, database)) as opened:
        return overview(asked, opened, time.time())


def _plan(study: Study) -> str:
    n, each = len(study.questions), study.answers_per_question
    people = -(-n * each // min(study.questions_per_participant, n))
    return (
        f"{format_count(n, 'question')} with {format_count(each, 'answer')} each, from "
        f"{format_count(people, 'participant')} or more"
    )


def _targets(view: Overview) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(view.study.title))
    table.add_column("target", style="bold", overflow="fold")
    table.add_column("answers", justify="right")
    table.add_column("under way", justify="right")
    table.add_column("consensus so far", overflow="fold")
    table.add_column("stable", justify="right")
    table.add_column("first 3", justify="right")
    table.add_column("W", justify="right")
    questions = view.standing.questions
    for row in view.standing.targets:
        answered = sum(
            q.answered for q in questions if q.is_asked and q.question.target == row.target
        )
        order = [x if isinstance(x, str) else " = ".join(x) for x in row.consensus]
        shares = (row.stability, row.first_stability, row.concordance)
        cells = [
            row.target,
            f"{answered:,} of {row.planned:,}",
            f"{row.live:,}",
            " > ".join(order[:SHOWN]) + (" > …" if len(order) > SHOWN else ""),
            *("-" if share is None else f"{share:.2f}" for share in shares),
        ]
        table.add_row(*map(Text, cells))
    return table
