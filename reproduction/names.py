"""Measure rankings from names alone, and how many names are in the dictionaries.

``make names FROM=DIRECTORY`` measures `LookAlikes` and `WordNet` on the data sets in DIRECTORY and
on the scores in the package, looks up lists of names, and writes a section of
``docs/results/accuracies.md``. With ``LISTS=FOLDER``, the names of LVIS and Open Images are looked
up as well: FOLDER contains ``lvis.yaml`` and ``open-images-v7.yaml`` of the package ultralytics.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import rankshot as rs
from rankshot.ranking.rankings import Rankings
from rankshot.sources.dictionary import Dictionary, load_dictionary
from rankshot.sources.wordnet_nouns import compare_synsets
from rankshot.zeroshot import Predictor
from rankshot.zeroshot.scores import Scores
from reproduction.result_tables import PAGE, ResultTable, Value, write_section
from reproduction.scored_tasks import load_scored_tasks

LISTS = Path(__file__).parent / "name_lists"
MOST_PER_CLASS = 150


@dataclass(frozen=True)
class NameTask:
    """Scores of inputs of classes that a classifier does not know."""

    name: str
    scores: Scores
    labels: NDArray[np.str_]
    reference: Scores | None


def main(directory: Path, lists: Path | None) -> None:
    """Measure everything, and write the section."""
    write_section(PAGE, "names", [table_of_accuracies(directory), table_of_names(lists)])


# ---- Accuracies


def load_tasks(directory: Path) -> Iterator[NameTask]:
    """Yield the tasks, those with held-out seen classes included."""
    for dataset in ("cifar", "animals", "sounds", "imagenet"):
        for task in load_scored_tasks(dataset, directory, lambda _: None):
            few = task.limit(MOST_PER_CLASS)
            yield NameTask(few.name, few.scores.with_blocks(), few.labels, few.reference)


def table_of_accuracies(directory: Path) -> ResultTable:
    """Return a table with one row per task."""
    rows: list[tuple[Value, ...]] = []
    for task in load_tasks(directory):
        targets, items = sorted(set(task.labels.tolist())), task.scores.items
        tree = rs.WordNet().similarity(targets, items).to_rankings()
        found = rs.LookAlikes().look_up(targets, items)
        assert found.rankings is not None
        joint = rs.Knowledge(found.rankings, task.reference, batch=task.scores).fit()
        cells = [*measure(task, tree), *measure(task, found.rankings), score(task, joint)]
        mixed = ["", "", ""]
        if task.name.startswith("imagenet"):
            part = take_out(targets)
            by_part = [rank_by_five(part, targets, items)]
            by_part += [rank_by_part(part, targets, items, vectors=v) for v in (False, True)]
            mixed = [measure(task, rankings)[0] for rankings in by_part]
        rows.append((task.name, f"{len(items):,} / {len(targets)}", *cells, *mixed))
        print(*rows[-1], flush=True)
    head = ["task", "seen / new", "WordNet", "WordNet, reference", "dictionary"]
    head += ["dictionary, reference", "dictionary, jointly", "taken out: five nearest"]
    head += ["taken out: mixture", "taken out: mixture with word vectors"]
    title = "Rankings from names alone"
    return ResultTable("names", title, tuple(head), tuple(rows), (NOTE,))


def measure(task: NameTask, rankings: Rankings) -> list[str]:
    """Return the mean class accuracy of the default head, alone and with a reference."""
    cells = []
    for reference in (None, task.reference):
        head = rs.WeightedMean().fit(rankings, reference=reference)
        cells.append(score(task, head))
    return cells


def score(task: NameTask, head: Predictor) -> str:
    """Return the mean class accuracy of a head."""
    correct = head.predict(task.scores) == task.labels
    of_classes = [correct[task.labels == name].mean() for name in np.unique(task.labels)]
    return f"{np.mean(of_classes):.3f}".removeprefix("0")


def take_out(targets: Sequence[str]) -> Dictionary:
    """Return the dictionary without the entries of some nouns and of their synonyms."""
    full = load_dictionary("images")
    rows = {row for name in targets if (row := full._find_noun(name)[0]) is not None}
    synsets = {full.synsets[row] for row in rows} - {-1}
    kept = [row for row, s in enumerate(full.synsets) if row not in rows and s not in synsets]
    return Dictionary(
        "images",
        [full.nouns[row] for row in kept],
        full.classes,
        full.lists[kept],
        [full.synsets[row] for row in kept],
        [full.is_whole[row] for row in kept],
    )


def rank_by_part(
    part: Dictionary, targets: Sequence[str], items: Sequence[str], *, vectors: bool
) -> Rankings:
    """Rank by a part of the dictionary, with or without word vectors."""
    vars(part).pop("_vectors", None)
    if not vectors:
        vars(part)["_vectors"] = None
    source = rs.LookAlikes("images")
    source.dictionaries = [part]
    found = source.look_up(targets, items)
    assert found.rankings is not None
    return found.rankings


def rank_by_five(part: Dictionary, targets: Sequence[str], items: Sequence[str]) -> Rankings:
    """Rank by the mean lists of the five entries that are nearest in WordNet: a plain attempt."""
    known = [row for row, synset in enumerate(part.synsets) if synset >= 0]
    name_of = {number: name for name, number in part.match_classes(items).items()}
    full, orders, owners = load_dictionary("images"), [], []
    for target in targets:
        row, _ = full._find_noun(target)
        synset = -1 if row is None else full.synsets[row]
        if synset < 0:
            continue
        near = compare_synsets("path", [synset], [part.synsets[row] for row in known])[0]
        nearest = [known[i] for i in np.argsort(-near, kind="stable")[:5]]
        for values in part.list_weights[nearest].sum(axis=0):
            best = [i for i in np.argsort(-values, kind="stable") if values[i] and i in name_of]
            orders.append([name_of[i] for i in best[:15]])
            owners.append(target)
    return Rankings.from_orders(
        orders, items=items, targets=owners, raters=["1", "2"] * (len(owners) // 2)
    )


# ---- Names


def table_of_names(folder: Path | None) -> ResultTable:
    """Return how the names of some lists are found in the dictionary of look-alikes."""
    lists = {
        "COCO, 80 classes": (LISTS / "coco.txt").read_text("utf-8").splitlines(),
        "200 everyday nouns": (LISTS / "everyday.txt").read_text("utf-8").splitlines(),
    }
    for name, file in (("LVIS", "lvis.yaml"), ("Open Images V7", "open-images-v7.yaml")):
        if folder is not None and (path := folder / file).exists():
            names = re.findall(r"^  \d+: (.+)$", path.read_text("utf-8"), re.MULTILINE)
            lists[f"{name}, {len(names):,} classes"] = [name.strip("'\"") for name in names]
    kinds = ("as written", "by a synonym or correction", "mixed from others", "not at all")
    rows: list[tuple[Value, ...]] = []
    for title, names in lists.items():
        counts = Counter(how_found(names).values())
        rows.append((title, *(counts[kind] for kind in kinds)))
        print(*rows[-1], flush=True)
    title = "How many names are in the dictionary?"
    return ResultTable("dictionary", title, ("list", *kinds), tuple(rows), (NAMES_FOUND,))


def how_found(names: Sequence[str]) -> dict[str, str]:
    """Return how each name is found."""
    entries = load_dictionary("images").find(dict.fromkeys(names))
    found = {}
    for name, entry in entries.items():
        found[name] = "not at all" if entry is None else "as written"
        if entry is not None and entry.note:
            found[name] = "by a synonym or correction" if entry.is_certain else "mixed from others"
    return found


NOTE = """\
Mean class accuracy of the default head, without and with a reference; *jointly*: with a \
reference, all inputs as one batch. *Held-out*: the targets are seen classes; settings were chosen \
on these, and on the lists of the dictionary themselves. *Taken out*: the targets and their \
synonyms are taken out of the dictionary, as if they were unknown nouns; they have the lists of \
the five entries that are nearest in WordNet, or a mixture of entries by WordNet and the words of \
their names, without and with GloVe vectors. The raters may have read about these \
public data sets."""
NAMES_FOUND = """\
COCO's classes; 200 nouns that were written down before the dictionary was looked at; the classes \
of LVIS and Open Images, as the package ultralytics lists them."""

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--lists", type=Path)
    options = parser.parse_args()
    main(options.directory, options.lists)
