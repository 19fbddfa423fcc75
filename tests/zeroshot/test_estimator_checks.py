"""scikit-learn's own estimator checks.

All of them run on a `ZeroShotClassifier`, whose `fit` takes X and y, that predicts numbers: some
checks compare predictions. Two cannot hold and are listed as expected failures.

Ten checks run on every other estimator, those in `experiments.peers` included. They concern
parameters, `clone`, `repr`, tags and base classes, and none of them calls `fit`.
"""

import numpy as np
import pytest
import sklearn.utils.estimator_checks as checks
from reproduction.peers.attributes import DAP, IAP
from reproduction.peers.linear import ESZSL, SAE, VectorRegression
from sklearn.linear_model import LogisticRegression

import rankshot as rs

# ------------------------------------------------------------------ the classifier


class Numbered(LogisticRegression):
    """A classifier whose classes are always 0, 1, …: the checks have labels of many kinds."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.classes_ = np.arange(len(self.classes_))
        return self


class NumbersPredicted(rs.ZeroShotClassifier):
    """The same classifier, but with numbers as predictions, which some checks compare."""

    def predict(self, X):
        labels = super().predict(X)
        return np.searchsorted(self.classes_, labels)


# Every problem of the checks has the classes 0 and 1; one has four, and asks for four columns.
RANKINGS = rs.Rankings.from_orders(
    [["0"], ["1"], ["0", "1"], ["1", "0"]], items=["0", "1"], targets=["p", "q", "r", "s"]
)
NEW_CLASSES = "it answers new classes, not those in y"
EXPECTED_FAILURES = {
    "check_classifiers_classes": NEW_CLASSES,
    "check_classifiers_train": NEW_CLASSES,
}


@checks.parametrize_with_checks(
    [NumbersPredicted(Numbered(), rankings=RANKINGS)],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
def test_classifier(estimator, check):
    check(estimator)


def test_names_of_features_are_those_of_the_estimator():
    pytest.importorskip("pandas")
    zero_shot = rs.ZeroShotClassifier(Numbered(), rankings=RANKINGS)
    checks.check_dataframe_column_names_consistency("ZeroShotClassifier", zero_shot)


# ------------------------------------------------------------------ parameters of all others

# `fit` of these takes rankings, similarities, scores or class vectors; other checks pass X and y.
ESTIMATORS = [
    rs.BabingtonSmith(),
    rs.zeroshot.BatchRefinement(rs.WeightedMean()),
    rs.zeroshot.paper.ConSE(),
    DAP(),
    rs.zeroshot.paper.DeterministicRanking(),
    rs.zeroshot.paper.DirectSimilarity(),
    ESZSL(),
    IAP(),
    rs.Mallows(),
    rs.PlackettLuce(),
    rs.ProbabilisticRanking(),
    SAE(),
    VectorRegression(),
    rs.WeightedMean(),
]
PARAMETER_CHECKS = [
    checks.check_do_not_raise_errors_in_init_or_set_params,
    checks.check_estimator_cloneable,
    checks.check_estimator_repr,
    checks.check_estimator_tags_renamed,
    checks.check_get_params_invariance,
    checks.check_mixin_order,
    checks.check_no_attributes_set_in_init,
    checks.check_parameters_default_constructible,
    checks.check_set_params,
    checks.check_valid_tag_types,
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_parameters(estimator):
    for check in PARAMETER_CHECKS:
        check(type(estimator).__name__, estimator)
