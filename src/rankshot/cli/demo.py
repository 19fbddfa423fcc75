"""``rankshot demo``: the paper's comparison in a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rankshot.cli.console import check_writable, progress_bar, say
from rankshot.experiments.comparison import Comparison
from rankshot.experiments.demo import run_demo
from rankshot.report.demo import demo_report
from rankshot.report.page import write_report


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The report to write (.html).")
    ] = Path("rankshot-demo.html"),
) -> None:
    """Compare all methods on images that come with the package; write a report of it.

    Trains three classifiers on CIFAR-100's classes and recognises CIFAR-10's with them. Takes
    less than a minute, and no network.

    Example: rankshot demo -o report.html
    """
    check_writable(output)
    with progress_bar() as bar:
        task = bar.add_task("loading", total=None)
        found = run_demo(
            lambda done, todo, what: bar.update(task, completed=done, total=todo, description=what)
        )
    console = Console()
    console.print(comparison_table(found.comparison, len(found.truth)))
    seen = ", ".join(f"{name} {share:.1%}" for name, share in found.seen_accuracy.items())
    say(f"On held-out images of the classes they know: {seen}.", console)
    write_report(demo_report(found), output)
    say(f"report written to {output}", console)


def comparison_table(comparison: Comparison, n_inputs: int) -> Table:
    """Show accuracies with their intervals, the best of each method in bold."""
    table = Table(title=f"Accuracy on {n_inputs:,} images of 10 unseen classes, 95 % intervals")
    table.add_column("method")
    table.add_column("source")
    for name in comparison.classifiers:
        table.add_column(name, justify="right")
    last = ""
    for row in comparison.rows:
        if row.method != last:
            table.add_section()
        best = max(
            cell.estimate
            for other in comparison.rows
            for cell in other.cells
            if cell is not None and other.method == row.method
        )
        cells = [
            Text("n/a", style="dim")
            if cell is None
            else Text(str(cell), style="bold" if cell.estimate == best else "")
            for cell in row.cells
        ]
        table.add_row(Text("" if row.method == last else row.method), Text(row.source), *cells)
        last = row.method
    return table
