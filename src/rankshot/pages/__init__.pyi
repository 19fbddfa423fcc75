from .images import Outcomes as Outcomes
from .page import Card as Card, write_page as write_page
from .plots import (
    plot_comparison as plot_comparison,
    plot_leaderboard as plot_leaderboard,
    plot_rankings as plot_rankings,
    plot_reliability as plot_reliability,
    save_plot as save_plot,
)
from .report import (
    Report as Report,
    build_report as build_report,
    find_similar_classes as find_similar_classes,
    render_report as render_report,
)
