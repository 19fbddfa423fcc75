"""Build the compact noun hierarchy inside the package from WordNet's own files.

    python scripts/build_wordnet.py DIRECTORY

DIRECTORY contains ``data.noun``, ``index.noun``, ``noun.exc`` and ``cntlist.rev`` of WordNet 3.0
(Debian's package wordnet-base has them). Kept are lemmas, their senses in order, how often each
sense was tagged, which senses are written with a capital letter, hypernyms, lexical categories, the
offsets that identify synsets, the number of synsets below each, and irregular plurals. Left out are
glosses, other relations and other parts of speech.
"""

import sys
from pathlib import Path

import numpy as np

DATA = Path(__file__).parents[1] / "src" / "rankshot" / "sources" / "data"


def read_lines(path: Path) -> list[str]:
    """Read the lines after the licence, which is indented."""
    return [x for x in path.read_text(encoding="utf-8").splitlines() if not x.startswith("  ")]


def main(directory: Path) -> None:
    """Write ``wordnet_nouns.npz``."""
    synsets = [line.split(" | ")[0].split() for line in read_lines(directory / "data.noun")]
    number = {fields[0]: i for i, fields in enumerate(synsets)}
    categories = np.array([int(fields[1]) for fields in synsets], np.uint8)
    parents: list[list[int]] = []
    first_words: list[str] = []
    capitals: set[tuple[str, int]] = set()
    for i, fields in enumerate(synsets):
        n_words = int(fields[3], 16)
        words = fields[4 : 4 + 2 * n_words : 2]
        first_words.append(words[0].lower())
        capitals |= {(word.lower(), i) for word in words if word != word.lower()}
        pointers = fields[5 + 2 * n_words :]
        pairs = zip(pointers[::4], pointers[1::4], strict=True)
        parents.append([number[offset] for symbol, offset in pairs if symbol in {"@", "@i"}])

    tagged = {}
    for line in read_lines(directory / "cntlist.rev"):
        key, sense, count = line.split()
        lemma, kind = key.split("%")
        if kind.startswith("1:"):
            tagged[lemma, int(sense)] = int(count)

    lemmas: list[str] = []
    senses: list[list[int]] = []
    counts: list[list[int]] = []
    for line in sorted(read_lines(directory / "index.noun")):
        fields = line.split()
        n_senses = int(fields[2])
        lemmas.append(fields[0])
        senses.append([number[offset] for offset in fields[-n_senses:]])
        counts.append([tagged.get((fields[0], i + 1), 0) for i in range(n_senses)])
    capital = [(x, s) in capitals for x, row in zip(lemmas, senses, strict=True) for s in row]
    # The files are sorted by offset; differences compress better than offsets.
    offsets = np.array([int(fields[0]) for fields in synsets])
    code = {lemma: i for i, lemma in enumerate(lemmas)}
    words_of: list[list[int]] = [[] for _ in synsets]
    for i, row in enumerate(senses):
        for synset in row:
            words_of[synset].append(i)

    above = [ancestors(i, parents) for i in range(len(synsets))]
    sizes = np.zeros(len(synsets), np.int64)
    for found in above:
        sizes[list(found)] += 1
    depths: dict[int, int] = {}
    for i in range(len(synsets)):
        find_depth(i, parents, depths)

    DATA.mkdir(exist_ok=True)
    plurals = [line.split()[:2] for line in read_lines(directory / "noun.exc")]
    known = [f"{plural} {singular}" for plural, singular in plurals if singular in code]

    np.savez_compressed(
        DATA / "wordnet_nouns.npz",
        lemmas=np.frombuffer("\n".join(lemmas).encode(), np.uint8),
        plurals=np.frombuffer("\n".join(known).encode(), np.uint8),
        n_senses=np.array([len(row) for row in senses], np.uint8),
        senses=np.concatenate(senses).astype(np.int32),
        sense_counts=np.concatenate(counts).astype(np.uint16),
        sense_capitals=np.packbits(capital),
        n_parents=np.array([len(row) for row in parents], np.uint8),
        parents=np.array([p for row in parents for p in row], np.int32),
        categories=categories,
        offset_steps=np.diff(offsets, prepend=0).astype(np.uint16),
        sizes=sizes.astype(np.int32),
        depths=np.array([depths[i] for i in range(len(synsets))], np.uint8),
        # The place of the first word among the words of its synset, in the order of lemmas.
        first_words=np.array(
            [found.index(code[word]) for found, word in zip(words_of, first_words, strict=True)],
            np.uint8,
        ),
    )
    size = (DATA / "wordnet_nouns.npz").stat().st_size
    print(f"{len(lemmas):,} lemmas, {len(synsets):,} synsets, {size / 1e6:.2f} MB")


def ancestors(synset: int, parents: list[list[int]]) -> set[int]:
    """Return a synset and all synsets above it."""
    found: set[int] = set()
    todo = [synset]
    while todo:
        here = todo.pop()
        if here not in found:
            found.add(here)
            todo.extend(parents[here])
    return found


def find_depth(synset: int, parents: list[list[int]], known: dict[int, int]) -> int:
    """Return the length of the longest path to the root."""
    if synset not in known:
        above = [find_depth(parent, parents, known) for parent in parents[synset]]
        known[synset] = 1 + max(above, default=-1)
    return known[synset]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
