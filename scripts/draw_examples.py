"""Draw docs/images/examples.svg: accuracy against labelled examples, with and without rankings.

The numbers are those of the recorded runs in docs/results, with their intervals.
"""

import re
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

DOCS = Path(__file__).parents[1] / "docs"
TITLE = "## Accuracy against labelled examples"
PANELS = {
    "cifar": "CIFAR, 10 classes",
    "animals": "Animals, 10 classes",
    "intents": "Intents, 30 classes",
}
CURVES = {
    "rankings and examples, features": ("rankings and examples", "#1b6ca8", "o"),
    "examples alone: logistic regression on the features": ("examples alone", "#c8553d", "s"),
    "the paper's method, which takes no examples": ("the paper's method", "#777777", "D"),
}


def read_rows(path: Path) -> dict[str, list[str]]:
    """Return the cells of the table by the name of its row."""
    text = path.read_text("utf-8")
    table = text[text.index(TITLE) :].split("\n\n")[1]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {row[0]: row[1:] for row in rows}


def main() -> None:
    """Draw one panel per data set."""
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "examples", "font.size": 11})
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    for ax, (name, title) in zip(figure.subplots(1, 3, sharey=True), PANELS.items(), strict=True):
        rows = read_rows(DOCS / "results" / f"{name}.md")
        numbers = rows["method"]
        for row, (label, colour, marker) in CURVES.items():
            found = [(i, re.findall(r"\.\d+", cell)) for i, cell in enumerate(rows[row])]
            points = [(i, *(float(v) for v in values)) for i, values in found if values]
            places, means = [p[0] for p in points], [p[1] for p in points]
            ax.plot(places, means, marker=marker, color=colour, label=label)
            limits = [p for p in points if len(p) == 4]
            ax.fill_between(
                [p[0] for p in limits],
                [p[2] for p in limits],
                [p[3] for p in limits],
                color=colour,
                alpha=0.2,
                linewidth=0,
            )
        ax.set(title=title, xticks=range(len(numbers)), xticklabels=numbers, ylim=(0, 1))
        ax.grid(axis="y", alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("mean class accuracy")
    figure.axes[1].set_xlabel("labelled examples of each new class")
    figure.axes[0].legend(frameon=False, loc="lower right")
    figure.savefig(DOCS / "images" / "examples.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
