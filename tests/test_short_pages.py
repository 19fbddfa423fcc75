"""The cheat sheet runs, and the page on installing says what pyproject.toml says."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import rankshot as rs

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "guide"
if not GUIDE.is_dir():
    pytest.skip("the documentation is not here", allow_module_level=True)
NOT_FOR_USERS = {"bench", "docs", "hooks", "release", "test", "test-core"}


def read_rows(page):
    """Return the cells of all tables of a page."""
    lines = (GUIDE / page).read_text(encoding="utf-8").splitlines()
    rows = (line.strip("|").split("|") for line in lines if line.startswith("|"))
    return [[cell.strip() for cell in row] for row in rows]


# ---- Install

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def find_bounds(text):
    """Return the lower bounds that a text names, and the extras."""
    bounds = set(re.findall(r"([\w-]+) ≥ ([\d.]*\d)", text))
    return bounds, set(re.findall(r"`(\w+)`", text))


def expected_bounds(requirements):
    pairs = (re.match(r"([\w-]+)(?:\[([\w,]+)\])?(?:>=([\d.]+))?", text) for text in requirements)
    found = [match.groups() for match in pairs]
    bounds = {(name, version) for name, _, version in found if version}
    extras = {e for name, group, _ in found if name == "rankshot" for e in group.split(",")}
    return bounds, extras


def test_every_extra_is_on_the_page_with_what_it_brings():
    rows = {row[0].strip("`"): row[2] for row in read_rows("install.md")[2:]}
    extras = PYPROJECT["optional-dependencies"]
    assert set(rows) == set(extras) - NOT_FOR_USERS
    for name, text in rows.items():
        assert find_bounds(text) == expected_bounds(extras[name]), name


def test_the_lowest_versions_of_the_core_are_on_the_page():
    page = (GUIDE / "install.md").read_text(encoding="utf-8")
    text = page[page.index("## Lowest versions") : page.index("## From the repository")]
    assert find_bounds(text)[0] == expected_bounds(PYPROJECT["dependencies"])[0]


# ---- Cheat sheet


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
    reference = scores = rs.scores_of(clf, X)
    votes = "".join(f"{a},{b},{a},{n}\n" for n in range(6) for a, b in (("x", "y"), ("y", "z")))
    (folder / "votes.csv").write_text(
        f"model_a,model_b,winner,judge\n{votes}z,x,z,1\nz,y,z,2\n", encoding="utf-8"
    )
    return {
        "rs": rs,
        "FrozenEstimator": FrozenEstimator,
        "folder": folder,
        "seen": seen,
        "new": new,
        "X": X,
        "labels": labels,
        "clf": clf,
        "rankings": rankings,
        "reference": reference,
        "scores": scores,
        "head": rs.WeightedMean().fit(rankings),
        "votes": folder / "votes.csv",
        "a": rankings,
        "b": rankings,
    }


# Held-out classes, labels of new classes, covariates and groups need data of their own, and the
# export takes long; the gallery and the guide run these calls.
ELSEWHERE = re.compile(r"Rehearsal|examples=|covariates|choose_n_groups|answer_files|export_onnx")


def test_the_calls_of_the_cheat_sheet_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = prepare_names(tmp_path)
    calls = [
        call
        for row in read_rows("cheat_sheet.md")
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
