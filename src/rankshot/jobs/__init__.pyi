from .classify_parts import classify as classify
from .part_jobs import PartsRun as PartsRun
from .partitioned_rankings import (
    PartitionedRankings as PartitionedRankings,
    read_rankings as read_rankings,
    write_rankings as write_rankings,
)
from .score_parts import score as score
