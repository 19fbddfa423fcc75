"""``rankshot reproduce``: the paper's experiments, and what goes beyond them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from rankshot.cli.console import check_output_folder, progress_bar, say
from rankshot.core.errors import RankshotError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.table import Table

    from rankshot.datasets.features import ImageData
    from rankshot.experiments.benchmark import Benchmark
    from rankshot.experiments.reproduction import Reproduction
    from rankshot.experiments.result_tables import ResultTable

DATA = "RANKSHOT_DATA"
"""The environment variable that names the directory of the data."""
LEAD = (
    "The experiments of Hamm and Belkin (2015), repeated and extended. No setting was chosen with "
    "a label or an image of a new class: settings are chosen with seen classes that play new ones "
    "and are ranked by the same panel, and the new classes are only used for the final results."
)


class DataSet(StrEnum):
    """The data sets of the paper, and one of texts."""

    CIFAR = "cifar"
    ANIMALS = "animals"
    INTENTS = "intents"


NAMES = {
    DataSet.CIFAR: "CIFAR",
    DataSet.ANIMALS: "Animals with Attributes",
    DataSet.INTENTS: "intents (CLINC150)",
}
MISSING = {
    DataSet.CIFAR: "give the directory that has it with --data DIR, or let --download fetch CIFAR "
    "and extract its features (an hour or more on a CPU)",
    DataSet.ANIMALS: "give the directory that has it, or the directory where Animals with "
    "Attributes was unpacked (with Features/ and classes.txt), with --data DIR",
    DataSet.INTENTS: "give the directory that has intents/requests.jsonl, classes.json, "
    "panel.jsonl and panel_held_out_seen.jsonl with --data DIR",
}
"""What to do if there are no features of a data set."""


def reproduce(
    dataset: Annotated[
        DataSet,
        typer.Argument(help="The data set: CIFAR, Animals with Attributes, or texts (intents)."),
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            envvar=DATA,
            show_envvar=False,
            help="The directory that has cifar/features.npz, animals/features.npz or "
            "intents/requests.jsonl. For animals it may be the unpacked data set itself. The "
            f"default is the value of the environment variable {DATA}.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The directory to write report.html, numbers.csv and tables.md to. It also keeps "
            "the trained classifiers, so that a run that was stopped can continue. The default is "
            "reproduction-DATASET.",
        ),
    ] = None,
    download: Annotated[
        bool,
        typer.Option(
            "--download",
            help="Download CIFAR to the directory of --data and extract its features. This takes "
            "an hour or more on a CPU, continues after an interruption, and needs "
            "rankshot[images].",
        ),
    ] = False,
) -> None:
    """Run the paper's experiments on real data.

    Intents are texts, which the paper does not have: only the experiments beyond the paper are run.

    The tables are printed, and a report with all tables and figures is written.

    A run takes up to half an hour on two cores. The trained classifiers are kept, so a second run
    takes minutes.

    Example: rankshot reproduce cifar --data features -o reproduction-cifar
    """
    from rich.console import Console

    from rankshot.experiments.result_tables import write_csv, write_markdown
    from rankshot.report.page import require_jinja2, write_page
    from rankshot.report.reproduction import render_reproduction

    if download and dataset is not DataSet.CIFAR:
        raise RankshotError(f"--download fetches CIFAR only; for {dataset} give --data DIR")
    if data is None:
        raise RankshotError(
            "give the directory of the data with --data DIR, or set the environment variable "
            f"{DATA}"
        )
    require_jinja2()
    folder = Path(f"reproduction-{dataset}") if output is None else output
    for place in [folder, data] if download else [folder]:
        check_output_folder(place)
    run, benchmark = _prepare(dataset, data, download=download)
    folder.mkdir(parents=True, exist_ok=True)
    start = perf_counter()
    errors = Console(stderr=True)
    found = run(
        benchmark,
        folder / "classifiers",
        lambda text: say(f"{perf_counter() - start:6.0f} s  {text}", errors),
    )
    console = Console()
    for table in found.all_tables:
        console.print(_format_table(table))
        for note in table.notes:
            say(note, console)
    write_csv(found.all_tables, folder / "numbers.csv")
    write_markdown(found.all_tables, folder / "tables.md")
    title = f"Zero-shot classification with semantic rankings: {NAMES[dataset]}"
    page = render_reproduction(title, LEAD, found.tables, found.figures)
    write_page(page, folder / "report.html")
    say(f"report.html, numbers.csv and tables.md written to {folder}", console)


def _prepare(
    dataset: DataSet, data: Path, *, download: bool
) -> tuple[Callable[..., Reproduction], Benchmark]:
    """Return the function that runs the experiments, and the data for it."""
    from rankshot.datasets.intents import load_intents
    from rankshot.experiments import reproduction
    from rankshot.experiments.benchmark import load_benchmark

    if dataset is not DataSet.INTENTS:
        images = _load_images(dataset, data, download=download)
        return reproduction.reproduce, load_benchmark(images)
    folder = data if (data / "requests.jsonl").is_file() else data / dataset.value
    try:
        texts = load_intents(folder)
    except FileNotFoundError as error:
        raise RankshotError(
            f"{error.filename}: there is no such file; {MISSING[dataset]}"
        ) from None
    return reproduction.reproduce_texts, load_benchmark(texts)


def _load_images(dataset: DataSet, data: Path, *, download: bool) -> ImageData:
    from rankshot.datasets import loading

    with progress_bar() as bar:
        task = bar.add_task("reading", total=None)
        try:
            return loading.load_images(
                dataset.value,
                data,
                lambda done, total, what: bar.update(
                    task, completed=done, total=total, description=what
                ),
                download=download,
            )
        except loading.MissingFeaturesError as error:
            raise RankshotError(f"{error}; {MISSING[dataset]}") from None


def _format_table(table: ResultTable) -> Table:
    """Return a table for the terminal."""
    from rich.table import Table
    from rich.text import Text

    from rankshot.experiments.result_tables import format_value

    view = Table(title=table.title, title_justify="left")
    for number, name in enumerate(table.columns):
        view.add_column(name, justify="left" if number < table.n_labels else "right")
    for row in table.rows:
        view.add_row(*(Text(format_value(value)) for value in row))
    return view
