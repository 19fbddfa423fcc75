from . import metrics as metrics, paper as paper
from .batch_refinement import BatchRefinement as BatchRefinement
from .classifier import ZeroShotClassifier as ZeroShotClassifier
from .decide import Top as Top
from .estimator_scores import scores_of as scores_of
from .evidence import word_evidence as word_evidence
from .explanation import Explanation as Explanation, explain as explain
from .forecast import Forecast as Forecast, Trial as Trial
from .joint_head import JointHead as JointHead, load_head as load_head
from .knowledge import Knowledge as Knowledge
from .linear_head import LinearHead as LinearHead, Predictor as Predictor
from .onnx_export import export_onnx as export_onnx
from .paper import ProbabilisticRanking as ProbabilisticRanking
from .scores import Scores as Scores
from .seen_and_new import SeenAndNew as SeenAndNew
from .settings import Settings as Settings
from .suggestions import suggest as suggest
from .tables import (
    open_predictions as open_predictions,
    open_scores as open_scores,
    read_predictions as read_predictions,
    read_truth as read_truth,
)
from .weighted_mean import WeightedMean as WeightedMean
