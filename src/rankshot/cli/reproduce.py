"""``rankshot reproduce``: the paper's experiments, and what goes beyond them."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rankshot.cli.console import progress_bar, say
from rankshot.core.errors import RankshotError
from rankshot.datasets.features_at import images_at
from rankshot.experiments.benchmark import load_benchmark
from rankshot.experiments.reproduction import Reproduction
from rankshot.experiments.reproduction import reproduce as run
from rankshot.experiments.tables import ResultTable, format_value, write_csv, write_markdown
from rankshot.report.page import require_jinja2
from rankshot.report.reproduction import write_reproduction

DATA = Path("..") / "shared" / "data"
"""Where measurement data are kept beside a checkout."""


class DataSet(StrEnum):
    """What the paper measured on."""

    CIFAR = "cifar"
    ANIMALS = "animals"


def reproduce(
    dataset: Annotated[DataSet, typer.Argument(help="CIFAR, or Animals with Attributes.")],
    data: Annotated[
        Path,
        typer.Option(
            envvar="RANKSHOT_DATA",
            help="The directory with cifar/features.npz or animals/features.npz; for animals also "
            "the data set's own, as unpacked.",
        ),
    ] = DATA,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The directory to write to: report.html, numbers.csv, tables.md and, to go on "
            "after a stop, the classifiers. By default reproduction-DATASET.",
        ),
    ] = None,
    download: Annotated[
        bool,
        typer.Option(
            "--download",
            help="Fetch CIFAR from its home into --data and extract its features (an hour or "
            "more on a CPU; goes on where it stopped; needs rankshot[images]).",
        ),
    ] = False,
) -> None:
    """Run the paper's experiments on real data, print its tables and write a report.

    Takes up to half an hour on two cores; finished classifiers are kept, so a second run, or one
    that was stopped, takes minutes.

    Example: rankshot reproduce cifar --data features -o reproduction-cifar
    """
    if download and dataset is not DataSet.CIFAR:
        raise RankshotError("--download fetches CIFAR only; for animals give --data DIR")
    require_jinja2()
    folder = Path(f"reproduction-{dataset}") if output is None else output
    for place in [folder, data] if download else [folder]:
        _check(place)
    with progress_bar() as bar:
        task = bar.add_task("reading", total=None)
        images = images_at(
            dataset.value,
            data,
            lambda done, total, what: bar.update(
                task, completed=done, total=total, description=what
            ),
            download=download,
        )
    folder.mkdir(parents=True, exist_ok=True)
    start = perf_counter()
    errors = Console(stderr=True)
    found = run(
        load_benchmark(images),
        folder / "classifiers",
        lambda text: say(f"{perf_counter() - start:6.0f} s  {text}", errors),
    )
    console = Console()
    for table in found.all_tables:
        console.print(shown(table))
        for note in table.notes:
            say(note, console)
    write_csv(found.all_tables, folder / "numbers.csv")
    write_markdown(found.all_tables, folder / "tables.md")
    title, lead = words(found)
    write_reproduction(folder / "report.html", title, lead, found.tables, found.figures)
    say(f"report.html, numbers.csv and tables.md written to {folder}", console)


def _check(folder: Path) -> None:
    """Refuse a directory that cannot be made or written to before anything is computed."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir():
        raise RankshotError(f"{folder}: cannot write there: {there} is no folder")
    if not os.access(there, os.W_OK):
        raise RankshotError(f"{folder}: cannot write there: {there} is not yours to write in")


def shown(table: ResultTable) -> Table:
    """Return a table for the terminal."""
    view = Table(title=table.title, title_justify="left")
    for number, name in enumerate(table.columns):
        view.add_column(name, justify="left" if number < table.n_labels else "right")
    for row in table.rows:
        view.add_row(*(Text(format_value(value)) for value in row))
    return view


def words(found: Reproduction) -> tuple[str, str]:
    """Return the title of the report, and what it says first."""
    names = {"cifar": "CIFAR", "animals": "Animals with Attributes"}
    title = f"Zero-shot classification with semantic rankings: {names[found.name]}"
    lead = (
        "The experiments of Hamm and Belkin (2015) run again, and what goes beyond them. No "
        "setting was chosen by a label or an image of an unseen class: seen classes that play "
        "unseen ones, ranked by the same panel, choose; unseen classes report."
    )
    return title, lead
