from .babington_smith import BabingtonSmith as BabingtonSmith
from .concordance import (
    Agreement as Agreement,
)
from .concordance import (
    TargetSummary as TargetSummary,
)
from .concordance import (
    agreement as agreement,
)
from .concordance import (
    summarize as summarize,
)
from .consensus import Consensus as Consensus
from .consensus import borda as borda
from .consensus import kemeny as kemeny
from .distances import (
    kendall_distance as kendall_distance,
)
from .distances import (
    mean_kendall_distance as mean_kendall_distance,
)
from .files import read_rankings as read_rankings
from .files import write_rankings as write_rankings
from .mallows import Mallows as Mallows
from .mallows import mallows_log_normalizer as mallows_log_normalizer
from .plackett_luce import PlackettLuce as PlackettLuce
from .rankings import Rankings as Rankings
