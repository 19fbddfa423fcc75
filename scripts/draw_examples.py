"""Draw docs/images/examples.svg: accuracy against labelled examples, with and without rankings.

The numbers are those of docs/results/accuracies.md.
"""

import re
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

DOCS = Path(__file__).parents[1] / "docs"
PANELS = {
    "cifar": "CIFAR, 10 classes",
    "animals": "Animals, 10 classes",
    "intents": "Intents, 30 classes",
    "sounds published 1": "Sounds, 10 classes",
}
CURVES = (("rankings and examples", "#1b6ca8", "o"), ("the better of either alone", "#c8553d", "s"))


def read_rows() -> list[list[str]]:
    """Return the cells of the first table of the section about examples, row by row."""
    text = (DOCS / "results" / "accuracies.md").read_text("utf-8")
    text = text[text.index("<!-- begin examples -->") :]
    table = text[text.index("\n| task |") + 1 :].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def main() -> None:
    """Draw one panel per data set."""
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "examples", "font.size": 11})
    figure = Figure(figsize=(9, 2.9), layout="constrained")
    header, _, *rows = read_rows()
    columns = [i for i, cell in enumerate(header) if cell.endswith("per class")]
    numbers = [header[i].split()[0] for i in columns]
    for ax, (name, title) in zip(figure.subplots(1, 4, sharey=True), PANELS.items(), strict=True):
        (cells,) = (row for row in rows if row[0] == name)
        # Both together, and in parentheses the best of either.
        found = [re.findall(r"\.\d+", cells[i]) for i in columns]
        for place, (label, colour, marker) in enumerate(CURVES):
            points = [(i, float(one[place])) for i, one in enumerate(found)]
            ax.plot(*zip(*points, strict=True), marker=marker, color=colour, label=label)
        ax.set(title=title, xticks=range(len(numbers)), xticklabels=numbers, ylim=(0, 1))
        ax.grid(axis="y", alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("mean class accuracy")
    figure.supxlabel("labelled examples of each new class", fontsize=11)
    figure.axes[0].legend(frameon=False, loc="lower right", fontsize=9)
    figure.savefig(DOCS / "images" / "examples.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
