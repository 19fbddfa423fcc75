from .classifier import ZeroShotClassifier as ZeroShotClassifier
from .estimator_scores import scores_of as scores_of
from .explanation import Explanation as Explanation, explain as explain
from .heads.base import BaseHead as BaseHead
from .heads.batch_refinement import BatchRefinement as BatchRefinement
from .heads.conse import ConSE as ConSE
from .heads.deterministic_ranking import DeterministicRanking as DeterministicRanking
from .heads.direct_similarity import DirectSimilarity as DirectSimilarity
from .heads.probabilistic_ranking import ProbabilisticRanking as ProbabilisticRanking
from .platt import PlattScaling as PlattScaling
from .scores import Scores as Scores
from .seen_class_search import SeenClassSearch as SeenClassSearch
