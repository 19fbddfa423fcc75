"""Write similarities as NLTK computes them, for the tests to compare with.

    python scripts/nltk_similarities.py DIRECTORY > tests/sources/nltk_similarities.csv

DIRECTORY contains WordNet 3.0's database files. NLTK also requires files ``lexnames`` and
``index.sense``; this script creates them, and NLTK does not use them here. Pairs of noun synsets
are drawn at random, with a fixed seed.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import nltk
import nltk.corpus
import numpy as np

N_PAIRS = 300


def main(directory: Path) -> None:
    """Print the pairs and their path similarities."""
    with tempfile.TemporaryDirectory() as folder:
        # NLTK reads only from this place in its data path.
        corpus = Path(folder) / "corpora" / "wordnet"
        shutil.copytree(directory, corpus)
        names = "\n".join(f"{i:02d}\tcategory.{i}\t1" for i in range(45))
        (corpus / "lexnames").write_text(names + "\n", encoding="ascii")
        (corpus / "index.sense").touch()
        nltk.data.path.append(folder)
        reader = nltk.corpus.wordnet
        synsets = sorted(reader.all_synsets("n"), key=lambda synset: synset.offset())
        rng = np.random.default_rng(2015)
        print("a,b,path")
        for i, j in rng.integers(0, len(synsets), size=(N_PAIRS, 2)):
            a, b = synsets[i], synsets[j]
            print(f"{a.name()},{b.name()},{a.path_similarity(b)!r}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
