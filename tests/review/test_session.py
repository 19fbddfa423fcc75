"""Labels, learning and audits of a review, and that all of it is there after a restart."""

import json

import numpy as np
import pytest
from small_review import NEW, RANKINGS, SEEN, make_scores, open_review

import rankshot as rs
from rankshot.core.errors import RankshotError
from rankshot.review.session import GoneError
from refusals import refuses

TRUTH = make_scores(40)[1].tolist()
NONE = "none of these"


def test_labels_are_learned_and_found_again(review, tmp_path):
    before = review.predicted
    review.set_labels({row: TRUTH[row] for row in range(9)} | {9: NONE})
    assert review.learn()
    assert not review.learn()
    examples = (review.learner.scores[list(range(9))], TRUTH[:9])
    head = rs.WeightedMean().fit(review.learner.known.rankings, examples=examples)
    assert review.predicted.labels.tolist() == head.predict(review.learner.scores).tolist()
    changed = np.flatnonzero(before.labels != review.predicted.labels)
    assert review.changes.n == len(changed[changed > 9])
    if review.changes.n:
        pairs = [(before.labels[row], review.predicted.labels[row]) for row in changed if row > 9]
        assert pairs.count(review.changes[1:]) == max(map(pairs.count, pairs))
    assert (review.predicted.labels[10:] == TRUTH[10:]).mean() >= (
        before.labels[10:] == TRUTH[10:]
    ).mean()
    review.set_labels({0: None, 1: NONE})
    with open_review(tmp_path) as again:
        assert again.labels == {1: NONE, **dict(enumerate(TRUTH[2:9], 2)), 9: NONE}
        assert again.predicted.labels.tolist() == review.predicted.labels.tolist()


def test_a_class_that_nobody_knew(review, tmp_path):
    assert review.add_class("  snow   plough ", ["bus", "tram"]) == "snow plough"
    review.learn()
    assert "snow plough" in review.predicted.head.classes_, "its ranking is enough"
    review.add_class("quokka", [])
    review.set_labels({0: "snow plough", 1: "quokka", 2: "truck"})
    review.learn()
    assert {"quokka", "snow plough"} <= {*review.predicted.head.classes_}
    with open_review(tmp_path) as again:
        assert again.predicted.labels.tolist() == review.predicted.labels.tolist()
        assert again.added == {"snow plough": ("bus", "tram"), "quokka": ()}


@pytest.mark.parametrize(
    ("name", "ranking"),
    [
        *(("cat", []), ("fox", []), ("trucks", []), (" ", []), ("a\x00b", []), (NONE, [])),
        *(("quokka", ["fox", "fox"]), ("quokka", ["okapi"])),
    ],
)
def test_classes_that_cannot_be_added(review, name, ranking):
    with pytest.raises(RankshotError):
        review.add_class(name, ranking)
    assert review.added == {}


def test_labels_of_nothing_are_refused_and_not_saved(review, tmp_path):
    with refuses("row", 40):
        review.set_labels({0: "cat", 40: "cat"})
    with refuses("row", -1):
        review.set_labels({-1: "cat"})
    with refuses("label", "okapi"):
        review.set_labels({0: "okapi"})
    assert review.labels == {}
    assert (tmp_path / "review.jsonl").read_bytes() == b""


def test_known_labels_count_and_can_be_changed(tmp_path):
    given = {"x3": "cat", "x4": "dog"}
    with open_review(tmp_path, given=given) as first:
        assert first.labels == {3: "cat", 4: "dog"}
        proba = first.predicted.proba
        first.set_labels({3: "dog"})
    with open_review(tmp_path, given=given) as again:
        assert again.labels == {3: "dog", 4: "dog"}
    (tmp_path / "review.jsonl").unlink()
    with open_review(tmp_path) as without:
        assert (without.predicted.proba != proba).any()


def test_labels_of_inputs_that_are_gone_are_kept(tmp_path):
    with open_review(tmp_path, n=40) as first:
        first.set_labels({1: "cat", 30: "dog"})
    with open_review(tmp_path, n=20) as smaller:
        assert smaller.labels == {1: "cat"}
        assert smaller.notes[0].startswith("1 label ")
    with open_review(tmp_path, n=40) as again:
        assert again.labels == {1: "cat", 30: "dog"}


# ---- Audits


def test_an_audit_draws_each_unlabelled_input_once(review):
    review.set_labels({0: "cat", 1: "dog"})
    review.open_audit(7)
    drawn = []
    while (row := review.next_row) is not None:
        drawn.append(row)
        review.check(row, TRUTH[row])
    assert sorted(drawn) == list(range(2, 40))
    found = review.describe_audit()
    right = sum(review.audit.predicted[row] == TRUTH[row] for row in drawn)
    assert (found["n_correct"], found["n_checked"]) == (right, 38)
    assert found["low"] == found["high"] == right / 38


