"""Images of seen and new classes: every part has some of every class."""

import numpy as np
import pytest

from rankshot.core.errors import RankshotError
from rankshot.datasets.features import ImageData

SEEN, NEW = ("bus", "fox", "oak"), ("cat", "dog")


def made(**changes):
    labels = {
        "seen_train_label": np.repeat(SEEN, 3),
        "seen_validation_label": np.array(SEEN[::-1]),
        "new_label": np.tile(NEW, 4),
    }
    labels |= changes
    features = {
        name.removesuffix("_label"): np.zeros((len(some), 2), np.float32)
        for name, some in labels.items()
    }
    return ImageData("made", **features, **labels, seen_classes=SEEN, new_classes=NEW)


def test_data_with_images_of_all_classes():
    assert repr(made().require_complete()) == (
        "made: 9 + 3 images of 3 seen classes, 8 of 2 new ones, 2 features"
    )


@pytest.mark.parametrize(
    ("part", "labels", "message"),
    [
        ("seen_train", ["bus", "oak"], "made: there is no image of 'fox' to train on"),
        ("seen_train", ["fox"], "made: there is no image of 'bus', 'oak' to train on"),
        ("seen_validation", ["bus", "fox"], "made: there is no image of 'oak' to validate on"),
        ("new", ["dog", "dog"], "made: there is no image of 'cat' to test on"),
        # One of the other kind does not count.
        ("new", ["dog", "bus"], "made: there is no image of 'cat' to test on"),
    ],
)
def test_a_part_without_images_of_a_class_is_refused(part, labels, message):
    with pytest.raises(RankshotError) as raised:
        made(**{f"{part}_label": np.array(labels)}).require_complete()
    assert str(raised.value) == message
