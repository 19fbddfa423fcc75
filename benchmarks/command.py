"""How long the command takes to start, against importing what it must use."""

import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

N_RUNS = 7
CLASSES = [f"class{i}" for i in range(10)]
COMMAND = [sys.executable, "-m", "rankshot.cli"]
CLASSIFY = [
    *("classify", "scores.csv", "--rankings", "rankings.jsonl"),
    *("-o", "predictions.csv", "--overwrite"),
]
# Only what others wrote, so that needless imports in rankshot count. Heads are scikit-learn
# estimators, and its base class loads the parts of SciPy that they use.
NEEDED = "import cyclopts, rich, numpy, sklearn.base"
CASES = {
    "rankshot --help": ([*COMMAND, "--help"], "import cyclopts, rich", 2.0),
    "rankshot classify, 10 rows": ([*COMMAND, *CLASSIFY], NEEDED, 1.5),
}
"""A command, the imports that it is compared with, and the largest ratio allowed."""


def write_inputs(folder: Path) -> None:
    rows = [[(3 * row + 7 * i) % 10 for i in range(10)] for row in range(10)]
    lines = [",".join(CLASSES), *(",".join(map(str, row)) for row in rows)]
    (folder / "scores.csv").write_text("\n".join(lines) + "\n")
    (folder / "rankings.jsonl").write_text(
        '{"target": "cat", "ranking": ["class1", "class2", "class3"]}\n'
        '{"target": "dog", "ranking": ["class4", "class3", "class2"]}\n'
    )


def measure(command: list[str], folder: Path) -> float:
    begin = perf_counter()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    return perf_counter() - begin


def main() -> None:
    slow = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder)
        for label, (command, imports, limit) in CASES.items():
            peer = [sys.executable, "-c", imports]
            # The two take turns, so that a busy machine slows down both; the quickest runs count.
            pairs = [(measure(command, folder), measure(peer, folder)) for _ in range(N_RUNS)]
            seconds, imported = map(min, zip(*pairs, strict=True))
            ratio = seconds / imported
            print(
                f"{label}: {seconds:.2f} s, {ratio:.2f} times `python -c '{imports}'` "
                f"({imported:.2f} s); at most {limit:g} times are allowed"
            )
            if ratio > limit:
                slow.append(label)
    if slow:
        sys.exit(f"too slow: {', '.join(slow)}")


if __name__ == "__main__":
    main()
