from .build import build_report as build_report
from .contents import Card as Card, Report as Report
from .images import Outcomes as Outcomes
from .page import (
    find_similar_classes as find_similar_classes,
    render_report as render_report,
    summarize_rankings as summarize_rankings,
    write_page as write_page,
)
from .plots import (
    ComparisonDisplay as ComparisonDisplay,
    RankingsDisplay as RankingsDisplay,
    ReliabilityDisplay as ReliabilityDisplay,
    WorthsDisplay as WorthsDisplay,
    save_plot as save_plot,
)
from .predictions import (
    count_predictions as count_predictions,
    evaluate_predictions as evaluate_predictions,
)
