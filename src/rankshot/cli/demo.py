"""``rankshot demo``: the paper's comparison of methods in a minute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rankshot import report
from rankshot.cli.console import check_page, print_table, progress_bar, say

if TYPE_CHECKING:
    from rankshot.report.contents import MethodComparison


def demo(*, output: Path = Path("rankshot-demo.html")) -> None:
    """Compare all methods on images that come with the package.

    The demo trains a classifier on the classes of CIFAR-100 and uses it to recognise the classes of
    CIFAR-10. It takes about half a minute and works offline.

    Example: rankshot demo -o report.html

    Parameters
    ----------
    output
        The report to write (.html).
    """
    from rankshot.report.demo import demo_report, run_demo
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
    report.write_page(report.render_report(demo_report(found)), output)
    say(f"report written to {output}")


def _print_comparison(comparison: MethodComparison, n_inputs: int) -> None:
    """Show accuracies with the half-width of their intervals, the best of each method in bold."""
    from rich.text import Text

    rows: list[list[str | Text]] = []
    for method, ours in comparison.by_method().items():
        best = max(row.accuracy.estimate for row in ours)
        rows += [[], [Text(method, style="bold")]]
        for row in ours:
            estimate, low, high = row.accuracy
            text = f"{estimate:.3f} ± {(high - low) / 2:.3f}".replace("0.", ".")
            cell = Text(text, style="bold" if estimate == best else "")
            rows.append([f"  {row.source}", cell])
    title = f"Accuracy on {n_inputs:,} images of 10 new classes, ± 95 % interval"
    print_table(title, ["method and source", ">accuracy"], rows)
