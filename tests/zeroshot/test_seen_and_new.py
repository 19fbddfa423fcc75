"""`SeenAndNew`: probabilities that follow the decision, budgets, files and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from head_cases import find_excess
from tests.refusals import refuses

import rankshot as rs
from rankshot.zeroshot import Settings, seen_and_new
from rankshot.zeroshot.together import fit_together
from rankshot.zeroshot.weighted_mean import describe_inputs

ITEMS = ["a", "b", "c", "d", "e"]
RANKINGS = rs.Rankings.from_orders(
    [["a", "b"], ["d", "e"]], items=ITEMS, targets=["u", "v"], raters=["1", "1"]
)
CENTERS = 3 * np.eye(5)
NEW = np.array([[2.0, 2, 0, 0, 0], [0, 0, 0, 2, 2]])


def draw(rng, centers, n, names):
    codes = rng.integers(0, len(centers), n)
    values = centers[codes] + rng.normal(size=(n, 5))
    return rs.Scores(values, ITEMS), np.array(names)[codes]


@pytest.fixture
def seen(rng):
    return draw(rng, CENTERS, 400, ITEMS)


@pytest.fixture
def new(rng):
    return draw(rng, NEW, 200, ["u", "v"])


def both(reference=None, labels=None, examples=None, **options):
    head = rs.WeightedMean().fit(RANKINGS, reference=reference, examples=examples)
    return rs.zeroshot.SeenAndNew(head, **options).fit(reference, labels, examples)


@pytest.mark.parametrize("none", [True, False])
@pytest.mark.parametrize("n_examples", [0, 1, 6])
def test_the_most_probable_class_is_the_decision(seen, new, rng, monkeypatch, none, n_examples):
    """The rule as `together` defines it, by the first guess and each class's own log-odds."""
    examples = draw(rng, NEW, n_examples, ["u", "v"]) if n_examples else None
    fits = []
    monkeypatch.setattr(
        seen_and_new, "fit_together", lambda *x, **y: fits.append(fit_together(*x, **y)) or fits[0]
    )
    head = both(*seen, examples, none=none)
    for scores, _ in (seen, new):
        proba = head.predict_proba(scores)
        np.testing.assert_allclose(proba.sum(axis=1), 1)
        inputs = describe_inputs(scores, np.zeros(0))
        first = scores.values.argmax(axis=1)
        excess = find_excess(fits[0], inputs, first)
        terms = head.inner.decision_terms(scores)
        np.testing.assert_allclose(terms.sum(axis=1), excess.max(axis=1), atol=1e-9)
        expected = np.array(ITEMS)[first]
        is_new = excess.max(axis=1) > 0
        expected = np.where(is_new, np.array(["u", "v"])[excess.argmax(axis=1)], expected)
        if none:
            misfit = fits[0].parts[0][0].misfit(inputs, first) - fits[0].none
            expected = np.where(
                misfit > np.maximum(excess.max(axis=1), 0), "none of these", expected
            )
        np.testing.assert_array_equal(head.predict(scores), expected)
    assert head.classes_.tolist() == sorted([*ITEMS, "u", "v", *["none of these"] * none])
    assert head.classes_[head.seen_].tolist() == ITEMS


def test_a_larger_budget_loses_more_and_finds_more(seen, new):
    first = np.array(ITEMS)[seen[0].values.argmax(axis=1)]
    lost, found = [], []
    for budget in (0.01, 0.05, 0.2):
        head = both(*seen, seen_loss=budget)
        lost.append(np.mean(first == seen[1]) - np.mean(head.predict(seen[0]) == seen[1]))
        found.append(np.mean(head.predict(new[0]) == new[1]))
        assert head.budget_.loss <= budget
        assert head.budget_.n_inputs == 400
    assert lost == sorted(lost)
    assert found == sorted(found)
    assert found[-1] > 0.5


def test_a_reference_without_labels_limits_what_is_predicted_as_new(seen):
    head = both(seen[0], seen_loss=0.05)
    assert np.mean(np.isin(head.predict(seen[0]), ["u", "v"])) <= 0.06


def test_without_a_reference_there_is_a_default(seen, new):
    head = both()
    assert head.budget_ is None
    assert np.mean(head.predict(new[0]) == new[1]) > 0.3
    assert np.mean(head.predict(seen[0]) == seen[1]) > 0.6


def test_a_small_reference_predicts_no_new_class(seen, new):
    head = both(seen[0][:30], seen[1][:30], seen_loss=0.02)
    assert np.isin(head.predict(new[0]), ITEMS).all()


def test_seen_classes_that_the_reference_lacks_are_named(seen):
    kept = seen[1] != "c"
    assert both(seen[0][kept], seen[1][kept]).missing_ == ["c"]


def test_without_seen_classes_none_takes_their_place(seen, new):
    together, closed = both(*seen), both(*seen, seen=False)
    assert closed.classes_.tolist() == ["none of these", "u", "v"]
    is_seen = np.isin(together.predict(new[0]), ITEMS)
    np.testing.assert_array_equal(closed.predict(new[0]) == "none of these", is_seen)


def test_inputs_of_none_of_the_classes_are_told_from_both(seen, new, rng):
    head = both(*seen, none=True, seen_loss=0.2)
    plain = rs.Scores(rng.normal(size=(200, 5)), ITEMS)
    none = [np.mean(head.predict(one) == "none of these") for one in (plain, seen[0], new[0])]
    assert none[0] > 1.5 * max(none[1:])


