"""``--classes all`` and ``all-or-none``: seen and new classes together."""

import numpy as np
import pytest

import rankshot as rs
from command_line import (
    LOGITS,
    SEEN,
    TARGETS,
    USUAL,
    check_refused,
    rankings,
    run_well,
    write_scores,
)
from rankshot.zeroshot.files.predictions import read_predictions

CLASSIFY = "classify scores.csv --rankings rankings.jsonl -o out.csv --classes all"
ALL_OR_NONE = CLASSIFY.replace("--classes all", "--classes all-or-none")
NONE = "none of these"


def in_python(reference=None, **options):
    head = rs.WeightedMean().fit(rankings(), reference=reference)
    return rs.SeenAndNew(head, **options).fit(reference)


@pytest.mark.parametrize(
    ("words", "head", "classes"),
    [
        ("all", in_python(), [*SEEN, *TARGETS]),
        ("all --reference usual.csv", in_python(USUAL), [*SEEN, *TARGETS]),
        (
            "all-or-none --reference usual.parquet",
            in_python(USUAL, none=True),
            [*SEEN, *TARGETS, NONE],
        ),
        ("new-or-none", in_python(seen=False), [*TARGETS, NONE]),
        ("new-or-none --reference usual.csv", in_python(USUAL, seen=False), [*TARGETS, NONE]),
    ],
)
def test_all_classes_have_a_column_as_in_python(folder, words, head, classes):
    line = CLASSIFY.replace("--classes all", f"--classes {words}")
    done = run_well(line.replace("out.csv", "out.parquet"))
    found = read_predictions("out.parquet")
    assert sorted(found.targets) == sorted(classes)
    np.testing.assert_allclose(found.proba, head.predict_proba(LOGITS), rtol=1e-9)
    assert found.labels.tolist() == head.predict(LOGITS).tolist()
    n_seen, n_new = (np.isin(found.labels.astype(str), names).sum() for names in (SEEN, TARGETS))
    assert f"new classes: {n_new} ({n_new / 7:.1%})" in done
    assert (f"seen classes: {n_seen} ({n_seen / 7:.1%})" in done) == words.startswith("all")


def test_one_new_class_is_not_the_only_class(folder):
    (folder / "rankings.jsonl").write_text('{"target": "cat", "ranking": ["leopard", "tiger"]}\n')
    assert "is the only class" not in run_well(CLASSIFY)
    assert "is the only class" not in run_well(CLASSIFY.replace("all", "new-or-none", 1))
    assert "is the only class" in run_well(CLASSIFY.replace(" --classes all", ""))


def test_a_predicted_class_is_explained_with_its_gate(folder):
    words = "explain scores.csv --rankings rankings.jsonl --classes all"
    done = run_well(f"{words} --id x1 --id x3")
    for id_, why in zip(["x1", "x3"], rs.explain(in_python(), LOGITS[[0, 2]]), strict=True):
        assert f"{id_}: {why}" in done
    assert done.count("why a new class rather than a seen one") == 2


def test_the_report_knows_seen_classes(folder):
    run_well(f"{ALL_OR_NONE} --reference usual.csv")
    words = "report out.csv --rankings rankings.jsonl -o out.html"
    run_well(words)
    check_refused(folder, f"{words} --scores scores.csv", {}, "a report explains only")


def test_what_cannot_be_combined(folder):
    check_refused(folder, ALL_OR_NONE, {}, "--classes all-or-none needs --reference FILE")
    write_scores(folder / "scores.csv", LOGITS, [*SEEN[:4], NONE])
    write_scores(folder / "usual.csv", USUAL, [*SEEN[:4], NONE], ids=[])
    lists = '{"target": "cat", "ranking": ["fox"]}\n{"target": "dog", "ranking": ["bus"]}\n'
    words = f"{ALL_OR_NONE} --reference usual.csv"
    check_refused(folder, words, {"rankings.jsonl": lists}, "a class is called 'none of these'")
