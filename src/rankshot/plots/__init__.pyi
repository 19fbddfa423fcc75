from .class_map import MapDisplay as MapDisplay
from .evaluations import (
    ConfusionDisplay as ConfusionDisplay,
    ReliabilityDisplay as ReliabilityDisplay,
)
from .models import GroupsDisplay as GroupsDisplay, WorthsDisplay as WorthsDisplay
from .places import (
    BumpDisplay as BumpDisplay,
    PrecedenceDisplay as PrecedenceDisplay,
    RankingsDisplay as RankingsDisplay,
)
from .results import (
    ComparisonDisplay as ComparisonDisplay,
    ExplanationDisplay as ExplanationDisplay,
)
