"""`head.to_torch()`: the answers of the head, gradients, precisions, and what torch makes of it."""

import numpy as np
import pytest
from head_cases import ITEMS, RANKINGS, TARGETS
from test_arrays import AROUND, RUN, around, each_case, fitted, tables
from test_heads import confident

import rankshot as rs
from rankshot import RankshotError

torch = pytest.importorskip("torch")

FEW = ["weighted", "default", "strict-consensus", "uneven", "direct", "conse", "nearest-3"]
"""One head of each formula."""
few_heads = pytest.mark.parametrize("name", FEW)
SMOOTH = [case for case in RUN if not case[0].startswith(("nearest", "conse"))]
"""The heads without steps: a list changes, or a class is among the largest, at once."""


def module_of(name, kind="multiclass", with_reference=False):
    return fitted(name, kind, with_reference).to_torch(kind)


def scores_of(kind="multiclass", dtype=np.float32):
    """Usual and equal scores, and gaps."""
    return torch.from_numpy(np.concatenate(list(tables(kind))).astype(dtype))


def check_equal(found, expected, tolerance=2e-5):
    """Relative to the largest number: log-probabilities are differences of large numbers."""
    expected = torch.as_tensor(expected, dtype=torch.float64)
    scale = expected.abs().amax(dim=1, keepdim=True).clamp(min=1)
    assert ((found.double() - expected).abs() <= tolerance * scale).all()


@each_case
def test_a_module_gives_the_answers_of_its_head(name, kind, with_reference):
    head, scores = fitted(name, kind, with_reference), scores_of(kind)
    module = head.to_torch(kind)
    found = module(scores)
    assert found.dtype == torch.float32
    assert module.items == ITEMS
    assert module.classes == TARGETS
    check_equal(found, head.predict_log_proba(rs.Scores(scores.double().numpy(), ITEMS, kind)))
    if not name.startswith("nearest"):
        # Gradients are finite also for gaps of 10,000, and where all scores are equal.
        scores.requires_grad_()
        module(scores)[:, 0].sum().backward()
        assert torch.isfinite(scores.grad).all()
        assert scores.grad.abs().max() > 0


@pytest.mark.parametrize("name", AROUND)
def test_modules_of_heads_around_heads(name):
    kind = "multiclass"
    head, scores = around(name, kind), scores_of(kind)
    expected = head.predict_log_proba(rs.Scores(scores.double().numpy(), ITEMS, kind))
    check_equal(head.to_torch(kind)(scores), expected)


# ------------------------------------------------------------------ gradients


def numerical_gradient(head, kind, row, weights, step=1e-4):
    """By differences of the head in NumPy."""
    shifted = np.concatenate([row + step * np.eye(row.size), row - step * np.eye(row.size)])
    total = head.predict_log_proba(rs.Scores(shifted, ITEMS, kind)) @ weights
    return (total[: row.size] - total[row.size :]) / (2 * step)


@pytest.mark.parametrize(("name", "kind", "with_reference"), SMOOTH)
def test_gradients_are_those_of_the_head(monkeypatch, name, kind, with_reference):
    """Also for equal scores, and for gaps, where worths underflow."""
    head = fitted(name, kind, with_reference)
    module = head.to_torch(kind).double()
    usual = next(tables(kind))
    rows = np.concatenate([usual[:1], usual[6:9], confident(1000.0, kind)])
    weights = np.array([1.0, -0.5, 0.7, 0.2])
    expected = [numerical_gradient(head, kind, row, weights) for row in rows]
    for exact in (True, False):
        monkeypatch.setattr(torch.compiler, "is_exporting", lambda exact=exact: exact)
        scores = torch.from_numpy(rows).requires_grad_()
        (module(scores) @ torch.from_numpy(weights)).sum().backward()
        # Constants of the module have single precision.
        np.testing.assert_allclose(scores.grad, expected, rtol=1e-3, atol=1e-5)


# ------------------------------------------------------------------ precisions and devices


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["weighted", "uneven"])
def test_half_precision_is_computed_in_single_precision(name, dtype):
    module, scores = module_of(name), torch.randn(6, 5).to(dtype)
    expected = module(scores.float())
    half = module.to(dtype)
    floats = {buffer.dtype for buffer in half.buffers() if buffer.is_floating_point()}
    assert floats == {torch.float32}
    assert half(scores).dtype == torch.float32
    np.testing.assert_array_equal(half(scores), expected)


# ------------------------------------------------------------------ state, export, compilation


@pytest.mark.slow
@few_heads
def test_torch_export_with_any_number_of_inputs(name):
    module, scores = module_of(name), scores_of()
    dynamic = {"scores": {0: torch.export.Dim("inputs")}}
    exported = torch.export.export(module, (scores[:4],), dynamic_shapes=dynamic).module()
    for n in (1, 7, len(scores)):
        check_equal(exported(scores[:n]), module(scores[:n]))


@pytest.mark.slow
@few_heads
def test_torch_compile_in_one_graph(name):
    """Scores of usual size and gaps go through the same graph."""
    torch.compiler.reset()
    module = module_of(name)
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    for table in tables("multiclass"):
        scores = torch.from_numpy(table.astype(np.float32))
        check_equal(compiled(scores), module(scores))


@pytest.mark.slow
def test_several_heads_are_compiled_in_one_process():
    """Numbers that differ between modules become variables, which a branch cannot take."""
    torch.compiler.reset()
    for decay, temperature in ((0.5, 1.0), (0.3, 2.0), (0.8, 0.7)):
        inner = rs.ProbabilisticRanking(k=2, decay=decay, temperature=temperature).fit(RANKINGS)
        for head in (inner, rs.SeenAndNew(inner, seen_temperature=temperature).fit()):
            module = head.to_torch()
            compiled = torch.compile(module, fullgraph=True, backend="eager")
            scores = torch.randn(3, 5)
            check_equal(compiled(scores), module(scores))


# ------------------------------------------------------------------ what is refused


def test_without_torch(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "rankshot.zeroshot.torch_head", None)
    with pytest.raises(RankshotError, match=r"to_torch needs .*pip install torch"):
        rs.WeightedMean().fit(RANKINGS).to_torch()


def test_autocast_does_not_lower_the_precision():
    module, scores = module_of("weighted"), torch.randn(3, 5)
    expected = module(scores)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        np.testing.assert_allclose(module(scores), expected, rtol=1e-6)
