"""What a report says of predictions is computed by other means."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from report_samples import EVALUATION

from rankshot.pages import Card, Outcomes
from rankshot.pages.predictions import (
    count_predictions,
    evaluate_predictions,
    find_largest_confusions,
    format_classes,
    format_confusions,
    list_cards,
    suggest_step,
    write_headline,
)
from rankshot.zeroshot.metrics import Interval, wilson_interval


def evaluate(truth, predicted, proba, classes):
    return evaluate_predictions(Outcomes(range(len(truth)), predicted, proba, truth, classes))


def count(predicted, proba, classes):
    return count_predictions(Outcomes(range(len(predicted)), predicted, proba, None, classes))


CLASSES = ["cat", "dog", "ship"]
TRUTH = np.array(["cat", "cat", "dog", "ship"])
PREDICTED = np.array(["cat", "rejected", "cat", "ship"])
PROBA = np.array([[0.7, 0.2, 0.1], [0.4, 0.3, 0.3], [0.6, 0.4, 0.0], [0.1, 0.1, 0.8]])
FOUND = evaluate(TRUTH, PREDICTED, PROBA, CLASSES)
COUNTED = count(PREDICTED, PROBA, CLASSES)
FORECAST = Interval(0.78, 0.6, 0.92)


def test_an_evaluation_counts_rejected_inputs_as_wrong():
    assert FOUND.accuracy == wilson_interval(2, 4)
    # Classes with 2, 1 and 1 inputs are as informative as 9 / (1/2 + 1 + 1) inputs.
    assert FOUND.mean_class_accuracy == pytest.approx(wilson_interval(0.5 * 3.6, 3.6))
    assert FOUND.per_class == (0.5, 0.0, 1.0)
    assert FOUND.n_inputs == (2, 1, 1)
    assert FOUND.confusion.tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 1]]
    assert FOUND.calibration.count.sum() == 4


def test_predictions_without_truth_are_counted():
    assert (COUNTED.counts, COUNTED.n_inputs) == ({"cat": 2, "ship": 1, "dog": 0}, 4)
    assert COUNTED.median_confidence == pytest.approx(0.65)
    assert [n for _, n in COUNTED.confidences] == [1, 0, 1, 1, 1, 0]
    sure = count(TRUTH[:1], np.array([[1.0, 0, 0]]), CLASSES)
    assert sure.confidences[-1] == ("90–100%", 1)


# ---- The top of the page


@pytest.mark.parametrize(
    ("values", "number", "context"),
    [
        ({"result": FOUND}, "50.0%", {"95% interval": "15.0–85.0%", "chance": "33.3%"}),
        (
            {"result": FOUND, "forecast": FORECAST},
            "50.0%",
            {"chance": "33.3%", "forecast": "78.0% (60.0–92.0%)"},
        ),
        ({"result": COUNTED, "forecast": FORECAST}, "78.0%", {"chance": "33.3%"}),
        ({"result": COUNTED}, "4 predictions", {}),
    ],
)
def test_the_headline_is_the_best_number_that_is_known(values, number, context):
    found = write_headline(**values, kind="new")
    assert found.number == number
    assert context.items() <= dict(found.context).items()
    assert all(0 <= place <= 100 for place in found.scale.values())


def test_cards_name_what_stands_out():
    cards = [(card.label, card.value) for card in list_cards(EVALUATION)]
    assert cards == [
        ("Lowest class", "cat 50.0%"),
        ("Probabilities", "11.0 points too high"),
        ("Mean over classes", "60.0%"),
    ]
    mean = (0.523 * 1234 + 0.867 * 56) / 1290
    assert f"{mean:.1%}" in list_cards(EVALUATION)[1].detail
    assert list_cards(COUNTED) == [
        Card("Median probability", "65.0%"),
        Card("Never predicted", "1 class", "dog"),
    ]


def test_one_class_is_not_the_lowest_and_none_is_confused():
    one = evaluate(np.array(["cat"] * 3), np.array(["cat"] * 3), np.ones((3, 1)), ["cat"])
    assert [card.label for card in list_cards(one)] == ["Probabilities"]


def test_the_next_step_names_classes_that_are_confused_once():
    truth, swapped = np.repeat(["octopus", "squid", "whale"], 40), np.repeat([1, 0, 2], 40)
    names = np.array(["octopus", "squid", "whale"])
    both = evaluate(truth, names[swapped], np.eye(3)[swapped], names.tolist())
    assert suggest_step(both).endswith(": octopus and squid.")
    right = evaluate(truth, truth, np.eye(3)[np.repeat([0, 1, 2], 40)], names.tolist())
    assert suggest_step(right) != suggest_step(COUNTED)


# ---- Sections


def test_classes_are_sorted_by_accuracy_and_name_all_that_they_were_taken_for():
    lines = format_classes(EVALUATION)
    assert [line.name for line in lines] == ["cat", "dog", "ship"]
    assert [line.confused_with for line in lines] == [("dog",), ("cat",), ()]
    tied = evaluate(
        np.repeat(CLASSES, [5, 1, 1]),
        np.array(["cat", *["dog"] * 2, *["ship"] * 2, "dog", "ship"]),
        np.eye(3)[[0, 1, 1, 2, 2, 1, 2]],
        CLASSES,
    )
    assert format_classes(tied)[0].confused_with == ("dog", "ship")


def test_a_matrix_has_the_classes_that_are_confused_most():
    matrix = format_confusions(EVALUATION)["matrix"]
    assert matrix["rows"][0] == ("cat", [("51", 0.5), ("27", 0.26), ("24", 0.24)])
    names = [f"c{i:03}" for i in range(100)]
    truth = np.repeat(names, 2)
    # Each of the last 30 classes is once taken for the next one.
    predicted = truth.copy()
    predicted[140::2] = np.roll(names, -1)[70:]
    many = evaluate(truth, predicted, np.eye(100)[np.repeat(range(100), 2)], names)
    assert format_confusions(many)["matrix"]["names"] == names[70:91]
    right = evaluate(truth, truth, np.eye(100)[np.repeat(range(100), 2)], names)
    assert format_confusions(right) is None


def test_equal_confusions_are_sorted_by_the_names_of_the_classes(rng):
    classes, confusion = np.array([f"c{i}" for i in range(60)]), rng.integers(0, 3, size=(60, 60))
    pairs = [(i, j) for i, j in permutations(range(60), 2) if confusion[i, j]]
    wrong = [(-confusion[i, j], classes[i], classes[j]) for i, j in pairs]
    for order in (np.arange(60), rng.permutation(60)):
        names, shuffled = classes[order], confusion[np.ix_(order, order)]
        confused = replace(EVALUATION, classes=tuple(names), confusion=shuffled)
        found = [(names[i], names[j]) for i, j in find_largest_confusions(confused)]
        assert found == [(a, b) for _, a, b in sorted(wrong)]