def test_a_file_gives_the_same_probabilities(seen, new, tmp_path):
    # The first example is of one class, so there are two parts.
    head = both(*seen, (new[0][:1], new[1][:1]), none=True)
    assert head.head_.groups.sum(axis=1).tolist() == [1, 1, 0]
    head.save(tmp_path / "head.rankshot")
    loaded = rs.load_head(tmp_path / "head.rankshot")
    np.testing.assert_array_equal(loaded.predict_proba(new[0]), head.predict_proba(new[0]))
    assert loaded.classes_.tolist() == head.classes_.tolist()
    assert loaded.about["budget"]["n_inputs"] == 400


def test_features_of_examples_help(seen, new, rng):
    def add(scores, codes):
        features = np.eye(8)[codes] + 0.3 * rng.normal(size=(len(codes), 8))
        return rs.Scores(scores.values, ITEMS, features=features)

    usual = add(seen[0], np.searchsorted(ITEMS, seen[1]))
    inputs = add(new[0], 5 + (new[1] == "v"))
    examples = inputs[:20], new[1][:20]
    plain = rs.Scores(inputs.values[:20], ITEMS), new[1][:20]
    found = both(usual, seen[1], examples, seen_loss=0.05).predict(inputs)
    without = both(*seen, plain, seen_loss=0.05).predict(new[0])
    assert np.mean(found == new[1]) > np.mean(without == new[1])


def test_single_precision_and_renamed_classes(seen, new):
    head = both(*seen)
    single = rs.Scores(new[0].values.astype(np.float32), ITEMS)
    found = head.predict_proba(single)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, head.predict_proba(new[0]), atol=1e-4)
    renamed = head.head_.rename_seen({"a": "A"})
    assert "A" in renamed.classes_
    np.testing.assert_allclose(
        np.sort(renamed.predict_proba(new[0].values)), np.sort(head.predict_proba(new[0]))
    )


@pytest.mark.parametrize("library", ["torch", "jax.numpy"])
def test_other_libraries_and_a_torch_module(seen, new, library):
    module = pytest.importorskip(library)
    head = both(*seen, none=True).head_
    values = np.concatenate([new[0].values, new[0].values.round(), np.zeros((1, 5))])
    values = values.astype(np.float32)
    expected, inputs = head.log_proba(values.astype(np.float64)), module.asarray(values)
    found = [head.log_proba(inputs)]
    assert head.predict(inputs).tolist() == head.predict(values).tolist()
    if library == "torch":
        network = head.to_torch()
        assert network.classes == tuple(head.classes_)
        found += [network(inputs), module.export.export(network, (inputs,)).module()(inputs)]
    for log_proba in found:
        np.testing.assert_allclose(np.asarray(log_proba), expected, atol=1e-4)


WRONG = {"thresholds": np.zeros(3), "groups": np.zeros((1, 3)), "seen_temperature": 0.0}


@pytest.mark.parametrize("parameter", WRONG)
def test_what_no_fit_makes_is_refused(seen, parameter):
    with refuses(parameter):
        replace(both(*seen).head_, **{parameter: WRONG[parameter]})


def test_refused(seen):
    with refuses("seen_loss", 0.02):
        both(seen_loss=0.02)
    with refuses("seen_loss", 1.5):
        both(*seen, seen_loss=1.5)
    with refuses("reference"):
        both(none=True)
    with refuses("seen_loss", 0.02):
        Settings(seen_loss=0.02)
    known = rs.Rankings.from_orders([["a", "b"], ["c"]], items=ITEMS, targets=["a", "u"])
    with refuses("rankings", "a"):
        rs.zeroshot.SeenAndNew(rs.WeightedMean().fit(known)).fit()


def test_a_batch_serves_as_the_reference(seen, new, rng):
    batch = rs.Scores.concatenate([seen[0], new[0]])
    alone = both()
    head = rs.Knowledge(RANKINGS, batch=batch).fit(Settings(classes="all"))
    assert (head.about["reference_is_batch"], head.about["budget"]) == (True, None)
    accuracy = [
        sum(np.mean(each.predict(inputs) == labels) for inputs, labels in (seen, new))
        for each in (alone, head)
    ]
    assert accuracy[1] > accuracy[0] + 0.1
    # A small batch does not, unless this is wanted; an explicit budget limits what is new.
    few = rs.Knowledge(RANKINGS, batch=batch[:4])
    assert not few.fit(Settings(classes="all")).about["reference_is_batch"]
    settings = Settings(classes="all", batch=True, seen_loss=0.05)
    head = rs.Knowledge(RANKINGS, batch=batch).fit(settings)
    assert np.isin(head.predict(batch), ["u", "v"]).mean() <= 0.06
    with refuses("seen_loss", 0.05):
        rs.Knowledge(RANKINGS, batch=batch).fit(Settings(classes="all", seen_loss=0.05))


def test_a_batch_beside_a_reference_is_used_and_saved(seen, new, tmp_path):
    batch = rs.Scores.concatenate([seen[0][:150], new[0]])
    known = rs.Knowledge(RANKINGS, (seen[0][150:], seen[1][150:]), batch=batch)
    alone = known.fit(Settings(classes="all", seen_loss=0.05, batch=False))
    jointly = known.fit(Settings(classes="all", seen_loss=0.05, batch=True))
    assert jointly.about["budget"]["n_inputs"] == alone.about["budget"]["n_inputs"] == 250
    assert (jointly.predict(batch) != alone.predict(batch)).any()
    jointly.save(tmp_path / "head.rankshot")
    loaded = rs.load_head(tmp_path / "head.rankshot")
    np.testing.assert_array_equal(loaded.predict_proba(batch), jointly.predict_proba(batch))
