"""How long a `LinearHead` takes on a GPU, against a matrix product and a log-softmax there.

Needs torch with CUDA and array-api-compat. ``--device cpu`` runs small sizes, to try the script.
"""

import argparse
import sys
from collections.abc import Callable
from time import perf_counter

import numpy as np
import torch

import rankshot as rs

N_RUNS = 20
LEAST_SECONDS = 0.2
"""A measurement repeats its work for at least this long."""
SMALL = 100
"""With ``--device cpu`` there are this many times fewer inputs."""
SIZES = [(100_000, 1000, 40), (200_000, 100, 10)]
"""Inputs, seen classes, new classes."""


def make_head(n_seen: int, n_new: int, *, ranks: bool) -> rs.LinearHead:
    rng = np.random.default_rng(0)
    return rs.LinearHead(
        [f"seen{i}" for i in range(n_seen)],
        [f"new{i:03d}" for i in range(n_new)],
        slopes=rng.normal(size=(n_new, n_seen)),
        offsets=rng.normal(size=n_new),
        rank_slopes=rng.normal(size=(n_new, n_seen)) if ranks else None,
    )


def measure(work: Callable[[], object], device: torch.device, n_runs: int = N_RUNS) -> float:
    """Milliseconds: the median over runs, each of which waits for the device."""

    def run(times: int) -> float:
        begin = perf_counter()
        for _ in range(times):
            work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        return perf_counter() - begin

    run(1)
    times = max(1, int(LEAST_SECONDS / n_runs / max(run(1), 1e-6)))
    return float(np.median([run(times) / times for _ in range(n_runs)])) * 1e3


def compare(n_inputs: int, n_seen: int, n_new: int, device: torch.device) -> None:
    n = n_inputs if device.type == "cuda" else n_inputs // SMALL
    values = (3 * np.random.default_rng(1).normal(size=(n, n_seen))).astype(np.float32)
    scores = torch.from_numpy(values).to(device)
    weights = torch.randn(n_seen, n_new, device=device)
    with torch.no_grad():
        base = measure(lambda: torch.log_softmax(scores @ weights, 1), device)
    print(f"{n:,} inputs x {n_seen:,} seen classes, {n_new} new classes")
    print(f"  {'product and log-softmax':32} {base:9.3f} ms")
    for ranks in (False, True):
        head = make_head(n_seen, n_new, ranks=ranks)
        module = head.to_torch().to(device)
        compiled = torch.compile(module) if device.type == "cuda" else module
        on_cpu = head.log_proba(values)
        with torch.no_grad():
            for result in (head.log_proba(scores), compiled(scores)):
                difference = float(np.abs(result.cpu().numpy() - on_cpu).max())
                if not difference < 1e-3:
                    sys.exit(f"the head differs from NumPy by {difference:.2g}")
            eager = measure(lambda head=head: head.log_proba(scores), device)
            fast = measure(lambda compiled=compiled: compiled(scores), device)
        with_ranks = " with ranks" if ranks else ""
        for label, took in (("eager", eager), ("to_torch, compiled", fast)):
            print(f"  {'head' + with_ranks + ', ' + label:32} {took:9.3f} ms, {took / base:5.1f} x")
    cpu = measure(lambda: head.log_proba(values), torch.device("cpu"), n_runs=3)
    print(f"  {'head with ranks, NumPy':32} {cpu:9.3f} ms, {cpu / base:5.0f} x", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda", help="cuda, or cpu to try the script")
    device = torch.device(parser.parse_args().device)
    if device.type == "cuda" and not torch.cuda.is_available():
        print("there is no CUDA device: nothing was measured")
        return
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU, small sizes"
    print(f"torch {torch.__version__}, {name}; NumPy {np.__version__}")
    for size in SIZES:
        compare(*size, device)


if __name__ == "__main__":
    main()
