"""How fast `rankshot.jobs.classify` is: against the same work without a job, and by more processes.

Run: python benchmarks/jobs.py [--processes 2]
"""

import argparse
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import rankshot as rs
from rankshot import jobs

N_SEEN, N_NEW, N_PARTS, ROWS = 100, 10, 12, 50_000


def write_scores(folder: Path, n_parts: int, rows: int) -> Path:
    """Write parts of random scores, with ids."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    names = ["id", *(f"seen {i}" for i in range(N_SEEN))]
    for part in range(n_parts):
        scores = rng.normal(size=(rows, N_SEEN)).astype(np.float32)
        ids = [f"{part}-{i}" for i in range(rows)]
        pq.write_table(pa.table([ids, *scores.T], names), folder / f"part-{part:05d}.parquet")
    return folder


def save_head(path: Path) -> Path:
    """Save the default head, fitted to eight lists of ten for each new class."""
    rng = np.random.default_rng(1)
    lists = np.argsort(rng.random((8 * N_NEW, N_SEEN)), axis=1)[:, :10]
    rankings = rs.Rankings.from_orders(
        [[f"seen {i}" for i in order] for order in lists],
        items=[f"seen {i}" for i in range(N_SEEN)],
        targets=[f"new {i % N_NEW}" for i in range(8 * N_NEW)],
    )
    rs.WeightedMean().fit(rankings).save(path)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    n = parser.parse_args().processes
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scores = write_scores(folder / "scores", N_PARTS, ROWS)
        few = write_scores(folder / "few", n, 10)
        saved = save_head(folder / "new.rankshot")
        (folder / "plain").mkdir()
        begin = perf_counter()
        for part in sorted(scores.iterdir()):
            jobs.classify(part, saved, folder / "plain" / part.name)
        print(f"one file after the other: {perf_counter() - begin:.1f} s")
        begin = perf_counter()
        run = jobs.classify(scores, saved, folder / "one", workers=1)
        seconds = perf_counter() - begin
        print(f"a job in one process: {seconds:.1f} s, {run.n_rows / seconds:,.0f} rows/s")
        begin = perf_counter()
        jobs.classify(scores, saved, folder / "one", workers=1)
        print(f"the same job again, with nothing to do: {perf_counter() - begin:.2f} s")
        with ProcessPoolExecutor(n, get_context("spawn")) as pool:
            # Processes import what they need.
            jobs.classify(few, saved, folder / "warm", executor=pool)
            begin = perf_counter()
            run = jobs.classify(scores, saved, folder / "many", executor=pool)
            seconds = perf_counter() - begin
        print(f"{n} processes: {seconds:.1f} s, {run.n_rows / seconds:,.0f} rows/s")


if __name__ == "__main__":
    main()
