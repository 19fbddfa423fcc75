"""Heads on a GPU: torch, CuPy and JAX give the answers of NumPy; skipped without a device."""

import numpy as np
import pytest

import rankshot as rs

N_SEEN, N_NEW = 60, 8
ITEMS = [f"seen{i}" for i in range(N_SEEN)]


def on_torch(values):
    torch = pytest.importorskip("torch")
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


HEADS = {
    "weighted": rs.WeightedMean(),
    "mean": rs.ProbabilisticRanking(),
    "consensus": rs.ProbabilisticRanking(k=4, posterior="consensus", decay=0),
    "deterministic": rs.DeterministicRanking(k=5),
}


@pytest.mark.parametrize("with_reference", [False, True])
@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("move", [on_torch, on_cupy, on_jax])
def test_a_device_gives_the_answers_of_numpy(move, name, with_reference):
    rng = np.random.default_rng(0)
    values = (3 * rng.normal(size=(500, N_SEEN))).astype(np.float32)
    scores, to_host = move(values)
    orders = [[ITEMS[i] for i in rng.permutation(N_SEEN)[:10]] for _ in range(4 * N_NEW)]
    targets = [f"new{i % N_NEW}" for i in range(len(orders))]
    if name in {"consensus", "deterministic"}:
        orders, targets = orders[:N_NEW], targets[:N_NEW]
    rankings = rs.Rankings.from_orders(orders, items=ITEMS, targets=targets)
    if with_reference and name == "deterministic":
        pytest.skip("it has no reference")
    reference = [values[:200]] if with_reference else []
    head = HEADS[name].fit(rankings, *reference)
    found = head.predict_log_proba(scores)
    assert type(found) is type(scores)
    np.testing.assert_allclose(to_host(found), head.predict_log_proba(values), atol=5e-5)
    np.testing.assert_array_equal(head.predict(scores), head.predict(values))
    assert head.top(scores, 3).labels.shape == (500, 3)
