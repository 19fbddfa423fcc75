"""``rankshot-survey``: rankings from people.

Each command imports what it needs when it runs, so that ``rankshot --help`` stays fast.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from rankshot import ranking
from rankshot.cli.console import check_output, refuse, require_port, say
from rankshot.core.errors import RankshotError, UnknownItemError, format_count
from rankshot.core.files import read_names, replace_file
from rankshot_survey.cli import people
from rankshot_survey.cli.results import (
    backup,
    export,
    open_database,
    require_extra,
    require_written,
    status,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rankshot_survey.study import Study

TOKEN = "RANKSHOT_SURVEY_TOKEN"  # noqa: S105 (the name of the variable, not a token)
# What `serve` says about a study that is not open.
STOPPED = {
    "pilot": "PILOT: answers are tests. Start the study with `rankshot-survey reopen`",
    "paused": "PAUSED: nobody can start or continue. Resume it with `rankshot-survey reopen`",
    "closed": "CLOSED: no new participants can start. Open it with `rankshot-survey reopen`",
}
ABOUT = "Collect rankings from people with your own web page."


def new(
    study: Path,
    *,
    items: Path | None = None,
    prompt: str | None = None,
    seen: Path | None = None,
    new: Path | None = None,
    show: int | None = None,
    preselect: Path | None = None,
    pool: int | None = None,
    answers: int = 50,
) -> None:
    """Write a new study file.

    With --items, people put ordinary items in order, all in one question. With --seen and --new,
    they order the seen classes of a classifier by their similarity to each new class. The file
    lists what each question shows, and how many answers are needed.

    Example: rankshot-survey new study.toml --items items.txt --prompt "Which do you like best?"

    Example: rankshot-survey new study.toml --seen seen.txt --new new.txt

    Parameters
    ----------
    study
        The file to write.
    items
        A text file with the items to be ordered, one per line.
    prompt
        The question, such as "Which of these do you like best?". With several new classes, it
        contains {target} in place of the new class.
    seen
        A text file with the seen classes, one per line, to be ordered.
    new
        A text file with the new classes, one per line.
    show
        The number of items or seen classes in a question. By default, a question shows all items,
        or 10 seen classes (all if there are fewer). If not all items are shown, each participant
        gets different sets, so that all pairs are compared.
    preselect
        A rankings file with the seen classes nearest to each new class, for example from `rankshot
        rank`. By default, WordNet selects them.
    pool
        The number of nearest seen classes that the questions of a new class cover. If it is larger
        than --show, each new class gets several questions, with different sets for each
        participant.
    answers
        The number of answers per question.
    """
    require_extra()
    from rankshot_survey.design import MOST_SHOWN, new_study
    from rankshot_survey.study import CONSENT_PLACEHOLDER, TITLE_PLACEHOLDER
    from rankshot_survey.study_files import format_study

    _check_new(study)
    listed, *others = (items, seen, preselect, pool) if items and prompt else (seen, items)
    if not isinstance(listed, Path) or any(others) or (new is None) != (listed is items):
        raise RankshotError(
            "give --items and --prompt to ask about ordinary items, or --seen and --new (perhaps "
            "with --preselect and --pool) to ask about the classes of a classifier"
        )
    names = read_names(listed)
    rankings = ranking.read_rankings(preselect, items=names) if preselect else None
    try:
        designed = new_study(
            read_names(new) if new else None,
            names,
            prompt=prompt,
            show=show,
            pool=pool,
            rankings=rankings,
            answers_per_question=answers,
        )
    except UnknownItemError as error:
        raise RankshotError(f"{error}: see `rankshot rank --names`, and --preselect") from None
    with replace_file(study) as stream:
        stream.write(format_study(designed))
    say(f"{study}: {_describe_plan(designed)}")
    if show is None and items and len(names) > MOST_SHOWN:
        say(
            f"One question shows all {len(names)} items, which takes a long time to answer. With "
            f"--show {MOST_SHOWN}, each participant ranks several sets of {MOST_SHOWN} items."
        )
    if new and not preselect and designed.unshown:
        say(
            "WordNet selected the seen classes of each question: please check them. If it uses "
            "the wrong sense of a name, choose the sense with `rankshot rank --names`, and give "
            "its rankings with --preselect."
        )
    title = f", and the title {designed.title!r}" * (designed.title == TITLE_PLACEHOLDER)
    say(f"In the file, replace {CONSENT_PLACEHOLDER}{title}. Then start the survey with")
    say(f"    rankshot-survey serve {study}")
    say("Until then, try it with --pilot.")


def catalogue(file: Path) -> None:
    """Write the texts that participants read, for translation.

    The texts are in English. Translate them in the file, and name it in the study file, under
    [language] catalogues.

    Example: rankshot-survey catalogue fr.toml

    Parameters
    ----------
    file
        The file to write, such as fr.toml.
    """
    require_extra()
    from rankshot_survey.languages import english_text
    from rankshot_survey.study_values import LANGUAGE

    _check_new(file)
    if not LANGUAGE.fullmatch(file.stem):
        raise RankshotError(f"{file}: name the file after its language, such as fr.toml")
    with replace_file(file) as stream:
        stream.write(english_text(file.stem))
    say(f"{file}: translate the texts in quotes. Then write into the study file")
    say(f'    [language]\n    catalogues = ["{file.name}"]')


def serve(
    study: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    database: str | None = None,
    requests: int = 600,
    pilot: bool = False,
    accept_copy: bool = False,
) -> None:
    """Serve the web pages of a study until Ctrl-C.

    The researcher's page is available if RANKSHOT_SURVEY_TOKEN is set in the environment.

    Example: rankshot-survey serve study.toml

    Parameters
    ----------
    host
        The address to listen on. With 0.0.0.0, other machines on the network can reach the survey.
    port
        The port to listen on. With 0, a free port is chosen.
    requests
        The number of requests per minute that one IP address may send.
    pilot
        Only try the study, as with `rankshot-survey pilot`: answers are marked as a test. The study
        may still have placeholders.
    accept_copy
        Start even if the database is a copy that may be missing answers.
    """
    require_port(port)
    refuse(requests < 1, f"--requests must be 1 or more, not {requests}")
    require_extra()
    from rankshot.web.server import find_network_address, open_port, serve as serve_app
    from rankshot_survey.store.people import read_state, set_state
    from rankshot_survey.study_files import read_study
    from rankshot_survey.web.app import create_app

    definition = read_study(study)
    if not pilot:
        require_written(definition, study)
    for note in (*_find_missing_links(definition), *_find_untranslated(definition)):
        say(f"Note: {study}: {note}.")
    token = os.environ.get(TOKEN)
    with (
        open_port(host, port) as listening,
        closing(open_database(study, database, create=True)) as answers,
    ):
        if accept_copy:
            answers.accept_copy()
        if pilot:
            set_state(answers, "pilot")
        app = create_app(definition, answers, token=token, requests=requests)
        with answers.begin_read() as connection:
            state = read_state(connection)
        name = f"[{host}]" if ":" in host else host
        address = f"http://{name}:{listening.getsockname()[1]}"
        say(f"{definition.title}: {_describe_plan(definition)}")
        if state in STOPPED:
            say(f"State         {STOPPED[state]}")
        say(f"Participants  {address}/")
        if host in ("0.0.0.0", "::") and (found := find_network_address()):  # noqa: S104 (asked for)
            phones = f"http://{found}:{listening.getsockname()[1]}/"
            say(f"Phones        {phones} (on the same network)")
            if sys.stdout.isatty():
                say(draw_code(phones))
        if definition.platform != "none" and definition.allowed is None:
            hint = " (answers are real, unless you run `rankshot-survey pilot` first)"
            say(f"Try it        {address}/?{definition.id_names[0]}=test{hint * (state == 'open')}")
        say(f"Researcher    {address}/researcher" if token else f"Researcher    off: set {TOKEN}")
        say("Press Ctrl-C to stop. All answers that were sent are saved.")
        serve_app(app, listening)


COMMANDS: tuple[Callable[..., None], ...] = (
    *(new, catalogue, serve, status, export, backup),
    *(people.pilot, people.pause, people.close, people.reopen, people.reset, people.exclude),
    *(people.restore, people.release, people.delete, people.payments, people.forget_ids),
)
SHARED: tuple[Callable[..., None], ...] = (status, people.delete)
"""The commands with the texts of options that several have."""


def draw_code(address: str) -> str:
    """Return an address as a QR code for a terminal."""
    try:
        import segno
    except ImportError:
        return "For a QR code of it: pip install segno"
    stream = io.StringIO()
    segno.make(address, micro=False).terminal(stream, compact=True)
    return stream.getvalue()


def _check_new(path: Path) -> None:
    """Refuse a file that exists, has another ending or cannot be written."""
    check_output(path, (".toml",))
    refuse(path.exists(), f"{path}: the file exists already; give another name, or remove it")


def _find_missing_links(study: Study) -> Iterator[str]:
    """Yield what participants from a platform lack; those of MTurk copy the completion code."""
    if study.platform not in ("none", "mturk"):
        for key, problem in {
            "completion_url": "the platform cannot see who finished",
            "full_url": "people cannot return from a study that is full, paused or closed",
            "refusal_url": "people who do not agree, withdraw or answer nothing cannot return",
            "screening_url": "people who are screened out have no code of their own",
        }.items():
            if getattr(study, key) is None and (key != "screening_url" or study.screening):
                yield f"without [platform] {key}, {problem}"


def _find_untranslated(study: Study) -> Iterator[str]:
    """Yield what some participants read in another language than the buttons."""
    from rankshot_survey.languages import Languages, OwnTexts

    foreign = [
        tag
        for tag in Languages(study).offered
        if OwnTexts(study, tag).consent.language.split("-")[0] != tag.split("-")[0]
    ]
    if foreign:
        yield (
            f"browsers in {', '.join(foreign)} get buttons in their language, but the consent in "
            f"{study.language}: translate it under [translations.{foreign[0]}], or write the "
            "languages that you want under [language] offered"
        )


def _describe_plan(study: Study) -> str:
    from rankshot_survey.design import describe_coverage

    n, each = len(study.asked), study.answers_per_question
    people = -(-n * each // study.n_asked)
    return (
        f"{format_count(n, 'question')} with {format_count(each, 'answer')}"
        f"{' each' if n > 1 else ''}, from {format_count(people, 'participant')} or more"
        f"{describe_coverage(study)}"
    )
