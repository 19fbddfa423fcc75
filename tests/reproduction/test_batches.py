"""Batches of some classes and of unequal frequencies: what is drawn, and what is compared."""

import numpy as np
from reproduction.batches import KINDS, OTHERS, Measurement, draw_batches, write_page


def test_batches_have_the_classes_of_their_kind(task):
    found = {kind: task.labels[rows] for kind, rows in draw_batches(task.labels, 0).items()}
    assert tuple(found) == KINDS
    assert [len(set(found[kind])) for kind in KINDS[:4]] == [10, 8, 5, 2]
    assert len(set(np.unique(found["unequal"], return_counts=True)[1])) > 1


def test_the_page_has_all_kinds(task, tmp_path):
    found = Measurement(task, with_reference=True, n_draws=1).measure()
    assert {*OTHERS, "all", "half"} <= {*found}
    alone, batch = found["all"][0].accuracy
    assert batch > alone - 0.01
    write_page([(task.name, "yes", found)], 1, tmp_path / "batches.md")
    text = (tmp_path / "batches.md").read_text()
    assert f"{batch - alone:+.3f}" in text
    assert "other new" in text
