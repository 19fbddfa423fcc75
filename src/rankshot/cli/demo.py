"""``rankshot demo``: the paper's comparison of methods in a minute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankshot.cli.console import check_page, progress_bar, say

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from rankshot.report.contents import MethodComparison
    from rankshot.zeroshot.metrics import Interval


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The report to write (.html).")
    ] = Path("rankshot-demo.html"),
) -> None:
    """Compare all methods on images inside the package.

    The demo trains a classifier on the classes of CIFAR-100 and uses it to recognise the classes of
    CIFAR-10. It takes about half a minute and needs no network.

    Example: rankshot demo -o report.html
    """
    from rich.console import Console

    from rankshot.report.demo import demo_report, run_demo
    from rankshot.report.page import render_report, write_page
    from rankshot.zeroshot.metrics import accuracy, format_share

    check_page(output)
    with progress_bar() as bar:
        task = bar.add_task("loading", total=None)
        found = run_demo(
            lambda done, todo, what: bar.update(task, completed=done, total=todo, description=what)
        )
    console = Console()
    console.print(comparison_table(found.comparison, len(found.truth)))
    say(f"Accuracy on held-out images of the seen classes: {found.seen_accuracy:.1%}.", console)
    came_out = accuracy(found.truth, found.head.predict(found.scores))
    say(
        f"A rehearsal with {len(found.rehearsal.classes_)} seen classes predicted "
        f"{found.predicted} with all questions; the accuracy is {format_share(came_out)}.",
        console,
    )
    write_page(render_report(demo_report(found)), output)
    say(f"report written to {output}", console)


def comparison_table(comparison: MethodComparison, n_inputs: int) -> Table:
    """Show accuracies with the half-width of their intervals, the best of each method in bold."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"Accuracy on {n_inputs:,} images of 10 new classes, ± 95 % interval")
    table.add_column("method and source")
    for name in comparison.classifiers:
        table.add_column(name, justify="right")
    for method in dict.fromkeys(row.method for row in comparison.rows):
        rows = [row for row in comparison.rows if row.method == method]
        best = max(cell.estimate for row in rows for cell in row.cells if cell is not None)
        table.add_section()
        table.add_row(Text(method, style="bold"))
        for row in rows:
            cells = (_format_cell(cell, best) for cell in row.cells)
            table.add_row(Text(f"  {row.source}"), *cells)
    return table


def _format_cell(cell: Interval | None, best: float) -> Text:
    from rich.text import Text

    if cell is None:
        return Text("n/a", style="dim")
    text = f"{cell.estimate:.3f} ± {(cell.high - cell.low) / 2:.3f}".replace("0.", ".")
    return Text(text, style="bold" if cell.estimate == best else "")
