from .agreement_tests import (
    Agreement as Agreement,
    agreement as agreement,
)
from .consensus.kemeny import (
    Consensus as Consensus,
    borda as borda,
    condorcet_winner as condorcet_winner,
    copeland as copeland,
    kemeny as kemeny,
    schulze as schulze,
    smith_set as smith_set,
)
from .distances import (
    kendall_distance as kendall_distance,
    mean_kendall_distance as mean_kendall_distance,
)
from .models.babington_smith import BabingtonSmith as BabingtonSmith
from .models.mallows import (
    Mallows as Mallows,
    mallows_log_normalizer as mallows_log_normalizer,
)
from .models.mixture import RankingMixture as RankingMixture
from .models.plackett_luce import PlackettLuce as PlackettLuce
from .ranking_files import (
    read_rankings as read_rankings,
    write_rankings as write_rankings,
)
from .rankings import Rankings as Rankings
from .rater_agreement import (
    TargetSummary as TargetSummary,
    concordance as concordance,
    krippendorff_alpha as krippendorff_alpha,
    summarize as summarize,
)
