"""Heads on arrays of other libraries: the answers of NumPy, in the same type and on the device."""

from functools import cache

import array_api_strict
import numpy as np
import pytest
from head_cases import (
    HEADS,
    ITEMS,
    RANKINGS,
    TARGETS,
    VOTES,
    kinds_of,
    random_scores,
    semantics_of,
)
from sklearn.base import clone
from test_heads import confident

import rankshot as rs
from rankshot import RankshotError
from rankshot.core.arrays import other_library
from rankshot.zeroshot.scores import KINDS, n_columns

torch = pytest.importorskip("torch")

STRICT = rs.Rankings.from_orders(
    [["a", "b", "c", "d"], ["e", "d", "c", "a"], ["d", "e", "a", "b"], ["b", "c", "e", "a"]],
    items=ITEMS,
    targets=TARGETS,
)
FULL = rs.Rankings.from_orders(
    [list(order) for order in ("abcde", "edcab", "deabc", "bceda")], items=ITEMS, targets=TARGETS
)
UNEVEN = rs.Rankings.from_orders(
    [["a"], ["b", ["c", "d"], "a"], ["e", "a"], [["d", "b"], "c", "a"], ["c", "d", "e", "a", "b"]],
    items=ITEMS,
    targets=["u", "v", "w", "x", "u"],
    kind=["top", "top", "subset", "subset", "top"],
)
PR, DR = rs.ProbabilisticRanking, rs.DeterministicRanking
MORE = {
    "strict-mean": (PR(k=3), STRICT),
    "strict-consensus": (PR(k=2, posterior="consensus", decay=0), STRICT),
    "full": (PR(k=None), FULL),
    "uneven": (PR(), UNEVEN),
    "uneven-weighted": (rs.WeightedMean(), UNEVEN),
    "sources": (PR(k=3), VOTES),
    "nearest-3": (DR(k=3), STRICT),
    "nearest-all": (DR(k=None), FULL),
}
"""Cases beyond those of all tests: strict lists of one length, subsets, several sources."""
ALL = {name: (head, semantics_of(name)) for name, head in HEADS.items()} | MORE


def has_formula(name, kind):
    """Whether arrays of other libraries are taken: those of pairs need strict lists."""
    without = {"uneven", "sources", "nearest-3", "nearest-all"}
    return kind != "one-vs-one" or (kind in kinds_of(name) and name not in without)


RUN = [
    (name, kind, with_reference)
    for name in [*MORE, "weighted", "direct", "conse"]
    # One-vs-rest scores take the same ways through the code.
    for kind, with_reference in (("multiclass", False), ("multiclass", True), ("one-vs-one", False))
    if has_formula(name, kind) and (not with_reference or ALL[name][0].takes_reference)
]
each_case = pytest.mark.parametrize(("name", "kind", "with_reference"), RUN)
ON_DEVICE = array_api_strict.Device("device1")
LIBRARIES = {
    "torch": torch.from_numpy,
    "strict": lambda values: array_api_strict.asarray(values, device=ON_DEVICE),
}
ARRAY_TYPES = [("torch", np.float32), ("strict", np.float64)]


@cache
def fitted(name, kind, with_reference):
    head, semantics = ALL[name]
    if not with_reference:
        return clone(head).fit(semantics)
    usual = random_scores(np.random.default_rng(3), kind, n=40)
    return clone(head).fit(semantics, usual)


@cache
def around(name, kind):
    """Heads that have a head inside: of seen and new classes, and refined by a batch."""
    usual = random_scores(np.random.default_rng(3), kind, n=60)
    if name == "refined":
        return rs.BatchRefinement(fitted("weighted", kind, True)).fit(usual)
    if name == "kept":
        few = random_scores(np.random.default_rng(3), kind, n=2)
        with pytest.warns(UserWarning, match="too small"):
            return rs.BatchRefinement(fitted("weighted", kind, False)).fit(few)
    if name == "none":
        return rs.SeenAndNew(rs.WeightedMean().fit(STRICT, usual), none=True).fit(usual)
    inner = fitted("strict-mean", kind, name == "seen-reference")
    return rs.SeenAndNew(inner).fit(usual if name == "seen-reference" else None)


AROUND = ["seen", "seen-reference", "none", "refined", "kept"]


def tables(kind):
    """Usual scores, many equal ones; and gaps, where worths underflow."""
    rng = np.random.default_rng(5)
    usual = random_scores(rng, kind).values
    equal = np.round(random_scores(rng, kind, n=12, scale=1).values)
    yield np.concatenate([usual, equal, np.zeros_like(usual[:1])])
    yield np.concatenate([confident(gap, kind) for gap in (1e3, 1e4)])


