"""The paper's experiments: ``make reproduce DATA=cifar``.

``python -m reproduction cifar|animals DIRECTORY`` prints all tables and writes
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
from reproduction import paper_figures
from reproduction.benchmark import load_benchmark
from reproduction.data import load_data
from reproduction.reproduction import PaperFigures, reproduce
from reproduction.result_tables import format_markdown, write_csv, write_markdown


def main() -> None:
    """Run the experiments of one data set."""
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    parser.add_argument("dataset", choices=("cifar", "animals"))
    parser.add_argument("directory", type=Path, help="has cifar/features.npz and so on")
    parser.add_argument("-o", "--output", type=Path, help="default: reproduction-<data set>")
    options = parser.parse_args()
    folder = options.output or Path(f"reproduction-{options.dataset}")
    folder.mkdir(parents=True, exist_ok=True)
    start = perf_counter()

    def announce(text: str) -> None:
        print(f"{perf_counter() - start:6.0f} s  {text}", file=sys.stderr)

    try:
        data = load_data(options.dataset, options.directory)
        result = reproduce(load_benchmark(data), folder / "classifiers", announce)
    except RankshotError as error:
        sys.exit(str(error))
    tables = result.all_tables
    for table in tables:
        print(format_markdown(table))
    write_csv(tables, folder / "numbers.csv")
    write_markdown(tables, folder / "tables.md")
    write_figures(result.figures, folder)
    print(f"tables.md, numbers.csv and figures written to {folder}")


def write_figures(figures: PaperFigures, folder: Path) -> None:
    """Draw the paper's four figures into SVG files."""
    by_name = {
        "figure-1": paper_figures.draw_classes(figures.tree, figures.word_maps),
        "figure-2": paper_figures.draw_cells(figures.cells),
        "figure-3": paper_figures.draw_sources(figures.source_maps),
        "figure-4": paper_figures.draw_two_classes(figures.two_classes),
    }
    for name, figure in by_name.items():
        figure.savefig(folder / f"{name}.svg")


if __name__ == "__main__":
    main()
