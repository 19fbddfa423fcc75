"""Rebuild the data inside the package from the measurement data.

    python scripts/build_datasets.py DIRECTORY

DIRECTORY holds ``raters/language_model.jsonl`` and ``cifar/features.npz``.
"""

import json
import sys
from pathlib import Path

import numpy as np

from rankshot.ranking.files import write_rankings
from rankshot.ranking.rankings import Rankings

DATA = Path(__file__).parents[1] / "src" / "rankshot" / "datasets" / "data"


def main(directory: Path) -> None:
    """Write the class names and the panel's rankings of CIFAR-10's classes."""
    with np.load(directory / "cifar" / "features.npz") as arrays:
        items = arrays["seen_classes"].tolist()
    (DATA / "cifar100_classes.txt").write_text("\n".join(items) + "\n", encoding="utf-8")

    text = (directory / "raters" / "language_model.jsonl").read_text(encoding="utf-8")
    records = [
        record for line in text.splitlines() if (record := json.loads(line))["dataset"] == "cifar"
    ]
    records.sort(key=lambda record: (record["target"], record["rater"]))
    panel = Rankings.from_orders(
        [record["ranking"] for record in records],
        items=items,
        targets=[record["target"] for record in records],
        raters=[record["rater"] for record in records],
        sources="language-model panel",
    )
    write_rankings(panel, DATA / "language_model_panel.jsonl")
    print(panel)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
