from .images import Preprocessing as Preprocessing
from .inputs import Model as Model, Skipped as Skipped
from .models import open_model as open_model
from .recognition import Recognition as Recognition, recognise as recognise
from .run_folder import Run as Run, open_run as open_run
from .run_report import explain_run as explain_run, report_run as report_run
from .score_parts import write_scores as write_scores
from .scoring import (
    NetworkCheck as NetworkCheck,
    ScoredInputs as ScoredInputs,
    check_scores as check_scores,
    score as score,
)
from .zero_shot_pipeline import ZeroShot as ZeroShot, zero_shot as zero_shot
