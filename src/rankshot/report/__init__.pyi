from .contents import (
    Evaluation as Evaluation,
    ExplainedInput as ExplainedInput,
    MethodComparison as MethodComparison,
    MethodRow as MethodRow,
    PredictionOverview as PredictionOverview,
    Report as Report,
    SourceTable as SourceTable,
)
from .page import render_report as render_report, write_page as write_page
from .pictures import (
    Outcomes as Outcomes,
    PictureFolder as PictureFolder,
    ShownInput as ShownInput,
    Thumbnail as Thumbnail,
    build_gallery as build_gallery,
    choose_pictures as choose_pictures,
    describe_choice as describe_choice,
)
from .predictions import (
    choose_examples as choose_examples,
    choose_rival as choose_rival,
    count_predictions as count_predictions,
    evaluate_predictions as evaluate_predictions,
)
from .rankings import (
    compare_sources as compare_sources,
    map_rankings as map_rankings,
    summarize_rankings as summarize_rankings,
)
