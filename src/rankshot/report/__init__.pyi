from .contents import (
    ClassMap as ClassMap,
    Evaluation as Evaluation,
    ExplainedInput as ExplainedInput,
    Overview as Overview,
    Report as Report,
    SourceLine as SourceLine,
    SourceTable as SourceTable,
)
from .gallery import (
    Answers as Answers,
    Gallery as Gallery,
    ShownInput as ShownInput,
    build_gallery as build_gallery,
    choose_pictures as choose_pictures,
    describe_choice as describe_choice,
)
from .page import render_report as render_report, write_page as write_page
from .pictures import Picture as Picture, PictureFolder as PictureFolder
from .prediction_summaries import (
    choose_examples as choose_examples,
    choose_rival as choose_rival,
    count_predictions as count_predictions,
    evaluate_predictions as evaluate_predictions,
)
from .ranking_summaries import (
    compare_sources as compare_sources,
    map_rankings as map_rankings,
    summarize_rankings as summarize_rankings,
)
