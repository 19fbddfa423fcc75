"""Offsets that make targets equally frequent: against a solver, by hand, and where none exist."""

import numpy as np
import pytest
from exact import equally_frequent
from head_cases import RANKINGS, TARGETS, random_scores
from scipy.special import softmax

import rankshot as rs
from rankshot import RankshotError
from rankshot.zeroshot.heads.batch_refinement import BatchRefinement, balancing_offsets


@pytest.mark.parametrize(("scale", "n", "L"), [(0.1, 50, 2), (1.0, 300, 4), (3.0, 1000, 10)])
def test_balancing_solves_its_equations(rng, scale, n, L):
    joint = scale * (rng.normal(size=(n, L)) + rng.normal(size=L))
    assert np.ptp(softmax(joint, axis=1).mean(axis=0)) * L > 0.01
    added = balancing_offsets(joint)
    np.testing.assert_allclose(added - added[0], equally_frequent(joint), atol=1e-5)


@pytest.mark.parametrize(("scale", "n", "L"), [(1, 40, 4), (100, 1000, 10), (1000, 50, 2)])
def test_balancing_makes_shares_equal_however_sure_the_rows_are(rng, scale, n, L):
    joint = scale * (rng.normal(size=(n, L)) + rng.normal(size=L))
    share = softmax(joint + balancing_offsets(joint), axis=1).mean(axis=0)
    np.testing.assert_allclose(L * share, 1, atol=1e-4)


def test_balancing_takes_from_the_more_frequent():
    """Of a hundred rows that are all sure, ten have to change."""
    joint = 100 * np.eye(2)[np.repeat([0, 1], [60, 40])]
    share = softmax(joint + balancing_offsets(joint), axis=1)
    np.testing.assert_allclose(share[:60, 0], 50 / 60, atol=1e-4)
    np.testing.assert_allclose(share[60:, 1], 1, atol=1e-4)


def test_balancing_leaves_alone_what_is_balanced(rng):
    row = rng.normal(size=5)
    turned = np.array([np.roll(row, i) for i in range(5)])
    np.testing.assert_allclose(balancing_offsets(turned), 0, atol=1e-12)
    np.testing.assert_allclose(balancing_offsets(np.zeros((3, 4))), 0, atol=1e-12)


def test_balancing_sees_columns_alike_and_no_level_of_a_row(rng):
    joint = rng.normal(size=(30, 4))
    added = balancing_offsets(joint)
    order = [2, 0, 3, 1]
    np.testing.assert_allclose(balancing_offsets(joint[:, order]), added[order], atol=1e-7)
    np.testing.assert_allclose(balancing_offsets(joint[::-1]), added, atol=1e-7)
    np.testing.assert_allclose(
        balancing_offsets(joint + rng.normal(size=(30, 1))), added, atol=1e-7
    )


# ------------------------------------------------------------------ where nothing balances


MESSAGE = "cannot be made equally frequent in this batch: use class_prior='estimated'"


def test_a_target_that_is_impossible_everywhere_is_refused(rng):
    joint = rng.normal(size=(30, 4))
    joint[:, 2] = -np.inf
    with pytest.raises(RankshotError, match=MESSAGE):
        balancing_offsets(joint)


@pytest.mark.parametrize("sizes", [(60, 40), (99, 1), (100, 0)])
def test_scores_ten_thousand_apart_are_balanced_still(sizes):
    """However sure the rows are, half of all goes to each of two columns."""
    joint = 1e4 * np.eye(2)[np.repeat([0, 1], sizes)]
    share = softmax(joint + balancing_offsets(joint), axis=1)
    np.testing.assert_allclose(share.mean(axis=0), 0.5, atol=1e-4)
    np.testing.assert_allclose(share[: sizes[0], 0], 50 / sizes[0], atol=1e-4)


class Sure(rs.ProbabilisticRanking):
    """Rules out the second target for every input."""

    def predict_log_proba(self, scores, candidates=None):
        found = super().predict_log_proba(scores, candidates).copy()
        found[:, 1] = -np.inf
        return found


def test_a_head_that_rules_a_target_out_cannot_have_equal_frequencies(rng):
    head = Sure(k=3).fit(RANKINGS)
    scores = random_scores(rng, "multiclass", 40)
    with pytest.raises(RankshotError, match=MESSAGE):
        BatchRefinement(head, class_prior="equal").fit(scores)
    estimated = BatchRefinement(head).fit(scores)
    assert estimated.class_prior_ == "estimated"
    assert set(estimated.predict(scores).tolist()) <= set(TARGETS) - {TARGETS[1]}
