from .classified_datasets import classify as classify
from .part_jobs import PartsRun as PartsRun
from .partitioned import PartitionedRankings as PartitionedRankings
from .ranking_files import read_rankings as read_rankings, write_rankings as write_rankings
from .scored_datasets import score as score
