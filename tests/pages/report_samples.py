"""Contents of reports that several tests use."""

import math

import numpy as np

from rankshot.pages.explanations import ShownInput
from rankshot.pages.images import Thumbnail
from rankshot.pages.predictions import Evaluation
from rankshot.ranking.rater_agreement import TargetSummary
from rankshot.zeroshot.explanation import Explanation
from rankshot.zeroshot.metrics import Interval, Reliability


def summary(target, order, concordance=None, mean_distance=None, disagreement=()):
    return TargetSummary(
        target, 2, None, order, max(len(order), 1), concordance, mean_distance, disagreement
    )


def make_calibration(confidence, accuracy, count):
    edges = np.linspace(0, 1, len(count) + 1)
    return Reliability(edges, *map(np.array, (confidence, accuracy, count)))


EVALUATION = Evaluation(
    classes=("cat", "dog", "ship"),
    accuracy=Interval(0.617, 0.571, 0.658),
    mean_class_accuracy=Interval(0.6, 0.533, 0.664),
    per_class=(0.5, 0.7, math.nan),
    n_inputs=(102, 110, 0),
    confusion=np.array([[51, 27, 24], [33, 77, 0], [0, 0, 0]]),
    calibration=make_calibration([math.nan, 0.523, 0.867], [math.nan, 0.412, 0.789], [0, 1234, 56]),
)
EXAMPLE = ShownInput(
    "image 17",
    "cat",
    0.623,
    truth="dog",
    why=Explanation(
        target="cat",
        probability=0.623,
        against=None,
        items=(("bus", -0.41), ("leopard", 1.27)),
        others=(("features", 0.33),),
        alternatives=(("cat", 0.623), ("dog", 0.214), ("ship", 0.071)),
    ),
)
THUMBNAIL = Thumbnail.make(np.full((32, 32, 3), (250, 10, 20), np.uint8))
SHOWN = ShownInput("image 23", "cat", 0.345, "dog", THUMBNAIL, ("lynx",))
