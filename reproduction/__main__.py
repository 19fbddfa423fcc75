"""The paper's experiments, and what goes beyond them: ``make reproduce DATA=cifar``.

``python -m reproduction cifar|animals|intents|sounds DIRECTORY`` prints all tables and writes
``tables.md``, ``numbers.csv`` and the paper's figures to ``reproduction-<data set>``. It keeps the
trained classifiers there, so that a run that was stopped can continue: a first run takes up to half
an hour on two cores, a second one minutes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter

from rankshot.core.errors import RankshotError
from rankshot.datasets import TextData
from reproduction import paper_figures
from reproduction.benchmark import load_benchmark
from reproduction.data import MISSING, load_data
from reproduction.reproduction import PaperFigures, reproduce, reproduce_texts
from reproduction.result_tables import format_markdown, write_csv, write_markdown
from reproduction.sounds import reproduce_sounds


def main() -> None:
    """Run the experiments of one data set."""
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    parser.add_argument("dataset", choices=list(MISSING))
    parser.add_argument("directory", type=Path, help="has cifar/features.npz and so on")
    parser.add_argument("-o", "--output", type=Path, help="default: reproduction-<data set>")
    given = parser.parse_args()
    folder = given.output or Path(f"reproduction-{given.dataset}")
    folder.mkdir(parents=True, exist_ok=True)
    start = perf_counter()

    def announce(text: str) -> None:
        print(f"{perf_counter() - start:6.0f} s  {text}", file=sys.stderr)

    figures = None
    try:
        if given.dataset == "sounds":
            tables = reproduce_sounds(given.directory, announce)
        else:
            data = load_data(given.dataset, given.directory)
            run = reproduce_texts if isinstance(data, TextData) else reproduce
            found = run(load_benchmark(data), folder / "classifiers", announce)
            tables, figures = found.all_tables, found.figures
    except RankshotError as error:
        sys.exit(str(error))
    for table in tables:
        print(format_markdown(table))
    write_csv(tables, folder / "numbers.csv")
    write_markdown(tables, folder / "tables.md")
    if figures is not None:
        write_figures(figures, folder)
    print(f"tables.md, numbers.csv and figures written to {folder}")


def write_figures(figures: PaperFigures, folder: Path) -> None:
    """Draw the paper's four figures into SVG files."""
    drawn = {
        "figure-1": paper_figures.draw_classes(figures.tree, figures.word_maps),
        "figure-2": paper_figures.draw_cells(figures.cells),
        "figure-3": paper_figures.draw_sources(figures.source_maps),
        "figure-4": paper_figures.draw_two_classes(figures.two_classes),
    }
    for name, figure in drawn.items():
        figure.savefig(folder / f"{name}.svg")


if __name__ == "__main__":
    main()
