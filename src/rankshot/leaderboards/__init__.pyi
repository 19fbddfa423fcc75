from .board import Leaderboard as Leaderboard
from .fit import leaderboard as leaderboard
from .misfit import (
    RaterAgreement as RaterAgreement,
    rater_agreement as rater_agreement,
)
from .page import render_board as render_board, save_board as save_board
from .rows import (
    Comparison as Comparison,
    Estimate as Estimate,
    Misfit as Misfit,
    Standing as Standing,
)
from .votes import (
    Votes as Votes,
    read_votes as read_votes,
)
