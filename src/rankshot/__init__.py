"""Zero-shot classification with semantic rankings."""

from rankshot.ranking.consensus import Consensus, borda, kemeny
from rankshot.ranking.distances import kendall_distance
from rankshot.ranking.errors import RankshotError
from rankshot.ranking.rankings import Rankings

__all__ = ["Consensus", "Rankings", "RankshotError", "borda", "kemeny", "kendall_distance"]
