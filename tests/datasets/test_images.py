"""Images of seen and unseen classes: every part has some of every class."""

import numpy as np
import pytest

from rankshot.core.errors import RankshotError
from rankshot.datasets.features import ImageData

SEEN, UNSEEN = ("bus", "fox", "oak"), ("cat", "dog")


def made(**changes):
    labels = {
        "seen_train_label": np.repeat(SEEN, 3),
        "seen_validation_label": np.array(SEEN[::-1]),
        "unseen_label": np.tile(UNSEEN, 4),
    }
    labels |= changes
    features = {
        name.removesuffix("_label"): np.zeros((len(some), 2), np.float32)
        for name, some in labels.items()
    }
    return ImageData("made", **features, **labels, seen_classes=SEEN, new_classes=UNSEEN)


def test_data_with_images_of_all_classes():
    assert repr(made().complete()) == (
        "made: 9 + 3 images of 3 seen classes, 8 of 2 unseen ones, 2 features"
    )


@pytest.mark.parametrize(
    ("part", "labels", "message"),
    [
        ("seen_train", ["bus", "oak"], "made: there is no image of 'fox' to train on"),
        ("seen_train", ["fox"], "made: there is no image of 'bus', 'oak' to train on"),
        ("seen_validation", ["bus", "fox"], "made: there is no image of 'oak' to validate on"),
        ("unseen", ["dog", "dog"], "made: there is no image of 'cat' to test on"),
        # One of the other kind does not count.
        ("unseen", ["dog", "bus"], "made: there is no image of 'cat' to test on"),
    ],
)
def test_a_part_without_images_of_a_class_is_refused(part, labels, message):
    with pytest.raises(RankshotError) as raised:
        made(**{f"{part}_label": np.array(labels)}).complete()
    assert str(raised.value) == message
