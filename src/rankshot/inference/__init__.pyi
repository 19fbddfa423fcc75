from .inputs import Skipped as Skipped
from .model import Model as Model, open_model as open_model
from .pictures import Preprocessing as Preprocessing
from .scoring import ScoredInputs as ScoredInputs, score as score
