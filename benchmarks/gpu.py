"""How long heads take on a GPU, against torch.softmax there and against NumPy on the CPU.

Needs torch with CUDA and array-api-compat. ``--device cpu`` runs small sizes, to try the script.
"""

import argparse
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch

import rankshot as rs

N_RUNS = 20
LEAST_SECONDS = 0.2
"""A measurement repeats its work for at least this long."""
SMALL = 100
"""With ``--device cpu`` there are this many times fewer inputs."""


class Case(NamedTuple):
    """A head that is fitted to random lists: ``n_lists`` of ``k`` places for ``n_new`` classes."""

    label: str
    head: Any
    n_inputs: int
    n_seen: int
    n_new: int
    n_lists: int
    k: int


CONSENSUS = rs.ProbabilisticRanking(k=4, posterior="consensus", decay=0)
MEAN = rs.ProbabilisticRanking(k=10)
CASES = [
    Case("consensus, 10 lists of 4", CONSENSUS, 200_000, 100, 10, 10, 4),
    Case("mean, 80 lists of 10", MEAN, 200_000, 100, 10, 80, 10),
    Case("mean, 800 lists of 10", MEAN, 20_000, 1000, 40, 800, 10),
    Case("weighted mean, 80 lists of 10", rs.WeightedMean(k=10), 200_000, 100, 10, 80, 10),
]


def fit_head(case: Case) -> Any:
    rng = np.random.default_rng(0)
    items = [f"seen{i}" for i in range(case.n_seen)]
    lists = [rng.permutation(case.n_seen)[: case.k] for _ in range(case.n_lists)]
    orders = [[items[i] for i in order] for order in lists]
    targets = [f"new{i % case.n_new:03d}" for i in range(case.n_lists)]
    return case.head.fit(rs.Rankings.from_orders(orders, items=items, targets=targets))


def measure(work: Callable[[], object], device: torch.device, n_runs: int = N_RUNS) -> float:
    """Return milliseconds: the median over runs, each of which waits for the device."""

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


def compare(case: Case, device: torch.device) -> None:
    head = fit_head(case)
    n = case.n_inputs if device.type == "cuda" else case.n_inputs // SMALL
    values = (3 * np.random.default_rng(1).normal(size=(n, case.n_seen))).astype(np.float32)
    scores = torch.from_numpy(values).to(device)
    module = head.to_torch().to(device)
    compiled = torch.compile(module) if device.type == "cuda" else module
    on_cpu = head.log_proba(values)
    cpu = measure(lambda: head.log_proba(values), torch.device("cpu"), n_runs=3)
    with torch.no_grad():
        for found in (head.log_proba(scores), compiled(scores)):
            difference = float(np.abs(found.cpu().numpy() - on_cpu).max())
            if not difference < 1e-3:
                sys.exit(f"{case.label}: differs from NumPy by {difference:.2g}")
        softmax = measure(lambda: torch.softmax(scores, 1), device)
        eager = measure(lambda: head.log_proba(scores), device)
        fast = measure(lambda: compiled(scores), device)
    print(f"{case.label}; {n:,} inputs x {case.n_seen:,} classes")
    print(f"  {'torch.softmax':24} {softmax:9.3f} ms")
    is_compiled = "compiled" if device.type == "cuda" else "not compiled"
    for label, took in (("head, eager", eager), (f"to_torch, {is_compiled}", fast)):
        print(
            f"  {label:24} {took:9.3f} ms, {took / softmax:7.1f} times softmax, "
            f"{cpu / took:7.1f} times as fast as the CPU"
        )
    print(
        f"  {'NumPy on the CPU':24} {cpu:9.3f} ms, {cpu / softmax:7.1f} times softmax", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda", help="cuda, or cpu to try the script")
    device = torch.device(parser.parse_args().device)
    if device.type == "cuda" and not torch.cuda.is_available():
        print("there is no CUDA device: nothing was measured")
        return
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU, small sizes"
    print(f"torch {torch.__version__}, {name}; NumPy {np.__version__}")
    for case in CASES:
        compare(case, device)


if __name__ == "__main__":
    main()
