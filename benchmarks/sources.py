"""The time to rank two thousand names against one another, by WordNet and by GloVe."""

from time import perf_counter

import numpy as np

from rankshot.sources import WordNet, WordVectors
from rankshot.sources.wordnet_nouns import load_nouns

N_NAMES = 2000


def draw_names() -> list[str]:
    """Draw names of physical things, such as classes have, that GloVe is likely to know."""
    nouns = load_nouns()
    wanted = {"animal", "artifact", "plant", "food", "object", "body", "person"}
    usual = [
        lemma
        for lemma in nouns.lemmas
        if lemma.isalpha() and nouns.category(nouns.senses(lemma)[0]) in wanted
    ]
    chosen = np.random.default_rng(0).choice(len(usual), size=N_NAMES, replace=False)
    return [usual[i] for i in chosen]


def main() -> None:
    names = draw_names()
    total = 0.0
    for label, source in (("WordNet", WordNet()), ("GloVe", WordVectors.glove())):
        begin = perf_counter()
        table = source.similarity(names, names)
        rankings = table.to_rankings()
        seconds = perf_counter() - begin
        total += seconds
        print(
            f"{label}: {N_NAMES:,} names against one another in {seconds:.1f} s, "
            f"{table.coverage:.0%} of pairs known, {len(rankings):,} rankings"
        )
    print(f"together {total:.1f} s; at most 60 s are allowed")


if __name__ == "__main__":
    main()
