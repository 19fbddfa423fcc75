from .rankings import (
    GroupsDisplay as GroupsDisplay,
    PrecedenceDisplay as PrecedenceDisplay,
    RankingsDisplay as RankingsDisplay,
    WorthsDisplay as WorthsDisplay,
)
from .results import (
    ComparisonDisplay as ComparisonDisplay,
    ConfusionDisplay as ConfusionDisplay,
    ExplanationDisplay as ExplanationDisplay,
    ReliabilityDisplay as ReliabilityDisplay,
)
