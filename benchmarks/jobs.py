"""What a cluster costs and gains: local processes against the plain command, and against Dask.

``--workers 1 2 4 8`` measures other numbers of processes than 1 and 2; ``--only fits --rankings
100000000`` fits more rankings than fit in memory. The limits are ratios of CPU times, or of memory,
which other work on the machine hardly changes; two workers are compared with one only on an idle
machine. Elapsed times are printed, and mean something only if as many cores are free as there are
workers.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import Any

import dask.dataframe as dd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import rankshot as rs
from rankshot import jobs
from rankshot.jobs.executors import open_client
from rankshot.zeroshot.files.predictions import classify_to_file
from rankshot.zeroshot.files.score_tables import open_scores

N_SEEN, N_NEW, N_ITEMS = 100, 10, 20
ROWS_PER_PART = 50_000
N_RANKINGS, RANKINGS_PER_PART, MOST_IN_MEMORY = 600_000, 100_000, 10_000_000
N_VOTES = 200_000
OVERHEAD, SHARING, GROWTH, FIT, VOTES = 1.3, 1.2, 1.15, 1.5, 1.5
"""At most: the CPU time of one worker, its client and the scheduler against the plain command; that
of two workers against one; the memory for ten times the data; the CPU time of a fit in parts
against reading and fitting in memory; and that of `consensus` with two workers against one process:
so they take at most 0.75 of its time if both cores are free."""
IDLE_SECONDS = 2.0
IS_BUSY = os.getloadavg()[0] > 0.5
"""Whether other work ran when this began: then two workers are measured, but not judged."""


def measure(work: Callable[[], Any]) -> float:
    begin = perf_counter()
    work()
    return perf_counter() - begin


def measure_cpu(work: Callable[[], Any], client: Any = None) -> float:
    """Return the CPU seconds of this process, which has the scheduler, and of all workers.

    What they spend while they wait is left out: there is more of it on a busy machine.
    """

    def spent() -> float:
        workers = {} if client is None else client.run(process_time)
        return process_time() + sum(workers.values())

    idle = spent()
    sleep(IDLE_SECONDS)
    begin, start = spent(), perf_counter()
    work()
    waited = (begin - idle) * (perf_counter() - start) / IDLE_SECONDS
    return spent() - begin - waited


@contextmanager
def start_workers(n: int) -> Iterator[Any]:
    """Start local processes as the command does."""
    with open_client(None, n) as client, client.as_current():
        client.wait_for_workers(n)
        yield client


def measure_peak() -> float:
    """Return the largest memory that this process has had, in MB."""
    # ru_maxrss, which other systems have as well, begins with that of the parent process.
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def check(name: str, value: float, limit: float, *, least: bool = False) -> bool:
    """Print a ratio and its limit; return whether it is kept."""
    print(f"{name}: {value:.2f} times; at {'least' if least else 'most'} {limit:g} times is asked")
    return value >= limit if least else value <= limit


# ---- classify


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


def new_output(folder: Path, number: Iterator[int] = count()) -> Path:  # noqa: B008
    """Return a folder that is not there yet."""
    return folder / f"out-{next(number)}"


def classify_plainly(scores: Path, head: Any, output: Path) -> None:
    """Do what `rankshot classify` does, for one file after the other."""
    output.mkdir()
    for part in sorted(scores.iterdir()):
        classify_to_file(open_scores(part), head, output / part.name)


def compare_with_plain(folder: Path, numbers: list[int], n_parts: int) -> list[bool]:
    """Compare workers with the plain command; return which limits are kept."""
    scores = write_scores(folder / "scores", n_parts, ROWS_PER_PART)
    few = write_scores(folder / "few", max(numbers), 100)
    saved, new = save_head(folder / "new.rankshot"), partial(new_output, folder)
    head, n_rows = rs.load_head(saved), n_parts * ROWS_PER_PART
    classify_plainly(few, head, new())
    plain = min(measure_cpu(lambda: classify_plainly(scores, head, new())) for _ in range(2))
    print(f"classify, plain: {n_rows:,} rows, {1e6 * plain / n_rows:.2f} µs of CPU each")
    elapsed, cpu = {}, {}
    for n in numbers:
        runs: list[jobs.PartsRun] = []
        with start_workers(n) as client:
            work = partial(jobs.classify, executor=client)
            # Workers import what they need.
            work(few, saved, new())
            cpu[n] = min(
                measure_cpu(lambda: runs.append(work(scores, saved, new())), client)  # noqa: B023
                for _ in range(2)
            )
            empty = measure_empty_function(scores)
        best = min(runs, key=lambda run: run.elapsed)
        elapsed[n] = best.elapsed
        print(
            f"classify, {n} workers: {best.elapsed:.1f} s, {n_rows / best.elapsed:,.0f} rows per "
            f"second, {cpu[n]:.1f} s of CPU; map_partitions of an empty function takes "
            f"{empty:.1f} s"
        )
    kept = [
        check("classify, CPU of one worker against the plain command", cpu[1] / plain, OVERHEAD)
    ]
    if 2 in cpu:
        shared = check("classify, CPU of two workers against one", cpu[2] / cpu[1], SHARING)
        # Processes that share a core with others take more CPU time for the same work.
        kept.append(shared or IS_BUSY)
        print(f"classify, two workers: {elapsed[1] / elapsed[2]:.2f} times as fast as one")
    return kept


def measure_empty_function(scores: Path) -> float:
    """Return the seconds that Dask takes to read the parts and to do nothing with them."""
    frame = dd.read_parquet(sorted(map(str, scores.iterdir())))
    # Workers import what they need. A second run of all would find its results there.
    frame.partitions[:2].map_partitions(_do_nothing, meta=frame._meta).compute()
    return measure(frame.map_partitions(_do_nothing, meta=frame._meta).compute)


def _do_nothing(frame: Any) -> Any:
    return frame.iloc[:0]


def measure_parts(folder: Path, n_parts: int) -> None:
    """Print the time that a part takes besides its rows: on a worker, and of the client.

    The scheduler is in the process of the client here.
    """
    scores = write_scores(folder / "tiny", n_parts, 10)
    saved, new = folder / "new.rankshot", partial(new_output, folder)
    with start_workers(1) as client:
        jobs.classify(scores, saved, new(), executor=client)
        begin = process_time()
        run = jobs.classify(scores, saved, new(), executor=client)
        own = (process_time() - begin) / n_parts
        empty = measure_empty_function(scores) / n_parts
    part = run.elapsed / n_parts
    print(
        f"{n_parts:,} parts of ten rows, one worker: {1e3 * part:.1f} ms per part, of which client "
        f"and scheduler take {1e3 * own:.1f} ms; map_partitions of an empty function takes "
        f"{1e3 * empty:.1f} ms"
    )


def classify_alone(dataset: str, saved: str, output: str) -> None:
    """Classify by one worker; print the rows, and its memory and ours. Run as a process."""
    with start_workers(1) as client:
        run = jobs.classify(dataset, saved, output, executor=client)
        (peak,) = client.run(measure_peak).values()
    print(run.n_rows, peak, measure_peak())


def compare_memory(folder: Path, n_parts: int) -> list[bool]:
    """Compare the peak memory for ten times as many parts, and for a part ten times as long.

    The parts are long enough to fill the blocks in which they are read. PyArrow, as `write_scores`
    uses it, writes a part as one row group.
    """
    rows = ROWS_PER_PART // 10
    scores = write_scores(folder / "many", 10 * n_parts, rows)
    datasets = {
        "some parts": str(scores / "part-0000?.parquet"),
        "ten times the parts": str(scores),
        "one part": str(write_scores(folder / "long", 1, ROWS_PER_PART)),
        "a part ten times as long": str(write_scores(folder / "longer", 1, 10 * ROWS_PER_PART)),
    }
    peaks = []
    for name, dataset in datasets.items():
        given = [dataset, str(folder / "new.rankshot"), str(new_output(folder))]
        n_rows, *found = map(float, run_alone("--classify", *given))
        peaks.append(found)
        print(
            f"classify, {name}, {n_rows:,.0f} rows: worker {found[0]:.0f} MB, "
            f"client {found[1]:.0f} MB"
        )
    return [
        check(
            f"classify, memory of the {who} for {list(datasets)[large]}",
            peaks[large][i] / peaks[large - 1][i],
            GROWTH,
        )
        for large in (1, 3)
        for i, who in enumerate(["worker", "client"])
    ]


def run_alone(*options: str) -> list[str]:
    """Run a part of this benchmark in a process of its own; return the words that it prints."""
    command = [sys.executable, __file__, *options]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()


# ---- Rankings


def sample_part(items: tuple[str, ...], seed: int, n: int) -> rs.Rankings:
    """Draw the rankings of one part; with 20 items nearly all are different."""
    worths = dict(zip(items, np.exp(0.1 * np.arange(len(items))), strict=True))
    return rs.PlackettLuce.from_worths(worths).sample(n, random_state=seed)


def fit_few(items: tuple[str, ...]) -> None:
    """Fit a few rankings, so that a worker imports what it needs."""
    rs.PlackettLuce().fit(sample_part(items, 0, 100))


def fit_in_memory(folder: str) -> None:
    """Read all rankings and fit; print CPU seconds, memory, and worths. Run as a process."""
    begin = process_time()
    rankings = rs.Rankings.concatenate(
        rs.read_rankings(path) for path in sorted(Path(folder).glob("*.parquet"))
    )
    read = process_time()
    model = rs.PlackettLuce().fit(rankings)
    worths = " ".join(map(repr, model.worths_.tolist()))
    print(read - begin, process_time() - read, measure_peak(), worths)


def fit_whole(votes: Path) -> tuple[float, list[float]]:
    """Fit all rankings in a process of its own; return the CPU seconds and the worths."""
    reading, fitting, peak, *worths = map(float, run_alone("--fit", str(votes)))
    print(f"in memory: read in {reading:.1f} s, fitted in {fitting:.1f} s of CPU, {peak:,.0f} MB")
    return reading + fitting, worths


def compare_fits(folder: Path, numbers: list[int], n_rankings: int) -> list[bool]:
    items = tuple(f"item {i:02d}" for i in range(N_ITEMS))
    n_parts = n_rankings // RANKINGS_PER_PART
    loaders = [partial(sample_part, seed=i, n=RANKINGS_PER_PART) for i in range(n_parts)]
    votes = folder / "votes"
    jobs.write_rankings(jobs.PartitionedRankings(loaders, items), votes)
    print(f"Plackett-Luce of {n_rankings:,} rankings of {N_ITEMS} items")
    # More do not fit in the memory of a small machine.
    whole = fit_whole(votes) if n_rankings <= MOST_IN_MEMORY else None
    kept = []
    for n in numbers:
        with start_workers(n) as client:
            # Workers import what they need, as the process that fits in memory has done.
            client.run(fit_few, items)
            parts = jobs.read_rankings(str(votes / "*.parquet"), items=items)
            begin = perf_counter()
            models = []
            cpu = measure_cpu(lambda: models.append(rs.PlackettLuce().fit(parts)), client)  # noqa: B023
            seconds = perf_counter() - begin - IDLE_SECONDS
            peaks = client.run(measure_peak).values()
        print(
            f"{parts.n_parts} parts, {n} workers: {seconds:.1f} s, {cpu:.1f} s of CPU, "
            f"{max(peaks):,.0f} MB each"
        )
        if whole is not None:
            expected_cpu, expected = whole
            difference = float(np.abs(models[0].worths_ - expected).max())
            print(f"worths are equal to {difference:.1e}")
            kept.append(difference <= 1e-8)
            ratio = cpu / expected_cpu
            kept.append(check(f"fit, CPU of {n} workers against memory", ratio, FIT))
    return kept


def compare_consensus(folder: Path) -> list[bool]:
    """Compare what `rankshot consensus` does with JSON lines: in memory, and with two workers."""
    items = tuple(f"item {i:02d}" for i in range(N_ITEMS))
    paths = [folder / f"votes-{part}.jsonl" for part in range(4)]
    for part, path in enumerate(paths):
        rs.write_rankings(sample_part(items, part, N_VOTES // 4), path)
    whole = folder / "votes.jsonl"
    whole.write_bytes(b"".join(path.read_bytes() for path in paths))
    begin = process_time()
    rs.summarize(rs.read_rankings(whole), "kemeny", None)
    alone = process_time() - begin
    with start_workers(2) as client:
        # Workers import what they need.
        rs.summarize(jobs.read_rankings(paths[:1]), "kemeny", None)
        both = measure_cpu(lambda: rs.summarize(jobs.read_rankings(paths), "kemeny", None), client)
    print(f"consensus of {N_VOTES:,} rankings: {alone:.1f} s of CPU, two workers {both:.1f} s")
    return [check("consensus, CPU of two workers against one process", both / alone, VOTES)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", choices=["classify", "fits", "consensus"])
    parser.add_argument("--rankings", type=int, default=N_RANKINGS)
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    parser.add_argument("--classify", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        fit_in_memory(options.fit)
        return
    if options.classify:
        classify_alone(*options.classify)
        return
    kept: list[bool] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.only in (None, "classify"):
            kept = compare_with_plain(folder, options.workers, 12)
            measure_parts(folder, 300)
            kept += compare_memory(folder, 10)
        if options.only in (None, "fits"):
            kept += compare_fits(folder, options.workers, options.rankings)
        if options.only in (None, "consensus"):
            kept += compare_consensus(folder)
    if not all(kept):
        sys.exit("a limit is not kept")


if __name__ == "__main__":
    main()
