from . import metrics as metrics, paper as paper
from .batch_refinement import BatchRefinement as BatchRefinement
from .decide import Top as Top
from .estimator_scores import scores_of as scores_of
from .linear_head import LinearHead as LinearHead
from .paper import ProbabilisticRanking as ProbabilisticRanking
from .scores import Scores as Scores
from .seen_and_new import Gate as Gate, SeenAndNew as SeenAndNew, fit_gate as fit_gate
from .weighted_mean import WeightedMean as WeightedMean
