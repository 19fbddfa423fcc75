"""Where the unseen classes stand in WordNet: the paper's Figure 1, left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rankshot.datasets.senses import ANIMAL_SENSES, CIFAR_SENSES
from rankshot.experiments.study import Study
from rankshot.semantics.hierarchy import Branch, Hierarchy
from rankshot.semantics.wordnet import WordNet

SENSES = {"cifar": CIFAR_SENSES, "animals": ANIMAL_SENSES}
"""The pins with which the package's table of WordNet similarities was made, by data set."""


@dataclass(frozen=True)
class TreeNode:
    """A class, or a word of WordNet that several classes are kinds of.

    Attributes
    ----------
    label : str
        Classes of one sense share a node, and are joined by " = ".
    is_class : bool
    below : tuple of TreeNode
    """

    label: str
    is_class: bool
    below: tuple[TreeNode, ...] = ()

    def walk(self, depth: int = 0) -> Iterator[tuple[int, TreeNode]]:
        """Yield every node and its depth, from the top, each before what is below it."""
        yield depth, self
        for child in self.below:
            yield from child.walk(depth + 1)

    def __str__(self) -> str:
        inside = ", ".join(map(str, self.below))
        return f"{self.label} ({inside})" if inside else self.label


@dataclass(frozen=True)
class ClassTree:
    """The unseen classes and what they are kinds of; a chain without a fork is one node.

    Attributes
    ----------
    dataset : str
    root : TreeNode
    senses : tuple of (str, str)
        Each class, and the sense of WordNet that it was taken in.
    """

    dataset: str
    root: TreeNode
    senses: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return str(self.root)


def class_tree(study: Study) -> ClassTree:
    """Return the tree of a study's unseen classes.

    Examples
    --------
    >>> from rankshot.datasets.cifar import load_cifar
    >>> from rankshot.experiments.class_tree import class_tree
    >>> from rankshot.experiments.study import study_of
    >>> tree = class_tree(study_of(load_cifar()))
    >>> print(tree.root.below[0])
    vehicle (craft (airplane, ship), motor_vehicle (automobile, truck))
    """
    senses = chosen_senses(study)
    hierarchy = Hierarchy(senses, WordNet(senses=senses))
    return ClassTree(study.name, _node(hierarchy.root), tuple(senses.items()))


def chosen_senses(study: Study) -> dict[str, str]:
    """Return the sense of each unseen class, as the table of similarities has it.

    It is chosen by the company of *all* classes. Ten names alone are less company, and could
    mislead.
    """
    data = study.images
    found = WordNet(senses=SENSES[study.name]).senses(data.unseen_classes + data.seen_classes)
    return {name: found[name].name for name in data.unseen_classes}


def _node(branch: Branch) -> TreeNode:
    return TreeNode(branch.label, branch.is_name, tuple(map(_node, branch.below)))
