"""Numbers on the pages of the guide are those of the runs on three data sets, or of a run here."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier

import rankshot as rs
from markdown_tables import read_rows
from rankshot.datasets import load_cifar, load_panel

pytestmark = pytest.mark.slow

RESULTS = (Path(__file__).parents[1] / "docs" / "results" / "guide.md").read_text("utf-8")


def read_table(first_cell):
    """Return the rows of the table whose header begins with a cell, by their first cell."""
    table = RESULTS[RESULTS.index(f"| {first_cell} |") :].split("\n\n")[0]
    return {cells[0]: cells[1:] for cells in read_rows(table)}


@pytest.fixture(scope="module")
def photos():
    """Return a function from rankings to the log-probabilities of photos, and their labels."""
    data = load_cifar()
    clf = RidgeClassifier(alpha=1000).fit(data.seen_train, data.seen_train_label)
    scores, reference = rs.scores_of(clf, data.new), rs.scores_of(clf, data.seen_validation)

    def classify(rankings):
        head = rs.WeightedMean().fit(rankings, reference=reference)
        return head.classes_, head.log_proba(scores)

    return classify, data.new_label


def test_more_raters_help_a_little(photos):
    classify, labels = photos
    panel = load_panel()
    table = read_table("raters who answered the question about photographs (CIFAR)")
    for count, cell in zip(*list(table.values())[0::2], strict=True):
        accuracies = []
        for raters in itertools.combinations(sorted(set(panel.raters)), int(count)):
            classes, proba = classify(panel[np.isin(panel.raters, raters)])
            accuracies.append(np.mean(classes[proba.argmax(axis=1)] == labels))
        assert float(cell) == pytest.approx(np.mean(accuracies), abs=0.002)


def test_two_classes_at_a_time(photos):
    classify, labels = photos
    _, _, *rows = read_table("question to the language-model panel").values()
    pairs = (("automobile", "truck"), ("airplane", "ship"), ("cat", "truck"))
    for question, row in zip(("similar", "photographs", "contrast"), rows, strict=True):
        classes, proba = classify(load_panel(question=question))
        for pair, cell in zip(pairs, row, strict=True):
            inputs = np.isin(labels, pair)
            columns = [classes.tolist().index(name) for name in pair]
            right = np.array(pair)[proba[inputs][:, columns].argmax(axis=1)] == labels[inputs]
            assert float(cell) == pytest.approx(right.mean(), abs=0.01)


def test_how_close_each_rule_is_to_the_truth():
    rows = read_table("rule")
    rules = {
        **{
            f"`{rule.__name__}`": (lambda r, rule=rule: rule(r).order)
            for rule in (rs.borda, rs.ranking.copeland, rs.ranking.schulze, rs.kemeny)
        },
        "`PlackettLuce().fit(…).mode_`": lambda r: rs.PlackettLuce().fit(r).mode_,
    }
    columns = itertools.product(("Plackett-Luce", "Mallows"), (12, 3))
    for column, (model, k) in enumerate(columns):
        distances = {name: [] for name in rules}
        for seed in range(100):
            order = np.random.default_rng(seed).permutation(list("abcdefghijkl")).tolist()
            worths = dict(zip(order, np.exp(np.linspace(2, -2, 12)), strict=True))
            truth = (
                rs.Mallows.from_center(order, 0.3)
                if model == "Mallows"
                else rs.PlackettLuce.from_worths(worths)
            )
            rankings = truth.sample(20, k, random_state=seed)
            expected = rs.Rankings.from_orders([order], items=rankings.items)
            for name, rule in rules.items():
                found = rs.Rankings.from_orders([rule(rankings)], items=rankings.items)
                distances[name].append(rs.ranking.mean_kendall_distance(expected, found)[0, 0])
        for name in rules:
            assert float(rows[name][column]) == pytest.approx(np.mean(distances[name]), abs=0.06)
