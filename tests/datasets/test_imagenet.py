"""The miniature of 1,000 classes: names, scores and a rater that fit together."""

import numpy as np
import pytest

import rankshot as rs
from rankshot.datasets import load_imagenet

LABELS = rs.sources.read_class_labels("imagenet-1k")


def test_classes_are_distinct_and_in_the_order_of_their_ids():
    assert len(set(LABELS.names)) == len(set(LABELS.synsets)) == len(LABELS.synonyms) == 1000
    # ImageNet's order: by synset.
    assert list(LABELS.synsets) == sorted(LABELS.synsets)


def test_scores_belong_to_the_classes():
    data = load_imagenet()
    assert data.scores.items == data.reference.items == LABELS.names
    assert set(data.labels) == set(data.rankings.target_names)
    assert np.unique(data.labels, return_counts=True)[1].tolist() == [14] * 20
    assert set(data.reference_labels) <= set(data.scores.items)
    assert data.scores.values.dtype == np.float32
    assert np.isfinite(data.scores.values).all()


def test_columns_have_the_right_names():
    # Pictures of seen classes have high scores there, far above chance.
    data = load_imagenet()
    own = [data.reference.items.index(name) for name in data.reference_labels]
    values = data.reference.values
    better = (values > values[np.arange(len(values)), own][:, None]).sum(axis=1)
    assert np.median(better) < 20


@pytest.mark.parametrize(("use_reference", "accuracy"), [(False, 0.57), (True, 0.60)])
def test_the_accuracies_in_the_readme(use_reference, accuracy):
    data = load_imagenet()
    reference = data.reference if use_reference else None
    head = rs.WeightedMean().fit(data.rankings, reference=reference)
    assert round((head.predict(data.scores) == data.labels).mean(), 2) == accuracy
    assert 1 / len(head.classes_) == 0.05
