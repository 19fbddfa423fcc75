from .deterministic_ranking import DeterministicRanking as DeterministicRanking
from .probabilistic_ranking import ProbabilisticRanking as ProbabilisticRanking
from .similarity_methods import ConSE as ConSE, DirectSimilarity as DirectSimilarity
