"""`LinearHead`: the formula in plain loops, on every array library, as a module, in a file."""

import io
import json
import zipfile
from dataclasses import replace
from math import exp, log, sqrt
from pathlib import Path

import numpy as np
import pytest
from head_cases import ITEMS, RANKINGS, TARGETS, random_scores

import rankshot as rs
from rankshot.testing import check_head
from refusals import refuses

FEATURES = 3


def make(rng, *, features=False, evidence=False, **options):
    n = len(ITEMS) + FEATURES * features + len(TARGETS) * evidence
    return rs.LinearHead(
        ITEMS,
        TARGETS,
        rng.normal(size=(len(TARGETS), n)),
        rng.normal(size=len(TARGETS)),
        0.6,
        rng.normal(size=FEATURES * features),
        TARGETS if evidence else (),
        **options,
    )


def full(rng, n=7, dtype=np.float64):
    values = (random_scores(rng, n=n).values + 4).astype(dtype)
    evidence = rs.Scores(rng.normal(size=(n, len(TARGETS))), TARGETS)
    return rs.Scores(values, ITEMS, features=rng.normal(size=(n, FEATURES)), evidence=evidence)


def by_loops(head, scores):
    """The definition, without arrays."""
    rows = []
    for row in range(len(scores)):
        f = scores.values[row].tolist()
        mean = sum(f) / len(f)
        std = sqrt(sum((x - mean) ** 2 for x in f) / len(f))
        columns = [(x - mean) / std for x in f]
        if head.n_features:
            x = [a - b for a, b in zip(scores.features[row], head.usual_features, strict=True)]
            columns += [a / sqrt(sum(b * b for b in x)) for a in x]
        if head.evidence:
            columns += scores.evidence.values[row].tolist()
        values = [
            (sum(a * x for a, x in zip(slopes, columns, strict=True)) + b) / head.temperature
            for slopes, b in zip(head.slopes, head.offsets, strict=True)
        ]
        rows.append([v - log(sum(exp(w) for w in values)) for v in values])
    return rows


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("evidence", [False, True])
def test_the_formula(rng, features, evidence):
    head, scores = make(rng, features=features, evidence=evidence), full(rng)
    np.testing.assert_allclose(head.log_proba(scores), by_loops(head, scores), rtol=1e-9)
    single = full(rng, dtype=np.float32)
    assert head.log_proba(single).dtype == np.float32
    np.testing.assert_allclose(head.log_proba(single), by_loops(head, single), rtol=1e-4, atol=1e-4)
    check_head(head, scores)
    check_head(head, single)


def test_contributions_add_up(rng):
    head = make(rng, features=True, evidence=True, usual_scores=rng.normal(size=5))
    scores = full(rng)
    total = sum(part.sum(axis=2) for part in head.contributions(scores).values())
    left = head.log_proba(scores) - total
    # A constant of each class and of each input is left.
    left = left - left.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(left, np.tile(left[0], (len(left), 1)), atol=1e-12)
    why = rs.explain(head, scores, target="u", against="v")[0]
    first, second, *_ = head.log_proba(scores)[0]
    assert sum(c for _, c in (*why.items, *why.others)) == pytest.approx(first - second)


def test_of_many_contributions_the_largest_are_printed_and_the_others_summed(rng):
    names = [f"s{i:02}" for i in range(30)]
    head = rs.LinearHead(names, ("u", "v"), rng.normal(size=(2, 30)), np.zeros(2), 0.6)
    why = rs.explain(head, rs.Scores(rng.normal(size=(1, 30)), names))[0]
    lines = str(why).splitlines()
    for _, pairs in why.group_items():
        total = sum(c for _, c in pairs)
        begin = next(i for i, line in enumerate(lines) if f"together {total:+.2f}:" in line)
        printed = [float(line.split()[-1]) for line in lines[begin + 1 : begin + 7]]
        assert sum(printed) == pytest.approx(total, abs=0.04)
        assert printed[:5] == [round(c, 2) for _, c in pairs[:5]]


@pytest.mark.parametrize("library", ["torch", "jax.numpy"])
def test_arrays_of_other_libraries_stay_what_they_are(rng, library):
    module = pytest.importorskip(library)
    scores = full(rng, dtype=np.float32)
    values = module.asarray(scores.values)
    for head in (make(rng), rs.WeightedMean().fit(RANKINGS)):
        found = head.log_proba(values)
        assert type(found) is type(values)
        np.testing.assert_allclose(np.asarray(found), head.log_proba(scores.values), atol=1e-5)
        assert head.predict(values).tolist() == head.predict(scores.values).tolist()


def test_a_tensor_keeps_its_gradient_where_all_scores_are_equal(rng):
    torch = pytest.importorskip("torch")
    head, values = make(rng), torch.tensor([[1.0, 1, 1, 1, 1], [3, 1, 0, 2, 5]], requires_grad=True)
    head.log_proba(values)[:, 0].sum().backward()
    assert torch.isfinite(values.grad).all()
    with refuses("scores") as caught:
        head.predict(torch.tensor([[1.0, 2, 3, 4, 5], [1, float("nan"), 2, 3, 4]]))
    assert caught.value.where == "row 1"


