from .board import (
    Comparison as Comparison,
    Estimate as Estimate,
    Leaderboard as Leaderboard,
    Standing as Standing,
)
from .davidson_luce import DavidsonLuce as DavidsonLuce
from .fit import (
    Difference as Difference,
    Leaderboards as Leaderboards,
    leaderboard as leaderboard,
    leaderboards as leaderboards,
)
from .page import render_board as render_board
from .raters import (
    RaterReliability as RaterReliability,
    rater_reliability as rater_reliability,
)
