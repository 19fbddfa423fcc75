from .classified_datasets import classify as classify
from .part_jobs import PartsRun as PartsRun
from .scored_datasets import score as score
