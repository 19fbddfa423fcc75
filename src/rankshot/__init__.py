"""Zero-shot classification with semantic rankings, and the statistics of rankings.

``import rankshot as rs`` loads nothing else; each public name is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from rankshot.semantics.hierarchy import Hierarchy
    from rankshot.semantics.means import arithmetic_mean, geometric_mean
    from rankshot.semantics.similarity import Similarity
    from rankshot.semantics.source_agreement import (
        SourceAgreement,
        similarity_accuracy,
        source_agreement,
    )
    from rankshot.semantics.wordnet import WordNet

__version__ = "0.1.0"

__all__ = [
    "Agreement",
    "BabingtonSmith",
    "Consensus",
    "Hierarchy",
    "Mallows",
    "PlackettLuce",
    "Rankings",
    "RankshotError",
    "Similarity",
    "SourceAgreement",
    "WordNet",
    "agreement",
    "arithmetic_mean",
    "borda",
    "geometric_mean",
    "kemeny",
    "kendall_distance",
    "mallows_log_normalizer",
    "read_rankings",
    "similarity_accuracy",
    "source_agreement",
    "write_rankings",
]

_HOMES = {
    "Agreement": "ranking.agreement",
    "BabingtonSmith": "ranking.babington_smith",
    "Consensus": "ranking.consensus",
    "Hierarchy": "semantics.hierarchy",
    "Mallows": "ranking.mallows",
    "PlackettLuce": "ranking.plackett_luce",
    "Rankings": "ranking.rankings",
    "RankshotError": "ranking.errors",
    "Similarity": "semantics.similarity",
    "SourceAgreement": "semantics.source_agreement",
    "WordNet": "semantics.wordnet",
    "agreement": "ranking.agreement",
    "arithmetic_mean": "semantics.means",
    "borda": "ranking.consensus",
    "geometric_mean": "semantics.means",
    "kemeny": "ranking.consensus",
    "kendall_distance": "ranking.distances",
    "mallows_log_normalizer": "ranking.mallows_likelihood",
    "read_rankings": "ranking.files",
    "similarity_accuracy": "semantics.source_agreement",
    "source_agreement": "semantics.source_agreement",
    "write_rankings": "ranking.files",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rankshot' has no attribute {name!r}")
    value = getattr(import_module(f"rankshot.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
