from .ranking_methods import (
    DeterministicRanking as DeterministicRanking,
    ProbabilisticRanking as ProbabilisticRanking,
)
from .similarity_methods import ConSE as ConSE, DirectSimilarity as DirectSimilarity
