"""The files that the commands of the guide read: scores, labels, names of classes, and votes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from rankshot.core.files import replace_file
from rankshot.core.tables import ID, LABEL, open_csv_writer, open_writer
from rankshot.datasets.embedded import load_cifar
from rankshot.zeroshot.estimator_scores import scores_of
from rankshot.zeroshot.tables import write_score_table

N_VOTES = 240
EXAMPLE_FILES = (
    "scores.csv",
    "labels.csv",
    "seen_scores.csv",
    "seen.txt",
    "new.txt",
    "votes.csv",
)
"""What `write_example_files` writes."""


def write_example_files(folder: str | Path) -> None:
    """Write the files that the commands of the guide read.

    A logistic regression is trained on the images of `load_cifar`, which takes about a second.
    ``scores.csv`` and ``labels.csv`` describe images of the ten new classes, ``seen_scores.csv``,
    which has a column ``label``, other images of the 100 seen classes; ``seen.txt`` and ``new.txt``
    have the names. ``votes.csv`` has simulated votes between four models, by twelve judges.

    Parameters
    ----------
    folder : str or Path
        An existing folder. Files with the same names are replaced.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import rankshot as rs
    >>> from rankshot.datasets import write_example_files
    >>> with TemporaryDirectory() as folder:
    ...     write_example_files(folder)
    ...     rs.leaderboard(Path(folder, "votes.csv")).items
    ('ada', 'bert', 'cleo', 'dora')
    """
    place, data = Path(folder), load_cifar()
    # A tenth of the usual precision takes a fifth of the time, and as many labels are correct.
    model = LogisticRegression(C=0.01, tol=0.01).fit(data.seen_train, data.seen_train_label)
    scores, seen = scores_of(model, data.new), scores_of(model, data.seen_validation)
    ids = [f"img{i}" for i in range(len(scores))]
    write_score_table(place / "scores.csv", scores.items, [(ids, scores)])
    with replace_file(place / "labels.csv") as stream:
        open_csv_writer(stream).writerows([(ID, LABEL), *zip(ids, data.new_label, strict=True)])
    with open_writer(place / "seen_scores.csv", [LABEL, *seen.items]) as put:
        put([data.seen_validation_label.tolist()], seen.values)
    for name, classes in (("seen.txt", data.seen_classes), ("new.txt", data.new_classes)):
        (place / name).write_text("".join(f"{one}\n" for one in classes), encoding="utf-8")
    with replace_file(place / "votes.csv") as stream:
        open_csv_writer(stream).writerows(draw_votes(np.random.default_rng(0)))


def draw_votes(rng: np.random.Generator) -> list[list[object]]:
    """Return the rows of a table of votes: earlier models are better, and longer answers win."""
    names = np.array(["ada", "bert", "cleo", "dora"])
    header = "model_a,model_b,winner,judge,group,language,length_a,length_b"
    rows: list[list[object]] = [[*header.split(",")]]
    for _ in range(N_VOTES):
        a, b = rng.choice(4, 2, replace=False)
        lengths: NDArray[np.float64] = rng.normal(size=2).round(2)
        chance = 1 / (1 + np.exp(-0.4 * (b - a) - (lengths[0] - lengths[1])))
        won = "model_a" if rng.random() < chance else "model_b"
        winner = rng.choice(["tie", won], p=[0.1, 0.9])
        judge = int(rng.integers(12))
        group = "experts" if judge < 6 else "users"
        language = rng.choice(["en", "fr"])
        rows.append([names[a], names[b], winner, f"judge {judge}", group, language, *lengths])
    return rows
