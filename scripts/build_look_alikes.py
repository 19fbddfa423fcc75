"""Rebuild the dictionaries of look-alikes and sound-alikes inside the package.

    python scripts/build_look_alikes.py DIRECTORY

DIRECTORY contains the folders ``look_alikes`` and ``sound_alikes``, each with ``classes.txt``, the
classes that are listed, and files of lists (.jsonl, .jsonl.xz): one line per noun and rater, as
``scripts/ask_look_alikes.py`` writes them. The same input gives the same output.
"""

import json
import lzma
import sys
from pathlib import Path
from typing import Any

import numpy as np

from rankshot.sources.dictionary import FILES, Dictionary
from rankshot.sources.labels import load_imagenet
from rankshot.sources.wordnet_nouns import load_nouns

DATA = Path(__file__).parents[1] / "src" / "rankshot" / "sources" / "data"


def main(directory: Path) -> None:
    """Write both dictionaries, and print their sizes."""
    for kind, file in FILES.items():
        name = file.removesuffix(".npz")
        classes = (directory / name / "classes.txt").read_text("utf-8").splitlines()
        number = {listed: i for i, listed in enumerate(classes)}
        records = []
        for path in sorted((directory / name).glob("*.jsonl*")):
            if ".answers." in path.name:
                continue
            with (lzma.open if path.suffix == ".xz" else open)(
                path, "rt", encoding="utf-8"
            ) as lines:
                records += [json.loads(line) for line in lines]
        nouns = sorted({record["target"] for record in records})
        raters = sorted({record["rater"] for record in records})
        by_rater = {(r["target"], r["rater"]): [number[x] for x in r["ranking"]] for r in records}
        lists = np.array([[by_rater[noun, rater] for rater in raters] for noun in nouns], np.uint16)
        synsets, is_whole = find_synsets(kind, nouns, classes)
        np.savez_compressed(
            DATA / file,
            nouns=np.frombuffer("\n".join(nouns).encode(), np.uint8),
            classes=np.frombuffer("\n".join(classes).encode(), np.uint8),
            lists=lists,
            synsets=synsets,
            is_whole=is_whole,
        )
        print(f"{file}: {len(nouns):,} nouns, {(DATA / file).stat().st_size:,} bytes")


def find_synsets(kind: str, nouns: list[str], classes: list[str]) -> tuple[Any, Any]:
    """Return the offset of each noun's synset in WordNet 3.0, 0 if it is not a thing there.

    And whether it is the synset of the noun, and not only of its last word.
    """
    wordnet = load_nouns()
    unknown = Dictionary(kind, (), (), np.zeros((0, 2, 1), np.int64), (), ())
    found = {noun: unknown.choose_sense(noun) for noun in nouns}
    if kind == "images":
        # The listed classes are ImageNet's, in their order.
        own = dict(zip(classes, load_imagenet(), strict=True))
        found |= {noun: (wordnet.synset(own[noun]), True) for noun in nouns if noun in own}
    offsets = [0 if synset is None else int(wordnet.id(synset)[1:]) for synset, _ in found.values()]
    return np.array(offsets, np.uint32), np.array([whole for _, whole in found.values()])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
