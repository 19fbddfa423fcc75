"""The cheat sheet runs."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import rankshot as rs
from markdown_tables import read_rows

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "cheat_sheet.md"
if not PAGE.exists():
    pytest.skip("the documentation is not here", allow_module_level=True)


def prepare_names(folder):
    """Return small values of all names that the cheat sheet assumes."""
    rng = np.random.default_rng(0)
    seen, new = ["bus", "leopard", "tiger", "tram"], ["cat", "truck"]
    X = rng.normal(size=(80, 4))
    X[np.arange(80), np.arange(80) % 4] += 4
    labels = np.array(seen)[np.arange(80) % 4]
    clf = LogisticRegression().fit(X, labels)
    orders = [["leopard", "tiger", "bus", "tram"], ["tram", "bus", "leopard", "tiger"]]
    rankings = rs.Rankings.from_orders(orders, items=seen, targets=new, raters=["ann", "bob"])
    rs.write_rankings(rankings, folder / "rankings.jsonl")
    scores = rs.scores_of(clf, X)
    votes = "".join(f"{a},{b},{a},{n}\n" for n in range(6) for a, b in (("x", "y"), ("y", "z")))
    (folder / "votes.csv").write_text(
        f"model_a,model_b,winner,judge\n{votes}z,x,z,1\nz,y,z,2\n", encoding="utf-8"
    )
    head = rs.WeightedMean().fit(rankings)
    known = {"rs": rs, "FrozenEstimator": FrozenEstimator, "folder": folder, "seen": seen}
    known |= {"new": new, "X": X, "labels": labels, "clf": clf, "rankings": rankings}
    known |= {"reference": scores, "scores": scores, "head": head, "a": rankings, "b": rankings}
    return known | {"board": rs.leaderboard(folder / "votes.csv")}


# Held-out classes, labels of new classes, covariates and groups need data of their own, and the
# export takes long; the gallery and the guide run these calls.
ELSEWHERE = re.compile(r"Rehearsal|examples=|covariates|choose_n_groups|answer_files|export_onnx")


def test_the_calls_of_the_cheat_sheet_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = prepare_names(tmp_path)
    calls = [
        call
        for row in read_rows(PAGE.read_text(encoding="utf-8"))
        if len(row) == 3
        for call in re.findall(r"`([^`]+)`", row[1])
        if re.match(r"rs\.|head\.", call) and not ELSEWHERE.search(call)
    ]
    assert len(calls) > 15
    plain = rs.Rankings.from_orders(names["rankings"].orders())
    is_second_part = False
    for call in calls:
        is_second_part |= call.startswith("rs.Rankings")
        exec(call, names | ({"rankings": plain} if is_second_part else {}))
