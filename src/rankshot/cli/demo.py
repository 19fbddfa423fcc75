"""``rankshot demo``: the paper's comparison of methods in a minute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankshot.cli.console import check_page, print_table, progress_bar, say

if TYPE_CHECKING:
    from rankshot.report.contents import MethodComparison


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
    from rankshot.report.demo import demo_report, run_demo
    from rankshot.report.page import render_report, write_page
    from rankshot.zeroshot.metrics import accuracy, format_share

    check_page(output)
    with progress_bar() as bar:
        task = bar.add_task("loading", total=None)
        found = run_demo(
            lambda done, todo, what: bar.update(task, completed=done, total=todo, description=what)
        )
    _print_comparison(found.comparison, len(found.truth))
    say(f"Accuracy on held-out images of the seen classes: {found.seen_accuracy:.1%}.")
    came_out = accuracy(found.truth, found.head.predict(found.scores))
    say(
        f"A rehearsal with {len(found.rehearsal.classes_)} seen classes predicted "
        f"{found.predicted} with all questions; the accuracy is {format_share(came_out)}."
    )
    write_page(render_report(demo_report(found)), output)
    say(f"report written to {output}")


def _print_comparison(comparison: MethodComparison, n_inputs: int) -> None:
    """Show accuracies with the half-width of their intervals, the best of each method in bold."""
    from rich.text import Text

    rows: list[list[str | Text]] = []
    for method in dict.fromkeys(row.method for row in comparison.rows):
        ours = [row for row in comparison.rows if row.method == method]
        best = max(cell.estimate for row in ours for cell in row.cells if cell is not None)
        rows += [[], [Text(method, style="bold")]]
        for row in ours:
            rows.append([f"  {row.source}"])
            for cell in row.cells:
                if cell is None:
                    rows[-1].append(Text("n/a", style="dim"))
                    continue
                text = f"{cell.estimate:.3f} ± {(cell.high - cell.low) / 2:.3f}"
                style = "bold" if cell.estimate == best else ""
                rows[-1].append(Text(text.replace("0.", "."), style=style))
    title = f"Accuracy on {n_inputs:,} images of 10 new classes, ± 95 % interval"
    columns = [f">{name}" for name in comparison.classifiers]
    print_table(title, ["method and source", *columns], rows)
