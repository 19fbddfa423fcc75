from .contents import (
    ClassMap as ClassMap,
    Evaluation as Evaluation,
    ExplainedInput as ExplainedInput,
    Report as Report,
    choose_examples as choose_examples,
    evaluate_predictions as evaluate_predictions,
    map_rankings as map_rankings,
)
from .page import render_report as render_report, write_page as write_page
from .reproduction import render_reproduction as render_reproduction
