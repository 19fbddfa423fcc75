from .images import Preprocessing as Preprocessing
from .inputs import Skipped as Skipped
from .model import Model as Model, open_model as open_model
from .network_check import NetworkCheck as NetworkCheck, check_scores as check_scores
from .recognition import Recognition as Recognition, recognise as recognise
from .scoring import ScoredInputs as ScoredInputs, score as score
