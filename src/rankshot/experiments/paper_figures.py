"""The paper's four figures, as numbers: what a report draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rankshot.experiments.benchmark import Benchmark
from rankshot.experiments.class_maps import (
    ClassTree,
    SemanticMap,
    class_tree,
    source_maps,
    word_maps,
)
from rankshot.experiments.ranking_cells import RankingCells, ranking_cells
from rankshot.experiments.two_classes import MethodScores, TwoClasses, two_classes


@dataclass(frozen=True, eq=False)
class PaperFigures:
    """The four figures of the paper, from a study of ours.

    Attributes
    ----------
    tree : ClassTree
        Figure 1, left.
    word_maps : tuple of SemanticMap
        Figure 1, middle and right.
    cells : RankingCells
        Figure 2.
    source_maps : tuple of SemanticMap
        Figure 3.
    two_classes : TwoClasses
        Figure 4.
    """

    tree: ClassTree
    word_maps: tuple[SemanticMap, ...]
    cells: RankingCells
    source_maps: tuple[SemanticMap, ...]
    two_classes: TwoClasses


def paper_figures(study: Benchmark, methods: Mapping[str, MethodScores]) -> PaperFigures:
    """Make the four figures; ``methods`` are those of Figure 4, by name.

    Parameters
    ----------
    study : Study
    methods : mapping of str to MethodScores
        What each says of the inputs of ``study.real.test``.
    """
    return PaperFigures(
        class_tree(study),
        word_maps(study),
        ranking_cells(study),
        source_maps(study),
        two_classes(study, methods),
    )
