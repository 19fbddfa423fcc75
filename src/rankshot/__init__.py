"""Zero-shot classification with semantic rankings."""

from rankshot.ranking.agreement import Agreement, agreement
from rankshot.ranking.babington_smith import BabingtonSmith
from rankshot.ranking.consensus import Consensus, borda, kemeny
from rankshot.ranking.distances import kendall_distance
from rankshot.ranking.errors import RankshotError
from rankshot.ranking.files import read_rankings, write_rankings
from rankshot.ranking.mallows import Mallows
from rankshot.ranking.mallows_likelihood import mallows_log_normalizer
from rankshot.ranking.plackett_luce import PlackettLuce
from rankshot.ranking.rankings import Rankings

__all__ = [
    "Agreement",
    "BabingtonSmith",
    "Consensus",
    "Mallows",
    "PlackettLuce",
    "Rankings",
    "RankshotError",
    "agreement",
    "borda",
    "kemeny",
    "kendall_distance",
    "mallows_log_normalizer",
    "read_rankings",
    "write_rankings",
]