def test_a_torch_module(rng):
    torch = pytest.importorskip("torch")
    head, scores = make(rng, features=True, evidence=True), full(rng, dtype=np.float32)
    module = head.to_torch()
    assert (module.seen, module.classes) == (ITEMS, TARGETS)
    tables = scores.values, scores.features, scores.evidence.values
    inputs = [torch.tensor(np.asarray(x, np.float32)) for x in tables]
    expected = head.log_proba(scores)
    np.testing.assert_allclose(module(*inputs), expected, atol=1e-5)
    exported = torch.export.export(module, tuple(inputs)).module()
    np.testing.assert_allclose(exported(*inputs), expected, atol=1e-5)
    # Half precision would lose the digits of the constants.
    half = module.half()(*[x.half() for x in inputs])
    assert half.dtype == torch.float32
    np.testing.assert_allclose(half, expected, atol=0.05)
    double = {x.dtype for x in head.to_torch().double().buffers() if x.is_floating_point()}
    assert double == {torch.float64}
    with torch.autocast("cpu"):
        np.testing.assert_allclose(module(*inputs), expected, atol=1e-5)
    with refuses("scores"):
        module(inputs[0][:, :3])


def test_scores_that_do_not_fit_are_refused(rng):
    head, scores = make(rng, features=True, evidence=True, kind="multiclass"), full(rng)
    with refuses("scores", "one-vs-rest"):
        head.predict(rs.Scores(scores.values, ITEMS, "one-vs-rest"))
    with refuses("features", 0):
        head.predict(scores.values)
    with refuses("evidence"):
        head.predict(scores.with_blocks(features=scores.features))
    with refuses("evidence", "x"):
        few = rs.Scores(scores.evidence.values[:, :3], TARGETS[:3])
        head.predict(scores.with_blocks(features=scores.features, evidence=few))
    with refuses("scores", "z"):
        head.predict(rs.Scores(scores.values, [*"abcdz"]))


WRONG = {
    "slopes": np.zeros((4, 4)),
    "offsets": [0, 0, 0, np.nan],
    "temperature": 0.0,
    "classes": TARGETS[::-1],
    "seen": [*"aabcd"],
    "usual_scores": np.zeros(3),
}


@pytest.mark.parametrize("parameter", WRONG)
def test_what_is_no_head_is_refused_by_the_value_and_in_a_file(rng, tmp_path, parameter):
    head, path = make(rng), tmp_path / "head.rankshot"
    with refuses(parameter):
        replace(head, **{parameter: WRONG[parameter]})
    head.save(path)
    rewrite(path, {parameter: WRONG[parameter]})
    with refuses(parameter) as caught:
        rs.load_head(path)
    assert caught.value.where.startswith(str(path))


def rewrite(path, changes, compression=zipfile.ZIP_STORED):
    """Change plain values and arrays of a saved head, and keep the archive whole."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["head.json"])
    for name, value in changes.items():
        if f"arrays/{name}.npy" in members:
            stream = io.BytesIO()
            np.save(stream, np.asarray(value, np.float64))
            members[f"arrays/{name}.npy"] = stream.getvalue()
        else:
            manifest["values"][name] = list(value) if name in {"classes", "seen"} else value
    members["head.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


# ---- Files


def test_a_file_has_the_head_and_how_it_came_about(rng, tmp_path):
    votes = rs.WeightedMean().fit(RANKINGS, reference=random_scores(rng, n=40))
    votes.save(tmp_path / "a.rankshot", provenance={"note": "for tests", "files": ["r.jsonl"]})
    loaded = rs.load_head(tmp_path / "a.rankshot")
    assert loaded.about["note"] == "for tests"
    assert loaded.about["files"] == ["r.jsonl"]
    assert loaded.about["listed"]["u"]
    loaded.save(tmp_path / "b.rankshot")
    assert (tmp_path / "a.rankshot").read_bytes() == (tmp_path / "b.rankshot").read_bytes()
    with refuses("provenance['x']"):
        votes.save(tmp_path / "c.rankshot", provenance={"x": object()})
    assert not (tmp_path / "c.rankshot").exists()


SAVED = Path(__file__).parent / "saved"


def test_heads_that_earlier_versions_saved(rng):
    """That of 0.4 is read by all later versions; that of 0.3 is refused by name."""
    loaded = rs.load_head(SAVED / "version_0_4.rankshot")
    expected = np.load(SAVED / "version_0_4.npz")
    np.testing.assert_allclose(
        loaded.predict_proba(expected["scores"]), expected["proba"], atol=1e-12
    )
    together = rs.load_head(SAVED / "version_0_4_together.rankshot")
    expected = np.load(SAVED / "version_0_4_together.npz")
    scores = rs.Scores(expected["scores"], together.seen, features=expected["features"])
    np.testing.assert_allclose(together.predict_proba(scores), expected["proba"], atol=1e-12)
    assert together.about["budget"]["n_inputs"] == 300
    with pytest.raises(rs.RankshotError, match=r"0\.3\.0.*fit it again"):
        rs.load_head(SAVED / "version_0_3.rankshot")


DAMAGE = {
    "empty": lambda content: b"",
    "text": lambda content: b"not an archive",
    "cut": lambda content: content[: len(content) // 2],
    "another head": lambda content: content.replace(b'"linear"', b'"lineal"'),
}


@pytest.mark.parametrize("kind", [*DAMAGE, "compressed"])
def test_a_damaged_file_is_named(rng, tmp_path, kind):
    path = tmp_path / "head.rankshot"
    make(rng).save(path)
    if kind == "compressed":
        # Such a file could claim more than it has.
        rewrite(path, {}, zipfile.ZIP_DEFLATED)
    else:
        path.write_bytes(DAMAGE[kind](path.read_bytes()))
    with pytest.raises(rs.RankshotError, match=r"head\.rankshot"):
        rs.load_head(path)