def to_host(array):
    if isinstance(array, torch.Tensor):
        return array.numpy()
    return np.asarray(array.to_device(array_api_strict.Device("CPU_DEVICE")))


def check_equal(array, expected, scale=1.0):
    """Nine digits in float64. In float32, sums of a few dozen numbers have five.

    ``scale`` is how large numbers were whose differences these are.
    """
    found = to_host(array).astype(np.float64)
    tolerance = 1e-9 if str(array.dtype).endswith("64") else 2e-5
    limit = tolerance * np.maximum(np.maximum(1, np.abs(expected)), scale)
    assert (np.abs(found - expected) <= limit).all()


def check_head(head, kind, library, dtype):
    for table in tables(kind):
        values = table.astype(dtype)
        wide = rs.Scores(values.astype(np.float64), ITEMS, kind)
        array = LIBRARIES[library](values)
        scores = rs.Scores(array, ITEMS, kind)
        log_posterior = head.decision_function(wide)
        # Log-probabilities are differences of these, which may be large.
        scale = np.abs(log_posterior).max(axis=1, keepdims=True) / head.temperature_
        found = head.decision_function(scores)
        check_equal(found, log_posterior, np.where(np.isinf(scale), 1, scale * head.temperature_))
        log_proba = head.predict_log_proba(scores)
        check_equal(log_proba, head.predict_log_proba(wide), scale)
        proba = head.predict_proba(scores)
        check_equal(proba, head.predict_proba(wide), scale)
        for result in (found, log_proba, proba):
            assert type(result) is type(array)
            assert (result.dtype, result.device) == (array.dtype, array.device)
            assert result.shape == (len(values), len(head.classes_))


@each_case
def test_the_answers_are_those_of_numpy(name, kind, with_reference):
    """In the same type, without a copy to the host; labels also where classes are equal."""
    head = fitted(name, kind, with_reference)
    for library, dtype in ARRAY_TYPES:
        check_head(head, kind, library, dtype)
    check_nothing_is_copied(head, kind)
    values = next(tables(kind)).astype(np.float32)
    wide = rs.Scores(values.astype(np.float64), ITEMS, kind)
    labels, proba = head.top(wide, 3)
    # Strict arrays of a device refuse to become names.
    for array in (torch.from_numpy(values), array_api_strict.asarray(values)):
        scores = rs.Scores(array, ITEMS, kind)
        np.testing.assert_array_equal(head.predict(scores), head.predict(wide))
        found = head.top(scores, 3)
        np.testing.assert_array_equal(found.labels, labels)
        np.testing.assert_allclose(found.proba, proba, rtol=1e-4, atol=1e-9)
        assert found.proba.dtype == np.float32


@pytest.mark.parametrize("name", AROUND)
def test_heads_around_heads(name):
    for kind, types in zip(("multiclass", "one-vs-one"), ARRAY_TYPES, strict=True):
        check_head(around(name, kind), kind, *types)


