"""The paper's four figures: a tree and maps, cells of rankings, maps of sources, pairs of classes.

Each function returns a Matplotlib figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from rankshot.pages.plots import COLOURS, MARKERS, hide_spines, name_rows
from reproduction.class_maps import ClassTree, SemanticMap
from reproduction.ranking_cells import RankingCells
from reproduction.two_classes import TwoClasses

NUMBERED_CELLS = 8
"""The largest cells, which have a number and a written ranking."""
PALETTE = (*COLOURS, "#F0E442", "#000000", "#999999", "#882255")


def draw_classes(tree: ClassTree, maps: Sequence[SemanticMap]) -> Any:
    """Figure 1: the new classes as WordNet's tree, and on maps by two similarities.

    Words with a single branch are left out of the tree. Only the distances on a map have a
    meaning; the axes have none.
    """
    figure, axes = plt.subplots(1, 1 + len(maps), figsize=(5 * (1 + len(maps)), 4.5))
    nodes = list(tree.root.walk())
    parents: dict[int, int] = {}
    for row, (depth, node) in enumerate(nodes):
        if depth in parents or depth == 0:
            up = parents.get(depth - 1, 0)
            axes[0].plot([depth - 1, depth - 1, depth], [up, row, row], color="0.7", lw=1)
        else:
            axes[0].plot([depth - 1, depth - 1, depth], [parents[depth - 1], row, row], color="0.7")
        parents[depth] = row
        weight = "bold" if node.is_class else "normal"
        axes[0].text(depth + 0.1, row, node.label, va="center", weight=weight, fontsize=8)
    axes[0].set(xlim=(-0.2, max(depth for depth, _ in nodes) + 2), ylim=(len(nodes), -1))
    axes[0].set(title="WordNet")
    axes[0].axis("off")
    for ax, points in zip(axes[1:], maps, strict=True):
        ax.scatter(*points.places.T, color=COLOURS[0], s=20)
        for name, place in zip(points.targets, points.places, strict=True):
            ax.annotate(name, place, (4, 4), textcoords="offset points", fontsize=8)
        _frame_map(ax, points.name)
    figure.tight_layout()
    return figure


def draw_cells(found: RankingCells) -> Any:
    """Figure 2: lines between classes divide the plane into cells, each with its ranking.

    A cell has the colour of the class that it ranks first. Hatched cells have a cycle: a beats b,
    b beats c, c beats a. The paper argues that there are none; that is true for distances to the
    classes, but not for lines that are trained independently.
    """
    figure, ax = plt.subplots(figsize=(9, 6), layout="constrained")
    first = [_first(cell.ranking) for cell in found.cells]
    kinds = np.array([found.classes.index(name) for name in first] + [len(found.classes)])
    extent = (found.low[0], found.high[0], found.low[1], found.high[1])
    colours = plt.matplotlib.colors.ListedColormap([*PALETTE[: len(found.classes)], "white"])
    grid = kinds[found.grid]
    ax.imshow(
        grid, origin="lower", extent=extent, cmap=colours, alpha=0.35, aspect="auto",
        vmin=0, vmax=len(found.classes),
    )  # fmt: skip
    cycles = np.array([not cell.transitive for cell in found.cells] + [False])[found.grid]
    if cycles.any():
        ax.contourf(
            cycles, levels=[0.5, 1.5], extent=extent, hatches=["///"], colors="none", origin="lower"
        )
    for w, b in zip(found.coef, found.intercept, strict=True):
        anchor = -b * w / (w @ w)
        ax.axline(anchor, anchor + np.array([-w[1], w[0]]), color="0.4", lw=0.6)
    for kind, name in enumerate(found.classes):
        own = found.inputs[found.input_labels == name]
        marker = MARKERS[kind % len(MARKERS)]
        ax.scatter(*own.T, color=PALETTE[kind], marker=marker, s=14, label=name)
    rows, columns = found.grid.shape
    step = (found.high - found.low) / [columns, rows]
    for number, cell in enumerate(found.cells[:NUMBERED_CELLS]):
        y, x = np.argwhere(found.grid == number).mean(axis=0)
        ax.text(*(found.low + step * [x, y]), str(number + 1), weight="bold", ha="center")
        ranking = format_ranking(cell.ranking)
        ax.plot([], [], " ", label=f"{number + 1}: {ranking}")
    ax.set(xlim=extent[:2], ylim=extent[2:], xticks=[], yticks=[])
    ax.legend(fontsize=6, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return figure


def draw_sources(maps: Sequence[SemanticMap]) -> Any:
    """Figure 3: each mark is one new class by one source, placed by three distances."""
    figure, axes = plt.subplots(1, len(maps), figsize=(5 * len(maps), 4.5), layout="constrained")
    for ax, points in zip(axes, maps, strict=True):
        sources = np.array(points.sources)
        for kind, target in enumerate(dict.fromkeys(points.targets)):
            for shape, source in enumerate(dict.fromkeys(points.sources)):
                own = points.places[(np.array(points.targets) == target) & (sources == source)]
                ax.scatter(*own.T, color=PALETTE[kind % len(PALETTE)], marker=MARKERS[shape], s=20)
            ax.plot([], [], "o", color=PALETTE[kind % len(PALETTE)], label=target)
        _frame_map(ax, points.name)
    for shape, source in enumerate(dict.fromkeys(maps[0].sources)):
        axes[-1].plot([], [], MARKERS[shape], color="0.3", label=source)
    axes[-1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return figure


def draw_two_classes(found: TwoClasses) -> Any:
    """Figure 4: the accuracy if each input has to be one of two new classes, with intervals."""
    names = [" or ".join(pair) for pair in found.pairs] + [f"mean of {found.n_pairs} pairs"]
    figure, ax = plt.subplots(figsize=(7, 0.5 * len(names) + 1), layout="constrained")
    for column, method in enumerate(found.methods):
        cells = [row[column] for row in (*found.accuracy, found.mean)]
        places = np.arange(len(names)) + 0.15 * (column - (len(found.methods) - 1) / 2)
        estimate = np.array([cell.estimate for cell in cells])
        error = [estimate - [c.low for c in cells], [c.high for c in cells] - estimate]
        style = {"color": PALETTE[column], "marker": MARKERS[column % len(MARKERS)]}
        ax.errorbar(estimate, places, xerr=error, linestyle="", label=method, **style)
    name_rows(ax, names)
    ax.axvline(0.5, color="0.5", lw=1)
    ax.set(xlabel="accuracy, with 95% interval")
    ax.legend(fontsize=7, frameon=False)
    return figure


def format_ranking(ranking: Sequence[str | tuple[str, ...]]) -> str:
    """Return a ranking on one line."""
    return " > ".join(" = ".join(one) if isinstance(one, tuple) else one for one in ranking)


def _first(ranking: Sequence[str | tuple[str, ...]]) -> str:
    best = ranking[0]
    return best[0] if isinstance(best, tuple) else best


def _frame_map(ax: Any, title: str) -> None:
    ax.set(title=title, xticks=[], yticks=[], aspect="equal")
    hide_spines(ax, "top", "right")
