"""A tree of classes, drawn as an outline: a line a node, which fits a phone and a column."""

from __future__ import annotations

from rankshot.experiments.class_tree import ClassTree
from rankshot.report.svg import N_COLORS, Html, drawing, element, mark_shape, percent
from rankshot.report.texts import cut

STEP, MARK_ROOM, EDGE = 22, 16, 7
"""Pixels: from a node to those below it, from a mark to its name, and left of everything."""

MOST_LETTERS = 26
ROW_REM = 1.6


def tree_drawing(tree: ClassTree) -> Html:
    """Return the tree, from the top; the classes have the marks that they have on the maps."""
    nodes = list(tree.root.walk())
    kinds = {name: kind for kind, (name, _) in enumerate(tree.senses)}
    middles = [percent((row + 0.5) / len(nodes)) for row in range(len(nodes))]
    parts = [element("desc", str(tree.root))]
    for row, (depth, _) in enumerate(nodes[1:], start=1):
        parent = max(above for above in range(row) if nodes[above][0] == depth - 1)
        x = EDGE + STEP * (depth - 1)
        # A branch starts below its word.
        start = percent((parent + 0.85) / len(nodes))
        down = {"x1": x, "y1": start, "x2": x, "y2": middles[row]}
        across = {"x1": x, "y1": middles[row], "x2": x + STEP - 9, "y2": middles[row]}
        parts += [element("line", class_="branch", **ends) for ends in (down, across)]
    for middle, (depth, node) in zip(middles, nodes, strict=True):
        x = EDGE + STEP * depth
        kind = kinds.get(node.label)
        if kind is not None:
            shape = mark_shape(kind, str(x), middle)
            parts.append(element("g", shape, class_=f"c{kind % N_COLORS}"))
            x += MARK_ROOM
        label = node.label if node.is_class else node.label.replace("_", " ")
        text = {"x": x - EDGE + 2, "y": middle, "dy": "0.35em"}
        look = "class-name" if node.is_class else "kind"
        shown = cut(label, MOST_LETTERS)
        parts.append(element("text", element("title", cut(label, 80)), shown, class_=look, **text))
    title = f"Tree of {len(kinds)} classes in WordNet"
    style = f"height:{ROW_REM * len(nodes):.1f}rem"
    return drawing(title, *parts, class_="tree", style=style)