@pytest.mark.parametrize(("library", "dtype"), ARRAY_TYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_scores_from_probabilities(kind, dtype, library):
    p = np.random.default_rng(4).dirichlet(np.ones(n_columns(5, kind)), size=6).astype(dtype)
    p[0], p[1] = 0, 0
    p[0, 0], p[1, :2] = 1, (1 - 1e-7, 1e-7)
    array = LIBRARIES[library](p)
    found = rs.Scores.from_probabilities(array, ITEMS, kind).values
    expected = rs.Scores.from_probabilities(p, ITEMS, kind).values
    assert (found.dtype, found.device) == (array.dtype, array.device)
    np.testing.assert_allclose(to_host(found), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", "int64"])
def test_short_floats_and_integers(dtype):
    """As for NumPy, integers of 64 bits become float64: single precision does not hold them."""
    values = torch.from_numpy(next(tables("multiclass"))).abs().to(getattr(torch, dtype))
    for name in ("weighted", "uneven", "nearest-3", "direct", "conse"):
        head = fitted(name, "multiclass", False)
        found = head.predict_log_proba(values)
        assert found.dtype == (torch.float64 if dtype == "int64" else torch.float32)
        check_equal(found, head.predict_log_proba(values.double().numpy()), 10)


def test_blocks_of_inputs(monkeypatch):
    head, values = fitted("strict-mean", "multiclass", False), torch.randn(50, 5)
    whole = head.predict_log_proba(values)
    monkeypatch.setattr("rankshot.zeroshot.decide.ARRAY_CELLS", 700)
    calls, formula = [], type(head)._formula
    monkeypatch.setattr(type(head), "_formula", lambda *given: calls.append(1) or formula(*given))
    np.testing.assert_allclose(head.predict_log_proba(values), whole, rtol=1e-5)
    assert len(calls) > 1


def test_another_temperature_after_the_fit_counts():
    """The constants that are kept for a device have the temperature of the head inside."""
    head, values = rs.SeenAndNew(rs.WeightedMean().fit(RANKINGS)).fit(), torch.randn(6, 5)
    before = head.predict_log_proba(values)
    head.head.set_params(temperature=3.0)
    found = head.predict_log_proba(values)
    assert not torch.allclose(found, before)
    check_equal(found, head.predict_log_proba(values.double().numpy()), 10)


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("name", "kind"),
    [("sum", "multiclass"), ("deterministic", "one-vs-rest"), ("mean", "one-vs-one")],
)
def test_heads_that_need_numpy_say_so(name, kind):
    head, values = fitted(name, kind, False), torch.zeros(2, n_columns(5, kind))
    with pytest.raises(RankshotError, match="NumPy arrays"):
        head.predict(rs.Scores(values, ITEMS, kind))
    head.predict(rs.Scores(values.numpy(), ITEMS, kind))


# ------------------------------------------------------------------ nothing visits the host

TO_HOST = {"numpy", "__array__", "tolist", "item", "cpu", "__bool__", "__float__", "__int__"}
TO_HOST |= {"__index__", "__complex__", "__contains__", "equal", "allclose"}


class StaysThere(torch.Tensor):
    """A tensor that cannot be looked at, and nor can anything that is computed from it."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        assert func.__name__ not in TO_HOST, func.__name__
        return super().__torch_function__(func, types, args, kwargs)


def check_nothing_is_copied(head, kind):
    for values in tables(kind):
        scores = rs.Scores(torch.from_numpy(values).as_subclass(StaysThere), ITEMS, kind)
        mask = torch.ones(len(values), len(head.classes_), dtype=bool).as_subclass(StaysThere)
        for result in (
            head.predict_log_proba(scores),
            head.predict_proba(scores, mask),
            head.decision_function(scores),
        ):
            assert type(result) is StaysThere


def test_jax():
    jax = pytest.importorskip("jax")
    values = random_scores(np.random.default_rng(0), "multiclass", dtype=np.float32).values
    for name in ("weighted", "default", "uneven", "nearest-3", "conse", "direct"):
        head = fitted(name, "multiclass", False)
        found = jax.jit(head.predict_log_proba)(jax.numpy.asarray(values))
        assert isinstance(found, jax.Array)
        np.testing.assert_allclose(found, head.predict_log_proba(values), atol=2e-5)


def on_torch(values):
    if not torch.cuda.is_available():
        pytest.skip("torch has no CUDA device")
    return torch.from_numpy(values).cuda(), lambda found: found.cpu().numpy()


def on_cupy(values):
    cupy = pytest.importorskip("cupy")
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        pytest.skip("CuPy has no device")
    return cupy.asarray(values), cupy.asnumpy


def on_jax(values):
    jax = pytest.importorskip("jax")
    if jax.default_backend() == "cpu":
        pytest.skip("JAX has no GPU")
    return jax.numpy.asarray(values), np.asarray


@pytest.mark.parametrize("move", [on_torch, on_cupy, on_jax])
def test_a_gpu_gives_the_answers_of_numpy(move):
    values = random_scores(np.random.default_rng(0), "multiclass", 500, dtype=np.float32).values
    scores, to_cpu = move(values)
    for name, _, with_reference in [case for case in RUN if case[1] == "multiclass"]:
        head = fitted(name, "multiclass", with_reference)
        found = head.predict_log_proba(scores)
        assert type(found) is type(scores)
        np.testing.assert_allclose(to_cpu(found), head.predict_log_proba(values), atol=5e-5)
        np.testing.assert_array_equal(head.predict(scores), head.predict(values))


def test_arrays_of_cupy_are_never_converted(monkeypatch):
    """They have no namespace of their own, and refuse NumPy; array-api-compat knows them."""

    def refuse(self, *given):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    made = type("ndarray", (), {"__module__": "cupy", "__array__": refuse})()
    asked = []
    monkeypatch.setattr("array_api_compat.array_namespace", lambda array: asked.append(array) or np)
    assert other_library(made) is np
    assert asked == [made]


def test_a_label_is_not_invented_for_scores_that_are_not_finite():
    scores = torch.zeros(3, 5)
    scores[1, 2] = float("nan")
    with pytest.raises(RankshotError, match="row 1: the scores are not finite"):
        fitted("weighted", "multiclass", with_reference=False).predict(scores)
