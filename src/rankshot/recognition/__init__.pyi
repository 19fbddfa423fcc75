from .any_model import open_model as open_model
from .images import Preprocessing as Preprocessing
from .inputs import Skipped as Skipped
from .model import Model as Model
from .recognition import Recognition as Recognition, recognise as recognise
from .score_parts import ScoringRun as ScoringRun, write_scores as write_scores
from .scoring import (
    NetworkCheck as NetworkCheck,
    ScoredInputs as ScoredInputs,
    check_scores as check_scores,
    score as score,
)
