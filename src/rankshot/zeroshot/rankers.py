"""Which ranker scores have: Plackett-Luce for classes, Babington-Smith for pairs of them."""

from __future__ import annotations

from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.babington_smith_ranker import BabingtonSmithRanker
from rankshot.zeroshot.plackett_luce_ranker import PlackettLuceRanker
from rankshot.zeroshot.scores import Kind

Ranker = PlackettLuceRanker | BabingtonSmithRanker


class Rankers:
    """P(π|x) of the same rankings under scores of any kind; each ranker is made once, if wanted."""

    def __init__(self, rankings: Rankings, decay: float = 0.0) -> None:
        self._rankings = rankings
        self._decay = decay
        self._made: dict[bool, Ranker] = {}

    def of(self, kind: Kind) -> Ranker:
        """Return the ranker for one kind of scores."""
        pairs = kind == "one-vs-one"
        if pairs not in self._made:
            model = BabingtonSmithRanker if pairs else PlackettLuceRanker
            self._made[pairs] = model(self._rankings, self._decay)
        return self._made[pairs]