def test_an_audit_begins_with_the_predictions_of_all_labels(review):
    before = review.predicted.labels
    others = {"cat": "dog", "dog": "truck", "truck": "cat"}
    review.set_labels({row: others[TRUTH[row]] for row in range(30)})
    review.open_audit(7)
    assert (review.audit.predicted != before)[review.audit.order].any()
    assert not review.learn()
    review.set_labels(dict.fromkeys(range(40), "cat"))
    review.close_audit()
    with pytest.raises(GoneError):
        review.open_audit(7)


def test_what_is_audited_is_learned_only_when_the_audit_is_closed(review, tmp_path):
    before = review.predicted.labels
    review.open_audit(1)
    for _ in range(10):
        row = review.next_row
        review.check(row, TRUTH[row])
    free = review.audit.order[-1]
    review.set_labels({int(free): TRUTH[free]})
    assert not review.learn()
    assert review.predicted.labels is before
    assert len(review.labels) == 1
    with open_review(tmp_path) as again:
        assert again.audit.order.tolist() == review.audit.order.tolist()
        assert again.describe_audit() == review.describe_audit()
    review.close_audit()
    assert len(review.labels) == 11
    assert review.learn()
    assert review.last_audit["n_checked"] == 10
    with open_review(tmp_path) as again:
        assert again.labels == review.labels
        assert again.last_audit == review.last_audit


def test_every_check_is_recorded_and_an_input_with_a_label_is_not_asked(review, tmp_path):
    review.open_audit(1)
    rows = [int(row) for row in review.audit.order[:3]]
    review.set_labels({rows[1]: TRUTH[rows[1]]})
    review.check(rows[0], TRUTH[rows[0]])
    assert (review.next_row, review.describe_audit()["n_checked"]) == (rows[2], 2)
    review.check(rows[2], TRUTH[rows[2]])
    events = [json.loads(line) for line in (tmp_path / "review.jsonl").read_text().splitlines()]
    checks = [(one["id"], one["label"]) for one in events if one["what"] == "check"]
    assert checks == [(f"x{row}", TRUTH[row]) for row in rows]


def test_a_problem_is_told_until_it_is_over(review, monkeypatch):
    def fail(_labels, _rankings):
        raise RankshotError("too few")

    assert not review.describe()["is_learning"]
    review.set_labels({0: "cat", 1: "dog"})
    with monkeypatch.context() as patch:
        patch.setattr(type(review.learner), "fit", staticmethod(fail))
        assert not review.learn()
        assert "too few" in review.describe()["problem"]
        assert review.describe()["is_learning"]
    assert review.learn()
    assert review.describe()["problem"] == ""
    assert not review.describe()["is_learning"]


def test_checks_can_be_taken_back_and_are_not_doubled(review):
    review.open_audit(1)
    row = review.next_row
    review.check(row, "cat")
    with pytest.raises(GoneError):
        review.check(row, "cat")
    review.undo_check()
    assert review.next_row == row
    with pytest.raises(GoneError):
        review.undo_check()
    review.close_audit()
    with pytest.raises(GoneError):
        review.check(row, "cat")


OTHER = rs.Rankings.from_orders([["tram"], ["bus"], ["fox"]], items=SEEN, targets=NEW)


@pytest.mark.parametrize("is_closed", [True, False])
def test_an_audit_of_other_predictions_is_ended_and_its_labels_are_kept(tmp_path, is_closed):
    with open_review(tmp_path) as first:
        first.set_labels({5: "cat"})
        first.open_audit(1)
        for _ in range(4):
            first.check(first.next_row, "cat")
        first.undo_check()
        judged = dict.fromkeys(map(int, first.audit.order[:3]), "cat")
        if is_closed:
            first.close_audit()
    with open_review(tmp_path) as same:
        assert (same.audit is None) == is_closed
    with open_review(tmp_path, rankings=OTHER) as changed:
        assert changed.audit is None
        assert changed.labels == {5: "cat", **judged}
        assert len(changed.notes) == 1
    # With the first predictions, everything is as before.
    with open_review(tmp_path) as again:
        assert (again.audit is None) == is_closed


def test_a_label_that_corrects_a_judgement_stays_when_the_audit_ends(tmp_path):
    with open_review(tmp_path) as first:
        first.open_audit(1)
        row, other = map(int, first.audit.order[:2])
        first.check(row, "cat")
        first.check(other, "cat")
        first.set_labels({row: "dog"})
    for rankings in (RANKINGS, OTHER):
        with open_review(tmp_path, rankings=rankings) as again:
            if again.audit is not None:
                again.close_audit()
            assert again.labels == {row: "dog", other: "cat"}
