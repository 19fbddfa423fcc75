"""``rankshot demo``: photographs to try, and the paper's comparison of methods in a minute."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from rankshot.cli.console import check_folder, check_page, print_table, progress_bar, refuse, say
from rankshot.core.errors import format_share, quote_names

if TYPE_CHECKING:
    from rankshot.pages.contents import MethodComparison


def demo(*, output: Path = Path("rankshot-demo"), files_only: bool = False) -> None:
    """Write example photographs, and a report on all methods.

    The folder will contain twelve photographs, rankings for the classes that they show, the files
    that the commands of the guide read (scores, labels, names of classes, votes), and the report.
    For the report, a classifier is trained on the classes of CIFAR-100 and recognises the classes
    of CIFAR-10. This takes about a minute and works offline.

    Example: rankshot demo -o rankshot-demo

    Parameters
    ----------
    output
        The folder to write to.
    files_only
        Write the files without the report, in a few seconds.
    """
    from rankshot.datasets.demo import MANIFEST, PAGE, PHOTOGRAPHS, RANKINGS, write_demo
    from rankshot.datasets.example_files import EXAMPLE_FILES

    check_folder(output)
    output.mkdir(parents=True, exist_ok=True)
    own = {PAGE, PHOTOGRAPHS, RANKINGS, MANIFEST, *EXAMPLE_FILES}
    others = sorted({path.name for path in output.iterdir()} - own)
    refuse(others, f"{output}: is not empty ({quote_names(others)}); give another one, -o FOLDER")
    if not files_only:
        check_page(output / PAGE)
    say("writing photographs and training a classifier")
    with progress_bar() as bar:
        task = bar.add_task("photographs", total=None)
        found = write_demo(
            output,
            lambda done, todo, what: bar.update(task, completed=done, total=todo, description=what),
            files_only=files_only,
        )
    words = ["recognise", output / PHOTOGRAPHS, "--model", "efficientnet-lite0"]
    words += ["--rankings", output / RANKINGS]
    say(f"twelve photographs written to {output / PHOTOGRAPHS}. To recognise what they show:")
    say(f"  rankshot {shlex.join(map(str, words))} -o predictions.csv")
    say(f"files of the guide written to {output}: {', '.join(EXAMPLE_FILES)}")
    if found is not None:
        _print_comparison(found.comparison, len(found.truth))
        say(f"Accuracy on held-out images of the seen classes: {found.seen_accuracy:.1%}.")
        reached = float((found.head.predict(found.scores) == found.truth).mean())
        say(
            f"A rehearsal with {len(found.rehearsal.forecast_.classes)} seen classes predicted "
            f"{found.predicted} with all questions; the accuracy is {format_share(reached)}."
        )
        say(f"report written to {output / PAGE}")


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
    title = f"Accuracy on {n_inputs:,} images of 10 new classes, ± 95% interval"
    print_table(title, ["method and source", ">accuracy"], rows)
