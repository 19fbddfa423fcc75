from .contents import Report as Report
from .page import (
    find_similar_classes as find_similar_classes,
    render_report as render_report,
    summarize_rankings as summarize_rankings,
    write_page as write_page,
)
from .predictions import (
    count_predictions as count_predictions,
    evaluate_predictions as evaluate_predictions,
    write_verdict as write_verdict,
)
from .ranking_plots import (
    GroupsDisplay as GroupsDisplay,
    PrecedenceDisplay as PrecedenceDisplay,
    RankingsDisplay as RankingsDisplay,
    WorthsDisplay as WorthsDisplay,
)
from .result_plots import (
    ComparisonDisplay as ComparisonDisplay,
    ConfusionDisplay as ConfusionDisplay,
    ExplanationDisplay as ExplanationDisplay,
    ReliabilityDisplay as ReliabilityDisplay,
)
