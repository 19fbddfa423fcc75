from .consensus import Consensus as Consensus, borda as borda, kemeny as kemeny
from .distances import (
    kendall_distance as kendall_distance,
    mean_kendall_distance as mean_kendall_distance,
)
from .files import read_rankings as read_rankings, write_rankings as write_rankings
from .kendalls_w import concordance as concordance
from .models.babington_smith import BabingtonSmith as BabingtonSmith
from .models.mallows import Mallows as Mallows
from .models.mallows_likelihood import mallows_log_normalizer as mallows_log_normalizer
from .models.plackett_luce import PlackettLuce as PlackettLuce
from .pair_files import read_pairs as read_pairs
from .rankings import Rankings as Rankings
from .summaries import (
    Agreement as Agreement,
    TargetSummary as TargetSummary,
    agreement as agreement,
    summarize as summarize,
)
from .voting_rules import (
    condorcet_winner as condorcet_winner,
    copeland as copeland,
    median_rank as median_rank,
    schulze as schulze,
    smith_set as smith_set,
)
