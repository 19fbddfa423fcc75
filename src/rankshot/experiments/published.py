"""What the paper printed: its Table 2, and the sources that it had."""

from __future__ import annotations

from rankshot.experiments.contenders import ARITHMETIC, DR, DS, GEOMETRIC, PR

INDIVIDUAL = "individual sources, averaged"
LINGUISTIC_PL, LINGUISTIC_MALLOWS = "linguistic, Plackett-Luce", "linguistic, Mallows"
PANEL_PL, PANEL_MALLOWS = "panel, Plackett-Luce", "panel, Mallows"

TABLE_TWO: dict[str, dict[tuple[str, str], tuple[float | None, float | None, float | None]]] = {
    "animals": {
        (DS, INDIVIDUAL): (0.320, None, None),
        (DS, ARITHMETIC): (0.334, None, None),
        (DS, GEOMETRIC): (0.354, None, None),
        (DR, INDIVIDUAL): (0.329, 0.341, 0.331),
        (DR, ARITHMETIC): (0.330, 0.343, 0.345),
        (DR, GEOMETRIC): (0.347, 0.359, 0.355),
        (PR, LINGUISTIC_PL): (0.320, 0.358, 0.370),
        (PR, LINGUISTIC_MALLOWS): (0.312, 0.320, 0.345),
        (PR, PANEL_PL): (0.351, 0.374, 0.395),
        (PR, PANEL_MALLOWS): (0.351, 0.374, 0.392),
    },
    "cifar": {
        (DS, INDIVIDUAL): (0.273, None, None),
        (DS, ARITHMETIC): (0.300, None, None),
        (DS, GEOMETRIC): (0.316, None, None),
        (DR, INDIVIDUAL): (0.224, 0.244, 0.251),
        (DR, ARITHMETIC): (0.258, 0.281, 0.272),
        (DR, GEOMETRIC): (0.260, 0.278, 0.276),
        (PR, LINGUISTIC_PL): (0.314, 0.335, 0.339),
        (PR, LINGUISTIC_MALLOWS): (0.288, 0.297, 0.320),
        (PR, PANEL_PL): (0.258, 0.244, 0.260),
        (PR, PANEL_MALLOWS): (0.282, 0.261, 0.292),
    },
}
"""By data set and row: one-vs-rest, one-vs-one, multiclass. Its "crowd" is our "panel"."""

LINGUISTIC = {
    "cifar": ("WordNet", "word2vec", "GloVe 100d"),
    "animals": ("WordNet", "Wikipedia", "word2vec", "GloVe 100d"),
}
"""Our linguistic sources for each data set: the paper's where they can be had."""

NO_CROWD = (
    "The paper's crowd (500 answers of people) was never published. A language-model panel of "
    "eight raters takes its place: not people."
)

SOURCE_NOTES = {
    "cifar": (
        "Linguistic sources are the paper's: WordNet, word2vec and GloVe. Our word2vec is trained "
        "on a slice of Wikipedia of 9 million words, not on news; GloVe is 6B, 100 dimensions."
    ),
    "animals": (
        "Of the paper's linguistic sources Yahoo web search, Yahoo image search and Flickr cannot "
        "be had. Wikipedia is a slice, in which four of the ten animals do not or hardly occur: "
        "it and word2vec, trained on it, are not used alone. GloVe (6B, 100 dimensions) and "
        "word2vec are added."
    ),
}

TABLE_ONE = {
    "cifar": (4000, "50,000 / 50,000 / 10,000", "100 / 10", "WordNet, word2vec, GloVe", 500),
    "animals": (
        8941,
        "21,847 / 2,448 / 6,180",
        "40 / 10",
        "WordNet, Wikipedia, Yahoo, YahooImage, Flicker",
        500,
    ),
}
"""Features, images to train/validate/test on, classes seen/unseen, sources, surveys."""
