"""Frequencies of targets in a batch: each round against its likelihood, and made frequencies."""

import numpy as np
import pytest
from reproduction.ablation import adjust_for_frequencies
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax
from scipy.stats import norm


@pytest.fixture
def said(rng):
    """Log-probabilities of four targets, of which two are said to be likely all the time."""
    return log_softmax(rng.normal(size=(200, 4)) * 2 + [1, 0, 0.8, -0.5], axis=1)


def frequencies(said, n_rounds):
    """P(z) after so many rounds: what the answer has more than what was said."""
    ratio = adjust_for_frequencies(said, n_rounds) - said
    prior = softmax(ratio, axis=1)
    np.testing.assert_allclose(prior, prior[:1].repeat(len(prior), axis=0), rtol=1e-9)
    return prior[0]


def log_likelihood(said, prior):
    """Of the batch, where targets are as frequent as ``prior`` says, not all alike."""
    return logsumexp(said + np.log(prior), axis=1).sum()


def test_a_round_is_a_mean_and_a_product(said):
    prior = np.full(4, 0.25)
    for n in range(1, 6):
        posterior = [p * prior / sum(p * prior) for p in np.exp(said)]
        prior = sum(posterior) / len(posterior)
        np.testing.assert_allclose(frequencies(said, n), prior, rtol=1e-9)
        expected = [np.log(p * prior / sum(p * prior)) for p in np.exp(said)]
        np.testing.assert_allclose(adjust_for_frequencies(said, n), expected, rtol=1e-9)


def test_every_round_raises_the_likelihood(said):
    steps = [np.full(4, 0.25), *(frequencies(said, n) for n in range(1, 30))]
    likelihood = [log_likelihood(said, prior) for prior in steps]
    assert (np.diff(likelihood) > 0).all()
    assert likelihood[-1] - likelihood[0] > 1


def test_it_ends_where_the_likelihood_is_largest(said):
    best = minimize(
        lambda theta: -log_likelihood(said, softmax(np.append(0, theta))), np.zeros(3), tol=1e-12
    )
    np.testing.assert_allclose(
        frequencies(said, 2000), softmax(np.append(0, best.x)), rtol=1e-4, atol=1e-6
    )


def test_at_the_end_the_frequencies_are_those_of_the_answers(said):
    answer = adjust_for_frequencies(said, 5000)
    np.testing.assert_allclose(np.exp(answer).mean(axis=0), frequencies(said, 5000), rtol=1e-8)
    np.testing.assert_allclose(adjust_for_frequencies(said, 5001), answer, atol=1e-8)


def test_made_frequencies_are_found():
    """Normal clouds on a line: what is said of each input is right, but for the frequencies."""
    rng = np.random.default_rng(0)
    truth = np.array([0.6, 0.05, 0.25, 0.1])
    label = rng.choice(4, size=5000, p=truth)
    x = rng.normal(label * 2.0)
    said = log_softmax(norm.logpdf(x[:, None], np.arange(4) * 2.0), axis=1)
    found = adjust_for_frequencies(said)
    np.testing.assert_allclose(np.exp(found).mean(axis=0), truth, atol=0.02)
    right = log_softmax(said + np.log(truth), axis=1)
    before, after, best = ((p.argmax(axis=1) == label).mean() for p in (said, found, right))
    assert before < after - 0.02
    assert after == pytest.approx(best, abs=0.005)


def test_equal_frequencies_stay(rng):
    row = rng.normal(size=5)
    turned = log_softmax([np.roll(row, i) for i in range(5)], axis=1)
    np.testing.assert_allclose(adjust_for_frequencies(turned), turned, atol=1e-12)


def test_answers_are_log_probabilities_however_sure(rng):
    said = log_softmax(rng.normal(size=(50, 3)) * 1000, axis=1)
    answer = adjust_for_frequencies(said)
    np.testing.assert_allclose(np.exp(answer).sum(axis=1), 1)
    np.testing.assert_array_equal(answer.argmax(axis=1), said.argmax(axis=1))
    # A target that is impossible for all inputs stays so.
    never = np.append(said, np.full((50, 1), -np.inf), axis=1)
    found = adjust_for_frequencies(never)
    np.testing.assert_allclose(found[:, :3], answer)
    assert np.isneginf(found[:, 3]).all()


def test_names_and_order_do_not_matter(said, rng):
    rows, columns = rng.permutation(200), rng.permutation(4)
    expected = adjust_for_frequencies(said)[rows][:, columns]
    found = adjust_for_frequencies(said[rows][:, columns])
    np.testing.assert_allclose(found, expected, atol=1e-10)
    # Nor does what is added to a row: a head's answers need not be normalised.
    moved = said + rng.normal(size=(200, 1))
    np.testing.assert_allclose(adjust_for_frequencies(moved), adjust_for_frequencies(said))


def test_no_round_changes_nothing(said):
    before = said.copy()
    np.testing.assert_allclose(adjust_for_frequencies(said, 0), said, atol=1e-12)
    adjust_for_frequencies(said)
    np.testing.assert_array_equal(said, before)
