from .inputs import Skipped as Skipped
from .model_interface import Model as Model
from .models import open_model as open_model
from .preprocessing import Preprocessing as Preprocessing
from .score_runs import ScoreRun as ScoreRun, score_to_file as score_to_file
from .scoring import ScoredInputs as ScoredInputs, score as score
